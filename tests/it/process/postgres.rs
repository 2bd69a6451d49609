//! The executable on a database: its keys, a database that is away or refuses, and several servers.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use deadpool_postgres::tokio_postgres::Client;
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::common::server::Server;
use crate::harness::postgres::{cluster, connect};
use crate::harness::prelude::*;

const MASTER_KEY: &str = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";

/// A folder for the files of servers, and a database.
struct Site {
    folder: TempDir,
    url: String,
}

impl Site {
    /// `None` if PostgreSQL is not installed.
    async fn new() -> Option<Self> {
        let url = cluster()?.new_schema().await;
        Some(Self { folder: tempfile::tempdir().unwrap(), url })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forms"));
        command.args(arguments).env_clear().env("FORMS_STORE", &self.url);
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
            command.env(name, self.folder.path());
        }
        command
    }

    /// A server with the keys that it needs.
    fn serve(&self) -> Command {
        self.serve_at("127.0.0.1:0")
    }

    fn serve_at(&self, listen: &str) -> Command {
        let mut command = self.command(&["serve", "--listen", listen, "--operator-key-file"]);
        command.arg(self.folder.path().join("operator.key")).env("FORMS_MASTER_KEY", MASTER_KEY);
        command.stderr(File::options().create(true).append(true).open(self.log_path()).unwrap());
        command
    }

    fn log_path(&self) -> std::path::PathBuf {
        self.folder.path().join("log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap()
    }

    fn key(&self) -> String {
        fs::read_to_string(self.folder.path().join("operator.key")).unwrap().trim().to_owned()
    }

    /// The end of a server that does not start, whose output never has the password.
    fn refusal(&self, mut command: Command) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = command.stderr(Stdio::piped()).output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        assert!(!text.contains("pass-word"), "{text}");
        (status.code(), text)
    }

    async fn database(&self) -> Client {
        connect(&self.url).await
    }
}

fn start(mut command: Command) -> (Server, ListeningServer) {
    let server = Server::start(&mut command).unwrap();
    let wire = ListeningServer::at(server.endpoint().address);
    (server, wire)
}

async fn publish_form(wire: &ListeningServer, key: &str) -> String {
    let form = json!({"title": "Visit", "questions": [{"title": "Name", "type": "short_text"}]});
    let form = wire.call("POST", "/api/v1/forms", key, Some(form)).await.expect(201);
    let path = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
    wire.call("PATCH", &path, key, Some(json!({"status": "published"}))).await.expect(200);
    path
}

