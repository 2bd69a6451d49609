//! How the fields of a page become answers.

use std::collections::HashSet;

use crate::clock::Timestamp;
use crate::domain::form::Version;
use crate::domain::json::{Value, parse};
use crate::domain::language::Language;
use crate::domain::question::Question;
use crate::domain::question::control::{Control, LineKind};
use crate::domain::question::options::OptionList;
use crate::page::fields::Fields;

/// Maximum characters of a hidden answer from the address of a page.
const MAX_HIDDEN: usize = 500;

/// Returns the name of the field for free text instead of an option.
pub(crate) fn other_field(question: &str) -> String {
    format!("{question}.other")
}

/// Returns the name of the field for a row of a matrix.
pub(crate) fn row_field(question: &str, row: &str) -> String {
    format!("{question}.{row}")
}

/// Returns the name of the field for the UTC offset of a date and time.
fn offset_field(question: &str) -> String {
    format!("{question}.offset")
}

/// Returns the answers in `fields`, in the order of the questions: those to questions that are asked, and those whose key is
/// not the id of a question. Questions without an answer are left out.
pub fn to_answers(version: &Version, fields: &Fields, language: Language) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    let mut names = HashSet::new();
    for question in &version.questions {
        let Some(id) = question.id.as_deref() else { continue };
        let control = question.kind.rules().control();
        names.extend(field_names(id, &control));
        answers.extend(answer(id, &control, fields, language).map(|answer| (id.to_owned(), answer)));
    }
    // A page shows questions that may turn out not to be asked.
    let shown = version.questions.iter().zip(version.shown(&answers));
    let hidden: HashSet<_> =
        shown.filter(|(_, is_shown)| !is_shown).filter_map(|(question, _)| question.id.as_deref()).collect();
    answers.retain(|(id, _)| !hidden.contains(id.as_str()));
    let unknown = fields.iter().filter(|(name, _)| !names.contains(*name) && !is_ignored(name));
    answers.extend(unknown.filter_map(|(name, values)| {
        let text = values.iter().find(|value| !value.trim().is_empty())?;
        Some((name.to_owned(), text.as_str().into()))
    }));
    answers
}

/// Whether `name` is a field of the page itself, or the button of another site's form.
fn is_ignored(name: &str) -> bool {
    name.starts_with('_') || matches!(name, "submit" | "button")
}

fn field_names(id: &str, control: &Control<'_>) -> Vec<String> {
    let own = id.to_owned();
    match control {
        Control::Matrix { rows, .. } => {
            rows.labelled().map(|(row, _)| row_field(id, row)).chain([own]).collect()
        }
        Control::One { .. } | Control::Several { .. } => vec![own, other_field(id)],
        Control::Line(line) if line.kind == LineKind::DateTime => vec![own, offset_field(id)],
        _ => vec![own],
    }
}

/// Returns the answer to the question `id` in `fields`, if there is one. What cannot be converted is a text, for the rules of
/// the question to refuse.
fn answer(id: &str, control: &Control<'_>, fields: &Fields, language: Language) -> Option<Value> {
    let text = Some(fields.value(id)).filter(|text| !text.trim().is_empty());
    match control {
        Control::Line(line) => {
            let text = text?;
            Some(match line.kind {
                LineKind::Text => text.into(),
                LineKind::Email | LineKind::Phone | LineKind::Date | LineKind::Time => text.trim().into(),
                LineKind::Url => Value::String(with_scheme(text.trim())),
                LineKind::Number | LineKind::WholeNumber => number(text, language),
                LineKind::DateTime => Value::String(with_offset(text.trim(), fields.value(offset_field(id)))),
            })
        }
        Control::Lines { .. } | Control::Hidden { .. } => Some(text?.into()),
        Control::Scale { .. } => Some(number(text?, Language::English)),
        Control::YesNo(_) | Control::Consent(_) => Some(match text? {
            // A checkbox without a value of its own sends `on`.
            "true" | "on" => true.into(),
            "false" => false.into(),
            other => other.into(),
        }),
        Control::One { takes_other, .. } => {
            text.map(Value::from).or_else(|| other(id, fields).filter(|_| *takes_other))
        }
        Control::Several { takes_other, .. } => {
            let other = other(id, fields).filter(|_| *takes_other);
            list(fields.all(id).iter().map(String::as_str), other)
        }
        Control::Ranking(_) => list(fields.all(id).iter().map(String::as_str), None),
        Control::Matrix { rows, takes_several, .. } => matrix(id, rows, *takes_several, fields),
        Control::Statement | Control::Page => None,
    }
}

/// Returns the free text instead of an option, `{"other":"text"}`.
fn other(id: &str, fields: &Fields) -> Option<Value> {
    let name = other_field(id);
    let text = Some(fields.value(&name)).filter(|text| !text.trim().is_empty())?;
    Some(Value::Object(vec![("other".to_owned(), text.into())]))
}

