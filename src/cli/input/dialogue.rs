//! Asking for answers: one question after the other, then a review.

use crate::api::{Code, FormDetail, Problem};
use crate::cli::connection::session::Session;
use crate::cli::input::answer_args::{AnswerArg, ArgValue};
use crate::cli::input::answers::{self, AnswerSources};
use crate::cli::input::ask_question::Asked;
use crate::cli::input::prompt;
use crate::cli::output::exit::CliError;
use crate::domain::form::Version;
use crate::domain::integration::row::answer_text;
use crate::domain::json::{Object, Value};
use crate::domain::language::Texts;
use crate::domain::question::Question;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

/// The questions of a form, asked one after the other.
pub struct Dialogue<'a> {
    pub session: &'a Session,
    pub title: &'a str,
    pub version: Version,
    /// The texts of messages about answers.
    pub texts: &'static Texts,
}

impl<'a> Dialogue<'a> {
    /// Creates the dialogue for a form of the server; `None` if it has a question that only the server knows.
    pub fn of_form(session: &'a Session, form: &'a FormDetail) -> Option<Self> {
        let all = answers::parse_questions(&form.questions);
        let questions = answers::known_questions(&all);
        let is_known = questions.len() == all.len();
        let version = Version::new(form.version, form.created_at, questions);
        let texts = form.settings.language().texts();
        is_known.then_some(Self { session, title: &form.title, version, texts })
    }

    /// Asks every question that is not answered yet, and shows the answers until the user chooses to `send` them. If the
    /// user cancels, prints `canceled`.
    ///
    /// # Errors
    /// If an answer is invalid from the start, or the user cancels.
    pub async fn complete(
        &self,
        sources: &mut AnswerSources,
        send: &str,
        canceled: &str,
    ) -> Result<(), CliError> {
        self.check(sources, &[Rule::Required, Rule::QuestionNotVisible])?;
        let questions = &self.version.questions;
        let id = |place: usize| questions[place].id.as_deref().unwrap_or_default();
        let is_given = |place: &usize| sources.args.iter().any(|arg| arg.key == id(*place));
        let mut done: Vec<_> = (0..questions.len()).filter(is_given).collect();
        let asked = async {
            loop {
                self.ask_all(sources, true, &mut done).await?;
                // Because of a change, others may not be asked any more, or be required.
                let wrong = self.violations(&sources.answers(questions)?);
                let is_wrong =
                    |place: &usize| wrong.iter().any(|one| one.question.as_deref() == Some(id(*place)));
                let mut again: Vec<_> = done.iter().copied().filter(is_wrong).collect();
                if again.is_empty() {
                    let Some(place) = self.review(sources, send).await? else { return Ok(()) };
                    again.push(place);
                }
                done.retain(|place| !again.contains(place));
                sources.args.retain(|arg| again.iter().all(|place| id(*place) != arg.key));
            }
        };
        prompt::dialogue(&self.session.output, canceled, asked).await
    }

    /// Refuses invalid answers, but for violations of the `tolerated` rules.
    pub fn check(&self, sources: &AnswerSources, tolerated: &[Rule]) -> Result<(), CliError> {
        let questions = &self.version.questions;
        let mut violations = self.violations(&sources.answers(questions)?);
        violations.retain(|violation| !tolerated.iter().any(|rule| violation.code == *rule));
        if violations.is_empty() {
            return Ok(());
        }
        let problem = Problem::new(Code::ValidationFailed);
        Err(answers::refused(self.title, questions, sources, violations, problem))
    }

    /// Shows the answers; returns the place of a question to ask again, or `None` to send them.
    async fn review(&self, sources: &AnswerSources, send: &str) -> Result<Option<usize>, CliError> {
        let questions = &self.version.questions;
        let answers = sources.answers(questions)?;
        let shown = self.version.shown(&answers);
        let places: Vec<_> =
            (0..questions.len()).filter(|place| shown[*place] && is_asked(&questions[*place])).collect();
        let line = |place: &usize| {
            let Question { id, title, .. } = &questions[*place];
            let answer = answers.iter().find(|(key, _)| id.as_ref() == Some(key));
            let text = answer.map(|(_, answer)| answer_text(&questions[*place], answer)).unwrap_or_default();
            format!("{title} → {}", if text.is_empty() { "(no answer)" } else { &text })
        };
        let lines: Vec<_> = places.iter().map(line).collect();
        loop {
            prompt::show(&format!("\n{}\n{}", self.title, lines.join("\n")));
            match prompt::choose_or_escape("Done?", &[send, "Change an answer", "Cancel"]).await? {
                Some(0) => return Ok(None),
                Some(1) => {
                    if let Some(chosen) = prompt::choose_or_escape("Which one?", &lines).await? {
                        return Ok(Some(places[chosen]));
                    }
                }
                _ => return Err(CliError::Declined),
            }
        }
    }

