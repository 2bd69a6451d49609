//! Asks for answers in `forms submit`: by prompts, or for a long form in the editor.

use crate::api::FormDetail;
use crate::cli::commands::submit::template::template;
use crate::cli::commands::{CliError, Session};
use crate::cli::input::answer_args::{AnswerArg, ArgValue};
use crate::cli::input::answers::{self, AnswerSources};
use crate::cli::input::ask_question::Asked;
use crate::cli::input::draft::Draft;
use crate::cli::input::{document, editor, prompt};
use crate::domain::form::Version;
use crate::domain::json::{Object, Value};
use crate::domain::language::Texts;
use crate::domain::question::Question;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation};

/// Maximum number of questions that are asked by prompts.
const MAX_PROMPTS: usize = 20;

/// Asks for answers and adds them to `sources`: for all questions if it has no answers, else for the required ones that are
/// missing. Asks nothing if an answer is invalid, or if the form has a question that only the server knows. Returns the
/// edited file of a long form.
pub(super) async fn ask(
    session: &Session,
    form: &FormDetail,
    resume: &str,
    sources: &mut AnswerSources,
) -> Result<Option<Draft>, CliError> {
    let all = answers::parse_questions(&form.questions);
    let questions = answers::known_questions(&all);
    let is_long = questions.iter().filter(|question| is_asked(question)).count() > MAX_PROMPTS;
    let asks_all = sources.args.is_empty() && !sources.record.is_given();
    let version = Version::new(form.version, form.created_at, questions);
    let dialogue = Dialogue { session, version, asks_all, texts: form.settings.language().texts() };
    let violations = dialogue.violations(&sources.answers(&dialogue.version.questions)?);
    if all.len() > dialogue.version.questions.len()
        || violations.iter().any(|violation| violation.code != Rule::Required)
    {
        return Ok(None);
    }
    if asks_all && is_long {
        return edit(session, form, resume, &dialogue.version.questions, sources).await.map(Some);
    }
    if asks_all || !violations.is_empty() {
        let asked = dialogue.ask_all(sources);
        prompt::dialogue(&session.output, "canceled, nothing was sent", asked).await?;
    }
    Ok(None)
}

fn is_asked(question: &Question) -> bool {
    question.takes_answer() && question.kind.rules().is_shown()
}

/// Opens a template of the answers in the editor, and reads what was entered.
async fn edit(
    session: &Session,
    form: &FormDetail,
    resume: &str,
    questions: &[Question],
    sources: &mut AnswerSources,
) -> Result<Draft, CliError> {
    let template = template(form, questions);
    let draft = Draft::create(session, "answers", &template, resume)?;
    session.output.status(&format!("{} questions: opening your editor", questions.len()));
    if editor::edit(session, &draft).await? == template {
        return Err(CliError::Declined);
    }
    sources.record = document::record(draft.path())?;
    Ok(draft)
}

/// Questions asked one after the other.
struct Dialogue<'a> {
    session: &'a Session,
    version: Version,
    /// Whether optional questions are asked, too.
    asks_all: bool,
    /// The texts of messages about answers.
    texts: &'static Texts,
}

impl Dialogue<'_> {
    async fn ask_all(&self, sources: &mut AnswerSources) -> Result<(), CliError> {
        for (place, question) in self.version.questions.iter().enumerate() {
            let answers = sources.answers(&self.version.questions)?;
            let shown = self.version.shown(&answers);
            if !shown[place] || !question.kind.rules().is_shown() {
                continue;
            }
            let Some(id) = question.id.as_ref().filter(|_| question.takes_answer()) else {
                if self.asks_all {
                    prompt::show(&format!("\n{}", with_texts(question, "")));
                }
                continue;
            };
            let is_required = self.violations(&answers).iter().any(|one| one.question.as_ref() == Some(id));
            if is_required || self.asks_all {
                self.announce(place, &shown, is_required);
                self.ask(&Asked { question, is_required }, id, sources).await?;
            }
        }
        Ok(())
    }

    /// Shows the question, and what a typed answer must be.
    fn announce(&self, place: usize, shown: &[bool], is_required: bool) {
        let questions = self.version.questions.iter().zip(shown);
        let is_counted: Vec<_> = questions.map(|(one, is_shown)| *is_shown && is_asked(one)).collect();
        let count = |counted: &[bool]| counted.iter().filter(|is_counted| **is_counted).count();
        let number = match self.asks_all {
            true => format!("{}/{} ", count(&is_counted[..=place]), count(&is_counted)),
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

    fn violations(&self, answers: &Object) -> Vec<Violation> {
        let now = self.session.now();
        self.version.check(answers, &Limits::UNLIMITED, now, self.texts).err().unwrap_or_default()
    }
}

/// Returns the title, marked, with the description and the text of a consent below.
fn with_texts(question: &Question, mark: &str) -> String {
    let text = question.setting("text");
    let texts = [question.description.as_deref(), text.as_ref().and_then(Value::as_str)];
    let title = format!("{}{mark}", question.title);
    texts.into_iter().flatten().fold(title, |all, text| format!("{all}\n{text}"))
}
