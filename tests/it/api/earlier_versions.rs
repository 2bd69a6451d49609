//! Stores written by earlier versions open in this one and return the same data.
//!
//! `fixtures/store-1` was written by the first complete version: a published form with submissions from concurrent
//! clients, from which a question was removed later, and a form in the trash. `fixtures/store-2` is the last store of
//! format 1: two forms and one in the trash, edited and deleted submissions, idempotency keys, and an answer that is
//! stored in pieces; `shown.json` has the responses of the server that wrote it. `fixtures/store-3` is the
//! last store with an outbox: deliveries that are dead, delivered, canceled, tried again later, or were never tried; its
//! `shown.json` has the deliveries as that server listed them. Journals and indexes are stored without the zeros at their ends.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use forms::app::App;
use forms::cpu_pool::CpuPool;
use forms::domain::form::definition::Definition;
use forms::domain::validation::limits::Limits;
use forms::http::router;
use forms::server::{Local, open_local};
use forms::store::Store;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{IndexProvider, SledIndexes};
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};

use crate::delivery::notifications::RecordingMailer;
use crate::engine::real_files;
use crate::harness::prelude::*;
use crate::store::SeededRandom;

/// A store in `fixtures`.
struct Fixture {
    name: &'static str,
    /// Original size of the index file in bytes.
    index: u64,
}

const STORE_1: Fixture = Fixture { name: "store-1", index: (512 << 10) - 1 };
const STORE_2: Fixture = Fixture { name: "store-2", index: 44_481 };

const STORE_3: Fixture = Fixture { name: "store-3", index: 0 };

/// The submission of `store-3` that is in the trash.
const TRASHED: &str = "sub_01m854a2pk9zfkddkp6gdvvjqy";

/// Original size of the journal segments in bytes.
const SEGMENT: u64 = 256 << 10;

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "tests/it/fixtures", self.name, name].iter().collect()
    }

    /// Copies the store without its index to `data`.
    fn restore(&self, data: &Path) {
        let journal = data.join("journal");
        fs::create_dir_all(&journal).unwrap();
        let segment = journal.join("00000001.log");
        fs::copy(self.path("00000001.log"), &segment).unwrap();
        lengthen(&segment, SEGMENT);
        for name in ["state", "operator-key"] {
            fs::copy(self.path(name), data.join(name)).unwrap();
        }
    }

    fn expected(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }

    /// Copies the index to `data`, and adjusts `state` so that the index is trusted there.
    fn restore_index(&self, data: &Path) {
        fs::create_dir(data.join("index")).unwrap();
        for file in fs::read_dir(self.path("index")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), data.join("index").join(file.file_name())).unwrap();
        }
        lengthen(&data.join("index/db"), self.index);
        let identity = SledIndexes::new(data, 4 << 20).unwrap().identity("index").unwrap();
        let state = fs::read_to_string(data.join("state")).unwrap();
        let (until, _) = state.rsplit_once("checksum ").unwrap();
        let (until, _) = until.rsplit_once(' ').unwrap();
        let state = format!("{until} {}\n", identity.text);
        let checksum = crc32c::crc32c(state.as_bytes());
        fs::write(data.join("state"), format!("{state}checksum {checksum:08x}\n")).unwrap();
    }
}

fn lengthen(file: &Path, length: u64) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

fn call(local: &Local, request: axum::http::request::Builder, body: Body) -> Call {
    let key = local.key.as_ref().unwrap().reveal().to_owned();
    Call::new(local.api.clone(), request.body(body).unwrap()).key(&key)
}

fn get(local: &Local, path: &str) -> Call {
    call(local, Request::get(path), Body::empty())
}

#[tokio::test]
async fn stores_of_format_1_return_the_same_data_with_and_without_their_index() {
    for (fixture, with_index) in [(STORE_1, false), (STORE_1, true), (STORE_2, false), (STORE_2, true)] {
        let folder = tempfile::tempdir().unwrap();
        fixture.restore(folder.path());
        if with_index {
            assert_no_rebuild(&fixture, folder.path());
        }
        assert_same_data(&fixture, folder.path()).await;
    }
}

