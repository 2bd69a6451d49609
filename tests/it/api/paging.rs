//! Lists over HTTP, followed by their links while things come, change and go between two pages.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::{Server, questions};

const FORMS: &str = "/api/v1/forms";

/// A list that is read page by page.
struct Reading {
    next: Option<String>,
    /// The member that has the rows.
    rows: &'static str,
    /// The member of a row that names it.
    name: &'static str,
    /// What is in it all along, in its order.
    stays: Vec<Value>,
    seen: Vec<Value>,
}

impl Reading {
    fn of(path: String, rows: &'static str, name: &'static str, stays: Vec<Value>) -> Self {
        assert!(stays.len() > 3, "{path}: {stays:?}");
        let next = format!("{path}{}limit=3", if path.contains('?') { '&' } else { '?' });
        Self { next: Some(next), rows, name, stays, seen: Vec::new() }
    }

    async fn read_a_page(&mut self, server: &Server) {
        let Some(path) = self.next.take() else { return };
        let answer = server.get(&path).send().await;
        let body = answer.expect(200);
        self.seen.extend(body[self.rows].as_array().unwrap().iter().map(|row| row[self.name].clone()));
        self.next = answer.header("link").map(|link| {
            let (next, relation) = link.split_once("; ").unwrap();
            assert_eq!(relation, "rel=\"next\"");
            next.trim_matches(['<', '>']).to_owned()
        });
    }

    fn check(&self, list: &str) {
        let names: BTreeSet<_> = self.seen.iter().map(Value::to_string).collect();
        assert_eq!(names.len(), self.seen.len(), "{list}: something is there twice: {:?}", self.seen);
        let stayed: Vec<_> = self.seen.iter().filter(|name| self.stays.contains(name)).cloned().collect();
        assert_eq!(stayed, self.stays, "{list}: {:?}", self.seen);
    }
}

/// Things that stay, and as many that do not, by turns.
struct Scene {
    server: Server,
    /// Where the submissions are.
    form: String,
    live: Vec<String>,
    trashed: Vec<String>,
    live_forms: Vec<String>,
    trashed_forms: Vec<String>,
    minute: u32,
}

impl Scene {
    async fn set() -> Self {
        let server = Server::start().await;
        let form = server.published(questions()).await;
        let lists = [const { Vec::new() }; 4];
        let [live, trashed, live_forms, trashed_forms] = lists;
        let mut scene = Self { server, form, live, trashed, live_forms, trashed_forms, minute: 0 };
        for _ in 0..12 {
            let made = scene.make().await;
            scene.live.push(made.0);
            scene.live_forms.push(made.1);
            let made = scene.make().await;
            scene.trashed.push(made.0);
            scene.trashed_forms.push(made.1);
        }
        // Not in the order in which they were made.
        scene.trashed_forms.rotate_left(5);
        for place in 0..12 {
            scene.minute();
            let (id, form) = (scene.trashed[place].clone(), scene.trashed_forms[place].clone());
            scene.to_submission(Method::DELETE, &id, "").await;
            scene.to_form(Method::DELETE, &form, "").await;
        }
        for _ in 0..6 {
            scene.grow().await;
        }
        scene
    }

    fn minute(&mut self) {
        self.minute += 1;
        self.server.clock.set(&format!("2026-11-20T{:02}:{:02}:00Z", 9 + self.minute / 60, self.minute % 60));
    }

    /// A submission and a form.
    async fn make(&mut self) -> (String, String) {
        self.minute();
        let id = self.server.submit(&self.form, json!({"q1": "Ada"})).await;
        (id, self.server.draft(json!([])).await)
    }

    async fn to_submission(&self, method: Method, id: &str, more: &str) {
        self.to_form(method, &format!("{}/submissions/{id}", self.form), more).await;
    }

