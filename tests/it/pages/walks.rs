//! Random walks through forms with conditions: the page without JavaScript, the API and `validate` agree on what is asked,
//! accepted and stored.
//!
//! `FORMS_WALKS=10000 cargo test --test it pages::walks` walks longer; the default is 500.

use std::collections::HashSet;

use serde_json::Map;

use super::{answer, newest, public_form};
use crate::cli::Home;
use crate::engine::random::Random;
use crate::harness::prelude::*;
use crate::logic::random::{draw_answers, draw_questions, expected};

/// Walks through one form.
const SETS: usize = 20;

/// Returns the fields that a browser posts for `answers`.
pub(crate) fn to_fields(answers: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut fields = Vec::new();
    for (id, answer) in answers {
        match answer {
            Value::Null => fields.push((id.clone(), String::new())),
            Value::Array(items) => fields.extend(items.iter().map(|item| (id.clone(), text(item)))),
            answer => fields.push((id.clone(), text(answer))),
        }
    }
    fields
}

/// Returns `answers` without those that are empty, or whose question is not asked.
pub(crate) fn asked(questions: &[Value], answers: &Map<String, Value>) -> Map<String, Value> {
    let violations = expected(questions, answers);
    let hidden: HashSet<_> =
        violations.iter().filter(|(_, code)| *code == "question_not_visible").map(|(id, _)| id).collect();
    let is_empty = |answer: &Value| answer.is_null() || *answer == "" || *answer == json!([]);
    let asked = answers.iter().filter(|(id, answer)| !hidden.contains(id) && !is_empty(answer));
    asked.map(|(id, answer)| (id.clone(), answer.clone())).collect()
}

/// A page cannot send `null` for a hidden question, whose default would then not be used.
fn without_empty_hidden(questions: &[Value], mut answers: Map<String, Value>) -> Map<String, Value> {
    let is_hidden =
        |id: &str| questions.iter().any(|question| question["id"] == id && question["type"] == "hidden");
    answers.retain(|id, answer| !is_hidden(id) || !(answer.is_null() || *answer == ""));
    answers
}

#[tokio::test]
async fn the_page_without_javascript_the_api_and_validate_agree() {
    let walks: usize = std::env::var("FORMS_WALKS").map_or(500, |walks| walks.parse().unwrap());
    let settings = HttpSettings { page_rate: None, ..HttpSettings::default() };
    let server = Server::with_settings(settings).await;
    let home = Home::new();
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..walks.div_ceil(SETS) as u64 {
        let mut random = Random::new(7_000 + seed);
        let questions = draw_questions(&mut random);
        let form = public_form(&server, Value::Array(questions.clone()), json!({})).await;
        let mut sets = Vec::new();
        for _ in 0..SETS {
            let answers = without_empty_hidden(&questions, draw_answers(&mut random, &questions));
            let asked = asked(&questions, &answers);
            let fields = to_fields(&answers);
            let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let page = answer(&server, &form, &fields).await;
            let api =
                server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": asked})).send().await;
            let found = (page.status.as_u16(), api.status.as_u16());
            match found {
                (303, 201) => {
                    let both = newest(&server, &form, 2).await;
                    assert_eq!(both[0], both[1], "seed {seed}: {answers:?}");
                    accepted += 1;
                }
                (422, 422) => {
                    let anchors = page.text().split("<li><a href=\"#").skip(1);
                    let anchors: Vec<_> = anchors.map(|rest| rest.split('"').next().unwrap()).collect();
                    let errors = api.json();
                    let errors: Vec<_> = errors["errors"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|error| error["question"].as_str().unwrap())
                        .collect();
                    assert_eq!(anchors, errors, "seed {seed}: {answers:?}");
                    refused += 1;
                }
                _ => panic!("seed {seed}: {found:?} {answers:?} to {questions:?}"),
            }
            sets.push((asked, found.0 == 303));
        }
        home.write("form.json", &json!({"title": "F", "questions": questions}).to_string());
        let lines = sets.iter().map(|(set, _)| Value::Object(set.clone()).to_string() + "\n");
        home.write("sets.jsonl", &lines.collect::<String>());
        let run = home.run(&["validate", "form.json", "--answers", "sets.jsonl", "-o", "jsonl"]);
        let evaluations = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let valid: Vec<_> = evaluations.map(|evaluation| evaluation["valid"] == true).collect();
        assert_eq!(valid, sets.iter().map(|(_, is_taken)| *is_taken).collect::<Vec<_>>(), "seed {seed}");
        server.remove(format!("{FORMS}/{form}")).await;
    }
    assert!(accepted > walks / 10 && refused > walks / 10, "{accepted} {refused}");
}
