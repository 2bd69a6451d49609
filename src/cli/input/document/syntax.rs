//! Explains YAML syntax errors. The parser's own messages name internal states of its grammar.

const QUOTE: &str = "put the text in quotes";

/// Parts of the parser's messages, with their explanations and help.
const MEANINGS: [(&str, &str, Option<&str>); 12] = [
    ("expected ',' or ']'", "expected `,` or `]`", Some("a list that begins with `[` ends with `]`")),
    ("expected ',' or '}'", "expected `,` or `}`", Some("an object that begins with `{` ends with `}`")),
    (
        "mapping values are not allowed",
        "`:` is not expected here",
        Some("put text that has a `:` in quotes, and fields on lines of their own"),
    ),
    ("unexpected end of stream", "expected a closing quote before the end of the file", None),
    ("unknown anchor", "unknown anchor", Some("put text that begins with `*` in quotes")),
    ("expected '-' indicator", "expected `- ` and the next item of the list", None),
    (
        "expected key",
        "expected a field, `name: value`, at the indentation of those around it",
        Some("align it with the other fields; quote the whole text if it contains quotes"),
    ),
    ("expected ':'", "expected `:` after the name of a field", None),
    ("unknown escape character", "unknown escape in double quotes", Some("write a backslash as `\\\\`")),
    ("alphabetic or numeric character", "expected a name after `&` or `*`", Some(QUOTE)),
    ("control characters", "control characters are not allowed", None),
    ("invalid UTF-8", "not valid UTF-8", None),
];

/// Returns an explanation and help for the parser's message `text`; `next` is the character at which it stopped.
pub(super) fn explain(text: &str, next: Option<char>) -> (String, Option<&'static str>) {
    match next {
        Some('\t') => ("a tab is not allowed here: YAML is indented with spaces".to_owned(), None),
        Some(next) if text.contains("cannot start any token") => {
            (format!("text cannot begin with `{next}`"), Some(QUOTE))
        }
        _ => {
            let row = MEANINGS.iter().find(|(part, ..)| text.contains(part));
            row.map_or(("not valid YAML".to_owned(), None), |(_, message, help)| {
                ((*message).to_owned(), *help)
            })
        }
    }
}
