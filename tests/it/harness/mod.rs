//! A server for tests: the router on a store in a temporary folder, with a clock that the test sets.

pub(crate) mod authority;
mod definition_context;
pub(crate) mod document;
mod listening_server;
pub(crate) mod postgres;
mod recording_sender;
mod running;
pub(crate) mod stored_text;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, Version};
use axum::response::Response;
use forms::app::{App, bootstrap};
use forms::clock::{Clock, Timestamp};
use forms::config::HttpSettings;
use forms::cpu_pool::{CpuPool, PoolLimits};
use forms::delivery::mail::{Mailer, NoMailer};
use forms::delivery::{DeliveryService, DeliverySettings, Sender};
use forms::domain::form::Form;
use forms::domain::form::definition::Definition;
use forms::domain::integration::address::AddressPolicy;
use forms::domain::integration::google_sheets::GoogleEndpoints;
use forms::domain::validation::limits::Limits;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::http::{ClientAddress, HttpService, router};
use forms::id::{FormId, WorkspaceId};
use forms::secret::KeyText;
use forms::store::postgres::PostgresStore;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Index, IndexProvider, SledIndexes};
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{NewForm, NewKey, NewWorkspace, StepResult, Store};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::store::{SeededRandom, quarantine_in};

pub(crate) use definition_context::{VAULT, definition_context};
pub(crate) use recording_sender::{RecordingSender, header};
pub(crate) use running::Running;

pub(crate) use listening_server::{
    ClientStream, Http2Client, ListeningServer, SHORT, Scheme, TIMEOUT, exchange, handshake, parse_response,
    read_hello, read_to_end, read_until_closed, receive, wait_for_response,
};

/// What most tests of the API use.
pub(crate) mod prelude {
    pub(crate) use axum::http::Method;
    pub(crate) use forms::config::HttpSettings;
    pub(crate) use forms::cpu_pool::PoolLimits;
    pub(crate) use forms::domain::workspace::Scope;
    pub(crate) use serde_json::{Value, json};

    /// The path of all forms.
    pub(crate) const FORMS: &str = "/api/v1/forms";

    pub(crate) use super::{
        Call, ClientStream, Http2Client, ListeningServer, ManualClock, NOW, RecordingSender, SHORT, Scheme,
        Server, TIMEOUT, TestResponse, delivery_service, exchange, fields, header, over_http_and_https,
        parse_response, questions, read_hello, read_to_end, read_until_closed, receive, wait_for_response,
        webhook,
    };
}

