//! Stores that earlier versions wrote open in this one, and show what they showed.
//!
//! `fixtures/store-1` was written by the first whole version: a form that was published, answered by several clients at
//! once, then robbed of a question, and a form in the trash. `fixtures/store-2` is the last store of format 1: two forms and
//! one in the trash, submissions that were edited or deleted, idempotency keys, and an answer that is stored in pieces.
//! `shown.json` says what the server that wrote it answered. The journals and indexes lack the zeros at their ends.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use forms::app::App;
use forms::config::HttpLimits;
use forms::cpu_pool::CpuPool;
use forms::domain::form::definition::Definition;
use forms::domain::validation::limits::Limits;
use forms::http::router;
use forms::server::{Local, open_local};
use forms::store::Maintenance;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{IndexProvider, SledIndexes};
use forms::store::sled::engine::options::{EngineEvent, EngineOptions};
use serde_json::{Value, json};

use crate::engine::real;
use crate::harness::{Call, HandClock, Server};
use crate::store::Scrambled;

/// A store that is kept.
struct Fixture {
    name: &'static str,
    /// Bytes of the index's file, as it was.
    index: u64,
}

const STORE_1: Fixture = Fixture { name: "store-1", index: (512 << 10) - 1 };
const STORE_2: Fixture = Fixture { name: "store-2", index: 44_481 };

/// Bytes of the journals' segments, as they were.
const SEGMENT: u64 = 256 << 10;

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "tests/it/fixtures", self.name, name].iter().collect()
    }

    /// Puts the store without its index into `data`.
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

    /// Puts the index beside it, to be believed as if it had been closed in this place.
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
async fn a_store_of_the_first_version_shows_what_it_showed() {
    let folder = tempfile::tempdir().unwrap();
    STORE_1.restore(folder.path());
    shows_what_it_showed(folder.path()).await;
}

#[tokio::test]
async fn the_index_of_the_first_version_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    STORE_1.restore(folder.path());
    opens_without_a_rebuild(&STORE_1, folder.path());
    shows_what_it_showed(folder.path()).await;
}

#[tokio::test]
async fn the_last_store_of_format_1_shows_what_it_showed() {
    let folder = tempfile::tempdir().unwrap();
    STORE_2.restore(folder.path());
    shows_all_it_showed(folder.path()).await;
}

#[tokio::test]
async fn the_last_index_of_format_1_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    STORE_2.restore(folder.path());
    opens_without_a_rebuild(&STORE_2, folder.path());
    shows_all_it_showed(folder.path()).await;
}

/// Puts the index of a fixture into its store, which is then opened and closed.
fn opens_without_a_rebuild(fixture: &Fixture, data: &Path) {
    fixture.restore_index(data);
    let (engine, heard) = real::open(data);
    engine.close().unwrap();
    // Copies are open to others; but nothing is built anew.
    let told = heard.events();
    assert!(
        told.iter()
            .all(|event| matches!(event, EngineEvent::PermissionsRepaired { .. } | EngineEvent::Verified)),
        "{told:?}"
    );
    let state = fs::read_to_string(data.join("state")).unwrap();
    assert!(state.starts_with("format 2\n"), "from now on earlier versions refuse it: {state}");
}

/// Compares all that the fixture's server showed when it was kept, and repeats a request.
async fn shows_all_it_showed(data: &Path) {
    let local = open_local(data).await.unwrap();
    let shown = STORE_2.expected("shown.json");
    for (path, answer) in shown.as_object().unwrap() {
        assert_eq!(get(&local, path).send().await.expect(200), *answer, "{path}");
    }
    local.close().await.unwrap();
    let replay = STORE_2.expected("replay.json");
    let text = |name: &str| replay[name].as_str().unwrap();
    let random = Arc::new(Scrambled::new(1));
    let store =
        SledStore::open(data, EngineOptions::default(), CpuPool::default(), random.clone(), Arc::new(|_| ()));
    let store = store.unwrap();
    let clock = Arc::new(HandClock::at(text("at")));
    let app =
        Arc::new(App::new(Arc::new(store.clone()), CpuPool::default(), clock, random, Limits::default()));
    let api = router(app, HttpLimits::default());
    let request = Request::post(text("path")).header("content-type", "application/json");
    let request = request.header("idempotency-key", text("key")).body(Body::from(text("body").to_owned()));
    let key = fs::read_to_string(data.join("operator-key")).unwrap();
    let answer = Call::new(api, request.unwrap()).key(key.trim()).send().await;
    assert_eq!(answer.expect(201), replay["answer"]);
    assert_eq!(answer.header("idempotency-replayed"), Some("true"));
    store.close().await.unwrap();
}

