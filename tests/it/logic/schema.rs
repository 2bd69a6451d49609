//! The JSON Schema of a form's answers agrees with the server's check where JSON Schema can express the rule.

use forms::domain::form::settings::UnknownAnswers;
use serde_json::{Map, Value, json};

use super::random::{draw_answers, draw_questions};
use super::*;
use crate::engine::random::Random;
use crate::questions::json_schema::accepts;

/// Whether the check accepts `answers`, and whether the schema does.
fn verdicts(version: &Version, answers: &str) -> (bool, bool) {
    let schema = version.schema("F", UnknownAnswers::Reject);
    let checked = version.check(&object(answers), &Limits::default(), now(), ENGLISH).is_ok();
    (checked, accepts(&schema, &json::parse(answers).unwrap()))
}

/// Checks lists of answers: those that both accept, and those that both refuse.
#[track_caller]
fn check_table(questions: &str, accepted: &str, refused: &str) {
    let version = version(questions);
    for (list, expected) in [(accepted, true), (refused, false)] {
        for answers in json::parse(list).unwrap().as_array().unwrap() {
            let found = verdicts(&version, &answers.to_string());
            assert_eq!(found, (expected, expected), "{answers} to {questions}");
        }
    }
}

#[test]
fn the_schema_has_the_rules_of_each_question() {
    check_table(
        r#"{"id":"a","type":"rating","title":"A"},{"id":"b","type":"consent","title":"B"},
           {"id":"s","type":"statement","title":"S"}"#,
        r#"[{}, {"a":5,"b":true}, {"b":false}]"#,
        r#"[{"a":"\u200b"}, {"a":[0]}, {"a":false}, {"s":"x"}, {"c":null}, {"a":6}]"#,
    );
    check_table(
        r#"{"id":"a","type":"short_text","title":"A","required":true},
           {"id":"b","type":"consent","title":"B","required":true},
           {"id":"h","type":"hidden","default":"web","required":true}"#,
        r#"[{"a":"x","b":true}, {"a":"x","b":true,"h":7}]"#,
        r#"[{}, {"a":"x","b":false}, {"a":"x","b":true,"h":null}]"#,
    );
}

#[test]
fn the_schema_has_the_rules_of_addresses() {
    check_table(
        r#"{"id":"a","type":"email","title":"A"},
           {"id":"b","type":"email","title":"B","allow_domains":["example.com","b.de"],"deny_domains":["x.example.com"]}"#,
        r#"[{"a":"a.b@b-c.d1"}, {"a":"a@b\u00fccher.example"}, {"b":"a@EXAMPLE.com"},
           {"b":"a@y.x.b.de"}]"#,
        r#"[{"a":"a@1.2.3.4"}, {"a":"a@exa_mple.com"}, {"a":"a@-b.de"}, {"a":"a@b.de\n"},
           {"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b.de"}, {"b":"a@notexample.com"}, {"b":"a@X.example.com"}]"#,
    );
    check_table(
        r#"{"id":"a","type":"url","title":"A"},{"id":"b","type":"url","title":"B","schemes":["MAILTO","http"]}"#,
        r#"[{"a":"HTTPS://me@a.b:443/c?d=e#f"}, {"a":"http://[::1]"}, {"b":"mailto:a@b.de"},
           {"b":"http://a.b"}]"#,
        r#"[{"a":"ftp://a.b"}, {"a":"https:a.b"}, {"a":"https:///a.b"}, {"a":"https://a.b:99999"},
           {"a":"https://a^b"}, {"a":"https://a.b/\u2003"}, {"b":"https://a.b"}]"#,
    );
}

#[test]
fn the_schema_has_fixed_bounds_of_dates_and_times() {
    check_table(
        r#"{"id":"d","type":"date","title":"D","min":"2026-11-22","max":"2029-10-09"},
           {"id":"t","type":"time","title":"T","min":"09:30:00","max":"17:45"},
           {"id":"s","type":"time","title":"S","min":"09:30:15","max":"17:45:15"}"#,
        r#"[{"d":"2026-11-22","t":"09:30","s":"09:30:15"},
           {"d":"2027-01-01","t":"17:45:00","s":"17:45"},
           {"d":"2029-10-09","t":"17:45","s":"17:45:15"}]"#,
        r#"[{"d":"2026-11-21"}, {"d":"2026-09-30"}, {"d":"2029-10-10"}, {"d":"2030-01-01"},
           {"t":"09:29:59"}, {"t":"17:45:01"}, {"s":"09:30"}, {"s":"17:45:16"}]"#,
    );
}

#[test]
fn the_schema_handles_names_that_javascript_objects_inherit() {
    let questions = r#"{"id":"constructor","type":"rating","title":"C","required":true},
        {"id":"m","type":"matrix","title":"M","rows":["__proto__","a"],"columns":["x"],"required_rows":["__proto__"]}"#;
    check_table(
        questions,
        r#"[{"constructor":5}, {"constructor":5,"m":{"__proto__":"x"}}]"#,
        r#"[{}, {"constructor":6}, {"constructor":5,"toString":1}, {"constructor":5,"m":{"a":"x"}},
           {"constructor":5,"m":{"__proto__":"y"}}]"#,
    );
    let schema = version(questions).schema("F", UnknownAnswers::Reject);
    let schema: Value = serde_json::from_str(&schema.to_string()).unwrap();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["m"]);
    assert_eq!(schema["required"], Value::Null);
}

