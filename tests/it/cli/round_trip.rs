//! `show -o yaml` prints a file from which the same form can be created, for all types of questions and difficult texts.

use forms::api::FormDetail;
use forms::cli::input::document;
use forms::cli::output::yaml;
use forms::clock::Timestamp;
use forms::domain::form::Form;
use forms::domain::form::definition::Definition;
use forms::domain::json;
use forms::domain::question::QuestionKind;
use forms::domain::validation::limits::Limits;
use forms::id::{FormId, WorkspaceId};
use serde_json::{Value, json};

use crate::engine::random::Random;
use crate::logic::random::draw_questions;
use crate::questions::required_settings;

/// Texts that YAML reads differently unless quoted.
const TEXTS: &[&str] = &[
    "yes",
    "No",
    "null",
    "~",
    "true",
    "1.10",
    "007",
    "0x1F",
    "1e3",
    "-",
    ".inf",
    ".nan",
    "2024-01-01",
    "1_000",
    "12:30",
    "#x",
    "#> x",
    "a #b",
    ": ",
    "a: b",
    "a:",
    "- a",
    "-",
    "? a",
    "[a",
    "{a}",
    "*a",
    "&a",
    "!a",
    "!!str a",
    "%a",
    "@a",
    "`a",
    "'a'",
    "\"a\"",
    "it's",
    "|",
    "> a",
    "<<",
    "=",
    "---",
    "...",
    "--- a",
    "a\\b",
    "a\nb",
    "a\n\nb\n",
    "\na",
    "a\n  b\n c",
    "  a\nb",
    "a\n#b\n",
    "a \nb",
    "a\n\n\n",
    " a",
    "a ",
    "\ta",
    "a\tb",
    "a\r\nb",
    "\u{2028}a",
    "a\u{2029}b",
    "a\u{2029}",
    "\u{feff}a",
    "a\u{feff}",
    "\u{a0}a",
    "é",
    "e\u{301}",
    "😀",
    "\u{10ffff}",
    "\u{e000}",
    "\u{fffd}",
    "\u{fffe}a",
    "\u{ffff}a",
    "own0x",
    "a very long text that goes on and on: further than any line, with # and - and ' and \" in it, to where it is to be broken",
];