async fn shows_what_it_showed(data: &Path) {
    let local = open_local(data).await.unwrap();
    let form = STORE_1.expected("form.json");
    let path = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
    assert_eq!(get(&local, &path).send().await.expect(200), form);
    let submissions = STORE_1.expected("submissions.json");
    assert_eq!(get(&local, &format!("{path}/submissions")).send().await.expect(200), submissions);
    for submission in submissions["submissions"].as_array().unwrap() {
        let one = format!("{path}/submissions/{}", submission["id"].as_str().unwrap());
        assert_eq!(get(&local, &one).send().await.expect(200), *submission);
    }
    let rows = submissions["submissions"].as_array().unwrap();
    change_every_third(&local, &path, rows).await;
    let trashed = get(&local, "/api/v1/forms?trashed=true").send().await.expect(200);
    assert_eq!(trashed["forms"][0]["title"], "Gone");
    // The question that went keeps its id.
    let questions = json!({"questions": [{"id": "mail", "type": "email", "title": "Your address?"}]});
    let patch = Request::patch(&path).header("content-type", "application/json");
    let refused = call(&local, patch, Body::from(questions.to_string())).send().await;
    assert_eq!(refused.expect(422)["errors"][0]["code"], "retired_question_id");
    local.close().await.unwrap();
}

/// Of all submissions, newest first, edits one, deletes and restores one and leaves one alone, in turn.
async fn change_every_third(local: &Local, path: &str, rows: &[Value]) {
    let send = |method: &str, one: String, body: &str| {
        let request = Request::builder().method(method).uri(one).header("content-type", "application/json");
        call(local, request, Body::from(body.to_owned())).send()
    };
    let mut expected = rows.to_vec();
    for (place, row) in expected.iter_mut().enumerate() {
        let one = format!("{path}/submissions/{}", row["id"].as_str().unwrap());
        match place % 3 {
            0 => *row = send("PATCH", one, r#"{"metadata":{"seen":"yes"}}"#).await.expect(200),
            1 => {
                assert_eq!(send("DELETE", one.clone(), "").await.status, 204);
                assert_eq!(send("POST", format!("{one}/restore"), "").await.expect(200), *row);
            }
            _ => {}
        }
    }
    assert!(expected.len() > 3, "too few to tell them apart");
    let list = get(local, &format!("{path}/submissions")).send().await.expect(200);
    assert_eq!(list["submissions"].as_array().unwrap(), &expected);
}

#[tokio::test]
async fn a_form_beyond_what_is_accepted_now_goes_on() {
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
    let codes: Vec<_> = refused.iter().map(|found| found.code.name()).collect();
    for code in ["invalid_range", "invalid_pattern", "too_many"] {
        assert!(codes.contains(&code), "{codes:?}");
    }
    let server = Server::start().await;
    let form = server.stored(Definition::read(&form, &Limits::UNLIMITED).unwrap()).await;
    let server = server.with_index(|_| ()).await;
    let path = format!("/api/v1/forms/{form}");
    let change = json!({"title": "Still", "status": "published"});
    let shown = server.patch(&path, change).send().await.expect(200);
    assert_eq!(shown["questions"].as_array().unwrap().len(), 6);
    assert_eq!(server.get("/api/v1/forms").send().await.expect(200)["forms"][0]["title"], "Still");
    let versions = server.get(format!("{path}/versions")).send().await.expect(200);
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