/// A clock that the test sets. A time before 1970 makes it panic, which is how a test makes a handler panic.
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn at(text: &str) -> Self {
        let clock = Self(AtomicI64::new(0));
        clock.set(text);
        clock
    }

    pub(crate) fn advance(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, text: &str) {
        self.0.store(Timestamp::parse(text).unwrap().millis(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::from_millis(self.0.load(Ordering::Relaxed));
        assert!(now.millis() >= 0, "the clock is broken");
        now
    }
}

/// The time at which every test begins.
pub(crate) const NOW: &str = "2026-11-20T09:00:00.000Z";

/// Where the store of a server is, and what it draws from.
struct Home {
    /// The URL of the database; `None` if the store is in the data directory.
    database: Option<String>,
    random: Arc<SeededRandom>,
}

impl Home {
    /// A new, empty one, as `FORMS_TEST_STORE` says.
    async fn new() -> Self {
        match std::env::var("FORMS_TEST_STORE").as_deref() {
            Ok("postgres") => {
                Self::database().await.expect("PostgreSQL is not installed; tests/run installs it")
            }
            Ok("embedded") | Err(_) => Self::embedded(),
            Ok(other) => panic!("FORMS_TEST_STORE is {other:?}; expected one of: embedded, postgres"),
        }
    }

    fn embedded() -> Self {
        Self { database: None, random: Arc::new(SeededRandom::new(2)) }
    }

    /// A new schema of the database of the tests, if PostgreSQL is installed.
    async fn database() -> Option<Self> {
        Some(Self { database: Some(postgres::cluster()?.new_schema().await), ..Self::embedded() })
    }

    async fn open(&self, folder: &Path, pool: &CpuPool, options: EngineOptions) -> Arc<dyn Store> {
        let random = self.random.clone();
        if let Some(url) = &self.database {
            return Arc::new(PostgresStore::open(url, pool.clone(), random).await.unwrap());
        }
        let options = EngineOptions { verify_index: false, preallocate: false, ..options };
        Arc::new(SledStore::open(folder, options, pool.clone(), random, Arc::new(|_| ())).unwrap())
    }
}

/// A server with one workspace.
pub(crate) struct Server {
    pub(crate) api: HttpService,
    pub(crate) app: Arc<App>,
    pub(crate) clock: Arc<ManualClock>,
    /// A key with the scopes `admin` and `operator`.
    pub(crate) key: String,
    pub(crate) settings: HttpSettings,
    /// Receives what integrations send.
    pub(crate) sender: Arc<RecordingSender>,
    store: Arc<dyn Store>,
    workspace: WorkspaceId,
    random: Arc<SeededRandom>,
    home: Home,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server with the default settings, on the store that `FORMS_TEST_STORE` names.
    pub(crate) async fn start() -> Self {
        Self::with_settings(HttpSettings::default()).await
    }

    /// Starts a server on the embedded store, for what only that has.
    pub(crate) async fn embedded() -> Self {
        Self::embedded_with_settings(HttpSettings::default()).await
    }

    pub(crate) async fn embedded_with_settings(settings: HttpSettings) -> Self {
        Self::on(Home::embedded(), settings).await
    }

    /// Starts a server on the embedded store, with a published form of [`questions`], and returns its id too.
    pub(crate) async fn embedded_with_form() -> (Self, String) {
        let server = Self::embedded().await;
        let form = server.published_form(questions()).await;
        (server, form)
    }

    /// Starts a server on a database of its own, if PostgreSQL is installed.
    pub(crate) async fn on_database() -> Option<Self> {
        Some(Self::on(Home::database().await?, HttpSettings::default()).await)
    }

    /// Starts a server with a published form of [`questions`], and returns its id too.
    pub(crate) async fn with_form() -> (Self, String) {
        let server = Self::start().await;
        let form = server.published_form(questions()).await;
        (server, form)
    }

    pub(crate) async fn with_settings(settings: HttpSettings) -> Self {
        Self::on(Home::new().await, settings).await
    }

    async fn on(home: Home, settings: HttpSettings) -> Self {
        let random = Arc::new(SeededRandom::new(1));
        let folder = tempfile::tempdir().unwrap();
        let pool = CpuPool::default();
        let store = home.open(folder.path(), &pool, EngineOptions::default()).await;
        let clock = Arc::new(ManualClock::at(NOW));
        let key = KeyText::draw(&*random);
        bootstrap(&*store, &key, &*random, clock.now()).await.unwrap();
        let workspace = store.find_key(key.id()).await.unwrap().unwrap().workspace;
        let sender = Arc::new(RecordingSender::default());
        let deliveries = delivery_service(&store, &clock, &random, &sender, folder.path());
        let (app, api) = mount(&store, pool, deliveries, &clock, &random, &settings);
        let key = key.reveal().to_owned();
        Self { api, app, clock, key, settings, sender, store, workspace, random, home, folder }
    }

    /// Closes the store and opens it again.
    pub(crate) async fn reopened(self) -> Self {
        self.reopen(EngineOptions::default(), PoolLimits::default(), |_| ()).await
    }

    /// Reopens the embedded store as if the disk were full.
    pub(crate) async fn with_full_disk(self) -> Self {
        assert!(self.home.database.is_none());
        let options = EngineOptions { min_free: u64::MAX, ..EngineOptions::default() };
        self.reopen(options, PoolLimits::default(), |_| ()).await
    }

    /// Reopens the store with other limits of the CPU pool.
    pub(crate) async fn with_pool(self, limits: PoolLimits) -> Self {
        self.reopen(EngineOptions::default(), limits, |_| ()).await
    }

    /// Reopens the embedded store after changing its index directly.
    pub(crate) async fn with_index(self, change: impl FnOnce(&dyn Index)) -> Self {
        assert!(self.home.database.is_none());
        let change = |folder: &Path| {
            let indexes = SledIndexes::new(folder, 4 << 20).unwrap();
            let index = indexes.open("index").unwrap();
            change(&*index);
            indexes.close("index", index).unwrap();
        };
        self.reopen(EngineOptions::default(), PoolLimits::default(), change).await
    }

    async fn reopen(
        self,
        options: EngineOptions,
        pool_limits: PoolLimits,
        while_closed: impl FnOnce(&Path),
    ) -> Self {
        self.store.close().await.unwrap();
        let Self { clock, key, settings, sender, workspace, random, home, folder, .. } = self;
        while_closed(folder.path());
        let pool = CpuPool::new(pool_limits);
        let store = home.open(folder.path(), &pool, options).await;
        let deliveries = delivery_service(&store, &clock, &random, &sender, folder.path());
        let (app, api) = mount(&store, pool, deliveries, &clock, &random, &settings);
        Self { api, app, clock, key, settings, sender, store, workspace, random, home, folder }
    }

    /// The data directory.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn close_store(&self) {
        self.store.close().await.unwrap();
    }

    /// Creates a key of the first workspace.
    pub(crate) async fn key_with(&self, scopes: &[Scope]) -> String {
        self.key_in(self.workspace, scopes, None, None).await
    }

    /// Creates a key of the first workspace that expires at `end`.
    pub(crate) async fn expiring_key(&self, end: &str) -> String {
        self.key_in(self.workspace, &[Scope::Admin], None, Timestamp::parse(end)).await
    }

    /// Creates a key of the first workspace that is limited to these forms.
    pub(crate) async fn limited_key(&self, scopes: &[Scope], forms: &[&str]) -> String {
        let forms = forms.iter().map(|form| form.parse().unwrap()).collect();
        self.key_in(self.workspace, scopes, Some(forms), None).await
    }

    /// Creates a workspace and returns an admin key of it.
    pub(crate) async fn other_workspace(&self) -> String {
        let id = WorkspaceId::draw(&*self.random);
        let workspace = Workspace { id, name: "other".to_owned(), created_at: self.clock.now() };
        let text = KeyText::draw(&*self.random);
        let key = ApiKey::admin(id, text.id(), text.hash(), self.clock.now());
        let new = NewWorkspace { workspace, key, idempotency_key: None };
        assert!(matches!(self.store.insert_workspace(new).await.unwrap(), StepResult::Done(_)));
        text.reveal().to_owned()
    }

    async fn key_in(
        &self,
        workspace: WorkspaceId,
        scopes: &[Scope],
        forms: Option<Vec<FormId>>,
        end: Option<Timestamp>,
    ) -> String {
        let text = KeyText::draw(&*self.random);
        let key = ApiKey {
            id: text.id(),
            workspace,
            name: "test".to_owned(),
            hash: text.hash(),
            scopes: scopes.to_vec(),
            forms,
            created_at: self.clock.now(),
            expires_at: end,
            ends_at: None,
        };
        let step = self.store.insert_key(NewKey { key, idempotency_key: None }).await.unwrap();
        assert!(matches!(step, StepResult::Done(_)), "{step:?}");
        text.reveal().to_owned()
    }

    /// Builds a request with the server's admin key.
    pub(crate) fn call(&self, method: Method, path: impl AsRef<str>) -> Call {
        self.call_without_key(method, path).key(&self.key)
    }

    /// Builds a request without a key.
    pub(crate) fn call_without_key(&self, method: Method, path: impl AsRef<str>) -> Call {
        let request = Request::builder().method(method).uri(path.as_ref()).body(Body::empty()).unwrap();
        Call::new(self.api.clone(), request)
    }

    pub(crate) fn get(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: impl AsRef<str>, body: Value) -> Call {
        self.call(Method::POST, path).json(body)
    }

    pub(crate) fn patch(&self, path: impl AsRef<str>, body: Value) -> Call {
        self.call(Method::PATCH, path).json(body)
    }

    pub(crate) fn delete(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::DELETE, path)
    }

    /// Reads a JSON body.
    pub(crate) async fn read(&self, path: impl AsRef<str>) -> Value {
        self.get(path).send().await.expect(200)
    }

    /// Deletes what is at `path`.
    pub(crate) async fn remove(&self, path: impl AsRef<str>) {
        let response = self.delete(path).send().await;
        assert_eq!((response.status.as_u16(), response.text()), (204, ""));
    }

    /// Creates what `body` describes and returns its id.
    pub(crate) async fn create(&self, path: impl AsRef<str>, body: Value) -> String {
        self.post(path, body).send().await.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// The head of a request with JSON and the server's admin key; each line of `headers` ends in a line break.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &str) -> String {
        let key = &self.key;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{headers}\r\n"
        )
    }

    /// Creates a draft with these questions and returns its id.
    pub(crate) async fn draft_form(&self, questions: Value) -> String {
        self.create("/api/v1/forms", json!({"title": "Visit", "questions": questions})).await
    }

    /// Creates a published form with these questions and returns its id.
    pub(crate) async fn published_form(&self, questions: Value) -> String {
        let form = self.draft_form(questions).await;
        self.patch(format!("/api/v1/forms/{form}"), json!({"status": "published"})).send().await.expect(200);
        form
    }

    /// Stores a draft with this definition, which need not be valid, and returns its id.
    pub(crate) async fn stored_form(&self, definition: Definition) -> String {
        let id = FormId::draw(&*self.random);
        let (form, version) = Form::create(id, self.workspace, definition, self.clock.now());
        let new = NewForm { form, version: version.to_stored(), idempotency_key: None };
        let step = self.store.insert_form(new).await.unwrap();
        assert!(matches!(step, StepResult::Done(_)));
        id.to_string()
    }

    /// Creates an integration of `form` and returns the response.
    pub(crate) async fn integrate(&self, form: &str, integration: Value) -> Value {
        self.post(format!("/api/v1/forms/{form}/integrations"), integration).send().await.expect(201)
    }

    /// Carries out the deliveries that are due.
    pub(crate) async fn deliver(&self) {
        self.app.deliveries.clone().run_due().await;
    }

    /// Replaces the recording sender by `sender`, which may call loopback addresses.
    pub(crate) fn with_sender(self, sender: Arc<dyn Sender>) -> Self {
        self.with_services(sender, Arc::new(NoMailer), GoogleEndpoints::default())
    }

    /// Like [`with_sender`](Self::with_sender), sends mail by `mailer`, and has Google's services at `google`.
    pub(crate) fn with_services(
        mut self,
        sender: Arc<dyn Sender>,
        mailer: Arc<dyn Mailer>,
        google: GoogleEndpoints,
    ) -> Self {
        let policy =
            AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..AddressPolicy::default() };
        let settings = DeliverySettings { policy, google, ..self.app.deliveries.settings.clone() };
        let store = Arc::clone(&self.store);
        let (vault, clock, random) = (VAULT.clone(), self.clock.clone(), self.random.clone());
        let deliveries = DeliveryService::new(store, vault, sender, clock, random, settings);
        let deliveries = Arc::new(deliveries.with_mailer(mailer));
        let (pool, settings) = (self.app.pool.clone(), &self.settings);
        (self.app, self.api) = mount(&self.store, pool, deliveries, &self.clock, &self.random, settings);
        self
    }

    /// Sends a submission to `form` and returns its id.
    pub(crate) async fn submit(&self, form: &str, answers: Value) -> String {
        self.create(format!("/api/v1/forms/{form}/submissions"), json!({"answers": answers})).await
    }

    /// Stores a quarantined submission to `form` and returns its id.
    pub(crate) async fn quarantine(&self, form: &str, answers: &str) -> String {
        let form = self.workspace.form(form.parse().unwrap());
        quarantine_in(&*self.store, form, answers, self.clock.now()).await.to_string()
    }

    /// Serves the router on a free TCP port, over plain HTTP.
    pub(crate) async fn listen(&self) -> ListeningServer {
        self.listen_over(Scheme::Http).await
    }

    pub(crate) async fn listen_over(&self, scheme: Scheme) -> ListeningServer {
        ListeningServer::listen(scheme, self.api.clone(), self.settings.clone()).await
    }

    /// Serves the router on a free TCP port as behind a proxy, which removes `prefix` from paths and reports it.
    pub(crate) async fn listen_under(&self, prefix: &'static str) -> ListeningServer {
        let api = self.api.clone().into_router();
        let proxy = Router::new().fallback(async move |mut request: Request<Body>| {
            let target = request.uri().path_and_query().unwrap().as_str();
            let target = target.strip_prefix(prefix).unwrap_or("/outside").parse().unwrap();
            *request.uri_mut() = target;
            request.headers_mut().insert("x-forwarded-prefix", prefix.parse().unwrap());
            api.oneshot(request).await
        });
        ListeningServer::listen(Scheme::Http, proxy, self.settings.clone()).await
    }
}

