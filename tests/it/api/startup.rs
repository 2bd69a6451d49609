//! Startup: the operator key file, responses before the store is open, the listen address.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use forms::config::Config;
use forms::http::starting;
use forms::secret::KeyText;
use forms::server::{Local, ServerError, open_local, open_local_with, run, write_operator_key};
use forms::store::{Keys, Maintenance, StoreHealth};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower::ServiceExt;

use super::logs::LogCapture;
use crate::harness::prelude::*;
use crate::store::{SeededRandom, open_store};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The status of `whoami` with this key.
async fn whoami_status(local: &Local, key: &KeyText) -> StatusCode {
    let request = Request::get("/api/v1/whoami").header("authorization", format!("Bearer {}", key.reveal()));
    let response = local.api.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    response.status()
}

fn key_file(folder: &Path) -> std::path::PathBuf {
    folder.join("operator-key")
}

#[tokio::test]
async fn the_first_start_creates_a_private_key_file_and_later_starts_use_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new");
    let local = open_local(&data).await.unwrap();
    let key = local.key.clone().unwrap();
    assert_eq!(whoami_status(&local, &key).await, 200);
    local.close().await.unwrap();
    assert_eq!(fs::read_to_string(key_file(&data)).unwrap().trim(), key.reveal());
    assert_eq!(fs::metadata(key_file(&data)).unwrap().permissions().mode() & 0o777, 0o600);
    let again = open_local(&data).await.unwrap();
    assert_eq!(again.key, Some(key.clone()));
    assert_eq!(whoami_status(&again, &key).await, 200);
}

