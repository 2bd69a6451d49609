//! Lists that replace all integrations of a form.

use std::collections::{HashMap, HashSet};

use super::draft::{Draft, default_name};
use super::draft_input::DraftInput;
use super::notifications::{self, expand, relocate};
use super::references::lint_references;
use super::{DefinitionContext, GeneratedSecret, duplicate_name, duplicate_path, too_many};
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::{Integration, MAX_INTEGRATIONS, NotificationStyle};
use crate::domain::json::{Value, join};
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation};

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
        let reader = ListReader { current, questions: Some(questions), policy: Some(context.policy) };
        let before = violations.len();
        let (mut all, mut generated) = (Vec::new(), Vec::new());
        let (notifications, ordinary): (Vec<_>, Vec<_>) =
            current.iter().cloned().partition(|one| one.notification.is_some());
        let integrations = reader.read_integrations(lists.integrations, violations);
        for (kept, drafts) in [
            (ordinary, integrations),
            (notifications, reader.read_notifications(lists.notifications, violations)),
        ] {
            let Some(drafts) = drafts else {
                // The questions may have changed.
                lint_references(&kept, questions, violations);
                all.extend(kept);
                continue;
            };
            for StyledDraft { name, draft, style } in drafts {
                let stored = find_current(current, &name, draft.integration_type.name());
                let (built, secret) = draft.build(name, stored, context);
                generated.extend(secret);
                all.push(Self { notification: style, ..built });
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
        let reader = ListReader { current: &[], questions, policy: None };
        reader.read_integrations(lists.integrations, violations);
        reader.read_notifications(lists.notifications, violations);
    }
}

const ROOT: &str = "/integrations";

/// A draft with its name.
struct StyledDraft {
    name: String,
    draft: Draft,
    /// How it is written, if it is a notification.
    style: Option<NotificationStyle>,
}

/// Reads lists that replace `current`.
#[derive(Clone, Copy)]
struct ListReader<'a> {
    current: &'a [Integration],
    questions: Option<&'a [Question]>,
    policy: Option<&'a AddressPolicy>,
}

impl ListReader<'_> {
    /// Parses the list of integrations, if there is one.
    fn read_integrations(
        &self,
        list: Option<&Value>,
        violations: &mut Vec<Violation>,
    ) -> Option<Vec<StyledDraft>> {
        let items = items(list?, ROOT, violations)?;
        let names = assign_names(items);
        let read = |(place, (item, name)): (usize, (&Value, Option<String>))| {
            let pointer = join(ROOT, &place.to_string());
            let draft = self.read(item, name.as_deref(), &pointer, violations);
            Some(StyledDraft { name: name?, draft: draft?, style: None })
        };
        let drafts: Vec<_> = items.iter().zip(names).enumerate().map(read).collect();
        report_duplicates(ROOT, &drafts, violations);
        Some(drafts.into_iter().flatten().collect())
    }

    /// Parses the list of notifications, if there is one.
    fn read_notifications(
        &self,
        list: Option<&Value>,
        violations: &mut Vec<Violation>,
    ) -> Option<Vec<StyledDraft>> {
        let items = items(list?, notifications::ROOT, violations)?;
        let mut names = HashSet::new();
        let mut read = |(place, item): (usize, &Value)| {
            let pointer = join(notifications::ROOT, &place.to_string());
            let (style, integration) = expand(item, &pointer, violations)?;
            let name = integration.get("name")?.as_str()?.to_owned();
            let mut found = Vec::new();
            let draft = self.read(&integration, Some(&name), &pointer, &mut found);
            if !names.insert(name.clone()) {
                let message = "this address is notified twice";
                let violation = Violation::new(join(&pointer, "name"), Rule::DuplicateName, message);
                let help =
                    "to send two different mails, write both in `integrations`, with names of their own";
                found.push(violation.help(help));
            }
            violations.extend(found.into_iter().map(|violation| relocate(violation, style, &pointer)));
            Some(StyledDraft { name, draft: draft?, style: Some(style) })
        };
        // Collected first, so that every item is checked.
        let drafts: Vec<_> = items.iter().enumerate().map(&mut read).collect();
        Some(drafts.into_iter().flatten().collect())
    }

    fn read(
        &self,
        item: &Value,
        name: Option<&str>,
        pointer: &str,
        violations: &mut Vec<Violation>,
    ) -> Option<Draft> {
        let Self { questions, policy, .. } = *self;
        let type_name = item.get("type").and_then(Value::as_str);
        let current = name.and_then(|name| find_current(self.current, name, type_name?));
        Draft::read(item, DraftInput { pointer, current, questions, policy }, violations)
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
        written(item).or_else(|| {
            let name = default_name(item.get("type")?.as_str()?, |name| taken.contains(name));
            taken.insert(name.clone());
            Some(name)
        })
    };
    items.iter().map(name).collect()
}

fn find_current<'a>(current: &'a [Integration], name: &str, type_name: &str) -> Option<&'a Integration> {
    current.iter().find(|one| one.name == name && one.kind.type_name() == type_name)
}

/// Reports names and paths that occur twice in a list at `root`.
fn report_duplicates(root: &str, drafts: &[Option<StyledDraft>], violations: &mut Vec<Violation>) {
    let (mut names, mut paths) = (HashMap::new(), HashMap::new());
    for (place, draft) in drafts.iter().enumerate() {
        let Some(StyledDraft { name, draft, .. }) = draft else { continue };
        let at = |place: usize| join(root, &place.to_string());
        if let Some(earlier) = names.insert(name.as_str(), place) {
            violations.push(duplicate_name(&at(place), name).related(join(&at(earlier), "name")));
        }
        let Some(path) = draft.path() else { continue };
        if let Some(earlier) = paths.insert(path.to_ascii_lowercase(), place) {
            violations.push(duplicate_path(&at(place), path).related(join(&at(earlier), "path")));
        }
    }
}
