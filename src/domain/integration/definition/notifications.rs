//! `notifications` of a form: the short way to write `email` integrations.

use crate::domain::integration::email::{BODY, REPLY_TO_QUESTION, SUBJECT, TO};
use crate::domain::integration::event::EventType;
use crate::domain::integration::{Integration, NotificationStyle};
use crate::domain::json::{Object, Value, join};
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Violation;

/// The member of a form.
pub(super) const ROOT: &str = "/notifications";

/// The member with the address.
const EMAIL: &str = "email";

/// The members that it shares with an integration.
const OWN: [&str; 3] = [SUBJECT, BODY, "when"];

/// Characters of an address.
const MAX_ADDRESS: usize = 254;

/// Converts a notification at `pointer`, an address or an object, to an integration.
pub(super) fn expand(
    item: &Value,
    pointer: &str,
    violations: &mut Vec<Violation>,
) -> Option<(NotificationStyle, Value)> {
    let (style, address, own) = match item {
        Value::String(address) => (NotificationStyle::Address, address.clone(), Vec::new()),
        _ => {
            let mut fields = Fields::open(item, pointer, "a notification", violations)?;
            let address = fields.required_text(EMAIL, MAX_ADDRESS);
            let own = OWN.map(|name| (name, fields.value(name).cloned()));
            fields.close(&[]);
            (NotificationStyle::Object, address?, own.into())
        }
    };
    let common = [
        ("type", Some(Value::from("email"))),
        ("name", Some(Value::String(name_of(&address)))),
        (TO, Some([address.as_str()].into_iter().collect())),
    ];
    let present = common.into_iter().chain(own).filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Some((style, Value::Object(present.collect())))
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
        NotificationStyle::Object => join(item, EMAIL),
    };
    let is_of_address = [TO, "name"].iter().any(|name| violation.pointer.starts_with(&join(item, name)));
    let pointer = if is_of_address { at_address } else { violation.pointer };
    Violation { pointer, message: violation.message.replace("`to`", "`email`"), ..violation }
}

impl Integration {
    /// Returns it as an ordinary integration if the short form cannot say what it is.
    pub(super) fn with_valid_style(self) -> Self {
        let settings = &self.kind.settings;
        let is_short = settings.texts(TO).len() == 1
            && settings.text(REPLY_TO_QUESTION).is_none()
            && self.enabled
            && self.events == [EventType::SubmissionCompleted]
            && self.fields.is_none()
            && self.retry.is_none();
        Self { notification: self.notification.filter(|_| is_short), ..self }
    }

    /// The notification as it was written; `None` for an ordinary integration.
    pub fn short_form(&self) -> Option<Value> {
        let style = self.notification?;
        let (members, address) = (Value::Object(self.members()), self.kind.settings.texts(TO).first()?);
        let own = OWN.into_iter().filter_map(|name| Some((name.to_owned(), members.get(name)?.clone())));
        let own: Object = own.collect();
        if style == NotificationStyle::Address && own.is_empty() {
            return Some(address.as_str().into());
        }
        Some(Value::Object([(EMAIL.to_owned(), address.as_str().into())].into_iter().chain(own).collect()))
    }
}