#[tokio::test]
async fn a_server_stores_in_a_database() {
    let Some(site) = Site::new().await else { return };
    let (server, wire) = start(site.serve());
    let mode = fs::metadata(site.folder.path().join("operator.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(wire.call("GET", "/readyz", "", None).await.expect(200), json!({"status": "ready"}));
    let form = publish_form(&wire, &site.key()).await;
    let submissions = format!("{form}/submissions");
    let sent = json!({"answers": {"q1": "Ada"}});
    wire.call("POST", &submissions, &site.key(), Some(sent)).await.expect(201);
    // Commands of the same user find the server and its key, although it has no data directory.
    let list = site.command(&["responses", "list", form.rsplit('/').next().unwrap(), "-o", "json"]).output();
    let list = list.unwrap();
    assert!(list.status.success(), "{list:?}");
    assert!(String::from_utf8(list.stdout).unwrap().contains("Ada"));
    let csv = json!({"name": "file", "type": "csv_file", "path": "visits.csv"});
    let refused =
        wire.call("POST", &format!("{form}/integrations"), &site.key(), Some(csv)).await.expect(422);
    assert_eq!(refused["errors"][0]["code"], "address_not_allowed");
    for (method, path, status) in
        [("POST", "store/compact", 202), ("POST", "store/verify", 202), ("GET", "store/backup", 404)]
    {
        wire.call(method, &format!("/api/v1/{path}"), &site.key(), None).await.expect(status);
    }
    assert_eq!(server.kill().unwrap().code(), None);
    // Later servers need no operator key.
    let mut again = site.command(&["serve", "--listen", "127.0.0.1:0"]);
    let (_server, wire) = start({
        again.env("FORMS_MASTER_KEY", MASTER_KEY).stderr(Stdio::null());
        again
    });
    assert_eq!(
        wire.call("GET", &submissions, &site.key(), None).await.expect(200)["submissions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_refused_at_once() {
    let Some(site) = Site::new().await else { return };
    let database = site.database().await;
    let serve_at = |url: &str| {
        let mut command = site.serve();
        command.env("FORMS_STORE", url);
        command
    };
    let refusal = |url: &str| site.refusal(serve_at(url));
    let expect = |(code, text): (Option<i32>, String), expected: i32, part: &str| {
        assert!(code == Some(expected) && text.contains(part), "{code:?} {text}");
    };
    database.batch_execute("CREATE ROLE locked LOGIN PASSWORD 'right'").await.unwrap();
    let as_user = |password: &str| site.url.replace("forms@", &format!("locked:{password}@"));
    expect(refusal("postgres://forms:pass-word@host:port/db"), 2, "invalid");
    expect(refusal(&as_user("pass-word")), 70, "password authentication failed");
    expect(refusal(&site.url.replace("/postgres?", "/missing?")), 70, "\"missing\" does not exist");
    expect(refusal(&as_user("right")), 70, "the database refuses");
    for (variable, part) in
        [("FORMS_MASTER_KEY", "openssl rand -base64 32"), ("", "invalid FORMS_MASTER_KEY")]
    {
        let mut command = site.serve();
        match variable {
            "" => command.env("FORMS_MASTER_KEY", "short"),
            variable => command.env_remove(variable),
        };
        expect(site.refusal(command), 2, part);
    }
    let mut without_file = site.command(&["serve", "--listen", "127.0.0.1:0"]);
    without_file.env("FORMS_MASTER_KEY", MASTER_KEY);
    expect(site.refusal(without_file), 2, "--operator-key-file");
    let mut both = site.serve();
    both.args(["--data", "store", "--store", &site.url]);
    expect(site.refusal(both), 2, "--data and --store");
    database.batch_execute("UPDATE settings SET value = '99' WHERE name = 'schema'").await.unwrap();
    expect(refusal(&site.url), 70, "version 99");
    let verified = site.command(&["store", "verify"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(70), "{verified:?}");
}

/// Passes connections on to the database, until it is dropped.
struct Proxy(JoinHandle<()>);

impl Proxy {
    async fn start(at: SocketAddr, database: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        Self(tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                connections.spawn(async move {
                    let mut far = TcpStream::connect(database).await.unwrap();
                    tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
                });
            }
        }))
    }

    async fn stop(self) {
        self.0.abort();
        self.0.await.unwrap_err();
    }
}

async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Asks whether the server is ready, until the answer has this status.
async fn wait_for(address: SocketAddr, status: &str) -> TestResponse {
    loop {
        if TcpStream::connect(address).await.is_ok() {
            let answer = ListeningServer::at(address).call("GET", "/readyz", "", None).await;
            if answer.json()["status"] == status {
                return answer;
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_waited_for() {
    let Some(mut site) = Site::new().await else { return };
    let database = site.url.split(['@', '/']).find(|part| part.starts_with("127.0.0.1")).unwrap().to_owned();
    let (proxied, listen) = (free_address().await, free_address().await);
    site.url = site.url.replace(&database, &proxied.to_string());
    let mut command = site.serve_at(&listen.to_string());
    command.stdout(Stdio::null());
    let _server = Killed(command.spawn().unwrap());
    let wire = ListeningServer::at(listen);
    wait_for(listen, "away").await.expect(503);
    wire.call("GET", "/healthz", "", None).await.expect(200);
    let refused = wire.call("GET", "/api/v1/forms", "", None).await;
    refused.expect_problem(503, "store_unavailable");
    assert!(refused.header("retry-after").is_some());
    let database = database.parse().unwrap();
    let proxy = Proxy::start(proxied, database).await;
    wait_for(listen, "ready").await.expect(200);
    wire.call("GET", "/api/v1/whoami", &site.key(), None).await.expect(200);
    proxy.stop().await;
    wait_for(listen, "away").await.expect(503);
    wire.call("GET", "/api/v1/whoami", &site.key(), None).await.expect_problem(503, "store_unavailable");
    let _proxy = Proxy::start(proxied, database).await;
    wait_for(listen, "ready").await.expect(200);
    wire.call("GET", "/api/v1/whoami", &site.key(), None).await.expect(200);
    let log = site.log();
    for line in ["the database does not answer", "the database answers again"] {
        assert_eq!(log.matches(line).count(), 1, "{line}: {log}");
    }
}

#[tokio::test]
async fn servers_of_one_database_agree_at_once() {
    let Some(site) = Site::new().await else { return };
    // Both find an empty database, and the file of the operator key missing.
    let mut starting = [site.serve(), site.serve()];
    let servers = std::thread::scope(|scope| {
        starting
            .each_mut()
            .map(|command| scope.spawn(|| Server::start(command).unwrap()))
            .map(|one| one.join().unwrap())
    });
    let wires = servers.each_ref().map(|server| ListeningServer::at(server.endpoint().address));
    let operator = site.key();
    for wire in &wires {
        wire.call("GET", "/api/v1/whoami", &operator, None).await.expect(200);
    }
    let key = json!({"name": "second", "scopes": ["admin"]});
    let key = wires[0].call("POST", "/api/v1/keys", &operator, Some(key)).await.expect(201);
    let text = key["key"].as_str().unwrap();
    wires[1].call("GET", "/api/v1/whoami", text, None).await.expect(200);
    let path = format!("/api/v1/keys/{}", key["id"].as_str().unwrap());
    assert_eq!(wires[0].call("DELETE", &path, &operator, None).await.status, 204);
    assert_eq!(wires[1].call("GET", "/api/v1/whoami", text, None).await.status, 401);
    let database = site.database().await;
    let leases =
        database.query_one("SELECT count(*) FROM leases WHERE name = 'maintenance'", &[]).await.unwrap();
    assert_eq!(leases.get::<_, i64>(0), 1);
    let verified = site.command(&["store", "verify"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    // Damage of every kind that is looked for.
    publish_form(&wires[0], &operator).await;
    let damage = "UPDATE counters SET responses = 7 WHERE shard = 0; UPDATE form_versions SET data = '{' WHERE number = 1;
         INSERT INTO deliveries (workspace, event, target, form, integration, class, at, wait_ms, data)
         SELECT workspace, '\\x00', '\\x00', id, '\\x00', 1, 0, 0, '{}' FROM forms";
    database.batch_execute(damage).await.unwrap();
    let verified = site.command(&["store", "verify"]).output().unwrap();
    let found = String::from_utf8(verified.stdout).unwrap();
    assert_eq!(verified.status.code(), Some(1), "{found}");
    for table in ["counters", "form_versions", "deliveries"] {
        assert!(found.contains(table), "{found}");
    }
}

#[tokio::test]
async fn a_server_that_is_stopped_is_not_ready_before_it_refuses_connections() {
    let Some(site) = Site::new().await else { return };
    let (server, wire) = start(site.serve());
    let address = server.endpoint().address;
    server.signal(Signal::TERM).unwrap();
    wait_for(address, "stopped").await.expect(503);
    wire.call("GET", "/api/v1/whoami", &site.key(), None).await.expect(200);
    let ended = tokio::task::spawn_blocking(move || server.wait().unwrap()).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    let leases = site.database().await.query("SELECT owner FROM leases", &[]).await.unwrap();
    assert!(leases.is_empty(), "the server has kept its lease");
}
