//! A PostgreSQL cluster of the tests: started when one needs it, stopped and removed when the tests end.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::tokio_postgres::{self, NoTls};

/// Runs the database until the standard input of the shell ends, which it does with the process of the tests.
const GUARD: &str = r#"
"$@" </dev/null >"$LOG" 2>&1 &
cat >/dev/null
kill -QUIT $!
wait
rm -rf "$FOLDER"
"#;

pub(crate) struct Cluster {
    port: u16,
    _guard: Child,
}

/// The cluster that tests share, each with a schema of its own. `None`, with a message, if PostgreSQL is not installed and
/// `FORMS_REQUIRE_POSTGRES` is not set.
pub(crate) fn cluster() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED
        .get_or_init(|| {
            let programs = programs();
            if programs.is_none() {
                assert!(
                    std::env::var_os("FORMS_REQUIRE_POSTGRES").is_none(),
                    "PostgreSQL is not installed; tests/run installs it"
                );
                let message = b"skipped: PostgreSQL is not installed; tests/run installs it\n";
                io::stderr().write_all(message).unwrap();
            }
            programs.map(|programs| Cluster::start(&programs))
        })
        .as_ref()
}

/// The folder with the programs of PostgreSQL: Debian has them outside the search path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<_> = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    found.pop()
}

impl Cluster {
    fn start(programs: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("forms-postgres-").tempdir().unwrap().keep();
        let data = folder.join("data");
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            // PostgreSQL refuses to run as root.
            let owned = Command::new("chown").args(["postgres", folder.to_str().unwrap()]).status();
            assert!(owned.unwrap().success(), "there is no user `postgres`");
        }
        let as_user = |program: &str| {
            let path = programs.join(program).to_str().unwrap().to_owned();
            match is_root {
                true => ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", &path]
                    .map(str::to_owned)
                    .to_vec(),
                false => vec![path],
            }
        };
        let mut initdb = as_user("initdb");
        let options = ["-D", data.to_str().unwrap(), "-U", "forms", "-A", "trust", "-E", "UTF8", "--no-sync"];
        initdb.extend(options.map(str::to_owned));
        let made = Command::new(&initdb[0]).args(&initdb[1..]).current_dir(&folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // This user needs a password.
        let rules = data.join("pg_hba.conf");
        let others = fs::read_to_string(&rules).unwrap();
        fs::write(&rules, format!("host all locked 127.0.0.1/32 scram-sha-256\n{others}")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = as_user("postgres");
        server.extend(["-D", data.to_str().unwrap(), "-p", &port.to_string(), "-k", ""].map(str::to_owned));
        for setting in ["fsync=off", "max_connections=500", "listen_addresses=127.0.0.1"] {
            server.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).args(&server).current_dir(&folder).stdin(Stdio::piped());
        guard.env("LOG", folder.join("log")).env("FOLDER", &folder);
        let cluster = Self { port, _guard: guard.spawn().unwrap() };
        for _ in 0..600 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return cluster;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}", fs::read_to_string(folder.join("log")).unwrap_or_default());
    }

    /// The URL of a new, empty schema. `FORMS_TEST_ISOLATION` sets the default isolation of its transactions.
    pub(crate) async fn new_schema(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let url = format!("postgres://forms@127.0.0.1:{}/postgres", self.port);
        let client = connect(&url).await;
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
        let isolation = std::env::var("FORMS_TEST_ISOLATION").unwrap_or("read committed".to_owned());
        let isolation = isolation.replace(' ', "\\ ");
        let options = format!("-c search_path={name} -c default_transaction_isolation={isolation}");
        let options: String = form_urlencoded::byte_serialize(options.as_bytes()).collect();
        format!("{url}?options={}", options.replace('+', "%20"))
    }
}

/// Connects to the database at `url`, past the store.
pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let mut tries = 0;
    let (client, connection) = loop {
        match tokio_postgres::connect(url, NoTls).await {
            Ok(connected) => break connected,
            // It is still starting.
            Err(error) => assert!(tries < 200, "{error:?}"),
        }
        tries += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    tokio::spawn(connection);
    client
}
