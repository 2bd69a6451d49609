//! Deliveries when the server is killed or stopped, and what its log has of them.
//!
//! The long form: `FORMS_KILLS=200 cargo test --release --test it process::deliveries`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forms::clock::{Clock, SystemClock, Timestamp};
use forms::cpu_pool::CpuPool;
use forms::delivery::mail::{Mailer, SmtpMailer, SmtpSettings};
use forms::delivery::{DeliveryService, DeliverySettings, HttpSender, SendLimits, SystemLookup};
use forms::domain::delivery::DeliveryStatus;
use forms::domain::integration::google_sheets::GoogleEndpoints;
use forms::id::FormId;
use forms::secret::{Secret, SystemRandomness};
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{Deliveries, DeliveryFilter, Maintenance};
use forms::vault::Vault;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::common::fill::{Form, expect};
use super::common::server::{Server, forms_serve, operator_key};
use super::common::wire::{Connection, request};
use super::kill::{draw, rounds};
use super::recorder::Recorder;
use super::{start, with_data};
use crate::delivery::allowing;
use crate::delivery::google::{Fault, Google, SPREADSHEET, key_file};
use crate::delivery::mail_server::{Action, Encryption, MailServer};
use crate::delivery::receiver::{Receiver, Reply};
use crate::harness::ManualClock;

/// The sender of mail.
const SENDER: &str = "forms@example.com";

/// Waits of the server between attempts in milliseconds: as many as there may be.
const SCHEDULE: [i64; 20] = [50; 20];

fn serve(data: &Path) -> Command {
    let mut command = forms_serve(data).unwrap();
    command.args([
        "--allow-net",
        "127.0.0.0/8",
        "--retry-schedule",
        &SCHEDULE.map(|wait| format!("{wait}ms")).join(","),
    ]);
    command
}

async fn send(form: &Form, method: &str, path: &str, body: &Value, status: u16) -> Value {
    let mut connection = Connection::open(form.endpoint).await.unwrap();
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = request(method, path, &form.key, &text);
    let answer = expect(&mut connection, &request, status).await.unwrap();
    serde_json::from_slice(answer).unwrap()
}

async fn integrate(form: &Form, integration: Value) -> Value {
    send(form, "POST", &format!("{}/integrations", form.path()), &integration, 201).await
}

/// Starts receivers that fail in every way now and then, until `is_calm`.
async fn troubled_receivers(is_calm: &Arc<AtomicBool>) -> Vec<(&'static str, Receiver)> {
    let late = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    let trouble = [
        ("failing", Reply::Status(500)),
        ("stalling", Reply::silence()),
        ("dripping", Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())),
        ("limiting", Reply::text(late)),
        ("cutting", Reply::Cut),
    ];
    let mut receivers = Vec::new();
    for (name, reply) in trouble {
        let (is_calm, count) = (Arc::clone(is_calm), AtomicUsize::new(0));
        let receiver = Receiver::start(move |_| {
            let is_due = count.fetch_add(1, Ordering::Relaxed) % 3 == 2;
            if is_due && !is_calm.load(Ordering::Relaxed) { reply.clone() } else { Reply::Status(204) }
        });
        receivers.push((name, receiver.await));
    }
    receivers
}

/// A chat, a spreadsheet and a mail server that fail now and then.
struct Services {
    chat: Receiver,
    google: Google,
    mail: MailServer,
}

impl Services {
    async fn start(is_calm: &Arc<AtomicBool>) -> Self {
        let trouble = |one_in: usize| {
            let (is_calm, count) = (Arc::clone(is_calm), AtomicUsize::new(0));
            move || {
                !is_calm.load(Ordering::Relaxed)
                    && count.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
            }
        };
        let (chat, sheet, mail) = (trouble(3), trouble(5), trouble(9));
        let count = AtomicUsize::new(0);
        Self {
            chat: Receiver::start(move |_| if chat() { Reply::Cut } else { Reply::Status(200) }).await,
            // A request that is never answered is in progress when the server is killed.
            google: Google::start(move |line| {
                let is_withheld = line.ends_with(":append") && count.fetch_add(1, Ordering::Relaxed) % 2 == 1;
                sheet().then_some(if is_withheld { Fault::WithholdAnswer } else { Fault::LoseAnswer })
            })
            .await,
            mail: MailServer::start(Encryption::None, move |line| match line {
                _ if !mail() => Action::Usual,
                "." => Action::Close,
                _ => Action::Line("451 try again later"),
            })
            .await,
        }
    }

