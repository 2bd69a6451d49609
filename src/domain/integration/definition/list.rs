//! Lists that replace all integrations of a form.

use std::collections::{HashMap, HashSet};

use super::notifications::{self, expand, relocate};
use super::parse::name_of;
use super::references::lint_references;
use super::{
    DefinitionContext, DefinitionInput, GeneratedSecret, Parsed, duplicate_name, duplicate_path, too_many,
};
use crate::clock::Timestamp;
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::settings::PATH;
use crate::domain::integration::{Integration, MAX_INTEGRATIONS};
use crate::domain::json::{Value, join};
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation};
use crate::id::WorkspaceId;
use crate::secret::{Secret, SystemRandomness};
use crate::vault::{MASTER_KEY_BYTES, Vault};

/// The lists that replace the integrations of a form, as sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct IntegrationLists<'a> {
    /// Replaces those that are not notifications; `null` is an empty list.
    pub integrations: Option<&'a Value>,
    /// Replaces the notifications; `null` is an empty list.
    pub notifications: Option<&'a Value>,
}

impl IntegrationLists<'_> {
    pub fn is_empty(&self) -> bool {
        self.integrations.is_none() && self.notifications.is_none()
    }
}

impl Integration {
    /// Parses the lists that replace `current`, at the pointers `/integrations` and `/notifications`. One with the name of a
    /// current integration of the same type keeps its id, and the secrets that are left out.
    pub fn replace_all(
        current: &[Self],
        lists: IntegrationLists<'_>,
        questions: &[Question],
        context: DefinitionContext<'_>,
        violations: &mut Vec<Violation>,
    ) -> Option<(Vec<Self>, Vec<GeneratedSecret>)> {
        let reader = ListReader { current, questions: Some(questions), context, is_lint: false };
        let before = violations.len();
        let (mut all, mut generated) = (Vec::new(), Vec::new());
        let (notifications, ordinary): (Vec<_>, Vec<_>) =
            current.iter().cloned().partition(|one| one.notification.is_some());
        let integrations = reader.read_integrations(lists.integrations, violations);
        for (kept, parsed) in [
            (ordinary, integrations),
            (notifications, reader.read_notifications(lists.notifications, violations)),
        ] {
            if let Some(parsed) = parsed {
                for (integration, secret) in parsed {
                    all.push(integration);
                    generated.extend(secret);
                }
            } else {
                // The questions may have changed.
                lint_references(&kept, questions, violations);
                all.extend(kept);
            }
        }
        if violations.len() > before {
            return None;
        }
        report_taken_names(&all, lists, violations);
        if all.len() > MAX_INTEGRATIONS {
            violations.push(too_many(ROOT, all.len()));
        }
        (violations.len() == before).then_some((all, generated))
    }

    /// Reports what is wrong with lists of integrations whatever the server: all but the addresses and whether secrets are
    /// missing. References to questions are checked if there are `questions`.
    pub fn lint_lists(
        lists: IntegrationLists<'_>,
        questions: Option<&[Question]>,
        violations: &mut Vec<Violation>,
    ) {
        // Read as on the server, which seals secrets: here with a key that is thrown away.
        let (vault, policy) = (Vault::new(&Secret::new([0; MASTER_KEY_BYTES])), AddressPolicy::default());
        let (workspace, now) = (WorkspaceId::ZERO, Timestamp::from_millis(0));
        let context =
            DefinitionContext { workspace, vault: &vault, random: &SystemRandomness, policy: &policy, now };
        let reader = ListReader { current: &[], questions, context, is_lint: true };
        reader.read_integrations(lists.integrations, violations);
        reader.read_notifications(lists.notifications, violations);
    }
}

const ROOT: &str = "/integrations";

/// Reads lists that replace `current`.
#[derive(Clone, Copy)]
struct ListReader<'a> {
    current: &'a [Integration],
    questions: Option<&'a [Question]>,
    context: DefinitionContext<'a>,
    is_lint: bool,
}

