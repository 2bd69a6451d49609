//! Criteria of deliveries as callers send them, in a query or a body.

use super::DeliveryStatus;
use crate::clock::Timestamp;
use crate::domain::json::Value;
use crate::domain::rate::Rate;
use crate::domain::validation::fields::{Fields, no_help};
use crate::domain::validation::violation::{Rule, Violation, collect_violations, join, shortened};
use crate::id::SubmissionId;

/// Criteria of a list of deliveries, with forms and integrations as they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliverySelection {
    /// Id or slug.
    pub form: Option<String>,
    /// Id, or with a form also the name.
    pub integration: Option<String>,
    pub submission: Option<SubmissionId>,
    /// Empty for all.
    pub status: Vec<DeliveryStatus>,
    /// Earliest time of the event.
    pub since: Option<Timestamp>,
    /// The time of the event is earlier.
    pub until: Option<Timestamp>,
}

/// A request to change all deliveries of a selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BulkRequest {
    pub selection: DeliverySelection,
    /// Only count.
    pub dry_run: bool,
    /// How fast to send; `None` for at once.
    pub rate: Option<Rate>,
}

impl DeliveryStatus {
    /// Parses names separated by commas. The error is the first unknown one.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, &str> {
        text.split(',').map(str::trim).map(|name| Self::parse(name).ok_or(name)).collect()
    }
}

impl BulkRequest {
    /// Parses a request to deliver again: by default those that failed for good.
    pub fn read_redelivery(body: &Value) -> Result<Self, Vec<Violation>> {
        Self::read(body, true, &[DeliveryStatus::Dead])
    }

    /// Parses a request to cancel: by default all that wait.
    pub fn read_cancellation(body: &Value) -> Result<Self, Vec<Violation>> {
        Self::read(body, false, &[DeliveryStatus::Pending, DeliveryStatus::Paused])
    }

    fn read(body: &Value, has_rate: bool, default: &[DeliveryStatus]) -> Result<Self, Vec<Violation>> {
        collect_violations(|violations| {
            let mut fields = Fields::open(body, "", "the selection", violations)?;
            let form = fields.string("form").map(str::to_owned);
            let integration = fields.string("integration").map(str::to_owned);
            let read_id = |value: &Value| value.as_str()?.parse().ok();
            let submission = fields.typed("submission", "the id of a submission", read_id, no_help);
            let status = read_status(&mut fields).unwrap_or_else(|| default.to_vec());
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
            let selection = DeliverySelection { form, integration, submission, status, since, until };
            Some(Self { selection, dry_run, rate })
        })
    }
}

/// Parses the member `status`: a list of names, or a text with commas.
fn read_status<'a>(fields: &mut Fields<'a, '_>) -> Option<Vec<DeliveryStatus>> {
    let value = fields.value("status")?;
    let pointer = fields.pointer_to("status");
    let items: Vec<(String, &str)> = match value {
        Value::String(text) => text.split(',').map(|name| (pointer.clone(), name.trim())).collect(),
        Value::Array(items) if !items.is_empty() => {
            let item = |(place, item): (usize, &'a Value)| {
                (join(&pointer, &place.to_string()), item.as_str().unwrap_or_default())
            };
            items.iter().enumerate().map(item).collect()
        }
        Value::Array(_) => {
            fields.refuse("status", Rule::Empty, "`status` must not be empty");
            return None;
        }
        other => {
            fields.violations.push(Violation::wrong_type(pointer, "status", "a list of statuses", other));
            return None;
        }
    };
    let mut statuses = Vec::new();
    for (pointer, name) in items {
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

#[cfg(test)]
mod tests {
    use super::{BulkRequest, DeliveryStatus};
    use crate::domain::json::parse;

    #[test]
    fn a_selection_reports_every_member_that_is_not_valid() {
        let body = r#"{"form":1,"submission":"sub_1","status":["dead","late"],"since":"2026-01-02T00:00:00Z",
            "until":"2026-01-01T00:00:00Z","dry_run":"yes","rate":"fast","other":1}"#;
        let violations = BulkRequest::read_redelivery(&parse(body).unwrap()).unwrap_err();
        let pointers: Vec<_> = violations.iter().map(|violation| violation.pointer.as_str()).collect();
        assert_eq!(pointers, ["/form", "/submission", "/status/1", "/since", "/dry_run", "/rate", "/other"]);
    }

    #[test]
    fn statuses_are_a_list_or_a_text_and_have_a_default() {
        let read = |body| BulkRequest::read_redelivery(&parse(body).unwrap()).unwrap().selection.status;
        assert_eq!(read("{}"), [DeliveryStatus::Dead]);
        let both = [DeliveryStatus::Dead, DeliveryStatus::InFlight];
        assert_eq!(read(r#"{"status":["dead","in_flight"]}"#), both);
        assert_eq!(read(r#"{"status":"dead, in_flight"}"#), both);
        for body in [r#"{"status":""}"#, r#"{"status":[]}"#, r#"{"status":[1]}"#, r#"{"status":3}"#] {
            assert!(BulkRequest::read_redelivery(&parse(body).unwrap()).is_err(), "{body}");
        }
        assert!(BulkRequest::read_cancellation(&parse(r#"{"rate":"1/s"}"#).unwrap()).is_err());
    }
}
