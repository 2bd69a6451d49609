//! Expressions of SurveyJS (`{a} = 'x' and {b} notempty`) and XLSForm (`${a} = 'x' or selected(${b}, 'y')`), without
//! parentheses.

use std::sync::LazyLock;

use regex::Regex;

use crate::cli::commands::import::logic::Logic;
use crate::domain::json::{self, Value};
use crate::domain::question::is_empty;

/// Returns the id and the type of the question that an expression calls by a name.
type Resolve<'a> = &'a dyn Fn(&str) -> Option<(String, String)>;

/// Compiles an expression that is known to be valid.
pub(super) fn regex(text: &str) -> Regex {
    Regex::new(text).expect("the expression is valid")
}

/// Converts an expression.
///
/// # Errors
/// With the reason why it cannot be said as a condition.
pub(super) fn read(text: &str, resolve: Resolve<'_>) -> Result<Logic, String> {
    static SELECTED: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\bselected\(\s*([^,()]+?)\s*,\s*([^()]+?)\s*\)"));
    if text.len() > 2_000 {
        return Err("it is too long".to_owned());
    }
    let text = text.replace("&&", " and ").replace("||", " or ");
    let text = SELECTED.replace_all(&text, "$1 contains $2");
    let both = |part: &str| {
        let tests = part.split(" and ").map(|part| test(part.trim(), resolve));
        Ok(Logic::all(tests.collect::<Result<Vec<_>, String>>()?))
    };
    Ok(Logic::any(text.split(" or ").map(both).collect::<Result<Vec<_>, String>>()?))
}

fn test(text: &str, resolve: Resolve<'_>) -> Result<Logic, String> {
    static TEST: LazyLock<Regex> = LazyLock::new(|| {
        let name = r"\$?\{\s*([^{}]+?)\s*\}|\.\.?/(?:[\w.-]+/)*([\w.-]+)";
        let operator = r"==|=|!=|<>|<=|<|>=|>|(?:not)?contains\b|anyof\b|allof\b|(?:not)?empty\b|$";
        regex(&format!(r"^(?:{name})\s*({operator})\s*(.*)$"))
    });
    if let Some(inner) = text.strip_prefix("not(").and_then(|rest| rest.strip_suffix(')')) {
        return Ok(test(inner.trim(), resolve)?.negate());
    }
    let Some(found) = TEST.captures(text) else {
        return match literal(text) {
            Ok(Value::Bool(flag)) => Ok(if flag { Logic::Always } else { Logic::Never }),
            _ => Err(format!("`{text}` is not supported")),
        };
    };
    let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
    let (operator, value) = match (&found[3], found[4].trim()) {
        ("", _) => ("=", true.into()),
        (operator, value) => (operator, literal(value)?),
    };
    let (id, kind) =
        resolve(name).ok_or_else(|| format!("`{name}` is not an earlier question that was kept"))?;
    if is_empty(&value) {
        let is_answered = matches!(operator, "!=" | "<>" | "notempty");
        return Ok(Logic::Test(id, "answered", is_answered.into()));
    }
    let is_list = matches!(kind.as_str(), "multiple_choice" | "ranking");
    let contains = if is_list || kind.ends_with("text") { "includes" } else { "eq" };
    let test = |operator, value| Ok::<_, String>(Logic::Test(id.clone(), operator, typed(&kind, value)?));
    let items = value.as_array().unwrap_or(std::slice::from_ref(&value)).iter();
    let each = items.map(|item| test(contains, item)).collect::<Result<Vec<_>, _>>();
    let is_ordered =
        matches!(kind.as_str(), "number" | "rating" | "opinion_scale" | "date" | "time" | "datetime");
    match operator {
        "<" | "<=" | ">" | ">=" if !is_ordered => Err(format!("answers of type {kind} have no order")),
        "=" | "==" | "!=" | "<>" if is_list => Err("it compares a whole list".to_owned()),
        "=" | "==" => test("eq", &value),
        "!=" | "<>" => test("ne", &value),
        "<" => test("lt", &value),
        "<=" => test("lte", &value),
        ">" => test("gt", &value),
        ">=" => test("gte", &value),
        "notcontains" => Ok(Logic::any(each?).negate()),
        "anyof" => each.map(Logic::any),
        _ => each.map(Logic::all),
    }
}

fn literal(text: &str) -> Result<Value, String> {
    let within = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    match (within('\'', '\'').or(within('"', '"')), within('[', ']'), text) {
        (Some(inner), ..) if !inner.contains(['\'', '"']) => Ok(inner.into()),
        (_, Some(items), _) if !items.contains('[') => {
            let items = items.split(',').map(|item| literal(item.trim()));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        (.., "") => Ok(Value::Null),
        (.., "true" | "true()" | "false" | "false()") => Ok(text.starts_with("true").into()),
        _ => number_of(text).ok_or_else(|| format!("`{text}` is not a fixed value")),
    }
}

pub(super) fn number_of(text: &str) -> Option<Value> {
    json::parse(text).ok().filter(|value| value.as_number().is_some())
}

/// Returns `value` as the answers to a question of the type `kind` have it.
///
/// # Errors
/// If no answer is such a value.
pub(super) fn typed(kind: &str, value: &Value) -> Result<Value, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match kind {
        _ if matches!(value, Value::Array(_) | Value::Object(_)) => Err("it compares a list".to_owned()),
        "number" | "rating" | "opinion_scale" => {
            number_of(&text).ok_or_else(|| format!("`{text}` is not a number"))
        }
        "boolean" | "consent" if matches!(text.as_str(), "true" | "false") => Ok((text == "true").into()),
        "boolean" | "consent" => Err(format!("`{text}` is neither true nor false")),
        _ => Ok(text.into()),
    }
}
