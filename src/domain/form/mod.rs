//! A form: its life from draft to published, and what an edit does to its questions' ids.

pub mod admission;
pub mod definition;
pub mod filter;
pub mod json_schema;
pub mod settings;
pub mod slug;

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::domain::condition::lint_conditions;
use crate::domain::form::admission::Refusal;
use crate::domain::form::definition::{Definition, FormPatch};
use crate::domain::form::settings::Settings;
use crate::domain::json::{self, Value};
use crate::domain::question::{Question, QuestionDraft};
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::{Limits, MAX_RETIRED_IDS};
use crate::domain::validation::violation::{Rule, Violation};
use crate::id::{FormId, WorkspaceId};

/// Whether a form takes answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormStatus {
    Draft,
    Published,
}

impl FormStatus {
    /// All statuses.
    pub const ALL: [Self; 2] = [Self::Draft, Self::Published];

    /// The status called `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }

    /// The status's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Published => "published",
        }
    }
}

impl fmt::Display for FormStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A form without its questions, which are a [`Version`] of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Form {
    pub id: FormId,
    pub workspace: WorkspaceId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name its author gave it; no other form of the workspace outside the trash has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    pub status: FormStatus,
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// Moves with every change of the form. Answers do not move it.
    pub revision: u64,
    /// The number of the questions' version, from 1.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When it was last published, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    /// When it went to the trash, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// The questions of a form at one time. Immutable; every edit of the questions makes the next.
#[derive(Debug, Clone)]
pub struct Version {
    /// Counts from 1.
    pub number: u32,
    pub created_at: Timestamp,
    pub questions: Vec<Question>,
    pattern_bytes: usize,
    searches: bool,
}

/// The same, as it is kept and shown: to check answers, its questions would have to be read, which may take long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredVersion {
    /// Counts from 1.
    pub number: u32,
    pub created_at: Timestamp,
    /// In canonical form.
    pub questions: Box<RawValue>,
}

/// The ids of questions that were removed from a form; none is given to another question.
pub type RetiredIds = BTreeSet<String>;

/// A form after an edit.
#[derive(Debug, Clone)]
pub struct EditedForm {
    pub form: Form,
    /// The new questions, if they changed.
    pub version: Option<Version>,
    /// All retired ids, if they are more now.
    pub retired: Option<RetiredIds>,
}

impl Form {
    /// The new draft that `definition` describes, and the first version of its questions.
    pub fn create(
        id: FormId,
        workspace: WorkspaceId,
        definition: Definition,
        now: Timestamp,
    ) -> (Self, Version) {
        let Definition { title, description, slug, questions, settings } = definition;
        let form = Self {
            id,
            workspace,
            title,
            description,
            slug,
            status: FormStatus::Draft,
            settings,
            revision: 1,
            version: 1,
            created_at: now,
            updated_at: now,
            published_at: None,
            deleted_at: None,
        };
        (form, Version::new(1, now, questions))
    }

    /// What `change` makes of this form, whose questions are `current`; `None` if it is that way already. A change of its
    /// questions asks for the ids `retired` so far.
    ///
    /// Refuses ids of questions that were removed earlier, to retire more than [`MAX_RETIRED_IDS`], and to publish what
    /// asks for no answer.
    pub fn change(
        &self,
        current: &Version,
        retired: &RetiredIds,
        change: &FormPatch,
        now: Timestamp,
    ) -> Result<Option<EditedForm>, Refusal> {
        let mut form = self.clone();
        if let Some(title) = &change.title {
            form.title.clone_from(title);
        }
        change.description.apply(&mut form.description);
        change.slug.apply(&mut form.slug);
        if let Some(patch) = &change.settings {
            form.settings = self.settings.patched(patch).map_err(Refusal::InvalidDefinition)?;
        }
        let questions = match &change.questions {
            Some(drafts) => Some(current.replace(retired, drafts)?)
                .filter(|questions| !is_same_questions(questions, &current.questions)),
            None => None,
        };
        let retired = match &questions {
            Some(questions) => current.retire(retired, questions)?,
            None => None,
        };
        form.status = change.status.unwrap_or(form.status);
        let asks = questions.as_ref().unwrap_or(&current.questions);
        if form.status == FormStatus::Published
            && !asks.iter().any(|question| question.kind.rules().takes_answer())
        {
            return Err(Refusal::NoQuestions);
        }
        if form.status == FormStatus::Published && self.status == FormStatus::Draft {
            form.published_at = Some(now);
        }
        let version = questions.map(|questions| Version::new(self.version + 1, now, questions));
        form.version = version.as_ref().map_or(self.version, |version| version.number);
        if form == *self {
            return Ok(None);
        }
        form.revision += 1;
        form.updated_at = now;
        Ok(Some(EditedForm { form, version, retired }))
    }
}

impl StoredVersion {
    /// Reads the questions with the code that read their author's text, but without its limits: what was accepted once is
    /// accepted again. Compiles their patterns, which may take long. `None` if they cannot be read.
    pub fn read(&self) -> Option<Version> {
        let Ok(Value::Array(items)) = json::parse(self.questions.get()) else { return None };
        let mut budget = Budget::new(&Limits::UNLIMITED);
        let question = |(place, item)| {
            let draft = QuestionDraft::read(item, "", place, &mut budget, &mut Vec::new());
            draft.and_then(QuestionDraft::into_question)
        };
        let questions = items.iter().enumerate().map(question).collect::<Option<_>>()?;
        Some(Version::new(self.number, self.created_at, questions))
    }
}