    /// Adds an integration of each service to the form. The chat, which takes a message a second, gets one in five.
    async fn integrate(&self, form: &Form) {
        let url = format!("http://{}/services/secret", self.chat.address);
        let account = key_file();
        for integration in [
            json!({"type": "csv_file", "path": "all.csv"}),
            json!({"type": "slack", "url": url, "when": {"q3": 5}}),
            json!({"type": "google_sheets", "spreadsheet_id": SPREADSHEET, "service_account": account}),
            json!({"type": "email", "to": ["team@example.com"]}),
        ] {
            integrate(form, integration).await;
        }
    }

    fn mailer(&self) -> Arc<dyn Mailer> {
        let url = format!("smtp+plain://{}", self.mail.address).parse().unwrap();
        let from = SENDER.parse().unwrap();
        Arc::new(SmtpMailer::new(SmtpSettings { url, credentials: None, from }))
    }

    /// Fails unless every submission is one row, and arrived in the chat if it should, and by mail.
    fn assert_received(&self, recorder: &Recorder) {
        let rows = self.google.rows();
        let rows: Vec<_> = rows.iter().skip(1).map(|row| row[0].as_str().unwrap()).collect();
        let distinct: HashSet<_> = rows.iter().copied().collect();
        assert_eq!(
            (rows.len(), distinct.len()),
            (recorder.count(), recorder.count()),
            "a row twice, or missing"
        );
        assert!(recorder.ids().all(|id| distinct.contains(id)), "a row is missing");
        let mails = self.mail.log.lock().unwrap().messages.concat();
        assert!(recorder.ids().all(|id| mails.contains(id)), "a mail is missing");
        let requests = self.chat.requests();
        let messages: String =
            requests.iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
        let expected = recorder.numbers().filter(|(_, number)| number % 5 == 4);
        assert!(expected.map(|(id, _)| id).all(|id| messages.contains(id)), "a message is missing");
    }
}

/// A stopped server's store, opened in this process.
struct Stopped {
    store: SledStore,
    filter: DeliveryFilter,
    workspace: forms::id::WorkspaceId,
}

impl Stopped {
    async fn open(data: &Path, form: &Form) -> Self {
        let random = Arc::new(SystemRandomness);
        let options = EngineOptions { verify_index: false, ..EngineOptions::default() };
        let store = SledStore::open(data, options, CpuPool::default(), random, Arc::new(|_| ())).unwrap();
        let store = store.with_retry_schedule(Some(SCHEDULE.to_vec()));
        let form: FormId = form.id.parse().unwrap();
        let workspace = forms::store::Keys::list_workspaces(&store).await.unwrap()[0].id;
        Self { store, filter: DeliveryFilter { form: Some(form), ..DeliveryFilter::default() }, workspace }
    }

    /// The number of deliveries of each status.
    async fn counts(&self) -> HashMap<DeliveryStatus, usize> {
        let (mut counts, mut after) = (HashMap::new(), None);
        loop {
            let page = self.store.list_deliveries(self.workspace, &self.filter, after, 1_000).await.unwrap();
            page.rows.iter().for_each(|(_, delivery)| *counts.entry(delivery.status).or_default() += 1);
            after = page.next;
            if after.is_none() {
                return counts;
            }
        }
    }

