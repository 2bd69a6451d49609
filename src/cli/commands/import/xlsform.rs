//! XLSForms: workbooks with the sheets `survey`, `choices` and `settings`.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use crate::cli::commands::import::draft::{Draft, Members, Question, Text};
use crate::cli::commands::import::expression::{number_of, regex};
use crate::cli::input::rows::Sheet;
use crate::domain::json::{Object, Value};

/// Other spellings of types.
const SPELLINGS: [(&str, &str); 8] = [
    ("select one from", "select_one"),
    ("select one", "select_one"),
    ("select all that apply from", "select_multiple"),
    ("select multiple from", "select_multiple"),
    ("select multiple", "select_multiple"),
    ("add select one prompt using", "select_one"),
    ("begin ", "begin_"),
    ("end ", "end_"),
];

struct Import {
    draft: Draft,
    /// The options of each list.
    lists: HashMap<String, Vec<(String, Text)>>,
}

/// The language of the texts that are taken, and those of the others.
#[derive(Default)]
struct Languages {
    own: Text,
    others: BTreeSet<String>,
}

pub(super) fn convert(sheets: &[Sheet], name: &str) -> Draft {
    let mut languages = Languages::default();
    let settings = records(sheets, "settings", &mut languages);
    let settings =
        Members::new(settings.first().map_or(&Value::Null, |(_, row)| row), "version path form_id");
    languages.own = settings.text("default_language");
    let survey = records(sheets, "survey", &mut languages);
    let choices = records(sheets, "choices", &mut languages);
    let title = settings.text("form_title").or_else(|| settings.text("title"));
    let mut import = Import { draft: Draft::new(title, name, "${"), lists: HashMap::new() };
    // `English (en)`
    let tag = languages.own.unwrap_or_default();
    let tag = tag.rsplit('(').next().unwrap_or_default().trim_end_matches(')').to_owned();
    import.draft.set(&["settings", "language"], Some(tag).filter(|tag| matches!(tag.len(), 2 | 3)));
    let is_paged = settings.text("style").is_some_and(|style| style == "pages");
    import.draft.set(&["settings", "layout"], is_paged.then(|| "steps".to_owned()));
    for (_, choice) in &choices {
        let choice = Members::new(choice, "");
        let list = choice.text("list_name").or_else(|| choice.text("list name")).unwrap_or_default();
        let value = choice.text("name").or_else(|| choice.text("value"));
        import.lists.entry(list).or_default().extend(value.map(|value| (value, choice.text("label"))));
    }
    for (number, row) in &survey {
        import.add(*number, &Members::new(row, "note name type"));
    }
    for language in languages.others {
        import.draft.lose("the form", format!("texts in `{language}` left out: a form has one language"));
    }
    import.draft.lose_unread("sheet settings", &[&settings]);
    import.draft
}

/// Returns the rows of a sheet with their numbers, as objects by column; texts in one language.
fn records(sheets: &[Sheet], name: &str, languages: &mut Languages) -> Vec<(usize, Value)> {
    let rows = sheets.iter().find(|(sheet, _)| sheet.trim().eq_ignore_ascii_case(name)).map(|(_, rows)| rows);
    let Some(((_, header), rows)) = rows.and_then(|rows| rows.split_first()) else { return Vec::new() };
    let has_plain = header.iter().any(|column| column.trim().eq_ignore_ascii_case("label"));
    let mut column = |name: &String| {
        let name =
            name.trim().trim_start_matches("bind:").trim_start_matches(':').trim_start_matches("media::");
        let Some((name, language)) = name.split_once("::") else { return name.to_lowercase() };
        let own =
            languages.own.get_or_insert_with(|| if has_plain { "default" } else { language }.to_owned());
        if own != language {
            languages.others.insert(language.to_owned());
            return String::new();
        }
        name.to_lowercase()
    };
    let columns: Vec<_> = header.iter().map(&mut column).collect();
    let record = |(number, cells): &(usize, Vec<String>)| {
        let mut row = Object::new();
        for (name, cell) in columns.iter().zip(cells) {
            let is_set = !name.is_empty() && !matches!(cell.trim(), "" | "NO_LABEL");
            if is_set && row.iter().all(|(known, _)| known != name) {
                row.push((name.clone(), cell.trim().into()));
            }
        }
        (*number, Value::Object(row))
    };
    rows.iter().map(record).collect()
}

