//! Google spreadsheets: each submission one row, whatever happens to requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forms::delivery::mail::NoMailer;
use forms::delivery::{SendLimits, SystemLookup};
use serde_json::{Value, json};

use super::google::{ACCOUNT, Fault, Google, PRIVATE_KEY, SPREADSHEET, Tab, key_file};
use super::receiver::Reply;
use super::rig::Rig;
use super::{SHORT, sender};
use crate::harness::{Server, questions};

const HEADER: [&str; 5] = ["id", "submitted_at", "q1", "q2", "q3"];

fn with_google(server: Server, google: &Google, limits: SendLimits) -> Server {
    server.with_services(Arc::new(sender(SystemLookup, limits)), Arc::new(NoMailer), google.endpoints())
}

/// A form whose submissions are appended to `google`, with these questions and more members of the integration.
async fn rig_of(google: &Google, questions: Value, members: Value) -> Rig {
    let server = with_google(Server::start().await, google, SendLimits::default());
    let form = server.published_form(questions).await;
    let mut integration = json!({
        "type": "google_sheets", "name": "sheet", "spreadsheet_id": SPREADSHEET, "service_account": key_file(),
    });
    integration.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    server.integrate(&form, integration).await;
    Rig { server, form }
}

async fn rig(google: &Google) -> Rig {
    rig_of(google, questions(), json!({})).await
}

/// A fault of the requests that contain `part`, until the returned flag is cleared.
fn faulty(
    part: &'static str,
    fault: Fault,
) -> (Arc<AtomicBool>, impl Fn(&str) -> Option<Fault> + Send + Sync) {
    let is_faulty = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_faulty);
    let decide =
        move |line: &str| (line.contains(part) && flag.load(Ordering::Relaxed)).then(|| fault.clone());
    (is_faulty, decide)
}

fn healthy(_: &str) -> Option<Fault> {
    None
}

/// The ids in column A of the first tab, without its name.
fn ids(google: &Google) -> Vec<String> {
    google.rows()[1..].iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
}

/// The last attempt of the only delivery.
async fn last_attempt(rig: &Rig) -> Value {
    rig.attempts(&rig.delivery().await).await.last().unwrap().clone()
}

#[tokio::test]
async fn each_submission_is_a_row_below_the_names_of_the_columns() {
    let google = Google::start(healthy).await;
    let rig = rig(&google).await;
    let mut expected = Vec::new();
    for name in ["Ada", "Bea", "Cem"] {
        expected.push(rig.submit(name).await);
    }
    for (wait, requests, count) in [
        (0, &["POST /token", "GET 1:1", "POST names", "POST A1:append"][..], 3),
        (2_399, &[], 3),
        (1, &["GET 1:1", "POST A1:append"], 4),
    ] {
        if wait == 2_399 {
            expected.push(rig.submit("Dot").await);
        }
        rig.deliver_after(wait).await;
        assert_eq!(google.take_log(), requests, "after {wait}");
        assert_eq!(ids(&google), expected[..count]);
    }
    let rows = google.rows();
    assert_eq!(rows[0], HEADER);
    let time = "=2026-11-20 09:00:00";
    assert_eq!(rows[1], [json!(expected[0]), json!(time), json!("Ada"), Value::Null, Value::Null]);
    assert_eq!(rig.deliveries("status=delivered").await.len(), 4);
}

