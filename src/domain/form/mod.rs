//! Forms: status, versions of the questions, and the assignment of question ids in edits.

pub mod admission;
pub mod definition;
pub mod filter;
pub mod json_schema;
pub mod settings;
pub mod slug;
pub mod theme;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::domain::condition::lint_conditions;
use crate::domain::form::admission::Refusal;
use crate::domain::form::definition::{Definition, FormPatch};
use crate::domain::form::settings::{Settings, check_page_size};
use crate::domain::integration::Integration;
use crate::domain::integration::definition::{DefinitionContext, GeneratedSecret, lint_references};
use crate::domain::integration::event::EventType;
use crate::domain::json::{self, Value};
use crate::domain::open_enum::named_enum;
use crate::domain::question::Question;
use crate::domain::validation::budget::Budget;
use crate::domain::validation::limits::{Limits, MAX_RETIRED_IDS};
use crate::domain::validation::violation::{Rule, Violation, collect_violations};
use crate::id::{FormId, FormRef, IntegrationId, WorkspaceId};

named_enum! {
    FormStatus {
        Draft = "draft",
        Published = "published",
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
    /// The name chosen by the author; unique among the forms of the workspace outside the trash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    pub status: FormStatus,
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// Integrations, in the order written; names are unique.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub integrations: Vec<Integration>,
    /// Incremented by every change of the form; submissions do not change it.
    pub revision: u64,
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// An immutable version of a form's questions, with compiled patterns. Every edit of the questions creates the next.
#[derive(Debug, Clone)]
pub struct Version {
    pub number: u32,
    pub created_at: Timestamp,
    pub questions: Vec<Question>,
    /// Bytes of memory taken by the compiled patterns.
    pub pattern_bytes: usize,
    /// Whether checking answers searches their texts, by a `pattern`, a `matches` or an `includes`.
    pub searches: bool,
}

/// A [`Version`] as JSON, for storage and output. Must be parsed to check answers, which may take long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredVersion {
    pub number: u32,
    pub created_at: Timestamp,
    pub questions: Box<RawValue>,
}

/// The ids of questions that were removed from a form. None is generated again.
pub type RetiredIds = BTreeSet<String>;

/// The questions that were removed from a form.
#[derive(Debug, Clone, Default)]
pub struct RetiredQuestions {
    pub ids: RetiredIds,
    /// The last type of each that a change brings back.
    pub types: BTreeMap<String, String>,
}

impl RetiredQuestions {
    /// Creates the list from `ids` before their types are known.
    pub fn new(ids: RetiredIds) -> Self {
        Self { ids, types: BTreeMap::new() }
    }

    /// Returns the ids that `change` brings back and whose types are not known.
    pub fn untyped<'a>(&'a self, change: &'a FormPatch) -> impl Iterator<Item = &'a str> {
        let questions = change.questions.iter().flatten();
        let ids = questions.filter_map(|question| question.id.as_deref());
        ids.filter(|id| self.ids.contains(*id) && !self.types.contains_key(*id))
    }

    /// Adds the types of the ids that `change` brings back from `version`, if they are not known from a newer one.
    pub fn learn_types(&mut self, change: &FormPatch, version: &StoredVersion) {
        let mut types = version.question_types();
        let wanted: Vec<_> = self.untyped(change).map(str::to_owned).collect();
        self.types.extend(wanted.into_iter().filter_map(|id| types.remove_entry(&id)));
    }

    /// Reports that `draft`, the question at `place`, has the id of a removed question of another type.
    fn check(&self, place: usize, draft: &Question) -> Option<Violation> {
        let id = draft.id.as_deref().filter(|id| self.ids.contains(*id))?;
        let old = self.types.get(id).map_or("unknown", String::as_str);
        if old == draft.kind.name() {
            return None;
        }
        let message = format!("`{id}` belonged to a question of type `{old}` that was removed");
        let violation = Violation::new(format!("/questions/{place}/id"), Rule::RetiredQuestionId, message);
        Some(violation.question(id).help(format!("choose another id, or the type `{old}`")))
    }
}

#[derive(Debug, Clone)]
pub struct EditedForm {
    pub form: Form,
    pub version: Option<Version>,
    /// All retired ids, if they changed.
    pub retired: Option<RetiredIds>,
    /// The secrets that were generated for integrations.
    pub generated: Vec<GeneratedSecret>,
}

impl Form {
    pub fn reference(&self) -> FormRef {
        self.workspace.form(self.id)
    }

    /// Creates a draft from `definition`, and the first version of its questions.
    pub fn create(
        id: FormId,
        workspace: WorkspaceId,
        definition: Definition,
        now: Timestamp,
    ) -> (Self, Version) {
        let Definition { title, description, slug, questions, settings, integrations, generated: _ } =
            definition;
        let form = Self {
            id,
            workspace,
            title,
            description,
            slug,
            status: FormStatus::Draft,
            settings,
            integrations,
            revision: 1,
            version: 1,
            created_at: now,
            updated_at: now,
            published_at: None,
            deleted_at: None,
        };
        (form, Version::new(1, now, questions))
    }

    /// The event that a change of its status to `after` is, if any.
    pub fn status_event(&self, after: FormStatus) -> Option<EventType> {
        match (self.status, after) {
            (FormStatus::Draft, FormStatus::Published) => Some(EventType::FormPublished),
            (FormStatus::Published, FormStatus::Draft) => Some(EventType::FormUnpublished),
            _ => None,
        }
    }

    /// Returns the ids of the integrations that an event of this type is owed to.
    pub fn subscribers(&self, event: EventType) -> impl Iterator<Item = &Integration> {
        self.integrations.iter().filter(move |one| one.subscribes(event))
    }

    pub fn integration(&self, id: IntegrationId) -> Option<&Integration> {
        self.integrations.iter().find(|one| one.id == id)
    }

    /// The integrations that were enabled, or got other settings, since they were those of `before`: a pause by the server ends,
    /// since its reason may be gone.
    pub fn resumed_integrations(&self, before: &[Integration]) -> Vec<IntegrationId> {
        let is_resumed = |now: &&Integration| {
            let earlier = before.iter().find(|earlier| earlier.id == now.id);
            now.enabled && earlier.is_some_and(|earlier| !earlier.enabled || earlier.kind != now.kind)
        };
        self.integrations.iter().filter(is_resumed).map(|one| one.id).collect()
    }

    /// Applies `change` to this form, whose questions are `current`; `None` if nothing changes. `retired` are the
    /// questions that were removed before.
    ///
    /// # Errors
    /// Refuses to bring back a question with another type, to retire more than [`MAX_RETIRED_IDS`], to remove a question that
    /// an integration refers to, and to publish a form without a question to answer.
    pub fn change(
        &self,
        current: &Version,
        retired: &RetiredQuestions,
        change: &FormPatch,
        context: DefinitionContext<'_>,
    ) -> Result<Option<EditedForm>, Refusal> {
        let context = DefinitionContext { workspace: self.workspace, ..context };
        let now = context.now;
        let mut form = self.clone();
        if let Some(title) = &change.title {
            form.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            form.description.clone_from(description);
        }
        if let Some(slug) = &change.slug {
            form.slug.clone_from(slug);
        }
        if let Some(patch) = &change.settings {
            form.settings = self.settings.patched(patch).map_err(Refusal::InvalidDefinition)?;
        }
        let canonical = |questions: &[Question]| serde_json::to_string(questions).ok();
        let questions = match &change.questions {
            Some(drafts) => Some(current.replace(retired, drafts)?)
                .filter(|questions| canonical(questions) != canonical(&current.questions)),
            None => None,
        };
        let retired = match &questions {
            Some(questions) => current.retire(&retired.ids, questions)?,
            None => None,
        };
        form.status = change.status.unwrap_or(form.status);
        let questions_after = questions.as_ref().unwrap_or(&current.questions);
        if let Some(violation) = check_page_size(questions_after).filter(|_| form.settings.is_public()) {
            return Err(Refusal::InvalidDefinition(vec![violation]));
        }
        let mut generated = Vec::new();
        let lists = change.integration_lists();
        if !lists.is_empty() || questions.is_some() {
            let replaced = collect_violations(|violations| {
                let current = &self.integrations;
                if !lists.is_empty() {
                    return Integration::replace_all(current, lists, questions_after, context, violations);
                }
                lint_references(current, questions_after, violations);
                Some((current.clone(), Vec::new()))
            });
            (form.integrations, generated) = replaced.map_err(Refusal::InvalidDefinition)?;
        }
        if form.status == FormStatus::Published && !questions_after.iter().any(Question::takes_answer) {
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
        Ok(Some(EditedForm { form, version, retired, generated }))
    }
}

impl StoredVersion {
    /// Returns the types of the questions by id. Unlike [`read`](Self::read), it compiles nothing.
    fn question_types(&self) -> BTreeMap<String, String> {
        #[derive(Deserialize)]
        struct Typed {
            id: Option<String>,
            #[serde(rename = "type")]
            kind: String,
        }
        let questions: Vec<Typed> = serde_json::from_str(self.questions.get()).unwrap_or_default();
        questions.into_iter().filter_map(|question| Some((question.id?, question.kind))).collect()
    }

    /// Parses the questions with the parser for definitions, but without limits: what was accepted once is accepted again.
    /// Compiles their patterns, which may take long. `None` if the questions are not valid.
    pub fn read(&self) -> Option<Version> {
        let Ok(Value::Array(items)) = json::parse(self.questions.get()) else { return None };
        let mut budget = Budget::new(&Limits::UNLIMITED);
        let question = |(place, item)| Question::read(item, "", place, &mut budget, &mut Vec::new());
        let questions = items.iter().enumerate().map(question).collect::<Option<_>>()?;
        Some(Version::new(self.number, self.created_at, questions))
    }
}

/// Bytes of a compiled pattern beyond those it [reports](crate::domain::pattern::Pattern::size).
const PATTERN_OVERHEAD: usize = 4_000;

impl Version {
    pub fn new(number: u32, created_at: Timestamp, questions: Vec<Question>) -> Self {
        let searches: Vec<_> = questions.iter().flat_map(Question::text_searches).collect();
        let patterns = searches.iter().copied().flatten();
        let pattern_bytes = patterns.map(|pattern| pattern.size() + PATTERN_OVERHEAD).sum();
        let searches = !searches.is_empty();
        Self { number, created_at, questions, pattern_bytes, searches }
    }

    pub fn to_stored(&self) -> StoredVersion {
        let questions = serde_json::value::to_raw_value(&self.questions).expect("questions are JSON");
        StoredVersion { number: self.number, created_at: self.created_at, questions }
    }

    /// Builds the questions that replace these from `drafts`, and assigns missing ids.
    fn replace(&self, retired: &RetiredQuestions, drafts: &[Question]) -> Result<Vec<Question>, Refusal> {
        let numbered = drafts.iter().enumerate();
        let mut violations: Vec<_> =
            numbered.filter_map(|(place, draft)| retired.check(place, draft)).collect();
        let used = self.ids().chain(retired.ids.iter().map(String::as_str)).collect();
        let wanted: Vec<_> = drafts.iter().map(|draft| (draft.id.as_deref(), draft.takes_answer())).collect();
        let ids = assign_ids(&wanted, &used);
        let questions: Vec<_> = drafts.iter().zip(ids).map(|(draft, id)| draft.clone().with_id(id)).collect();
        let asked = questions.iter().map(|question| (question.id.as_deref(), Some(question)));
        lint_conditions(asked, &mut violations);
        if violations.is_empty() { Ok(questions) } else { Err(Refusal::InvalidDefinition(violations)) }
    }

    /// Returns all retired ids after `questions` replace these; `None` if they stay the same.
    fn retire(&self, retired: &RetiredIds, questions: &[Question]) -> Result<Option<RetiredIds>, Refusal> {
        let kept: HashSet<&str> = questions.iter().filter_map(|question| question.id.as_deref()).collect();
        let all = retired.iter().map(String::as_str).chain(self.ids());
        let all: RetiredIds = all.filter(|id| !kept.contains(id)).map(str::to_owned).collect();
        if all.len() > MAX_RETIRED_IDS {
            let message =
                format!("{} questions were removed from this form, {MAX_RETIRED_IDS} are allowed", all.len());
            let violation = Violation::new("/questions", Rule::TooMany, message);
            return Err(Refusal::InvalidDefinition(vec![violation.help("create a new form")]));
        }
        Ok(Some(all).filter(|all| all != retired))
    }

    /// Returns an example of an answer to each question, as an object. Conditions and optional settings are ignored.
    pub fn example_answers(&self) -> Value {
        let asked = self.questions.iter().filter(|question| question.takes_answer());
        let answer = |question: &Question| Some((question.id.clone()?, question.kind.rules().example()));
        Value::Object(asked.filter_map(answer).collect())
    }

    pub(in crate::domain) fn ids(&self) -> impl Iterator<Item = &str> {
        self.questions.iter().filter_map(|question| question.id.as_deref())
    }
}

/// Assigns ids to questions. Each item of `wanted` is the author's id, if any, and whether an id is needed: a needed one
/// that is missing becomes the next of `q1`, `q2`, ... that is neither wanted nor in `used`.
pub(in crate::domain) fn assign_ids(
    wanted: &[(Option<&str>, bool)],
    used: &HashSet<&str>,
) -> Vec<Option<String>> {
    let authors: HashSet<&str> = wanted.iter().filter_map(|(id, _)| *id).collect();
    let mut free = (1_u64..)
        .map(|number| format!("q{number}"))
        .filter(|id| !authors.contains(id.as_str()) && !used.contains(id.as_str()));
    let assign = |(id, is_needed): &(Option<&str>, bool)| match id {
        None if *is_needed => free.next(),
        id => id.map(str::to_owned),
    };
    wanted.iter().map(assign).collect()
}
