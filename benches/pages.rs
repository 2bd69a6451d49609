//! The pages where people answer: what a first visit loads, times, and the API beside an attack on a page.
//!
//! `cargo bench --bench pages`; `FORMS_BENCH_ROUNDS` and `FORMS_BENCH_SECONDS` set the duration. Sizes are in bytes. Pages
//! and API are measured in turns, so that other load on the machine affects both.

mod common;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};

use self::common::fill::{Form, expect, published, published_form};
use self::common::load::{Load, Until};
use self::common::samples::{Samples, median};
use self::common::server::{Server, forms_serve, operator_key};
use self::common::settings;
use self::common::table::{Table, report_progress};
use self::common::wire::Connection;

/// Requests over one connection.
const REQUESTS: usize = 2_000;

/// Connections of the comparison, and of the attack.
const CONNECTIONS: usize = 64;

/// A question of each type that takes an answer, except `hidden`.
const QUESTIONS: &str = r#"
    {"type":"short_text","title":"What is your name?","description":"As on your badge.","required":true},
    {"type":"email","title":"What is your email address?","required":true},
    {"type":"phone","title":"What is your phone number?"},
    {"type":"url","title":"Where can we read about your work?"},
    {"type":"long_text","title":"What do you hope to learn?","max_length":500},
    {"type":"number","title":"How many years have you been programming?","min":0,"max":80},
    {"type":"single_choice","title":"Which track do you prefer?","options":["Systems","Web","Data","None"]},
    {"type":"multiple_choice","title":"What do you not eat?","options":["Meat","Fish","Milk","Nuts"]},
    {"type":"ranking","title":"Which parts matter most to you?","options":["Talks","Workshops","People"]},
    {"type":"matrix","title":"When will you be there?","rows":["Friday","Sunday"],
     "columns":["Morning","Afternoon","Not at all"]},
    {"type":"rating","title":"How was the conference last year?"},
    {"type":"opinion_scale","title":"How likely are you to recommend us?"},
    {"type":"boolean","title":"Have you been here before?"},
    {"type":"date","title":"On which day do you arrive?"},
    {"type":"time","title":"At what time do you arrive?"},
    {"type":"datetime","title":"When do you leave?"},
    {"type":"consent","title":"Do you accept the rules of the conference?","required":true}"#;

/// Two questions, the second with a condition.
const CONDITIONAL: &str = r#"{"type":"boolean","title":"Is there anything else?"},
    {"type":"short_text","title":"What is it?","show_if":{"q1":true}}"#;

const SIMPLE: &str = r#"{"type":"boolean","title":"Is there anything else?"}"#;

const GZIP: &str = "Accept-Encoding: gzip\r\n";

/// Answers to all [`QUESTIONS`], as a browser encodes them.
const ANSWERS: &str = "q1=Ada+Lovelace&q2=ada%40example.com&q3=%2B442079460018&q4=https%3A%2F%2Fexample.com%2Fada&\
    q5=How+others+design+interfaces%2C+and+what+they+would+do+again.&q6=12&q7=Systems&q8=Meat&q8=Nuts&q9=Talks&\
    q9=People&q9=Workshops&q10.Friday=Morning&q10.Sunday=Afternoon&q11=4&q12=9&q13=true&q14=2027-03-12&\
    q15=09%3A30&q16=2027-03-14T17%3A00&q17=true&_hp=";

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let mut table = Table::new(&["pages", "result", "target"]);
    let folder = settings::folder()?;
    let data = folder.path().join("store");
    for page_rate in ["off", "30/min"] {
        let server = Server::start(forms_serve(&data)?.args(["--page-rate", page_rate]))?;
        let key = operator_key(&data)?;
        let form = public_form(&server, &key, QUESTIONS).await?;
        if page_rate == "off" {
            let conditional = public_form(&server, &key, CONDITIONAL).await?;
            let simple = public_form(&server, &key, SIMPLE).await?;
            measure_sizes(&form, &conditional, &simple, &mut table).await?;
            measure_times(&form, &mut table).await?;
            measure_rates(&form, &mut table).await?;
        }
        let other_form = published_form(server.endpoint(), &key).await?;
        measure_attack(&form, &other_form, page_rate, &mut table).await?;
        server.stop()?;
    }
    Ok(table.print()?)
}

