//! Columns to choose from in each row.

use super::{holds, keeps, refuses};

const GRID: &str = r#""type":"matrix","rows":["taste",{"value":"a/b","label":"A"}],"columns":["good","bad"]"#;

#[test]
fn matrix_takes_a_column_for_each_row() {
    holds(
        GRID,
        &[
            (r#"{"taste":"good"}"#, &[]),
            (r#"{"a/b":"bad","taste":"good"}"#, &[]),
            (r#"{"taste":"fair"}"#, &["not_an_option/taste"]),
            (r#"{"taste":["good"]}"#, &["type_mismatch/taste"]),
            (r#"{"a/b":5,"price":"good"}"#, &["type_mismatch/a~1b", "unknown_row/price"]),
            (r#"{"price":null}"#, &["unknown_row/price"]),
            (r#"{"taste":"","a/b":"good"}"#, &[]),
            ("[\"good\"]", &["type_mismatch"]),
            ("\"good\"", &["type_mismatch"]),
        ],
    );
    holds(
        &format!(r#"{GRID},"multiple":true"#),
        &[
            (r#"{"taste":["good","bad"],"a/b":[]}"#, &[]),
            (r#"{"taste":"good"}"#, &["type_mismatch/taste"]),
            (r#"{"taste":["good","good"]}"#, &["duplicate_option/taste/1"]),
            (r#"{"taste":["fair"]}"#, &["not_an_option/taste/0"]),
            (r#"{"taste":["good","bad","good"]}"#, &["too_many/taste"]),
        ],
    );
}

#[test]
fn needed_rows_are_needed_once_anything_is_answered() {
    holds(
        &format!(r#"{GRID},"required_rows":true"#),
        &[
            (r#"{"taste":"good","a/b":"bad"}"#, &[]),
            (r#"{"taste":"good"}"#, &["required/a~1b"]),
            (r#"{"taste":"good","a/b":" "}"#, &["required/a~1b"]),
            ("{}", &[]),
            (r#"{"taste":null}"#, &[]),
        ],
    );
    holds(
        &format!(r#"{GRID},"required_rows":["taste"]"#),
        &[(r#"{"taste":"good"}"#, &[]), (r#"{"a/b":"good"}"#, &["required/taste"])],
    );
    holds(
        &format!(r#"{GRID},"required":true"#),
        &[("{}", &["required"]), (r#"{"taste":null,"a/b":[]}"#, &["required"]), (r#"{"a/b":"bad"}"#, &[])],
    );
}

#[test]
fn the_settings_of_a_matrix_are_checked() {
    keeps(r#""type":"matrix","rows":["a","b"],"columns":["c"],"multiple":true,"required_rows":["a"]"#);
    keeps(r#""type":"matrix","rows":["a"],"columns":["c"],"multiple":false,"required_rows":true"#);
    refuses(&[
        (r#""type":"matrix""#, &["missing_field", "missing_field"]),
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
