//! The same random forms and answers by every way in: the API and the command line decide as the reference does.

use serde_json::{Map, Value, json};

use super::random::{draw_answers, draw_questions, expected};
use crate::cli::Home;
use crate::engine::random::Random;
use crate::harness::Server;

const FORMS: u64 = 200;
const SETS: usize = 100;

/// The form of a seed, with its sets of answers.
fn draw(seed: u64) -> (Vec<Value>, Vec<Map<String, Value>>) {
    let mut random = Random::new(seed);
    let questions = draw_questions(&mut random);
    let sets = (0..SETS).map(|_| draw_answers(&mut random, &questions)).collect();
    (questions, sets)
}

/// What is wrong by the `errors` of a problem or a trial, as the reference tells it.
fn told(errors: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = errors.as_array().into_iter().flatten();
    errors.map(|error| (text(&error["question"]), text(&error["code"]))).collect()
}

fn wanted(questions: &[Value], answers: &Map<String, Value>) -> Vec<(String, String)> {
    expected(questions, answers).into_iter().map(|(id, code)| (id, code.to_owned())).collect()
}

#[tokio::test]
async fn the_api_decides_as_the_reference_does() {
    let server = Server::start().await;
    for seed in 0..FORMS {
        let (questions, sets) = draw(seed);
        let form = server.published(Value::Array(questions.clone())).await;
        for answers in sets {
            let expected = wanted(&questions, &answers);
            let path = format!("/api/v1/forms/{form}/submissions?dry_run=true");
            let answer = server.post(path, json!({"answers": answers})).send().await;
            let body = answer.expect(if expected.is_empty() { 200 } else { 422 });
            assert_eq!(told(&body["errors"]), expected, "seed {seed}: {answers:?} to {questions:?}");
        }
    }
}

#[test]
fn the_command_line_decides_as_the_reference_does() {
    let home = Home::new();
    for seed in 0..FORMS {
        let (questions, sets) = draw(seed);
        home.write("form.json", &json!({"title": "F", "questions": questions}).to_string());
        let lines = sets.iter().map(|set| Value::Object(set.clone()).to_string() + "\n");
        home.write("sets.jsonl", &lines.collect::<String>());
        let run = home.run(&["validate", "form.json", "--answers", "sets.jsonl", "-o", "jsonl"]);
        let trials: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(trials.len(), SETS, "seed {seed}: {run:?}");
        for (answers, trial) in sets.iter().zip(&trials) {
            let expected = wanted(&questions, answers);
            assert_eq!(told(&trial["errors"]), expected, "seed {seed}: {answers:?} to {questions:?}");
            assert_eq!(trial["valid"], expected.is_empty(), "{trial}");
        }
        let all_valid = trials.iter().all(|trial| trial["valid"] == true);
        assert_eq!(run.code, Some(if all_valid { 0 } else { 6 }));
    }
}
