//! The JSON Schema of a form's answers and our own check are of one mind, as far as JSON Schema can say it.

use forms::domain::form::Version;
use forms::domain::json;
use forms::domain::limits::Limits;
use forms::domain::question::Kind;
use forms::domain::settings::UnknownAnswers;
use forms::domain::workspace::Scope;
use serde_json::{Map, Value, json};

use super::random::{draw_answers, draw_questions};
use super::{now, object, version};
use crate::engine::random::Random;
use crate::harness::{Server, questions};
use crate::questions::least_settings;
use crate::questions::schema::takes;

/// Whether the check takes `answers`, and whether the schema does.
fn verdicts(version: &Version, answers: &str) -> (bool, bool) {
    let schema = version.schema("F", UnknownAnswers::Reject);
    let checked = version.check(&object(answers), &Limits::default(), now()).is_ok();
    (checked, takes(&schema, &json::parse(answers).unwrap()))
}

#[track_caller]
fn table(questions: &str, accepted: &[&str], refused: &[&str]) {
    let version = version(questions);
    for (answers, expected) in [(accepted, true), (refused, false)] {
        for text in answers {
            assert_eq!(verdicts(&version, text), (expected, expected), "{text} to {questions}");
        }
    }
}

#[test]
fn what_need_not_be_answered_may_be_empty() {
    table(
        r#"{"id":"a","type":"rating","title":"A"},{"id":"b","type":"consent","title":"B"},
           {"id":"s","type":"statement","title":"S"}"#,
        &[
            "{}",
            r#"{"a":null,"b":false,"s":null}"#,
            r#"{"a":" \u3000\t","b":[]}"#,
            r#"{"a":{},"b":true,"s":""}"#,
        ],
        &[
            r#"{"a":"\u200b"}"#,
            r#"{"a":[0]}"#,
            r#"{"a":false}"#,
            r#"{"s":"x"}"#,
            r#"{"c":null}"#,
            r#"{"a":6}"#,
        ],
    );
    table(
        r#"{"id":"a","type":"short_text","title":"A","required":true},
           {"id":"b","type":"consent","title":"B","required":true},
           {"id":"h","type":"hidden","default":"web","required":true}"#,
        &[r#"{"a":"x","b":true}"#, r#"{"a":"x","b":true,"h":7}"#],
        &["{}", r#"{"a":" ","b":true}"#, r#"{"a":"x","b":false}"#, r#"{"a":"x","b":true,"h":null}"#],
    );
}

#[test]
fn conditions_are_said_in_full_where_that_can_be() {
    table(
        r#"{"id":"score","type":"number","title":"S"},
           {"id":"why","type":"short_text","title":"W","required":true,"show_if":{"score":{"lte":2}}},
           {"id":"mail","type":"email","title":"M","show_if":{"why":{"answered":true}}},
           {"id":"more","type":"long_text","title":"M","required_if":{"any":[{"why":"price"},{"not":{"score":{"ne":9}}}]}}"#,
        &[
            "{}",
            r#"{"score":3,"why":" ","mail":null}"#,
            r#"{"score":1.5,"why":"slow","mail":"a@b.example"}"#,
            r#"{"score":1,"why":"price","more":"x"}"#,
        ],
        &[
            r#"{"score":2}"#,
            r#"{"score":2,"why":" "}"#,
            r#"{"score":2.5,"why":"slow"}"#,
            r#"{"why":"slow"}"#,
            r#"{"mail":"a@b.example"}"#,
            r#"{"score":1,"why":"price"}"#,
            r#"{"score":9}"#,
        ],
    );
    table(
        r#"{"id":"many","type":"multiple_choice","title":"M","options":["a","b"]},
           {"id":"at","type":"time","title":"T"},{"id":"tale","type":"short_text","title":"T"},
           {"type":"page","title":"P","show_if":{"many":{"includes":"b"}}},
           {"id":"in_b","type":"rating","title":"B","show_if":{"at":["09:00","10:00:30"]}},
           {"type":"page","title":"P"},
           {"id":"in_tale","type":"rating","title":"T","show_if":{"tale":{"includes":"(a.b)"}}}"#,
        &[
            r#"{"many":["b"],"at":"09:00:00","in_b":1}"#,
            r#"{"many":["b"],"at":"10:00:30","in_b":1}"#,
            r#"{"tale":"is (a.b) so","in_tale":1}"#,
        ],
        &[
            r#"{"many":["a"],"at":"09:00:00","in_b":1}"#,
            r#"{"many":["b"],"at":"10:00","in_b":1}"#,
            r#"{"tale":"is (aab) so","in_tale":1}"#,
            r#"{"in_tale":1}"#,
        ],
    );
}

#[test]
fn a_condition_of_a_page_is_said_once_for_all_its_questions() {
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
}

#[test]
fn what_cannot_be_said_refuses_nothing() {
    for condition in [
        r#"{"tale":{"matches":"^x"}}"#,
        r#"{"tale":{"gt":"m"}}"#,
        r#"{"not":{"tale":{"lt":"m"}}}"#,
        r#"{"when":"2026-11-20T09:00:00Z"}"#,
        r#"{"from":"web"}"#,
    ] {
        let version = version(&format!(
            r#"{{"id":"tale","type":"short_text","title":"T"}},{{"id":"when","type":"datetime","title":"W"}},
               {{"id":"from","type":"hidden","default":"web","show_if":{{"tale":"x"}}}},
               {{"id":"a","type":"rating","title":"A","required":true,"show_if":{condition}}}"#
        ));
        for answers in [
            "{}",
            r#"{"a":1}"#,
            r#"{"tale":"x"}"#,
            r#"{"tale":"x","a":1}"#,
            r#"{"tale":"a"}"#,
            r#"{"when":"2026-11-20T10:00:00+01:00","a":1}"#,
            r#"{"when":"2026-11-20T10:00:00Z","a":1,"tale":"a"}"#,
        ] {
            let (checked, taken) = verdicts(&version, answers);
            assert!(taken || !checked, "{answers} where {condition}");
        }
    }
}

/// Whether JSON Schema can say all that these questions ask for.
fn can_be_said(questions: &[Value]) -> bool {
    fn comparable(condition: &Value) -> bool {
        match condition {
            Value::Object(members) => members.iter().all(|(name, value)| match name.as_str() {
                "matches" => false,
                "lt" | "lte" | "gt" | "gte" => value.is_number(),
                _ => comparable(value),
            }),
            Value::Array(items) => items.iter().all(comparable),
            _ => true,
        }
    }
    let mut page_is_certain = true;
    questions.iter().all(|question| {
        if question["type"] == "page" {
            page_is_certain = question["show_if"].is_null();
        }
        let is_certain = page_is_certain && question["show_if"].is_null();
        let is_sure = question["default"].is_null() || is_certain;
        is_sure && comparable(&question["show_if"]) && comparable(&question["required_if"])
    })
}

/// The same with one answer changed, or one that no question asks for.
fn spoilt(random: &mut Random, mut answers: Map<String, Value>) -> Map<String, Value> {
    let wrong =
        [json!(0), json!("x"), json!(1.5), json!(" "), json!([]), json!({}), json!([1]), json!(false)];
    let keys: Vec<_> = answers.keys().cloned().chain(["nobody".to_owned()]).collect();
    answers.insert(random.pick(&keys).clone(), random.pick(&wrong).clone());
    answers
}

#[test]
fn random_forms_and_answers_are_judged_alike() {
    let (mut alike, mut accepted, mut vague) = (0, 0, 0);
    for seed in 3_000..3_200 {
        let mut random = Random::new(seed);
        let questions = draw_questions(&mut random);
        let text = Value::Array(questions.clone()).to_string();
        let version = version(&text[1..text.len() - 1]);
        let schema = version.schema("F", UnknownAnswers::Reject);
        let is_exact = can_be_said(&questions);
        for _ in 0..30 {
            let drawn = draw_answers(&mut random, &questions);
            for answers in [drawn.clone(), spoilt(&mut random, drawn)] {
                let answers = Value::Object(answers).to_string();
                let checked = version.check(&object(&answers), &Limits::default(), now()).is_ok();
                let taken = takes(&schema, &json::parse(&answers).unwrap());
                assert!(taken || !checked, "seed {seed}: {schema} refuses {answers} to {text}");
                assert!(!is_exact || taken == checked, "seed {seed}: {schema} takes {answers} to {text}");
                accepted += usize::from(checked);
                *(if is_exact { &mut alike } else { &mut vague }) += 1;
            }
        }
    }
    assert!(alike > 2_000 && vague > 2_000 && accepted > 1_000, "{alike} {vague} {accepted}");
}

#[test]
fn every_kind_of_question_is_in_the_schema_of_its_form() {
    let settings =
        Kind::NAMES.map(|name| format!(r#"{{"id":"{name}","title":"How?",{}}}"#, least_settings(name)));
    let version = version(&settings.join(","));
    for question in &version.questions {
        let (id, rules) = (question.id.as_deref().unwrap(), question.kind.rules());
        for (answer, expected) in [
            (rules.example().to_string(), true),
            ("\" \"".to_owned(), true),
            ("[[]]".to_owned(), false),
            ("{\"nobody\":\"x\"}".to_owned(), false),
        ] {
            let answers = format!("{{\"{id}\":{answer}}}");
            assert_eq!(verdicts(&version, &answers), (expected, expected), "{answers}");
        }
    }
}

#[tokio::test]
async fn whoever_may_answer_gets_the_schema() {
    let server = Server::start().await;
    let form = server.draft(questions()).await;
    let path = format!("/api/v1/forms/{form}/schema");
    let get = |key: &str| server.open_call(axum::http::Method::GET, &path).key(key).send();
    let submits = server.key_with(&[Scope::Submit]).await;
    let found = get(&submits).await;
    assert_eq!(found.header("content-type"), Some("application/schema+json"));
    let schema = found.expect(200);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!((&schema["title"], &schema["required"]), (&json!("Visit"), &json!(["q1"])));
    assert_eq!(schema["properties"]["q3"]["title"], "How was it?");
    assert_eq!(schema["additionalProperties"], false);
    let drop = json!({"settings": {"unknown_answers": "drop"}});
    server.patch(format!("/api/v1/forms/{form}"), drop).send().await.expect(200);
    let read = server.key_with(&[Scope::Read]).await;
    assert_eq!(get(&read).await.expect(200)["additionalProperties"], true);
    let stranger = server.other_workspace().await;
    assert_eq!(get(&stranger).await.code(), "form_not_found");
}