impl Import {
    fn add(&mut self, number: usize, row: &Members<'_>) {
        let Some(written) = row.text("type") else { return };
        let spelling = SPELLINGS.iter().find(|(other, _)| written.starts_with(other));
        let kind =
            spelling.map_or(written.clone(), |(other, usual)| usual.to_string() + &written[other.len()..]);
        let mut words = kind.split_whitespace();
        let (kind, list) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let name = row.text("name").unwrap_or_default();
        let place = format!("row {number} \"{name}\" ({written})");
        let (label, hint) = (row.text("label"), row.text("hint"));
        let look = row.text("appearance").unwrap_or_default();
        let own = match kind {
            "begin_group" | "begin_repeat" => {
                let condition = self.draft.condition(&place, row, "relevant");
                self.draft.begin_group(&place, label, hint, condition);
                if kind == "begin_repeat" {
                    self.draft.lose(&place, "not repeated, asked once");
                }
                return self.draft.lose_unread(&place, &[row]);
            }
            "end_group" | "end_repeat" => return self.draft.end_group(),
            "text" | "string" | "hidden" if kind == "hidden" || look == "hidden" => "hidden",
            "text" | "string" if look == "multiline" => "long_text",
            "text" | "string" | "barcode" => "short_text",
            "integer" | "int" | "decimal" | "range" => "number",
            "note" => "statement",
            "date" | "time" | "email" | "url" => kind,
            "datetime" | "dateTime" => "datetime",
            "tel" | "phone" => "phone",
            "acknowledge" | "trigger" => "consent",
            "select_one" => "single_choice",
            "select_multiple" => "multiple_choice",
            "rank" => "ranking",
            _ => return self.draft.lose(&place, "not supported, left out"),
        };
        let mut question = Question::new(&place, own, label);
        question.set("description", hint);
        question.show_if = self.draft.condition(&place, row, "relevant");
        question.set("integer", kind.starts_with("int").then_some(true));
        question.set("display", (own == "single_choice" && look.contains("minimal")).then_some("dropdown"));
        question.set("allow_other", words.any(|word| word == "or_other").then_some(true));
        if let Some(options) = self.lists.get(list).filter(|_| !list.is_empty()) {
            question.set_options("options", options.clone());
        }
        if own == "hidden" {
            question.copy(row, "default");
        }
        match row.text("required").as_deref() {
            Some("yes" | "true" | "true()") => question.set("required", Some(true)),
            None | Some("no" | "false" | "false()") => {}
            Some(_) => {
                let condition = self.draft.condition(&place, row, "required").members();
                question.set("required_if", Some(Value::Object(condition)));
            }
        }
        if let Some(constraint) = row.text("constraint").filter(|constraint| constraint != "true()") {
            self.constrain(&place, &mut question, &constraint, row);
        }
        self.draft.push(question, &name);
        self.draft.lose_unread(&place, &[row]);
    }

    /// Converts a constraint, such as `. >= 0 and . <= 130`, to settings.
    fn constrain(&mut self, place: &str, question: &mut Question, constraint: &str, row: &Members<'_>) {
        static BOUND: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"^(\.|string-length\(\s*\.\s*\))\s*([<>]=?)\s*(-?\d+(?:\.\d+)?|today\(\)|now\(\))$")
        });
        static PATTERN: LazyLock<Regex> =
            LazyLock::new(|| regex(r#"^regex\(\s*\.\s*,\s*(?:'([^']*)'|"([^"]*)")\s*\)$"#));
        for part in constraint.split(" and ") {
            let bound = BOUND.captures(part.trim()).and_then(|found| {
                let (is_length, is_min) = (&found[1] != ".", found[2].starts_with('>'));
                let name = ["max", "min", "max_length", "min_length"]
                    [usize::from(is_length) * 2 + usize::from(is_min)];
                let step = match &found[2] {
                    ">" => 1,
                    "<" => -1,
                    _ => 0,
                };
                let value = match number_of(&found[3]) {
                    None if step == 0 => "today".into(),
                    None => format!("today{step:+}d").into(),
                    Some(value) if step == 0 => value,
                    // Between two decimals there are others.
                    Some(value) if is_length || question.is_integer() => {
                        (value.as_number()?.integer()? + step).into()
                    }
                    Some(_) => return None,
                };
                Some((name, value))
            });
            let pattern = PATTERN.captures(part.trim()).map(|found| found.get(1).or(found.get(2)));
            match (bound, pattern.flatten()) {
                (Some((name, value)), _) => question.set(name, Some(value)),
                (_, Some(pattern)) => {
                    question.set("pattern", Some(pattern.as_str()));
                    question.copy(row, "constraint_message=pattern_message");
                }
                _ => self.draft.lose(place, format!("`constraint` ({part}) left out")),
            }
        }
    }
}