/// Bytes of a compiled pattern besides those it [reports](crate::domain::pattern::Pattern::size).
const PATTERN_OVERHEAD: usize = 4_000;

impl Version {
    /// The version `number` of a form's questions.
    pub fn new(number: u32, created_at: Timestamp, questions: Vec<Question>) -> Self {
        let (mut pattern_bytes, mut searches) = (0, false);
        for question in &questions {
            question.for_each_text_search(&mut |pattern| {
                searches = true;
                pattern_bytes += pattern.map_or(0, |pattern| pattern.size() + PATTERN_OVERHEAD);
            });
        }
        Self { number, created_at, questions, pattern_bytes, searches }
    }

    /// Bytes that its compiled patterns take.
    pub fn pattern_bytes(&self) -> usize {
        self.pattern_bytes
    }

    /// Whether checking answers looks through their texts, by a `pattern`, a `matches` or an `includes`.
    pub fn searches(&self) -> bool {
        self.searches
    }

    /// The questions in canonical form, as they are kept and shown.
    pub fn to_stored(&self) -> StoredVersion {
        let questions = serde_json::value::to_raw_value(&self.questions).expect("questions are JSON");
        StoredVersion { number: self.number, created_at: self.created_at, questions }
    }

    /// The questions that `drafts` describe, in place of these.
    fn replace(&self, retired: &RetiredIds, drafts: &[QuestionDraft]) -> Result<Vec<Question>, Refusal> {
        refuse_retired(retired, drafts)?;
        let given = self.ids().chain(retired.iter().map(String::as_str)).collect();
        let wanted: Vec<_> = drafts.iter().map(|draft| (draft.id(), draft.takes_answer())).collect();
        let ids = assign_ids(&wanted, &given);
        let questions: Vec<_> = drafts.iter().zip(ids).map(|(draft, id)| draft.clone().with_id(id)).collect();
        let mut violations = Vec::new();
        lint_conditions(questions.iter().map(Question::lint_input), &mut violations);
        if violations.is_empty() { Ok(questions) } else { Err(Refusal::InvalidDefinition(violations)) }
    }

    /// All retired ids once `questions` have replaced these; `None` if none of these goes.
    fn retire(&self, retired: &RetiredIds, questions: &[Question]) -> Result<Option<RetiredIds>, Refusal> {
        let kept: HashSet<&str> = questions.iter().filter_map(|question| question.id.as_deref()).collect();
        let mut all = retired.clone();
        all.extend(self.ids().filter(|id| !kept.contains(id)).map(str::to_owned));
        if all.len() > MAX_RETIRED_IDS {
            let message =
                format!("{} questions were removed from this form, {MAX_RETIRED_IDS} may be", all.len());
            let violation = Violation::new("/questions", Rule::TooMany, message);
            return Err(Refusal::InvalidDefinition(vec![violation.help("create a new form")]));
        }
        Ok(Some(all).filter(|all| all.len() > retired.len()))
    }

    /// The ids of the questions that have one.
    pub(in crate::domain) fn ids(&self) -> impl Iterator<Item = &str> {
        self.questions.iter().filter_map(|question| question.id.as_deref())
    }
}

/// The ids of questions, which are `wanted` by their authors and needed where there can be an answer: the author's id,
/// else, if one is needed, the next free `q1`, `q2`, ... that was never `given`.
pub(in crate::domain) fn assign_ids(
    wanted: &[(Option<&str>, bool)],
    given: &HashSet<&str>,
) -> Vec<Option<String>> {
    let authors: HashSet<&str> = wanted.iter().filter_map(|(id, _)| *id).collect();
    let mut free = (1_u64..)
        .map(|number| format!("q{number}"))
        .filter(|id| !authors.contains(id.as_str()) && !given.contains(id.as_str()));
    let give = |(id, is_needed): &(Option<&str>, bool)| match id {
        None if *is_needed => free.next(),
        id => id.map(str::to_owned),
    };
    wanted.iter().map(give).collect()
}

fn refuse_retired(retired: &RetiredIds, drafts: &[QuestionDraft]) -> Result<(), Refusal> {
    let violations: Vec<_> = drafts
        .iter()
        .enumerate()
        .filter_map(|(place, draft)| Some((place, draft.id()?)))
        .filter(|(_, id)| retired.contains(*id))
        .map(|(place, id)| {
            let pointer = format!("/questions/{place}/id");
            let message = format!("`{id}` belonged to a question that was removed");
            Violation::new(pointer, Rule::RetiredQuestionId, message).question(id).help("choose another id")
        })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(Refusal::InvalidDefinition(violations)) }
}

/// Whether two lists of questions are the same in canonical form.
fn is_same_questions(one: &[Question], other: &[Question]) -> bool {
    let canonical = |questions: &[Question]| serde_json::to_string(questions).ok();
    canonical(one) == canonical(other)
}
