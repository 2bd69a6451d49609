//! Each operator of conditions, evaluated for single answers.

use forms::domain::condition::{Answer, Condition, ValueType};
use forms::domain::json::{self, Value};
use forms::domain::question::is_empty;
use forms::domain::validation::budget::Budget;
use forms::domain::validation::fields::Fields;
use forms::domain::validation::limits::Limits;

use super::object;

fn condition(text: &str) -> Condition {
    let value = json::parse(&format!(r#"{{"show_if":{text}}}"#)).unwrap();
    let mut violations = Vec::new();
    let mut fields = Fields::open(&value, "", "a question", &mut violations).unwrap();
    let condition = Condition::read(&mut fields, "show_if", &mut Budget::new(&Limits::default()));
    fields.close(&[]);
    assert_eq!(violations, [], "{text}");
    condition.unwrap()
}

fn holds(condition: &Condition, value_type: ValueType, answers: &[(String, Value)]) -> bool {
    let given = |id: &str| answers.iter().find(|(key, value)| key == id && !is_empty(value));
    condition.holds(&|id| given(id).map(|(_, value)| Answer { value, value_type, max_length: 1_000 }))
}

/// Evaluates `test`, a condition on `q`, for each answer to `q`.
#[track_caller]
fn check_table(value_type: ValueType, test: &str, is_true: &[&str], is_false: &[&str]) {
    let condition = condition(&format!(r#"{{"q":{test}}}"#));
    for (answers, expected) in [(is_true, true), (is_false, false)] {
        for answer in answers {
            let answers = object(&format!(r#"{{"q":{answer},"other":1}}"#));
            assert_eq!(holds(&condition, value_type, &answers), expected, "{test} of {answer}");
        }
    }
}

#[test]
fn equality_is_by_value_and_exact() {
    let text =
        |test, is_true: &[&str], is_false: &[&str]| check_table(ValueType::Text, test, is_true, is_false);
    text("3", &["3", "3.0", "30e-1"], &["3.0000000000000000001", "\"3\"", "4", "true", "[3]", "null"]);
    text("9007199254740993", &["9007199254740993.0"], &["9007199254740992"]);
    text("0", &["-0", "0e9"], &["1e-400", "-1e-400"]);
    text("\"é\"", &["\"\\u00e9\""], &["\"e\\u0301\"", "\"É\"", "\"é \"", "1"]);
    text("true", &["true"], &["false", "\"true\"", "1"]);
    text(r#"{"eq":["a","b"]}"#, &[r#"["a","b"]"#], &[r#"["b","a"]"#, r#"["a"]"#, r#""a""#]);
    text(r#"{"eq":{"other":"x"}}"#, &[r#"{"other":"x"}"#], &[r#"{"other":"y"}"#, r#""x""#]);
    text(r#"{"ne":3}"#, &["4", "\"3\"", "null", "\"\"", "[]"], &["3", "3.0"]);
    text(r#"["a",2]"#, &["\"a\"", "2.0"], &["\"b\"", "[\"a\"]", "null"]);
    text(r#"{"in":["a",2]}"#, &["\"a\"", "2.0"], &["\"b\"", "[\"a\"]", "null"]);
}

#[test]
fn numbers_are_ordered_by_value_and_texts_by_code_point() {
    let text =
        |test, is_true: &[&str], is_false: &[&str]| check_table(ValueType::Text, test, is_true, is_false);
    text(r#"{"lt":3}"#, &["2.9999999999999999999", "-4"], &["3", "3.0", "4", "\"2\"", "true", "[2]", "null"]);
    text(r#"{"lte":3}"#, &["2", "3.0"], &["3.0000000000000000001", "\"2\"", "null"]);
    text(
        r#"{"gt":-3}"#,
        &["-2.9999999999999999999", "0"],
        &["-3", "-3.0000000000000000001", "\"a\"", "null"],
    );
    text(r#"{"gte":18446744073709551616}"#, &["18446744073709551616", "1e20"], &["18446744073709551615"]);
    text(r#"{"gt":0}"#, &["1e-400"], &["0", "-1e-400"]);
    text(r#"{"gt":"Z"}"#, &["\"a\"", "\"Za\"", "\"é\""], &["\"Z\"", "\"A\"", "\"Y😀\"", "7", "null"]);
    // U+FFFD sorts before an emoji by code point, and after it by UTF-16 code unit.
    text(r#"{"lt":"😀"}"#, &["\"\\ufffd\""], &["\"😀\""]);
    text(r#"{"gte":2,"lt":4}"#, &["2", "3.9"], &["1", "4"]);
}

#[test]
fn times_are_compared_as_points_in_time() {
    check_table(ValueType::Time, "\"09:00\"", &["\"09:00\"", "\"09:00:00\""], &["\"09:00:01\"", "\"9:00\""]);
    check_table(
        ValueType::Time,
        r#"{"lt":"10:00:30"}"#,
        &["\"10:00\"", "\"09:59:59\""],
        &["\"10:00:30\"", "\"10:01\"", "\"9\""],
    );
    check_table(
        ValueType::DateTime,
        r#"{"gte":"2026-11-20T09:00:00Z"}"#,
        &["\"2026-11-20T10:00:00+01:00\"", "\"2026-11-20T09:00:00.0000001Z\""],
        &["\"2026-11-20T09:59:59+01:00\"", "\"2026-11-20\"", "3"],
    );
    check_table(
        ValueType::DateTime,
        r#"["2026-11-20T09:00:00Z"]"#,
        &["\"2026-11-20T10:00:00+01:00\""],
        &["\"2026-11-20T10:00:00Z\""],
    );
    // The same values as plain texts.
    check_table(ValueType::Text, "\"09:00\"", &["\"09:00\""], &["\"09:00:00\""]);
    check_table(
        ValueType::Text,
        r#"{"lt":"2026-11-20"}"#,
        &["\"2026-11-19\"", "\"2025-12-31\""],
        &["\"2026-11-20\""],
    );
}

#[test]
fn includes_matches_and_answered_are_evaluated() {
    let text =
        |test, is_true: &[&str], is_false: &[&str]| check_table(ValueType::Text, test, is_true, is_false);
    let includes = r#"{"includes":"b"}"#;
    text(includes, &[r#"["a","b"]"#, "\"abc\""], &[r#"["ab"]"#, "\"B\"", "2", r#"{"b":1}"#, "null"]);
    text(r#"{"includes":{"other":"x"}}"#, &[r#"[{"other":"x"}]"#], &[r#"["x"]"#, "\"x\""]);
    let matches = r#"{"matches":"b+c"}"#;
    text(matches, &["\"abbcd\"", "\"bc\""], &["\"ab\"", "[\"bc\"]", "5", "null"]);
    text(r#"{"matches":"^b$"}"#, &["\"b\""], &["\"ab\""]);
    text(r#"{"answered":true}"#, &["0", "false", "\"x\"", "[null]"], &["null", "\" \\u3000\"", "[]", "{}"]);
    text(r#"{"answered":false}"#, &["null", "\" \"", "[]", "{}"], &["0", "false", "\"x\""]);
}

#[test]
fn conditions_combine_with_any_all_and_not() {
    let cases = [
        (r#"{"a":1,"b":2}"#, [true, false, false, false]),
        (r#"{"any":[{"a":1},{"b":2}]}"#, [true, true, true, false]),
        (r#"{"all":[{"a":1},{"b":2}]}"#, [true, false, false, false]),
        (r#"{"not":{"a":1}}"#, [false, false, true, true]),
        (r#"{"not":{"a":1,"b":2}}"#, [false, true, true, true]),
        (r#"{"a":1,"not":{"b":2}}"#, [false, true, false, false]),
        (
            r#"{"any":[{"not":{"any":[{"a":1}]}},{"all":[{"b":{"answered":true}}]}]}"#,
            [true, false, true, true],
        ),
        (r#"{"not":{"a":{"lt":5}}}"#, [false, false, true, true]),
    ];
    let given = [r#"{"a":1,"b":2}"#, r#"{"a":1}"#, r#"{"b":2}"#, "{}"].map(object);
    for (text, expected) in cases {
        let condition = condition(text);
        let found = given.each_ref().map(|answers| holds(&condition, ValueType::Text, answers));
        assert_eq!(found, expected, "{text}");
        assert_eq!(serde_json::to_string(&condition).unwrap(), text);
    }
}