#[test]
fn the_schema_refuses_empty_values_that_the_check_accepts() {
    let version =
        version(r#"{"id":"a","type":"rating","title":"A"},{"id":"b","type":"consent","title":"B"}"#);
    for answers in [r#"{"a":null}"#, r#"{"a":" "}"#, r#"{"a":[]}"#, r#"{"a":{}}"#, r#"{"b":null}"#] {
        assert_eq!(verdicts(&version, answers), (true, false), "{answers}");
    }
    let schema: Value =
        serde_json::from_str(&version.schema("F", UnknownAnswers::Reject).to_string()).unwrap();
    assert!(schema["description"].as_str().unwrap().contains("count as no answer"));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    // Answers that will be dropped are accepted.
    assert!(accepts(&version.schema("F", UnknownAnswers::Drop), &json::parse(r#"{"c":1}"#).unwrap()));
}

#[test]
fn conditions_are_described_in_the_schema_and_refuse_nothing() {
    let version = version(
        r#"{"id":"score","type":"number","title":"S","required":true},
           {"id":"why","type":"short_text","title":"W","description":"Be *frank*.","required":true,"show_if":{"score":{"lte":2}}},
           {"id":"more","type":"long_text","title":"M","required_if":{"why":"price"}},
           {"type":"page","title":"P","show_if":{"score":{"gt":7}}},
           {"id":"who","type":"short_text","title":"W","required":true,"show_if":{"more":{"answered":true}}},
           {"type":"page","title":"P"},
           {"id":"last","type":"rating","title":"L","required":true}"#,
    );
    let schema: Value =
        serde_json::from_str(&version.schema("F", UnknownAnswers::Reject).to_string()).unwrap();
    assert_eq!(schema["required"], json!(["score", "last"]));
    for (id, expected) in [
        ("score", Value::Null),
        ("why", json!("Be *frank*.\n\nAsked only if score is 2 or less.")),
        ("more", json!("Required if why is price.")),
        ("who", json!("Asked only if score is more than 7.\n\nAsked only if more is answered.")),
        ("last", Value::Null),
    ] {
        assert_eq!(schema["properties"][id]["description"], expected, "{id}");
    }
    for (answers, expected) in [
        (r#"{"score":2,"why":"slow","last":1}"#, (true, true)),
        (r#"{"score":2,"last":1}"#, (false, true)),
        (r#"{"score":3,"why":"slow","last":1}"#, (false, true)),
    ] {
        assert_eq!(verdicts(&version, answers), expected, "{answers}");
    }
}

#[test]
fn the_description_of_a_long_page_condition_is_truncated_in_each_question() {
    let tests: Vec<_> = (0..500).map(|number| json!({"n": number})).collect();
    let mut questions = vec![
        json!({"id": "n", "type": "number", "title": "N"}),
        json!({"type": "page", "title": "P", "show_if": {"any": tests}}),
    ];
    questions.extend(
        (0..400).map(
            |number| json!({"id": format!("q{number}"), "type": "number", "title": "Q", "required": true}),
        ),
    );
    let text = Value::Array(questions).to_string();
    let schema = version(&text[1..text.len() - 1]).schema("F", UnknownAnswers::Reject).to_string();
    assert!(schema.len() < 10 * text.len(), "{} bytes of schema for {} of form", schema.len(), text.len());
    assert!(schema.contains("or n is 3") && schema.contains("…."), "{schema}");
}

/// Whether no question has a condition, so that the check and the schema must agree.
fn is_unconditional(questions: &[Value]) -> bool {
    let is_free = |question: &Value| question["show_if"].is_null() && question["required_if"].is_null();
    questions.iter().all(is_free)
}

/// Whether an answer is empty, which only the check accepts.
fn has_empty(answers: &Map<String, Value>) -> bool {
    let empty = [json!(null), json!(" "), json!(""), json!([]), json!({})];
    answers.values().any(|answer| empty.contains(answer))
}

/// Replaces one answer by another value, or adds one without a question.
fn with_changed_answer(random: &mut Random, mut answers: Map<String, Value>) -> Map<String, Value> {
    let wrong =
        [json!(0), json!("x"), json!(1.5), json!(" "), json!([]), json!({}), json!([1]), json!(false)];
    let keys: Vec<_> = answers.keys().cloned().chain(["nobody".to_owned()]).collect();
    answers.insert(random.pick(&keys).clone(), random.pick(&wrong).clone());
    answers
}

#[test]
fn the_schema_and_the_check_agree_on_random_forms_and_answers() {
    let (mut exact, mut accepted, mut conditional) = (0, 0, 0);
    for seed in 3_000..3_400 {
        let mut random = Random::new(seed);
        let questions = draw_questions(&mut random);
        let text = Value::Array(questions.clone()).to_string();
        let version = version(&text[1..text.len() - 1]);
        let schema = version.schema("F", UnknownAnswers::Reject);
        let is_exact = is_unconditional(&questions);
        for _ in 0..30 {
            let drawn = draw_answers(&mut random, &questions);
            for answers in [drawn.clone(), with_changed_answer(&mut random, drawn)] {
                if has_empty(&answers) {
                    continue;
                }
                let answers = Value::Object(answers).to_string();
                let checked = version.check(&object(&answers), &Limits::default(), now(), ENGLISH).is_ok();
                let is_accepted = accepts(&schema, &json::parse(&answers).unwrap());
                assert!(is_accepted || !checked, "seed {seed}: {schema} refuses {answers} to {text}");
                assert!(
                    !is_exact || is_accepted == checked,
                    "seed {seed}: {schema} accepts {answers} to {text}"
                );
                accepted += usize::from(checked);
                *(if is_exact { &mut exact } else { &mut conditional }) += 1;
            }
        }
    }
    assert!(exact > 1_000 && conditional > 2_000 && accepted > 1_000, "{exact} {conditional} {accepted}");
}
