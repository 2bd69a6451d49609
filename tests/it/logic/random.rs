//! Random forms and answers, compared with a short reference implementation.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::*;
use crate::engine::random::Random;
use crate::harness::Server;

/// The expected violations of `answers`, in the order of the questions.
pub(crate) fn expected(questions: &[Value], answers: &Map<String, Value>) -> Vec<(String, &'static str)> {
    let (mut given, mut page_is_shown, mut violations) = (Map::new(), true, Vec::new());
    for question in questions {
        let holds = |name: &str| question.get(name).map(|condition| holds(condition, &given));
        let is_shown = holds("show_if").unwrap_or(true);
        page_is_shown = if question["type"] == "page" { is_shown } else { page_is_shown };
        let Some(id) = question["id"].as_str() else { continue };
        let is_required = question["required"] == true || holds("required_if") == Some(true);
        let default = question.get("default").filter(|_| !answers.contains_key(id));
        let sent = answers.get(id).filter(|sent| !is_empty(sent));
        match (is_shown && page_is_shown, sent, default) {
            (false, Some(_), _) => violations.push((id.to_owned(), "question_not_visible")),
            (false, None, _) => {}
            (true, Some(answer), _) | (true, None, Some(answer)) => {
                given.insert(id.to_owned(), answer.clone());
            }
            (true, None, None) if is_required => violations.push((id.to_owned(), "required")),
            (true, None, None) => {}
        }
    }
    violations
}

fn is_empty(answer: &Value) -> bool {
    answer.is_null() || *answer == "" || *answer == json!([])
}

fn holds(condition: &Value, given: &Map<String, Value>) -> bool {
    let list = |value: &Value| value.as_array().unwrap().clone();
    condition.as_object().unwrap().iter().all(|(key, value)| match (key.as_str(), value) {
        ("any", value) => list(value).iter().any(|condition| holds(condition, given)),
        ("all", value) => list(value).iter().all(|condition| holds(condition, given)),
        ("not", value) => !holds(value, given),
        (id, Value::Object(tests)) => tests.iter().all(|(name, value)| is_true(given.get(id), name, value)),
        (id, Value::Array(_)) => is_true(given.get(id), "in", value),
        (id, value) => is_true(given.get(id), "eq", value),
    })
}

fn is_true(answer: Option<&Value>, name: &str, value: &Value) -> bool {
    let Some(answer) = answer else { return name == "ne" || name == "answered" && *value == false };
    let (answer, value) = (&with_seconds(answer), &with_seconds(value));
    let order = match (answer, value) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()),
        (Value::String(one), Value::String(other)) => Some(one.chars().cmp(other.chars())),
        _ => None,
    };
    match name {
        "eq" => answer == value,
        "ne" => answer != value,
        "lt" => order == Some(Ordering::Less),
        "lte" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        "gt" => order == Some(Ordering::Greater),
        "gte" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        "in" => value.as_array().unwrap().iter().any(|value| is_true(Some(answer), "eq", value)),
        "includes" if answer.is_array() => answer.as_array().unwrap().contains(value),
        "includes" | "matches" => answer.as_str().unwrap_or_default().contains(value.as_str().unwrap()),
        "answered" => *value == true,
        _ => unreachable!("{name}"),
    }
}

/// Appends seconds to a time of day, so that times sort as texts; returns any other value unchanged.
fn with_seconds(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if text.len() == 5 && text.as_bytes()[2] == b':' => json!(format!("{text}:00")),
        _ => value.clone(),
    }
}

const TEXTS: [&str; 5] = ["a", "ab", "b", "é", "😀b"];

/// Question types that compare answers differently; texts and ratings twice, to be drawn more often.
const KINDS: &str =
    "rating rating short_text short_text hidden number boolean multiple_choice date time page statement";

/// Draws an answer to a question of this type, or a value to compare it with.
fn draw_value(random: &mut Random, kind: &str) -> Value {
    match kind {
        "rating" => json!(1 + random.below(5)),
        "number" => json!(random.below(6) as f64 / 2.0),
        "boolean" => json!(random.once_in(2)),
        "multiple_choice" => json!(*random.pick(&["a", "b", "c"])),
        "date" => json!(format!("2026-11-0{}", 1 + random.below(5))),
        "time" => json!(*random.pick(&["09:30", "09:30:00", "09:30:01", "10:00"])),
        _ => json!(*random.pick(&TEXTS)),
    }
}