    async fn to_form(&self, method: Method, form: &str, more: &str) {
        let answer = self.server.call(method, format!("{FORMS}/{form}{more}")).send().await;
        assert!(answer.status.is_success(), "{}", answer.text());
    }

    /// One more version of the form, and one more edit of its first submission.
    async fn grow(&mut self) {
        self.minute();
        let path = format!("{FORMS}/{}", self.form);
        let title = self.minute.to_string();
        let asked = json!({"questions": [{"id": "q1", "type": "short_text", "title": title}]});
        self.server.patch(&path, asked).send().await.expect(200);
        let edit = json!({"metadata": {"at": title}});
        self.server.patch(format!("{path}/submissions/{}", self.live[0]), edit).send().await.expect(200);
    }

    /// Lets something happen to all lists, before and behind whoever reads them.
    async fn go_on(&mut self, turn: usize) {
        self.grow().await;
        self.make().await;
        let place = 1 + 2 * (turn % 6);
        let [live, trashed, live_form, trashed_form] =
            [&self.live, &self.trashed, &self.live_forms, &self.trashed_forms].map(|ids| ids[place].clone());
        let how = ["", "?purge=true", ""];
        self.to_submission(Method::DELETE, &live, how[turn % 3]).await;
        self.to_form(Method::DELETE, &live_form, how[(turn + 1) % 3]).await;
        self.to_submission(Method::POST, &trashed, "/restore").await;
        self.to_form(Method::POST, &trashed_form, "/restore").await;
        // The next time round the other way.
        self.minute();
        self.live[place] = trashed;
        self.live_forms[place] = trashed_form;
        let (id, form) = self.make().await;
        self.to_submission(Method::DELETE, &id, "").await;
        self.to_form(Method::DELETE, &form, "").await;
        self.trashed[place] = id;
        self.trashed_forms[place] = form;
    }

    async fn readings(&self) -> Vec<Reading> {
        let stay = |ids: &[String]| ids.iter().step_by(2).map(|id| json!(id)).collect::<Vec<_>>();
        let newest = |ids: &[String]| stay(ids).into_iter().rev().collect::<Vec<_>>();
        let form = format!("{FORMS}/{}", self.form);
        let of_form = |query: &str, stays| {
            Reading::of(format!("{form}/submissions?{query}"), "submissions", "id", stays)
        };
        let forms = |query: &str, stays| Reading::of(format!("{FORMS}?{query}"), "forms", "id", stays);
        let history = format!("{form}/submissions/{}/history", self.live[0]);
        let replaced = self.server.get(&history).send().await.expect(200)["history"].clone();
        let times = replaced.as_array().unwrap().iter().map(|row| row["replaced_at"].clone()).collect();
        vec![
            of_form("order=asc", stay(&self.live)),
            of_form("order=asc&q=ada", stay(&self.live)),
            of_form("filter[q1]=Ada", newest(&self.live)),
            of_form("trashed=true", newest(&self.trashed)),
            forms("trashed=true", newest(&self.trashed_forms)),
            forms("trashed=true&q=visit", newest(&self.trashed_forms)),
            forms("status=draft&q=visit", newest(&self.live_forms)),
            Reading::of(
                format!("{form}/versions"),
                "versions",
                "version",
                (1..=7).rev().map(|number| json!(number)).collect(),
            ),
            Reading::of(history, "history", "replaced_at", times),
        ]
    }
}

#[tokio::test]
async fn what_stays_is_seen_once_in_its_order_by_following_links() {
    let mut scene = Scene::set().await;
    let mut readings = scene.readings().await;
    for turn in 0..50 {
        for reading in &mut readings {
            reading.read_a_page(&scene.server).await;
        }
        if readings.iter().all(|reading| reading.next.is_none()) {
            assert!(turn > 3, "{turn}");
            break;
        }
        scene.go_on(turn).await;
    }
    for (list, reading) in readings.iter().enumerate() {
        reading.check(&format!("list {list}"));
    }
}