/// Whether `text` is valid as the value of an option: one line without control characters.
fn is_plain(text: &str) -> bool {
    let breaks = ['\u{2028}', '\u{2029}'];
    !text.contains(|character: char| character.is_control() || breaks.contains(&character))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Settings of a question type; `$` is replaced by a text.
fn settings(kind: &str) -> &'static [&'static str] {
    match kind {
        "short_text" | "long_text" => &[
            r#""min_length":0"#,
            r#""max_length":900"#,
            r#""pattern":".*[#:'\"\\\\] ?","pattern_message":$"#,
            r#""placeholder":$"#,
        ],
        "email" => &[r#""allow_domains":["no.example","1.1e5"]"#, r#""deny_domains":["x.example"]"#],
        "url" => &[r#""schemes":["https","mailto"]"#],
        "phone" => &[r#""default_country":"NO""#],
        "number" => {
            &[r#""min":-1.50"#, r#""max":18446744073709551616"#, r#""step":0.50"#, r#""integer":false"#]
        }
        "rating" => &[r#""max":7"#, r#""labels":{"1":$,"5":$}"#],
        "opinion_scale" => &[r#""min":1"#, r#""labels":{"1":$,"10":$}"#],
        "boolean" => &[r#""labels":{"true":$,"false":$}"#],
        "consent" => &[r#""text":$"#],
        "single_choice" => &[r#""display":"dropdown""#, r#""allow_other":true"#],
        "multiple_choice" => &[r#""min_selected":1"#, r#""max_selected":2"#, r#""allow_other":false"#],
        "ranking" => &[r#""rank_all":true"#],
        "matrix" => &[r#""multiple":true"#, r#""required_rows":true"#],
        "date" => &[r#""min":"2024-01-01""#, r#""max":"today+30d""#],
        "time" => &[r#""min":"09:30""#, r#""max":"12:30""#],
        "datetime" => &[r#""min":"2024-01-01T00:00:00Z""#],
        "hidden" => &[r#""from_url":$"#, r#""default":1.10"#],
        "statement" | "page" => &[],
        other => panic!("no settings are known for `{other}`"),
    }
}

/// Returns a question of the type with all its settings, in which every text is `text` where that is possible.
fn question(kind: &str, text: &str) -> String {
    let option = if is_plain(text) { quoted(text) } else { quoted("a") };
    let options = format!(r#"["red",{option},{{"value":"green","label":{option}}}]"#);
    let text = quoted(text);
    let mut members = vec![format!(r#""title":{text},"description":{text}"#)];
    members.push(match kind {
        "single_choice" | "multiple_choice" | "ranking" => format!(r#""type":"{kind}","options":{options}"#),
        "matrix" => format!(r#""type":"matrix","rows":{options},"columns":{options}"#),
        _ => required_settings(kind),
    });
    if !matches!(kind, "page" | "statement" | "hidden") {
        members.push(r#""id":"own","required":true"#.replace("own", kind));
    }
    members.extend(settings(kind).iter().map(|setting| setting.replace('$', &text)));
    format!("{{{}}}", members.join(","))
}

/// Creates the form of a definition, as the API returns it.
fn form(definition: &json::Value) -> FormDetail {
    let definition = Definition::read(definition, &Limits::default())
        .unwrap_or_else(|violations| panic!("{violations:?}: {definition}"));
    let (id, workspace) = (FormId::from_bytes([1; 8]), WorkspaceId::from_bytes([2; 8]));
    let now = Timestamp::from_millis(1_000);
    let (form, version) = Form::create(id, workspace, definition, now);
    FormDetail::new(&form, version.to_stored(), 0, now)
}

/// Fails unless the form's file defines the same form.
#[track_caller]
fn assert_round_trip(definition: &str) {
    let form_of = |value: &json::Value| {
        let form = form(value);
        (serde_json::to_string(&form).unwrap(), form)
    };
    let (before, shown) = form_of(&json::parse(definition).unwrap());
    let file = yaml::yaml(&yaml::authoring(&shown).unwrap()).unwrap();
    let read = document::read_text("form.yaml", &file, None);
    let read = read.unwrap_or_else(|error| panic!("{error:?}\n{file}\n{definition}"));
    assert_eq!(form_of(&read[0].value).0, before, "{file}");
    let authoring = yaml::authoring(&shown).unwrap().to_string();
    assert_eq!(read[0].value.to_string(), authoring, "{file}");
    assert_eq!(yaml::canonical(&read[0].value).to_string(), authoring, "{file}");
}

#[test]
fn every_text_survives_the_round_trip_in_every_field() {
    const SETTINGS: &str = r#""opens_at":"2026-01-31T18:00:00+01:00","closes_at":"2027-01-31T18:00:00.123Z","closed":true,
        "max_responses":1000000000,"language":"no","unknown_answers":"drop""#;
    for text in TEXTS {
        let questions = QuestionKind::NAMES.map(|kind| question(kind, text)).join(",");
        let text = quoted(text);
        let messages = format!(r#""closed_message":{text},"confirmation":{{"message":{text}}}"#);
        assert_round_trip(&format!(
            r#"{{"title":{text},"description":{text},"slug":"1-10","questions":[{questions}],"settings":{{{SETTINGS},{messages}}}}}"#
        ));
    }
}

#[test]
fn conditions_survive_the_round_trip() {
    for seed in 0..200 {
        let questions = draw_questions(&mut Random::new(seed));
        assert_round_trip(&json!({"title": "T", "questions": questions}).to_string());
    }
}
