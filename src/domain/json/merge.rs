//! JSON Merge Patch (RFC 7396), on JSON text: unchanged parts are copied verbatim.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::domain::json::parse::parse_object;
use crate::domain::json::{Value, to_text};

/// Applies the JSON text `patch` to the JSON text `target`: members that are `null` are removed, objects are merged,
/// other values are replaced. `None` if nothing changes.
///
/// Members keep their order; new ones are appended in the order of `patch`.
pub fn merge(target: &str, patch: &str) -> Option<String> {
    let Ok(changes) = parse_object(patch) else { return (target != patch).then(|| patch.to_owned()) };
    let members = parse_object(target);
    let mut is_changed = members.is_err();
    let members = members.unwrap_or_default();
    let mut merged = Vec::with_capacity(members.len() + changes.len());
    let by_name: HashMap<&str, _> =
        changes.iter().map(|(key, change, place)| (key.as_str(), (change, place))).collect();
    for (key, _, place) in &members {
        let old = &target[place.clone()];
        let new = match by_name.get(key.as_str()) {
            Some((Value::Null, _)) => {
                is_changed = true;
                continue;
            }
            Some((_, change)) => merge(old, &patch[(*change).clone()]),
            None => None,
        };
        is_changed |= new.is_some();
        merged.push((key, new.map_or(Cow::Borrowed(old), Cow::Owned)));
    }
    let known: HashSet<&str> = members.iter().map(|(key, ..)| key.as_str()).collect();
    for (key, value, place) in &changes {
        if *value != Value::Null && !known.contains(key.as_str()) {
            is_changed = true;
            let new = merge("null", &patch[place.clone()]).expect("nothing but null leaves null as it is");
            merged.push((key, Cow::Owned(new)));
        }
    }
    is_changed.then(|| object(&merged))
}

fn object(members: &[(&String, Cow<'_, str>)]) -> String {
    let members: Vec<_> = members.iter().map(|(key, value)| format!("{}:{value}", to_text(key))).collect();
    format!("{{{}}}", members.join(","))
}
