//! A client that remembers what was acknowledged to it, and holds the server to it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forms::api::SubmissionList;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::common::fill::{Form, expect, member};
use super::common::server::{Server, operator_key};
use super::common::wire::{Connection, request};

const DEFINITION: &str = r#"{"title":"Witnessed","questions":[
    {"type":"short_text","title":"Text","required":true,"max_length":20000},
    {"type":"email","title":"Address"},
    {"type":"rating","title":"Rating"}]}"#;

/// Of so many submissions one is large.
const LARGE_EVERY: u64 = 16;

/// Connections that store at once.
const CONNECTIONS: u64 = 16;

/// What must be there, and what may be.
pub(super) struct Witness {
    form: Form,
    /// Id to number of each submission that was acknowledged, or shown once.
    stored: HashMap<String, u64>,
    /// Numbers that were sent; each once, so that none may be there twice.
    sent: Arc<AtomicU64>,
    /// Of how many submissions one is large.
    large_every: u64,
}

impl Witness {
    /// The same, for which every submission is large.
    pub(super) fn of_large_answers(self) -> Self {
        Self { large_every: 1, ..self }
    }

    /// Makes a published form.
    pub(super) async fn new(server: &Server, data: &std::path::Path) -> Self {
        let key = operator_key(data).unwrap();
        let mut connection = Connection::open(server.address()).await.unwrap();
        let create = request("POST", "/api/v1/forms", &key, DEFINITION);
        let id = member(expect(&mut connection, &create, 201).await.unwrap(), "id").unwrap();
        let publish = request("PATCH", &format!("/api/v1/forms/{id}"), &key, r#"{"status":"published"}"#);
        expect(&mut connection, &publish, 200).await.unwrap();
        let form = Form { address: server.address(), key, id };
        Self { form, stored: HashMap::new(), sent: Arc::new(AtomicU64::new(0)), large_every: LARGE_EVERY }
    }

    /// How many submissions must be there.
    pub(super) fn count(&self) -> usize {
        self.stored.len()
    }

    /// How many submissions were sent; their numbers are below.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The form, at `server`.
    pub(super) fn form(&self, server: &Server) -> Form {
        Form { address: server.address(), ..self.form.clone() }
    }

    /// Stores from many connections at once; after `enough` acknowledgements calls `end`, which ends the server
    /// while more are under way.
    pub(super) async fn store_until<T>(
        &mut self,
        server: Server,
        enough: usize,
        end: impl FnOnce(Server) -> T,
    ) -> T {
        self.store_from(CONNECTIONS, server, enough, end).await
    }

    /// Stores like [`store_until`](Self::store_until), from `connections` connections.
    pub(super) async fn store_from<T>(
        &mut self,
        connections: u64,
        server: Server,
        enough: usize,
        end: impl FnOnce(Server) -> T,
    ) -> T {
        let (acknowledge, mut acknowledged) = unbounded_channel();
        for _ in 0..connections {
            let (form, sent) = (self.form(&server), Arc::clone(&self.sent));
            tokio::spawn(send(form, sent, self.large_every, acknowledge.clone()));
        }
        drop(acknowledge);
        for count in 0..enough {
            let next = acknowledged.recv().await;
            let (id, number) = next.unwrap_or_else(|| panic!("the server ended after {count} answers"));
            self.stored.insert(id, number);
        }
        let ended = end(server);
        while let Some((id, number)) = acknowledged.recv().await {
            self.stored.insert(id, number);
        }
        ended
    }

    /// Stores one submission, and returns status and body of the answer.
    pub(super) async fn store_one(&mut self, server: &Server) -> (u16, Value) {
        let form = self.form(server);
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let mut connection = Connection::open(form.address).await.unwrap();
        let answer = connection.exchange(&submit_large(&form, number, self.large_every)).await.unwrap();
        let body: Value = serde_json::from_slice(answer.body).unwrap();
        if answer.status == 201 {
            self.stored.insert(body["id"].as_str().unwrap().to_owned(), number);
        }
        (answer.status, body)
    }

    /// Fails unless all that was ever acknowledged or shown is there byte for byte, nothing is there that was not
    /// sent, and the form's own count is exact. What is shown now must be there from now on.
    pub(super) async fn verify(&mut self, server: &Server) {
        let form = self.form(server);
        let shown = list(&form).await;
        assert_eq!(form.count().await.unwrap(), shown.len() as u64, "response_count");
        let (mut ids, mut numbers) = (HashMap::new(), HashSet::new());
        for (id, answers) in shown {
            let number = number_of(&answers);
            assert!(number < self.sent.load(Ordering::Relaxed), "{id} was never sent: {answers}");
            assert_eq!(answers, answers_of(number, self.large_every), "{id}");
            assert!(numbers.insert(number), "submission {number} is there twice");
            ids.insert(id, number);
        }
        for (id, number) in &self.stored {
            assert_eq!(ids.get(id), Some(number), "{id}, which was acknowledged or shown, is lost");
        }
        self.stored = ids;
    }
}

async fn send(
    form: Form,
    sent: Arc<AtomicU64>,
    large_every: u64,
    acknowledge: UnboundedSender<(String, u64)>,
) {
    let Ok(mut connection) = Connection::open(form.address).await else { return };
    loop {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        let Ok(answer) = connection.exchange(&submit_large(&form, number, large_every)).await else { return };
        // An orderly end answers what is too late with 503; that is no promise.
        if answer.status == 503 {
            return;
        }
        assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(answer.body));
        if acknowledge.send((member(answer.body, "id").unwrap(), number)).is_err() {
            return;
        }
    }
}

/// The request that stores submission `number`.
pub(super) fn submit(form: &Form, number: u64) -> Vec<u8> {
    submit_large(form, number, LARGE_EVERY)
}

fn submit_large(form: &Form, number: u64, large_every: u64) -> Vec<u8> {
    let body = format!(r#"{{"answers":{}}}"#, answers_of(number, large_every));
    request("POST", &format!("{}/submissions", form.path()), &form.key, &body)
}

/// What stands in the answers of submission `number`, and in no other's.
pub(super) fn mark_of(number: u64) -> String {
    format!("person{number:012}@example.com")
}

/// The answers of submission `number`: some are larger than a row of the index may be, and are kept in pieces.
fn answers_of(number: u64, large_every: u64) -> String {
    let words = if number % large_every == large_every / 2 { 600 } else { number % 40 };
    let text = "byte for byte ".repeat(words as usize + 1);
    let mark = mark_of(number);
    format!(r#"{{"q2": "{mark}", "q1":"{text}","q3":{}}}"#, number % 5 + 1)
}

fn number_of(answers: &str) -> u64 {
    let (_, rest) = answers.split_once("person").unwrap();
    rest.split('@').next().unwrap().parse().unwrap()
}

/// Ids and answers of all submissions.
async fn list(form: &Form) -> Vec<(String, String)> {
    let mut connection = Connection::open(form.address).await.unwrap();
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = form.get(&format!("/submissions?limit=1000{cursor}"));
        let body = expect(&mut connection, &page, 200).await.unwrap();
        let page: SubmissionList = serde_json::from_slice(body).unwrap();
        let rows = page.submissions.into_iter();
        all.extend(rows.map(|submission| (submission.id.to_string(), submission.answers.get().to_owned())));
        let Some(next) = page.next_cursor else { return all };
        cursor = format!("&cursor={next}");
    }
}
