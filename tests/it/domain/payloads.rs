//! What integrations send: bodies of webhooks, their headers and signatures, and rows of CSV files.

use forms::domain::integration::outbound::{HttpRequest, Outbound};
use forms::domain::integration::plan::PlanError;
use forms::domain::integration::row::RowBody;
use forms::domain::integration::webhook::signature::sign;
use forms::domain::language::ENGLISH;
use forms::domain::submission::EditInfo;
use forms::secret::Secret;
use forms::vault::Vault;
use serde_json::Value;

use super::*;
use crate::delivery::google::key_file;
use crate::harness::VAULT;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A form with one integration.
fn form(integration: &str) -> (Form, Version, Integration) {
    integrated(&format!(
        r#"{{"title":"Feed \"back\"","questions":[{{"type":"short_text","title":"Name"}},{{"type":"statement","title":"S"}},{{"type":"rating","title":"Score"}},{{"type":"date","title":"Day"}},{{"type":"boolean","title":"Again"}}],"integrations":[{integration}]}}"#
    ))
}

fn webhook(members: &str) -> (Form, Version, Integration) {
    form(&format!(r#"{{"type":"webhook","url":"https://example.com/hook","secret":"{SECRET}"{members}}}"#))
}

fn body((form, version, integration): &(Form, Version, Integration), event: &Event) -> String {
    let body = integration.render(event, form, Some(version));
    body.map_or_else(|| "skipped".to_owned(), |body| String::from_utf8(body).unwrap())
}

#[test]
fn a_full_body_has_the_submission_as_the_api_shows_it() {
    // Spaces, order and the text of numbers stay as they were sent.
    let answers = r#"{ "q2": 5.0, "q1":"Zoë \u00e9" }"#;
    assert_eq!(
        body(&webhook(""), &completed(answers)),
        concat!(
            r#"{"type":"submission.completed","timestamp":"2025-11-20T16:00:00.123Z","version":1,"id":"evt_01kagzwy3v0000000000000000","sequence":42,"test":false,"truncated":false,"#,
            r#""data":{"form":{"id":"frm_000000000007","title":"Feed \"back\""},"#,
            r#""submission":{"id":"sub_01kagzwy3v0000000000000000","form_id":"frm_000000000007","status":"completed","answers":{ "q2": 5.0, "q1":"Zoë \u00e9" },"submitted_at":"2025-11-20T16:00:00.123Z","form_version":1},"#,
            r#""fields":[{"question":"q1","type":"short_text","title":"Name","value":"Zoë \u00e9"},{"question":"q2","type":"rating","title":"Score","value":5.0}]}}"#
        )
    );
    let edited = Submission {
        metadata: Some(r#"{"source":"x"}"#.into()),
        edited: Some(EditInfo { at: at(1_763_654_500_000), count: 1 }),
        ..submission("{}")
    };
    let updated = event(EventType::SubmissionUpdated, Subject::Submission(Box::new(edited.clone())));
    let text = body(&webhook(r#","events":["submission.updated"]"#), &updated);
    let shown = forms::api::SubmissionDetail::json(&edited);
    assert!(text.contains(&format!(r#""submission":{shown},"fields":[]}}}}"#)), "{text}");
    assert!(text.contains(r#""metadata":{"source":"x"},"updated_at":"2025-11-20T16:01:40.000Z""#));
}

#[test]
fn selected_fields_are_left_out_everywhere() {
    let sent = completed(r#"{"q1":"Ann", "q2":5, "q4":true}"#);
    let only = body(&webhook(r#","fields":{"only":["q2","q4"]}"#), &sent);
    assert!(only.contains(r#""answers":{ "q2":5, "q4":true}"#), "{only}");
    let except = body(&webhook(r#","fields":{"except":["q2","q4"]}"#), &sent);
    assert!(except.contains(r#""answers":{"q1":"Ann"}"#), "{except}");
    for (text, secret) in [(&only, "Ann"), (&except, "Score")] {
        assert!(!text.contains(secret), "{text}");
        json::parse(text).unwrap();
    }
}

#[test]
fn a_thin_body_has_ids_only_and_replaces_one_that_is_too_large() {
    let thin = concat!(
        r#""id":"evt_01kagzwy3v0000000000000000","sequence":42,"test":false,"truncated":TRUNCATED,"#,
        r#""data":{"form":{"id":"frm_000000000007"},"submission":{"id":"sub_01kagzwy3v0000000000000000"}}}"#
    );
    let text = body(&webhook(r#","payload":"thin""#), &completed(r#"{"q1":"Ann"}"#));
    assert!(text.ends_with(&thin.replace("TRUNCATED", "false")), "{text}");
    let large = completed(&format!(r#"{{"q1":"{}"}}"#, "x".repeat(128 * 1024)));
    let text = body(&webhook(""), &large);
    assert!(text.ends_with(&thin.replace("TRUNCATED", "true")), "{text}");
    let selected = body(&webhook(r#","fields":{"except":["q1"]}"#), &large);
    assert!(selected.contains(r#""truncated":false"#) && selected.len() < 1_000);
}

#[test]
fn a_condition_decides_with_the_types_of_the_questions() {
    for (condition, answers, expected) in [
        (r#"{"q2":5}"#, r#"{"q2":5.0}"#, true),
        (r#"{"q2":5}"#, r#"{"q2":4}"#, false),
        (r#"{"q2":{"ne":5}}"#, "{}", true),
        (r#"{"q4":{"answered":true}}"#, r#"{"q4":false}"#, true),
        (r#"{"q3":{"lt":"2026-01-10"}}"#, r#"{"q3":"2026-01-09"}"#, true),
        (r#"{"any":[{"q1":"x"},{"not":{"q4":true}}]}"#, r#"{"q4":true}"#, false),
    ] {
        let all = webhook(&format!(r#","when":{condition}"#));
        let is_sent = body(&all, &completed(answers)) != "skipped";
        assert_eq!(is_sent, expected, "{condition} of {answers}");
    }
}

#[test]
fn a_test_event_shows_an_example_whatever_the_condition() {
    let all = webhook(r#","when":{"q2":1}"#);
    let test = Event::test(&all.0, &all.1, at(1_763_654_400_123), &forms::secret::SystemRandomness);
    let text = body(&all, &test);
    assert!(text.starts_with(r#"{"type":"integration.test","#), "{text}");
    assert!(text.contains(r#""sequence":0,"test":true,"truncated":false"#), "{text}");
    assert!(text.contains(r#""submitted_at":"2025-11-20T16:00:00.123Z""#), "{text}");
    let answers = json::parse(&text).unwrap();
    let fields = answers.pointer("/data/fields").and_then(json::Value::as_array).unwrap().len();
    assert_eq!(fields, 4);
    let Subject::Submission(example) = test.subject else { panic!("not a submission") };
    let json::Value::Object(members) = json::parse(&example.answers).unwrap() else { panic!("no object") };
    assert_eq!(all.1.check(&members, &Limits::default(), at(0), ENGLISH), Ok(Vec::new()));
}

fn plan(
    all: &(Form, Version, Integration),
    body: &[u8],
    now: i64,
    vault: &Vault,
) -> Result<Outbound, PlanError> {
    all.2.plan(attempt(&all.2, 3, body, at(now)), &all.0, vault)
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let mut found = request.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let value = found.next().map(|(_, value)| value.reveal().as_str());
    assert!(found.next().is_none(), "{name} twice");
    value
}

#[test]
fn a_request_is_signed_and_has_all_headers() {
    let all = webhook(
        r#","bearer_token":"tok","headers":{"X-Plain":"text","X-Key":{"value":"canary","env":"KEY"}}"#,
    );
    let Outbound::Http(request) = plan(&all, b"{}", 1_763_654_400_999, &VAULT).unwrap() else {
        panic!("not a request")
    };
    assert_eq!((request.method, request.url.as_str()), ("POST", "https://example.com/hook"));
    assert_eq!(request.body, b"{}");
    let id = "evt_01kagzwy3v0000000000000000";
    let delivery = DeliveryId::of(id.parse().unwrap(), all.2.id.into()).to_string();
    for (name, value) in [
        ("content-type", "application/json"),
        ("user-agent", concat!("forms/", env!("CARGO_PKG_VERSION"))),
        ("webhook-id", id),
        ("webhook-timestamp", "1763654400"),
        ("webhook-signature", &sign(SECRET, id, 1_763_654_400, b"{}").unwrap()),
        ("forms-delivery", &delivery),
        ("forms-attempt", "3"),
        ("authorization", "Bearer tok"),
        ("x-plain", "text"),
        ("x-key", "canary"),
    ] {
        assert_eq!(header(&request, name), Some(value), "{name}");
    }
    assert!(!format!("{request:?}").contains("canary"));
    let other = Vault::new(&Secret::new([8; 32]));
    assert!(matches!(plan(&all, b"{}", 0, &other), Err(PlanError::Decrypt(_))));
}

#[test]
fn the_reference_signature_is_reproduced() {
    let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    let signature = sign(SECRET, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, body);
    assert_eq!(signature.as_deref(), Some("v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="));
    for secret in ["C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_?", ""] {
        assert_eq!(sign(secret, "evt_1", 0, b""), None, "{secret}");
    }
}

/// The cell of `answer`, for programs.
fn raw_cell(all: &(Form, Version, Integration), answer: &str) -> Value {
    let text = body(all, &completed(&format!(r#"{{"q1":{answer}}}"#)));
    let row: RowBody<Value> = serde_json::from_str(&text).unwrap();
    row.cells[0].1.clone()
}

#[test]
fn no_cell_of_a_file_is_run_by_a_spreadsheet() {
    let all = form(r#"{"type":"csv_file","path":"a.csv","values":"raw"}"#);
    for (answer, expected) in [
        (r#""Ann""#, "Ann"),
        (r#""""#, ""),
        ("null", ""),
        ("1.10", "1.10"),
        ("-5", "-5"),
        ("true", "true"),
        (r#"{"other":"x"}"#, r#"{"other":"x"}"#),
        (r#""+49 30""#, "'+49 30"),
        (r#""-5""#, "-5"),
        (r#""-x""#, "'-x"),
        (r#""@SUM(A1)""#, "'@SUM(A1)"),
        (r#""\t=1""#, "'\t=1"),
        (r#""\r=1""#, "'\r=1"),
        (r#""\n=1""#, "'\n=1"),
        (r#""\uff1d1+1""#, "'\u{ff1d}1+1"),
        (r#""-inf""#, "'-inf"),
        (r#"" =1""#, " =1"),
    ] {
        assert_eq!(raw_cell(&all, answer), expected, "{answer}");
    }
}

#[test]
fn a_spreadsheet_gets_numbers_that_it_keeps_and_texts_that_fit() {
    let key = json::Value::from(key_file().as_str());
    let all = form(&format!(
        r#"{{"type":"google_sheets","spreadsheet_id":"1","service_account":{key},"values":"raw"}}"#
    ));
    for (answer, expected) in [
        ("null", "null"),
        ("5.0", "5.0"),
        ("5e0", "5.0"),
        ("123456789012345", "123456789012345"),
        ("1234567890123456", r#""1234567890123456""#),
        ("0.1234567890123456", r#""0.1234567890123456""#),
        (r#""\t'x""#, r#""\t'x""#),
    ] {
        assert_eq!(raw_cell(&all, answer).to_string(), expected, "{answer}");
    }
    let full = "é".repeat(49_999);
    for (text, expected) in [
        (full.clone(), full),
        ("é".repeat(50_000), "é".repeat(49_998) + "…"),
        ("😀".repeat(49_999), "😀".repeat(24_999) + "…"),
    ] {
        assert_eq!(raw_cell(&all, &format!("\"{text}\"")), expected);
    }
}

#[test]
fn a_row_has_a_cell_for_each_question() {
    let all = form(r#"{"type":"csv_file","path":"a/b.csv","delimiter":";","fields":{"except":["q3"]}}"#);
    let text = body(&all, &completed(r#"{"q2":5.0,"q1":"=1+1"}"#));
    let cells =
        [("q1", "'=1+1"), ("q2", "5.0"), ("q4", "")].map(|(id, cell)| (id.to_owned(), cell.to_owned()));
    let row: RowBody<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(row.cells, cells);
    let head = [row.id.as_str(), row.submitted_at.as_str()];
    assert_eq!(head, ["sub_01kagzwy3v0000000000000000", "2025-11-20T16:00:00.123Z"]);
    assert!(all.2.is_file());
    assert_eq!(all.2.destination(), format!("a/b.csv/{}", all.2.id));
    assert_eq!(all.2.pace().concurrency, 1);
}

#[test]
fn a_mail_without_answers_has_no_place_for_them() {
    let all = form(r#"{"type":"email","to":["a@example.com"],"events":["form.published"]}"#);
    let sent = body(&all, &event(EventType::FormPublished, Subject::Form));
    assert!(!sent.contains("table") && !sent.contains("answers"), "{sent}");
    assert!(sent.contains("20 Nov 2025, 16:00 UTC"), "{sent}");
}

#[test]
fn a_schedule_is_the_authors_or_the_operators_or_the_types() {
    let week = 7 * 24 * 3_600_000;
    let (_, _, hook) = webhook("");
    assert_eq!(hook.retry_schedule(None).len(), 9);
    assert_eq!(hook.retry_schedule(Some(&[5])), [5]);
    assert_eq!((hook.destination().as_str(), hook.pace().batch), ("example.com", 1));
    let (_, _, own) = webhook(r#","retry":["1s","1m"]"#);
    assert_eq!(own.retry_schedule(Some(&[5])), [1_000, 60_000]);
    let file = form(r#"{"type":"csv_file","path":"a.csv"}"#).2;
    let total: i64 = file.retry_schedule(None).iter().sum();
    assert!((6 * week / 7..=week).contains(&total), "{total}");
}
