//! Rules that every question type keeps.

use forms::domain::question::{QuestionKind, is_empty};

use super::*;

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
        let example = kind.rules().example();
        assert_eq!(violations(&version, &example), [""; 0], "{name}");
        assert_eq!(is_empty(&example), !kind.rules().takes_answer(), "{name}");
        if kind.rules().takes_answer() {
            check_schema_agrees(&version, &example, &[]);
        }
        assert!(!kind.rules().expects(ENGLISH).is_empty());
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