/// Defines tests from functions of a [`Scheme`](harness::Scheme): one over HTTP and one over HTTPS each.
macro_rules! over_http_and_https {
    ($($test:ident),* $(,)?) => {
        over_http_and_https! { @ http Http $($test)* }
        over_http_and_https! { @ https Https $($test)* }
    };
    (@ $module:ident $scheme:ident $($test:ident)*) => {
        mod $module {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::harness::Scheme::$scheme).await;
            })*
        }
    };
}
pub(crate) use over_http_and_https;

fn mount(
    store: &Arc<dyn Store>,
    pool: CpuPool,
    deliveries: Arc<DeliveryService>,
    clock: &Arc<ManualClock>,
    random: &Arc<SeededRandom>,
    settings: &HttpSettings,
) -> (Arc<App>, HttpService) {
    let (store, limits) = (Arc::clone(store), Limits::default());
    let app = Arc::new(App::new(store, pool, clock.clone(), random.clone(), limits, deliveries));
    (app.clone(), router(app, settings.clone()))
}

/// Puts together deliveries that are sent to `sender`, with secrets sealed by a fixed key, and CSV files below `data`.
pub(crate) fn delivery_service(
    store: &Arc<dyn Store>,
    clock: &Arc<ManualClock>,
    random: &Arc<SeededRandom>,
    sender: &Arc<RecordingSender>,
    data: &Path,
) -> Arc<DeliveryService> {
    let settings = DeliverySettings { exports: data.join("exports"), ..DeliverySettings::default() };
    let (store, clock, random) = (Arc::clone(store), clock.clone(), random.clone());
    Arc::new(DeliveryService::new(store, VAULT.clone(), sender.clone(), clock, random, settings))
}