#[tokio::test]
async fn the_key_is_not_written_through_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let (data, target) = (folder.path().join("store"), folder.path().join("target"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(data.join("journal")).unwrap();
    symlink(&target, data.join("operator-key.new")).unwrap();
    assert!(matches!(open_local(&data).await, Err(ServerError::KeyFile { .. })));
    assert!(!target.exists());
}

#[tokio::test]
async fn an_empty_store_takes_the_key_of_its_file_and_replaces_a_damaged_one() {
    let written = KeyText::draw(&SeededRandom::new(5));
    for (content, is_valid) in
        [(format!("{}\n", written.reveal()).into_bytes(), true), (vec![0xff; 50], false)]
    {
        let folder = tempfile::tempdir().unwrap();
        fs::write(key_file(folder.path()), content).unwrap();
        let local = open_local(folder.path()).await.unwrap();
        let key = local.key.clone().unwrap();
        assert_eq!((whoami_status(&local, &key).await.as_u16(), key == written), (200, is_valid));
        assert_eq!(fs::read_to_string(key_file(folder.path())).unwrap().trim(), key.reveal());
    }
}

#[tokio::test]
async fn a_key_file_that_does_not_belong_to_the_store_is_neither_used_nor_replaced() {
    let folder = tempfile::tempdir().unwrap();
    open_local(folder.path()).await.unwrap().close().await.unwrap();
    let file = key_file(folder.path());
    let intact = fs::read(&file).unwrap();
    let flipped = |place: usize, bit: u8| {
        let mut bytes = intact.clone();
        bytes[place] ^= 1 << bit;
        bytes
    };
    let other = KeyText::draw(&SeededRandom::new(6)).reveal().as_bytes().to_vec();
    let damaged = "missing or damaged";
    for (content, logged) in [
        (Some(other), "the operator key here is not valid"),
        (Some(flipped(0, 0)), damaged),
        (Some(flipped(8, 7)), damaged),
        (Some(flipped(30, 2)), damaged),
        (Some(flipped(intact.len() - 1, 6)), damaged),
        (Some(Vec::new()), damaged),
        (Some(b"x".to_vec()), damaged),
        (None, damaged),
    ] {
        match &content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let (log, _guard) = LogCapture::start();
        let local = open_local(folder.path()).await.unwrap();
        assert_eq!((&local.key, fs::read(&file).ok()), (&None, content));
        assert!(log.text().contains(logged), "{}", log.text());
        local.close().await.unwrap();
    }
}

/// Sends a request through the router for commands, with this key, if any.
async fn send(local: &Local, method: &str, path: &str, key: Option<&str>, body: Value) -> TestResponse {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let (parts, body) = local.router().oneshot(request.body(body).unwrap()).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    TestResponse { status: parts.status, headers: parts.headers, body }
}

#[tokio::test]
async fn commands_on_a_store_without_its_key_file_need_no_key() {
    let folder = tempfile::tempdir().unwrap();
    open_local(folder.path()).await.unwrap().close().await.unwrap();
    fs::remove_file(key_file(folder.path())).unwrap();
    let local = open_local(folder.path()).await.unwrap();
    let whoami = send(&local, "GET", "/api/v1/whoami", None, Value::Null).await.expect(200);
    assert_eq!(whoami["key"]["scopes"], json!(["admin", "operator"]));
    assert_eq!(whoami["workspace"]["name"], "default");
    // A wrong key is still refused, and so is a request that does not come from a command.
    let wrong = KeyText::draw(&SeededRandom::new(7));
    let refused = send(&local, "GET", "/api/v1/whoami", Some(wrong.reveal()), Value::Null).await;
    assert_eq!(refused.status, 401);
    let request = Request::get("/api/v1/whoami").body(Body::empty()).unwrap();
    assert_eq!(local.api.clone().oneshot(request).await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_lost_master_key_is_not_replaced_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_local(folder.path()).await.unwrap();
    let key = local.key.clone().unwrap();
    let form = json!({"title": "F", "integrations": [{"name": "hook", "type": "webhook", "url": "https://example.com/"}]});
    send(&local, "POST", "/api/v1/forms", Some(key.reveal()), form).await.expect(201);
    local.close().await.unwrap();
    let file = folder.path().join("master-key");
    fs::remove_file(&file).unwrap();
    let Err(error) = open_local(folder.path()).await else { panic!("the store opened") };
    assert!(matches!(&error, ServerError::MasterKeyMissing(path) if *path == file), "{error}");
    assert!(!file.exists());
    let mut config = Config::new(folder.path());
    config.delivery.new_master_key = true;
    open_local_with(&config).await.unwrap().close().await.unwrap();
    assert!(file.exists());
    open_local(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_store_without_a_valid_key_opens_without_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let inode = || fs::metadata(folder.path().join("index/db")).unwrap().ino();
    let local = open_local(folder.path()).await.unwrap();
    let key = local.key.clone().unwrap();
    let second = json!({"name": "second", "scopes": ["admin"]});
    send(&local, "POST", "/api/v1/keys", Some(key.reveal()), second).await.expect(201);
    let path = format!("/api/v1/keys/{}", key.id());
    assert_eq!(send(&local, "DELETE", &path, Some(key.reveal()), Value::Null).await.status, 204);
    assert_eq!(whoami_status(&local, &key).await, 401);
    local.close().await.unwrap();
    let before = inode();
    let (log, _guard) = LogCapture::start();
    let local = open_local(folder.path()).await.unwrap();
    assert_eq!((local.key.as_ref(), inode()), (None, before));
    assert!(log.text().contains("it may have been revoked or rotated"), "{}", log.text());
    let keys = send(&local, "GET", "/api/v1/keys", None, Value::Null).await.expect(200);
    assert_eq!((keys["keys"].as_array().unwrap().len(), &keys["keys"][0]["name"]), (1, &json!("second")));
}

#[tokio::test]
async fn an_operator_key_that_has_expired_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let local = open_local(folder.path()).await.unwrap();
    let body = json!({"name": "brief", "scopes": ["admin"], "expires_at": "2999-01-01T00:00:00Z"});
    let key = local.key.clone().unwrap();
    let made = send(&local, "POST", "/api/v1/keys", Some(key.reveal()), body).await.expect(201);
    let brief: KeyText = made["key"].as_str().unwrap().parse().unwrap();
    let path = format!("/api/v1/keys/{}/rotate", brief.id());
    let grace = json!({"grace": "1ms"});
    assert_eq!(send(&local, "POST", &path, Some(key.reveal()), grace).await.status, 200);
    while whoami_status(&local, &brief).await == 200 {
        tokio::task::yield_now().await;
    }
    local.close().await.unwrap();
    write_operator_key(folder.path(), &brief).unwrap();
    assert_eq!(open_local(folder.path()).await.unwrap().key, None);
}

#[tokio::test]
async fn a_server_that_rebuilds_its_index_is_alive_and_reports_progress() {
    let health = Arc::new(|| StoreHealth::Rebuilding { done: 3, total: 9 });
    let router = starting(HttpSettings::default(), health);
    let get = |path: &str| Call::new(router.clone(), Request::get(path).body(Body::empty()).unwrap()).send();
    get("/healthz").await.expect(200);
    let progress = json!({"status": "rebuilding", "bytes_done": 3, "bytes_total": 9});
    assert_eq!(get("/readyz").await.expect(503), progress);
    let refused = get("/api/v1/forms").await;
    refused.expect_problem(503, "store_unavailable");
    assert!(refused.header("retry-after").is_some());
    let put = Request::put("/healthz").body(Body::empty()).unwrap();
    assert_eq!(Call::new(router.clone(), put).send().await.code(), "method_not_allowed");
}

/// A running server: its key and address once it is ready, the channel that stops it, and its task.
struct Running {
    ready: oneshot::Receiver<(String, std::net::SocketAddr)>,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), ServerError>>,
}

fn begin(config: Config) -> Running {
    let (report, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(async move {
        let stopped = async {
            stopped.await.ok();
        };
        run(config, stopped, std::future::pending, |serving| {
            let key = serving.key.unwrap().reveal().to_owned();
            assert_eq!(serving.local_url, format!("http://{}", serving.address));
            report.send((key, serving.address)).unwrap();
        })
        .await
    });
    Running { ready, stop, ended }
}

fn config(folder: &Path) -> Config {
    Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::new(folder) }
}

#[tokio::test]
async fn a_server_reports_when_it_is_ready_and_stores_what_it_has_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let running = begin(config(folder.path()));
    let (key, address) = timeout(TIMEOUT, running.ready).await.unwrap().unwrap();
    let wire = ListeningServer::at(address);
    assert_eq!(wire.call("GET", "/readyz", &key, None).await.expect(200), json!({"status": "ready"}));
    let form = json!({"title": "Visit", "questions": []});
    wire.call("POST", "/api/v1/forms", &key, Some(form)).await.expect(201);
    running.stop.send(()).unwrap();
    timeout(TIMEOUT, running.ended).await.unwrap().unwrap().unwrap();
    let store = open_store(folder.path());
    let workspace = store.list_workspaces().await.unwrap()[0].id;
    let keys = store.list_keys(workspace).await.unwrap();
    let last_use = keys[0].1.expect("the last use of the key was not stored");
    assert_eq!((keys.len(), last_use.millis() % 60_000), (1, 0));
    store.close().await.unwrap();
    let local = open_local(folder.path()).await.unwrap();
    let list = send(&local, "GET", "/api/v1/forms", Some(&key), Value::Null).await.expect(200);
    assert_eq!(list["forms"][0]["title"], "Visit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_store_is_being_opened_responds_503() {
    let folder = tempfile::tempdir().unwrap();
    let holder = open_store(folder.path());
    // A free port, because the server reports its address only once it is ready.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let running = begin(Config { listen: free, ..config(folder.path()) });
    let request = b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let waiting = async {
        loop {
            match exchange(free, request).await {
                Ok(text) => break text,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    assert!(timeout(TIMEOUT, waiting).await.unwrap().starts_with("HTTP/1.1 503"));
    holder.close().await.unwrap();
    let (key, _) = timeout(TIMEOUT, running.ready).await.unwrap().unwrap();
    ListeningServer::at(free).call("GET", "/api/v1/whoami", &key, None).await.expect(200);
    running.stop.send(()).unwrap();
    timeout(TIMEOUT, running.ended).await.unwrap().unwrap().unwrap();
}