#[tokio::test]
async fn cells_are_for_people_or_for_programs_and_no_text_is_run() {
    let options = json!([{"value": "x", "label": "Very soft"}, "y"]);
    let (row, column) = (json!([{"value": "r", "label": "Room"}]), json!([{"value": "g", "label": "Good"}]));
    let formula = json!("=IMPORTDATA(\"x\")");
    let hostile = json!("'\"\\\t\n<>{}é漢ไع\u{202e}\u{200d}\u{feff}👩‍👩‍👧🇩🇪\u{10ffff}");
    // Settings of a question, its answer, and its cell for people and for programs.
    let cases = [
        (json!({"type": "short_text"}), formula.clone(), formula.clone(), formula),
        (json!({"type": "rating"}), json!(4), json!(4), json!(4)),
        (json!({"type": "boolean"}), json!(false), json!(false), json!(false)),
        (
            json!({"type": "multiple_choice", "options": options}),
            json!(["x", "y"]),
            json!("Very soft; y"),
            json!("[\"x\",\"y\"]"),
        ),
        (json!({"type": "number"}), json!(-1.5), json!(-1.5), json!(-1.5)),
        (json!({"type": "date"}), json!("2026-12-24"), json!("=2026-12-24"), json!("2026-12-24")),
        (
            json!({"type": "datetime"}),
            json!("2026-12-24T18:30:00+01:00"),
            json!("=2026-12-24 17:30:00"),
            json!("2026-12-24T18:30:00+01:00"),
        ),
        (
            json!({"type": "matrix", "rows": row, "columns": column}),
            json!({"r": "g"}),
            json!("Room: Good"),
            json!("{\"r\":\"g\"}"),
        ),
        (json!({"type": "long_text"}), hostile.clone(), hostile.clone(), hostile),
    ];
    let mut questions: Vec<_> = cases.iter().map(|case| case.0.clone()).collect();
    questions.extend([json!({"type": "long_text"}), json!({"type": "short_text", "id": "id"})]);
    questions.iter_mut().for_each(|question| question["title"] = json!("?"));
    let mut answers = json!({"q10": "left out", "id": "own"});
    for (number, case) in cases.iter().enumerate() {
        answers[format!("q{}", number + 1)] = case.1.clone();
    }
    for (values, time) in [("labels", "=2026-11-20 09:00:00"), ("raw", "2026-11-20T09:00:00.000Z")] {
        let google = Google::start(healthy).await;
        let members = json!({"fields": {"except": ["q10"]}, "values": values});
        let rig = rig_of(&google, json!(questions), members).await;
        let id = rig.server.submit(&rig.form, answers.clone()).await;
        rig.server.deliver().await;
        let cells = cases.iter().map(|case| if values == "raw" { &case.3 } else { &case.2 }).cloned();
        let expected = [json!(id), json!(time)].into_iter().chain(cells).chain([json!("own")]);
        let rows = google.rows();
        assert_eq!(rows[1], expected.collect::<Vec<_>>(), "{values}");
        assert_eq!(rows[0][..3], ["id", "submitted_at", "q1"]);
        assert_eq!(rows[0].last(), Some(&json!("answers.id")));
    }
}

#[tokio::test]
async fn columns_keep_their_questions() {
    let google = Google::start(healthy).await;
    let rig = rig(&google).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    // The owner moves columns and adds one.
    for row in &mut google.state().tabs[0].rows {
        let name = row.remove(2);
        row.extend([json!("note"), name]);
    }
    let questions = json!([
        {"id": "q4", "type": "short_text", "title": "New"}, {"id": "q1", "type": "short_text", "title": "Renamed", "required": true},
        {"id": "q3", "type": "rating", "title": "How was it?"},
    ]);
    rig.change_form(json!({"questions": questions})).await;
    rig.server.submit(&rig.form, json!({"q1": "Bea", "q4": "new", "q3": 2})).await;
    rig.deliver_after(2_400).await;
    let rows = google.rows();
    assert_eq!(rows[0], ["id", "submitted_at", "q2", "q3", "note", "q1", "q4"]);
    assert_eq!(Value::from(rows[2][2..].to_vec()), json!([null, 2, null, "Bea", "new"]));
    assert_eq!(google.take_log()[4..], ["GET 1:1", "PUT G1:G1", "POST A1:append"]);
}

#[tokio::test]
async fn a_tab_has_as_many_columns_as_the_form_had_questions_at_first() {
    let google = Google::start(healthy).await;
    google.state().tabs.push(Tab::new("It's/all!"));
    let question =
        |number| json!({"id": format!("q{number}"), "type": "rating", "title": format!("Q{number}")});
    let questions: Vec<_> = (1..=40).map(question).collect();
    let rig = rig_of(&google, json!(questions), json!({"sheet": "It's/all!"})).await;
    rig.server.submit(&rig.form, json!({"q40": 3})).await;
    rig.server.deliver().await;
    assert_eq!(google.state().tabs[1].rows[1][41], 3);
    assert!(google.state().tabs[0].rows.is_empty());
    let more: Vec<_> = (1..=41).map(question).collect();
    rig.change_form(json!({"questions": more})).await;
    rig.server.submit(&rig.form, json!({"q41": 5})).await;
    rig.deliver_after(2_400).await;
    let waiting = &rig.deliveries("status=pending").await[0];
    assert_eq!(waiting["last_error"]["code"], "too_few_columns");
    // The owner adds one.
    google.state().tabs[1].columns += 1;
    rig.deliver_after(60_000).await;
    let state = google.state();
    assert_eq!(state.tabs[1].rows[2][42], 5);
    let put = "PUT 'It''s/all!'!AQ1:AQ1";
    assert_eq!(state.log.iter().filter(|line| *line == put).count(), 2, "{:?}", state.log);
}

