//! A server for tests: the real router on a store in a folder of its own, at a time that stands still.

pub(crate) mod document;
mod wire;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use forms::app::{App, bootstrap};
use forms::clock::{Clock, Timestamp};
use forms::config::HttpLimits;
use forms::cpu_pool::{CpuPool, PoolLimits};
use forms::domain::form::Form;
use forms::domain::form::definition::Definition;
use forms::domain::validation::limits::Limits;
use forms::domain::workspace::{ApiKey, Scope, Workspace};
use forms::http::{HttpService, Peer, router};
use forms::id::{FormId, WorkspaceId};
use forms::secret::KeyText;
use forms::store::sled::SledStore;
use forms::store::sled::engine::index::{Index, IndexProvider, SledIndexes};
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{Forms, Keys, Maintenance, NewForm, StepResult};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::store::Scrambled;

pub(crate) use wire::{Wire, answer, exchange, read_to_end};

/// A clock that stands until it is moved. Moved before 1970, it panics: that is how a test makes a handler panic.
pub(crate) struct HandClock(AtomicI64);

impl HandClock {
    pub(crate) fn at(text: &str) -> Self {
        let clock = Self(AtomicI64::new(0));
        clock.set(text);
        clock
    }

    pub(crate) fn set(&self, text: &str) {
        self.0.store(Timestamp::parse(text).unwrap().millis(), Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::from_millis(self.0.load(Ordering::Relaxed));
        assert!(now.millis() >= 0, "the clock is broken");
        now
    }
}

/// The moment at which every test begins.
pub(crate) const NOW: &str = "2026-11-20T09:00:00.000Z";

/// A server with one workspace.
pub(crate) struct Server {
    pub(crate) api: HttpService,
    pub(crate) app: Arc<App>,
    pub(crate) clock: Arc<HandClock>,
    /// A key with the scopes `admin` and `operator`.
    pub(crate) key: String,
    pub(crate) limits: HttpLimits,
    store: SledStore,
    workspace: WorkspaceId,
    random: Arc<Scrambled>,
    folder: tempfile::TempDir,
}

impl Server {
    /// With the default limits.
    pub(crate) async fn start() -> Self {
        Self::with(HttpLimits::default()).await
    }

    pub(crate) async fn with(limits: HttpLimits) -> Self {
        let random = Arc::new(Scrambled::new(1));
        let folder = tempfile::tempdir().unwrap();
        let pool = CpuPool::default();
        let store = open(&folder, &random, &pool, EngineOptions::default());
        let clock = Arc::new(HandClock::at(NOW));
        let key = KeyText::draw(&*random);
        bootstrap(&store, &key, &*random, clock.now()).await.unwrap();
        let workspace = store.find_key(key.id()).await.unwrap().unwrap().workspace;
        let (app, api) = mount(&store, pool, &clock, &random, &limits);
        let key = key.reveal().to_owned();
        Self { api, app, clock, key, limits, store, workspace, random, folder }
    }

    /// The same, on a disk with no room left.
    pub(crate) async fn without_room(self) -> Self {
        let options = EngineOptions { min_free: u64::MAX, ..EngineOptions::default() };
        self.reopened(options, PoolLimits::default(), |_| ()).await
    }

    /// The same, with other bounds of the pool.
    pub(crate) async fn with_pool(self, limits: PoolLimits) -> Self {
        self.reopened(EngineOptions::default(), limits, |_| ()).await
    }

    /// The same, with an index that was changed behind the store's back.
    pub(crate) async fn with_index(self, change: impl FnOnce(&dyn Index)) -> Self {
        let change = |folder: &Path| {
            let indexes = SledIndexes::new(folder, 4 << 20).unwrap();
            let index = indexes.open("index").unwrap();
            change(&*index);
            indexes.close("index", index).unwrap();
        };
        self.reopened(EngineOptions::default(), PoolLimits::default(), change).await
    }

    async fn reopened(
        self,
        options: EngineOptions,
        pool_limits: PoolLimits,
        meanwhile: impl FnOnce(&Path),
    ) -> Self {
        self.store.close().await.unwrap();
        let Self { clock, key, limits, workspace, random, folder, .. } = self;
        meanwhile(folder.path());
        let pool = CpuPool::new(pool_limits);
        let store = open(&folder, &random, &pool, options);
        let (app, api) = mount(&store, pool, &clock, &random, &limits);
        Self { api, app, clock, key, limits, store, workspace, random, folder }
    }

    pub(crate) async fn close_store(&self) {
        self.store.close().await.unwrap();
    }

    /// A new key of the first workspace.
    pub(crate) async fn key_with(&self, scopes: &[Scope]) -> String {
        self.key_in(self.workspace, scopes, None).await
    }

    /// A new key of the first workspace that expires at `end`.
    pub(crate) async fn key_until(&self, end: &str) -> String {
        self.key_in(self.workspace, &[Scope::Admin], Timestamp::parse(end)).await
    }

