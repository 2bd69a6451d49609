//! Speed of filters on a large form, and latencies of other clients meanwhile.
//!
//! `cargo bench --bench store -- filters`; `FORMS_BENCH_STORED` sets the number of submissions of the form. For the rates,
//! lists are read one after another in pages of 1000 from the store, without HTTP. The other clients are four connections
//! that store and four that read single submissions of another form, each without pause, while eight more repeat a filter
//! or a summary of the large form.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forms::cpu_pool::CpuPool;
use forms::domain::condition::FilterKey;
use forms::domain::submission::filter::{Order, SubmissionFilter, SubmissionQuery};
use forms::id::{FormId, Random, WorkspaceId};
use forms::secret::KeyText;
use forms::store::sled::SledStore;
use forms::store::sled::engine::options::EngineOptions;
use forms::store::{Forms, Keys, Maintenance, Submissions};

use crate::common::fill::{Form, expect, member, published, published_form};
use crate::common::load::{Load, Until};
use crate::common::samples::{Samples, median};
use crate::common::server::{Server, forms_serve, operator_key};
use crate::common::settings;
use crate::common::table::{Table, report_progress};
use crate::common::wire::{Connection, request};

/// Connections of each kind of other clients.
const OTHER_CLIENTS: usize = 4;

/// Connections that filter.
const FILTERING: usize = 8;

/// Submissions in the form of the other clients.
const SMALL_COUNT: u64 = 10_000;

/// Submissions in a form with long texts.
const LONG_TEXTS: u64 = 1_000;

const LONG_TEXT_FORM: &str =
    r#"{"title":"Tales","questions":[{"type":"long_text","title":"What happened?"}]}"#;

/// Submissions of a page.
const PAGE: usize = 1_000;

pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())?;
    Ok(())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let (stored, duration) = (settings::stored()?, settings::duration(10.0)?);
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    let server = Server::start(&mut forms_serve(&data)?)?;
    let key = operator_key(&data)?;
    let (large, small) =
        (published_form(server.endpoint(), &key).await?, published_form(server.endpoint(), &key).await?);
    report_progress(&format!("storing {stored}"))?;
    small.fill(SMALL_COUNT).await?;
    large.fill(stored).await?;
    let long_texts = published(server.endpoint(), &key, LONG_TEXT_FORM).await?;
    fill_with_long_texts(&long_texts).await?;

    report_progress("measuring latencies")?;
    let mut latencies =
        Table::new(&["eight clients ask for", "store p99 ms", "read p99 ms", "highest ms", "target p99"]);
    latencies.row(measure_latencies(&small, None, duration).await?.row("nothing", ""));
    for (name, path) in OVER_HTTP {
        let filtering =
            Load { endpoint: large.endpoint, connections: FILTERING, request: large.get(path), status: 200 };
        latencies.row(measure_latencies(&small, Some(filtering), duration).await?.row(name, "< 50"));
    }
    server.stop()?;

    report_progress("measuring rates")?;
    rates(&data, &key, large.id.parse()?, &lists(), ">= 0.25").await?.print()?;
    rates(&data, &key, long_texts.id.parse()?, &lists_of_long_texts(), "").await?.print()?;
    Ok(latencies.print()?)
}

