//! Parsing of requests that create or rotate keys.

use std::collections::HashMap;
use std::time::Duration;

use super::{ApiKey, MAX_NAME, Scope};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::json::Value;
use crate::domain::validation::fields::{Fields, no_help};
use crate::domain::validation::similar::nearest_first;
use crate::domain::validation::violation::{Rule, Violation, collect_violations, shortened};
use crate::id::{FormId, WorkspaceId};
use crate::secret::KeyText;

/// Maximum forms in the limit of a key.
const MAX_FORMS: usize = 100;

/// Maximum grace period of a rotation, in days.
const MAX_GRACE_DAYS: i64 = 30;

/// The workspace and the forms that a request for a key names.
#[derive(Debug, Clone, Default)]
pub struct KeyReferences {
    /// The workspace of the key; `None` if there is none with the id in the request.
    pub workspace: Option<WorkspaceId>,
    /// Forms of that workspace by id or slug, as in the request.
    pub forms: HashMap<String, FormId>,
}

/// Returns the scopes that the caller needs for the request for a key, `body`.
pub fn needed_scopes(body: &Value) -> Vec<Scope> {
    let asked = body.get("scopes").and_then(Value::as_array).unwrap_or_default();
    let asks_for_operator = asked.iter().any(|scope| scope.as_str() == Some(Scope::Operator.name()));
    let manages = if named_workspace(body).is_some() { Scope::Operator } else { Scope::Admin };
    [Some(manages), asks_for_operator.then_some(Scope::Operator)].into_iter().flatten().collect()
}

/// Returns the workspace that the request for a key names.
pub fn named_workspace(body: &Value) -> Option<&Value> {
    body.get("workspace").filter(|value| **value != Value::Null)
}

/// Returns the forms that the request for a key names, as far as a valid request may name any.
pub fn named_forms(body: &Value) -> impl Iterator<Item = &str> {
    let items = body.get("forms").and_then(Value::as_array).unwrap_or_default();
    items.iter().take(MAX_FORMS).filter_map(Value::as_str)
}

impl ApiKey {
    /// Parses the body of a create request, for a key with the text `text`; the error lists all violations.
    pub fn read(
        body: &Value,
        references: &KeyReferences,
        text: &KeyText,
        now: Timestamp,
    ) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| {
            let mut fields = Fields::open(body, "", "the key", violations)?;
            let name = fields.required_text("name", MAX_NAME);
            let scopes = fields.required("scopes").and_then(|_| read_scopes(&mut fields));
            let forms = read_forms(&mut fields, references);
            let expires_at = fields.timestamp("expires_at");
            if expires_at.is_some_and(|end| end <= now) {
                fields.refuse("expires_at", Rule::InvalidRange, "`expires_at` must be in the future");
            }
            if fields.string("workspace").is_some() && references.workspace.is_none() {
                fields.refuse("workspace", Rule::UnknownReference, "there is no workspace with this id");
            }
            fields.close(&["id", "key", "created_at", "last_used_at"]);
            Some(Self {
                id: text.id(),
                workspace: references.workspace?,
                name: name?,
                hash: text.hash(),
                scopes: scopes?,
                forms,
                created_at: now,
                expires_at,
                ends_at: None,
            })
        })
    }
}

fn read_scopes(fields: &mut Fields<'_, '_>) -> Option<Vec<Scope>> {
    let items = fields.list("scopes", Scope::ALL.len())?;
    let mut scopes = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match (item.as_str(), item.as_str().and_then(Scope::parse)) {
            (_, Some(scope)) if scopes.contains(&scope) => {
                let message = format!("the scope `{scope}` is given twice");
                fields.refuse_item("scopes", place, Rule::DuplicateOption, message);
            }
            (_, Some(scope)) => scopes.push(scope),
            (Some(text), None) => {
                let message = format!("`{}` is not a valid scope", shortened(text));
                let violation = fields.refuse_item("scopes", place, Rule::NotAnOption, message);
                violation.allowed = nearest_first(text, Scope::ALL.map(Scope::name));
            }
            (None, None) => {
                let message = format!("`scopes` must be a list of names, not {}", item.kind());
                fields.refuse_item("scopes", place, Rule::TypeMismatch, message);
            }
        }
    }
    Some(scopes)
}

fn read_forms(fields: &mut Fields<'_, '_>, references: &KeyReferences) -> Option<Vec<FormId>> {
    let items = fields.list("forms", MAX_FORMS)?;
    let mut forms = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match (item.as_str(), item.as_str().and_then(|text| references.forms.get(text))) {
            (_, Some(form)) if forms.contains(form) => {}
            (_, Some(form)) => forms.push(*form),
            // Without the workspace, its forms are not known.
            (Some(_), None) if references.workspace.is_none() => {}
            (Some(text), None) => {
                let message = format!("there is no form `{}`", shortened(text));
                fields.refuse_item("forms", place, Rule::UnknownReference, message);
            }
            (None, None) => {
                let message = format!("`forms` must be a list of ids and slugs, not {}", item.kind());
                fields.refuse_item("forms", place, Rule::TypeMismatch, message);
            }
        }
    }
    Some(forms)
}

/// Parses the body of a rotation: how long the old key or secret stays valid, in milliseconds.
pub fn read_grace(body: &Value, default_millis: i64) -> Result<i64, Vec<Violation>> {
    collect_violations(|violations| {
        let mut fields = Fields::open(body, "", "the rotation", violations)?;
        let wanted = "a duration such as \"24h\"";
        let read = |value: &Value| humantime::parse_duration(value.as_str()?).ok();
        let grace = fields.typed("grace", wanted, read, no_help);
        let millis = |grace: Duration| i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
        let millis = grace.map_or(default_millis, millis);
        if millis > MAX_GRACE_DAYS * DAY_MILLIS {
            let message = format!("`grace` is at most {MAX_GRACE_DAYS} days");
            fields.refuse("grace", Rule::InvalidRange, message);
        }
        fields.close(&[]);
        Some(millis)
    })
}
