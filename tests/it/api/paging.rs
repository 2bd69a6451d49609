//! Following the links of lists over HTTP while rows are created, changed and deleted between pages.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::{Server, questions};

const FORMS: &str = "/api/v1/forms";

/// A list that is read page by page.
struct ListReader {
    next: Option<String>,
    /// The field of the body with the rows.
    rows: &'static str,
    /// The field that identifies a row.
    id_field: &'static str,
    /// The rows that are never changed, in order.
    unchanged: Vec<Value>,
    seen: Vec<Value>,
}

impl ListReader {
    fn of(path: String, rows: &'static str, id_field: &'static str, unchanged: Vec<Value>) -> Self {
        assert!(unchanged.len() > 3, "{path}: {unchanged:?}");
        let next = format!("{path}{}limit=3", if path.contains('?') { '&' } else { '?' });
        Self { next: Some(next), rows, id_field, unchanged, seen: Vec::new() }
    }

    async fn read_page(&mut self, server: &Server) {
        let Some(path) = self.next.take() else { return };
        let response = server.get(&path).send().await;
        let body = response.expect(200);
        self.seen.extend(body[self.rows].as_array().unwrap().iter().map(|row| row[self.id_field].clone()));
        self.next = response.header("link").map(|link| {
            let (next, relation) = link.split_once("; ").unwrap();
            assert_eq!(relation, "rel=\"next\"");
            next.trim_matches(['<', '>']).to_owned()
        });
    }

    fn check(&self, list: &str) {
        let names: BTreeSet<_> = self.seen.iter().map(Value::to_string).collect();
        assert_eq!(names.len(), self.seen.len(), "{list}: a row appears twice: {:?}", self.seen);
        let found: Vec<_> = self.seen.iter().filter(|name| self.unchanged.contains(name)).cloned().collect();
        assert_eq!(found, self.unchanged, "{list}: {:?}", self.seen);
    }
}

/// Rows that are never changed, alternating with rows that are.
struct Workload {
    server: Server,
    /// The form of all submissions.
    form: String,
    live: Vec<String>,
    trashed: Vec<String>,
    live_forms: Vec<String>,
    trashed_forms: Vec<String>,
    minute: u32,
}

impl Workload {
    async fn create() -> Self {
        let server = Server::start().await;
        let form = server.published_form(questions()).await;
        let lists = [const { Vec::new() }; 4];
        let [live, trashed, live_forms, trashed_forms] = lists;
        let mut workload = Self { server, form, live, trashed, live_forms, trashed_forms, minute: 0 };
        for _ in 0..12 {
            let made = workload.create_rows().await;
            workload.live.push(made.0);
            workload.live_forms.push(made.1);
            let made = workload.create_rows().await;
            workload.trashed.push(made.0);
            workload.trashed_forms.push(made.1);
        }
        // The order of deletion differs from that of creation.
        workload.trashed_forms.rotate_left(5);
        for place in 0..12 {
            workload.next_minute();
            let (id, form) = (workload.trashed[place].clone(), workload.trashed_forms[place].clone());
            workload.call_submission(Method::DELETE, &id, "").await;
            workload.call_form(Method::DELETE, &form, "").await;
        }
        for _ in 0..6 {
            workload.add_version_and_edit().await;
        }
        workload
    }

    fn next_minute(&mut self) {
        self.minute += 1;
        self.server.clock.set(&format!("2026-11-20T{:02}:{:02}:00Z", 9 + self.minute / 60, self.minute % 60));
    }

    /// Creates a submission and a form.
    async fn create_rows(&mut self) -> (String, String) {
        self.next_minute();
        let id = self.server.submit(&self.form, json!({"q1": "Ada"})).await;
        (id, self.server.draft_form(json!([])).await)
    }

    async fn call_submission(&self, method: Method, id: &str, more: &str) {
        self.call_form(method, &format!("{}/submissions/{id}", self.form), more).await;
    }

    async fn call_form(&self, method: Method, form: &str, more: &str) {
        let response = self.server.call(method, format!("{FORMS}/{form}{more}")).send().await;
        assert!(response.status.is_success(), "{}", response.text());
    }

    /// Adds a version of the form and an edit of its first submission.
    async fn add_version_and_edit(&mut self) {
        self.next_minute();
        let path = format!("{FORMS}/{}", self.form);
        let title = self.minute.to_string();
        let patch = json!({"questions": [{"id": "q1", "type": "short_text", "title": title}]});
        self.server.patch(&path, patch).send().await.expect(200);
        let edit = json!({"metadata": {"at": title}});
        self.server.patch(format!("{path}/submissions/{}", self.live[0]), edit).send().await.expect(200);
    }

    /// Changes all lists before and after the readers' positions.
    async fn change_lists(&mut self, turn: usize) {
        self.add_version_and_edit().await;
        self.create_rows().await;
        let place = 1 + 2 * (turn % 6);
        let [live, trashed, live_form, trashed_form] =
            [&self.live, &self.trashed, &self.live_forms, &self.trashed_forms].map(|ids| ids[place].clone());
        let purge = ["", "?purge=true", ""];
        self.call_submission(Method::DELETE, &live, purge[turn % 3]).await;
        self.call_form(Method::DELETE, &live_form, purge[(turn + 1) % 3]).await;
        self.call_submission(Method::POST, &trashed, "/restore").await;
        self.call_form(Method::POST, &trashed_form, "/restore").await;
        // The next round swaps the roles of these rows.
        self.next_minute();
        self.live[place] = trashed;
        self.live_forms[place] = trashed_form;
        let (id, form) = self.create_rows().await;
        self.call_submission(Method::DELETE, &id, "").await;
        self.call_form(Method::DELETE, &form, "").await;
        self.trashed[place] = id;
        self.trashed_forms[place] = form;
    }

    async fn readers(&self) -> Vec<ListReader> {
        let stay = |ids: &[String]| ids.iter().step_by(2).map(|id| json!(id)).collect::<Vec<_>>();
        let newest = |ids: &[String]| stay(ids).into_iter().rev().collect::<Vec<_>>();
        let form = format!("{FORMS}/{}", self.form);
        let of_form = |query: &str, unchanged| {
            ListReader::of(format!("{form}/submissions?{query}"), "submissions", "id", unchanged)
        };
        let forms =
            |query: &str, unchanged| ListReader::of(format!("{FORMS}?{query}"), "forms", "id", unchanged);
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
            ListReader::of(
                format!("{form}/versions"),
                "versions",
                "version",
                (1..=7).rev().map(|number| json!(number)).collect(),
            ),
            ListReader::of(history, "history", "replaced_at", times),
        ]
    }
}

#[tokio::test]
async fn following_links_shows_each_unchanged_row_once_in_order() {
    let mut workload = Workload::create().await;
    let mut readers = workload.readers().await;
    for turn in 0..50 {
        for reader in &mut readers {
            reader.read_page(&workload.server).await;
        }
        if readers.iter().all(|reader| reader.next.is_none()) {
            assert!(turn > 3, "{turn}");
            break;
        }
        workload.change_lists(turn).await;
    }
    for (list, reader) in readers.iter().enumerate() {
        reader.check(&format!("list {list}"));
    }
}