#[tokio::test]
async fn submissions_of_the_first_version_can_be_changed_and_removed_questions_are_known() {
    let folder = tempfile::tempdir().unwrap();
    STORE_1.restore(folder.path());
    let local = open_local(folder.path()).await.unwrap();
    let shown = STORE_1.expected("shown.json");
    let (path, list) =
        shown.as_object().unwrap().iter().find(|(path, _)| path.ends_with("/submissions")).unwrap();
    change_submissions(&local, path, list["submissions"].as_array().unwrap()).await;
    let trashed = get(&local, "/api/v1/forms?trashed=true").send().await.expect(200);
    assert_eq!(trashed["forms"][0]["title"], "Gone");
    // The removed question comes back only with its type.
    let form = path.trim_end_matches("/submissions");
    for (kind, status) in [("url", 422), ("email", 200)] {
        let questions = json!({"questions": [{"id": "mail", "type": kind, "title": "Your address?"}]});
        let patch = Request::patch(form).header("content-type", "application/json");
        call(&local, patch, Body::from(questions.to_string())).send().await.expect(status);
    }
    local.close().await.unwrap();
}

#[tokio::test]
async fn a_request_to_a_store_of_format_1_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    STORE_2.restore(data);
    assert_no_rebuild(&STORE_2, data);
    let replay = STORE_2.expected("replay.json");
    let text = |name: &str| replay[name].as_str().unwrap();
    let (store, clock, random) = open_at(data, text("at"));
    let sender = Arc::new(RecordingSender::default());
    let deliveries = delivery_service(&store, &clock, &random, &sender, data);
    let limits = Limits::default();
    let app = Arc::new(App::new(store.clone(), CpuPool::default(), clock, random, limits, deliveries));
    let api = router(app, HttpSettings::default());
    let request = Request::post(text("path")).header("content-type", "application/json");
    let request = request.header("idempotency-key", text("key")).body(Body::from(text("body").to_owned()));
    let key = fs::read_to_string(data.join("operator-key")).unwrap();
    let response = Call::new(api, request.unwrap()).key(key.trim()).send().await;
    assert_eq!(response.expect(201), replay["answer"]);
    assert!(response.is_replay());
    store.close().await.unwrap();
}

/// Opens a store at this time.
fn open_at(data: &Path, time: &str) -> (Arc<dyn Store>, Arc<ManualClock>, Arc<SeededRandom>) {
    let (options, random) = (EngineOptions::default(), Arc::new(SeededRandom::new(1)));
    let store = SledStore::open(data, options, CpuPool::default(), random.clone(), Arc::new(|_| ()));
    (Arc::new(store.unwrap()), Arc::new(ManualClock::at(time)), random)
}

