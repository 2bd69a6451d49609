//! Seats, slugs, ids and counts with 64 clients at once, through `kill -9`, deletion and restore.
//!
//! The long form: `FORMS_KILLS=200 cargo test --release --test it process::exact`.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::block_on;
use super::common::fill::{expect, member};
use super::common::server::{Server, forms_serve, operator_key};
use super::common::settings;
use super::common::wire::{Connection, request};
use crate::store::Scrambled;
use forms::id::Random;

/// Rounds, where `FORMS_KILLS` says nothing else; each ends with a kill.
const ROUNDS: u64 = 8;

/// Clients that act at once.
const CLIENTS: u64 = 64;

/// Submissions the form takes.
const SEATS: usize = 150;

/// Answers after which a round's server is killed.
const ENOUGH: u64 = 600;

/// What a client does next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    Submit,
    Trash(String),
    Restore(String),
    /// Makes a form with this slug.
    Name(String),
}

/// One client, and what it knows. No two act on the same submission.
struct Client {
    random: Scrambled,
    /// Its submissions, and whether each is in the trash.
    own: HashMap<String, bool>,
    /// Slugs it got, and of which forms.
    named: Vec<(String, String)>,
    /// What had no answer when the server died.
    unsure: Option<Act>,
}

/// What all clients know of the server.
#[derive(Clone)]
struct Place {
    address: SocketAddr,
    key: Arc<str>,
    form: Arc<str>,
    answered: Arc<AtomicU64>,
}

