//! Lists that replace all integrations of a form.

use std::collections::{HashMap, HashSet};

use super::draft::{Draft, default_name};
use super::draft_kind::DraftInput;
use super::{DefinitionContext, GeneratedSecret, duplicate_name, duplicate_path, too_many};
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::{Integration, MAX_INTEGRATIONS};
use crate::domain::json::{Value, join};
use crate::domain::question::Question;
use crate::domain::validation::violation::Violation;

impl Integration {
    /// Parses the list that replaces `current`, at the pointer `/integrations`; `null` is an empty list. One with the name of
    /// a current integration of the same type keeps its id, and the secrets that are left out.
    pub fn replace_all(
        current: &[Self],
        list: &Value,
        questions: &[Question],
        context: DefinitionContext<'_>,
        violations: &mut Vec<Violation>,
    ) -> Option<(Vec<Self>, Vec<GeneratedSecret>)> {
        let drafts = read_list(list, current, Some(questions), Some(context.policy), violations)?;
        let drafts: Vec<_> = drafts.into_iter().collect::<Option<_>>()?;
        let (mut all, mut generated) = (Vec::new(), Vec::new());
        for (name, draft) in drafts {
            let stored = find_current(current, &name, draft.integration_type.name());
            let (built, secret) = draft.build(name, stored, context);
            all.push(built);
            generated.extend(secret);
        }
        Some((all, generated))
    }

    /// Reports what is wrong with a list of integrations whatever the server: all but the addresses and whether secrets are
    /// missing. References to questions are checked if there are `questions`.
    pub fn lint_list(list: &Value, questions: Option<&[Question]>, violations: &mut Vec<Violation>) {
        read_list(list, &[], questions, None, violations);
    }
}

/// A draft with its name.
type NamedDraft = (String, Draft);

/// Parses the items of a list that replaces `current`; those that are not valid are `None`.
fn read_list(
    list: &Value,
    current: &[Integration],
    questions: Option<&[Question]>,
    policy: Option<&AddressPolicy>,
    violations: &mut Vec<Violation>,
) -> Option<Vec<Option<NamedDraft>>> {
    const ROOT: &str = "/integrations";
    let items = match list {
        Value::Null => &[][..],
        Value::Array(items) => items,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            violations.push(Violation::wrong_type(ROOT, "integrations", "a list", list));
            return None;
        }
    };
    if items.len() > MAX_INTEGRATIONS {
        violations.push(too_many(ROOT, items.len()));
        return None;
    }
    let names = assign_names(items);
    let mut drafts = Vec::new();
    for (place, (item, name)) in items.iter().zip(names).enumerate() {
        let pointer = join(ROOT, &place.to_string());
        let type_name = item.get("type").and_then(Value::as_str);
        let current = name.as_deref().and_then(|name| find_current(current, name, type_name?));
        let draft =
            Draft::read(item, DraftInput { pointer: &pointer, current, questions, policy }, violations);
        drafts.push(name.zip(draft));
    }
    report_duplicates(ROOT, &drafts, violations);
    Some(drafts)
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
fn report_duplicates(root: &str, drafts: &[Option<NamedDraft>], violations: &mut Vec<Violation>) {
    let (mut names, mut paths) = (HashMap::new(), HashMap::new());
    for (place, draft) in drafts.iter().enumerate() {
        let Some((name, draft)) = draft else { continue };
        let at = |place: usize| join(root, &place.to_string());
        if let Some(earlier) = names.insert(name.as_str(), place) {
            violations.push(duplicate_name(&at(place), name).related(join(&at(earlier), "name")));
        }
        let Some(path) = &draft.kind.path else { continue };
        if let Some(earlier) = paths.insert(path.to_ascii_lowercase(), place) {
            violations.push(duplicate_path(&at(place), path).related(join(&at(earlier), "path")));
        }
    }
}
