//! Parsing of one integration: the members that all types have, then those of its type.

use std::time::Duration;

use super::references::lint_fields;
use super::{DefinitionInput, GeneratedSecret, Parsed, READ_ONLY};
use crate::clock::DAY_MILLIS;
use crate::domain::condition::{Condition, lint_condition};
use crate::domain::form::slug::is_slug;
use crate::domain::integration::event::EventType;
use crate::domain::integration::sealer::Sealer;
use crate::domain::integration::settings::read_settings;
use crate::domain::integration::{FieldSelection, Integration, IntegrationKind, IntegrationType};
use crate::domain::json::{Value, join};
use crate::domain::question::Question;
use crate::domain::validation::budget::Budget;
use crate::domain::validation::fields::{Fields, no_help};
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::{Rule, Violation, shortened};
use crate::id::IntegrationId;

/// Maximum waits between attempts.
const MAX_RETRIES: usize = 20;

/// Maximum of all waits together, in milliseconds.
const MAX_RETRY_MILLIS: i64 = 7 * DAY_MILLIS;

/// Maximum characters of all patterns in a `when`, which is compiled for each delivery: up to 10 ms.
const MAX_PATTERN_TEXT: usize = 200;

/// Maximum bytes of a `when`: it is stored with the form.
const MAX_WHEN: usize = 10_000;

/// Maximum characters of a question id.
const MAX_ID: usize = 64;

impl Integration {
    /// Parses an integration called `name`, and reports every violation. Its secrets are sealed.
    pub(super) fn parse(
        value: &Value,
        name: Option<String>,
        input: DefinitionInput<'_>,
        violations: &mut Vec<Violation>,
    ) -> Option<Parsed> {
        let DefinitionInput { pointer, current, questions, context, .. } = input;
        let mut members = Fields::open(value, pointer, "the integration", violations)?;
        let integration_type = read_type(&mut members, current);
        if current.is_none() && context.policy.forbids_files {
            check_no_file(&mut members, integration_type);
        }
        check_name(&mut members);
        let enabled = members.flag("enabled").unwrap_or(true);
        let events = read_events(&mut members, integration_type);
        let when = read_when(&mut members, events.as_deref(), questions);
        let selection = members.value("fields");
        let retry = read_retry(&mut members);
        let id = current.map_or_else(|| IntegrationId::draw(context.random), |current| current.id);
        let settings = integration_type.and_then(|integration_type| {
            let before = members.violations.len();
            let sealer = Sealer { workspace: context.workspace, integration: id, vault: context.vault };
            let read = read_settings(integration_type.spec(), &mut members, input, sealer);
            integration_type.kind().check(&read.0, &mut members);
            (members.violations.len() == before).then_some(read)
        });
        if integration_type.is_none() {
            members.known.extend(IntegrationType::all_members().map(|member| member.name));
        }
        members.close(&READ_ONLY);
        let pointer = join(pointer, "fields");
        let fields =
            selection.and_then(|selection| read_selection(selection, &pointer, questions, violations));
        let (name, events, integration_type, (settings, secret)) =
            (name?, events?, integration_type?, settings?);
        let (created_at, updated_at) =
            current.map_or((context.now, context.now), |current| (current.created_at, current.updated_at));
        let notification = current.and_then(|current| current.notification);
        let generated = secret.map(|secret| GeneratedSecret { integration: name.clone(), secret });
        let kind = IntegrationKind { integration_type, settings };
        let mut parsed = Self {
            id,
            name,
            enabled,
            events,
            when,
            fields,
            retry,
            kind,
            address_numbers: Vec::new(),
            notification,
            created_at,
            updated_at,
        };
        if let Some(current) = current {
            parsed = parsed.with_numbered_addresses(current);
            if *current != parsed {
                parsed.updated_at = context.now;
            }
        }
        Some((parsed, generated))
    }
}

/// Returns the name of an integration: the one written, or else its type, then `webhook-2`. `None` if there is neither.
pub(super) fn name_of(item: &Value, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    if let Some(name) = item.get("name").and_then(Value::as_str) {
        return Some(name.to_owned());
    }
    let base = item.get("type")?.as_str()?;
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered).find(|name| !is_taken(name))
}

fn check_no_file(fields: &mut Fields<'_, '_>, integration_type: Option<IntegrationType>) {
    if integration_type == Some(IntegrationType::CsvFile) {
        let message =
            "this server stores in a database and writes no CSV files: a file is on one machine's disk";
        let help = "use a webhook or a spreadsheet, or export: forms responses export FORM -o csv";
        fields.refuse("type", Rule::AddressNotAllowed, message).help = Some(help.to_owned());
    }
}

fn check_name(fields: &mut Fields<'_, '_>) {
    // Like a slug, or like the name of a type, but never like an id.
    let is_valid = |name: &str| is_slug(&name.replace('_', "-")) && name.parse::<IntegrationId>().is_err();
    if fields.string("name").is_some_and(|name| !is_valid(name)) {
        let message = "`name` has lower-case letters, digits, single hyphens and underscores, 64 at most";
        fields.refuse("name", Rule::InvalidSlug, message);
    }
}

