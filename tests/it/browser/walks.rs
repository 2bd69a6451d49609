//! Random walks through forms with conditions: with JavaScript, the page shows what the server asks.

use std::collections::BTreeSet;

use forms::clock::Timestamp;
use forms::domain::form::Version;
use forms::domain::form::definition::Definition;
use forms::domain::json::{Value as Json, parse};
use forms::domain::language::Language;
use forms::domain::validation::limits::Limits;
use forms::page::answers::to_answers;
use forms::page::fields::Fields;
use serde_json::{Map, Value, json};

use super::Scene;
use crate::engine::random::Random;
use crate::logic::random::{draw_answers, draw_questions};

const FORMS: u64 = 20;
const SETS: usize = 10;

/// Fills in answers as a person does, from the first question to the last; then returns the ids of the questions shown.
const FILL: &str = "(answers => {
    document.forms[0].reset();
    for (const [id, answer] of Object.entries(answers))
        for (const field of document.getElementsByName(id)) {
            const chosen = [answer].flat().map(String);
            if (/radio|checkbox/.test(field.type)) field.checked = chosen.includes(field.value);
            else field.value = answer ?? '';
        }
    document.forms[0].dispatchEvent(new Event('input', {bubbles: true}));
    return [...document.querySelectorAll('.q[data-q]')].filter(box => box.checkVisibility()).map(box => box.dataset.q);
})";

/// Returns the ids of the questions that the server asks after these `answers`, in their order.
fn asked(version: &Version, answers: &Map<String, Value>) -> Vec<String> {
    let Ok(Json::Object(answers)) = parse(&Value::Object(answers.clone()).to_string()) else {
        unreachable!()
    };
    let shown = version.questions.iter().zip(version.shown(&answers)).filter(|(_, is_shown)| *is_shown);
    let drawn = shown.filter(|(question, _)| question.takes_answer() && question.kind.rules().is_shown());
    drawn.map(|(question, _)| question.id.clone().unwrap()).collect()
}

#[tokio::test]
async fn the_page_with_javascript_shows_what_the_server_asks() {
    let Some(scene) = Scene::begin().await else { return };
    let (mut walks, mut states) = (0, BTreeSet::new());
    for seed in (0..).filter(|seed| !is_server_side(*seed)).take(FORMS as usize) {
        let mut random = Random::new(seed);
        let questions = draw_questions(&mut random);
        let definition = json!({"title": "F", "questions": questions});
        let form = scene.form(json!({"questions": questions, "settings": {"draft": false}})).await;
        let parsed = Definition::read(&parse(&definition.to_string()).unwrap(), &Limits::default()).unwrap();
        let version = Version::new(1, Timestamp::from_millis(0), parsed.questions);
        scene.open(&form).await;
        for _ in 0..SETS {
            let mut answers = draw_answers(&mut random, &questions);
            // A page has no field for a hidden question.
            answers.retain(|id, _| {
                !questions.iter().any(|question| question["id"] == *id && question["type"] == "hidden")
            });
            let shown = scene.browser.eval(&format!("{FILL}({})", Value::Object(answers.clone()))).await;
            assert_eq!(shown, json!(asked(&version, &answers)), "seed {seed}: {answers:?} to {definition}");
            states.insert(shown.to_string());
            walks += 1;
        }
    }
    assert!(states.len() > 20, "{walks} walks, {} states", states.len());
}

/// Whether the form of this seed has conditions that only the server evaluates.
fn is_server_side(seed: u64) -> bool {
    Value::Array(draw_questions(&mut Random::new(seed))).to_string().contains("\"matches\"")
}

/// What people type where a number or an address is asked.
const TYPED: [&str; 20] = [
    "12",
    "9",
    "１２",
    "١٢",
    "۱۲",
    "١٬٠٠٠",
    "٣٫٥",
    "1.000",
    "1,000",
    "1.000,5",
    "1,000.5",
    "1 000",
    "1'000",
    "0,500",
    "-3",
    "\u{2212}3",
    "+30",
    "",
    "abc",
    "1.000.000",
];

#[tokio::test]
async fn the_page_reads_what_is_typed_as_the_server_does() {
    let Some(scene) = Scene::begin().await else { return };
    let questions = json!([
        {"id": "n", "type": "number", "title": "N"},
        {"id": "many", "type": "short_text", "title": "Many", "show_if": {"n": {"gte": 10}}},
        {"id": "u", "type": "url", "title": "U"},
        {"id": "ours", "type": "short_text", "title": "Ours", "show_if": {"u": "https://example.com/a"}},
    ]);
    let definition = json!({"title": "F", "questions": questions});
    let parsed = Definition::read(&parse(&definition.to_string()).unwrap(), &Limits::default()).unwrap();
    let version = Version::new(1, Timestamp::from_millis(0), parsed.questions);
    for language in [Language::English, Language::German, Language::Japanese] {
        let settings = json!({"draft": false, "language": language.name()});
        let form = scene.form(json!({"questions": questions, "settings": settings})).await;
        scene.open(&form).await;
        for (place, typed) in TYPED.into_iter().enumerate() {
            let url = ["example.com/a", "https://example.com/a", "example.com/b"][place % 3];
            let shown = scene.browser.eval(&format!("{FILL}({})", json!({"n": typed, "u": url}))).await;
            let mut fields = Fields::default();
            fields.add("n", typed);
            fields.add("u", url);
            let answers = to_answers(&version, &fields, language);
            let expected =
                version.questions.iter().zip(version.shown(&answers)).filter(|(_, is_shown)| *is_shown);
            let expected: Vec<_> = expected.map(|(question, _)| question.id.clone().unwrap()).collect();
            assert_eq!(shown, json!(expected), "{language} {typed:?} {url}");
        }
    }
}
