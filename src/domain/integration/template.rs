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
pub(super) fn check(source: &str) -> Result<(), String> {
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
pub(super) fn names(source: &str) -> BTreeSet<String> {
    let environment = environment();
    let template = environment.template_from_str(source);
    template.map(|template| template.undeclared_variables(true).into_iter().collect()).unwrap_or_default()
}

/// Renders a valid template with `context`. Names that are not known are empty.
pub(super) fn render(source: &str, context: &Value) -> Result<String, String> {
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
/// can be parsed.
fn refuse_unsupported(source: &str) -> Result<(), String> {
    let (mut before, mut in_tag, mut depth) = (None, 0, 0_usize);
    for (place, token) in tokenize(source, false, Default::default()).enumerate() {
        let (token, span) = token.map_err(|error| describe(&error))?;
        in_tag = if matches!(token, Token::VariableStart | Token::BlockStart) { 0 } else { in_tag + 1 };
        if in_tag > MAX_TAG_TOKENS {
            return Err(format!(
                "an expression has at most {MAX_TAG_TOKENS} parts (line {})",
                span.start_line
            ));
        }
        if matches!(before, Some(Token::BlockStart)) {
            depth = match token {
                Token::Ident("if" | "elif" | "for") => depth + 1,
                Token::Ident("endif" | "endfor") => depth.saturating_sub(1),
                _ => depth,
            };
        }
        if depth > MAX_DEPTH {
            return Err(format!(
                "it has more than {MAX_DEPTH} blocks in one another (line {})",
                span.start_line
            ));
        } else if place > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} parts (line {})", span.start_line));
        }
        let refused = match &token {
            Token::Ident(word) if matches!(before, Some(Token::BlockStart)) && !BLOCKS.contains(word) => {
                Some(format!("{{% {word} %}}"))
            }
            Token::Ident(word) if matches!(before, Some(Token::Pipe)) && !FILTERS.contains(word) => {
                Some(format!("| {word}"))
            }
            Token::Ident(word @ ("recursive" | "is")) => Some((*word).to_owned()),
            Token::Plus => Some("+".to_owned()),
            Token::Mul => Some("*".to_owned()),
            Token::Pow => Some("**".to_owned()),
            Token::Tilde => Some("~".to_owned()),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(format!("`{refused}` is not supported (line {})", span.start_line));
        }
        before = Some(token);
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

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::{check, names, render};

    #[test]
    fn templates_have_values_conditions_loops_and_a_few_filters() {
        let fields = vec![context! { title => "Name", text => "<Ann>" }, context! { title => "Age" }];
        let context = context! { form => context! { title => "Survey & more" }, fields, answers => context! { q1 => "x" } };
        for (source, expected) in [
            ("New: {{ form.title }}", "New: Survey & more"),
            ("{{ answers.q1 | upper }}{{ answers.q9 }}{{ form.none.none | default('-') }}", "X-"),
            (
                "{% for f in fields %}{{ f.title }}: {{ f.text | default('-') }}\n{% endfor %}",
                "Name: <Ann>\nAge: -\n",
            ),
            ("{% if answers.q1 == 'x' %}{{ fields | length }}{% else %}no{% endif %}", "2"),
            ("C++ ~ 2*3", "C++ ~ 2*3"),
        ] {
            assert_eq!(check(source), Ok(()), "{source}");
            assert_eq!(render(source, &context).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn what_could_make_a_text_grow_is_refused_and_so_is_bad_syntax() {
        for (source, expected) in [
            ("{% set a = 'x' %}", "`{% set %}` is not supported (line 1)"),
            ("a\n{% with a = b %}{% endwith %}", "`{% with %}` is not supported (line 2)"),
            ("{% include 'x' %}", "`{% include %}` is not supported (line 1)"),
            ("{% macro a() %}{% endmacro %}", "`{% macro %}` is not supported (line 1)"),
            ("{% for a in b recursive %}{% endfor %}", "`recursive` is not supported (line 1)"),
            ("{{ a ~ a }}", "`~` is not supported (line 1)"),
            ("{{ 'a' * 9999 }}", "`*` is not supported (line 1)"),
            ("{{ a + a }}", "`+` is not supported (line 1)"),
            ("{{ a | join(b) }}", "`| join` is not supported (line 1)"),
            ("{% if a is defined %}{% endif %}", "`is` is not supported (line 1)"),
            ("{{ form.title", "unexpected end of input, expected end of variable block (line 1)"),
            ("{% if a %}", "unexpected end of input, expected end of block (line 1)"),
        ] {
            let found = check(source).unwrap_err();
            assert!(found.starts_with(expected), "{source}: {found}");
        }
    }

    #[test]
    fn what_is_too_deep_for_the_stack_is_refused() {
        let many = |text: &str, count: usize| text.repeat(count);
        for source in [
            format!("{{{{ {}1 }}}}", many("-", 8_000)),
            format!("{{{{ 1{} }}}}", many("-1", 8_000)),
            format!("{{{{ {}1 }}}}", many("not ", 4_900)),
            format!("{{{{ a{} }}}}", many(".a", 9_000)),
            format!("{{% if a %}}{}{{% endif %}}", many("{% elif a %}", 1_600)),
            format!("{}{}", many("{% if a %}", 1_000), many("{% endif %}", 1_000)),
        ] {
            let problem = check(&source).unwrap_err();
            assert!(
                problem.contains(" parts (line 1)") || problem.contains("more than 40 blocks"),
                "{problem}"
            );
        }
        let deep = format!("{}{}", many("{% if a %}", 40), many("{% endif %}", 40));
        let wide = format!("{{{{ {}1 }}}}", many("-", 98));
        let long = format!("{{% if a %}}{}{{% endif %}}", many("{% elif a %}", 39));
        for source in [deep, wide, long] {
            let checked = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(move || check(&source).map(|()| render(&source, &context! {})));
            assert!(checked.unwrap().join().is_ok());
        }
    }

    #[test]
    fn the_names_in_a_template_are_found() {
        let source = "{{ form.title }}{% for f in fields %}{{ f.text }}{{ loop.index }}{% endfor %}{{ answers.q1 | upper }}";
        assert_eq!(names(source).into_iter().collect::<Vec<_>>(), ["answers.q1", "fields", "form.title"]);
    }

    #[test]
    fn rendering_takes_limited_steps_and_space() {
        let many = vec!["x".repeat(60_000); 10];
        let context = context! { many };
        let nested = "{% for a in many %}".repeat(8) + "." + &"{% endfor %}".repeat(8);
        assert!(render(&nested, &context).is_err());
        assert!(render("{% for a in many %}{{ a }}{% endfor %}", &context).is_err());
        assert!(render("{{ [many, many] | lower }}", &context).is_err());
    }
}
