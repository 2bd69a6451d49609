//! The columns of exported submissions: one for each question of all versions of the form, or for each of its options.

use std::collections::HashMap;

use clap::Args;
use serde_json::value::RawValue;

use crate::api::{SubmissionDetail, VersionView};
use crate::cli::commands::CliError;
use crate::cli::input::answers;
use crate::cli::input::rows::choices;
use crate::cli::output::table::Cell;
use crate::client::Pages;
use crate::domain::integration::row::{FIRST_COLUMNS, answer_text, column_name, value_text};
use crate::domain::json::{self, Value};
use crate::domain::question::Question;

/// The type of question whose options can have columns.
const MULTIPLE_CHOICE: &str = "multiple_choice";

/// The key of an answer that is none of the options.
const OTHER: &str = "other";

/// The choices about the columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(super) struct TableOptions {
    /// Write titles and labels instead of ids and values
    #[arg(long)]
    labels: bool,
    /// Give each option of a multiple choice a column
    #[arg(long)]
    split_choices: bool,
}

/// The columns of the submissions to one form.
pub(super) struct ExportTable {
    questions: Vec<ExportedQuestion>,
    options: TableOptions,
    /// The newest version of the form that they are about.
    version: u32,
}

/// A question of one or several versions of the form.
struct ExportedQuestion {
    id: String,
    /// The definitions, each with the first version that has it, newest first. Empty for a type that only newer versions of this
    /// program know.
    definitions: Vec<(u32, Question)>,
    /// The options that have columns, with their labels; empty if the question itself has one.
    choices: Vec<(String, String)>,
}

impl ExportTable {
    /// Reads all versions of a form, newest first: the questions of the current one come first, then removed ones, those removed
    /// last first.
    pub(super) async fn read(
        mut versions: Pages<'_, VersionView>,
        options: TableOptions,
    ) -> Result<Self, CliError> {
        let mut table = Self { questions: Vec::new(), options, version: 0 };
        while let Some(page) = versions.next().await? {
            for version in page {
                table.version = table.version.max(version.version);
                table.add(version.version, &version.questions);
            }
        }
        if options.split_choices {
            table.questions.iter_mut().for_each(ExportedQuestion::split);
        }
        Ok(table)
    }

    /// Adds the questions of a version, which is older than those before.
    fn add(&mut self, version: u32, questions: &RawValue) {
        let listed = answers::parse_questions(questions);
        let mut known = answers::known_questions(&listed);
        for id in answers::answerable_ids(&listed) {
            let place = self.questions.iter().position(|question| question.has_id(&id));
            let place = place.unwrap_or_else(|| {
                let (definitions, choices) = (Vec::new(), Vec::new());
                self.questions.push(ExportedQuestion { id: id.clone(), definitions, choices });
                self.questions.len() - 1
            });
            if let Some(found) = known.iter().position(|question| question.id.as_ref() == Some(&id)) {
                self.questions[place].add(version, known.swap_remove(found));
            }
        }
    }

    /// Returns the names of the columns. Of several with the same title, each has its id too.
    pub(super) fn headers(&self) -> Vec<String> {
        let named: Vec<_> = self.questions.iter().flat_map(ExportedQuestion::headers).collect();
        let mut uses = HashMap::<_, u32>::new();
        named.iter().for_each(|(_, title)| *uses.entry(title).or_default() += 1);
        let header = |(id, title): &(String, String)| match self.options.labels {
            true if uses[title] > 1 => format!("{title} ({id})"),
            true => column_name(title).into_owned(),
            false => column_name(id).into_owned(),
        };
        FIRST_COLUMNS.into_iter().map(str::to_owned).chain(named.iter().map(header)).collect()
    }

    /// Returns the cells of a submission; `None` if it is of a version that was made since, which may have other columns.
    pub(super) fn row(&self, submission: &SubmissionDetail) -> Option<Vec<Cell>> {
        let answers = json::parse(submission.answers.get()).unwrap_or(Value::Null);
        let mut row =
            vec![Cell::text(submission.id.to_string()), Cell::date(submission.submitted_at.to_string())];
        for question in &self.questions {
            let answer = question.ids().find_map(|id| answers.get(id)).unwrap_or(&Value::Null);
            match question.choices.is_empty() {
                true => row.push(question.cell(answer, submission.form_version, self.options.labels)),
                false => row.extend(question.choices.iter().map(|(value, _)| choice_cell(answer, value))),
            }
        }
        (submission.form_version <= self.version).then_some(row)
    }
}

impl ExportedQuestion {
    /// Returns its id, then those that it had before.
    fn ids(&self) -> impl Iterator<Item = &String> {
        let was = self.definitions.first().map(|(_, question)| &question.was);
        std::iter::once(&self.id).chain(was.into_iter().flatten())
    }

    fn has_id(&self, id: &String) -> bool {
        self.ids().any(|own| own == id)
    }

    /// Adds the definition of an older version; one that did not change is kept once.
    fn add(&mut self, version: u32, question: Question) {
        let text = |question: &Question| serde_json::to_string(question).ok();
        match self.definitions.last_mut() {
            Some((first, newer)) if text(newer) == text(&question) => *first = version,
            _ => self.definitions.push((version, question)),
        }
    }

    /// Gives each option of a multiple choice a column, those of earlier versions at the end.
    fn split(&mut self) {
        for (_, question) in self.definitions.iter().filter(|(_, one)| one.kind.name() == MULTIPLE_CHOICE) {
            let other = question.kind.rules().takes_other().then(|| (OTHER.to_owned(), OTHER.to_owned()));
            for choice in choices(question, "options").into_iter().chain(other) {
                if !self.choices.iter().any(|(value, _)| *value == choice.0) {
                    self.choices.push(choice);
                }
            }
        }
    }

    /// Returns the names of its columns, by id and by title.
    fn headers(&self) -> Vec<(String, String)> {
        let title = self.definitions.first().map_or(&self.id, |(_, question)| &question.title);
        if self.choices.is_empty() {
            return vec![(self.id.clone(), title.clone())];
        }
        let header =
            |(value, label): &(String, String)| (format!("{}/{value}", self.id), format!("{title}/{label}"));
        self.choices.iter().map(header).collect()
    }

    fn cell(&self, answer: &Value, version: u32, labels: bool) -> Cell {
        let definition = self.definitions.iter().find(|(first, _)| *first <= version).map(|(_, found)| found);
        match (answer, definition) {
            (Value::Null | Value::Bool(_) | Value::Number(_), _) => Cell::value(answer),
            (Value::String(text), Some(question)) if matches!(question.kind.name(), "date" | "datetime") => {
                Cell::date(text)
            }
            (_, Some(question)) if labels => Cell::text(answer_text(question, answer)),
            _ => Cell::text(value_text(answer)),
        }
    }
}

/// Returns the cell of one option of a multiple choice: 1 if `answer` has it, 0 if not, empty if there is no answer. That of
/// `other` has its text.
fn choice_cell(answer: &Value, option: &str) -> Cell {
    let Value::Array(chosen) = answer else { return Cell::empty() };
    let other = chosen.iter().find_map(|one| one.get(OTHER)?.as_str()).filter(|_| option == OTHER);
    let is_chosen = chosen.iter().any(|one| one.as_str() == Some(option));
    other.map_or_else(|| Cell::number(u8::from(is_chosen)), Cell::text)
}
