//! Response limit, slugs, ids and counts under 64 concurrent clients, with `kill -9`, deletion and restore.
//!
//! The long form: `FORMS_KILLS=200 cargo test --release --test it process::concurrent_clients`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::common::endpoint::Endpoint;
use super::common::fill::{expect, member};
use super::common::server::{Server, operator_key};
use super::common::wire::{Connection, request};
use super::{start, with_data};
use crate::engine::random::Random;

/// Rounds unless `FORMS_KILLS` is set; each ends with a kill.
const ROUNDS: u64 = 4;

/// Concurrent clients.
const CLIENTS: u64 = 64;

/// The form's `max_responses`.
const MAX_RESPONSES: usize = 150;

/// Responses after which a round's server is killed.
const RESPONSES_PER_ROUND: u64 = 600;

/// A request that a client can send.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// Creates a form with this slug.
    Name(String),
    Submit,
    Trash(String),
    Restore(String),
    Edit(String),
    Erase(String),
}

/// One client and the state it expects. No two clients change the same submission.
struct Client {
    random: Random,
    /// Its submissions by id; true if in the trash.
    submissions: HashMap<String, bool>,
    /// The slugs of its forms.
    slugs: Vec<String>,
    /// The request without a response when the server was killed.
    pending: Option<Action>,
}

/// The server and form that all clients use.
#[derive(Clone)]
struct Target {
    endpoint: Endpoint,
    key: Arc<str>,
    form: Arc<str>,
    responses: Arc<AtomicU64>,
}

#[test]
fn the_response_limit_slugs_and_counts_are_exact_under_concurrency() {
    let rounds = std::env::var("FORMS_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    with_data(async |data| {
        let mut server = start(data);
        let key: Arc<str> = operator_key(data).unwrap().into();
        let form: Arc<str> = create_limited_form(&server, &key).await.into();
        let mut clients: Vec<_> = (0..CLIENTS).map(Client::new).collect();
        for round in 0..rounds {
            let responses = Arc::new(AtomicU64::new(0));
            let target =
                Target { endpoint: server.endpoint(), key: key.clone(), form: form.clone(), responses };
            clients = run_until_killed(clients, &target, server).await;
            server = start(data);
            let target = Target { endpoint: server.endpoint(), ..target };
            target.compare(&mut clients, round).await;
            if round % 2 == 1 {
                target.trash_and_restore_form().await;
            }
        }
        let target = Target { endpoint: server.endpoint(), key, form, responses: Arc::default() };
        target.fill_the_form().await;
        assert!(
            clients.iter().any(|client| client.submissions.values().any(|trashed| *trashed)),
            "nothing was deleted"
        );
        server.kill().unwrap();
    });
}

async fn create_limited_form(server: &Server, key: &str) -> String {
    let definition = format!(
        r#"{{"title":"Limited","questions":[{{"type":"short_text","title":"Name"}}],"settings":{{"max_responses":{MAX_RESPONSES}}}}}"#
    );
    let mut connection = Connection::open(server.endpoint()).await.unwrap();
    let create = request("POST", "/api/v1/forms", key, &definition);
    let id = member(expect(&mut connection, &create, 201).await.unwrap(), "id").unwrap();
    let publish = request("PATCH", &format!("/api/v1/forms/{id}"), key, r#"{"status":"published"}"#);
    expect(&mut connection, &publish, 200).await.unwrap();
    id
}

/// Runs all clients concurrently, and kills the server while requests are in flight.
async fn run_until_killed(clients: Vec<Client>, target: &Target, server: Server) -> Vec<Client> {
    let running: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(client.run_until_disconnected(target.clone())))
        .collect();
    while target.responses.load(Ordering::Relaxed) < RESPONSES_PER_ROUND {
        tokio::task::yield_now().await;
    }
    server.kill().unwrap();
    let mut clients = Vec::new();
    for client in running {
        clients.push(client.await.unwrap());
    }
    clients
}