    /// An admin key of a new workspace.
    pub(crate) async fn other_workspace(&self) -> String {
        let id = WorkspaceId::draw(&*self.random);
        let workspace = Workspace { id, name: "other".to_owned(), created_at: self.clock.now() };
        self.store.insert_workspace(workspace).await.unwrap();
        self.key_in(id, &[Scope::Admin], None).await
    }

    async fn key_in(&self, workspace: WorkspaceId, scopes: &[Scope], end: Option<Timestamp>) -> String {
        let text = KeyText::draw(&*self.random);
        let key = ApiKey {
            id: text.id(),
            workspace,
            name: "test".to_owned(),
            hash: text.hash(),
            scopes: scopes.to_vec(),
            created_at: self.clock.now(),
            expires_at: end,
        };
        self.store.insert_key(key).await.unwrap();
        text.reveal().to_owned()
    }

    /// A request with the server's own key.
    pub(crate) fn call(&self, method: Method, path: impl AsRef<str>) -> Call {
        self.open_call(method, path).key(&self.key)
    }

    /// A request without a key.
    pub(crate) fn open_call(&self, method: Method, path: impl AsRef<str>) -> Call {
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

    /// The id of a new draft with these questions.
    pub(crate) async fn draft(&self, questions: Value) -> String {
        let form = json!({"title": "Visit", "questions": questions});
        self.post("/api/v1/forms", form).send().await.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// The id of a new published form with these questions.
    pub(crate) async fn published(&self, questions: Value) -> String {
        let form = self.draft(questions).await;
        self.patch(format!("/api/v1/forms/{form}"), json!({"status": "published"})).send().await.expect(200);
        form
    }

    /// The id of a new draft with this definition, which need not be one that is accepted.
    pub(crate) async fn stored(&self, definition: Definition) -> String {
        let id = FormId::draw(&*self.random);
        let (form, version) = Form::create(id, self.workspace, definition, self.clock.now());
        let new = NewForm { form, version: version.to_stored(), idempotency_key: None };
        let step = self.store.insert_form(new).await.unwrap();
        assert!(matches!(step, StepResult::Done(_)));
        id.to_string()
    }

    /// The id of a new submission to `form`.
    pub(crate) async fn submit(&self, form: &str, answers: Value) -> String {
        let path = format!("/api/v1/forms/{form}/submissions");
        let made = self.post(path, json!({"answers": answers})).send().await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// Listens on a port of its own.
    pub(crate) async fn listen(&self) -> Wire {
        Wire::listen(self.api.clone(), self.limits.clone()).await
    }
}

fn open(
    folder: &tempfile::TempDir,
    random: &Arc<Scrambled>,
    pool: &CpuPool,
    options: EngineOptions,
) -> SledStore {
    let options = EngineOptions { verify_index: false, preallocate: false, ..options };
    SledStore::open(folder.path(), options, pool.clone(), random.clone(), Arc::new(|_| ())).unwrap()
}

fn mount(
    store: &SledStore,
    pool: CpuPool,
    clock: &Arc<HandClock>,
    random: &Arc<Scrambled>,
    limits: &HttpLimits,
) -> (Arc<App>, HttpService) {
    let app = App::new(Arc::new(store.clone()), pool, clock.clone(), random.clone(), Limits::default());
    let app = Arc::new(app);
    (app.clone(), router(app, limits.clone()))
}

/// Three questions, one of each kind, of which the first must be answered.
pub(crate) fn questions() -> Value {
    json!([ {"type": "short_text", "title": "Your name?", "required": true}, {"type": "email", "title": "Your address?"}, {"type": "rating", "title": "How was it?"}, ])
}

/// A request on its way to the router.
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

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        *self.request.body_mut() = body.into();
        self
    }

    /// As if it came over the network from `address`.
    pub(crate) fn coming_from(mut self, address: &str) -> Self {
        let address: IpAddr = address.parse().unwrap();
        self.request.extensions_mut().insert(Peer(address));
        self.header("host", "localhost")
    }

    /// The answer, whose body was not read.
    pub(crate) async fn response(self) -> Response {
        self.api.into_router().oneshot(self.request).await.unwrap()
    }

    pub(crate) async fn send(self) -> Answer {
        let (method, path) = (self.request.method().clone(), self.request.uri().path().to_owned());
        let response = self.response().await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        document::check(&method, &path, &answer);
        answer
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body, of an answer that has the status `status`.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// The problem's code.
    pub(crate) fn code(&self) -> String {
        self.json()["code"]
            .as_str()
            .unwrap_or_else(|| panic!("no problem: {} {:?}", self.status, self.headers))
            .to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The names of the body's members, in order.
    pub(crate) fn fields(&self) -> Vec<String> {
        fields(self.text())
    }
}

/// The names of the members of the object that `text` is, in the order written.
pub(crate) fn fields(text: &str) -> Vec<String> {
    let members = forms::domain::json::parse_object(text).unwrap();
    members.into_iter().map(|(name, ..)| name).collect()
}