    /// Delivers what waits, on a clock that is set forward instead of waiting, with Google's services at `google`.
    async fn deliver_all(&self, data: &Path, google: GoogleEndpoints, mailer: Arc<dyn Mailer>) {
        let now = SystemClock.now().millis();
        let clock = Arc::new(ManualClock::at(&Timestamp::from_millis(now + 120_000).to_string()));
        let policy = allowing(&["127.0.0.0/8"]);
        let lookup = Arc::new(SystemLookup);
        let limits = SendLimits::default();
        let sender = Arc::new(HttpSender::with_lookup(policy.clone(), clock.clone(), lookup, limits));
        let settings = DeliverySettings {
            policy,
            retry_schedule: Some(SCHEDULE.to_vec()),
            exports: data.join("exports"),
            google,
        };
        let (store, random) = (Arc::new(self.store.clone()), Arc::new(SystemRandomness));
        let vault = Vault::new(&master_key(data));
        let service = DeliveryService::new(store, vault, sender, clock.clone(), random, settings);
        let service = Arc::new(service.with_mailer(mailer));
        for _ in 0..500 {
            // A chat gets one message at a time.
            for _ in 0..50 {
                service.clone().run_due().await;
                clock.advance(60_000);
            }
            let counts = self.counts().await;
            let is_done = |status: &DeliveryStatus| {
                matches!(status, DeliveryStatus::Delivered | DeliveryStatus::Skipped)
            };
            if counts.keys().all(is_done) {
                return;
            }
            assert!(!counts.contains_key(&DeliveryStatus::Dead), "{counts:?}");
        }
        panic!("not all is delivered: {:?}", self.counts().await);
    }
}

fn master_key(data: &Path) -> Secret<[u8; 32]> {
    let text = fs::read_to_string(data.join("master-key")).unwrap();
    Secret::new(STANDARD.decode(text.trim()).unwrap().try_into().unwrap())
}

#[test]
fn every_submission_is_delivered_to_every_integration_whenever_the_server_is_killed() {
    with_data(async |data| {
        let server = Server::start(&mut serve(data)).unwrap();
        let mut recorder = Recorder::new(&server, data).await;
        let form = recorder.form(&server);
        let is_calm = Arc::new(AtomicBool::new(false));
        let receivers = troubled_receivers(&is_calm).await;
        for (name, receiver) in &receivers {
            integrate(&form, json!({"type": "webhook", "name": name, "url": receiver.url()})).await;
        }
        let services = Services::start(&is_calm).await;
        services.integrate(&form).await;
        server.kill().unwrap();
        let start = || {
            let smtp = format!("smtp+plain://{}", services.mail.address);
            let mail = ["--smtp-url", &smtp, "--mail-from", SENDER];
            Server::start(serve(data).args(mail).args(["--google-url", &services.google.url()])).unwrap()
        };
        for round in 0..rounds() {
            let enough = draw(round, 0, 60) as usize;
            recorder.store_until(start(), enough, |server| server.kill().unwrap()).await;
        }
        let server = start();
        recorder.verify(&server).await;
        server.kill().unwrap();
        is_calm.store(true, Ordering::Relaxed);
        let stopped = Stopped::open(data, &form).await;
        stopped.deliver_all(data, services.google.endpoints(), services.mailer()).await;
        stopped.store.close().await.unwrap();
        services.assert_received(&recorder);
        for (name, receiver) in &receivers {
            assert_received(name, receiver, &recorder);
        }
        assert_rows(&data.join("exports").join(&form.id), &recorder);
    });
}

/// Fails unless the receiver has every submission, and all requests with the same id have the same bytes.
fn assert_received(name: &str, receiver: &Receiver, recorder: &Recorder) {
    let mut bodies = HashMap::new();
    for request in receiver.requests() {
        let id = request.header("webhook-id").unwrap().replace("evt_", "sub_");
        let first = bodies.entry(id.clone()).or_insert_with(|| request.body.clone());
        assert_eq!(*first, request.body, "{name}: {id} was sent with different bytes");
    }
    let missing: Vec<_> = recorder.ids().filter(|id| !bodies.contains_key(*id)).collect();
    assert!(missing.is_empty(), "{name} never received {missing:?}");
    assert_eq!(bodies.len(), recorder.count(), "{name} received what is not stored");
}

/// Fails unless the CSV file has every submission once.
fn assert_rows(folder: &Path, recorder: &Recorder) {
    let text = fs::read_to_string(folder.join("all.csv")).unwrap();
    let mut lines = text.split_terminator("\r\n");
    assert_eq!(lines.next(), Some("id,submitted_at,q1,q2,q3"));
    let rows: Vec<_> = lines.map(|line| line.split(',').collect::<Vec<_>>()).collect();
    assert!(rows.iter().all(|row| row.len() == 5), "a broken row");
    let ids: HashSet<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!((ids.len(), rows.len()), (recorder.count(), recorder.count()), "a row twice, or missing");
    assert!(recorder.ids().all(|id| ids.contains(id)), "a row is missing");
    let files = fs::read_dir(folder).unwrap();
    assert_eq!(files.count(), 1, "another file was begun");
}

