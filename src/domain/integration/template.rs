//! Templates of titles, subjects and bodies: Jinja without whatever could make a text grow.
//!
//! They give plain text, which whoever uses it escapes.

use std::collections::BTreeSet;
use std::io;

use minijinja::machinery::{Token, tokenize};
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

/// Steps that rendering may take: a line for each of 500 answers takes some 10,000.
const FUEL: u64 = 50_000;

/// Maximum bytes of a rendered text.
const MAX_RENDERED: usize = 256 << 10;

/// Maximum parts, such as words and signs, of what stands between two braces: an expression is parsed by recursion, whose depth
/// the stack limits.
const MAX_TAG_TOKENS: usize = 100;

/// Maximum blocks in one another. Each `elif` counts, as it is parsed as a block in the one before.
const MAX_DEPTH: usize = 40;

/// Maximum parts of a template.
const MAX_TOKENS: usize = 2_000;

/// Words that begin a block. Those that keep a text under a name are refused: with them it could be doubled again and again.
const BLOCKS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Filters by name: none makes a long text of a list.
pub const FILTERS: [&str; 7] = ["default", "first", "last", "length", "lower", "trim", "upper"];

/// Explains why `source` is not a valid template.
pub fn check(source: &str) -> Result<(), String> {
    refuse_unsupported(source)?;
    let environment = environment();
    environment.template_from_str(source).map(drop).map_err(|error| describe(&error))
}

/// What templates can name beside answers, which are `answers.` and the id of a question.
pub(super) const NAMES: [&str; 12] = [
    "answers",
    "event",
    "event.at",
    "event.type",
    "fields",
    "form",
    "form.id",
    "form.slug",
    "form.title",
    "submission",
    "submission.id",
    "submission.submitted_at",
];

/// The names that a valid template uses, such as `form.title`.
pub fn names(source: &str) -> BTreeSet<String> {
    let environment = environment();
    let template = environment.template_from_str(source);
    template.map(|template| template.undeclared_variables(true).into_iter().collect()).unwrap_or_default()
}

/// Renders a valid template with `context`. Names that are not known are empty.
pub fn render(source: &str, context: &Value) -> Result<String, String> {
    let environment = environment();
    let template = environment.template_from_str(source).map_err(|error| describe(&error))?;
    let mut rendered = Limited(Vec::new());
    template.render_captured_to(context, &mut rendered).map_err(|error| describe(&error))?;
    Ok(String::from_utf8_lossy(&rendered.0).into_owned())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.add_filter("default", |value: Value, other: Option<Value>| {
        if is_blank(&value) { other.unwrap_or_else(|| Value::from("")) } else { value }
    });
    environment.add_filter("first", |value: Value| value.try_iter()?.next().ok_or_else(empty));
    environment.add_filter("last", |value: Value| value.try_iter()?.last().ok_or_else(empty));
    environment.add_filter("length", |value: Value| value.len().unwrap_or(0));
    environment.add_filter("lower", |value: Value| Ok(text_of(&value)?.to_lowercase()));
    environment.add_filter("trim", |value: Value| Ok(text_of(&value)?.trim().to_owned()));
    environment.add_filter("upper", |value: Value| Ok(text_of(&value)?.to_uppercase()));
    environment
}

/// Returns a single value as text. Lists are refused: one may have the same text many times.
fn text_of(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(String::new()),
        ValueKind::String | ValueKind::Number | ValueKind::Bool => Ok(value.to_string()),
        other => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("the filter expects a text, not a {other}")))
        }
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_undefined() || value.is_none() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn empty() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the list is empty")
}

/// Refuses unknown filters, what could build a text from others, so that the longest text is one of the context, and more than
/// can be parsed. Fuel counts what is written, but a list only once it is a text.
fn refuse_unsupported(source: &str) -> Result<(), String> {
    let (mut before, mut in_tag, mut depth) = (None, 0, 0_usize);
    for (place, token) in tokenize(source, false, Default::default()).enumerate() {
        let (token, span) = token.map_err(|error| describe(&error))?;
        in_tag = if matches!(token, Token::VariableStart | Token::BlockStart) { 0 } else { in_tag + 1 };
        depth = match (&before, &token) {
            (Some(Token::BlockStart), Token::Ident("if" | "elif" | "for")) => depth + 1,
            (Some(Token::BlockStart), Token::Ident("endif" | "endfor")) => depth.saturating_sub(1),
            _ => depth,
        };
        let unsupported = |what: &str| format!("`{what}` is not supported");
        let problem = match (&before, &token) {
            _ if in_tag > MAX_TAG_TOKENS => format!("an expression has at most {MAX_TAG_TOKENS} parts"),
            _ if depth > MAX_DEPTH => format!("it has more than {MAX_DEPTH} blocks in one another"),
            _ if place > MAX_TOKENS => format!("it has more than {MAX_TOKENS} parts"),
            (Some(Token::BlockStart), Token::Ident(word)) if !BLOCKS.contains(word) => {
                unsupported(&format!("{{% {word} %}}"))
            }
            (Some(Token::Pipe), Token::Ident(word)) if !FILTERS.contains(word) => {
                unsupported(&format!("| {word}"))
            }
            (_, Token::Ident(word @ ("recursive" | "is"))) => unsupported(word),
            (_, Token::Plus) => unsupported("+"),
            (_, Token::Mul) => unsupported("*"),
            (_, Token::Pow) => unsupported("**"),
            (_, Token::Tilde) => unsupported("~"),
            _ => {
                before = Some(token);
                continue;
            }
        };
        return Err(format!("{problem} (line {})", span.start_line));
    }
    Ok(())
}

/// Returns the error in one line, with its line in the template.
fn describe(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

/// A buffer that refuses more than [`MAX_RENDERED`] bytes.
struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RENDERED {
            return Err(io::Error::other("the text is too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
