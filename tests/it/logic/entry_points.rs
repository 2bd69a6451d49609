//! The API and the command line agree with the reference on random forms and answers.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::random::{draw_answers, draw_questions, expected};
use crate::cli::Home;
use crate::engine::random::Random;
use crate::harness::Server;

const FORMS: u64 = 60;
const SETS: usize = 100;

/// Draws the questions of a seed and sets of answers to them.
fn draw(seed: u64) -> (Vec<Value>, Vec<Map<String, Value>>) {
    let mut random = Random::new(seed);
    let questions = draw_questions(&mut random);
    let sets = (0..SETS).map(|_| draw_answers(&mut random, &questions)).collect();
    (questions, sets)
}

/// Questions and codes in the `errors` of a problem document or a evaluation.
fn violations(errors: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = errors.as_array().into_iter().flatten();
    errors.map(|error| (text(&error["question"]), text(&error["code"]))).collect()
}

fn expected_violations(questions: &[Value], answers: &Map<String, Value>) -> Vec<(String, String)> {
    expected(questions, answers).into_iter().map(|(id, code)| (id, code.to_owned())).collect()
}

#[tokio::test]
async fn the_api_agrees_with_the_reference() {
    let server = Server::start().await;
    let mut counts = HashMap::<String, usize>::new();
    for seed in 0..FORMS {
        let (questions, sets) = draw(seed);
        let form = server.published_form(Value::Array(questions.clone())).await;
        for answers in sets {
            let expected = expected_violations(&questions, &answers);
            let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
            let answer = server.post(path, json!({"answers": answers})).send().await;
            let body = answer.expect(if expected.is_empty() { 200 } else { 422 });
            assert_eq!(violations(&body["errors"]), expected, "seed {seed}: {answers:?} to {questions:?}");
            let accepted = expected.is_empty().then(|| "accepted".to_owned());
            for outcome in expected.into_iter().map(|(_, code)| code).chain(accepted) {
                *counts.entry(outcome).or_default() += 1;
            }
        }
    }
    assert!(
        ["question_not_visible", "required", "accepted"].iter().all(|code| counts[*code] > 600),
        "{counts:?}"
    );
}

#[test]
fn the_command_line_agrees_with_the_reference() {
    let home = Home::new();
    for seed in 0..FORMS {
        let (questions, sets) = draw(seed);
        home.write("form.json", &json!({"title": "F", "questions": questions}).to_string());
        let lines = sets.iter().map(|set| Value::Object(set.clone()).to_string() + "\n");
        home.write("sets.jsonl", &lines.collect::<String>());
        let run = home.run(&["validate", "form.json", "--answers", "sets.jsonl", "-o", "jsonl"]);
        let evaluations: Vec<Value> =
            run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(evaluations.len(), SETS, "seed {seed}: {run:?}");
        for (answers, evaluation) in sets.iter().zip(&evaluations) {
            let expected = expected_violations(&questions, answers);
            assert_eq!(
                violations(&evaluation["errors"]),
                expected,
                "seed {seed}: {answers:?} to {questions:?}"
            );
            assert_eq!(evaluation["valid"], expected.is_empty(), "{evaluation}");
        }
        let all_valid = evaluations.iter().all(|evaluation| evaluation["valid"] == true);
        assert_eq!(run.code, Some(if all_valid { 0 } else { 6 }));
    }
}
