//! Random requests to two servers, one over each store: their answers are equal.
//!
//! Some ids are drawn by the store. They are replaced by the order of their appearance, in answers and in the requests that
//! name them. `FORMS_SEQUENCES=100` runs more sequences of requests.

use std::collections::HashMap;
use std::time::Duration;

use forms::id::{DeliveryId, EventId, SubmissionId};
use tokio::time::{sleep, timeout};

use crate::engine::random::{Random, each_seed};
use crate::harness::prelude::*;

/// Requests of a sequence.
const REQUESTS: usize = 300;

/// One server, and the names of what has appeared in its answers.
struct Side {
    server: Server,
    /// The name of each id and cursor.
    names: HashMap<String, String>,
    texts: HashMap<String, String>,
}

impl Side {
    fn new(server: Server) -> Self {
        Self { server, names: HashMap::new(), texts: HashMap::new() }
    }

    fn add_name(&mut self, kind: &str, text: &str) {
        let name = format!("{kind}_{}", self.texts.len());
        self.names.insert(text.to_owned(), name.clone());
        self.texts.insert(name, text.to_owned());
    }

    /// Replaces ids and cursors by names, or names by ids and cursors.
    fn replace(text: &str, replacements: &HashMap<String, String>) -> String {
        let is_word = |found: char| found.is_ascii_alphanumeric() || "_-".contains(found);
        let words = text.split_inclusive(|found| !is_word(found));
        words
            .map(|word| {
                let end = word.trim_end_matches(|found| !is_word(found)).len();
                let (word, rest) = word.split_at(end);
                replacements.get(word).map_or(word, String::as_str).to_owned() + rest
            })
            .collect()
    }

    /// Names the ids in `text` that the store has drawn.
    fn name_ids(&mut self, text: &str) {
        for word in text.split(|found: char| !found.is_ascii_alphanumeric() && found != '_') {
            let kind = match word.split_once('_') {
                Some((kind @ "sub", _)) if word.parse::<SubmissionId>().is_ok() => kind,
                Some((kind @ "evt", _)) if word.parse::<EventId>().is_ok() => kind,
                Some((kind @ "dlv", _)) if word.parse::<DeliveryId>().is_ok() => kind,
                _ => continue,
            };
            if !self.names.contains_key(word) {
                self.add_name(kind, word);
            }
        }
    }

    /// Sends a request and returns the answer, with names in place of ids.
    async fn send(&mut self, request: &Request) -> Answer {
        let path = Self::replace(&request.path, &self.texts);
        let mut call = self.server.call(request.method.clone(), path);
        if let Some(body) = &request.body {
            call = call.header("content-type", "application/json").body(Self::replace(body, &self.texts));
        }
        for (name, value) in &request.headers {
            call = call.header(name, value);
        }
        let response = call.send().await;
        let next = response.next_page();
        // Where a page ends is up to the store, so that another answer may have the same cursor or not.
        if let Some((_, cursor)) = next.as_ref().and_then(|next| next.split_once("cursor=")) {
            self.add_name("cursor", cursor);
        }
        self.name_ids(response.text());
        let request_id = response.header("x-request-id").unwrap();
        // Drawn for each request, and the length of the cursor with the rest.
        let hidden = ["x-request-id", "content-length"];
        let headers = response.headers.iter().filter(|(name, _)| !hidden.contains(&name.as_str()));
        let headers: Vec<_> =
            headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        let show = |text: &str| Self::replace(text, &self.names);
        Answer {
            status: response.status.as_u16(),
            headers: show(&headers.join("\n")),
            body: without_jitter(&show(&response.text().replace(request_id, "REQUEST"))),
            next: next.map(|next| show(&next)),
        }
    }

    /// The times, the status and the error of each delivery.
    async fn statuses(&self) -> Vec<[Value; 4]> {
        let list = self.server.read("/api/v1/deliveries?limit=1000").await;
        let deliveries = list["deliveries"].as_array().unwrap().iter();
        deliveries
            .map(|one| {
                ["created_at", "status", "last_error", "finished_at"].map(|member| one[member].clone())
            })
            .collect()
    }

