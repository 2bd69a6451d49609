//! Integrations as shown to readers. What is shown can be sent back: it changes nothing.

use std::time::Duration;

use crate::domain::integration::event::EventType;
use crate::domain::integration::{FieldSelection, Integration};
use crate::domain::json::{self, Object, Value};
use crate::domain::question::json::object;

impl Integration {
    /// Returns the members as shown to readers and accepted as input, from `name` on: secrets only as whether they are set.
    pub fn members(&self) -> Object {
        let when = self.when.as_deref().map(|when| json::parse(when).expect("a stored condition is JSON"));
        let retry = self.retry.as_ref().map(|waits| waits.iter().map(|wait| show_wait(*wait)).collect());
        let common = [
            ("name", Some(Value::from(&*self.name))),
            ("type", Some(self.type_name().into())),
            ("enabled", Some(self.enabled.into())),
            ("events", Some(self.events.iter().map(|event| EventType::name(*event)).collect())),
            ("when", when),
            ("fields", self.fields.as_ref().map(show_selection)),
            ("retry", retry),
        ];
        let common = common.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        common.chain(self.kind.settings.members(self.kind.integration_type.spec())).collect()
    }
}

fn show_selection(selection: &FieldSelection) -> Value {
    let (name, ids) = match selection {
        FieldSelection::Only(ids) => ("only", ids),
        FieldSelection::Except(ids) => ("except", ids),
    };
    object([(name, Some(ids.iter().map(String::as_str).collect()))])
}

fn show_wait(millis: i64) -> Value {
    let wait = Duration::from_millis(millis.unsigned_abs());
    Value::String(humantime::format_duration(wait).to_string())
}