fn read_type(fields: &mut Fields<'_, '_>, current: Option<&Integration>) -> Option<IntegrationType> {
    let Value::String(name) = fields.required("type")? else {
        fields.refuse("type", Rule::TypeMismatch, "`type` must be text");
        return None;
    };
    let found = IntegrationType::parse(name);
    if found.is_none() {
        let message = format!("unknown integration type `{}`", shortened(name));
        let violation = Violation::new(fields.pointer_to("type"), Rule::UnknownIntegrationType, message);
        fields.violations.push(violation.allowed(name, IntegrationType::ALL.map(IntegrationType::name)));
    }
    if let (Some(found), Some(current)) = (found, current)
        && found != current.kind.integration_type
    {
        let message = format!("the type of `{}` cannot be changed", current.name);
        let violation = Violation::new(fields.pointer_to("type"), Rule::ReadOnlyField, message);
        fields.violations.push(violation.help("delete the integration and create another"));
        return None;
    }
    found
}

fn read_events(fields: &mut Fields<'_, '_>, kind: Option<IntegrationType>) -> Option<Vec<EventType>> {
    if fields.value("events").is_none() {
        return Some(vec![EventType::SubmissionCompleted]);
    }
    let items = fields.typed("events", "a list of events", Value::as_array, no_help)?;
    if items.is_empty() {
        let refused = fields.refuse("events", Rule::Empty, "`events` must not be empty");
        refused.help = Some("to send nothing, set `enabled` to false".to_owned());
    }
    let allowed = kind.map_or(&EventType::SUBSCRIBABLE[..], |kind| kind.spec().events);
    let mut events = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let pointer = join(&fields.pointer_to("events"), &place.to_string());
        match (item.as_str(), item.as_str().and_then(EventType::parse)) {
            (_, Some(event)) if events.contains(&event) => {
                let message = format!("the event `{event}` is given twice");
                fields.violations.push(Violation::new(pointer, Rule::DuplicateOption, message));
            }
            (_, Some(event)) if allowed.contains(&event) => events.push(event),
            (Some(text), _) => {
                let message = format!("`{}` is not an event that this type reports", shortened(text));
                let violation = Violation::new(pointer, Rule::NotAnOption, message);
                fields.violations.push(violation.allowed(text, allowed.iter().map(|event| event.name())));
            }
            (None, _) => {
                fields.violations.push(Violation::wrong_type(pointer, "events", "a list of events", item));
            }
        }
    }
    Some(events)
}

/// Returns the condition as written, if it is valid.
fn read_when(
    fields: &mut Fields<'_, '_>,
    events: Option<&[EventType]>,
    questions: Option<&[Question]>,
) -> Option<Box<str>> {
    let before = fields.violations.len();
    let mut budget = Budget::new(&Limits { pattern_text: MAX_PATTERN_TEXT, ..Limits::default() });
    let condition = Condition::read(fields, "when", &mut budget)?;
    if events.is_some_and(|events| !events.iter().any(|event| event.has_answers())) {
        let message = "`when` needs an event with answers, such as submission.completed";
        fields.refuse("when", Rule::InvalidRange, message);
    }
    if let Some(questions) = questions.filter(|_| fields.violations.len() == before) {
        let pointer = fields.pointer_to("when");
        lint_condition(&condition, questions, &pointer, fields.violations);
    }
    let written = serde_json::to_string(&condition).expect("a condition is JSON");
    if written.len() > MAX_WHEN {
        let message = format!("`when` has {} bytes, {MAX_WHEN} are allowed", written.len());
        fields.refuse("when", Rule::TooLong, message);
    }
    Some(written.into())
}

fn read_selection(
    value: &Value,
    pointer: &str,
    questions: Option<&[Question]>,
    violations: &mut Vec<Violation>,
) -> Option<FieldSelection> {
    let mut fields = Fields::open(value, pointer, "`fields`", violations)?;
    let (only, except) = (fields.texts("only", MAX_ID), fields.texts("except", MAX_ID));
    let (has_only, has_except) = (fields.value("only").is_some(), fields.value("except").is_some());
    if has_only && has_except {
        fields.refuse("except", Rule::InvalidRange, "`only` and `except` exclude each other");
    } else if !has_only && !has_except {
        fields.refuse("only", Rule::MissingField, "`only` or `except` is missing");
    }
    fields.close(&[]);
    let selection = only.map(FieldSelection::Only).or(except.map(FieldSelection::Except))?;
    if let Some(questions) = questions {
        lint_fields(&selection, questions, pointer, violations);
    }
    Some(selection)
}

/// Returns the waits between attempts in milliseconds.
fn read_retry(fields: &mut Fields<'_, '_>) -> Option<Vec<i64>> {
    let items = fields.typed("retry", "a list of durations such as \"5m\"", Value::as_array, no_help)?;
    if items.len() > MAX_RETRIES {
        let message = format!("`retry` has {} waits, {MAX_RETRIES} are allowed", items.len());
        fields.refuse("retry", Rule::TooMany, message);
        return None;
    }
    let mut waits = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let wait = item.as_str().and_then(parse_wait);
        if wait.is_none() {
            let message = format!("expected a duration such as \"30s\" or \"2h\", found {}", shown(item));
            fields.refuse_item("retry", place, Rule::InvalidRange, message);
        }
        waits.extend(wait);
    }
    if waits.iter().fold(0_i64, |sum, wait| sum.saturating_add(*wait)) > MAX_RETRY_MILLIS {
        fields.refuse("retry", Rule::InvalidRange, "all waits of `retry` are at most 7 days together");
    }
    Some(waits)
}

/// Parses a wait of at least a millisecond.
fn parse_wait(text: &str) -> Option<i64> {
    let wait = humantime::parse_duration(text).ok().filter(|wait| *wait >= Duration::from_millis(1))?;
    Some(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn shown(item: &Value) -> String {
    match item {
        Value::String(text) => format!("\"{}\"", shortened(text)),
        other => other.kind().to_owned(),
    }
}