    /// Delivers what is due, and returns what was sent, in an order that does not depend on the store.
    async fn deliver(&mut self) -> Vec<String> {
        self.server.deliver().await;
        let sent = self.server.sender.take();
        let body = |body: &[u8]| Self::replace(std::str::from_utf8(body).unwrap(), &self.names);
        let mut sent: Vec<_> = sent.iter().map(|sent| format!("{} {}", sent.url, body(&sent.body))).collect();
        sent.sort_unstable();
        sent
    }
}

/// Replaces the times that depend on the order in which deliveries failed.
fn without_jitter(body: &str) -> String {
    let mut body = body.to_owned();
    for member in ["\"next_attempt_at\":\"", "\"oldest_due_at\":\""] {
        let mut parts = body.split(member);
        let mut rest = parts.next().unwrap().to_owned();
        for part in parts {
            rest += member;
            rest += part.split_once('"').unwrap().1;
        }
        body = rest;
    }
    body
}

#[derive(Debug, Clone)]
struct Request {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

impl Request {
    fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), headers: Vec::new(), body: None }
    }
}

#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    headers: String,
    body: String,
    /// The path of the next page.
    next: Option<String>,
}

/// What has appeared in answers, to be named in requests.
#[derive(Default)]
struct World {
    forms: Vec<String>,
    /// The paths of submissions.
    submissions: Vec<String>,
    deliveries: Vec<String>,
    keys: Vec<String>,
    workspaces: Vec<String>,
    next_pages: Vec<String>,
    sent: Vec<Request>,
}

const TEXTS: [&str; 6] = ["soup", "salad", "Süßkartoffel 🍠", "=1+1", "a \"b\"\n", "  x "];

const SUMMARY_FILTERS: [&str; 4] = ["", "q=soup", "where=score.gte=4", "since=2026-11-20T09:00:05Z"];

impl World {
    fn form(&self, random: &mut Random) -> String {
        // Those made last are used most.
        let count = self.forms.len();
        let recent = &self.forms[count.saturating_sub(4)..];
        let form = if random.once_in(6) { random.pick(&self.forms) } else { random.pick(recent) };
        match random.below(8) {
            0 => format!("{FORMS}/{}", random.pick(&["one", "two", "three"])),
            _ => format!("{FORMS}/{form}"),
        }
    }

    fn submission(&self, random: &mut Random) -> String {
        match self.submissions.len() {
            0 => format!("{}/submissions/sub_00000000000000000000000000", self.form(random)),
            count => {
                let recent = &self.submissions[count.saturating_sub(12)..];
                if random.once_in(4) { random.pick(&self.submissions) } else { random.pick(recent) }.clone()
            }
        }
    }

    fn delivery(&self, random: &mut Random) -> String {
        match self.deliveries.is_empty() {
            true => "dlv_00000000000000000000000000".to_owned(),
            false => random.pick(&self.deliveries).clone(),
        }
    }

