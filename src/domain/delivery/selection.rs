//! Selections of deliveries as callers send them, in a query or a body.

use super::DeliveryStatus;
use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::rate::Rate;
use crate::domain::validation::fields::{Fields, no_help};
use crate::domain::validation::violation::{Rule, Violation, collect_violations, join, shortened};
use crate::id::{IntegrationId, SubmissionId};

/// Which deliveries a request is about, with forms and integrations as they were named, and how it changes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliverySelection {
    /// Id or slug.
    pub form: Option<String>,
    /// Id, or with a form also the name.
    pub integration: Option<String>,
    pub submission: Option<SubmissionId>,
    /// Empty for the operation's default.
    pub status: Vec<DeliveryStatus>,
    /// Earliest time of the event.
    pub since: Option<Timestamp>,
    /// The time of the event is earlier.
    pub until: Option<Timestamp>,
    /// Only count.
    pub dry_run: bool,
    /// How fast to send again; `None` for at once.
    pub rate: Option<Rate>,
}

impl DeliverySelection {
    /// Parses the members of a selection, `rate` only if the operation `has_rate`.
    pub fn read(body: &Value, has_rate: bool) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| {
            let mut fields = Fields::open(body, "", "the selection", violations)?;
            let form = fields.string("form").map(str::to_owned);
            let integration = fields.string("integration").map(str::to_owned);
            if form.is_none()
                && integration.as_ref().is_some_and(|name| name.parse::<IntegrationId>().is_err())
            {
                let message = "a name needs the form that it belongs to";
                let help = "add `form`, or use the integration's id";
                fields.refuse("integration", Rule::MissingField, message).help = Some(help.to_owned());
            }
            let read_id = |value: &Value| value.as_str()?.parse().ok();
            let submission = fields.typed("submission", "the id of a submission", read_id, no_help);
            let status = read_status(&mut fields).unwrap_or_default();
            let [since, until] = ["since", "until"].map(|name| fields.timestamp(name));
            if let [Some(since), Some(until)] = [since, until]
                && since > until
            {
                fields.refuse("since", Rule::InvalidRange, format!("{since} is after {until}"));
            }
            let dry_run = fields.flag("dry_run").unwrap_or_default();
            let read_rate = |value: &Value| value.as_str()?.parse().ok();
            let rate = match has_rate {
                true => fields.typed("rate", "a rate such as \"10/s\"", read_rate, no_help),
                false => None,
            };
            fields.close(&[]);
            Some(Self { form, integration, submission, status, since, until, dry_run, rate })
        })
    }
}

/// Parses the member `status`: a list of names, or a text with commas.
fn read_status(fields: &mut Fields<'_, '_>) -> Option<Vec<DeliveryStatus>> {
    let pointer = fields.pointer_to("status");
    let names: Vec<(String, &str)> = match fields.value("status")? {
        Value::String(text) => text.split(',').map(|name| (pointer.clone(), name.trim())).collect(),
        Value::Array(items) => (0..)
            .zip(items)
            .map(|(place, item): (usize, _)| {
                (join(&pointer, &place.to_string()), item.as_str().unwrap_or_default())
            })
            .collect(),
        other => {
            fields.violations.push(Violation::wrong_type(pointer, "status", "a list of statuses", other));
            return None;
        }
    };
    if names.is_empty() {
        fields.refuse("status", Rule::Empty, "`status` must not be empty");
    }
    let mut statuses = Vec::new();
    for (pointer, name) in names {
        match DeliveryStatus::parse(name) {
            Some(status) => statuses.push(status),
            None => {
                let message = format!("`{}` is not a valid status", shortened(name));
                let violation = Violation::new(pointer, Rule::NotAnOption, message);
                let names = DeliveryStatus::ALL.map(DeliveryStatus::name);
                fields.violations.push(violation.allowed(name, names));
            }
        }
    }
    Some(statuses)
}