/// Stores submissions with texts of 8 kB.
async fn fill_with_long_texts(long_texts: &Form) -> io::Result<()> {
    let text = "The room was quiet and the breakfast good. ".repeat(190);
    let body = format!(r#"{{"answers":{{"q1":"{text}"}}}}"#);
    let request = request("POST", &format!("{}/submissions", long_texts.path()), &long_texts.key, &body);
    let load = Load { request, ..long_texts.submissions(OTHER_CLIENTS) };
    load.run(Until::Sent { count: LONG_TEXTS, over: Duration::ZERO }).await?;
    Ok(())
}

/// Requests of the concurrent clients. The answers to `q2` contain a sequence number.
const OVER_HTTP: [(&str, &str); 3] = [
    ("a rare text", "/submissions?limit=1000&q=person000000000007%40"),
    ("a condition", "/submissions?limit=1000&filter%5Bq3%5D%5Blt%5D=4"),
    ("a summary", "/summary"),
];

/// Latencies of the other clients.
struct Latencies {
    stores: Samples,
    reads: Samples,
}

impl Latencies {
    fn row(&self, name: &str, target: &str) -> [String; 5] {
        let highest = self.stores.percentile(1.0).max(self.reads.percentile(1.0));
        let p99 = |samples: &Samples| format!("{:.1}", samples.percentile(0.99));
        [name.to_owned(), p99(&self.stores), p99(&self.reads), format!("{highest:.1}"), target.to_owned()]
    }
}

/// Measures storing and reading single submissions in `form` while `filtering` runs.
async fn measure_latencies(
    form: &Form,
    filtering: Option<Load>,
    duration: Duration,
) -> io::Result<Latencies> {
    let filtering =
        filtering.map(|load| tokio::spawn(async move { load.run(Until::Elapsed(duration)).await }));
    let mut connection = Connection::open(form.endpoint).await?;
    let stores = form.submissions(OTHER_CLIENTS);
    let id = member(expect(&mut connection, &stores.request, 201).await?, "id")?;
    let reads = Load { request: form.get(&format!("/submissions/{id}")), status: 200, ..stores.clone() };
    let until = Until::Elapsed(duration);
    let (stores, reads) = tokio::try_join!(stores.run(until), reads.run(until))?;
    if let Some(filtering) = filtering {
        filtering.await??;
    }
    Ok(Latencies { stores, reads })
}

/// Measures how many submissions per second each list scans, in turns. The first list is the baseline and has no
/// `target`.
async fn rates(
    data: &Path,
    key: &str,
    form: FormId,
    lists: &[(&str, SubmissionQuery)],
    target: &str,
) -> Result<Table, Box<dyn Error>> {
    let options = EngineOptions { verify_index: false, preallocate: false, ..EngineOptions::default() };
    let store =
        SledStore::open(data, options, CpuPool::default(), Arc::new(NoRandom), Arc::new(|_event| {}))?;
    let key = store.find_key(key.parse::<KeyText>()?.id()).await?.ok_or("the key does not exist")?;
    let current = store.find_form(key.workspace.form(form)).await?.ok_or("the form does not exist")?;
    let version = store
        .find_version(key.workspace.form(form), current.version)
        .await?
        .ok_or("the version does not exist")?;
    let version = version.read().ok_or("unreadable questions")?;
    let stored = store.count_submissions(key.workspace.form(form)).await?;
    let filters = lists
        .iter()
        .map(|(name, query)| {
            Ok((
                *name,
                SubmissionFilter::new(query, &version.questions).map_err(|errors| format!("{errors:?}"))?,
            ))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let mut rounds = Vec::new();
    for _ in 0..settings::rounds()? {
        let mut rates = Vec::new();
        for (_, filter) in &filters {
            let begin = Instant::now();
            let found = read(&store, key.workspace, form, filter).await?;
            rates.push((found, stored as f64 / begin.elapsed().as_secs_f64()));
        }
        rounds.push(rates);
    }
    store.close().await?;
    let mut table = Table::new(&["list", "found", "submissions/s", "of baseline", "target"]);
    for (place, (name, _)) in filters.iter().enumerate() {
        let rate = median(rounds.iter().map(|rates| rates[place].1));
        let ratio = median(rounds.iter().map(|rates| rates[place].1 / rates[0].1));
        let (ratio, target) = if place == 0 { (String::new(), "") } else { (format!("{ratio:.2}"), target) };
        let found = rounds[0][place].0.to_string();
        table.row([(*name).to_owned(), found, format!("{rate:.0}"), ratio, target.to_owned()]);
    }
    Ok(table)
}

/// Reads all pages of a list; returns the number of rows.
async fn read(
    store: &SledStore,
    workspace: WorkspaceId,
    form: FormId,
    filter: &SubmissionFilter,
) -> Result<usize, Box<dyn Error>> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page =
            store.list_submissions(workspace.form(form), filter, Order::NewestFirst, after, PAGE).await?;
        let page = page.ok_or("the form does not exist")?;
        count += page.rows.len();
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

fn answer(question: &str, operator: &str, value: &str) -> SubmissionQuery {
    let key = FilterKey { question: question.to_owned(), operator: operator.to_owned() };
    SubmissionQuery { answers: [(key, value.to_owned())].into(), ..SubmissionQuery::default() }
}

fn lists() -> [(&'static str, SubmissionQuery); 6] {
    let text = |text: &str| SubmissionQuery { text: Some(text.to_owned()), ..SubmissionQuery::default() };
    [
        ("all (baseline)", SubmissionQuery::default()),
        ("a rare text", text("person000000000007@")),
        ("a common text", text("BREAKFAST")),
        ("an absent text", text("nobody wrote this")),
        ("a rare condition", answer("q2", "eq", "person000000000007@example.com")),
        ("a common condition", answer("q3", "gte", "4")),
    ]
}

/// A pattern visits each character, and this one has no literal text that could be searched for first.
fn lists_of_long_texts() -> [(&'static str, SubmissionQuery); 2] {
    [
        ("all long texts (baseline)", SubmissionQuery::default()),
        ("a pattern without a match", answer("q1", "matches", "[a-z.]+@[a-z.]+")),
    ]
}

/// Never used, since nothing is stored.
struct NoRandom;

impl Random for NoRandom {
    fn fill(&self, _bytes: &mut [u8]) {}
}
