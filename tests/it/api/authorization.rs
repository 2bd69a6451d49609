//! Which keys and scopes may call which operation, and the errors of all others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use forms::secret::{KeyText, SystemRandomness};

use crate::harness::prelude::*;

const SCOPES: [Scope; 5] = [Scope::Read, Scope::Submit, Scope::Write, Scope::Admin, Scope::Operator];

// Which of `SCOPES` may call an operation.
const READ: [bool; 5] = [true, false, true, true, false];
const DEFINITION: [bool; 5] = [true, true, true, true, false];
const SUBMIT: [bool; 5] = [false, true, true, true, false];
const WRITE: [bool; 5] = [false, false, true, true, false];
const ADMIN: [bool; 5] = [false, false, false, true, false];
const OPERATOR: [bool; 5] = [false, false, false, false, true];
const ANY: [bool; 5] = [true; 5];

/// Every operation that needs a key, and the scopes that may call it.
pub(super) const OPERATIONS: [(&str, &str, [bool; 5]); 61] = [
    ("get", "/api/v1/forms", READ),
    ("post", "/api/v1/forms", WRITE),
    ("get", "/api/v1/forms/{form}", DEFINITION),
    ("patch", "/api/v1/forms/{form}", WRITE),
    ("delete", "/api/v1/forms/{form}", WRITE),
    ("post", "/api/v1/forms/{form}/restore", WRITE),
    ("get", "/api/v1/forms/{form}/schema", DEFINITION),
    ("get", "/api/v1/forms/{form}/page", READ),
    ("get", "/api/v1/forms/{form}/summary", READ),
    ("get", "/api/v1/forms/{form}/versions", READ),
    ("get", "/api/v1/forms/{form}/versions/1", READ),
    ("get", "/api/v1/forms/{form}/submissions", READ),
    ("post", "/api/v1/forms/{form}/submissions", SUBMIT),
    ("post", "/api/v1/forms/{form}/submissions:batch", SUBMIT),
    ("post", "/api/v1/forms/{form}/submissions:erase", ADMIN),
    ("get", "/api/v1/forms/{form}/submissions/{submission}", READ),
    ("patch", "/api/v1/forms/{form}/submissions/{submission}", WRITE),
    ("delete", "/api/v1/forms/{form}/submissions/{submission}", WRITE),
    ("post", "/api/v1/forms/{form}/submissions/{submission}/restore", WRITE),
    ("post", "/api/v1/forms/{form}/submissions/{submission}/release", WRITE),
    ("get", "/api/v1/forms/{form}/submissions/{submission}/history", READ),
    ("get", "/api/v1/forms/{form}/responses", READ),
    ("post", "/api/v1/forms/{form}/responses", SUBMIT),
    ("post", "/api/v1/forms/{form}/responses:batch", SUBMIT),
    ("post", "/api/v1/forms/{form}/responses:erase", ADMIN),
    ("get", "/api/v1/forms/{form}/responses/{submission}", READ),
    ("patch", "/api/v1/forms/{form}/responses/{submission}", WRITE),
    ("delete", "/api/v1/forms/{form}/responses/{submission}", WRITE),
    ("post", "/api/v1/forms/{form}/responses/{submission}/restore", WRITE),
    ("post", "/api/v1/forms/{form}/responses/{submission}/release", WRITE),
    ("get", "/api/v1/forms/{form}/responses/{submission}/history", READ),
    ("get", "/api/v1/forms/{form}/integrations", READ),
    ("post", "/api/v1/forms/{form}/integrations", WRITE),
    ("get", "/api/v1/forms/{form}/integrations/{integration}", READ),
    ("patch", "/api/v1/forms/{form}/integrations/{integration}", WRITE),
    ("delete", "/api/v1/forms/{form}/integrations/{integration}", WRITE),
    ("post", "/api/v1/forms/{form}/integrations/{integration}/test", WRITE),
    ("post", "/api/v1/forms/{form}/integrations/{integration}/rotate-secret", WRITE),
    ("get", "/api/v1/deliveries", READ),
    ("get", "/api/v1/deliveries/stats", READ),
    ("get", "/api/v1/deliveries/{delivery}", READ),
    ("get", "/api/v1/deliveries/{delivery}/attempts", READ),
    ("get", "/api/v1/deliveries/{delivery}/event", READ),
    ("post", "/api/v1/deliveries/{delivery}/redeliver", WRITE),
    ("post", "/api/v1/deliveries/{delivery}/cancel", WRITE),
    ("post", "/api/v1/deliveries:redeliver", WRITE),
    ("post", "/api/v1/deliveries:cancel", WRITE),
    ("get", "/api/v1/keys", ADMIN),
    ("post", "/api/v1/keys", ADMIN),
    ("delete", "/api/v1/keys/{key}", ADMIN),
    ("post", "/api/v1/keys/{key}/rotate", ADMIN),
    ("get", "/api/v1/workspaces", OPERATOR),
    ("post", "/api/v1/workspaces", OPERATOR),
    ("delete", "/api/v1/workspaces/{workspace}", OPERATOR),
    ("get", "/api/v1/store", OPERATOR),
    ("post", "/api/v1/store/compact", OPERATOR),
    ("post", "/api/v1/store/verify", OPERATOR),
    ("get", "/api/v1/store/backup", OPERATOR),
    ("get", "/metrics", OPERATOR),
    ("get", "/api/v1/whoami", ANY),
    ("get", "/api/v1/limits", ANY),
];

