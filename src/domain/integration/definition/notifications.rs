//! `notifications` of a form: the short way to write `email` integrations.

use crate::domain::integration::email::{BODY, SUBJECT, TO};
use crate::domain::integration::event::EventType;
use crate::domain::integration::{Integration, IntegrationKind, NotificationStyle};
use crate::domain::json::{self, Value, join};
use crate::domain::question::json::object;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Violation;

/// The member of a form.
pub(super) const ROOT: &str = "/notifications";

/// Characters of an address.
const MAX_ADDRESS: usize = 254;

/// A notification as an integration.
pub(super) struct Expanded {
    pub style: NotificationStyle,
    pub integration: Value,
}

impl Expanded {
    /// Converts a notification at `pointer`: an address, or an object.
    pub(super) fn of(item: &Value, pointer: &str, violations: &mut Vec<Violation>) -> Option<Self> {
        if let Value::String(address) = item {
            let integration = expand(address, Vec::new());
            return Some(Self { style: NotificationStyle::Address, integration });
        }
        let mut fields = Fields::open(item, pointer, "a notification", violations)?;
        let address = fields.required_text("email", MAX_ADDRESS);
        let mut member = |name| (name, fields.value(name).cloned());
        let own = [member(SUBJECT), member(BODY), member("when")];
        fields.close(&[]);
        let integration = expand(&address?, own.into());
        Some(Self { style: NotificationStyle::Object, integration })
    }
}

fn expand(address: &str, own: Vec<(&'static str, Option<Value>)>) -> Value {
    let common = [
        ("type", Some(Value::from("email"))),
        ("name", Some(Value::String(name_of(address)))),
        (TO, Some([address].into_iter().collect())),
    ];
    let present = common.into_iter().chain(own).filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// Returns the name of the notification to `address`: `notify-team-example-com`.
fn name_of(address: &str) -> String {
    const MAX_NAME: usize = 64;
    let mut name = "notify".to_owned();
    for word in address.to_lowercase().split(|found: char| !found.is_ascii_alphanumeric()) {
        if !word.is_empty() && name.len() + 1 + word.len() <= MAX_NAME {
            name = format!("{name}-{word}");
        }
    }
    name
}

/// Moves a violation from the integration to what was written: `/notifications/0/to/0` is `/notifications/0`, or its `email`.
pub(super) fn relocate(violation: Violation, style: NotificationStyle, item: &str) -> Violation {
    let at_address = match style {
        NotificationStyle::Address => item.to_owned(),
        NotificationStyle::Object => join(item, "email"),
    };
    let is_of_address = [TO, "name"].iter().any(|name| violation.pointer.starts_with(&join(item, name)));
    let pointer = if is_of_address { at_address } else { violation.pointer };
    Violation { pointer, message: violation.message.replace("`to`", "`email`"), ..violation }
}

impl Integration {
    /// Returns it as an ordinary integration if the short form cannot say what it is.
    pub(super) fn with_valid_style(self) -> Self {
        let is_short = matches!(&self.kind, IntegrationKind::Email(email) if email.is_short())
            && self.enabled
            && self.events == [EventType::SubmissionCompleted]
            && self.fields.is_none()
            && self.retry.is_none();
        Self { notification: self.notification.filter(|_| is_short), ..self }
    }

    /// The notification as it was written; `None` for an ordinary integration.
    pub fn short_form(&self) -> Option<Value> {
        let (style, IntegrationKind::Email(email)) = (self.notification?, &self.kind) else { return None };
        let address = email.addresses().first()?.as_str();
        let text = |name| email.template(name).map(Value::from);
        let when = self.when.as_deref().and_then(|when| json::parse(when).ok());
        Some(match style {
            NotificationStyle::Address
                if email.template(SUBJECT).is_none()
                    && email.template(BODY).is_none()
                    && self.when.is_none() =>
            {
                address.into()
            }
            NotificationStyle::Address | NotificationStyle::Object => object([
                ("email", Some(address.into())),
                (SUBJECT, text(SUBJECT)),
                (BODY, text(BODY)),
                ("when", when),
            ]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn names_come_from_addresses() {
        assert_eq!(name_of("Team+Forms@example.com"), "notify-team-forms-example-com");
        assert_eq!(name_of("i@müller.example"), "notify-i-m-ller-example");
        assert!(name_of(&format!("{}@example.com", "x".repeat(64))).len() <= 64);
    }
}
