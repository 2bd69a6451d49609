//! What the patterns of a form may cost together.

use forms::domain::definition::Definition;
use forms::domain::form::Version;
use forms::domain::json::{self, Value};
use forms::domain::limits::Limits;

use super::{define, holds};

/// The codes, pointers and messages of what is wrong with a form of `questions`.
fn problems(questions: &str) -> Vec<(&'static str, String, String)> {
    let form = json::parse(&format!(r#"{{"title":"F","questions":[{questions}]}}"#)).unwrap();
    let found = Definition::read(&form, &Limits::default()).err().unwrap_or_default();
    found.into_iter().map(|found| (found.code.name(), found.pointer, found.message)).collect()
}

fn question(settings: &str) -> String {
    format!(r#"{{"type":"short_text","title":"T",{settings}}}"#)
}

#[test]
fn a_form_may_have_a_pattern_in_every_question() {
    let everyday = [
        r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"\\d{5}",
        r"\\p{L}+",
        r"\\d{1,2}/\\d{1,2}/\\d{4}",
    ];
    let questions: Vec<_> =
        everyday.iter().cycle().take(500).map(|text| question(&format!(r#""pattern":"{text}""#))).collect();
    assert_eq!(problems(&questions.join(",")), []);
}

#[test]
fn one_pattern_may_take_only_so_much_and_one_of_a_condition_less() {
    let own = |pattern: &str| problems(&question(&format!(r#""pattern":"{pattern}""#)));
    let asked = |pattern: &str| {
        let condition = format!(r#""show_if":{{"name":{{"matches":"{pattern}"}}}}"#);
        let named = r#"{"id":"name","type":"long_text","title":"T"}"#;
        problems(&format!("{named},{}", question(&condition)))
    };
    let only = |found: Vec<(&'static str, String, String)>| {
        let [(code, _, message)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(*code, "invalid_pattern");
        message.clone()
    };
    assert_eq!(own(r"\\w{9}"), []);
    let message = only(own(r"\\w{60}"));
    assert!(message.ends_with("it is too large; say lengths by `max_length`"), "{message}");
    let message = only(asked(r"\\w{9}"));
    assert!(message.ends_with("it is too large"), "it has no `max_length`: {message}");
}

#[test]
fn the_patterns_of_a_form_cost_only_so_much() {
    let large = question(r#""pattern":"[ab]{4000}""#);
    assert_eq!(problems(&vec![large.as_str(); 40].join(",")), []);
    let [(code, pointer, message)] = &problems(&vec![large.as_str(); 100].join(","))[..] else {
        panic!("it is told once")
    };
    assert_eq!((*code, pointer.as_str()), ("invalid_pattern", "/questions/43"));
    assert!(message.contains("`max_length`") && message.contains("[0-9]"), "{message}");
}

#[test]
fn what_else_is_wrong_is_told_beside_too_costly_patterns() {
    let large = question(r#""pattern":"[ab]{4000}""#);
    let mut questions = vec![large.as_str(); 50];
    questions.push(r#"{"type":"rating"}"#);
    let found: Vec<_> = problems(&questions.join(",")).into_iter().map(|(code, ..)| code).collect();
    assert_eq!(found, ["invalid_pattern", "missing_field"]);
}

#[test]
fn a_pattern_for_long_answers_costs_more() {
    let long = |pattern: &str, longest: u32| {
        let found = problems(&format!(
            r#"{{"type":"long_text","title":"T","pattern":"{pattern}","max_length":{longest}}}"#
        ));
        found.into_iter().map(|(code, pointer, _)| (code, pointer)).collect::<Vec<_>>()
    };
    assert_eq!(long("[ab]{4000}", 20_000), []);
    assert_eq!(long("[ab]{4000}", 65_536), [("invalid_pattern", "/questions/0".to_owned())]);
    assert_eq!(long(r"[\\w\\s.,]*", 65_536), []);
}

#[test]
fn the_patterns_of_conditions_count_too() {
    let matches = r#"{"name":{"matches":"a[ab]{500}"}}"#;
    let condition = format!(r#"{{"any":[{}]}}"#, [matches; 10].join(","));
    let asked = question(&format!(r#""show_if":{condition}"#));
    let form = |times: usize| {
        let found = problems(&format!(
            "{},{}",
            r#"{"id":"name","type":"long_text","title":"T"}"#,
            vec![asked.as_str(); times].join(",")
        ));
        found.into_iter().map(|(code, pointer, _)| (code, pointer)).collect::<Vec<_>>()
    };
    assert_eq!(form(1), []);
    assert_eq!(form(2), [("invalid_pattern", "/questions/2".to_owned())]);
}

#[test]
fn a_text_that_is_much_too_long_is_not_held_against_the_pattern() {
    let text = |length: usize| format!("\"{}\"", "c".repeat(length));
    holds(
        r#""type":"short_text","pattern":"a|b[0-9]{2}","max_length":3"#,
        &[
            ("\"b1\"", &["pattern_mismatch"]),
            (&text(1_000), &["too_long", "pattern_mismatch"]),
            (&text(1_001), &["too_long"]),
        ],
    );
}

#[test]
fn a_version_weighs_what_its_patterns_do_and_works_as_much_for_each_byte() {
    let version = |settings: &str| define(&format!(r#""type":"short_text"{settings}"#)).unwrap();
    let (none, little) = (version(""), version(r#","pattern":"a""#));
    let large = version(r#","pattern":"[ab]{4000}""#);
    let work = |version: &Version, text: &str| version.work(&[("q1".into(), Value::String(text.into()))]);
    assert_eq!((none.pattern_bytes(), work(&none, "a")), (0, 0));
    assert!((1..20_000).contains(&little.pattern_bytes()) && (1..20_000).contains(&work(&little, "a")));
    // Four thousand states, of 24 bytes at least.
    let states = 96_000..400_000;
    assert!(states.contains(&large.pattern_bytes()) && states.contains(&work(&large, "a")));
    assert_eq!(work(&large, "é"), 2 * work(&large, "a"));
}
