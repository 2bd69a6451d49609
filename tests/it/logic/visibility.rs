//! Which questions are shown and required, and which answers are refused, beyond what the reference says.

use super::*;

/// Checks the violations of each set of answers: `question: code`, separated by commas.
#[track_caller]
fn check_table(questions: &str, cases: &[(&str, &str)]) {
    let version = version(questions);
    for (answers, expected) in cases {
        let found: Vec<_> =
            check(&version, answers).iter().map(|(id, code)| format!("{id}: {code}")).collect();
        assert_eq!(found.join(", "), *expected, "{answers}");
    }
}

fn messages(version: &Version, answers: &str) -> Vec<String> {
    let violations = version.check(&object(answers), &Limits::default(), now(), ENGLISH).unwrap_err();
    let help =
        |violation: &Violation| violation.help.iter().map(|help| format!("; {help}")).collect::<String>();
    violations.iter().map(|violation| violation.message.clone() + &help(violation)).collect()
}

fn not_asked(title: &str) -> String {
    format!("\"{title}\" is not asked with these answers; leave it out")
}

fn depends_on(title: &str, id: &str) -> String {
    format!("whether \"{title}\" is asked depends on `{id}`; correct `{id}` first")
}

fn required(title: &str) -> String {
    format!("\"{title}\" needs an answer")
}

fn possibly_required(title: &str, id: &str) -> String {
    format!("\"{title}\" needs an answer; correct `{id}` first: the answer may then not be needed")
}

#[test]
fn a_question_that_depends_on_a_refused_answer_says_which_to_correct_first() {
    let version = version(
        r#"{"id":"score","type":"rating","title":"Score","required":true},
           {"id":"why","type":"short_text","title":"Why","required":true,"show_if":{"not":{"score":{"lt":3}}}},
           {"id":"mail","type":"email","title":"Mail","show_if":{"why":{"answered":true}}},
           {"id":"other","type":"short_text","title":"Other"},
           {"type":"page","title":"P","show_if":{"other":"x"}},
           {"id":"on_page","type":"short_text","title":"On it","show_if":{"score":1}},
           {"type":"page","title":"Q"},
           {"id":"more","type":"short_text","title":"More","required_if":{"score":{"ne":2}}}"#,
    );
    let (score, other) = ("Enter a whole number from 1 to 5", "Enter text, not a number");
    for (answers, expected) in [
        // The value of a hidden question is not checked.
        (
            r#"{"score":1,"why":"slow","mail":7,"on_page":"x","more":"z"}"#,
            vec![not_asked("Why"), not_asked("Mail"), not_asked("On it")],
        ),
        (
            r#"{"score":-1,"why":"slow","mail":"a@b.example","on_page":"x","more":"z"}"#,
            vec![
                score.to_owned(),
                depends_on("Why", "score"),
                depends_on("Mail", "score"),
                not_asked("On it"),
            ],
        ),
        (
            r#"{"score":9,"other":"x","on_page":"x"}"#,
            vec![
                score.to_owned(),
                possibly_required("Why", "score"),
                depends_on("On it", "score"),
                possibly_required("More", "score"),
            ],
        ),
        (
            r#"{"score":1,"other":7,"on_page":"x","more":"z"}"#,
            vec![other.to_owned(), depends_on("On it", "other")],
        ),
        // The other condition is false whatever the correct answer is.
        (r#"{"score":2,"other":7,"on_page":"x"}"#, vec![other.to_owned(), not_asked("On it")]),
        (r#"{"score":5}"#, vec![required("Why"), required("More")]),
        // A missing required answer counts as refused.
        (
            r#"{"why":"x","mail":"a@b.example","on_page":"x","other":"x"}"#,
            vec![required("Score"), depends_on("On it", "score"), possibly_required("More", "score")],
        ),
    ] {
        assert_eq!(messages(&version, answers), expected, "{answers}");
    }
}

#[test]
fn a_condition_that_valid_answers_decide_does_not_depend_on_a_refused_one() {
    let version = version(
        r#"{"id":"a","type":"rating","title":"A"},
           {"id":"b","type":"boolean","title":"B"},
           {"id":"c","type":"short_text","title":"C","show_if":{"a":{"gte":3},"b":true}},
           {"id":"e","type":"short_text","title":"E","show_if":{"b":true,"a":{"gte":3}}},
           {"id":"n","type":"short_text","title":"N","required":true,"show_if":{"not":{"a":{"lt":3},"b":true}}},
           {"id":"r","type":"short_text","title":"R","required_if":{"any":[{"a":{"gte":3}},{"b":false}]}}"#,
    );
    let refused = "Enter a whole number from 1 to 5".to_owned();
    for (answers, expected) in [
        (
            r#"{"a":9,"b":false,"c":"x","e":"x"}"#,
            vec![not_asked("C"), not_asked("E"), required("N"), required("R")],
        ),
        (
            r#"{"a":9,"b":true,"c":"x","e":"x"}"#,
            vec![possibly_required("N", "a"), possibly_required("R", "a")],
        ),
        (
            r#"{"a":0,"b":true,"c":"x","e":"x","n":"x"}"#,
            vec![depends_on("C", "a"), depends_on("E", "a"), depends_on("N", "a")],
        ),
    ] {
        assert_eq!(messages(&version, answers), [vec![refused.clone()], expected].concat(), "{answers}");
    }
}

#[test]
fn a_pattern_is_matched_against_at_most_1000_characters() {
    let questions = r#"{"id":"page","type":"url","title":"P"},{"id":"name","type":"short_text","title":"N","max_length":900},
        {"id":"a","type":"rating","title":"A","required":true,"show_if":{"page":{"matches":"x$"}}},
        {"id":"b","type":"rating","title":"B","required":true,"show_if":{"name":{"matches":"x$"}}}"#;
    let page = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
    check_table(
        questions,
        &[
            (&format!(r#"{{"page":"{}"}}"#, page(1_000)), "a: required"),
            (&format!(r#"{{"page":"{}"}}"#, page(1_001)), ""),
            (&format!(r#"{{"name":"{}"}}"#, "x".repeat(900)), "b: required"),
            (&format!(r#"{{"name":"{}"}}"#, "x".repeat(901)), "name: too_long"),
        ],
    );
}
