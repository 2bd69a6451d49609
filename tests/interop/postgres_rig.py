"""PostgreSQL clusters, servers over them, and clients that submit: what the tests of several servers share.

Run as a program, it starts a cluster, prints the URL of its database, and stops it at the end of the input.
"""

import base64
import contextlib
import glob
import http.client
import http.server
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
# PostgreSQL refuses to run as root.
AS_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(is_done, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


class Cluster:
    """A cluster of PostgreSQL on a port of its own."""

    def __init__(self, folder, port=None):
        os.makedirs(folder, exist_ok=True)
        self.data, self.port = os.path.join(folder, "data"), port or free_port()
        self.log = open(os.path.join(folder, "log"), "a")
        self.process = None
        if AS_USER:
            # PostgreSQL's user needs a way to the folder, which `mktemp` makes private.
            shutil.chown(folder, "postgres", "postgres")
            os.chmod(os.path.dirname(folder), 0o711)

    def run(self, program, *arguments):
        command = [*AS_USER, os.path.join(PROGRAMS, program), *arguments]
        subprocess.run(command, check=True, stdout=self.log, stderr=self.log, cwd="/")

    def create(self):
        self.run("initdb", "-D", self.data, "-U", "forms", "-A", "trust", "-E", "UTF8", "--no-sync")
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as rules:
            rules.write("host replication forms 127.0.0.1/32 trust\n")
        return self

    def copy(self, primary):
        """Makes it a standby of `primary`, from a copy of its files."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-D", self.data, "-R", "-c", "fast", "-d", f"{primary.url()} application_name=standby")
        return self

    def start(self):
        settings = ["listen_addresses=127.0.0.1", "max_connections=200", "unix_socket_directories="]
        options = itertools.chain.from_iterable(("-c", setting) for setting in settings)
        command = [os.path.join(PROGRAMS, "postgres"), "-D", self.data, "-p", str(self.port), *options]
        self.process = subprocess.Popen([*AS_USER, *command], stdout=self.log, stderr=self.log, cwd="/")
        wait_until(self.answers, "PostgreSQL starts")
        return self

    def answers(self):
        assert self.process.poll() is None, f"PostgreSQL has ended; see {self.log.name}"
        return subprocess.run([os.path.join(PROGRAMS, "pg_isready"), "-qh", "127.0.0.1", "-p", str(self.port)]).returncode == 0

    def kill(self):
        """Kills the cluster and all its processes, as if its machine had lost power."""
        children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
        for process in [self.process.pid, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()

    def promote(self):
        self.run("pg_ctl", "promote", "-w", "-D", self.data)

    def url(self, database="postgres"):
        return f"host=127.0.0.1 port={self.port} user=forms dbname={database}"

    def query(self, sql, database="postgres"):
        psql = [os.path.join(PROGRAMS, "psql"), "-XAtqd", self.url(database), "-c", sql]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()


class Server:
    """A server over the database at `url`, on a port of its own."""

    def __init__(self, url, folder, *flags):
        self.port, self.process, self.folder = free_port(), None, folder
        self.flags = ["--store", url, "--listen", f"127.0.0.1:{self.port}", *flags]
        self.flags += ["--master-key-file", f"{folder}/master-key", "--operator-key-file", f"{folder}/operator-key"]
        if not os.path.exists(f"{folder}/master-key"):
            with open(f"{folder}/master-key", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(base64.b64encode(os.urandom(32)).decode())

    def start(self):
        log = open(f"{self.folder}/server-{self.port}.log", "a")
        environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
        command = [os.environ.get("FORMS", "target/debug/forms"), "serve", *self.flags]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_until(self.is_ready, f"{command} is ready")
        return self

    def is_ready(self):
        assert self.process.poll() is None, f"the server has ended; see {self.folder}/server-{self.port}.log"
        try:
            return self.get("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path, method="GET", body=None, content_type="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": content_type}
        if path.startswith("/api/"):
            headers["Authorization"] = f"Bearer {self.key()}"
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, text

    def call(self, path, method="GET", body=None):
        status, text = self.get(path, method, body)
        assert status in (200, 201), (method, path, status, text)
        return json.loads(text)

    def key(self):
        with open(f"{self.folder}/operator-key") as file:
            return file.read().strip()

    def create_form(self, settings=None, integrations=()):
        question = {"id": "n", "type": "number", "title": "Number?", "required": True}
        form = self.call("/api/v1/forms", "POST", {"title": "Load", "questions": [question], "settings": settings or {}})["id"]
        for integration in integrations:
            self.call(f"/api/v1/forms/{form}/integrations", "POST", integration)
        self.call(f"/api/v1/forms/{form}", "PATCH", {"status": "published"})
        return form

    def submissions(self, form):
        """All submissions of a form: the number that each answers, by its id."""
        found, cursor = {}, ""
        while cursor is not None:
            page = self.call(f"/api/v1/forms/{form}/submissions?limit=1000{cursor and '&cursor=' + urllib.parse.quote(cursor)}")
            for submission in page["submissions"]:
                assert submission["id"] not in found, f"{submission['id']} is listed twice"
                found[submission["id"]] = submission["answers"]["n"]
            cursor = page["next_cursor"]
        return found

    def count(self, form):
        return self.call(f"/api/v1/forms/{form}")["response_count"]

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()


class Load:
    """Clients that submit numbers to forms. Each number is sent until it is answered, always with the same idempotency key."""

    def __init__(self, ports, key, retries=True, clients=12):
        self.ports, self.key, self.retries, self.clients = ports, key, retries, clients
        self.accepted, self.refused, self.problems = {}, {}, []
        self.latencies, self.retried, self.last_accepted = [], 0, 0.0
        self.is_stopped = threading.Event()

    def start(self, work):
        """Begins to submit: `work` has a form for each number, in order."""
        work, lock = iter(enumerate(work)), threading.Lock()

        def take():
            with lock:
                return None if self.is_stopped.is_set() else next(work, None)

        self.threads = [threading.Thread(target=self.run, args=(take,)) for _ in range(self.clients)]
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.problems, self.problems[:5]

    def stop(self):
        self.is_stopped.set()
        self.join()

    def is_running(self):
        return any(thread.is_alive() for thread in self.threads)

    def run(self, take):
        connections = {}
        while (item := take()) is not None and not self.problems:
            try:
                self.submit(connections, *item)
            except Exception as error:
                self.problems.append(f"number {item[0]}: {error!r}")

    def submit(self, connections, number, form):
        begun = time.monotonic()
        while True:
            port = random.choice(self.ports)
            try:
                status, answer = self.post(connections, port, number, form)
                if status != 503:
                    break
                assert self.retries, f"{status} {answer}"
            except (OSError, http.client.HTTPException):
                connections.pop(port).close()
                if not self.retries:
                    raise
            assert time.monotonic() < begun + 120, "no answer within 120 s"
            self.retried += 1
            time.sleep(0.05)
        if status == 409 and answer["code"] == "form_full":
            self.refused[number] = form
            return
        assert status == 201, f"{status} {answer}"
        self.accepted[number] = (form, answer["id"])
        self.last_accepted = time.monotonic()
        self.latencies.append(self.last_accepted - begun)

    def post(self, connections, port, number, form):
        if port not in connections:
            connections[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        # Without retries, a connection that is closed while it is idle must not be used again.
        headers |= {"Idempotency-Key": f"number-{number}"} if self.retries else {"Connection": "close"}
        body = json.dumps({"answers": {"n": number}})
        connections[port].request("POST", f"/api/v1/forms/{form}/submissions", body, headers)
        response = connections[port].getresponse()
        text = response.read()
        if response.getheader("Connection") == "close":
            connections.pop(port).close()
        assert response.getheader("Content-Type", "").endswith("json"), f"{response.status} {text}"
        return response.status, json.loads(text)

    def check(self, server):
        """Fails unless what was accepted is stored, each once, and nothing else. Returns the number of submissions."""
        for form in {form for form, _ in self.accepted.values()}:
            accepted = {id: number for number, (of, id) in self.accepted.items() if of == form}
            stored = server.submissions(form)
            lost = accepted.keys() - stored.keys()
            assert not lost, f"{len(lost)} accepted submissions of {form} are lost: {sorted(lost)[:5]}"
            more = stored.keys() - accepted.keys()
            assert not more, f"{len(more)} submissions of {form} were stored and not answered, or twice: {sorted(more)[:5]}"
            assert stored == accepted, "a submission has the answers of another"
            assert server.count(form) == len(stored), f"{form} counts {server.count(form)} of {len(stored)} submissions"
        return len(self.accepted)

    def quantile(self, part):
        return sorted(self.latencies)[int(len(self.latencies) * part)] * 1000


class Receiver:
    """A receiver of webhooks, which refuses some of them at first."""

    def __init__(self):
        self.events, self.repeats, self.wrong = {}, 0, []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.receive(self.headers["webhook-id"], json.loads(body)))
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.listener.daemon_threads = True
        # Servers are killed while they send.
        self.listener.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.listener.server_port}/hook"
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def receive(self, event, body):
        submission = body["data"]["submission"]["id"]
        if event in self.events:
            self.repeats += 1
            if self.events[event] != submission:
                self.wrong.append(f"{event} was of {self.events[event]}, and is of {submission}")
        elif random.random() < 0.03:
            return 503
        self.events[event] = submission
        return 200


class Scene(contextlib.ExitStack):
    """The folder, clusters and servers of a test, which end with it."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="forms-postgres-")
        self.callback(shutil.rmtree, self.folder, ignore_errors=True)
        return self

    def cluster(self, name, primary=None):
        cluster = Cluster(os.path.join(self.folder, name))
        self.callback(cluster.stop)
        (cluster.copy(primary) if primary else cluster.create()).start()
        return cluster

    def servers(self, count, url, *flags):
        servers = [Server(url, self.folder, *flags) for _ in range(count)]
        for server in servers:
            self.callback(server.stop, signal.SIGKILL)
            server.start()
        return servers


def database(*clusters):
    hosts = ",".join(f"127.0.0.1:{cluster.port}" for cluster in clusters)
    return f"postgres://forms@{hosts}/postgres"


if __name__ == "__main__":
    with Scene() as scene:
        print(database(scene.cluster("primary")), flush=True)
        sys.stdin.read()
