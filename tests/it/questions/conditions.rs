//! What conditions make of each kind of answer.

use forms::domain::json::{self, Value};
use forms::domain::limits::Limits;

use super::{define, now};

/// Whether the question behind one with `settings` is asked, if the first is answered with `answer`.
fn asks(settings: &str, condition: &str, answer: &str) -> bool {
    let version = define(&two(settings, condition)).unwrap();
    let Value::Object(answers) = json::parse(&format!(r#"{{"first":{answer}}}"#)).unwrap() else {
        unreachable!("it is an object")
    };
    // The second must be answered where it is asked.
    version.check(&answers, &Limits::default(), now()).is_err()
}

/// The settings of two questions, as those of one.
fn two(settings: &str, condition: &str) -> String {
    format!(
        r#""id":"first",{settings}}},{{"id":"second","type":"boolean","title":"And?","required":true,"show_if":{{"first":{condition}}}"#
    )
}

#[test]
fn conditions_compare_answers_as_their_kinds_mean_them() {
    let choices = r#""type":"multiple_choice","options":["a","b","c"],"min_selected":2"#;
    for (settings, condition, answer, asked) in [
        (r#""type":"number""#, r#"{"gt":0.3}"#, "0.30000000000000001", true),
        (r#""type":"number""#, r#"{"gt":0.3}"#, "3e-1", false),
        (r#""type":"boolean""#, "false", "false", true),
        (r#""type":"consent""#, "true", "true", true),
        (r#""type":"consent""#, r#"{"answered":false}"#, "false", true),
        (r#""type":"consent""#, r#"{"answered":true}"#, "false", false),
        (choices, r#"{"includes":"b"}"#, r#"["a","b"]"#, true),
        (choices, r#"{"includes":"b"}"#, r#"["a","c"]"#, false),
        (r#""type":"time""#, r#"{"gte":"09:30:00"}"#, r#""09:30""#, true),
        (r#""type":"datetime""#, r#""2026-11-20T10:00:00+01:00""#, r#""2026-11-20T09:00:00Z""#, true),
        (r#""type":"date","min":"today""#, r#"{"lt":"2027-01-01"}"#, r#""2026-12-31""#, true),
        (r#""type":"matrix","rows":["r"],"columns":["c"]"#, r#"{"answered":true}"#, r#"{"r":null}"#, false),
    ] {
        assert_eq!(asks(settings, condition, answer), asked, "{settings} {condition} {answer}");
    }
}

#[test]
fn what_can_never_be_answered_is_an_impossible_condition() {
    let choices = r#""type":"multiple_choice","options":["a","b"],"min_selected":2"#;
    for (settings, condition, possible) in [
        (choices, r#"{"includes":"c"}"#, false),
        (choices, r#"{"includes":"a"}"#, true),
        (r#""type":"single_choice","options":["a"]"#, r#""b""#, false),
        (r#""type":"single_choice","options":["a"]"#, r#"["a"]"#, true),
        (r#""type":"opinion_scale""#, "11", false),
        (r#""type":"number","max":5"#, r#"{"gt":5}"#, false),
        (r#""type":"number","max":5"#, r#"{"gte":5}"#, true),
        (r#""type":"consent""#, "false", false),
        (r#""type":"date","max":"2026-12-31""#, r#""2027-01-01""#, false),
        // The bound moves: what it forbids today it may have allowed.
        (r#""type":"date","min":"today""#, r#""2000-01-01""#, true),
        (r#""type":"date""#, r#"{"lt":"today"}"#, false),
    ] {
        let codes: Vec<_> = define(&two(settings, condition))
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|found| found.code.name())
            .collect();
        assert_eq!(
            codes,
            if possible { vec![] } else { vec!["impossible_condition"] },
            "{settings} {condition}"
        );
    }
}
