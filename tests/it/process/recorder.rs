//! A client that records acknowledged submissions and verifies that the server still has them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forms::api::SubmissionList;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::common::fill::{Form, expect, member};
use super::common::server::{Server, operator_key};
use super::common::wire::{Connection, request};

const DEFINITION: &str = r#"{"title":"Recorded","questions":[
    {"type":"short_text","title":"Text","required":true,"max_length":20000},
    {"type":"email","title":"Address"},
    {"type":"rating","title":"Rating"}]}"#;

/// One submission in this many is large.
const LARGE_EVERY: u64 = 16;

/// Concurrent connections.
const CONNECTIONS: u64 = 16;

/// The submissions that the server must have, and those it may have.
pub(super) struct Recorder {
    form: Form,
    /// Number by id of each submission that was acknowledged or listed.
    stored: HashMap<String, u64>,
    /// How many submissions were sent; each number below it was used once.
    sent: Arc<AtomicU64>,
    /// One submission in this many is large.
    large_every: u64,
}

impl Recorder {
    /// Makes every submission large.
    pub(super) fn with_large_answers_only(self) -> Self {
        Self { large_every: 1, ..self }
    }

    /// Creates a published form.
    pub(super) async fn new(server: &Server, data: &std::path::Path) -> Self {
        let key = operator_key(data).unwrap();
        let mut connection = Connection::open(server.endpoint()).await.unwrap();
        let create = request("POST", "/api/v1/forms", &key, DEFINITION);
        let id = member(expect(&mut connection, &create, 201).await.unwrap(), "id").unwrap();
        let publish = request("PATCH", &format!("/api/v1/forms/{id}"), &key, r#"{"status":"published"}"#);
        expect(&mut connection, &publish, 200).await.unwrap();
        let form = Form { endpoint: server.endpoint(), key, id };
        Self { form, stored: HashMap::new(), sent: Arc::new(AtomicU64::new(0)), large_every: LARGE_EVERY }
    }

    /// The number of submissions that the server must have.
    pub(super) fn count(&self) -> usize {
        self.stored.len()
    }

    /// The ids of these submissions.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.stored.keys().map(String::as_str)
    }

    /// These ids with the numbers of the submissions.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, u64)> {
        self.stored.iter().map(|(id, number)| (id.as_str(), *number))
    }

    /// How many submissions were sent; they are numbered from 0.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The form, at `server`.
    pub(super) fn form(&self, server: &Server) -> Form {
        Form { endpoint: server.endpoint(), ..self.form.clone() }
    }

    /// The ids of all submissions that a server with another key shows.
    pub(super) async fn shown_with(&self, server: &Server, key: String) -> HashSet<String> {
        list(&Form { key, ..self.form(server) }).await.into_iter().map(|(id, _)| id).collect()
    }

    /// Submits from many connections; after `enough` acknowledgements calls `end`, which stops the server while more
    /// requests are in flight.
    pub(super) async fn store_until<T>(
        &mut self,
        server: Server,
        enough: usize,
        end: impl FnOnce(Server) -> T,
    ) -> T {
        self.store_from(CONNECTIONS, server, enough, end).await
    }

    /// Like [`store_until`](Self::store_until), with this number of connections.
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

    /// Sends one submission and returns status and body of the response.
    pub(super) async fn store_one(&mut self, server: &Server) -> (u16, Value) {
        let form = self.form(server);
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let mut connection = Connection::open(form.endpoint).await.unwrap();
        let answer = connection.exchange(&submit_large(&form, number, self.large_every)).await.unwrap();
        let body: Value = serde_json::from_slice(answer.body).unwrap();
        if answer.status == 201 {
            self.stored.insert(body["id"].as_str().unwrap().to_owned(), number);
        }
        (answer.status, body)
    }

    /// Fails unless the server has every acknowledged or listed submission byte for byte, none that was not sent, and
    /// an exact count. From now on it must have every submission it lists now.
    pub(super) async fn verify(&mut self, server: &Server) {
        let form = self.form(server);
        let shown = list(&form).await;
        assert_eq!(form.count().await.unwrap(), shown.len() as u64, "response_count");
        let (mut ids, mut numbers) = (HashMap::new(), HashSet::new());
        for (id, answers) in shown {
            let number = number_of(&answers);
            assert!(number < self.sent.load(Ordering::Relaxed), "{id} was never sent: {answers}");
            assert_eq!(answers, answers_of(number, self.large_every), "{id}");
            assert!(numbers.insert(number), "submission {number} is stored twice");
            ids.insert(id, number);
        }
        for (id, number) in &self.stored {
            assert_eq!(ids.get(id), Some(number), "{id} was acknowledged or listed and is lost");
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
    let Ok(mut connection) = Connection::open(form.endpoint).await else { return };
    loop {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        let Ok(answer) = connection.exchange(&submit_large(&form, number, large_every)).await else { return };
        // A server that shuts down refuses late requests with 503; those are not acknowledged.
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

/// A text that only the answers of submission `number` contain.
pub(super) fn marker(number: u64) -> String {
    format!("person{number:012}@example.com")
}

/// The answers of submission `number`; some exceed the size of an index row and are stored in pieces.
fn answers_of(number: u64, large_every: u64) -> String {
    let words = if number % large_every == large_every / 2 { 600 } else { number % 40 };
    let text = "byte for byte ".repeat(words as usize + 1);
    let marker_text = marker(number);
    format!(r#"{{"q2": "{marker_text}", "q1":"{text}","q3":{}}}"#, number % 5 + 1)
}

fn number_of(answers: &str) -> u64 {
    let (_, rest) = answers.split_once("person").unwrap();
    rest.split('@').next().unwrap().parse().unwrap()
}

/// Ids and answers of all submissions.
async fn list(form: &Form) -> Vec<(String, String)> {
    let mut connection = Connection::open(form.endpoint).await.unwrap();
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
