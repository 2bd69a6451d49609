//! Following the links of lists over HTTP while rows are created, changed and deleted between pages.

use std::collections::BTreeSet;

use crate::harness::prelude::*;

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
        self.next = response.next_page();
        if let Some(cursor) = body.get("next_cursor") {
            let linked = self.next.as_ref().map(|next| next.split_once("cursor=").unwrap().1);
            assert_eq!(cursor.as_str(), linked);
        }
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
    /// The path of the form of all submissions.
    form: String,
    /// The paths of submissions and of forms.
    live: [Vec<String>; 2],
    trashed: [Vec<String>; 2],
    minute: u32,
}

impl Workload {
    async fn create() -> Self {
        let (server, form) = Server::with_form().await;
        server.integrate(&form, webhook()).await;
        let (form, live, trashed) = (format!("{FORMS}/{form}"), Default::default(), Default::default());
        let mut workload = Self { server, form, live, trashed, minute: 0 };
        for _ in 0..12 {
            let (live, trashed) = (workload.create_rows().await, workload.create_rows().await);
            for kind in 0..2 {
                workload.live[kind].push(live[kind].clone());
                workload.trashed[kind].push(trashed[kind].clone());
            }
        }
        // The order of deletion differs from that of creation.
        workload.trashed[1].rotate_left(5);
        for place in 0..12 {
            workload.next_minute();
            for paths in &workload.trashed {
                workload.server.remove(&paths[place]).await;
            }
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
    async fn create_rows(&mut self) -> [String; 2] {
        self.next_minute();
        let submissions = format!("{}/submissions", self.form);
        let id = self.server.create(&submissions, json!({"answers": {"q1": "Ada"}})).await;
        [format!("{submissions}/{id}"), format!("{FORMS}/{}", self.server.draft_form(json!([])).await)]
    }

    /// Adds a version of the form and an edit of its first submission.
    async fn add_version_and_edit(&mut self) {
        self.next_minute();
        let title = self.minute.to_string();
        let patch = json!({"questions": [{"id": "q1", "type": "short_text", "title": title}]});
        self.server.patch(&self.form, patch).send().await.expect(200);
        let edit = json!({"metadata": {"at": title}});
        self.server.patch(&self.live[0][0], edit).send().await.expect(200);
    }

    /// Changes all lists before and after the readers' positions.
    async fn change_lists(&mut self, turn: usize) {
        self.add_version_and_edit().await;
        self.create_rows().await;
        let place = 1 + 2 * (turn % 6);
        let purge = ["", "?purge=true", ""];
        for kind in 0..2 {
            self.server.remove(format!("{}{}", self.live[kind][place], purge[(turn + kind) % 3])).await;
            let restored = self.trashed[kind][place].clone();
            self.server.call(Method::POST, format!("{restored}/restore")).send().await.expect(200);
            // The next round swaps the roles of these rows.
            self.live[kind][place] = restored;
        }
        let made = self.create_rows().await;
        for (kind, path) in made.into_iter().enumerate() {
            self.server.remove(&path).await;
            self.trashed[kind][place] = path;
        }
    }

    async fn readers(&self) -> Vec<ListReader> {
        let id = |path: &String| json!(path.rsplit('/').next().unwrap());
        let stay = |paths: &[String]| paths.iter().step_by(2).map(id).collect::<Vec<_>>();
        let newest = |paths: &[String]| stay(paths).into_iter().rev().collect::<Vec<_>>();
        let of_form = |query: &str, unchanged| {
            ListReader::of(format!("{}/submissions?{query}", self.form), "submissions", "id", unchanged)
        };
        let forms =
            |query: &str, unchanged| ListReader::of(format!("{FORMS}?{query}"), "forms", "id", unchanged);
        let ([live, live_forms], [trashed, trashed_forms]) = (&self.live, &self.trashed);
        let versions = (1..=7).rev().map(|number| json!(number)).collect();
        let history = format!("{}/history", live[0]);
        let replaced = self.server.read(&history).await["history"].clone();
        let times = replaced.as_array().unwrap().iter().map(|row| row["replaced_at"].clone()).collect();
        let deliveries = |query: &str| {
            ListReader::of(format!("/api/v1/deliveries?{query}"), "deliveries", "submission_id", newest(live))
        };
        vec![
            deliveries(""),
            deliveries(&format!("form={}", self.form.rsplit('/').next().unwrap())),
            of_form("", newest(live)),
            of_form("order=asc", stay(live)),
            of_form("order=asc&q=ada", stay(live)),
            of_form("filter[q1]=Ada", newest(live)),
            of_form("trashed=true", newest(trashed)),
            forms("", newest(live_forms)),
            forms("trashed=true", newest(trashed_forms)),
            forms("trashed=true&q=visit", newest(trashed_forms)),
            forms("status=draft&q=visit", newest(live_forms)),
            ListReader::of(format!("{}/versions", self.form), "versions", "version", versions),
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

#[tokio::test]
async fn a_cursor_is_valid_only_for_its_list() {
    let workload = Workload::create().await;
    let server = &workload.server;
    let mut readers = workload.readers().await;
    for reader in &mut readers {
        reader.read_page(server).await;
    }
    let lists = readers.iter().map(|reader| reader.next.as_ref().unwrap().split_once("&cursor=").unwrap());
    let lists: Vec<_> = lists.collect();
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let other_form = server.published_form(questions()).await;
    let (submission, other) = (&workload.live[0][0], &workload.live[0][2]);
    let limited = server.limited_key(&[Scope::Admin], &["frm_000000000000"]).await;
    for (list, cursor) in &lists {
        server.read(format!("{}&cursor={cursor}", list.replace("limit=3", "limit=2"))).await;
        let mut others: Vec<_> = lists.iter().map(|(other, _)| (*other).to_owned()).collect();
        others.push(list.replace(&id(&workload.form), &other_form).replace(&id(submission), &id(other)));
        if list.contains("/submissions?") && !list.contains("trashed") {
            let narrower =
                ["q=x", "since=2020-01-01T00:00:00Z", "until=2030-01-01T00:00:00Z", "filter[q1][ne]=x"];
            others.extend(narrower.map(|query| format!("{list}&{query}").replace("q=ada&", "")));
        }
        for other in others.iter().filter(|other| other != list) {
            let refused = server.get(format!("{other}&cursor={cursor}")).send().await;
            assert_eq!(refused.code(), "invalid_cursor", "{list} {other}");
        }
        for bad in ["", "zz", "00", &cursor[1..], &cursor[2..], &format!("{cursor}00"), "%C3%A9"] {
            let refused = server.get(format!("{list}&cursor={bad}")).send().await;
            assert_eq!(refused.code(), "invalid_cursor", "{list} {bad}");
        }
        if list.starts_with(&format!("{FORMS}?")) {
            let refused = server.get(format!("{list}&cursor={cursor}")).key(&limited).send().await;
            assert_eq!(refused.code(), "invalid_cursor", "the list that a key for some forms sees");
        }
    }
}

#[tokio::test]
async fn only_the_first_page_is_counted() {
    let (server, form) = Server::with_form().await;
    for _ in 0..3 {
        server.submit(&form, json!({"q1": "Ada"})).await;
        server.draft_form(json!([])).await;
        server.remove(format!("{FORMS}/{}", server.draft_form(json!([])).await)).await;
    }
    for (list, total) in [
        (format!("{FORMS}/{form}/submissions?q=ada"), 3),
        (format!("{FORMS}?status=draft"), 3),
        (format!("{FORMS}?trashed=true"), 3),
    ] {
        let count = |page: &TestResponse| {
            page.header("forms-total").map_or(page.json()["total"].clone(), |text| text.parse().unwrap())
        };
        let first = server.get(format!("{list}&count=true&limit=2")).send().await;
        assert_eq!(count(&first), total, "{list}");
        let second = server.get(first.next_page().unwrap()).send().await;
        assert_eq!((count(&second), second.next_page()), (Value::Null, None), "{list}");
        assert_eq!(count(&server.get(&list).send().await), Value::Null, "{list}");
    }
}
