//! Answers are returned byte for byte, however their JSON is written.

use forms::api::{SubmissionBody, SubmissionDetail, SubmissionList};
use forms::domain::question::QuestionKind;
use serde_json::{Value, json};

use super::required_settings;
use crate::engine::random::Random;
use crate::harness::Server;

/// Valid answers to a question of type `name`.
fn valid_answers(name: &str) -> Vec<Value> {
    match name {
        "short_text" => vec![json!("a/b \"c\" \\ é 😀"), json!("\u{7f6e} tab\t."), json!(" x ")],
        "long_text" => vec![json!("one\ntwo\r\n\tthree"), json!("</script>\u{2028}"), json!("e\u{301}")],
        "email" => vec![json!("ann@example.com"), json!("o'neil+x@bücher.example")],
        "url" => vec![json!("https://example.com/a?b=c/d#é")],
        "phone" => vec![json!("+49 30 901820")],
        "number" => vec![json!(0), json!(-7), json!(120), json!(1_000_000)],
        "rating" | "opinion_scale" => (1..=5).map(Value::from).collect(),
        "boolean" => vec![json!(true), json!(false)],
        "consent" => vec![json!(true)],
        "single_choice" => vec![json!("red"), json!("green")],
        "multiple_choice" => vec![json!(["red"]), json!(["green", "red"])],
        "ranking" => vec![json!(["red", "green"]), json!(["green"])],
        "matrix" => vec![json!({"price": "good"}), json!({"taste": "bad", "price": "bad"})],
        "date" => vec![json!("2027-03-13")],
        "time" => vec![json!("09:30"), json!("09:30:15")],
        "datetime" => vec![json!("2027-03-13T09:30:00+01:00"), json!("2027-03-13T09:30:00.250Z")],
        "hidden" => vec![json!("shop/5"), json!(5), json!(false)],
        "statement" | "page" => vec![],
        _ => panic!("no valid answers are known for `{name}`"),
    }
}

/// White space that JSON allows between tokens; often none.
const SPACES: [&str; 7] = ["", "", "", " ", "\n", "\t", "\r\n  "];

fn space(random: &mut Random) -> &'static str {
    SPACES[random.below(SPACES.len())]
}

/// Writes `value` as JSON in an unusual but valid way.
fn write_value(random: &mut Random, value: &Value) -> String {
    let list = |random: &mut Random, items: Vec<String>, open: char, close: char| {
        let mut text = format!("{open}{}", space(random));
        for (place, item) in items.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            text += &format!("{comma}{}{item}{}", space(random), space(random));
        }
        format!("{text}{close}")
    };
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => write_number(random, number.as_i64().unwrap()),
        Value::String(text) => write_text(random, text),
        Value::Array(items) => {
            let items = items.iter().map(|item| write_value(random, item)).collect();
            list(random, items, '[', ']')
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let name = write_text(random, name);
                format!("{name}{}:{}{}", space(random), space(random), write_value(random, value))
            };
            let mut members: Vec<_> = members.iter().map(member).collect();
            let first = random.below(members.len().max(1));
            members.rotate_left(first);
            list(random, members, '{', '}')
        }
    }
}

/// Writes a whole number in one of its valid notations.
fn write_number(random: &mut Random, number: i64) -> String {
    match random.below(6) {
        0 => format!("{number}.0"),
        1 => format!("{number}e0"),
        2 if number != 0 => format!("{number}0E-1"),
        3 => format!("{number}.{}", "0".repeat(30)),
        4 if number == 0 => "-0.00e+5".to_owned(),
        _ => number.to_string(),
    }
}

/// Writes a text with some characters escaped unnecessarily.
fn write_text(random: &mut Random, text: &str) -> String {
    let mut text_json = "\"".to_owned();
    for character in text.chars() {
        let plain = serde_json::to_string(&character.to_string()).unwrap();
        let escaped = || {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect::<String>()
        };
        match random.below(5) {
            0 => text_json += &escaped(),
            1 => text_json += &escaped().to_lowercase(),
            2 if character == '/' => text_json += "\\/",
            _ => text_json += &plain[1..plain.len() - 1],
        }
    }
    text_json + "\""
}

/// Draws answers to some of the questions, whose ids are their types; some are empty.
fn draw_answers(random: &mut Random) -> String {
    let mut answers = serde_json::Map::new();
    for name in QuestionKind::NAMES {
        let valid = valid_answers(name);
        if valid.is_empty() || random.once_in(3) {
            continue;
        }
        let empty = random.once_in(8).then(|| random.pick(&[json!(null), json!(""), json!([])]).clone());
        answers.insert(name.to_owned(), empty.unwrap_or_else(|| random.pick(&valid).clone()));
    }
    write_value(random, &Value::Object(answers))
}

#[tokio::test]
async fn answers_are_returned_byte_for_byte() {
    let server = Server::start().await;
    let question = |name: &&str| -> Value {
        serde_json::from_str(&format!(r#"{{"id":"{name}","title":"How?",{}}}"#, required_settings(name)))
            .unwrap()
    };
    let form = server.published_form(QuestionKind::NAMES.iter().map(question).collect()).await;
    let path = format!("/api/v1/forms/{form}/submissions");
    let mut random = Random::new(2026);
    let mut sent = Vec::new();
    for round in 0..300 {
        let answers = draw_answers(&mut random);
        let body = format!("{{{}\"answers\":{}{answers}\n}}", space(&mut random), space(&mut random));
        let post = |path: &str| server.post(path, json!({})).body(body.clone());
        let tried = post(&format!("{path}?dry_run=true")).send().await;
        tried.expect(200);
        let tried: SubmissionBody = serde_json::from_str(tried.text()).unwrap();
        assert_eq!(tried.answers.get(), answers, "a dry run, round {round}");
        let key = format!("round-{round}");
        let made = post(&path).header("idempotency-key", &key).send().await;
        made.expect(201);
        let again = post(&path).header("idempotency-key", &key).send().await;
        assert_eq!(again.text(), made.text(), "a replay, round {round}");
        let made: SubmissionBody = serde_json::from_str(made.text()).unwrap();
        assert_eq!(made.answers.get(), answers, "creating, round {round}");
        let got = server.get(format!("{path}/{}", made.id)).send().await;
        let got: SubmissionDetail = serde_json::from_str(got.text()).unwrap();
        assert_eq!(got.answers.get(), answers, "reading, round {round}");
        sent.push(answers);
    }
    let listed = server.get(format!("{path}?limit=1000")).send().await;
    let listed: SubmissionList = serde_json::from_str(listed.text()).unwrap();
    let listed: Vec<_> = listed.submissions.iter().rev().map(|submission| submission.answers.get()).collect();
    assert_eq!(listed, sent, "the list");
}