/// Ids for the placeholders of a path.
#[derive(Debug, Clone)]
pub(super) struct Ids([(&'static str, String); 6]);

impl Ids {
    /// Ids that no object has.
    fn random() -> Self {
        Self(
            [
                ("{form}", "frm_0123456789ab"),
                ("{submission}", "sub_00000000000000000000000000"),
                ("{integration}", "int_0123456789ab"),
                ("{delivery}", "dlv_00000000000000000000000000"),
                ("{key}", "key_00000000"),
                ("{workspace}", "ws_0123456789ab"),
            ]
            .map(|(name, id)| (name, id.to_owned())),
        )
    }

    fn get(&self, name: &str) -> &str {
        &self.0.iter().find(|(known, _)| *known == name).unwrap().1
    }

    fn set(&mut self, name: &str, id: String) {
        self.0.iter_mut().find(|(known, _)| *known == name).unwrap().1 = id;
    }

    fn fill(&self, path: &str) -> String {
        self.0.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id))
    }

    /// Replaces the ids in the body of a response.
    fn hide(&self, response: &TestResponse) -> String {
        self.0.iter().fold(response.text().to_owned(), |text, (_, id)| text.replace(id, "{id}"))
    }
}

/// Builds a valid request for an operation on these objects.
pub(super) fn operation(server: &Server, method: &str, path: &str, ids: &Ids) -> Call {
    let path = ids.fill(path);
    match method {
        "get" => server.get(path),
        "delete" => server.delete(path),
        "patch" if path.contains("/submissions/") || path.contains("/responses/") => {
            server.patch(path, json!({"answers": {"q1": "Bob"}}))
        }
        "patch" if path.contains("/integrations/") => server.patch(path, json!({"payload": "thin"})),
        "patch" => server.patch(path, json!({"title": "Visits"})),
        "post" if path == "/api/v1/forms" => server.post(path, json!({"title": "Visit", "questions": []})),
        "post" if path == "/api/v1/keys" => server.post(path, json!({"name": "CI", "scopes": ["read"]})),
        "post" if path == "/api/v1/workspaces" => server.post(path, json!({"name": "Other"})),
        "post" if path.ends_with("/integrations") => server.post(path, webhook()),
        "post" if path.ends_with(":batch") => {
            server.post(path, json!({"submissions": [{"answers": {"q1": "Ada"}}]}))
        }
        "post" if path.ends_with(":erase") => server.call(Method::POST, format!("{path}?q=nobody")),
        "post" if path.starts_with("/api/v1/deliveries:") => server.post(path, json!({})),
        "post" if !path.ends_with("/submissions") && !path.ends_with("/responses") => {
            server.call(Method::POST, path)
        }
        "post" => server.post(path, json!({"answers": {"q1": "Ada"}})),
        other => panic!("unexpected method: {other}"),
    }
}

/// Creates the objects that the path names, with an admin key of their workspace.
async fn create_objects(server: &Server, path: &str, key: &str) -> Ids {
    let send = async |path: &str, body: Value| {
        let made = server.post(path, body).key(key).send().await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let mut ids = Ids::random();
    if path.contains("{form}") || path.contains("{delivery}") {
        ids.set("{form}", send("/api/v1/forms", json!({"title": "Visit", "questions": questions()})).await);
        let form = ids.fill("/api/v1/forms/{form}");
        server.patch(&form, json!({"status": "published"})).key(key).send().await.expect(200);
        if path.contains("{integration}") || path.contains("{delivery}") {
            ids.set("{integration}", send(&format!("{form}/integrations"), webhook()).await);
        }
        let answers = json!({"answers": {"q1": "Ada"}});
        ids.set("{submission}", send(&format!("{form}/submissions"), answers).await);
    }
    if path.contains("{delivery}") {
        let found = server.get(ids.fill("/api/v1/deliveries?form={form}")).key(key).send().await.expect(200);
        ids.set("{delivery}", found["deliveries"][0]["id"].as_str().unwrap().to_owned());
    }
    if path.contains("{key}") {
        ids.set("{key}", send("/api/v1/keys", json!({"name": "CI", "scopes": ["read"]})).await);
    }
    if path.contains("{workspace}") {
        ids.set("{workspace}", server.create("/api/v1/workspaces", json!({"name": "Own"})).await);
    }
    ids
}

/// Creates objects on which the operation succeeds: what is to be restored is in the trash, or quarantined.
pub(super) async fn usable_objects(server: &Server, path: &str) -> Ids {
    let mut ids = create_objects(server, path, &server.key).await;
    if path.ends_with("/release") {
        let quarantined = server.quarantine(&ids.fill("{form}"), "{}").await;
        ids.set("{submission}", quarantined);
    }
    if let Some(trashed) = path.strip_suffix("/restore") {
        assert_eq!(operation(server, "delete", trashed, &ids).send().await.status, 204);
    }
    ids
}

/// Creates objects and deletes those that the path names last.
async fn deleted_objects(server: &Server, path: &str) -> Ids {
    let ids = create_objects(server, path, &server.key).await;
    if path.contains("{delivery}") {
        server.remove(ids.fill("/api/v1/forms/{form}?purge=true")).await;
        return ids;
    }
    let end = path.find('}').map_or(path.len(), |end| end + 1);
    // What works in the trash, too, must be erased.
    let is_purged = path.ends_with("{form}/restore") || path.ends_with(":erase");
    let purge = if is_purged { "?purge=true" } else { "" };
    let deleted = operation(server, "delete", &format!("{}{purge}", &path[..end]), &ids).send().await;
    assert_eq!(deleted.status, 204, "{path}: {}", deleted.text());
    ids
}

#[tokio::test]
async fn the_table_of_operations_is_complete() {
    let server = Server::start().await;
    let document = server.read("/api/v1/openapi.json").await;
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_open = operation["security"] == json!([{}]);
            let is_keyed =
                path.starts_with("/api/v1") && path != "/api/v1/openapi.json" || path == "/metrics";
            assert_eq!(is_open, !is_keyed, "{path}");
            if !is_open {
                documented.insert((method.clone(), path.clone()));
            }
        }
    }
    let known = OPERATIONS
        .map(|(method, path, _)| (method.to_owned(), path.replace("versions/1", "versions/{version}")));
    assert_eq!(documented, BTreeSet::from(known));
}