    /// Asks the questions at places that are not `done`, and adds them there: if `asks_all`, the optional ones too.
    pub async fn ask_all(
        &self,
        sources: &mut AnswerSources,
        asks_all: bool,
        done: &mut Vec<usize>,
    ) -> Result<(), CliError> {
        for (place, question) in self.version.questions.iter().enumerate() {
            let answers = sources.answers(&self.version.questions)?;
            let shown = self.version.shown(&answers);
            if !shown[place] || done.contains(&place) || !question.kind.rules().is_shown() {
                continue;
            }
            let Some(id) = question.id.as_ref().filter(|_| question.takes_answer()) else {
                if asks_all {
                    prompt::show(&format!("\n{}", with_texts(question, "")));
                    done.push(place);
                }
                continue;
            };
            let is_required = self.violations(&answers).iter().any(|one| one.question.as_ref() == Some(id));
            if is_required || asks_all {
                self.announce(place, &shown, is_required, asks_all);
                self.ask(&Asked { question, is_required }, id, sources).await?;
                done.push(place);
            }
        }
        Ok(())
    }

    /// Shows the question, and what a typed answer must be.
    fn announce(&self, place: usize, shown: &[bool], is_required: bool, is_counted: bool) {
        let questions = self.version.questions.iter().zip(shown);
        let counted: Vec<_> = questions.map(|(one, is_shown)| *is_shown && is_asked(one)).collect();
        let count = |counted: &[bool]| counted.iter().filter(|is_counted| **is_counted).count();
        let number = match is_counted {
            true => format!("{}/{} ", count(&counted[..=place]), count(&counted)),
            false => String::new(),
        };
        let question = &self.version.questions[place];
        let mark = if is_required { " (required)" } else { "" };
        prompt::show(&format!("\n{number}{}", with_texts(question, mark)));
        let skip = if is_required { "" } else { "; Enter skips it" };
        let expects = Asked { question, is_required }.expects();
        expects.into_iter().for_each(|expects| prompt::show(&format!("Enter {expects}{skip}")));
    }

    /// Asks until the answer is valid.
    async fn ask(&self, asked: &Asked<'_>, id: &str, sources: &mut AnswerSources) -> Result<(), CliError> {
        let before = sources.args.len();
        prompt::discard_typed();
        let mut refused = String::new();
        loop {
            sources.args.truncate(before);
            // What was refused is kept until another answer replaces it.
            let kept = if refused.is_empty() { Value::Null } else { Value::String(refused.clone()) };
            sources.args.push(AnswerArg { key: id.to_owned(), value: ArgValue::Json(kept) });
            if let ArgValue::Json(answer) = &mut sources.args[before].value {
                asked.ask(answer, &refused).await?;
                refused = answer.as_str().unwrap_or_default().to_owned();
            }
            let mut wrong = self.violations(&sources.answers(&self.version.questions)?);
            wrong.retain(|violation| violation.question.as_deref() == Some(id));
            if wrong.is_empty() {
                if sources.args[before].is_empty() {
                    sources.args.truncate(before);
                }
                return Ok(());
            }
            wrong.iter().for_each(|violation| prompt::show(&format!("{}; try again", violation.message)));
        }
    }

    pub fn violations(&self, answers: &Object) -> Vec<Violation> {
        let now = self.session.now();
        self.version.check(answers, &Limits::UNLIMITED, now, self.texts).err().unwrap_or_default()
    }
}

/// Whether people are asked for the answer.
pub fn is_asked(question: &Question) -> bool {
    question.takes_answer() && question.kind.rules().is_shown()
}

/// Returns the title, marked, with the description and the text of a consent below.
fn with_texts(question: &Question, mark: &str) -> String {
    let text = question.setting("text");
    let texts = [question.description.as_deref(), text.as_ref().and_then(Value::as_str)];
    let title = format!("{}{mark}", question.title);
    texts.into_iter().flatten().fold(title, |all, text| format!("{all}\n{text}"))
}