/// Draws questions with conditions on earlier ones; the first takes an answer.
pub(crate) fn draw_questions(random: &mut Random) -> Vec<Value> {
    let mut questions = vec![json!({"id": "i0", "type": "rating", "title": "First"})];
    let kinds: Vec<_> = KINDS.split(' ').collect();
    for number in 1..2 + random.below(10) {
        let kind = *random.pick(&kinds);
        let mut question = json!({"type": kind, "title": "T"});
        let takes_answer = !matches!(kind, "page" | "statement");
        if takes_answer {
            question["id"] = json!(format!("i{number}"));
            question["required"] = json!(random.once_in(3));
        }
        if kind == "multiple_choice" {
            question["options"] = json!(["a", "b", "c"]);
        }
        if kind == "hidden" && random.once_in(2) {
            question["default"] = json!(*random.pick(&TEXTS));
        }
        if random.once_in(2) {
            question["show_if"] = draw_valid_condition(random, &questions);
        }
        if takes_answer && random.once_in(4) {
            question["required_if"] = draw_valid_condition(random, &questions);
        }
        questions.push(question);
    }
    questions
}

/// Draws a condition that the form accepts.
fn draw_valid_condition(random: &mut Random, earlier: &[Value]) -> Value {
    let without_conditions = |question: &Value| {
        let members = question.as_object().unwrap().iter();
        let plain: Map<_, _> = members
            .filter(|(name, _)| !name.ends_with("_if"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Value::Object(plain).to_string()
    };
    let plain = earlier.iter().map(without_conditions).collect::<Vec<_>>().join(",");
    loop {
        let condition = draw_condition(random, earlier, 3);
        let last = json!({"type": "statement", "title": "T", "show_if": condition});
        if read(&format!("{plain},{last}")).is_ok() {
            return condition;
        }
    }
}

fn draw_condition(random: &mut Random, earlier: &[Value], depth: usize) -> Value {
    let mut condition = Map::new();
    for _ in 0..1 + random.below(2) {
        let deeper = |random: &mut Random| draw_condition(random, earlier, depth - 1);
        match random.below(if depth == 0 { 3 } else { 6 }) {
            3 => drop(condition.insert("not".to_owned(), deeper(random))),
            4 => drop(condition.insert("any".to_owned(), json!([deeper(random), deeper(random)]))),
            5 => drop(condition.insert("all".to_owned(), json!([deeper(random), deeper(random)]))),
            _ => {
                let asked: Vec<_> = earlier.iter().filter(|question| question["id"].is_string()).collect();
                let question = random.pick(&asked);
                let id = question["id"].as_str().unwrap().to_owned();
                condition.insert(id, draw_test(random, question["type"].as_str().unwrap()));
            }
        }
    }
    Value::Object(condition)
}

fn draw_test(random: &mut Random, kind: &str) -> Value {
    let (one, other) = (draw_value(random, kind), draw_value(random, kind));
    let (is_text, is_list) = (matches!(kind, "short_text" | "hidden"), kind == "multiple_choice");
    let is_ordered = !is_list && kind != "boolean";
    let is_rating = kind == "rating";
    match random.below(11) {
        0 if !is_list => one,
        1 if !is_list => json!([one, other]),
        2 if !is_list => json!({"in": [one, other]}),
        3 if !is_list => json!({"eq": one}),
        4 if !is_list => json!({"ne": one}),
        5 if is_ordered => json!({"lte": one}),
        6 if is_ordered => json!({"gte": one}),
        7 if is_ordered && !(is_rating && one == 1) => json!({"lt": one}),
        8 if is_ordered && !(is_rating && one == 5) => json!({"gt": one, "ne": other}),
        9 if is_text || is_list => json!({"includes": one, "answered": true}),
        10 if is_text => json!({"matches": one}),
        _ if is_list && random.once_in(2) => json!({"includes": one}),
        _ => json!({"answered": random.once_in(2)}),
    }
}

pub(crate) fn draw_answers(random: &mut Random, questions: &[Value]) -> Map<String, Value> {
    let mut answers = Map::new();
    let often = 1 + random.below(4);
    for question in questions.iter().filter(|question| question["id"].is_string()) {
        let answer = match random.below(12) {
            0 => Value::Null,
            1 => json!(""),
            _ if question["type"] == "multiple_choice" => {
                let options = ["a", "b", "c"].into_iter().filter(|_| random.once_in(2));
                json!(options.collect::<Vec<_>>())
            }
            _ => draw_value(random, question["type"].as_str().unwrap()),
        };
        if !random.once_in(1 + often) {
            answers.insert(question["id"].as_str().unwrap().to_owned(), answer);
        }
    }
    answers
}

#[test]
fn the_largest_form_with_the_deepest_conditions_agrees_with_the_reference() {
    let mut random = Random::new(500);
    let mut questions = vec![json!({"id": "i0", "type": "rating", "title": "First"})];
    for number in 1..500 {
        // Together with the form, its list and the question, this is the maximum nesting of JSON.
        let tests = (0..10).map(|_| {
            let two = (0..2).map(|_| (format!("i{}", random.below(number)), json!(1 + random.below(5))));
            (0..4).fold(Value::Object(two.collect()), |deep, _| json!({"not": deep}))
        });
        let deepest = json!({"any": tests.collect::<Vec<_>>()});
        let show_if = (0..6).fold(deepest, |deep, _| json!({"not": deep}));
        questions
            .push(json!({"id": format!("i{number}"), "type": "rating", "title": "T", "show_if": show_if}));
    }
    let text = Value::Array(questions.clone()).to_string();
    let version = version(&text[1..text.len() - 1]);
    let answers = draw_answers(&mut random, &questions);
    let found = check(&version, &Value::Object(answers.clone()).to_string());
    let expected = expected(&questions, &answers);
    // The check stops after one more than the hundred violations that are listed.
    assert_eq!(found, expected[..101]);
    assert!(expected.len() < answers.len(), "{}", expected.len());
}

/// The query parameters of a list filter equivalent to a condition on `id`.
fn parameters(id: &str, condition: &Value) -> String {
    let tests = match condition {
        Value::Object(tests) => tests.clone(),
        Value::Array(_) => Map::from_iter([("in".to_owned(), condition.clone())]),
        value => Map::from_iter([("eq".to_owned(), value.clone())]),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (operator, value) in &tests {
        let items = value.as_array().map(|items| items.iter().map(text).collect::<Vec<_>>().join(","));
        query.append_pair(&format!("filter[{id}][{operator}]"), &items.unwrap_or_else(|| text(value)));
    }
    query.finish()
}

#[tokio::test]
async fn a_filtered_list_agrees_with_the_reference() {
    let server = Server::start().await;
    let (mut listed, mut excluded) = (0, 0);
    for seed in 2_000..2_012 {
        let mut random = Random::new(seed);
        let mut questions = draw_questions(&mut random);
        questions.retain(|question| question["id"].is_string());
        for question in questions.iter_mut().map(|question| question.as_object_mut().unwrap()) {
            question.retain(|name, _| matches!(name.as_str(), "id" | "type" | "title" | "options"));
        }
        let form = server.published_form(Value::Array(questions.clone())).await;
        let stored: Vec<_> = (0..30).map(|_| draw_answers(&mut random, &questions)).collect();
        for answers in &stored {
            server.submit(&form, Value::Object(answers.clone())).await;
        }
        for _ in 0..25 {
            let mut tests = Vec::new();
            for question in &questions {
                if random.once_in(questions.len()) {
                    let test = draw_test(&mut random, question["type"].as_str().unwrap());
                    tests.push((question["id"].as_str().unwrap(), test));
                }
            }
            let condition = tests.iter().map(|(id, test)| ((*id).to_owned(), test.clone())).collect();
            let condition = Value::Object(condition);
            let matches = |answers: &&Map<String, Value>| {
                let mut given = (*answers).clone();
                given.retain(|_, answer| !is_empty(answer));
                holds(&condition, &given)
            };
            let expected: Vec<_> = stored.iter().filter(matches).cloned().map(Value::Object).collect();
            let query: Vec<_> = tests.iter().map(|(id, test)| parameters(id, test)).collect();
            let query = query.join("&");
            let path = format!("/api/v1/forms/{form}/submissions?order=asc&count=true&{query}");
            let list = server.read(path).await;
            let found = list["submissions"].as_array().unwrap();
            let found: Vec<_> = found.iter().map(|submission| submission["answers"].clone()).collect();
            assert_eq!(found, expected, "seed {seed}: {condition}");
            assert_eq!(list["total"], expected.len());
            (listed, excluded) = (listed + found.len(), excluded + stored.len() - found.len());
        }
    }
    assert!(listed > 1_000 && excluded > 1_000, "{listed} listed, {excluded} excluded");
}
