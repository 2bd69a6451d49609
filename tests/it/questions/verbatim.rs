//! Answers are returned byte for byte, however their JSON is written.

use forms::api::{SubmissionBody, SubmissionDetail, SubmissionList};
use forms::domain::question::QuestionKind;
use serde_json::{Value, json};

use super::*;
use crate::engine::random::Random;
use crate::harness::Server;

/// Valid answers to a question of type `name`, in unusual but valid JSON.
fn valid_answers(name: &str) -> &'static [&'static str] {
    match name {
        "short_text" => {
            &[r#""a\/b \"c\" \\ \u00E9 \ud83d\uDE00""#, "\"\u{7f6e} tab\\t.\"", r#""\u0020x ""#, "\"é 😀\""]
        }
        "long_text" => {
            &[r#""one\ntwo\r\n\tthree""#, "\"<\\/script>\u{2028}\"", r#""e\u0301""#, "\"e\u{301}\""]
        }
        "email" => &[r#""\u0061nn@example.com""#, r#""o'neil+x@bücher.example""#],
        "url" => &[r#""https:\/\/example.com\/a?b=c\/d#é""#],
        "phone" => &[r#""+49 30 9\u00301820""#],
        "number" => &["-0.00e+5", "-7.0", "120e0", "10000000E-1", "1.000000000000000000000000000000", "0"],
        "rating" | "opinion_scale" => &["1.0", "2e0", "30E-1", "4.000000000000000000000000000000", "5"],
        "boolean" => &["true", "false"],
        "consent" => &["true"],
        "single_choice" => &[r#""r\u0065d""#, r#""green""#],
        "multiple_choice" => &[r#"[ "red" ]"#, "[\"green\"\t,\r\n  \"r\\u0065d\"]"],
        "ranking" => &["[\n\"red\",\"green\"]", r#"["green" ]"#],
        "matrix" => &[r#"{"price" : "good"}"#, "{ \"t\\u0061ste\":\"bad\"\n,\t\"price\":\"b\\u0061d\"}"],
        "date" => &[r#""2027-03-1\u0033""#],
        "time" => &[r#""09:30""#, r#""09:30:15""#],
        "datetime" => &[r#""2027-03-13T09:30:00+01:00""#, r#""2027-03-13T09:30:00.250Z""#],
        "hidden" => &[r#""shop\/5""#, "5.0", "false"],
        "statement" | "page" => &[],
        _ => panic!("no valid answers are known for `{name}`"),
    }
}

/// White space that JSON allows between tokens; often none.
const SPACES: [&str; 7] = ["", "", "", " ", "\n", "\t", "\r\n  "];

/// Draws answers to some of the questions, whose ids are their types, in any order; some are empty.
fn draw_answers(random: &mut Random) -> String {
    let mut answers = Vec::new();
    for name in QuestionKind::NAMES {
        let valid = valid_answers(name);
        if valid.is_empty() || random.once_in(3) {
            continue;
        }
        let answer =
            if random.once_in(8) { random.pick(&["null", "\"\"", "[ ]"]) } else { random.pick(valid) };
        let [before, between, after] = [(); 3].map(|()| *random.pick(&SPACES));
        answers.push(format!("{before}\"{name}\"{between}:{after}{answer}{before}"));
    }
    let first = random.below(answers.len().max(1));
    answers.rotate_left(first);
    format!("{{{}}}", answers.join(","))
}

#[tokio::test]
async fn answers_are_returned_byte_for_byte() {
    let server = Server::start().await;
    let question = |name: &&str| -> Value {
        serde_json::from_str(&format!(r#"{{"id":"{name}","title":"How?",{}}}"#, required_settings(name)))
            .unwrap()
    };
    let questions: Vec<_> = QuestionKind::NAMES.iter().map(question).collect();
    let form = server.published_form(json!(questions)).await;
    let shown = server.get(format!("/api/v1/forms/{form}")).send().await.expect(200);
    for (question, shown) in questions.iter().zip(shown["questions"].as_array().unwrap()) {
        let mut settings = question.as_object().unwrap().iter();
        assert!(settings.all(|(name, value)| shown[name] == *value), "{question:?} {shown}");
    }
    let path = format!("/api/v1/forms/{form}/submissions");
    let mut random = Random::new(2026);
    let mut sent = Vec::new();
    for round in 0..300 {
        let answers = draw_answers(&mut random);
        let [before, after] = [(); 2].map(|()| *random.pick(&SPACES));
        let body = format!("{{{before}\"answers\":{after}{answers}\n}}");
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
