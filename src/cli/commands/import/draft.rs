//! The form under construction, which all formats share. What it cannot have is a loss: named, never silent.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::cli::commands::CliError;
use crate::cli::commands::import::expression;
use crate::cli::commands::import::logic::Logic;
use crate::cli::input::document::violations::describe_violations;
use crate::cli::output::diagnostics::Report;
use crate::cli::output::yaml;
use crate::domain::form::definition::Definition;
use crate::domain::json::{Object, Value};
use crate::domain::question::is_empty;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;

/// Maximum characters of a title.
const MAX_TITLE: usize = 300;

/// The members of a form in the order in which `forms show` prints them.
const ORDER: [&str; 4] = ["title", "description", "questions", "settings"];

/// Maximum tests of a condition, and nesting: nobody could read a larger one.
const MAX_CONDITION: (usize, usize) = (24, 5);

/// A text that may be missing.
pub(super) type Text = Option<String>;

/// Members without which a question is not itself.
const ESSENTIAL: [&str; 6] = ["id", "type", "title", "options", "rows", "columns"];

/// An object of the source, which knows what was read of it, so that the rest can be named.
pub(super) struct Members<'a> {
    object: &'a Value,
    read: RefCell<HashSet<&'a str>>,
}

impl<'a> Members<'a> {
    /// Reads `object`. The members named in `ignored`, separated by spaces, are not reported as losses.
    pub(super) fn new(object: &'a Value, ignored: &'a str) -> Self {
        Self { object, read: RefCell::new(ignored.split(' ').collect()) }
    }

    /// Returns a member, `null` if there is none.
    pub(super) fn get(&self, name: &'a str) -> &'a Value {
        self.read.borrow_mut().insert(name);
        self.object.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, name: &'a str) -> Option<String> {
        text_of(self.get(name))
    }

    pub(super) fn integer(&self, name: &'a str) -> Option<i64> {
        self.get(name).as_number()?.integer()
    }

    pub(super) fn flag(&self, name: &'a str) -> bool {
        *self.get(name) == true.into()
    }

    pub(super) fn list(&self, name: &'a str) -> &'a [Value] {
        self.get(name).as_array().unwrap_or_default()
    }

    /// Returns the names of the members that were not read, unless they are empty or `false`.
    fn unread(&self) -> Vec<String> {
        let Value::Object(members) = self.object else { return Vec::new() };
        let read = self.read.borrow();
        let is_lost = |(name, value): &&(String, Value)| {
            !read.contains(name.as_str()) && !is_empty(value) && *value != false.into()
        };
        members.iter().filter(is_lost).map(|(name, _)| format!("`{}`", one_line(name, 40))).collect()
    }
}

/// Returns a text, number or boolean as text without control characters; `None` if it is blank or something else.
pub(super) fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let text: String = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns `text` on one line of at most `max` characters.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > max { line.chars().take(max - 1).chain(['…']).collect() } else { line }
}

/// Describes a place in the source: `question 3 "Your name" (short_text)`.
pub(super) fn place(noun: &str, number: usize, title: Option<&str>, kind: &str) -> String {
    let title = title.map(|title| format!(" \"{}\"", one_line(title, 40))).unwrap_or_default();
    format!("{noun} {number}{title} ({kind})")
}

/// A question under construction.
pub(super) struct Question {
    place: String,
    members: Object,
    /// The values of options that are left out, as they are given again.
    repeated: Vec<String>,
    pub(super) show_if: Logic,
}

impl Question {
    pub(super) fn new(place: &str, kind: &str, title: Text) -> Self {
        let (place, members, repeated) = (place.to_owned(), Object::new(), Vec::new());
        let mut question = Self { place, members, repeated, show_if: Logic::Always };
        question.set("type", Some(kind.to_owned()));
        question.set("title", title);
        question
    }

    /// Creates a question for a whole number within `range`, with labels at its ends.
    pub(super) fn scale(place: &str, title: Text, range: [i64; 2], ends: [Text; 2]) -> Self {
        let is_scale = matches!(range, [0 | 1, 2..=10]);
        let mut question = Self::new(place, if is_scale { "opinion_scale" } else { "number" }, title);
        question.set("min", Some(range[0]));
        question.set("max", Some(range[1]));
        question.set("integer", (!is_scale).then_some(true));
        question.set_labels(range.map(|end| end.to_string()).into_iter().zip(ends));
        question
    }