#[tokio::test]
async fn a_row_whose_answer_was_lost_is_not_appended_again() {
    for (part, is_there) in [("POST names", false), (":append", true), ("/token", false)] {
        let (is_faulty, fault) = faulty(part, Fault::LoseAnswer);
        let google = Google::start(fault).await;
        let rig = rig(&google).await;
        let ada = rig.submit("Ada").await;
        rig.server.deliver().await;
        assert_eq!(last_attempt(&rig).await["error"]["code"], "connection_failed", "{part}");
        assert_eq!(google.rows().len() > 1, is_there);
        is_faulty.store(false, Ordering::Relaxed);
        let bea = rig.submit("Bea").await;
        rig.deliver_after(3_600_000).await;
        assert_eq!(HashSet::from_iter(ids(&google)), HashSet::from([ada, bea]));
        assert_eq!(google.rows().len(), 3, "{part}");
        assert_eq!(rig.deliveries("status=delivered").await.len(), 2);
    }
}

#[tokio::test]
async fn rows_of_an_earlier_process_are_searched_for_even_at_a_first_attempt() {
    // The process ended during an attempt; meanwhile the clock went on, or was set back.
    for elapsed in [1, -30_000] {
        let google = Google::start(healthy).await;
        let mut rig = rig(&google).await;
        let ada = rig.submit("Ada").await;
        google.state().tabs[0].rows = vec![HEADER.map(Value::from).to_vec(), vec![json!(ada)]];
        rig.server.clock.advance(elapsed);
        rig.server = with_google(rig.server, &google, SendLimits::default());
        rig.server.app.maintain(30).await.unwrap();
        rig.server.deliver().await;
        assert_eq!(ids(&google), [ada]);
        assert_eq!(rig.delivery().await["status"], "delivered");
        assert_eq!(google.take_log()[1..], ["GET 1:1", "GET A:A"], "{elapsed}");
    }
}