/// A required short text, an e-mail address and a rating.
pub(crate) fn questions() -> Value {
    json!([ {"type": "short_text", "title": "Your name?", "required": true}, {"type": "email", "title": "Your address?"}, {"type": "rating", "title": "How was it?"}, ])
}

/// A webhook with as few members as can be.
pub(crate) fn webhook() -> Value {
    json!({"type": "webhook", "url": "https://example.com/hook"})
}

/// A request to the router.
pub(crate) struct Call {
    api: HttpService,
    request: Request<Body>,
}

impl Call {
    pub(crate) fn new(api: HttpService, request: Request<Body>) -> Self {
        Self { api, request }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().insert(name, value.parse().unwrap());
        self
    }

    pub(crate) fn also_header(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().append(name, value.parse().unwrap());
        self
    }

    pub(crate) fn without_header(mut self, name: &'static str) -> Self {
        self.request.headers_mut().remove(name);
        self
    }

    pub(crate) fn json(self, body: Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Makes it a request over HTTP/2, with the host in `:authority`.
    pub(crate) fn over_http2(mut self) -> Self {
        let path = self.request.uri().clone();
        *self.request.version_mut() = Version::HTTP_2;
        *self.request.uri_mut() = format!("https://localhost{path}").parse().unwrap();
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        *self.request.body_mut() = body.into();
        self
    }

    /// Sets the client's address.
    pub(crate) fn with_client_address(mut self, address: &str) -> Self {
        let address: IpAddr = address.parse().unwrap();
        self.request.extensions_mut().insert(ClientAddress(address));
        self.header("host", "localhost")
    }

    /// Returns the response without reading its body.
    pub(crate) async fn response(self) -> Response {
        self.api.into_router().oneshot(self.request).await.unwrap()
    }

    pub(crate) async fn send(self) -> TestResponse {
        let (method, path) = (self.request.method().clone(), self.request.uri().path().to_owned());
        let response = self.response().await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let answer = TestResponse { status: parts.status, headers: parts.headers, body };
        document::check_headers(&answer);
        document::check(&method, &path, &answer);
        answer
    }
}

/// A response with its body.
#[derive(Debug, Clone)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the body; fails unless the response has this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// Returns the code of the problem document.
    pub(crate) fn code(&self) -> String {
        self.json()["code"]
            .as_str()
            .unwrap_or_else(|| panic!("not a problem document: {} {:?}", self.status, self.headers))
            .to_owned()
    }

