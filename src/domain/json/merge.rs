//! JSON Merge Patch (RFC 7396), on JSON text: unchanged parts are copied verbatim.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::domain::json::Value;
use crate::domain::json::parse::parse_object;

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
    let quoted = |text: &str| serde_json::to_string(text).expect("text can be written as JSON");
    let members: Vec<_> = members.iter().map(|(key, value)| format!("{}:{value}", quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::merge;

    /// The table of the standard's appendix A.
    #[test]
    fn merging_does_what_the_standard_shows() {
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let merged = merge(target, patch);
            assert_eq!(merged.as_deref().unwrap_or(target), expected, "{target} {patch}");
        }
    }

    #[test]
    fn unchanged_parts_are_copied_verbatim() {
        for (target, patch, expected) in [
            (
                r#"{ "a" : 1.50 ,"b":"\u00e9"}"#,
                r#"{ "c" : [ 1 ] }"#,
                Some(r#"{"a":1.50,"b":"\u00e9","c":[ 1 ]}"#),
            ),
            (r#"{"a":1,"b":2,"c":3}"#, r#"{"c":4,"b":null,"d":5}"#, Some(r#"{"a":1,"c":4,"d":5}"#)),
            (r#"{"a":{"x":1.0, "y":[ ]}}"#, r#"{"a":{"x":2}}"#, Some(r#"{"a":{"x":2,"y":[ ]}}"#)),
            (r#"{"a\"b":1}"#, r#"{"c":1}"#, Some(r#"{"a\"b":1,"c":1}"#)),
            // A number is its text.
            (r#"{"a":5}"#, r#"{"a":5.0}"#, Some(r#"{"a":5.0}"#)),
            // Nothing changes, so not even white space does.
            (r#"{ "a" : 1.50 }"#, "{}", None),
            (r#"{ "a" : 1.50 }"#, r#"{"a":1.50,"b":null}"#, None),
            (r#"{ "a" : {"b" : 1} }"#, r#"{"a":{"b":1}}"#, None),
        ] {
            assert_eq!(merge(target, patch).as_deref(), expected, "{target} {patch}");
        }
    }
}