#[tokio::test]
async fn the_description_of_each_operation_names_its_scope() {
    let server = Server::start().await;
    let document = server.read("/api/v1/openapi.json").await;
    for (method, path, allowed) in OPERATIONS {
        let described = &document["paths"][path.replace("versions/1", "versions/{version}")][method];
        let described = described["description"].as_str().unwrap();
        let sentence = match allowed {
            READ => "Needs the scope `read`.",
            DEFINITION => "Needs the scope `read` or `submit`.",
            SUBMIT => "Needs the scope `submit`.",
            WRITE => "Needs the scope `write`.",
            ADMIN => "Needs the scope `admin`",
            OPERATOR => "Needs the scope `operator`.",
            _ => "",
        };
        assert!(described.contains(sentence), "{method} {path}: {described}");
        assert_eq!(described.contains("Needs the scope"), !sentence.is_empty(), "{method} {path}");
    }
}

/// The response that is expected, by status and code.
type Expected = (u16, Option<&'static str>);

const DONE: Expected = (200, None);
const UNAUTHORIZED: Expected = (401, Some("unauthorized"));
const FORBIDDEN: Expected = (403, Some("insufficient_scope"));

/// The response for an object that does not exist.
fn missing(path: &str) -> Expected {
    let kinds = [
        ("{form}", "form_not_found"),
        ("{delivery}", "delivery_not_found"),
        ("{key}", "key_not_found"),
        ("{workspace}", "workspace_not_found"),
    ];
    let (_, code) = kinds.iter().find(|(name, _)| path.contains(name)).unwrap();
    (404, Some(code))
}

/// Whether a key limited to some forms may call the operation at all.
fn allows_limited_keys(method: &str, path: &str) -> bool {
    let manages =
        ["keys", "workspaces", "store"].iter().any(|name| path.starts_with(&format!("/api/v1/{name}")));
    let concerns_all = [("post", "/api/v1/forms"), ("get", "/api/v1/deliveries/stats"), ("get", "/metrics")];
    !manages && !concerns_all.contains(&(method, path))
}

/// A server with two workspaces, and keys of the first one.
struct Matrix {
    server: Server,
    /// An admin key of the other workspace.
    foreign_key: String,
    /// One key for each of `SCOPES`.
    scoped: Vec<String>,
    /// A key with all scopes that is limited to a form which no test uses.
    elsewhere: String,
    /// No key, one that was revoked, and one that has expired.
    unusable: Vec<Option<String>>,
    /// The bodies of refusals of one operation by status: those of one status must be the same, whatever their reason.
    refusals: RefCell<BTreeMap<u16, BTreeSet<String>>>,
}

impl Matrix {
    async fn new() -> Self {
        let server = Server::start().await;
        let foreign_key = server.other_workspace().await;
        let mut scoped = Vec::new();
        for scope in SCOPES {
            scoped.push(server.key_with(&[scope]).await);
        }
        let other = create_objects(&server, "{form}", &server.key).await;
        let elsewhere = server.limited_key(&[Scope::Admin, Scope::Operator], &[other.get("{form}")]).await;
        let revoked = server.key_with(&[Scope::Admin]).await;
        server.remove(format!("/api/v1/keys/key_{}", &revoked[3..11])).await;
        let unusable = vec![None, Some(revoked), Some(server.expiring_key(NOW).await)];
        Self { server, foreign_key, scoped, elsewhere, unusable, refusals: RefCell::default() }
    }

    /// Sends the operation, checks the response, and notes the body of a refusal with its ids replaced.
    async fn send(&self, (method, path): Operation, ids: &Ids, key: Option<&str>, expected: Expected) {
        let call = operation(&self.server, method, path, ids).header("x-request-id", "same");
        let call = match key {
            Some(key) => call.key(key),
            None => call.without_header("authorization"),
        };
        let response = call.send().await;
        let (status, code) = expected;
        let body = String::from_utf8_lossy(&response.body);
        let place = format!("{method} {path} of {ids:?} with {key:?}: {body}");
        match code {
            Some(code) => {
                assert_eq!((response.status.as_u16(), &*response.code()), (status, code), "{place}");
                self.refusals.borrow_mut().entry(status).or_default().insert(ids.hide(&response));
            }
            None => {
                // A database is backed up by its own tools.
                let is_unsupported = path.ends_with("/store/backup") && response.status == 404;
                let is_database = std::env::var_os("FORMS_TEST_STORE").is_some();
                assert!(response.status.is_success() || is_database && is_unsupported, "{place}");
            }
        }
    }

    /// Sends the operation with every credential for objects that exist.
    async fn check_own(&self, (method, path): Operation, allowed: [bool; 5]) {
        let mut ids = usable_objects(&self.server, path).await;
        for key in &self.unusable {
            self.send((method, path), &ids, key.as_deref(), UNAUTHORIZED).await;
        }
        let has_form = path.contains("{form}") || path.contains("{delivery}");
        let here = self.limited_to(if has_form { ids.get("{form}") } else { "frm_0123456789ab" }).await;
        let may_limited = allows_limited_keys(method, path);
        let elsewhere = match may_limited {
            false => FORBIDDEN,
            true if has_form => missing(path),
            true => DONE,
        };
        self.send((method, path), &ids, Some(&self.elsewhere), elsewhere).await;
        self.send((method, path), &ids, Some(&here), if may_limited { DONE } else { FORBIDDEN }).await;
        for (key, is_allowed) in self.scoped.iter().zip(allowed) {
            if is_allowed && method != "get" {
                ids = usable_objects(&self.server, path).await;
            }
            self.send((method, path), &ids, Some(key), if is_allowed { DONE } else { FORBIDDEN }).await;
        }
    }

    /// Sends the operation with every credential for objects that do not exist for the caller.
    async fn check_missing(&self, (method, path): Operation, allowed: [bool; 5], ids: &Ids) {
        for key in &self.unusable {
            self.send((method, path), ids, key.as_deref(), UNAUTHORIZED).await;
        }
        let refusal = |is_allowed| if is_allowed { missing(path) } else { FORBIDDEN };
        let here = self.limited_to(ids.get("{form}")).await;
        for key in [&self.elsewhere, &here] {
            self.send((method, path), ids, Some(key), refusal(allows_limited_keys(method, path))).await;
        }
        for (key, is_allowed) in self.scoped.iter().zip(allowed) {
            self.send((method, path), ids, Some(key), refusal(is_allowed)).await;
        }
    }

    /// Creates a key with all scopes that is limited to one form.
    async fn limited_to(&self, form: &str) -> String {
        self.server.limited_key(&[Scope::Admin, Scope::Operator], &[form]).await
    }
}

/// The method and path of an operation.
type Operation = (&'static str, &'static str);

/// Everything that a key can read in its workspace.
async fn contents(server: &Server, key: &str) -> Vec<String> {
    let get = async |path: &str| server.get(path).key(key).send().await;
    let mut found = Vec::new();
    for list in ["/api/v1/forms", "/api/v1/forms?trashed=true", "/api/v1/deliveries", "/api/v1/keys"] {
        found.push(get(list).await.text().to_owned());
    }
    let forms: Value = serde_json::from_str(&found[0]).unwrap();
    for form in forms["forms"].as_array().unwrap() {
        let form = format!("/api/v1/forms/{}", form["id"].as_str().unwrap());
        for path in ["", "/schema", "/versions", "/integrations", "/submissions", "/submissions?trashed=true"]
        {
            found.push(get(&format!("{form}{path}")).await.text().to_owned());
        }
    }
    found
}

#[tokio::test]
async fn credential_and_object_decide_about_every_operation() {
    let matrix = Matrix::new().await;
    let server = &matrix.server;
    let foreign = create_objects(server, "{form}{integration}{delivery}{key}", &matrix.foreign_key).await;
    let trashed = create_objects(server, "{form}", &matrix.foreign_key).await;
    let trash = server.delete(trashed.fill("/api/v1/forms/{form}")).key(&matrix.foreign_key);
    assert_eq!(trash.send().await.status, 204);
    let before = contents(server, &matrix.foreign_key).await;
    assert_eq!(before.len(), 10);
    for (method, path, allowed) in OPERATIONS {
        matrix.check_own((method, path), allowed).await;
        let kinds = ["{form}", "{delivery}", "{key}", "{workspace}"];
        let names_object = kinds.iter().any(|name| path.contains(name));
        if names_object {
            let foreign = if path.contains("{form}/restore") { &trashed } else { &foreign };
            let deleted = deleted_objects(server, path).await;
            for ids in [&Ids::random(), &deleted, foreign] {
                matrix.check_missing((method, path), allowed, ids).await;
            }
        }
        let refusals = matrix.refusals.take();
        for status in [401].into_iter().chain(names_object.then_some(404)) {
            assert_eq!(refusals[&status].len(), 1, "{method} {path}: {:?}", refusals[&status]);
        }
    }
    assert_eq!(contents(server, &matrix.foreign_key).await, before);
}

#[tokio::test]
async fn a_limited_key_lists_and_finds_only_its_forms() {
    let server = Server::start().await;
    let (one, two) = (server.published_form(questions()).await, server.published_form(questions()).await);
    server.patch(format!("/api/v1/forms/{two}"), json!({"slug": "two"})).send().await.expect(200);
    let key = server.limited_key(&[Scope::Write], &[&one]).await;
    let listed = async |query: &str| {
        let found = server.get(format!("/api/v1/forms{query}")).key(&key).send().await;
        let forms = found.expect(200)["forms"].as_array().unwrap().clone();
        (forms.iter().map(|form| form["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), found)
    };
    let (found, response) = listed("?count=true").await;
    assert_eq!((found, response.header("forms-total")), (vec![one.clone()], Some("1")));
    assert_eq!(listed("?q=visit&limit=1").await.0, [one.as_str()]);
    assert_eq!(listed("?trashed=true").await.0, [""; 0]);
    assert_eq!(server.get("/api/v1/forms/two").key(&key).send().await.code(), "form_not_found");
    // Which form has a slug is not revealed, only that it is taken.
    for query in ["", "?dry_run=true"] {
        let path = format!("/api/v1/forms/{one}{query}");
        let taken = server.patch(path, json!({"slug": "two"})).key(&key).send().await;
        assert_eq!(taken.code(), "slug_taken");
        assert!(!taken.text().contains(&two), "{}", taken.text());
    }
}

#[tokio::test]
async fn purging_needs_admin() {
    let server = Server::start().await;
    for (scope, is_allowed) in SCOPES.into_iter().zip(ADMIN) {
        let form = server.published_form(questions()).await;
        let submission = server.submit(&form, json!({"q1": "Ada"})).await;
        let key = server.key_with(&[scope]).await;
        for path in [format!("/{form}/submissions/{submission}"), format!("/{form}")] {
            let path = format!("/api/v1/forms{path}?purge=true");
            let response = server.delete(path).key(&key).send().await;
            assert_eq!(response.status.as_u16(), if is_allowed { 204 } else { 403 }, "{scope}");
        }
    }
}

#[tokio::test]
async fn an_invalid_key_is_refused_without_a_reason() {
    let server = Server::start().await;
    let expired = server.expiring_key("2026-11-20T09:00:00.000Z").await;
    let unknown = KeyText::draw(&SystemRandomness);
    let mut mistyped = server.key.clone();
    mistyped.replace_range(12..13, if &mistyped[12..13] == "a" { "b" } else { "a" });
    let with = |text: &str| Some(text.to_owned());
    let credentials = [
        None,
        with("Bearer"),
        with(&format!("Basic {}", server.key)),
        with(&server.key),
        with(&format!("Bearer {mistyped}")),
        with(&format!("Bearer {expired}")),
        with(&format!("Bearer {}", unknown.reveal())),
        with("Bearer é"),
    ];
    let mut bodies = BTreeSet::new();
    for credential in &credentials {
        let call = server.get("/api/v1/whoami").header("x-request-id", "same");
        let call = match credential {
            Some(text) => call.header("authorization", text),
            None => call.without_header("authorization"),
        };
        let response = call.send().await;
        assert_eq!(response.status, 401, "{credential:?}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        bodies.insert(response.text().to_owned());
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    // The key is checked before the query and the body.
    let call = server.call_without_key(Method::POST, "/api/v1/forms?wrong=1").body("{");
    assert_eq!(call.send().await.code(), "unauthorized");
}

#[tokio::test]
async fn submissions_and_integrations_are_found_only_under_their_form() {
    let server = Server::start().await;
    let (one, other) = (server.published_form(questions()).await, server.published_form(questions()).await);
    let answers = json!({"answers": {"q1": "Ada"}});
    for (list, name, code, body) in [
        ("submissions", "{submission}", "submission_not_found", answers),
        ("integrations", "{integration}", "integration_not_found", webhook()),
    ] {
        let path = format!("/api/v1/forms/{one}/{list}");
        let kept = server.create(&path, body.clone()).await;
        let deleted = server.create(&path, body).await;
        let purge = if list == "submissions" { "?purge=true" } else { "" };
        server.remove(format!("{path}/{deleted}{purge}")).await;
        let never = Ids::random().get(name).to_owned();
        for (method, path, _) in OPERATIONS.into_iter().filter(|(_, path, _)| path.contains(name)) {
            let mut bodies = BTreeSet::new();
            for (form, id) in [(&other, &*kept), (&one, "nothing"), (&one, &never), (&one, &deleted)] {
                let mut ids = Ids::random();
                ids.set("{form}", form.clone());
                ids.set(name, id.to_owned());
                let call = operation(&server, method, path, &ids).header("x-request-id", "same");
                let response = call.send().await;
                assert_eq!(response.code(), code, "{method} {path}");
                bodies.insert(ids.hide(&response));
            }
            assert_eq!(bodies.len(), 1, "{method} {path}: {bodies:?}");
        }
        server.read(format!("{path}/{kept}")).await;
    }
}

#[tokio::test]
async fn failed_authentication_is_rate_limited_by_address_and_valid_keys_still_work() {
    let auth_failures = Some("2/min".parse().unwrap());
    let server = Server::with_settings(HttpSettings { auth_failures, ..Default::default() }).await;
    let whoami = || server.call_without_key(Method::GET, "/api/v1/whoami");
    let call = |key: &str, address: &str| whoami().key(key).with_client_address(address).send();
    for _ in 0..3 {
        let missing = whoami().with_client_address("192.0.2.1").send().await;
        assert_eq!(missing.code(), "unauthorized", "a missing key was counted");
    }
    assert_eq!(call("fk_1", "192.0.2.1").await.code(), "unauthorized");
    assert_eq!(call("fk_2", "192.0.2.1").await.code(), "unauthorized");
    let refused = call("fk_3", "192.0.2.1").await;
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", Some("60")));
    assert_eq!(call(&server.key, "192.0.2.1").await.status, 200);
    assert_eq!(call("fk_3", "192.0.2.2").await.code(), "unauthorized");
    // An IPv4 address is counted on its own in both notations, an IPv6 address with its /64.
    assert_eq!(call("fk_3", "::ffff:192.0.2.1").await.code(), "rate_limited");
    for (address, code) in [
        ("2001:db8::1", "unauthorized"),
        ("2001:db8::2:0:0:2", "unauthorized"),
        ("2001:db8:0:1::1", "unauthorized"),
        ("2001:db8:0:0:9::", "rate_limited"),
    ] {
        assert_eq!(call("fk_3", address).await.code(), code, "{address}");
    }
    for (time, wait) in [("09:00:20", Some("40")), ("09:00:59", Some("1")), ("09:01:00", None)] {
        server.clock.set(&format!("2026-11-20T{time}Z"));
        assert_eq!(call("fk_3", "192.0.2.1").await.header("retry-after"), wait, "{time}");
    }
    // If the clock is set back, counting starts again.
    call("fk_3", "192.0.2.1").await;
    assert_eq!(call("fk_3", "192.0.2.1").await.code(), "rate_limited");
    server.clock.set("2026-11-20T09:00:00Z");
    assert_eq!(call("fk_3", "192.0.2.1").await.code(), "unauthorized");
}

#[tokio::test]
async fn the_bearer_scheme_is_case_insensitive_and_may_have_more_spaces() {
    let server = Server::start().await;
    for scheme in ["Bearer ", "bearer  ", "BEARER "] {
        let credentials = format!("{scheme}{} ", server.key);
        let call = server.get("/api/v1/whoami").header("authorization", &credentials);
        assert_eq!(call.send().await.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn the_rate_limit_can_be_disabled() {
    let server = Server::with_settings(HttpSettings { auth_failures: None, ..Default::default() }).await;
    for _ in 0..20 {
        let call = server.get("/api/v1/whoami").key("fk_1").with_client_address("192.0.2.1");
        assert_eq!(call.send().await.code(), "unauthorized");
    }
}