fn row(table: &mut Table, name: impl Display, result: impl Display, target: &str) {
    table.row([name.to_string(), result.to_string(), target.to_owned()]);
}

async fn public_form(server: &Server, key: &str, questions: &str) -> io::Result<Form> {
    let settings = r#""settings":{"public":true}"#;
    let definition = format!(r#"{{"title":"Conference",{settings},"questions":[{questions}]}}"#);
    published(server.endpoint(), key, &definition).await
}

fn sizes(plain: &[u8], gzip: &[u8]) -> String {
    format!("{}, gzip {}", plain.len(), gzip.len())
}

/// A request for `path` without a key.
fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes()
}

fn get_page(form: &Form, headers: &str) -> Vec<u8> {
    get(&format!("/f/{}", form.id), headers)
}

/// Opens the page of `form`, as browsers with gzip; returns the request that sends its answers.
async fn open_page(connection: &mut Connection, form: &Form) -> io::Result<Vec<u8>> {
    let mut page = String::new();
    GzDecoder::new(expect(connection, &get_page(form, GZIP), 200).await?).read_to_string(&mut page)?;
    let token = between(&page, "name=\"_t\" value=\"", "\"").next();
    let body = format!("{ANSWERS}&_t={}", token.ok_or_else(|| io::Error::other("the page has no token"))?);
    let (id, length) = (&form.id, body.len());
    let head = format!("POST /f/{id} HTTP/1.1\r\nHost: localhost\r\n{GZIP}Content-Length: {length}\r\n");
    Ok(format!("{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}").into_bytes())
}

/// The parts of `text` between each `start` and the next `end`.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// The heads and bodies of the page of `form` and its script.
async fn first_visit(form: &Form, headers: &str) -> io::Result<[(String, Vec<u8>); 2]> {
    let mut connection = Connection::open(form.endpoint).await?;
    let page = String::from_utf8_lossy(expect(&mut connection, &get_page(form, ""), 200).await?).into_owned();
    let script = between(&page, "<script src=\"..", "\"").next().unwrap_or_default();
    let mut loaded = [(String::new(), Vec::new()), (String::new(), Vec::new())];
    for (loaded, request) in loaded.iter_mut().zip([get_page(form, headers), get(script, headers)]) {
        let response = connection.exchange(&request).await?;
        let head = String::from_utf8_lossy(response.head).to_ascii_lowercase();
        if response.status != 200 || head.contains("\ncontent-encoding: gzip") != (headers == GZIP) {
            return Err(io::Error::other(head));
        }
        *loaded = (head, response.body.to_vec());
    }
    Ok(loaded)
}

async fn measure_sizes(form: &Form, conditional: &Form, simple: &Form, table: &mut Table) -> io::Result<()> {
    let ([page, _], [gzip_page, gzip_script]) =
        (first_visit(form, "").await?, first_visit(form, GZIP).await?);
    let html = String::from_utf8_lossy(&page.1).into_owned();
    let style: String = between(&html, "<style>", "</style>").collect();
    let mut gzip_style = Vec::new();
    GzEncoder::new(style.as_bytes(), Compression::default()).read_to_end(&mut gzip_style)?;
    row(table, "page", sizes(&page.1, &gzip_page.1), "<= 20000, gzip 6000");
    row(table, "style in the page", sizes(style.as_bytes(), &gzip_style), "<= 10000, gzip 3000");
    for (name, form, target) in [
        ("script", form, "<= 5000, gzip 2000"),
        ("script of a form with a condition", conditional, ""),
        ("script of the simplest form", simple, ""),
    ] {
        let ([_, plain], [_, gzip]) = (first_visit(form, "").await?, first_visit(form, GZIP).await?);
        row(table, name, sizes(&plain.1, &gzip.1), target);
    }
    let responses = [gzip_page, gzip_script];
    let transfer: usize = responses.iter().map(|(head, body)| head.len() + body.len()).sum();
    row(table, "first visit with headers, gzip", transfer, "<= 8000");

    let links = between(&html, "<link ", ">").flat_map(|link| between(link, "href=\"", "\""));
    let all = links.chain(between(&html, " src=\"", "\"")).chain(between(&html, "url(", ")"));
    let loaded: Vec<_> = all.filter(|address| !address.starts_with("data:")).collect();
    row(table, "requests", 1 + loaded.len(), "2");
    row(table, "other hosts", loaded.iter().filter(|address| address.contains("//")).count(), "0");
    let cookies = responses.iter().filter(|(head, _)| head.contains("\nset-cookie:"));
    row(table, "cookies", cookies.count(), "0");
    Ok(())
}

