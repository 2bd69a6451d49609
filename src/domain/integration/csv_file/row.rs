//! Cells of CSV files.

use crate::domain::json::Value;

/// Returns an answer as the text of a cell: lists and objects as JSON. Text that a spreadsheet would run as a formula gets a
/// leading `'`.
pub(super) fn cell(answer: &Value) -> String {
    match answer {
        Value::Null => String::new(),
        Value::String(text) if is_formula(text) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => answer.to_string(),
    }
}

/// First characters of a formula (OWASP, CSV Injection), and those that spreadsheets convert to one of them or skip.
const FORMULA_STARTS: [char; 12] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Whether a spreadsheet would run `text` as a formula. Numbers such as `-5` are none.
pub fn is_formula(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    text.starts_with(FORMULA_STARTS) && !is_number
}

#[cfg(test)]
mod tests {
    use super::cell;
    use crate::domain::json::parse;

    #[test]
    fn cells_are_text_that_no_spreadsheet_runs() {
        for (answer, expected) in [
            (r#""Ann""#, "Ann"),
            (r#""""#, ""),
            ("null", ""),
            ("1.10", "1.10"),
            ("-5", "-5"),
            ("true", "true"),
            (r#"["a","b"]"#, r#"["a","b"]"#),
            (r#"{"other":"x"}"#, r#"{"other":"x"}"#),
            (r#""=1+1""#, "'=1+1"),
            (r#""+49 30""#, "'+49 30"),
            (r#""-5""#, "-5"),
            (r#""-x""#, "'-x"),
            (r#""@SUM(A1)""#, "'@SUM(A1)"),
            (r#""\t=1""#, "'\t=1"),
            (r#""\r=1""#, "'\r=1"),
            (r#""\n=1""#, "'\n=1"),
            (r#""\uff1d1+1""#, "'\u{ff1d}1+1"),
            (r#""-inf""#, "'-inf"),
            (r#"" =1""#, " =1"),
        ] {
            assert_eq!(cell(&parse(answer).unwrap()), expected, "{answer}");
        }
    }
}