    /// Remembers what `answer` to `request` has.
    fn learn(&mut self, request: Request, answer: &Answer) {
        self.next_pages.extend(answer.next.clone());
        let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if answer.status == 201 && request.path == "/api/v1/keys" {
            self.keys.extend(body["id"].as_str().map(str::to_owned));
        }
        let id = |value: &Value| value["id"].as_str().map(str::to_owned);
        if answer.status == 201 && request.path.starts_with(FORMS) {
            let made = id(&body).unwrap_or_default();
            match request.path.split_once('?').map_or(&*request.path, |(path, _)| path) {
                FORMS => self.forms.push(made),
                path if path.ends_with("/submissions") => self.submissions.push(format!("{path}/{made}")),
                _ => {}
            }
        }
        if let Some(path) = request.path.strip_suffix(":batch") {
            let results = body["results"].as_array().into_iter().flatten();
            self.submissions.extend(results.filter_map(id).map(|id| format!("{path}/{id}")));
        }
        let listed = |name: &str| body[name].as_array().into_iter().flatten().filter_map(id).collect();
        for (known, name) in [(&mut self.deliveries, "deliveries"), (&mut self.workspaces, "workspaces")] {
            let found: Vec<String> = listed(name);
            known.extend(found.into_iter().filter(|id| !known.contains(id)).collect::<Vec<_>>());
        }
        self.sent.push(request);
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each kind of request")]
    fn request(&self, random: &mut Random) -> Request {
        let (form, submission) = (self.form(random), self.submission(random));
        let number = random.below(5);
        let (method, path, body) = match random.below(36) {
            0 => (
                Method::POST,
                format!("{FORMS}{}", random.pick(&["", "", "?dry_run=true"])),
                Some(definition(random)),
            ),
            1..=3 => (Method::PATCH, form, Some(change(random))),
            4 => (Method::PATCH, form, Some(json!({"status": "published"}))),
            5 => (Method::DELETE, form, None),
            6 if random.once_in(3) => (Method::DELETE, format!("{form}?purge=true"), None),
            6 => (Method::POST, format!("{form}/restore"), None),
            7 => {
                let rest =
                    ["", "/versions", "/versions/1", "/versions/2", "/schema", "/integrations", "/page"];
                (Method::GET, format!("{form}{}", random.pick(&rest)), None)
            }
            8 | 9 => {
                let query = [
                    "",
                    "limit=2",
                    "trashed=true",
                    "count=true",
                    "status=draft",
                    "q=vis",
                    "limit=1&count=true&status=published",
                    "trashed=true&limit=1",
                    "accepting_reason=full",
                    "limit=0",
                ];
                (Method::GET, format!("{FORMS}?{}", random.pick(&query)), None)
            }
            10..=14 => {
                let query = ["", "", "", "", "?notify=false", "?dry_run=true"];
                (Method::POST, format!("{form}/submissions{}", random.pick(&query)), Some(answers(random)))
            }
            15 => {
                let rows: Vec<_> = (0..=number).map(|_| answers(random)).collect();
                (Method::POST, format!("{form}/submissions:batch"), Some(json!({"submissions": rows})))
            }
            16 | 17 => (Method::GET, format!("{form}/submissions?{}", filter(random)), None),
            18 => (Method::GET, format!("{form}/summary?{}", random.pick(&SUMMARY_FILTERS)), None),
            19 => (Method::GET, submission, None),
            20 | 21 => (Method::PATCH, submission, Some(answers(random))),
            22 => (Method::DELETE, submission, None),
            23 => (Method::POST, format!("{submission}/restore"), None),
            24 if random.once_in(2) => (Method::DELETE, format!("{submission}?purge=true"), None),
            24 => (Method::GET, format!("{submission}/history?limit=2"), None),
            25 => {
                let query = ["q=soup", "where=score.gte=4", "q=nothing", "q=salad&dry_run=true", ""];
                (Method::POST, format!("{form}/submissions:erase?{}", random.pick(&query)), None)
            }
            26 => {
                let name = random.pick(&["webhook", "other"]);
                let integration = json!({"type": "webhook", "url": "https://example.com/hook", "name": name});
                (Method::POST, format!("{form}/integrations"), Some(integration))
            }
            27 => {
                let path = format!("{form}/integrations/{}", random.pick(&["webhook", "other", "mail"]));
                match random.below(5) {
                    0 => (Method::DELETE, path, None),
                    1 => (Method::POST, format!("{path}/rotate-secret"), None),
                    2 => (Method::GET, path, None),
                    3 => (Method::PATCH, path, Some(json!({"enabled": false}))),
                    _ => (Method::PATCH, path, Some(json!({"enabled": true}))),
                }
            }
            28 | 29 => {
                let query = [
                    "",
                    "limit=2",
                    "status=pending,dead",
                    "status=delivered&limit=1",
                    "integration=int_000000000000",
                    "status=paused",
                    "since=2026-11-20T09:00:01Z",
                    "status=canceled,skipped",
                ];
                (Method::GET, format!("/api/v1/deliveries?{}", random.pick(&query)), None)
            }
            30 => {
                let path = format!("/api/v1/deliveries/{}", self.delivery(random));
                match random.below(5) {
                    0 => (Method::GET, path, None),
                    1 => (Method::GET, format!("{path}/attempts"), None),
                    2 => (Method::GET, format!("{path}/event"), None),
                    3 => (Method::POST, format!("{path}/redeliver"), None),
                    _ => (Method::POST, format!("{path}/cancel"), None),
                }
            }
            31 => {
                let what = random.pick(&["redeliver", "cancel", "redeliver", "redeliver"]);
                let form = form.rsplit_once('/').unwrap().1;
                let body = [
                    json!({}),
                    json!({"form": form}),
                    json!({"dry_run": true}),
                    json!({"status": ["dead"], "rate": "1/s"}),
                ];
                (Method::POST, format!("/api/v1/deliveries:{what}"), Some(random.pick(&body).clone()))
            }
            32 => (Method::GET, "/api/v1/deliveries/stats".to_owned(), None),
            33 => {
                let path = "/api/v1/keys".to_owned();
                let key = format!("{path}/{}", self.keys.last().map_or("key_1", String::as_str));
                match random.below(5) {
                    0 => (Method::GET, path, None),
                    1 => (Method::POST, format!("{key}/rotate"), Some(json!({"grace": "1h"}))),
                    2 => (Method::DELETE, key, None),
                    _ => (Method::POST, path, Some(json!({"name": "CI", "scopes": ["read"]}))),
                }
            }
            34 if random.once_in(3) => {
                let path = "/api/v1/workspaces".to_owned();
                match random.below(3) {
                    0 => (Method::GET, path, None),
                    1 => (Method::POST, path, Some(json!({"name": random.pick(&TEXTS)}))),
                    _ => (
                        Method::DELETE,
                        format!("{path}/{}", self.workspaces.last().map_or("ws_1", String::as_str)),
                        None,
                    ),
                }
            }
            _ if !self.next_pages.is_empty() => (Method::GET, random.pick(&self.next_pages).clone(), None),
            _ => (Method::GET, "/api/v1/whoami".to_owned(), None),
        };
        if !self.sent.is_empty() && random.once_in(20) {
            return random.pick(&self.sent).clone();
        }
        let mut headers = Vec::new();
        if method == Method::POST && random.once_in(4) {
            headers.push(("idempotency-key", format!("key-{}", random.below(6))));
        }
        if method != Method::GET && random.once_in(6) {
            headers.push(("if-match", format!("\"r{}\"", random.below(4) + 1)));
        }
        if path.contains("/submissions?") && method == Method::GET && random.once_in(4) {
            headers.push(("accept", random.pick(&["text/csv", "application/x-ndjson"]).to_string()));
        }
        Request { method, path, headers, body: body.map(|body| body.to_string()) }
    }
}

fn create_form(random: &mut Random) -> Request {
    Request { method: Method::POST, body: Some(definition(random).to_string()), ..Request::get(FORMS) }
}

fn definition(random: &mut Random) -> Value {
    let mut form = json!({
        "title": random.pick(&["Visit", "Lunch", "Visit again"]),
        "questions": [
            {"id": "dish", "type": "short_text", "title": "Dish?"},
            {"id": "score", "type": "rating", "title": "Score?"},
            {"id": "mail", "type": "email", "title": "Address?"},
        ],
    });
    if random.once_in(2) {
        form["slug"] = json!(random.pick(&["one", "two", "three"]));
    }
    if random.once_in(3) {
        form["settings"] = json!({"max_responses": 3 + random.below(5)});
    }
    if random.once_in(2) {
        let events = ["submission.completed", "submission.updated", "submission.deleted", "form.unpublished"];
        let events = &events[..1 + random.below(4)];
        form["integrations"] = json!([
            {"type": "webhook", "url": "https://example.com/hook"},
            {"type": "webhook", "url": "https://example.com/other", "name": "other", "events": events},
        ]);
    }
    form
}

fn change(random: &mut Random) -> Value {
    match random.below(8) {
        0 => json!({"title": random.pick(&TEXTS)}),
        1 => json!({"slug": random.pick(&["one", "two", "three"])}),
        2 => json!({"settings": {"max_responses": random.below(8) + 1}}),
        3 => json!({"settings": {"max_responses": null}}),
        4 => json!({"status": "draft"}),
        5 => {
            json!({"questions": [{"id": "dish", "type": "short_text", "title": random.pick(&["Dish?", "Dish"])}]})
        }
        6 => json!({"integrations": definition(random)["integrations"]}),
        _ => json!({"status": "published", "questions": definition(random)["questions"]}),
    }
}

fn answers(random: &mut Random) -> Value {
    let mut body = json!({"answers": {"dish": random.pick(&TEXTS)}});
    if random.once_in(2) {
        body["answers"]["score"] = json!(random.below(7));
    }
    if random.once_in(5) {
        body["answers"]["mail"] = json!(random.pick(&["a@example.com", "not an address"]));
    }
    if random.once_in(6) {
        body["metadata"] = json!({"source": random.pick(&TEXTS)});
    }
    body
}

fn filter(random: &mut Random) -> String {
    let filters = [
        "",
        "limit=2",
        "count=true",
        "order=asc&limit=3",
        "where=score.gte=4",
        "where=dish.in=soup,salad",
        "q=S%C3%9CSS",
        "filter[score][lt]=3&order=asc",
        "trashed=true",
        "trashed=true&limit=1",
        "status=quarantined",
        "where=dish.ne=soup&limit=2",
        "since=2026-11-20T09:00:02Z&count=true",
        "until=2026-11-20T09:00:02Z",
        "where=mail.answered=true",
        "q=example",
        "status=completed",
    ];
    (*random.pick(&filters)).to_owned()
}

#[test]
fn random_requests_get_the_same_answers_from_both_stores() {
    each_seed("FORMS_SEQUENCES", 2, |seed| {
        tokio::runtime::Runtime::new().unwrap().block_on(compare(seed));
    });
}

async fn compare(seed: u64) {
    let Some(server) = Server::on_database().await else { return };
    let mut sides = [Side::new(Server::embedded().await), Side::new(server)];
    let (mut random, mut world) = (Random::new(seed), World::default());
    for step in 0..REQUESTS {
        for side in &sides {
            side.server.clock.advance(7);
        }
        let mut request = if step < 3 { create_form(&mut random) } else { world.request(&mut random) };
        if request.path.contains(":erase") {
            limit_erasure(&sides[0], &mut request).await;
        }
        let [expected, answer] = send(&mut sides, &request).await;
        assert_eq!(answer, expected, "step {step}: {request:?}");
        if request.method != Method::GET {
            settle(&sides).await;
        }
        world.learn(request, &answer);
        if random.once_in(8) {
            deliver(&mut sides, &mut random).await;
        }
    }
}

async fn send(sides: &mut [Side; 2], request: &Request) -> [Answer; 2] {
    let [embedded, database] = sides;
    [embedded.send(request).await, database.send(request).await]
}

/// Only searches if several submissions would be erased: their events have the same time, so that their order is drawn.
async fn limit_erasure(side: &Side, request: &mut Request) {
    let search = format!("{}&dry_run=true", request.path);
    let found = side.server.call(Method::POST, &search).send().await;
    if found.status != 200 || found.json()["submissions"].as_array().unwrap().len() > 1 {
        request.path = search;
    }
}

/// Waits until both stores have canceled the deliveries of what is gone, which they do in the background.
async fn settle(sides: &[Side; 2]) {
    let [embedded, database] = sides;
    timeout(TIMEOUT, async {
        while embedded.statuses().await != database.statuses().await {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("both list the same deliveries");
}

/// Carries out deliveries on both sides, which may fail.
async fn deliver(sides: &mut [Side; 2], random: &mut Random) {
    let failure = *random.pick(&[None, None, None, Some(300), Some(400), Some(410)]);
    // A delivery that has failed is due by then, whatever was drawn for its wait.
    let wait = if random.once_in(2) { 0 } else { 86_400_000 };
    let mut sent = Vec::new();
    for side in &mut *sides {
        side.server.clock.advance(wait);
        side.server.sender.fail_with(failure);
        sent.push(side.deliver().await);
    }
    assert_eq!(sent[1], sent[0]);
}