async fn deliveries(local: &Local) -> Vec<Value> {
    let list = get(local, "/api/v1/deliveries?limit=100").send().await.expect(200);
    list["deliveries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn deliveries_of_the_last_store_with_an_outbox_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    STORE_3.restore(data);
    // The key of the vault that the harness has.
    fs::write(data.join("master-key"), "07".repeat(32)).unwrap();
    let local = open_local(data).await.unwrap();
    let shown = STORE_3.expected("shown.json")["deliveries"].as_array().unwrap().clone();
    let now = deliveries(&local).await;
    let pending = |one: &&Value| one["status"] == "pending";
    let of = |name: &'static str| move |one: &&Value| one["integration"]["name"] == name;
    for old in &shown {
        let mut new = now.iter().find(|new| new["id"] == old["id"]).unwrap().clone();
        // The address, of which a mail to several had none.
        new.as_object_mut().unwrap().remove("to");
        if of("mail")(&old) && pending(&old) && old["attempts"] == 1 {
            // The first address has its mail, and the second waits as both did.
            assert_eq!(new["status"], "delivered");
            let is_other =
                |one: &&Value| one["submission_id"] == old["submission_id"] && one["id"] != old["id"];
            let other = now.iter().filter(of("mail")).find(is_other).unwrap();
            for field in ["status", "attempts", "next_attempt_at", "last_error"] {
                assert_eq!(other[field], old[field], "{field}");
            }
        } else {
            assert_eq!(new, *old);
        }
        let attempts = get(&local, &format!("/api/v1/deliveries/{}/attempts", old["id"].as_str().unwrap()));
        let attempts = attempts.send().await.expect(200)["attempts"].as_array().unwrap().len();
        assert_eq!(json!(attempts), old["attempts"]);
    }
    let mails = shown.iter().filter(of("mail")).filter(pending).count();
    assert_eq!(now.len(), shown.len() + mails);
    local.close().await.unwrap();

    let (store, clock, random) = open_at(data, "2026-11-23T22:00:00Z");
    let (sender, mailer) = (Arc::new(RecordingSender::default()), Arc::new(RecordingMailer::default()));
    let service = Arc::into_inner(delivery_service(&store, &clock, &random, &sender, data)).unwrap();
    Arc::new(service.with_mailer(mailer.clone())).run_due().await;
    store.close().await.unwrap();
    drop(store);
    let live = |one: &&Value| one["submission_id"] != TRASHED;
    assert_eq!(sender.take().len(), shown.iter().filter(of("crm")).filter(pending).filter(live).count());
    let mut sent: Vec<_> = mailer.take().into_iter().map(|mail| mail.to).collect();
    sent.sort_unstable();
    assert_eq!(sent, [vec!["a@example.com"; 6], vec!["b@example.com"; 8]].concat());

    let local = open_local(data).await.unwrap();
    let ended = deliveries(&local).await;
    assert_eq!(ended.len(), now.len());
    for (old, new) in now.iter().zip(&ended) {
        assert_eq!(old["id"], new["id"]);
        match (pending(&old), live(&old)) {
            (true, true) => assert_eq!(new["status"], "delivered"),
            (true, false) => assert_eq!(new["status"], "paused"),
            (false, _) => assert_eq!(new, old),
        }
    }
    local.close().await.unwrap();
    let form = shown[0]["form_id"].as_str().unwrap();
    let rows = fs::read_to_string(data.join("exports").join(form).join("orders.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 11);
}

/// Copies the index of a fixture to its store, opens and closes it, and fails if the index was rebuilt.
fn assert_no_rebuild(fixture: &Fixture, data: &Path) {
    fixture.restore_index(data);
    let (engine, event_log) = real_files::open(data);
    engine.close().unwrap();
    // The copies have loose permissions, which are repaired; nothing is rebuilt.
    let events = event_log.events();
    assert!(
        events
            .iter()
            .all(|event| matches!(event, EngineEvent::PermissionsRepaired { .. } | EngineEvent::Verified)),
        "{events:?}"
    );
    let state = fs::read_to_string(data.join("state")).unwrap();
    assert!(state.starts_with("format 4\n"), "the format was not raised: {state}");
}

/// Compares every response with the recorded one.
async fn assert_same_data(fixture: &Fixture, data: &Path) {
    let local = open_local(data).await.unwrap();
    assert_keys_are_listed(&local).await;
    for (path, response) in fixture.expected("shown.json").as_object().unwrap() {
        assert_eq!(get(&local, path).send().await.expect(200), *response, "{path}");
    }
    local.close().await.unwrap();
}

/// Fails unless the operator key, which earlier versions did not list, is listed.
async fn assert_keys_are_listed(local: &Local) {
    let keys = get(local, "/api/v1/keys").send().await.expect(200);
    let (keys, own) = (keys["keys"].as_array().unwrap(), local.key.as_ref().unwrap().id().to_string());
    assert_eq!((keys.len(), &keys[0]["id"]), (1, &json!(own)));
    assert_eq!(keys[0]["scopes"], json!(["admin", "operator"]));
}

/// Edits every third submission, and deletes and restores every third.
async fn change_submissions(local: &Local, path: &str, rows: &[Value]) {
    let send = |method: &str, one: String, body: &str| {
        let request = Request::builder().method(method).uri(one).header("content-type", "application/json");
        call(local, request, Body::from(body.to_owned())).send()
    };
    let mut expected = rows.to_vec();
    for (place, row) in expected.iter_mut().enumerate() {
        let one = format!("{path}/{}", row["id"].as_str().unwrap());
        match place % 3 {
            0 => *row = send("PATCH", one, r#"{"metadata":{"seen":"yes"}}"#).await.expect(200),
            1 => {
                assert_eq!(send("DELETE", one.clone(), "").await.status, 204);
                assert_eq!(send("POST", format!("{one}/restore"), "").await.expect(200), *row);
            }
            _ => {}
        }
    }
    assert!(expected.len() > 3, "too few submissions for each case");
    let list = get(local, path).send().await.expect(200);
    assert_eq!(list["submissions"].as_array().unwrap(), &expected);
}

#[tokio::test]
async fn a_stored_form_that_exceeds_current_limits_still_works() {
    let long = |id: &str, more: &str| json!({"id": id, "type": "long_text", "title": "T", "max_length": 60_000, "pattern": format!("{}[ab]*{more}", "(?:[ab]{2000})?".repeat(4))});
    let matches: Vec<_> = (0..60).map(|number| json!({"tale": {"matches": format!("{number}z$")}})).collect();
    let includes: Vec<_> =
        (0..2_000).map(|number| json!({"tale": {"includes": format!("no {number}")}})).collect();
    let form = json!({"title": "Old", "questions": [
        long("one", ""), long("other", "c"), long("third", "d"),
        {"id": "tale", "type": "long_text", "title": "T"},
        {"id": "why", "type": "rating", "title": "W", "show_if": {"any": matches}},
        {"id": "how", "type": "rating", "title": "H", "show_if": {"any": includes}},
    ]});
    let form = forms::domain::json::parse(&form.to_string()).unwrap();
    let refused = Definition::read(&form, &Limits::default()).unwrap_err();
    let codes: Vec<_> = refused.iter().map(|found| found.code.known().unwrap().name()).collect();
    for code in ["invalid_range", "invalid_pattern", "too_many"] {
        assert!(codes.contains(&code), "{codes:?}");
    }
    let server = Server::start().await;
    let form = server.stored_form(Definition::read(&form, &Limits::UNLIMITED).unwrap()).await;
    let server = server.reopened().await;
    let path = format!("/api/v1/forms/{form}");
    let change = json!({"title": "Still", "status": "published"});
    let shown = server.patch(&path, change).send().await.expect(200);
    assert_eq!(shown["questions"].as_array().unwrap().len(), 6);
    assert_eq!(server.read("/api/v1/forms").await["forms"][0]["title"], "Still");
    let versions = server.read(format!("{path}/versions")).await;
    assert_eq!(versions["versions"][0]["questions"], shown["questions"]);
    let tale = |end: &str| format!("{} {end}", "tale".repeat(3_000));
    server.submit(&form, json!({"one": "ab".repeat(1_000), "tale": tale("59z"), "why": 5})).await;
    server.submit(&form, json!({"tale": tale("no 1999"), "how": 5})).await;
    for (answers, code) in [
        (json!({"other": "ab".repeat(1_000)}), "pattern_mismatch"),
        (json!({"tale": tale("z59"), "why": 5}), "question_not_visible"),
    ] {
        let refused = server.post(format!("{path}/submissions"), json!({"answers": answers})).send().await;
        assert_eq!(refused.expect(422)["errors"][0]["code"], code);
    }
}