#[test]
fn sigterm_under_load_loses_nothing_and_leaves_no_delivery_in_flight() {
    with_data(async |data| {
        let server = Server::start(&mut serve(data)).unwrap();
        let mut recorder = Recorder::new(&server, data).await;
        let form = recorder.form(&server);
        let healthy = Receiver::start(|_| Reply::Status(204)).await;
        let stalling = Receiver::start(|_| Reply::silence()).await;
        for (name, receiver) in [("healthy", &healthy), ("stalling", &stalling)] {
            integrate(&form, json!({"type": "webhook", "name": name, "url": receiver.url()})).await;
        }
        integrate(&form, json!({"type": "csv_file", "path": "all.csv"})).await;
        let begun = std::cell::Cell::new(Instant::now());
        let signalled = recorder.store_until(server, 100, |server| {
            server.signal(Signal::TERM).unwrap();
            begun.set(Instant::now());
            server
        });
        let server = signalled.await;
        let waiting = tokio::task::spawn_blocking(move || server.wait());
        assert_eq!(waiting.await.unwrap().unwrap().code(), Some(0));
        assert!(begun.get().elapsed() < Duration::from_secs(28), "{:?}", begun.get().elapsed());
        let stopped = Stopped::open(data, &form).await;
        let counts = stopped.counts().await;
        assert!(!counts.contains_key(&DeliveryStatus::InFlight), "{counts:?}");
        stopped.store.close().await.unwrap();
        drop(stopped);
        recorder.verify(&start(data)).await;
    });
}

#[test]
fn no_secret_or_answer_is_logged_and_no_secret_is_stored_as_it_is() {
    let secrets = ["BEARERCANARY7", "HEADERCANARY7", "whsec_U0lHTklOR0NBTkFSWTcwMTIzNDU2Nzg5YWJj"];
    let others = ["PATHCANARY7", "ANSWERCANARY7", "RESPONSECANARY7"];
    with_data(async |data| {
        let mut command = forms_serve(data).unwrap();
        command.args(["--allow-net", "127.0.0.1", "--retry-schedule", "10ms,10ms"]).env("FORMS_LOG", "trace");
        let server = Server::start(&mut command).unwrap();
        let form = Recorder::new(&server, data).await.form(&server);
        let body = "HTTP/1.1 500 Error\r\ncontent-length: 15\r\nx-y: RESPONSECANARY7\r\n\r\nRESPONSECANARY7";
        let receiver = Receiver::start(|_| Reply::text(body)).await;
        let url = format!("{}/PATHCANARY7?key=PATHCANARY7", receiver.url());
        let headers = json!({"x-key": {"value": "HEADERCANARY7"}});
        let webhook = json!({
            "type": "webhook", "url": url, "bearer_token": "BEARERCANARY7", "secret": secrets[2], "headers": headers,
        });
        let shown = integrate(&form, webhook).await.to_string();
        let answers = json!({"answers": {"q1": "ANSWERCANARY7"}});
        send(&form, "POST", &format!("{}/submissions", form.path()), &answers, 201).await;
        let received = receiver.wait_for(3).await;
        assert_eq!(received[0].header("authorization"), Some("Bearer BEARERCANARY7"));
        assert_eq!(received[0].header("x-key"), Some("HEADERCANARY7"));
        assert_eq!(server.stop().unwrap().code(), Some(0));
        let log = fs::read_to_string(data.with_extension("log")).unwrap();
        assert!(log.contains("a delivery is dead") && log.contains(r#""message":"attempt""#), "{log}");
        for canary in secrets.iter().chain(&others) {
            assert!(!log.contains(canary), "{canary} is in the log: {log}");
        }
        let stored = contents(data);
        for secret in secrets {
            assert!(!shown.contains(secret), "{secret} is in {shown}");
            let found = stored.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
            assert!(!found, "{secret} is in the data directory");
        }
        assert!(!log.contains(operator_key(data).unwrap().as_str()));
    });
}

/// All bytes in a folder.
fn contents(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        bytes.extend(if path.is_dir() { contents(&path) } else { fs::read(&path).unwrap() });
    }
    bytes
}
