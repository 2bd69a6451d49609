"""Several servers over one database while servers, the database and the network between them fail: tests/interop/postgres."""

import asyncio
import contextlib
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

from postgres_rig import Load, Receiver, Scene, database, free_port, wait_until

SUBMISSIONS = int(os.environ.get("SUBMISSIONS", 3000))
ROUNDS = int(os.environ.get("ROUNDS", 2))
IS_LONG = SUBMISSIONS > 3000


def several_servers():
    """Submissions over three servers, of which one is killed and one is restarted, again and again."""
    with Scene() as scene:
        cluster = scene.cluster("primary")
        flags = ["--allow-net", "127.0.0.0/8", "--retry-schedule", "200ms,500ms,1s,2s,5s"]
        servers = scene.servers(3, database(cluster), *flags)
        receiver = Receiver()
        places = SUBMISSIONS // 20
        plain = servers[0].create_form()
        limited = servers[1].create_form({"max_responses": places})
        watched = servers[2].create_form(integrations=[{"type": "webhook", "url": receiver.url}])
        # Each tenth submission is to the full form in the end, and each tenth is delivered.
        forms = itertools.cycle([limited, watched] + [plain] * 8)
        load = Load([server.port for server in servers], servers[0].key())
        load.start(itertools.islice(forms, SUBMISSIONS))
        ends = 0
        while load.is_running():
            servers[0].stop(signal.SIGKILL)
            time.sleep(random.uniform(0, 0.5))
            servers[0].start()
            servers[1].stop(signal.SIGTERM)
            servers[1].start()
            ends += 1
        load.join()
        stored = load.check(servers[2])
        assert stored + len(load.refused) == SUBMISSIONS
        full = [form for form, _ in load.accepted.values()].count(limited)
        assert full == min(places, SUBMISSIONS // 10) and set(load.refused.values()) <= {limited}, full
        if not IS_LONG:
            # What a killed server had claimed is claimed again when its lease ends.
            cluster.query("UPDATE deliveries SET leased_until = 0 WHERE owner IS NOT NULL")
        waiting = "/api/v1/deliveries?status=pending,in_flight&limit=1"
        wait_until(lambda: not servers[2].call(waiting)["deliveries"], "everything is delivered", 900)
        sent = {id for form, id in load.accepted.values() if form == watched}
        received = list(receiver.events.values())
        assert not receiver.wrong, receiver.wrong[:5]
        assert sorted(received) == sorted(sent), f"{len(received)} events of {len(sent)} submissions were received"
        return (
            f"{stored} submissions stored once, {full} in a form for {places}, {len(sent)} delivered, {receiver.repeats} of "
            f"them again; {ends} servers killed and restarted, {load.retried} requests repeated"
        )


def failover():
    """The primary is killed under load, and its synchronous standby takes over; then it becomes the standby."""
    with Scene() as scene:
        primary = scene.cluster("one")
        standby = scene.cluster("two", primary)
        [server] = scene.servers(1, database(primary, standby))
        form = server.create_form()
        load = Load([server.port], server.key())
        load.start(itertools.repeat(form))
        waits = []
        for _ in range(ROUNDS):
            synchronize(primary)
            time.sleep(random.uniform(1, 2))
            primary.kill()
            time.sleep(random.uniform(0, 2))
            standby.promote()
            promoted = time.monotonic()
            wait_until(lambda: load.last_accepted > promoted or load.problems, "a submission is accepted after a failover")
            waits.append(load.last_accepted - promoted)
            primary, standby = standby, primary
            standby.copy(primary).start()
        load.stop()
        assert max(waits) < 5, f"seconds from a promotion to the first submission: {waits}"
        stored = load.check(server)
        return f"{ROUNDS} failovers: {stored} submissions stored once; accepted again within {max(waits):.2f} s"


def synchronize(primary):
    """Has `primary` wait for its standby at every commit from now on."""
    replicas = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
    wait_until(lambda: primary.query(replicas) == "1", "the standby is connected")
    primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.query("SELECT pg_reload_conf()")
    synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
    wait_until(lambda: primary.query(synchronous) == "1", "the standby is synchronous")


class Proxy:
    """A proxy in front of PostgreSQL. `judge` is asked at each COMMIT what becomes of it."""

    def __init__(self, port, judge):
        self.port, self.upstream, self.judge = free_port(), port, judge
        self.commits = self.spoiled = 0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", self.port))
        self.loop.run_forever()

    async def serve(self, client_reader, client):
        server_reader, server = await asyncio.open_connection("127.0.0.1", self.upstream)
        # For each answer that the server owes, whether the client gets it, another, or none and is disconnected.
        owed = []
        try:
            length = int.from_bytes(await client_reader.readexactly(4))
            server.write(length.to_bytes(4) + await client_reader.readexactly(length - 4))
            owed.append("forward")
            await asyncio.gather(self.requests(client_reader, server, owed), self.answers(server_reader, client, owed))
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        finally:
            server.close()
            client.close()

    async def requests(self, reader, server, owed):
        while True:
            kind, message = await read_message(reader)
            fate = "forward"
            if message[5:] == b"COMMIT\0":
                fate = self.judge()
                self.commits += 1
                self.spoiled += fate != "forward"
            if fate == "refuse":
                message = b"Q" + (13).to_bytes(4) + b"ROLLBACK\0"
            if kind in b"QS":
                owed.append(fate)
            server.write(message)
            if fate == "drop at once":
                await server.drain()
                raise EOFError

    async def answers(self, reader, client, owed):
        while True:
            kind, message = await read_message(reader)
            fate = owed[0]
            if kind == b"Z":
                owed.pop(0)
                if fate == "drop":
                    raise EOFError
                if fate == "refuse":
                    fields = b"SERROR\0VERROR\0C40001\0Mcould not serialize access\0\0"
                    message = b"E" + (4 + len(fields)).to_bytes(4) + fields + message
            elif fate != "forward":
                continue
            client.write(message)


async def read_message(reader):
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


def behind_proxy(judge, what):
    with Scene() as scene:
        cluster = scene.cluster("primary")
        proxy = Proxy(cluster.port, judge)
        [server] = scene.servers(1, database(proxy))
        form = server.create_form()
        load = Load([server.port], server.key())
        load.start(itertools.repeat(form, SUBMISSIONS))
        load.join()
        stored = load.check(server)
        assert stored == SUBMISSIONS and proxy.spoiled > proxy.commits // 20
        times = f"p50 {load.quantile(0.5):.0f} ms, p99 {load.quantile(0.99):.0f} ms, max {load.quantile(1 - 1e-9):.0f} ms"
        return f"{proxy.spoiled} of {proxy.commits} commits {what}: {stored} submissions stored once; {load.retried} requests repeated; {times}"


def lost_commits():
    """Connections are lost after a COMMIT was sent: before it is carried out or after."""
    fates = lambda: random.choices(["forward", "drop", "drop at once"], [80, 10, 10])[0]
    return behind_proxy(fates, "lost their connection")


def refused_commits():
    """30 % of transactions fail with 40001."""
    return behind_proxy(lambda: random.choices(["forward", "refuse"], [70, 30])[0], "failed with 40001")


def rolling_upgrade():
    """Servers behind nginx and HAProxy, with the examples of docs/postgres.md, restarted one after another: no request fails."""
    with Scene() as scene:
        servers = scene.servers(3, database(scene.cluster("primary")), "--trusted-proxy", "127.0.0.1")
        balancers = [Balancer(name, [server.port for server in servers], scene) for name in ["nginx", "haproxy"]]
        form, loads = servers[0].create_form(), []
        # They notice which servers are ready.
        time.sleep(3)
        for balancer in balancers:
            loads.append(Load([balancer.port], servers[0].key(), retries=False, clients=6))
            loads[-1].start(itertools.repeat(form))
        restarted = servers * (ROUNDS // 2)
        for server in restarted:
            # nginx is told, HAProxy asks.
            balancers[0].take_out(server.port)
            server.stop(signal.SIGTERM)
            server.start()
            balancers[0].take_out(None)
            time.sleep(2)
        for load in loads:
            load.stop()
        sent = [len(load.accepted) for load in loads]
        stored = servers[0].count(form)
        assert stored == sum(sent), f"{stored} of {sent} submissions are stored"
        return f"{len(restarted)} restarts, {sent[0]} submissions through nginx and {sent[1]} through HAProxy, no failed request"


class Balancer:
    """nginx or HAProxy, run with the example of docs/postgres.md for the servers at `ports`, without TLS."""

    def __init__(self, name, ports, scene):
        self.port, self.path = free_port(), f"{scene.folder}/{name}.conf"
        text = re.search(rf"```{name}\n(.*?)```", open("docs/postgres.md").read(), re.S)[1]
        for host, server in zip(("10.0.0.11", "10.0.0.12", "10.0.0.13"), ports):
            assert f"{host}:8787" in text
            text = text.replace(f"{host}:8787", f"127.0.0.1:{server}")
        text = re.sub(r"(listen |bind :)443 ssl.*?(;?)$", rf"\g<1>{self.port}\2", text, flags=re.M)
        self.text = re.sub(r"^ *ssl_.*\n", "", text, flags=re.M)
        if name == "nginx":
            kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            paths = "".join(f"{kind}_temp_path {scene.folder}/{kind};\n" for kind in kinds)
            head = f"daemon off;\npid {scene.folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
            self.text = f"{head}http {{\naccess_log off;\n{paths}{self.text}}}\n"
        self.write(self.text)
        command = {"nginx": ["nginx", "-p", scene.folder, "-c", self.path, "-e", "stderr"], "haproxy": ["haproxy", "-db", "-f", self.path]}
        log = open(f"{scene.folder}/{name}.log", "w")
        self.process = subprocess.Popen(command[name], stdout=log, stderr=log)
        scene.callback(self.process.wait)
        scene.callback(self.process.terminate)

    def write(self, text):
        with open(self.path, "w") as file:
            file.write(text)

    def take_out(self, port):
        """Sends no request to the server at `port` from now on, or to all if there is none."""
        self.write(re.sub(rf"(:{port}\b.*);", r"\1 down;", self.text))
        self.process.send_signal(signal.SIGHUP)
        time.sleep(1)


CASES = [several_servers, failover, lost_commits, refused_commits, rolling_upgrade]

if __name__ == "__main__":
    chosen = sys.argv[1:] or [case.__name__ for case in CASES]
    for case in CASES:
        if case.__name__ in chosen:
            begun = time.monotonic()
            result = case()
            print(f"{case.__name__}: {result} ({time.monotonic() - begun:.0f} s)", flush=True)