#[test]
fn seats_slugs_and_counts_are_exact() {
    let rounds = std::env::var("FORMS_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    let folder = settings::folder().unwrap();
    let data = folder.path().join("store");
    block_on(async {
        let mut server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
        let key: Arc<str> = operator_key(&data).unwrap().into();
        let form: Arc<str> = crowded_form(&server, &key).await.into();
        let mut clients: Vec<_> = (0..CLIENTS).map(Client::new).collect();
        for round in 0..rounds {
            let answered = Arc::new(AtomicU64::new(0));
            let place = Place { address: server.address(), key: key.clone(), form: form.clone(), answered };
            clients = act_until_killed(clients, &place, server).await;
            server = Server::start(&mut forms_serve(&data).unwrap()).unwrap();
            let place = Place { address: server.address(), ..place };
            place.compare(&mut clients, round).await;
            if round % 2 == 1 {
                place.trash_and_restore_the_form().await;
            }
        }
        let place = Place { address: server.address(), key, form, answered: Arc::default() };
        place.fill_the_last_seats().await;
        assert!(
            clients.iter().any(|client| client.own.values().any(|trashed| *trashed)),
            "nothing was deleted"
        );
        server.kill().unwrap();
    });
}

async fn crowded_form(server: &Server, key: &str) -> String {
    let definition = format!(
        r#"{{"title":"Crowded","questions":[{{"type":"short_text","title":"Name"}}],"settings":{{"max_responses":{SEATS}}}}}"#
    );
    let mut connection = Connection::open(server.address()).await.unwrap();
    let create = request("POST", "/api/v1/forms", key, &definition);
    let id = member(expect(&mut connection, &create, 201).await.unwrap(), "id").unwrap();
    let publish = request("PATCH", &format!("/api/v1/forms/{id}"), key, r#"{"status":"published"}"#);
    expect(&mut connection, &publish, 200).await.unwrap();
    id
}

/// Lets all clients act at once, and kills the server in the middle of it.
async fn act_until_killed(clients: Vec<Client>, place: &Place, server: Server) -> Vec<Client> {
    let acting: Vec<_> =
        clients.into_iter().map(|client| tokio::spawn(client.act_until_cut_off(place.clone()))).collect();
    while place.answered.load(Ordering::Relaxed) < ENOUGH {
        tokio::task::yield_now().await;
    }
    server.kill().unwrap();
    let mut clients = Vec::new();
    for client in acting {
        clients.push(client.await.unwrap());
    }
    clients
}

impl Client {
    fn new(seed: u64) -> Self {
        Self { random: Scrambled::new(seed), own: HashMap::new(), named: Vec::new(), unsure: None }
    }

    async fn act_until_cut_off(mut self, place: Place) -> Self {
        let Ok(mut connection) = Connection::open(place.address).await else { return self };
        loop {
            let act = self.next();
            let Ok(answer) = connection.exchange(&place.request_of(&act)).await else {
                self.unsure = Some(act);
                return self;
            };
            self.learn(act, answer.status, answer.body);
            place.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn draw(&self, bound: usize) -> usize {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        (u64::from_be_bytes(bytes) % bound as u64) as usize
    }

    fn next(&self) -> Act {
        let mut own: Vec<_> = self.own.iter().collect();
        own.sort();
        match (self.draw(10), own.len()) {
            (0, _) => Act::Name(format!("slug-{}", self.draw(1_000))),
            (1..5, 1..) => match own[self.draw(own.len())] {
                (id, true) => Act::Restore(id.clone()),
                (id, false) => Act::Trash(id.clone()),
            },
            _ => Act::Submit,
        }
    }

    fn learn(&mut self, act: Act, status: u16, body: &[u8]) {
        match (act, status) {
            (Act::Submit, 201) => drop(self.own.insert(member(body, "id").unwrap(), false)),
            (Act::Trash(id), 204) => drop(self.own.insert(id, true)),
            (Act::Restore(id), 200) => drop(self.own.insert(id, false)),
            (Act::Name(slug), 201) => self.named.push((slug, member(body, "id").unwrap())),
            (Act::Submit | Act::Restore(_), 409) => assert_eq!(member(body, "code").unwrap(), "form_full"),
            (Act::Name(_), 409) => assert_eq!(member(body, "code").unwrap(), "slug_taken"),
            (act, status) => panic!("{act:?} was answered {status}: {}", String::from_utf8_lossy(body)),
        }
    }
}

impl Place {
    fn request_of(&self, act: &Act) -> Vec<u8> {
        let submissions = format!("/api/v1/forms/{}/submissions", self.form);
        let (method, path, body) = match act {
            Act::Submit => ("POST", submissions, r#"{"answers":{"q1":"a seat"}}"#.to_owned()),
            Act::Trash(id) => ("DELETE", format!("{submissions}/{id}"), String::new()),
            Act::Restore(id) => ("POST", format!("{submissions}/{id}/restore"), String::new()),
            Act::Name(slug) => {
                let body = format!(r#"{{"title":"Named","slug":"{slug}","questions":[]}}"#);
                ("POST", "/api/v1/forms".to_owned(), body)
            }
        };
        request(method, &path, &self.key, &body)
    }

    async fn ask(&self, method: &str, path: &str, status: u16) -> Value {
        let mut connection = Connection::open(self.address).await.unwrap();
        let request = request(method, &format!("/api/v1/forms{path}"), &self.key, "");
        let body = expect(&mut connection, &request, status).await.unwrap();
        if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() }
    }

    /// Ids of the submissions outside the trash, or in it.
    async fn ids(&self, trashed: bool) -> HashSet<String> {
        let (mut ids, mut cursor) = (HashSet::new(), String::new());
        loop {
            let path = format!("/{}/submissions?limit=100&trashed={trashed}{cursor}", self.form);
            let page = self.ask("GET", &path, 200).await;
            for submission in page["submissions"].as_array().unwrap() {
                assert!(
                    ids.insert(submission["id"].as_str().unwrap().to_owned()),
                    "{submission} is there twice"
                );
            }
            let Some(next) = page["next_cursor"].as_str() else { return ids };
            cursor = format!("&cursor={next}");
        }
    }

    /// Fails unless the server shows what the clients know, and what may have been done without an answer, and no more.
    async fn compare(&self, clients: &mut [Client], round: u64) {
        let (live, trashed) = (self.ids(false).await, self.ids(true).await);
        let form = self.ask("GET", &format!("/{}", self.form), 200).await;
        assert_eq!(form["response_count"], live.len(), "round {round}");
        assert!(live.len() <= SEATS, "round {round}: {} submissions sit on {SEATS} seats", live.len());
        assert!(live.is_disjoint(&trashed), "round {round}");
        let unsure: Vec<_> = clients.iter_mut().filter_map(|client| client.unsure.take()).collect();
        for act in &unsure {
            let (Act::Trash(id) | Act::Restore(id)) = act else { continue };
            let owner = clients.iter_mut().find(|client| client.own.contains_key(id)).unwrap();
            owner.own.insert(id.clone(), trashed.contains(id));
        }
        let known: HashMap<_, _> = clients.iter().flat_map(|client| &client.own).collect();
        for (id, is_trashed) in &known {
            let there = if **is_trashed { &trashed } else { &live };
            assert!(
                there.contains(*id),
                "round {round}: {id} is not where it was last (trash: {is_trashed})"
            );
        }
        let strange: Vec<_> = live.union(&trashed).filter(|id| !known.contains_key(id)).cloned().collect();
        let unanswered = unsure.iter().filter(|act| **act == Act::Submit).count();
        assert!(strange.len() <= unanswered, "round {round}: {strange:?} were never sent");
        // Whoever sent them: from now on they must stay.
        clients[0].own.extend(strange.into_iter().map(|id| (id, false)));
        self.compare_slugs(clients, &unsure, round).await;
    }

    async fn compare_slugs(&self, clients: &mut [Client], unsure: &[Act], round: u64) {
        let forms = self.ask("GET", "?limit=1000", 200).await;
        let mut holders = HashMap::new();
        for form in forms["forms"].as_array().unwrap() {
            let Some(slug) = form["slug"].as_str() else { continue };
            let before = holders.insert(slug.to_owned(), form["id"].as_str().unwrap().to_owned());
            assert_eq!(before, None, "round {round}: two forms have the slug `{slug}`");
        }
        let named: HashMap<_, _> = clients.iter().flat_map(|client| client.named.iter().cloned()).collect();
        assert_eq!(
            named.len(),
            clients.iter().map(|client| client.named.len()).sum::<usize>(),
            "a slug twice"
        );
        for (slug, form) in &named {
            assert_eq!(holders.get(slug), Some(form), "round {round}: {slug}");
        }
        let strange: Vec<_> = holders.into_iter().filter(|(slug, _)| !named.contains_key(slug)).collect();
        let asked = |slug: &String| unsure.contains(&Act::Name(slug.clone()));
        assert!(
            strange.iter().all(|(slug, _)| asked(slug)),
            "round {round}: {strange:?} were never asked for"
        );
        clients[0].named.extend(strange);
    }

    /// What was in the form's own trash stays there.
    async fn trash_and_restore_the_form(&self) {
        let before = (self.ids(false).await, self.ids(true).await);
        self.ask("DELETE", &format!("/{}", self.form), 204).await;
        self.ask("GET", &format!("/{}/submissions", self.form), 404).await;
        let form = self.ask("POST", &format!("/{}/restore", self.form), 200).await;
        assert_eq!(form["response_count"], before.0.len());
        assert_eq!((self.ids(false).await, self.ids(true).await), before);
    }

    async fn fill_the_last_seats(&self) {
        let mut connection = Connection::open(self.address).await.unwrap();
        let submit = self.request_of(&Act::Submit);
        while connection.exchange(&submit).await.unwrap().status == 201 {}
        let live = self.ids(false).await;
        assert_eq!(live.len(), SEATS);
        let freed = live.into_iter().next().unwrap();
        assert_eq!(
            connection.exchange(&self.request_of(&Act::Trash(freed.clone()))).await.unwrap().status,
            204
        );
        assert_eq!(connection.exchange(&submit).await.unwrap().status, 201);
        let full = connection.exchange(&self.request_of(&Act::Restore(freed))).await.unwrap();
        assert_eq!((full.status, member(full.body, "code").unwrap().as_str()), (409, "form_full"));
    }
}