#[tokio::test]
async fn refusals_have_stable_codes_and_say_what_to_do() {
    for (part, status, message, expected, code, remedy) in [
        (":append", 403, "The caller does not have permission", "dead", "access_denied", ACCOUNT),
        ("1:1", 404, "Requested entity was not found.", "dead", "spreadsheet_not_found", "`spreadsheet_id`"),
        ("1:1", 400, "Unable to parse range: x!1:1", "dead", "refused", "Unable to parse range"),
        ("1:1", 302, "", "dead", "refused", "status 302"),
        ("1:1", 500, "", "pending", "http_error", "500"),
        (":append", 503, "", "pending", "http_error", "503"),
        ("1:1", 401, "", "pending", "unauthorized", "access token"),
        ("/token", 400, "Invalid JWT Signature.", "pending", "key_refused", "Invalid JWT Signature."),
        ("/token", 500, "", "pending", "http_error", "500"),
    ] {
        let google = Google::start(faulty(part, Fault::Refuse(status, message)).1).await;
        let rig = rig(&google).await;
        rig.submit("Ada").await;
        rig.server.deliver().await;
        let delivery = rig.delivery().await;
        let error = &delivery["last_error"];
        assert_eq!((&delivery["status"], &error["code"]), (&json!(expected), &json!(code)), "{delivery}");
        assert!(error["message"].as_str().unwrap().contains(remedy), "{error}");
        assert_eq!(error["http_status"], status);
        assert_eq!(last_attempt(&rig).await["http_status"], status);
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_waits_a_minute_and_counts_as_no_failure() {
    let (is_faulty, fault) = faulty("1:1", Fault::Refuse(429, "Quota exceeded"));
    let google = Google::start(fault).await;
    let rig = rig(&google).await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(last_attempt(&rig).await["result"], "paced");
    let bea = rig.submit("Bea").await;
    google.take_log();
    is_faulty.store(false, Ordering::Relaxed);
    rig.deliver_after(59_999).await;
    assert_eq!(google.take_log(), [""; 0]);
    rig.deliver_after(1).await;
    assert_eq!(HashSet::from_iter(ids(&google)), HashSet::from([ada, bea]));
    assert_eq!(rig.health("sheet").await["state"], "ok");
}

#[tokio::test]
async fn a_token_is_used_for_55_minutes_unless_it_is_refused() {
    let google = Google::start(healthy).await;
    let rig = rig(&google).await;
    let tokens = || google.take_log().iter().filter(|line| *line == "POST /token").count();
    let mut counts = Vec::new();
    for wait in [0, 54 * 60_000, 60_000] {
        rig.server.clock.advance(wait);
        rig.submit("Ada").await;
        rig.server.deliver().await;
        counts.push(tokens());
    }
    assert_eq!(counts, [1, 0, 1]);
    google.state().tokens.clear();
    rig.server.clock.advance(60_000);
    rig.submit("Ada").await;
    rig.server.deliver().await;
    let failed = &rig.deliveries("status=pending").await[0];
    assert_eq!(failed["last_error"]["code"], "unauthorized");
    rig.deliver_after(60_000).await;
    assert_eq!((tokens(), google.rows().len()), (1, 5));
}

#[tokio::test]
async fn another_first_row_is_left_alone() {
    let google = Google::start(healthy).await;
    google.state().tabs[0].rows = vec![vec![json!("Name"), json!("Town")]];
    let rig = rig(&google).await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(rig.delivery().await["last_error"]["code"], "not_a_header");
    assert_eq!(google.take_log(), ["POST /token", "GET 1:1"]);
}

#[tokio::test]
async fn a_column_that_is_too_large_to_search_and_a_broken_answer_are_tried_again() {
    let large = "HTTP/1.1 200 OK\r\ncontent-length: 17000000\r\n\r\n";
    let endless = Reply::Endless(large.into(), b"x".repeat(1 << 16));
    let cut = Reply::text("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{");
    let other = Reply::text("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n42");
    for (reply, code) in [(endless, "spreadsheet_too_large"), (cut, "timeout"), (other, "invalid_response")] {
        let google = Google::start(faulty("1:1", Fault::Answer(reply)).1).await;
        let rig = rig(&google).await;
        rig.submit("Ada").await;
        rig.server.deliver().await;
        rig.expect_failure("pending", code).await;
    }
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_a_timeout() {
    let google = Google::start(faulty(":append", Fault::Answer(Reply::silence())).1).await;
    let mut rig = rig(&google).await;
    rig.server = with_google(rig.server, &google, SHORT);
    rig.submit("Ada").await;
    rig.server.deliver().await;
    let delivery = rig.delivery().await;
    assert_eq!(delivery["last_error"]["code"], "timeout");
    // Google may append the row until it ends the request, which takes it three minutes at most.
    google.take_log();
    rig.deliver_after(179_999).await;
    assert_eq!(google.take_log(), [""; 0]);
    rig.deliver_after(1).await;
    assert_eq!(google.take_log(), ["GET 1:1", "GET A:A", "POST A1:append"]);
}

#[tokio::test]
async fn large_rows_are_divided_among_requests() {
    let appends = AtomicUsize::new(0);
    let google = Google::start(move |line| {
        let is_third = line.contains(":append") && appends.fetch_add(1, Ordering::Relaxed) == 2;
        is_third.then_some(Fault::Refuse(500, ""))
    });
    let google = google.await;
    let questions: Vec<_> = (0..16)
        .map(|number| json!({"type": "long_text", "title": format!("Q{number}"), "max_length": 65_000}))
        .collect();
    let rig = rig_of(&google, json!(questions), json!({})).await;
    let text = "x".repeat(49_000);
    let answers: Value = (1..=16).map(|number| (format!("q{number}"), json!(text))).collect();
    for _ in 0..6 {
        rig.server.submit(&rig.form, answers.clone()).await;
    }
    // Two are a request; the third request fails.
    for expected in [2, 4, 4] {
        rig.server.deliver().await;
        rig.server.clock.advance(2_400);
        assert_eq!(ids(&google).len(), expected);
    }
    assert_eq!(rig.deliveries("status=delivered").await.len(), 4);
    for _ in 0..4 {
        rig.deliver_after(3_600_000).await;
    }
    let ids = ids(&google);
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (6, 6));
}

#[tokio::test]
async fn nothing_shows_the_key_or_a_token() {
    let key_line = PRIVATE_KEY.lines().nth(5).unwrap();
    for part in ["/token", "1:1", ":append"] {
        let google = Google::start(faulty(part, Fault::Echo(400)).1).await;
        let rig = rig(&google).await;
        rig.submit("Ada").await;
        rig.server.deliver().await;
        let path = format!("/api/v1/forms/{}/integrations/sheet", rig.form);
        let shown = rig.server.get(&path).send().await.expect(200);
        assert_eq!(shown["service_account"]["set"], true);
        let (delivery, attempt) = (rig.delivery().await, last_attempt(&rig).await);
        assert!(attempt["response"].as_str().unwrap().contains("(secret)"), "{attempt}");
        let assertion = String::from_utf8(google.requests()[0].body.clone()).unwrap();
        let assertion = assertion.rsplit('=').next().unwrap();
        for text in [shown.to_string(), delivery.to_string(), attempt.to_string()] {
            for secret in [key_line, "TOKENCANARY", assertion] {
                assert!(!text.contains(secret), "{secret} is in {text}");
            }
        }
        for request in google.requests() {
            assert!(!String::from_utf8_lossy(&request.body).contains(key_line), "{part}: the key was sent");
        }
    }
}

#[tokio::test]
async fn a_test_writes_the_first_row_only() {
    let google = Google::start(healthy).await;
    let rig = rig(&google).await;
    for expected in [&["POST /token", "GET 1:1", "POST names"][..], &["GET 1:1", "PUT A1:A1"]] {
        let attempt = rig.test("sheet").await;
        assert_eq!(attempt["result"], "delivered", "{attempt}");
        assert_eq!(google.take_log(), expected);
    }
    assert_eq!(google.rows(), [HEADER]);
}
