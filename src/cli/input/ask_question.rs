//! Asking for the answer to a question: choices are chosen from their labels, everything else is typed.

use crate::cli::input::answer_hints::{Choice, choices};
use crate::cli::input::prompt;
use crate::cli::output::exit::CliError;
use crate::domain::json::{Object, Value};
use crate::domain::language::ENGLISH;
use crate::domain::question::Question;

/// The item that leaves an optional question without an answer.
const NO_ANSWER: &str = "(no answer)";

/// The item that asks for a text instead of an option.
const OTHER: &str = "Other …";

/// A question to ask, and whether an answer is required.
pub struct Asked<'a> {
    pub question: &'a Question,
    pub is_required: bool,
}

impl Asked<'_> {
    /// Asks for the answer and writes it to `answer` as it grows, so that a part is kept if the user cancels; `null` is no
    /// answer. `refused` is typed text that was not valid.
    pub async fn ask(&self, answer: &mut Value, refused: &str) -> Result<(), CliError> {
        match self.question.kind.name() {
            "boolean" | "consent" => *answer = self.ask_yes_or_no().await?,
            "rating" | "opinion_scale" => *answer = self.ask_scale().await?,
            "single_choice" => *answer = self.ask_one().await?,
            "multiple_choice" => *answer = self.ask_several().await?,
            "ranking" => self.ask_order(answer).await?,
            "matrix" => self.ask_rows(answer).await?,
            "long_text" => self.ask_lines(answer).await?,
            _ => {
                let text = prompt::text("Answer", refused, !self.is_required).await?;
                *answer = match text.trim() {
                    "" => Value::Null,
                    _ => self.question.kind.rules().parse_text(&text),
                };
            }
        }
        Ok(())
    }

    /// Returns what a typed answer must be; `None` if it is chosen.
    pub fn expects(&self) -> Option<String> {
        let name = self.question.kind.name();
        match name {
            "boolean" | "consent" | "rating" | "opinion_scale" | "single_choice" | "multiple_choice"
            | "ranking" | "matrix" => None,
            "long_text" => {
                Some(format!("{}, up to an empty line", self.question.kind.rules().expects(ENGLISH)))
            }
            _ => Some(self.question.kind.rules().expects(ENGLISH)),
        }
    }

    async fn ask_lines(&self, answer: &mut Value) -> Result<(), CliError> {
        let mut lines = Vec::new();
        *answer = Value::Null;
        loop {
            let may_end = !self.is_required || !lines.is_empty();
            let line = prompt::text("Line", "", may_end).await?;
            if line.is_empty() {
                return Ok(());
            }
            lines.push(line);
            *answer = Value::String(lines.join("\n"));
        }
    }

    async fn ask_yes_or_no(&self) -> Result<Value, CliError> {
        let label = |value: &str, usual: &str| self.label(value).unwrap_or_else(|| usual.to_owned());
        let skip = if self.is_required { "" } else { ", Esc skips" };
        let keys = format!("y = {}, n = {}{skip}:", label("true", "yes"), label("false", "no"));
        let answer = prompt::yes_no_or_skip(&keys, !self.is_required).await?;
        Ok(answer.map_or(Value::Null, Value::Bool))
    }

    /// Asks for a number of a scale, shown with the names of those that have one.
    async fn ask_scale(&self) -> Result<Value, CliError> {
        let bounds = self.question.kind.rules().range();
        let [Some(least), Some(most)] = bounds.map(|bound| bound?.as_number()?.integer()) else {
            return Ok(Value::Null);
        };
        let label = |number: i64| match self.label(&number.to_string()) {
            Some(name) => format!("{number}  {name}"),
            None => number.to_string(),
        };
        let labels: Vec<_> = (least..=most).map(label).collect();
        let place = choose("Choose", &labels, self.no_answer()).await?;
        Ok(place.map_or(Value::Null, |place| (least + place as i64).into()))
    }

    async fn ask_one(&self) -> Result<Value, CliError> {
        let choices = choices(self.question, "options");
        let mut labels = labels(&choices);
        labels.extend(self.question.kind.rules().takes_other().then_some(OTHER));
        match choose("Choose", &labels, self.no_answer()).await?.map(|place| choices.get(place)) {
            Some(Some(choice)) => Ok(choice.value.as_str().into()),
            Some(None) => ask_other().await,
            None => Ok(Value::Null),
        }
    }

    async fn ask_several(&self) -> Result<Value, CliError> {
        let choices = choices(self.question, "options");
        let mut labels = labels(&choices);
        labels.extend(self.question.kind.rules().takes_other().then_some(OTHER));
        let places = prompt::choose_several("Choose with Space, end with Enter", &labels).await?;
        let mut values = Vec::new();
        for place in places {
            values.push(match choices.get(place) {
                Some(choice) => choice.value.as_str().into(),
                None => ask_other().await?,
            });
        }
        Ok(list(values))
    }

    /// Asks for one place after the other, until all options have one or the user ends the list.
    async fn ask_order(&self, answer: &mut Value) -> Result<(), CliError> {
        let (mut left, mut ranked) = (choices(self.question, "options"), Vec::new());
        let ranks_all = self.question.setting("rank_all") == Some(Value::Bool(true));
        while !left.is_empty() {
            let (may_end, end) = match ranked.len() {
                0 => (!self.is_required, NO_ANSWER),
                _ => (!ranks_all, "(no more)"),
            };
            let end = may_end.then_some(end);
            let question = format!("Place {}", ranked.len() + 1);
            let Some(place) = choose(&question, &labels(&left), end).await? else { break };
            ranked.push(Value::String(left.remove(place).value));
            *answer = Value::Array(ranked.clone());
        }
        Ok(())
    }

    /// Asks for the columns of each row of a matrix.
    async fn ask_rows(&self, answer: &mut Value) -> Result<(), CliError> {
        let columns = choices(self.question, "columns");
        let takes_several = self.question.setting("multiple") == Some(Value::Bool(true));
        let value = |place: usize| Value::from(columns[place].value.as_str());
        let mut cells = Object::new();
        for row in choices(self.question, "rows") {
            let cell = if takes_several {
                let question = format!("{} (Space, then Enter)", row.label);
                let places = prompt::choose_several(&question, &labels(&columns)).await?;
                list(places.into_iter().map(value).collect())
            } else {
                let none = (!self.needs_row(&row.value)).then_some(NO_ANSWER);
                let place = choose(&row.label, &labels(&columns), none).await?;
                place.map_or(Value::Null, value)
            };
            if cell != Value::Null {
                cells.push((row.value, cell));
                *answer = Value::Object(cells.clone());
            }
        }
        Ok(())
    }

    fn no_answer(&self) -> Option<&'static str> {
        (!self.is_required).then_some(NO_ANSWER)
    }

    fn needs_row(&self, row: &str) -> bool {
        match self.question.setting("required_rows") {
            Some(Value::Bool(all)) => all,
            Some(Value::Array(rows)) => rows.contains(&row.into()),
            _ => false,
        }
    }

    /// Returns the label of `value` in the setting `labels`.
    fn label(&self, value: &str) -> Option<String> {
        self.question.setting("labels")?.get(value)?.as_str().map(str::to_owned)
    }
}

/// Asks for one of `labels`, or before them `none`, which returns `None`: Enter alone chooses no answer.
async fn choose(
    question: &str,
    labels: &[impl AsRef<str>],
    none: Option<&str>,
) -> Result<Option<usize>, CliError> {
    let items: Vec<_> = none.into_iter().chain(labels.iter().map(AsRef::as_ref)).collect();
    let place = prompt::choose(question, &items).await?;
    Ok(place.checked_sub(usize::from(none.is_some())))
}

async fn ask_other() -> Result<Value, CliError> {
    let text = prompt::text("Other", "", false).await?;
    Ok(Value::Object(vec![("other".to_owned(), Value::String(text))]))
}

fn labels(choices: &[Choice]) -> Vec<&str> {
    choices.iter().map(|choice| choice.label.as_str()).collect()
}

/// Returns a list, or `null` if it is empty.
fn list(values: Vec<Value>) -> Value {
    if values.is_empty() { Value::Null } else { Value::Array(values) }
}
