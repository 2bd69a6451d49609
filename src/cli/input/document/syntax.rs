//! Explains YAML syntax errors. The parser's own messages name internal states of its grammar.

/// A description of an error, and what can be done about it.
pub(super) struct Meaning {
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

const QUOTE: &str = "put the text in quotes";

/// Errors of the parser by a part of their text, what they mean, and what helps.
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

/// Explains the parser's message `text`; `next` is the character at which it stopped.
pub(super) fn meaning(text: &str, next: Option<char>) -> Meaning {
    if let (true, Some(next)) = (text.contains("cannot start any token"), next) {
        return Meaning { message: format!("text cannot begin with `{next}`"), help: Some(QUOTE) };
    }
    let known = MEANINGS.iter().find(|(part, ..)| text.contains(part));
    let (_, message, help) = known.copied().unwrap_or(("", "not valid YAML", None));
    Meaning { message: message.to_owned(), help }
}
