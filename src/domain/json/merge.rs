//! JSON Merge Patch (RFC 7396).

use super::{Object, Value};

/// What `patch` makes of `target`: members that are `null` go, objects are merged, all else is replaced.
pub fn merge(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut members = match target {
        Value::Object(members) => members,
        _ => Object::new(),
    };
    for (key, change) in changes {
        let place = members.iter().position(|(name, _)| name == key);
        match (change, place) {
            (Value::Null, Some(place)) => drop(members.remove(place)),
            (Value::Null, None) => {}
            (_, Some(place)) => {
                let old = std::mem::replace(&mut members[place].1, Value::Null);
                members[place].1 = merge(old, change);
            }
            (_, None) => members.push((key.clone(), merge(Value::Null, change))),
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::merge;
    use crate::domain::json::parse;

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
            let merged = merge(parse(target).unwrap(), &parse(patch).unwrap());
            assert_eq!(merged.to_string(), expected, "{target} {patch}");
        }
    }
}
