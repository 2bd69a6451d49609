//! Statements and pages, which take no answer, and hidden questions, which are not shown.

use forms::domain::form::definition::FormPatch;
use forms::domain::submission;

use super::*;

#[test]
fn statements_and_pages_have_an_id_only_if_the_author_sets_one_and_are_never_required() {
    let version = version(
        r#"{"type":"page","title":"One"},{"type":"email","title":"Mail"},{"type":"statement","title":"Read","id":"intro","description":"d"},
           {"type":"rating","title":"Stars","required":true},{"type":"hidden"},{"type":"hidden","id":"source","default":"web","from_url":"src"}"#,
    );
    assert_eq!(
        serde_json::to_string(&version.questions).unwrap(),
        concat!(
            r#"[{"type":"page","title":"One"},{"id":"q1","type":"email","title":"Mail","required":false},"#,
            r#"{"id":"intro","type":"statement","title":"Read","description":"d"},"#,
            r#"{"id":"q2","type":"rating","title":"Stars","required":true},"#,
            r#"{"id":"q3","type":"hidden","title":"q3","required":false},"#,
            r#"{"id":"source","type":"hidden","title":"source","required":false,"default":"web","from_url":"src"}]"#
        )
    );
    let violations = read(
        r#"{"type":"page"},{"type":"statement","title":"S","required":false},{"type":"hidden","default":[1]},
           {"type":"hidden","default":" "},{"type":"hidden","default":"a\nb","title":7},{"type":"page","title":"P","default":1}"#,
    );
    assert_eq!(
        pointers(&violations.unwrap_err()),
        [
            ("/questions/0/title", "missing_field"),
            ("/questions/1/required", "unknown_field"),
            ("/questions/2/default", "type_mismatch"),
            ("/questions/3/default", "empty"),
            ("/questions/4/default", "invalid_character"),
            ("/questions/4/title", "type_mismatch"),
            ("/questions/5/default", "unknown_field"),
        ]
    );
    let long = |length| read(&format!(r#"{{"type":"hidden","default":"{}"}}"#, "é".repeat(length)));
    assert!(long(1_000).is_ok());
    assert_eq!(pointers(&long(1_001).unwrap_err()), [("/questions/0/default", "too_long")]);
    let long = format!(r#"{{"type":"hidden","default":"\u0007{}"}}"#, "x".repeat(1_000));
    let both = ["invalid_character", "too_long"].map(|code| ("/questions/0/default", code));
    assert_eq!(pointers(&read(&long).unwrap_err()), both);
}

#[test]
fn the_defaults_of_a_form_have_at_most_16_kib_together() {
    let defaults = |lengths: &[usize]| {
        let default = |length: &usize| format!(r#"{{"type":"hidden","default":"{}"}}"#, "x".repeat(*length));
        lengths.iter().map(default).collect::<Vec<_>>().join(",")
    };
    let sixteen_kib = [[1_000; 16].as_slice(), &[350]].concat();
    assert!(read(&defaults(&sixteen_kib)).is_ok());
    let more = [sixteen_kib.as_slice(), &[1, 1]].concat();
    let violations = read(&defaults(&more)).unwrap_err();
    assert_eq!(pointers(&violations), [("/questions/17/default", "too_long")]);
    assert!(violations[0].help.is_some());
    let body = format!(r#"{{"questions":[{}]}}"#, defaults(&more));
    assert!(FormPatch::read(&json::parse(&body).unwrap(), &Limits::default()).is_err());
    assert!(
        FormPatch::read(&json::parse(&body).unwrap(), &Limits::UNLIMITED).is_ok(),
        "it was accepted before"
    );
}

#[test]
fn an_answer_to_a_statement_or_page_is_refused() {
    let version = version(
        r#"{"type":"page","title":"P"},{"type":"statement","id":"intro","title":"S"},{"type":"hidden","id":"h"}"#,
    );
    for accepted in [r#"{}"#, r#"{"h":"x"}"#, r#"{"h":1.50}"#, r#"{"h":false}"#, r#"{"h":null,"intro":""}"#] {
        assert_eq!(check(&version, accepted), [], "{accepted}");
    }
    for (answers, id, code) in [
        (r#"{"intro":"x"}"#, "intro", "not_answerable"),
        (r#"{"h":["x"]}"#, "h", "type_mismatch"),
        (r#"{"h":"a\nb"}"#, "h", "invalid_character"),
        (r#"{"":"x"}"#, "", "unknown_question"),
        (r#"{"q1":"x"}"#, "q1", "unknown_question"),
    ] {
        assert_eq!(check(&version, answers), [(id.to_owned(), code)], "{answers}");
    }
}

#[test]
fn defaults_are_appended_and_the_sent_answers_are_kept_byte_for_byte() {
    let version = version(
        r#"{"type":"hidden","id":"a","default":"w\"b"},{"type":"email","title":"M"},{"type":"hidden","id":"b","default":1.50}"#,
    );
    for (sent, kept) in [
        ("{}", r#"{"a":"w\"b","b":1.50}"#),
        ("{ }", r#"{ "a":"w\"b","b":1.50}"#),
        (r#"{"b" : 2 }"#, r#"{"b" : 2 ,"a":"w\"b"}"#),
        (
            "{\"q1\":\"\\u0061@b.example\",\n\"a\":null}",
            "{\"q1\":\"\\u0061@b.example\",\n\"a\":null,\"b\":1.50}",
        ),
        (r#"{"b":false,"a":""}"#, r#"{"b":false,"a":""}"#),
    ] {
        let answers =
            submission::read(&format!(r#"{{"answers":{sent}}}"#), &Limits::default()).unwrap().answers;
        let defaults = version.check(answers.values(), &Limits::default(), now(), ENGLISH).unwrap();
        let answers = answers.with_defaults(defaults);
        assert_eq!(answers.text(), kept, "{sent}");
        assert_eq!(json::parse(kept).unwrap(), Value::Object(answers.values().to_vec()), "{sent}");
    }
}