fn list<'a>(values: impl Iterator<Item = &'a str>, other: Option<Value>) -> Option<Value> {
    let chosen = values.filter(|value| !value.is_empty()).map(Value::from);
    let items: Vec<_> = chosen.chain(other).collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

fn matrix(id: &str, rows: &OptionList, takes_several: bool, fields: &Fields) -> Option<Value> {
    let cell = |(row, _): (&str, &str)| {
        let name = row_field(id, row);
        let chosen = list(fields.all(&name).iter().map(String::as_str), None)?;
        let value = if takes_several { chosen } else { fields.value(&name).into() };
        Some((row.to_owned(), value))
    };
    let cells: Vec<_> = rows.labelled().filter_map(cell).collect();
    (!cells.is_empty()).then_some(Value::Object(cells))
}

/// Adds `https://` to an address that is written without its scheme.
fn with_scheme(text: &str) -> String {
    let has_scheme = text.split(['/', '?', '#']).next().is_some_and(|start| start.contains(':'));
    if has_scheme || text.contains('@') || !text.contains('.') {
        text.to_owned()
    } else {
        format!("https://{text}")
    }
}

/// Completes the value of a field `datetime-local` with its seconds and its offset from UTC.
fn with_offset(text: &str, offset: &str) -> String {
    let seconds = if text.len() == "2027-03-13T09:30".len() { ":00" } else { "" };
    let is_offset = offset.len() == 6 && offset.starts_with(['+', '-']) && offset.is_ascii();
    format!("{text}{seconds}{}", if is_offset { offset } else { "Z" })
}

/// Converts a number as people of the language write it: `1.000,5` or `1,000.5`. What is not a number is a text.
fn number(text: &str, language: Language) -> Value {
    let plain = plain_number(text, language).and_then(|plain| parse(&plain).ok());
    plain.filter(|value| matches!(value, Value::Number(_))).unwrap_or_else(|| text.trim().into())
}

/// Writes a number without separators of thousands, with a point before its decimals; `None` unless it is clearly one number.
fn plain_number(text: &str, language: Language) -> Option<String> {
    let text: String = text.trim().chars().map(ascii_digit).collect();
    let (sign, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let (whole, decimals) = split_decimals(digits, language);
    let groups: Vec<_> = whole.split(is_group_separator).collect();
    let separators: Vec<_> = whole.matches(is_group_separator).collect();
    let are_alike = separators.windows(2).all(|two| two[0] == two[1]);
    let are_thousands = groups.len() == 1
        || (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
    let whole = groups.concat();
    let is_numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = is_numeric(&whole) && decimals.is_none_or(|text| !text.is_empty() && is_numeric(text));
    if !are_alike || !are_thousands || !is_number || whole.is_empty() && decimals.is_none() {
        return None;
    }
    let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
    Some(decimals.map_or_else(|| format!("{sign}{whole}"), |decimals| format!("{sign}{whole}.{decimals}")))
}

/// Splits a number at its decimal sign: of two signs the last, of one sign the one that cannot separate thousands.
fn split_decimals(digits: &str, language: Language) -> (&str, Option<&str>) {
    let signs: Vec<_> = digits.match_indices(['.', ',', '\u{66b}']).collect();
    let group = if language.decimal_comma() { "." } else { "," };
    let decimal = match &signs[..] {
        [(at, sign)] => {
            let is_thousand = digits.len() - at == 4 && !digits.starts_with('0') && !digits[..*at].is_empty();
            let is_group = *sign == group && is_thousand && !digits[..*at].contains(is_group_separator);
            (!is_group).then_some(*at)
        }
        [others @ .., (at, last)] => others.iter().all(|(_, other)| other != last).then_some(*at),
        [] => None,
    };
    match decimal {
        Some(at) => (&digits[..at], Some(digits[at..].trim_start_matches(['.', ',', '\u{66b}']))),
        None => (digits, None),
    }
}

/// Whether people separate thousands by this character.
fn is_group_separator(character: char) -> bool {
    matches!(character, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '’' | '.' | ',' | '\u{66c}')
}

/// Converts Arabic, Persian and full-width digits.
fn ascii_digit(character: char) -> char {
    let zero = match character {
        '٠'..='٩' => '٠',
        '۰'..='۹' => '۰',
        '０'..='９' => '０',
        other => return other,
    };
    char::from_u32(u32::from('0') + u32::from(character) - u32::from(zero)).unwrap_or(character)
}

/// Returns the fields that the query of a page's address fills: valid answers by the ids of their questions, where an option
/// may be given by its label, and hidden ones by their names in the address.
pub fn prefill(version: &Version, query: &Fields, language: Language, now: Timestamp) -> Fields {
    let mut filled = Fields::default();
    for question in &version.questions {
        let Some(id) = question.id.as_deref() else { continue };
        let mut own = Fields::default();
        match question.kind.rules().control() {
            Control::Hidden { from_url } => {
                let value = from_url.map_or("", |name| query.value(name));
                own.add(id, &value.chars().take(MAX_HIDDEN).collect::<String>());
            }
            // Only the visitor can agree.
            Control::Consent(_) => {}
            control => {
                for name in field_names(id, &control) {
                    query.all(&name).iter().for_each(|value| own.add(&name, option_value(&control, value)));
                }
            }
        }
        if is_valid(question, id, &own, language, now) {
            own.iter().for_each(|(name, values)| values.iter().for_each(|value| filled.add(name, value)));
        }
    }
    filled
}

/// Returns the value of the option with the label `text`, or `text` itself.
fn option_value<'a>(control: &Control<'a>, text: &'a str) -> &'a str {
    let (Control::One { options, .. } | Control::Several { options, .. } | Control::Ranking(options)) =
        control
    else {
        return text;
    };
    let by_label = options.labelled().find(|(_, label)| *label == text).map(|(value, _)| value);
    if options.position(text).is_some() { text } else { by_label.unwrap_or(text) }
}

fn is_valid(question: &Question, id: &str, fields: &Fields, language: Language, now: Timestamp) -> bool {
    let rules = question.kind.rules();
    let answer = answer(id, &rules.control(), fields, language);
    answer.is_some_and(|answer| rules.check(&answer, Some(now), language.texts()).is_empty())
}
