//! How fast a filter goes through a large form, and what others notice meanwhile.
//!
//! `cargo bench --bench filters`; `FORMS_BENCH_STORED` changes how many submissions the form holds. Rates are of one
//! list after the other, read by pages of 1000 through the store, with no HTTP between. Others are four connections that store and
//! four that read single submissions of another form, each as fast as it is answered, while eight more filter the large
//! one over and over.

mod common;

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

use self::common::fill::{Form, expect, member, published, published_form};
use self::common::load::{Load, Until};
use self::common::samples::{Samples, median};
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::{Table, say};
use self::common::wire::{Connection, request};

/// Connections of each kind.
const OTHERS: usize = 4;

/// Connections that filter.
const FILTERING: usize = 8;

/// Submissions in the others' form.
const SMALL: u64 = 10_000;

/// Submissions in a form with long texts.
const TALES: u64 = 1_000;

const TALES_FORM: &str = r#"{"title":"Tales","questions":[{"type":"long_text","title":"What happened?"}]}"#;

/// Submissions of a page.
const PAGE: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
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
        (published_form(server.address(), &key).await?, published_form(server.address(), &key).await?);
    say(&format!("storing {stored}"))?;
    small.fill(SMALL).await?;
    large.fill(stored).await?;
    let tales = published(server.address(), &key, TALES_FORM).await?;
    tell(&tales).await?;

    say("watching")?;
    let mut noticed =
        Table::new(&["while eight filter for", "store p99 ms", "read p99 ms", "highest ms", "target p99"]);
    noticed.row(watch(&small, None, duration).await?.row("nothing", ""));
    for (name, query) in OVER_HTTP {
        let filtering = Load {
            address: large.address,
            connections: FILTERING,
            request: large.get(&format!("/submissions?limit=1000&{query}")),
            status: 200,
        };
        noticed.row(watch(&small, Some(filtering), duration).await?.row(name, "< 50"));
    }
    server.stop()?;

    say("scanning")?;
    rates(&data, &key, large.id.parse()?, &lists(), ">= 0.25").await?.print()?;
    rates(&data, &key, tales.id.parse()?, &lists_of_tales(), "").await?.print()?;
    Ok(noticed.print()?)
}

/// Fills a form with texts of 8 kB.
async fn tell(tales: &Form) -> io::Result<()> {
    let tale = "The room was quiet and the breakfast good. ".repeat(190);
    let body = format!(r#"{{"answers":{{"q1":"{tale}"}}}}"#);
    let request = request("POST", &format!("{}/submissions", tales.path()), &tales.key, &body);
    let load = Load { request, ..tales.submissions(OTHERS) };
    load.run(Until::Sent { count: TALES, over: Duration::ZERO }).await?;
    Ok(())
}

/// What the watched filters ask for: the answers have running numbers in `q2`.
const OVER_HTTP: [(&str, &str); 2] =
    [("a rare text", "q=person000000000007%40"), ("a condition", "filter%5Bq3%5D%5Blt%5D=4")];

/// What others saw.
struct Watched {
    stores: Samples,
    reads: Samples,
}

impl Watched {
    fn row(&self, name: &str, target: &str) -> [String; 5] {
        let highest = self.stores.percentile(1.0).max(self.reads.percentile(1.0));
        let p99 = |samples: &Samples| format!("{:.1}", samples.percentile(0.99));
        [name.to_owned(), p99(&self.stores), p99(&self.reads), format!("{highest:.1}"), target.to_owned()]
    }
}

/// Latencies of storing and of point reads in `form` for a while, in which `filtering` goes on.
async fn watch(form: &Form, filtering: Option<Load>, duration: Duration) -> io::Result<Watched> {
    let filtering =
        filtering.map(|load| tokio::spawn(async move { load.run(Until::Elapsed(duration)).await }));
    let mut connection = Connection::open(form.address).await?;
    let stores = form.submissions(OTHERS);
    let made = member(expect(&mut connection, &stores.request, 201).await?, "id")?;
    let reads = Load { request: form.get(&format!("/submissions/{made}")), status: 200, ..stores.clone() };
    let until = Until::Elapsed(duration);
    let (stores, reads) = tokio::try_join!(stores.run(until), reads.run(until))?;
    if let Some(filtering) = filtering {
        filtering.await??;
    }
    Ok(Watched { stores, reads })
}

/// How many submissions a second each kind of list goes through, in turns. The `target` is that of all but the first,
/// which is the raw rate.
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
    let key = store.find_key(key.parse::<KeyText>()?.id()).await?.ok_or("no such key")?;
    let current = store.find_form(key.workspace, form).await?.ok_or("no such form")?;
    let version = store.find_version(key.workspace, form, current.version).await?.ok_or("no such version")?;
    let version = version.read().ok_or("unreadable questions")?;
    let stored = store.count_submissions(key.workspace, form).await?;
    let filters = lists
        .iter()
        .map(|(name, query)| {
            Ok((
                *name,
                SubmissionFilter::new(query, &version.questions).map_err(|faults| format!("{faults:?}"))?,
            ))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let mut rounds = Vec::new();
    for _ in 0..settings::rounds()? {
        let mut rates = Vec::new();
        for (_, filter) in &filters {
            let begin = Instant::now();
            let taken = read(&store, key.workspace, form, filter).await?;
            rates.push((taken, stored as f64 / begin.elapsed().as_secs_f64()));
        }
        rounds.push(rates);
    }
    store.close().await?;
    let mut table = Table::new(&["list", "taken", "submissions/s", "of the raw rate", "target"]);
    for (place, (name, _)) in filters.iter().enumerate() {
        let rate = median(rounds.iter().map(|rates| rates[place].1));
        let ratio = median(rounds.iter().map(|rates| rates[place].1 / rates[0].1));
        let (ratio, target) = if place == 0 { (String::new(), "") } else { (format!("{ratio:.2}"), target) };
        let taken = rounds[0][place].0.to_string();
        table.row([(*name).to_owned(), taken, format!("{rate:.0}"), ratio, target.to_owned()]);
    }
    Ok(table)
}

/// All of a list, page after page: how many.
async fn read(
    store: &SledStore,
    workspace: WorkspaceId,
    form: FormId,
    filter: &SubmissionFilter,
) -> Result<usize, Box<dyn Error>> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = store.list_submissions(workspace, form, filter, Order::NewestFirst, after, PAGE).await?;
        let page = page.ok_or("no such form")?;
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
        ("all, which is the raw rate", SubmissionQuery::default()),
        ("a rare text", text("person000000000007@")),
        ("a common text", text("BREAKFAST")),
        ("a text that nobody wrote", text("nobody wrote this")),
        ("a rare condition", answer("q2", "eq", "person000000000007@example.com")),
        ("a common condition", answer("q3", "gte", "4")),
    ]
}

/// A pattern takes a step for each character, and has no text that could be looked for first.
fn lists_of_tales() -> [(&'static str, SubmissionQuery); 2] {
    [
        ("all long texts, which is their raw rate", SubmissionQuery::default()),
        ("a pattern that is in none", answer("q1", "matches", "[a-z.]+@[a-z.]+")),
    ]
}

/// Nothing is drawn where nothing is stored.
struct NoRandom;

impl Random for NoRandom {
    fn fill(&self, _bytes: &mut [u8]) {}
}
