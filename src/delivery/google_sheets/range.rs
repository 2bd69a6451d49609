//! Ranges in A1 notation (<https://developers.google.com/workspace/sheets/api/guides/concepts#cell>).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but unreserved characters (RFC 3986 §2.3), as Google's own clients do.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the range `cells` of the tab `sheet`, or of the first one, as a part of a path.
pub(super) fn encode(sheet: Option<&str>, cells: &str) -> String {
    let range = match sheet {
        Some(name) => format!("'{}'!{cells}", name.replace('\'', "''")),
        None => cells.to_owned(),
    };
    utf8_percent_encode(&range, ENCODED).to_string()
}

/// Returns the name of a column: `A` for 0, `Z` for 25, `AA` for 26.
pub(super) fn column(place: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(place % 26).unwrap_or(0));
    let before = if place < 26 { String::new() } else { column(place / 26 - 1) };
    format!("{before}{letter}")
}

#[cfg(test)]
mod tests {
    use super::{column, encode};

    #[test]
    fn columns_are_letters() {
        let names = [0, 1, 25, 26, 27, 51, 52, 701, 702, 18_277].map(column);
        assert_eq!(names, ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA", "ZZZ"]);
    }

    #[test]
    fn names_of_tabs_are_quoted() {
        assert_eq!(encode(None, "A1:C1"), "A1%3AC1");
        assert_eq!(encode(Some("It's/1"), "A:A"), "%27It%27%27s%2F1%27%21A%3AA");
    }
}