    /// Sets a member, or removes it.
    pub(super) fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        self.members.retain(|(known, _)| known != name);
        self.members.extend(value.map(|value| (name.to_owned(), value.into())));
    }

    /// Copies the members `names`, which spaces separate; `min_value=min` becomes `min`.
    pub(super) fn copy<'a>(&mut self, source: &Members<'a>, names: &'a str) {
        for name in names.split(' ') {
            let (theirs, own) = name.split_once('=').unwrap_or((name, name));
            let value = source.get(theirs);
            if !is_empty(value) && *value != false.into() {
                let text = value.as_str().and_then(|_| text_of(value)).map(Value::from);
                self.set(own, Some(text.unwrap_or_else(|| value.clone())));
            }
        }
    }

    /// Sets the texts that are shown beside values.
    pub(super) fn set_labels(&mut self, labels: impl Iterator<Item = (String, Text)>) {
        let labels: Object = labels.filter_map(|(name, text)| Some((name, text?.into()))).collect();
        self.set("labels", (!labels.is_empty()).then_some(Value::Object(labels)));
    }

    /// Sets a list of values with their labels; of equal values the first counts.
    pub(super) fn set_options(&mut self, name: &str, options: impl IntoIterator<Item = (String, Text)>) {
        let mut seen = HashSet::new();
        let option = |(value, label): (String, Text)| {
            let Some(label) = label.filter(|label| *label != value) else { return value.into() };
            Value::Object(vec![("value".to_owned(), value.into()), ("label".to_owned(), label.into())])
        };
        let (first, again): (Vec<_>, Vec<_>) =
            options.into_iter().partition(|(value, _)| seen.insert(value.clone()));
        self.repeated.extend(again.into_iter().map(|(value, _)| value));
        let options: Vec<Value> = first.into_iter().map(option).collect();
        self.set(name, Some(Value::Array(options)));
    }

    /// Sets a text to read; its first line is the title if it is short.
    pub(super) fn set_text(&mut self, text: &str) {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let title = first.trim_matches(['#', '*', '_', ' ']);
        let is_short = !title.is_empty() && title.chars().count() <= 100;
        let about = if is_short { rest.trim_matches('\n') } else { text };
        self.set("title", Some(one_line(title, 100)));
        self.set("description", Some(about).filter(|about| !about.trim().is_empty()));
    }

    /// Whether only whole numbers are answers.
    pub(super) fn is_integer(&self) -> bool {
        self.members.iter().any(|(name, value)| name == "integer" && *value == true.into())
    }

    fn text(&self, name: &str) -> &str {
        let member = self.members.iter().find(|(known, _)| known == name);
        member.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// A form under construction.
#[derive(Default)]
pub(super) struct Draft {
    /// The form without its questions.
    form: Value,
    questions: Vec<Question>,
    losses: Vec<String>,
    /// The index of each question by its name in the source.
    names: HashMap<String, usize>,
    ids: HashSet<String>,
    /// The conditions of the groups that are open.
    groups: Vec<Logic>,
    /// Whether the next question begins a page, since a group has ended.
    begins_page: bool,
    /// How a reference to an answer begins in a text; empty if there are none.
    marker: &'static str,
}

impl Draft {
    /// Begins a form with its `title` in the source, or else the `name` of the file.
    pub(super) fn new(title: Text, name: &str, marker: &'static str) -> Self {
        let mut draft = Self { marker, ..Self::default() };
        draft.form.set(&["title"], one_line(title.as_deref().unwrap_or(name), MAX_TITLE).into());
        if title.is_none() {
            draft.lose("the form", format!("has no title, named `{name}`"));
        }
        draft
    }

    pub(super) fn lose(&mut self, place: &str, what: impl AsRef<str>) {
        self.losses.push(format!("{place}: {}", what.as_ref()));
    }

    /// Names what was not read of objects.
    pub(super) fn lose_unread(&mut self, place: &str, sources: &[&Members<'_>]) {
        let names: Vec<_> = sources.iter().flat_map(|members| members.unread()).collect();
        if !names.is_empty() {
            self.lose(place, format!("{} left out", names.join(", ")));
        }
    }

    /// Sets the member of the form at the path `names`.
    pub(super) fn set(&mut self, names: &[&str], text: Text) {
        if let Some(text) = text {
            self.form.set(names, text.into());
        }
    }

    pub(super) fn count(&self) -> usize {
        self.questions.len()
    }

    /// Begins a group of questions that are asked `when`: a page, or within another group a heading.
    pub(super) fn begin_group(&mut self, place: &str, title: Text, about: Text, when: Logic) {
        let is_page = self.groups.is_empty();
        self.groups.push(when);
        self.begins_page |= is_page && !self.questions.is_empty();
        if title.is_some() {
            let mut heading = Question::new(place, if is_page { "page" } else { "statement" }, title);
            heading.set("description", about);
            self.push(heading, "");
        }
    }

    pub(super) fn end_group(&mut self) {
        self.groups.pop();
        self.begins_page |= self.groups.is_empty();
    }

    /// Adds a question, which the source calls `name`, and returns its index.
    pub(super) fn push(&mut self, mut question: Question, name: &str) -> usize {
        if self.questions.len() + 1 >= Limits::default().questions {
            self.lose(&question.place, "left out: the form has too many questions");
            return self.questions.len();
        }
        let (kind, title) = (question.text("type").to_owned(), question.text("title").to_owned());
        if std::mem::take(&mut self.begins_page) && kind != "page" {
            let title = self.form.get("title").and_then(text_of);
            self.questions.push(Question::new("the form", "page", title));
        }
        let place = question.place.clone();
        if !matches!(kind.as_str(), "page" | "statement") {
            let id = self.id(&[name, &title]);
            question.members.insert(0, ("id".to_owned(), id.into()));
        }
        if kind != "hidden" {
            let shown = [title.as_str(), name, "…"].into_iter().find(|text| !text.is_empty());
            question.set("title", shown.map(|text| one_line(text, MAX_TITLE)));
        }
        if title.chars().count() > MAX_TITLE {
            self.lose(&place, format!("its title was cut to {MAX_TITLE} characters"));
        }
        if !self.marker.is_empty() && (title + question.text("description")).contains(self.marker) {
            self.lose(&place, format!("`{}…` in its text is not filled in", self.marker));
        }
        for value in &question.repeated {
            self.lose(&place, format!("the second option `{}` left out", one_line(value, 40)));
        }
        question.show_if = Logic::all(self.groups.iter().cloned().chain([question.show_if]));
        let index = self.questions.len();
        self.names.extend((!name.is_empty()).then(|| (name.to_owned(), index)));
        self.questions.push(question);
        index
    }

    /// Returns a new id from the first of `names` that has letters and does not look random.
    fn id(&mut self, names: &[&str]) -> String {
        let number = self.ids.len() + 1;
        let base = names.iter().find_map(|name| slug(name)).unwrap_or_else(|| format!("q{number}"));
        let ids = std::iter::once(base.clone()).chain((2..).map(|count| format!("{base}_{count}")));
        let id = ids.into_iter().find(|id| !self.ids.contains(id)).unwrap_or_default();
        self.ids.insert(id.clone());
        id
    }

    /// Returns the id and the type of the question that the source calls `name`.
    pub(super) fn resolve(&self, name: &str) -> Option<(String, String)> {
        let question = self.questions.get(*self.names.get(name)?)?;
        let id = question.text("id");
        (!id.is_empty()).then(|| (id.to_owned(), question.text("type").to_owned()))
    }

    /// Returns the id of a question, and when it is asked.
    pub(super) fn asked(&self, index: usize) -> (&str, &Logic) {
        (self.questions[index].text("id"), &self.questions[index].show_if)
    }

    /// Sets when a question is asked; a page is asked if its questions are.
    pub(super) fn set_asked(&mut self, index: usize, logic: Logic) {
        if self.questions[index].text("type") == "page" {
            return;
        }
        if is_readable(&logic) {
            self.questions[index].show_if = logic;
        } else {
            let place = self.questions[index].place.clone();
            self.lose(&place, "its condition would be too long, always asked");
        }
    }

    /// Converts the expression in the member `name`; if it cannot be said, it is a loss, and it holds always.
    pub(super) fn condition<'a>(&mut self, place: &str, source: &Members<'a>, name: &'a str) -> Logic {
        let Some(text) = source.text(name) else { return Logic::Always };
        let reason = match expression::read(&text, &|name| self.resolve(name)) {
            Ok(logic) if is_readable(&logic) => return logic,
            Ok(_) => "it is too long".to_owned(),
            Err(reason) => reason,
        };
        self.lose(place, format!("`{name}` ({}) left out: {reason}", one_line(&text, 60)));
        Logic::Always
    }

    /// Returns the form, which is valid, and the losses. What breaks a rule of forms is left out.
    ///
    /// # Errors
    /// If leaving out does not make it valid.
    pub(super) fn finish(mut self, file: &str) -> Result<(Value, Vec<String>), CliError> {
        for question in self.questions.extract_if(.., |question| question.show_if == Logic::Never) {
            self.losses.push(format!("{}: never asked, left out", question.place));
        }
        self.move_conditions();
        for question in &mut self.questions {
            let condition = question.show_if.members();
            question.set("show_if", (!condition.is_empty()).then_some(Value::Object(condition)));
        }
        loop {
            let questions = self.questions.iter().map(|question| Value::Object(question.members.clone()));
            self.form.set(&["questions"], Value::Array(questions.collect()));
            if let Value::Object(members) = &mut self.form {
                members.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
            }
            let Err(violations) = Definition::read(&self.form, &Limits::default()) else {
                return Ok((yaml::canonical(&self.form), self.losses));
            };
            if !self.leave_out(&violations) {
                return Err(Report::of_file(file, describe_violations(&self.form, &violations)).into());
            }
        }
    }

    /// Moves what the conditions of all questions of a page have in common to the page.
    fn move_conditions(&mut self) {
        for section in self.questions.chunk_by_mut(|_, next| next.text("type") != "page") {
            let [page, questions @ ..] = section else { continue };
            let Some((first, others)) = questions.split_first() else { continue };
            let is_common =
                |part: &&Logic| others.iter().all(|other| other.show_if.conjuncts().contains(part));
            let common: Vec<_> = first.show_if.conjuncts().iter().filter(is_common).cloned().collect();
            if page.text("type") == "page" && !common.is_empty() {
                for question in questions {
                    let own = question.show_if.conjuncts().iter().filter(|part| !common.contains(part));
                    question.show_if = Logic::all(own.cloned());
                }
                page.show_if = Logic::all(common);
            }
        }
    }

    /// Leaves out what breaks a rule: a setting if the question can be without it, else the question. Returns whether there
    /// was anything.
    fn leave_out(&mut self, violations: &[Violation]) -> bool {
        let before = self.losses.len();
        for Violation { pointer, message, .. } in violations {
            let steps: Vec<_> = pointer.split('/').skip(1).collect();
            match steps[..] {
                ["questions", index, ref rest @ ..] => {
                    let index = index.parse::<usize>().ok();
                    let Some(question) = index.and_then(|index| self.questions.get_mut(index)) else {
                        continue;
                    };
                    let name = rest.first().copied().unwrap_or("type");
                    let is_essential = ESSENTIAL.contains(&name);
                    if is_essential && !question.members.is_empty() {
                        question.members.clear();
                        self.losses.push(format!("{}: left out: {message}", question.place));
                    } else if !is_essential && question.members.iter().any(|(known, _)| known == name) {
                        question.set(name, None::<Value>);
                        self.losses.push(format!("{}: `{name}` left out: {message}", question.place));
                    }
                }
                _ => {
                    let path =
                        if steps[0] == "settings" { &steps[..steps.len().min(2)] } else { &steps[..1] };
                    if self.form.pointer(&format!("/{}", path.join("/"))).is_some() {
                        self.form.remove(path);
                        self.lose("the form", format!("`{}` left out: {message}", path.join(".")));
                    }
                }
            }
        }
        self.questions.retain(|question| !question.members.is_empty());
        self.losses.len() > before
    }
}

fn is_readable(logic: &Logic) -> bool {
    let (tests, depth) = logic.size();
    tests <= MAX_CONDITION.0 && depth <= MAX_CONDITION.1
}

/// Returns an id from `name`; `None` if it has no letters or looks random.
fn slug(name: &str) -> Option<String> {
    let is_random = name.len() >= 8 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let mut id = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if id.len() + word.len() >= 40 && !id.is_empty() {
            break;
        }
        id += &format!("_{}", word.to_ascii_lowercase());
    }
    let id: String = id.trim_start_matches(|c: char| !c.is_ascii_lowercase()).chars().take(60).collect();
    (!is_random && !id.is_empty() && !matches!(id.as_str(), "any" | "all" | "not")).then_some(id)
}
