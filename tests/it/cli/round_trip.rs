//! `show -o yaml` prints a file from which the same form can be created, for random forms and difficult texts.

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

use super::Home;
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

fn draw_text(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("{}{}", random.pick(TEXTS), random.pick(TEXTS)),
        _ => (*random.pick(TEXTS)).to_owned(),
    }
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

/// Draws options with unique values, some with labels.
fn draw_options(random: &mut Random) -> String {
    let plain: Vec<&str> =
        TEXTS.iter().copied().filter(|text| is_plain(text) && !text.trim().is_empty()).collect();
    let from = random.below(plain.len());
    let options = (0..2 + random.below(3)).map(|number| {
        let value = quoted(plain[(from + number) % plain.len()]);
        match random.once_in(2) {
            true => value,
            false => format!(r#"{{"value":{value},"label":{}}}"#, quoted(plain[random.below(plain.len())])),
        }
    });
    format!("[{}]", options.collect::<Vec<_>>().join(","))
}

fn draw_question(random: &mut Random, number: usize, kind: &str) -> String {
    let mut members =
        vec![format!(r#""id":"i{number}""#), format!(r#""title":{}"#, quoted(&draw_text(random)))];
    match kind {
        "single_choice" | "multiple_choice" | "ranking" => {
            members.push(format!(r#""type":"{kind}","options":{}"#, draw_options(random)));
        }
        "matrix" => {
            let (rows, columns) = (draw_options(random), draw_options(random));
            members.push(format!(r#""type":"matrix","rows":{rows},"columns":{columns}"#));
        }
        _ => members.push(required_settings(kind)),
    }
    if matches!(kind, "page" | "statement") && random.once_in(2) {
        members.remove(0);
    } else if !matches!(kind, "page" | "statement" | "hidden") && random.once_in(2) {
        members.push(format!(r#""required":{}"#, random.once_in(2)));
    }
    if random.once_in(3) {
        members.push(format!(r#""description":{}"#, quoted(&draw_text(random))));
    }
    for setting in settings(kind) {
        if random.once_in(2) {
            let mut parts = setting.split('$');
            let first = parts.next().unwrap().to_owned();
            members.push(parts.fold(first, |text, part| text + &quoted(&draw_text(random)) + part));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn draw_settings(random: &mut Random) -> String {
    let confirmation = match random.once_in(2) {
        true => format!(r#"{{"message":{}}}"#, quoted(&draw_text(random))),
        false => r#"{"redirect_url":"https://example.com/?a=1#b"}"#.to_owned(),
    };
    let all = [
        r#""opens_at":"2026-01-31T18:00:00+01:00""#.to_owned(),
        r#""closes_at":"2027-01-31T18:00:00.123Z""#.to_owned(),
        r#""closed":true"#.to_owned(),
        format!(r#""closed_message":{}"#, quoted(&draw_text(random))),
        r#""max_responses":1000000000"#.to_owned(),
        r#""language":"no""#.to_owned(),
        r#""unknown_answers":"drop""#.to_owned(),
        format!(r#""confirmation":{confirmation}"#),
    ];
    let some: Vec<_> = all.into_iter().filter(|_| random.once_in(2)).collect();
    format!("{{{}}}", some.join(","))
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
    let file = yaml::authoring_file(&shown).unwrap();
    let read = document::read_text("form.yaml", &file, None);
    let read = read.unwrap_or_else(|error| panic!("{error:?}\n{file}\n{definition}"));
    assert_eq!(form_of(&read[0].value).0, before, "{file}");
    assert_eq!(read[0].value.to_string(), yaml::authoring(&shown).unwrap().to_string(), "{file}");
}

#[test]
fn random_forms_survive_the_round_trip() {
    let mut random = Random::new(41);
    for _ in 0..300 {
        let questions: Vec<_> = (0..8)
            .map(|number| {
                let kind = *random.pick(&QuestionKind::NAMES);
                draw_question(&mut random, number, kind)
            })
            .collect();
        let mut members = vec![
            format!(r#""title":{}"#, quoted(&draw_text(&mut random))),
            format!(r#""questions":[{}]"#, questions.join(",")),
            format!(r#""settings":{}"#, draw_settings(&mut random)),
        ];
        if random.once_in(2) {
            members.push(format!(r#""slug":"1-10","description":{}"#, quoted(&draw_text(&mut random))));
        }
        assert_round_trip(&format!("{{{}}}", members.join(",")));
    }
}

#[test]
fn every_text_survives_the_round_trip_in_every_field() {
    for text in TEXTS {
        let text = quoted(text);
        let question = format!(r#"{{"type":"consent","title":{text},"description":{text},"text":{text}}}"#);
        let settings = format!(r#"{{"closed_message":{text},"confirmation":{{"message":{text}}}}}"#);
        assert_round_trip(&format!(
            r#"{{"title":{text},"description":{text},"questions":[{question}],"settings":{settings}}}"#
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

#[test]
fn the_command_prints_a_file_that_creates_the_same_form() {
    let home = Home::new();
    let data = ["--data", "store"];
    for (seed, kinds) in QuestionKind::NAMES.chunks(10).enumerate() {
        let mut random = Random::new(seed as u64);
        let kinds = kinds.iter().enumerate();
        let questions: Vec<_> =
            kinds.map(|(number, kind)| draw_question(&mut random, number, kind)).collect();
        let (title, settings) = (quoted(&draw_text(&mut random)), draw_settings(&mut random));
        let form =
            format!(r#"{{"title":{title},"questions":[{}],"settings":{settings}}}"#, questions.join(","));
        home.write("form.json", &form);
        let first = home.ok(&[&data[..], &["create", "-f", "form.json"]].concat());
        let file = home.ok(&[&data[..], &["show", first.trim(), "-o", "yaml"]].concat());
        home.write("form.yaml", &file);
        let second = home.ok(&[&data[..], &["create", "-f", "form.yaml"]].concat());
        let [first, second] = [first, second].map(|id| {
            let mut form = home.run(&[&data[..], &["show", id.trim(), "-o", "json"]].concat()).json();
            let members = form.as_object_mut().unwrap();
            members.retain(|name, _| !["id", "created_at", "updated_at"].contains(&&**name));
            form
        });
        assert_eq!(first, second, "{file}");
    }
}
