//! The topics of `forms help`: a text each, with a table of names and meanings.

use serde_json::{Value, json};

use crate::cli::connection::session::Session;
use crate::cli::environment::VARIABLES;
use crate::cli::output::exit::{CliError, Exit};
use crate::cli::output::table::Table;
use crate::cli::output::{Format, value_of, wrap};
use crate::domain::integration::IntegrationType;
use crate::domain::integration::spec::{IntegrationSpec, Member, Need};
use crate::domain::language::ENGLISH;
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
    rows: fn() -> Vec<Row>,
}

/// A row of a table: as an object for programs, and as text for people.
type Row = (Value, String);

/// Columns of the table of types of integrations.
const INTEGRATION: &[&str] = &["type", "about", "members", "set_up", "limits", "repeats"];

pub const TOPICS: [Topic; 5] = [
    Topic {
        name: "environment",
        title: "Environment variables",
        text: include_str!("environment.txt"),
        key: "variables",
        columns: &["name", "meaning"],
        rows: || VARIABLES.map(variable).into(),
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
        let rows: String = (self.rows)().into_iter().map(|(_, text)| text).collect();
        self.text.replace("{rows}", &rows)
    }

    pub(super) fn show(&self, session: &Session) -> Result<(), CliError> {
        if self.columns.is_empty() {
            let page = || session.output.fit_page(&self.page());
            return session.output.object(&json!({self.key: self.text}), page);
        }
        let objects: Vec<_> = (self.rows)().into_iter().map(|(object, _)| object).collect();
        show_rows(session, self.key, &objects, self.columns, || session.output.fit_page(&self.page()))
    }
}

fn variable((name, meaning): (&str, &str)) -> Row {
    (json!({"name": name, "meaning": meaning}), definition(name, meaning))
}

fn exit_code((exit, name, meaning): (Exit, &str, &str)) -> Row {
    let code = exit.code();
    (json!({"code": code, "name": name, "meaning": meaning}), definition(&code.to_string(), meaning))
}

fn question(name: &'static str) -> Option<Row> {
    let kind = QuestionKind::example(name)?;
    let rules = kind.rules();
    let (answer, example, settings) =
        (rules.expects(ENGLISH), json!(rules.example()), QuestionKind::settings(name));
    let mut meaning = answer.clone();
    if !example.is_null() {
        // With quotes and escapes, as in a file.
        meaning += &format!("\nexample: {example}");
    }
    if !settings.is_empty() {
        meaning += &format!("\nsettings: {}", settings.join(", "));
    }
    let object = json!({"type": name, "answer": answer, "example": example, "settings": settings});
    Some((object, definition(name, &meaning)))
}

fn integration(integration_type: IntegrationType) -> Row {
    let IntegrationSpec { about, members, set_up, limits, repeats, source, .. } = *integration_type.spec();
    let (members, lines): (Vec<_>, String) = members.iter().map(member).unzip();
    let meaning = format!("{about}\n{lines}set-up: {set_up}\nlimits: {limits}\nrepeats: {repeats}");
    let name = integration_type.name();
    let object = json!({
        "type": name, "about": about, "members": members, "set_up": set_up,
        "limits": limits, "repeats": repeats, "source": source,
    });
    (object, definition(name, &meaning))
}

fn member(member: &Member) -> Row {
    let Member { name, about, .. } = *member;
    let default: Option<Value> = member.default().and_then(|text| serde_json::from_str(text).ok());
    let (required, secret) = (member.need == Need::Required, member.is_secret());
    let default_text = default.as_ref().map(|value| match value.as_str() {
        Some(text) => format!("default: {text}"),
        None => format!("default: {value}"),
    });
    let notes = [required.then_some("required"), secret.then_some("secret"), default_text.as_deref()];
    let notes = notes.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
    (
        json!({"name": name, "about": about, "required": required, "secret": secret, "default": default}),
        format!("{name}: {}{notes}\n", about.trim_end_matches('.')),
    )
}

/// Prints what the topic `integrations` has on one type.
pub(super) fn show_integration(integration_type: IntegrationType, session: &Session) -> Result<(), CliError> {
    let (object, text) = integration(integration_type);
    show_rows(session, "integrations", &[object], INTEGRATION, || text)
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

/// Returns a name with its meaning beside it, in 80 columns.
pub(in crate::cli::commands) fn definition(name: &str, meaning: &str) -> String {
    let meaning = wrap(meaning, 80 - MEANING).replace('\n', &format!("\n{:MEANING$}", ""));
    let name = format!("  {name}");
    match name.len() < MEANING {
        true => format!("{name:<MEANING$}{meaning}\n"),
        false => format!("{name}\n{:MEANING$}{meaning}\n", ""),
    }
}