    /// Fails unless the response has this status and a problem document with this code.
    #[track_caller]
    pub(crate) fn expect_problem(&self, status: u16, code: &str) {
        assert_eq!((self.status.as_u16(), self.code().as_str()), (status, code), "{}", self.text());
    }

    /// Fails unless the request was refused with these pointers and codes.
    #[track_caller]
    pub(crate) fn expect_errors(&self, expected: &[(&str, &str)]) {
        let body = self.expect(422);
        let errors = body["errors"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let found: Vec<_> = errors.map(|error| (text(&error["pointer"]), text(&error["code"]))).collect();
        let found: Vec<_> = found.iter().map(|(pointer, code)| (pointer.as_str(), code.as_str())).collect();
        assert_eq!(found, expected, "{}", self.text());
    }

    /// Whether it is the response to an earlier request with the same idempotency key.
    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed").is_some()
    }

    /// The path of the next page.
    pub(crate) fn next_page(&self) -> Option<String> {
        let (next, relation) = self.header("link")?.split_once("; ").unwrap();
        assert_eq!(relation, "rel=\"next\"");
        Some(next.trim_matches(['<', '>']).to_owned())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the names of the body's fields, in order.
    pub(crate) fn fields(&self) -> Vec<String> {
        fields(self.text())
    }
}

/// Returns the names of the fields of a JSON object, in order.
pub(crate) fn fields(text: &str) -> Vec<String> {
    let members = forms::domain::json::parse_object(text).unwrap();
    members.into_iter().map(|(name, ..)| name).collect()
}