impl Client {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), submissions: HashMap::new(), slugs: Vec::new(), pending: None }
    }

    async fn run_until_disconnected(mut self, target: Target) -> Self {
        let Ok(mut connection) = Connection::open(target.endpoint).await else { return self };
        loop {
            let action = self.next();
            let Ok(answer) = connection.exchange(&target.request_of(&action)).await else {
                self.pending = Some(action);
                return self;
            };
            self.record(action, answer.status, answer.body);
            target.responses.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn next(&mut self) -> Action {
        let mut own: Vec<_> = self.submissions.iter().collect();
        own.sort();
        match (self.random.below(10), own.len()) {
            (9, _) => Action::Name(format!("slug-{}", self.random.below(300))),
            (..4, 1..) => match (own[self.random.below(own.len())], self.random.below(4)) {
                ((id, true), 0) => Action::Erase(id.clone()),
                ((id, true), _) => Action::Restore(id.clone()),
                ((id, false), 0) => Action::Edit(id.clone()),
                ((id, false), _) => Action::Trash(id.clone()),
            },
            _ => Action::Submit,
        }
    }

    fn record(&mut self, action: Action, status: u16, body: &[u8]) {
        match (action, status) {
            (Action::Submit, 201) => drop(self.submissions.insert(member(body, "id").unwrap(), false)),
            (Action::Trash(id), 204) => drop(self.submissions.insert(id, true)),
            (Action::Restore(id), 200) => drop(self.submissions.insert(id, false)),
            (Action::Erase(id), 204) => drop(self.submissions.remove(&id)),
            (Action::Edit(_), 200) => {}
            (Action::Name(slug), 201) => self.slugs.push(slug),
            (Action::Name(_), 409) => assert_eq!(member(body, "code").unwrap(), "slug_taken"),
            (Action::Submit | Action::Restore(_), 409) => {
                assert_eq!(member(body, "code").unwrap(), "form_full")
            }
            (action, status) => panic!("{action:?} got status {status}: {}", String::from_utf8_lossy(body)),
        }
    }
}

impl Target {
    fn request_of(&self, action: &Action) -> Vec<u8> {
        let submissions = format!("/api/v1/forms/{}/submissions", self.form);
        let (method, path, body) = match action {
            Action::Name(slug) => {
                let body = format!(r#"{{"title":"Named","slug":"{slug}","questions":[]}}"#);
                ("POST", "/api/v1/forms".to_owned(), body)
            }
            Action::Submit => ("POST", submissions, r#"{"answers":{"q1":"an answer"}}"#.to_owned()),
            Action::Trash(id) => ("DELETE", format!("{submissions}/{id}"), String::new()),
            Action::Restore(id) => ("POST", format!("{submissions}/{id}/restore"), String::new()),
            Action::Edit(id) => {
                let number = self.responses.load(Ordering::Relaxed);
                let body = format!(r#"{{"answers":{{"q1":"answer {number}"}}}}"#);
                ("PATCH", format!("{submissions}/{id}"), body)
            }
            Action::Erase(id) => ("DELETE", format!("{submissions}/{id}?purge=true"), String::new()),
        };
        request(method, &path, &self.key, &body)
    }

    async fn call(&self, method: &str, path: &str, status: u16) -> Value {
        let mut connection = Connection::open(self.endpoint).await.unwrap();
        let request = request(method, &format!("/api/v1/forms{path}"), &self.key, "");
        let body = expect(&mut connection, &request, status).await.unwrap();
        if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() }
    }

    /// Ids of the submissions outside the trash, or in it.
    async fn ids(&self, trashed: bool) -> HashSet<String> {
        let (mut ids, mut cursor) = (HashSet::new(), String::new());
        loop {
            let path = format!("/{}/submissions?limit=100&trashed={trashed}{cursor}", self.form);
            let page = self.call("GET", &path, 200).await;
            for submission in page["submissions"].as_array().unwrap() {
                let is_new = ids.insert(submission["id"].as_str().unwrap().to_owned());
                assert!(is_new, "{submission} is listed twice");
            }
            let Some(next) = page["next_cursor"].as_str() else { return ids };
            cursor = format!("&cursor={next}");
        }
    }

    /// Fails unless the server's state is what the clients expect; a request without a response may have been applied.
    async fn compare(&self, clients: &mut [Client], round: u64) {
        let (live, trashed) = (self.ids(false).await, self.ids(true).await);
        let form = self.call("GET", &format!("/{}", self.form), 200).await;
        assert_eq!(form["response_count"], live.len(), "round {round}");
        self.compare_slugs(clients, round).await;
        assert!(
            live.len() <= MAX_RESPONSES,
            "round {round}: {} submissions, the limit is {MAX_RESPONSES}",
            live.len()
        );
        assert!(live.is_disjoint(&trashed), "round {round}");
        let pending: Vec<_> = clients.iter_mut().filter_map(|client| client.pending.take()).collect();
        for action in &pending {
            let (Action::Trash(id) | Action::Restore(id) | Action::Erase(id)) = action else { continue };
            let owner = clients.iter_mut().find(|client| client.submissions.contains_key(id)).unwrap();
            let is_erased = !live.contains(id) && !trashed.contains(id);
            if is_erased && matches!(action, Action::Erase(_)) {
                owner.submissions.remove(id);
            } else {
                owner.submissions.insert(id.clone(), trashed.contains(id));
            }
        }
        let known: HashMap<_, _> = clients.iter().flat_map(|client| &client.submissions).collect();
        for (id, is_trashed) in &known {
            let expected = if **is_trashed { &trashed } else { &live };
            assert!(
                expected.contains(*id),
                "round {round}: {id} has moved (expected in the trash: {is_trashed})"
            );
        }
        let unexpected: Vec<_> = live.union(&trashed).filter(|id| !known.contains_key(id)).cloned().collect();
        let unanswered = pending.iter().filter(|action| **action == Action::Submit).count();
        assert!(unexpected.len() <= unanswered, "round {round}: {unexpected:?} were never sent");
        // It does not matter which client sent them; from now on they must stay.
        clients[0].submissions.extend(unexpected.into_iter().map(|id| (id, false)));
    }

    /// Fails unless each slug that a client was given belongs to one form.
    async fn compare_slugs(&self, clients: &[Client], round: u64) {
        let forms = self.call("GET", "?limit=1000", 200).await;
        let forms = forms["forms"].as_array().unwrap().iter();
        let mut held: Vec<_> = forms.filter_map(|form| form["slug"].as_str()).collect();
        held.sort_unstable();
        assert!(held.is_sorted_by(|one, next| one < next), "round {round}: {held:?}");
        let mut given: Vec<_> = clients.iter().flat_map(|client| &client.slugs).collect();
        given.sort_unstable();
        assert!(given.is_sorted_by(|one, next| one < next), "round {round}: {given:?}");
        assert!(given.iter().all(|slug| held.contains(&slug.as_str())), "round {round}: {given:?}, {held:?}");
    }

    /// Trashes and restores the form; its trashed submissions stay in the trash.
    async fn trash_and_restore_form(&self) {
        let before = (self.ids(false).await, self.ids(true).await);
        self.call("DELETE", &format!("/{}", self.form), 204).await;
        self.call("GET", &format!("/{}/submissions", self.form), 404).await;
        let form = self.call("POST", &format!("/{}/restore", self.form), 200).await;
        assert_eq!(form["response_count"], before.0.len());
        assert_eq!((self.ids(false).await, self.ids(true).await), before);
    }

    async fn fill_the_form(&self) {
        let mut connection = Connection::open(self.endpoint).await.unwrap();
        let submit = self.request_of(&Action::Submit);
        while connection.exchange(&submit).await.unwrap().status == 201 {}
        let live = self.ids(false).await;
        assert_eq!(live.len(), MAX_RESPONSES);
        let freed = live.into_iter().next().unwrap();
        assert_eq!(
            connection.exchange(&self.request_of(&Action::Trash(freed.clone()))).await.unwrap().status,
            204
        );
        assert_eq!(connection.exchange(&submit).await.unwrap().status, 201);
        let full = connection.exchange(&self.request_of(&Action::Restore(freed))).await.unwrap();
        assert_eq!((full.status, member(full.body, "code").unwrap().as_str()), (409, "form_full"));
    }
}