async fn measure_times(form: &Form, table: &mut Table) -> io::Result<()> {
    report_progress("one connection")?;
    let mut connection = Connection::open(form.endpoint).await?;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        for (times, headers) in times.iter_mut().zip(["", GZIP]) {
            let (request, sent) = (get_page(form, headers), Instant::now());
            times.push(connection.exchange(&request).await?.first_byte - sent);
        }
        let (request, sent) = (open_page(&mut connection, form).await?, Instant::now());
        expect(&mut connection, &request, 303).await?;
        times[2].push(sent.elapsed());
    }
    let [plain, gzip, posts] = times.map(|times| Samples::new(times, Duration::ZERO));
    for (name, samples) in [("page until its first byte", plain), ("  gzip", gzip)] {
        row(table, format!("{name}, p50"), milliseconds(&samples, 0.5), "<= 1 ms");
        row(table, format!("{name}, p99"), milliseconds(&samples, 0.99), "<= 10 ms");
    }
    row(table, "answers until 303, p50", milliseconds(&posts, 0.5), "<= 10 ms");
    Ok(())
}

fn milliseconds(samples: &Samples, share: f64) -> String {
    format!("{:.2} ms", samples.percentile(share))
}

async fn measure_rates(form: &Form, table: &mut Table) -> io::Result<()> {
    report_progress("pages and API in turns")?;
    let requests = [form.get(""), get_page(form, ""), get_page(form, GZIP)];
    let mut rates = requests.each_ref().map(|_| Vec::new());
    for _ in 0..settings::rounds()? {
        for (rates, request) in rates.iter_mut().zip(&requests) {
            let load = Load { request: request.clone(), status: 200, ..form.submissions(CONNECTIONS) };
            rates.push(load.run(Until::Elapsed(settings::duration(3.0)?)).await?.rate());
        }
    }
    let names = [("GET form in the API", ""), ("page", "ratio >= 0.50"), ("page, gzip", "")];
    for ((name, target), turns) in names.into_iter().zip(&rates) {
        let rate = median(turns.iter().copied());
        let ratio = median(turns.iter().zip(&rates[0]).map(|(page, api)| page / api));
        row(table, format!("{name}, 64 connections"), format!("{rate:.0}/s, ratio {ratio:.2}"), target);
    }
    Ok(())
}

/// Latencies of one client of the API, while others open the page and send answers without pause.
async fn measure_attack(form: &Form, other: &Form, page_rate: &str, table: &mut Table) -> io::Result<()> {
    report_progress(&format!("attack, --page-rate {page_rate}"))?;
    let until = Instant::now() + settings::duration(10.0)?;
    let attackers: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(attack(form.clone(), until))).collect();
    let mut connection = Connection::open(other.endpoint).await?;
    let requests = [(other.get(""), 200), (other.submissions(1).request, 201)];
    let mut times = [Vec::new(), Vec::new()];
    while Instant::now() < until {
        for (times, (request, status)) in times.iter_mut().zip(&requests) {
            let sent = Instant::now();
            expect(&mut connection, request, *status).await?;
            times.push(sent.elapsed());
        }
    }
    let (mut stored, mut refused) = (0, 0);
    for attacker in attackers {
        let counts = attacker.await??;
        (stored, refused) = (stored + counts[0], refused + counts[1]);
    }
    row(table, format!("attack, --page-rate {page_rate}"), format!("{stored} stored, {refused} refused"), "");
    for (name, times) in ["GET form", "POST submission"].into_iter().zip(times) {
        let p99 = milliseconds(&Samples::new(times, Duration::ZERO), 0.99);
        row(table, format!("  API meanwhile, {name}, p99"), p99, "<= 100 ms");
    }
    Ok(())
}

/// Opens and sends the page of `form`; returns how often its answers were stored and refused.
async fn attack(form: Form, until: Instant) -> io::Result<[u32; 2]> {
    let (mut connection, mut counts) = (Connection::open(form.endpoint).await?, [0, 0]);
    while Instant::now() < until {
        let request = open_page(&mut connection, &form).await?;
        let status = connection.exchange(&request).await?.status;
        counts[usize::from(status != 303)] += 1;
    }
    Ok(counts)
}
