//! The topics of `forms help`: a text each, with a table of names and meanings.

use serde_json::{Value, json};

use crate::cli::connection::session::Session;
use crate::cli::environment::VARIABLES;
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::table::Table;
use crate::cli::output::{Format, value_of, wrap};
use crate::domain::integration::IntegrationType;
use crate::domain::integration::spec::{IntegrationSpec, Member, Need};
use crate::domain::question::QuestionKind;

/// A help page that is not about a command.
#[derive(Debug)]
pub struct Topic {
    /// Name used with `forms help`.
    pub name: &'static str,
    pub title: &'static str,
    /// The page, with `{rows}` in place of the table.
    text: &'static str,
    /// Member of the JSON page that has the rows.
    key: &'static str,
    /// Columns of the table, the one with the names first; none without a table.
    columns: &'static [&'static str],
    rows: fn() -> Vec<Value>,
}

/// Columns of the table of types of integrations.
const INTEGRATION: &[&str] = &["type", "about", "members", "set_up", "limits", "repeats"];

pub const TOPICS: [Topic; 5] = [
    Topic {
        name: "environment",
        title: "Environment variables",
        text: include_str!("environment.txt"),
        key: "variables",
        columns: &["name", "meaning"],
        rows: || VARIABLES.map(|(name, meaning)| json!({"name": name, "meaning": meaning})).into(),
    },
    Topic {
        name: "exit-codes",
        title: "Exit codes",
        text: include_str!("exit-codes.txt"),
        key: "exit_codes",
        columns: &["code", "name", "meaning"],
        rows: || Exit::ALL.map(exit_code).into(),
    },
    Topic {
        name: "formatting",
        title: "Output formats",
        text: include_str!("formatting.txt"),
        key: "text",
        columns: &[],
        rows: Vec::new,
    },
    Topic {
        name: "integrations",
        title: "Types of integrations",
        text: include_str!("integrations.txt"),
        key: "integrations",
        columns: INTEGRATION,
        rows: || IntegrationType::ALL.map(integration).into(),
    },
    Topic {
        name: "questions",
        title: "Types of questions",
        text: include_str!("questions.txt"),
        key: "questions",
        columns: &["type", "answer", "example", "settings"],
        rows: || QuestionKind::NAMES.into_iter().filter_map(question).collect(),
    },
];

impl Topic {
    pub fn page(&self) -> String {
        self.text.replace("{rows}", &definitions(&(self.rows)(), self.columns))
    }

    pub(super) fn show(&self, session: &Session) -> Result<(), CliError> {
        if self.columns.is_empty() {
            return session.output.object(&json!({self.key: self.text}), || self.page());
        }
        show_rows(session, self.key, &(self.rows)(), self.columns, || self.page())
    }
}

fn exit_code((exit, name, meaning): (Exit, &str, &str)) -> Value {
    json!({"code": exit.code(), "name": name, "meaning": meaning})
}

fn question(name: &'static str) -> Option<Value> {
    let kind = QuestionKind::example(name)?;
    let rules = kind.rules();
    let (answer, settings) = (rules.expects(), QuestionKind::settings(name));
    Some(json!({"type": name, "answer": answer, "example": rules.example(), "settings": settings}))
}

fn integration(integration_type: IntegrationType) -> Value {
    let IntegrationSpec { about, members, set_up, limits, repeats, source, .. } = *integration_type.spec();
    let members: Vec<_> = members.iter().map(member).collect();
    json!({
        "type": integration_type.name(), "about": about, "members": members, "set_up": set_up,
        "limits": limits, "repeats": repeats, "source": source,
    })
}

fn member(member: &Member) -> Value {
    let default: Option<Value> = member.default().and_then(|text| serde_json::from_str(text).ok());
    let (required, secret) = (member.need == Need::Required, member.is_secret());
    json!({"name": member.name, "about": member.about, "required": required, "secret": secret, "default": default})
}

/// Prints what the topic `integrations` has on one type.
pub(super) fn show_integration(integration_type: IntegrationType, session: &Session) -> Result<(), CliError> {
    let rows = [integration(integration_type)];
    show_rows(session, "integrations", &rows, INTEGRATION, || definitions(&rows, INTEGRATION))
}

/// Prints a table: as `text`, as CSV, or as an object whose member `key` has the rows.
pub(in crate::cli::commands) fn show_rows(
    session: &Session,
    key: &str,
    rows: &[Value],
    columns: &[&str],
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    let mut selected = session.output.columns.clone();
    if session.output.format == Format::Csv && selected.is_empty() {
        selected = columns.iter().map(ToString::to_string).collect();
    }
    if selected.is_empty() {
        return session.output.object(&json!({key: rows}), text);
    }
    let rows: Result<Vec<_>, _> = rows.iter().map(value_of).collect();
    session.output.rows(&Table::of_objects(&rows?, &selected))
}

/// Column at which the meaning of a name begins.
const MEANING: usize = 24;

/// Returns rows as names with their meanings beside them, in 80 columns.
pub(in crate::cli::commands) fn definitions(rows: &[Value], columns: &[&str]) -> String {
    let Some((name, others)) = columns.split_first() else { return String::new() };
    let definition = |row: &Value| {
        let name = format!("  {}", display(&row[name]));
        // The meaning of an exit code begins with its name.
        let cells = others.iter().filter(|column| **column != "name").map(|column| match &row[column] {
            // With quotes and escapes, as in a file.
            example if *column == "example" && !example.is_null() => (*column, example.to_string()),
            value => (*column, display(value)),
        });
        let texts: Vec<_> = cells.filter(|(_, text)| !text.is_empty()).map(labelled).collect();
        let meaning = wrap(&texts.join("\n"), 80 - MEANING).replace('\n', &format!("\n{:MEANING$}", ""));
        let separator = if name.len() < MEANING { "" } else { "\n" };
        let width = if separator.is_empty() { MEANING - name.len() } else { MEANING };
        format!("{name}{separator}{:width$}{meaning}\n", "")
    };
    rows.iter().map(definition).collect()
}

/// `limits: 4,096 characters`, or the text alone if its column describes the name.
fn labelled((column, text): (&str, String)) -> String {
    match column {
        "meaning" | "about" | "answer" | "members" => text,
        column => format!("{}: {text}", column.replace('_', "-")),
    }
}

/// Returns a cell as text: a list separated by commas, the members of an integration on lines of their own.
fn display(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let separator = if items.iter().all(Value::is_string) { ", " } else { "\n" };
            items.iter().map(display).collect::<Vec<_>>().join(separator)
        }
        Value::Object(member) => {
            let default = Some(display(&member["default"])).filter(|default| !default.is_empty());
            let notes =
                ["required", "secret"].into_iter().filter(|note| member[*note] == true).map(str::to_owned);
            let notes: Vec<_> = notes.chain(default.map(|default| format!("default: {default}"))).collect();
            let about = display(&member["about"]);
            let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
            format!("{}: {}{notes}", display(&member["name"]), about.trim_end_matches('.'))
        }
        value => value.to_string(),
    }
}