impl ListReader<'_> {
    /// Parses the list of integrations, if there is one.
    fn read_integrations(
        &self,
        list: Option<&Value>,
        violations: &mut Vec<Violation>,
    ) -> Option<Vec<Parsed>> {
        let items = items(list?, ROOT, violations)?;
        let names = assign_names(items);
        let read = |(place, (item, name)): (usize, (&Value, Option<String>))| {
            let (mut parsed, secret) = self.read(item, name, &join(ROOT, &place.to_string()), violations)?;
            parsed.notification = None;
            Some((parsed, secret))
        };
        let parsed: Vec<_> = items.iter().zip(names).enumerate().map(read).collect();
        report_duplicates(ROOT, &parsed, violations);
        Some(parsed.into_iter().flatten().collect())
    }

    /// Parses the list of notifications, if there is one.
    fn read_notifications(
        &self,
        list: Option<&Value>,
        violations: &mut Vec<Violation>,
    ) -> Option<Vec<Parsed>> {
        let items = items(list?, notifications::ROOT, violations)?;
        let mut names = HashSet::new();
        let mut read = |(place, item): (usize, &Value)| {
            let pointer = join(notifications::ROOT, &place.to_string());
            let (style, integration) = expand(item, &pointer, violations)?;
            let name = integration.get("name")?.as_str()?.to_owned();
            let mut found = Vec::new();
            let parsed = self.read(&integration, Some(name.clone()), &pointer, &mut found);
            if !names.insert(name) {
                let message = "this address is notified twice";
                let violation = Violation::new(join(&pointer, "name"), Rule::DuplicateName, message);
                let help =
                    "to send two different mails, write both in `integrations`, with names of their own";
                found.push(violation.help(help));
            }
            violations.extend(found.into_iter().map(|violation| relocate(violation, style, &pointer)));
            let (mut parsed, secret) = parsed?;
            parsed.notification = Some(style);
            Some((parsed, secret))
        };
        // Collected first, so that every item is checked.
        let parsed: Vec<_> = items.iter().enumerate().map(&mut read).collect();
        Some(parsed.into_iter().flatten().collect())
    }

    fn read(
        &self,
        item: &Value,
        name: Option<String>,
        pointer: &str,
        violations: &mut Vec<Violation>,
    ) -> Option<Parsed> {
        let Self { questions, context, is_lint, .. } = *self;
        let type_name = item.get("type").and_then(Value::as_str);
        let is_same =
            |one: &&Integration| Some(&one.name) == name.as_ref() && Some(one.type_name()) == type_name;
        let current = self.current.iter().find(is_same);
        let input = DefinitionInput { pointer, current, questions, context, is_lint };
        Integration::parse(item, name, input, violations)
    }
}

/// Returns the items of the list at `root`; `null` is an empty one.
fn items<'a>(list: &'a Value, root: &str, violations: &mut Vec<Violation>) -> Option<&'a [Value]> {
    let items = match list {
        Value::Null => &[][..],
        Value::Array(items) => items,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            violations.push(Violation::wrong_type(root, root.trim_start_matches('/'), "a list", list));
            return None;
        }
    };
    if items.len() > MAX_INTEGRATIONS {
        violations.push(too_many(root, items.len()));
        return None;
    }
    Some(items)
}

/// Reports integrations that have the name of a notification.
fn report_taken_names(all: &[Integration], lists: IntegrationLists<'_>, violations: &mut Vec<Violation>) {
    let root = if lists.integrations.is_some() { ROOT } else { notifications::ROOT };
    for (place, one) in all.iter().enumerate() {
        if all[..place].iter().any(|other| other.name == one.name) {
            violations.push(duplicate_name(root, &one.name));
        }
    }
}

/// Returns the names of the items of a list: those written, and default names. `None` where the name or the type is not
/// valid.
fn assign_names(items: &[Value]) -> Vec<Option<String>> {
    let written = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut taken: HashSet<String> = items.iter().filter_map(written).collect();
    let name = |item: &Value| {
        let name = name_of(item, |name| taken.contains(name))?;
        taken.insert(name.clone());
        Some(name)
    };
    items.iter().map(name).collect()
}

/// Reports names and paths that occur twice in a list at `root`.
fn report_duplicates(root: &str, parsed: &[Option<Parsed>], violations: &mut Vec<Violation>) {
    let (mut names, mut paths) = (HashMap::new(), HashMap::new());
    for (place, parsed) in parsed.iter().enumerate() {
        let Some((Integration { name, kind, .. }, _)) = parsed else { continue };
        let at = |place: usize| join(root, &place.to_string());
        if let Some(earlier) = names.insert(name.as_str(), place) {
            violations.push(duplicate_name(&at(place), name).related(join(&at(earlier), "name")));
        }
        let Some(path) = kind.settings.text(PATH) else { continue };
        if let Some(earlier) = paths.insert(path.to_ascii_lowercase(), place) {
            violations.push(duplicate_path(&at(place), path).related(join(&at(earlier), "path")));
        }
    }
}
