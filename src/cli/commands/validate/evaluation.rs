//! Evaluation of answers against a form, offline: which questions are asked or hidden, which answers are refused.

use serde::Serialize;

use crate::api::{Code, Problem};
use crate::cli::input::answer_args::AnswerArg;
use crate::cli::input::answers::{self, AnswerSources};
use crate::cli::input::document::{Document, Record};
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::CliError;
use crate::cli::output::table::{Cell, Table};
use crate::cli::output::{Format, Output};
use crate::clock::Timestamp;
use crate::domain::form::Version;
use crate::domain::form::definition::Definition;
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Columns of the result; `set` only if there are several sets of answers.
pub(super) const COLUMNS: [&str; 4] = ["set", "question", "state", "why"];

/// Result for one set of answers.
#[derive(Debug, Serialize)]
pub(super) struct Evaluation {
    file: String,
    /// Number of the set, from 1, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<usize>,
    /// Whether the form would accept the answers.
    valid: bool,
    questions: Vec<Row>,
    errors: Vec<Violation>,
    /// The errors with their locations in the file of answers.
    #[serde(skip)]
    diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Serialize)]
struct Row {
    question: String,
    /// `asked`, `hidden`, `dropped` or `refused`.
    state: &'static str,
    why: String,
}

impl Evaluation {
    /// Evaluates each of the `records`, with `args` replacing its answers.
    ///
    /// # Errors
    /// If the arguments for one question cannot be combined into an answer.
    pub(super) fn of_each(
        form: &Document,
        records: Vec<Record>,
        args: &[AnswerArg],
        now: Timestamp,
    ) -> Result<Vec<Self>, CliError> {
        let Some(Definition { questions, settings, .. }) = form.definition() else { return Ok(Vec::new()) };
        let (version, texts) = (Version::new(1, now, questions), settings.language().texts());
        let are_several = records.len() > 1;
        let evaluate = |(place, record): (usize, Record)| {
            let sources = AnswerSources { args: args.to_vec(), record };
            let answers = sources.answers(&version.questions)?;
            let violations =
                version.check(&answers, &Limits::default(), now, texts).err().unwrap_or_default();
            let (dropped, errors) = answers::split_dropped(violations, settings.unknown_answers());
            let mut questions = rows(&version, &answers, &errors);
            questions.extend(dropped.iter().map(|error| Row { state: "dropped", ..other(error) }));
            let set = are_several.then_some(place + 1);
            let diagnostics = errors.iter().map(|error| {
                let diagnostic = answers::answer_diagnostic(&version.questions, &answers, error.clone());
                let set = set.map(|set| format!("set {set}: ")).unwrap_or_default();
                Diagnostic { message: set + &diagnostic.message, ..diagnostic }
            });
            let diagnostics = sources.with_locations(diagnostics.collect());
            let (file, valid) = (form.file.clone(), errors.is_empty());
            Ok(Self { file, set, valid, questions, errors, diagnostics })
        };
        records.into_iter().enumerate().map(evaluate).collect()
    }
}

/// Returns a row for each answerable question, then one for each other error.
fn rows(version: &Version, answers: &[(String, Value)], errors: &[Violation]) -> Vec<Row> {
    let (mut rows, mut page_is_shown) = (Vec::new(), true);
    for (question, is_shown) in version.questions.iter().zip(version.shown(answers)) {
        if question.kind.begins_page() {
            page_is_shown = is_shown;
        }
        let Some(id) = question.id.as_ref().filter(|_| question.kind.rules().takes_answer()) else {
            continue;
        };
        let wrong: Vec<_> = errors.iter().filter(|error| error.question.as_ref() == Some(id)).collect();
        let (state, why) = match (&wrong[..], is_shown) {
            ([], true) => ("asked", answered(question, answers).to_owned()),
            ([], false) if page_is_shown => ("hidden", "its `show_if` does not hold".to_owned()),
            ([], false) => ("hidden", "the `show_if` of its page does not hold".to_owned()),
            (wrong, _) => (
                "refused",
                wrong.iter().map(|error| describe_violation(error)).collect::<Vec<_>>().join("; "),
            ),
        };
        rows.push(Row { question: id.clone(), state, why });
    }
    let is_listed =
        |error: &&Violation| rows.iter().any(|row| error.question.as_ref() == Some(&row.question));
    let others: Vec<_> = errors.iter().filter(|error| !is_listed(error)).map(other).collect();
    rows.into_iter().chain(others).collect()
}

fn answered(question: &Question, answers: &[(String, Value)]) -> &'static str {
    let rules = question.kind.rules();
    let sent = answers.iter().find(|(key, _)| question.id.as_ref() == Some(key)).map(|(_, value)| value);
    match sent.or(rules.default_answer()) {
        Some(answer) if rules.is_empty(answer) => "no answer",
        Some(_) if sent.is_some() => "answered",
        Some(_) => "answered by its default",
        None => "no answer",
    }
}

fn describe_violation(error: &Violation) -> String {
    format!("{}: {}", error.code, error.message)
}

/// Returns the row of an error that is not about an answerable question.
fn other(error: &Violation) -> Row {
    let why = describe_violation(error) + &answers::similar_id_hint(error);
    Row { question: answers::answer_key(error), state: "refused", why }
}

pub(super) fn show(output: &Output, evaluations: &[Evaluation]) -> Result<(), CliError> {
    if matches!(output.format, Format::Table | Format::Csv) {
        return output.rows(&table(evaluations).select(&output.columns));
    }
    if evaluations.len() > 1 {
        output.begin_batch();
    }
    evaluations.iter().try_for_each(|evaluation| output.object(evaluation, String::new))
}

/// Returns the report of the refused answers, if any.
pub(super) fn refusal(evaluations: &[Evaluation]) -> Option<Report> {
    let refused: Vec<_> = evaluations.iter().filter(|evaluation| !evaluation.valid).collect();
    let file = &refused.first()?.file;
    let summary = match evaluations.len() {
        1 => format!("{file}: the answers would be refused"),
        of => format!("{file}: {} of {of} sets of answers would be refused", refused.len()),
    };
    let diagnostics = refused.iter().flat_map(|evaluation| evaluation.diagnostics.iter().cloned());
    let problem = Problem::new(Code::ValidationFailed);
    Some(Report { diagnostics: diagnostics.collect(), summary, problem })
}

fn table(evaluations: &[Evaluation]) -> Table {
    let names = if evaluations.len() > 1 { &COLUMNS[..] } else { &COLUMNS[1..] };
    let row = |set: Option<usize>, row: &Row| {
        let texts = [&row.question, row.state, &row.why].map(Cell::text);
        set.map(Cell::number).into_iter().chain(texts).collect()
    };
    let headers = names.iter().map(ToString::to_string).collect();
    let mut table = Table { headers, rows: Vec::new() };
    for Evaluation { set, questions, .. } in evaluations {
        table.rows.extend(questions.iter().map(|question| row(*set, question)));
    }
    table
}
