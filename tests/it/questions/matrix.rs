//! The type `matrix`.

use super::json_schema::accepts;
use super::*;

const GRID: &str = r#""type":"matrix","rows":["taste",{"value":"a/b","label":"A"}],"columns":["good","bad"]"#;

#[test]
fn matrix_accepts_a_column_for_each_row() {
    question(GRID).check(&[
        (r#"[{"taste":"good"}, {"a/b":"bad","taste":"good"}]"#, &[]),
        (r#"[{"taste":"fair"}]"#, &["not_an_option/taste"]),
        (r#"[{"taste":["good"]}]"#, &["type_mismatch/taste"]),
        (r#"[{"a/b":5,"price":"good"}]"#, &["type_mismatch/a~1b", "unknown_row/price"]),
        (r#"[{"price":null}]"#, &["unknown_row/price"]),
        (r#"[["good"], "good"]"#, &["type_mismatch"]),
    ]);
    question(&format!(r#"{GRID},"multiple":true"#)).check(&[
        (r#"[{"taste":["good","bad"],"a/b":["bad"]}]"#, &[]),
        (r#"[{"taste":"good"}]"#, &["type_mismatch/taste"]),
        (r#"[{"taste":["good","good"]}]"#, &["duplicate_option/taste/1"]),
        (r#"[{"taste":["fair"]}]"#, &["not_an_option/taste/0"]),
        (r#"[{"taste":["good","bad","good"]}]"#, &["too_many/taste", "duplicate_option/taste/2"]),
    ]);
}

#[test]
fn required_rows_are_required_once_an_answer_is_sent() {
    question(&format!(r#"{GRID},"required_rows":true"#)).check(&[
        (r#"[{"taste":"good","a/b":"bad"}, {}]"#, &[]),
        (r#"[{"taste":"good"}, {"taste":"good","a/b":" "}]"#, &["required/a~1b"]),
        (r#"[{"taste":null}]"#, &["required/taste", "required/a~1b"]),
    ]);
    question(&format!(r#"{GRID},"required_rows":["taste"]"#))
        .check(&[(r#"[{"taste":"good"}]"#, &[]), (r#"[{"a/b":"good"}, {"a/b":""}]"#, &["required/taste"])]);
    question(&format!(r#"{GRID},"required":true"#))
        .check(&[(r#"[{}, {"taste":null,"a/b":[]}]"#, &["required"]), (r#"[{"a/b":"bad"}]"#, &[])]);
}

#[test]
fn an_empty_cell_counts_as_missing() {
    for (settings, answer, expected) in [
        ("", r#"{"taste":"","a/b":"good"}"#, &[][..]),
        ("", r#"{"taste":"","a/b":null}"#, &[]),
        (r#","multiple":true"#, r#"{"taste":[],"a/b":["good"]}"#, &[]),
        (r#","required":true"#, r#"{"taste":"","a/b":{}}"#, &["required"]),
        (r#","required":true,"required_rows":["taste"]"#, r#"{"a/b":" "}"#, &["required"]),
        (r#","required_rows":["taste"]"#, r#"{"taste":[]}"#, &["required/taste"]),
    ] {
        let version = define(&format!("{GRID}{settings}")).unwrap();
        let answer = json::parse(answer).unwrap();
        assert_eq!(violations(&version, &answer), expected, "{settings} {answer}");
        // The schema of a question refuses empty values at any depth.
        let schema = version.questions[0].kind.rules().schema();
        assert!(
            !accepts(&schema, &answer) && !accepts(&schema, &json::parse("{}").unwrap()),
            "{settings} {answer}"
        );
    }
}

#[test]
fn the_settings_of_a_matrix_are_checked() {
    check_canonical(
        r#""type":"matrix","rows":["a","b"],"columns":["c"],"multiple":true,"required_rows":["a"]"#,
    );
    check_canonical(r#""type":"matrix","rows":["a"],"columns":["c"],"multiple":false,"required_rows":true"#);
    check_settings(&[
        (r#""type":"matrix""#, &["missing_field/rows", "missing_field/columns"]),
        (r#""type":"matrix","rows":[],"columns":["a","a"]"#, &["empty/rows", "duplicate_option/columns/1"]),
        (
            r#""type":"matrix","rows":["a"],"columns":["c"],"required_rows":["b",1]"#,
            &["type_mismatch/required_rows/1"],
        ),
        (
            r#""type":"matrix","rows":["a"],"columns":["c"],"required_rows":["b"]"#,
            &["invalid_range/required_rows/0"],
        ),
        (
            r#""type":"matrix","rows":["a"],"columns":["c"],"required_rows":"a""#,
            &["type_mismatch/required_rows"],
        ),
    ]);
}
