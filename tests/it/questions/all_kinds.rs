//! A form with every question type, over HTTP.

use forms::domain::question::{QuestionKind, is_empty};
use forms::domain::validation::violation::Rule;
use serde_json::{Value, json};

use super::{define, required_settings, violations};
use crate::harness::Server;

#[tokio::test]
async fn every_type_is_returned_as_defined_and_its_answer_as_sent() {
    let server = Server::start().await;
    let questions: Vec<Value> = QuestionKind::NAMES
        .iter()
        .map(|name| {
            let text = format!(r#"{{"id":"{name}","title":"How?",{}}}"#, required_settings(name));
            serde_json::from_str(&text).unwrap()
        })
        .collect();
    let form = server.published_form(json!(questions)).await;
    let kept = server.get(format!("/api/v1/forms/{form}")).send().await.expect(200);
    for (question, kept) in questions.iter().zip(kept["questions"].as_array().unwrap()) {
        let question = question.as_object().unwrap();
        assert!(question.iter().all(|(name, value)| kept[name] == *value), "{question:?} {kept}");
    }
    let examples: Vec<_> = QuestionKind::NAMES
        .iter()
        .filter_map(|name| {
            let version = define(&required_settings(name)).unwrap();
            let rules = version.questions[0].kind.rules();
            rules.takes_answer().then(|| format!("\"{name}\":{}", rules.example()))
        })
        .collect();
    let answers = format!("{{{}}}", examples.join(" , "));
    let path = format!("/api/v1/forms/{form}/submissions");
    let made = server.post(&path, json!({})).body(format!("{{\"answers\":{answers}}}")).send().await;
    made.expect(201);
    assert!(made.text().contains(&answers), "{}", made.text());
    let listed = server.get(&path).send().await;
    assert!(listed.text().contains(&answers), "{}", listed.text());
}

#[test]
fn every_type_accepts_its_example_and_refuses_settings_of_other_types() {
    let is_known_setting = |name: &String| {
        let found = define(&format!(r#""type":"no_such_kind","{name}":1"#)).unwrap_err();
        !found.iter().any(|found| found.code == Rule::UnknownField)
    };
    assert!(!is_known_setting(&"no_such_setting".to_owned()));
    for name in QuestionKind::NAMES {
        let version = define(&format!(r#""id":"q1",{}"#, required_settings(name))).unwrap();
        let kind = &version.questions[0].kind;
        assert_eq!(kind.name(), name);
        assert_eq!(violations(&version, &kind.rules().example()), [""; 0], "{name}");
        assert_eq!(is_empty(&kind.rules().example()), !kind.rules().takes_answer(), "{name}");
        assert!(!kind.rules().expects().is_empty());
        let violations = define(&format!(r#"{},"no_such_setting":1"#, required_settings(name))).unwrap_err();
        let [violation] = violations.as_slice() else { panic!("{violations:?}") };
        let found = (violation.code.known().unwrap().name(), violation.pointer.as_str());
        assert_eq!(found, ("unknown_field", "/questions/0/no_such_setting"));
        assert!(violation.allowed.contains(&"title".to_owned()));
        // A setting that is not in the list of all settings would not be returned.
        assert!(
            violation
                .allowed
                .iter()
                .filter(|name| !["id", "type", "title"].contains(&&***name))
                .all(is_known_setting),
            "{violation:?}"
        );
    }
}
