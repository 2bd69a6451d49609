//! Parsing, comparing and merging of JSON values.

use forms::domain::json::{Decimal, MAX_DEPTH, Value, merge, parse, parse_object};

fn decimal(text: &str) -> Decimal {
    parse(text).unwrap().as_number().unwrap().exact()
}

#[test]
fn values_keep_order_and_number_text() {
    let text = r#"{"b":[1.10,18446744073709551616,-0],"a":{"z":null,"y":true},"t":"é\n\"\\/"}"#;
    assert_eq!(parse(text).unwrap().to_string(), text);
    assert_eq!(parse(r#""\ud83d\ude00\u00e9""#).unwrap(), Value::String("😀é".into()));
}

#[test]
fn ambiguous_json_is_refused() {
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
    let refused = [
        (r#"{"q1":1,"q1":2}"#, "the key `q1` appears twice in one object at line 1, column 9"),
        (r#"{"a":{"x":1,"\u0078":2}}"#, "the key `x` appears twice in one object at line 1, column 13"),
        (r#""a\u0000""#, "NUL characters are not accepted at line 1, column 1"),
        ("[\n 1e999]", "the number is out of range at line 2, column 2"),
        (&deep, "more than 16 levels of nesting at line 1, column 17"),
        (r#""\ud800""#, "this text has an invalid escape at line 1, column 1"),
        ("{\"a\":1,}", "expected a member's name in quotes at line 1, column 8"),
        ("[1 2]", "expected `,` or `]` at line 1, column 4"),
        ("01", "expected the end at line 1, column 2"),
        ("", "the text ends where a value is expected at line 1, column 1"),
        ("nul", "expected a value at line 1, column 1"),
        ("\"\n\"", "a control character in text must be escaped at line 1, column 2"),
    ];
    for (text, error) in refused {
        assert_eq!(parse(text).unwrap_err().to_string(), error, "{text}");
    }
    let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(parse(&deepest).is_ok());
}

#[test]
fn a_duplicate_key_is_found_among_many() {
    let members = |keys: &[usize]| {
        let members: Vec<_> = keys.iter().map(|key| format!("\"k{key}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    let mut keys: Vec<usize> = (0..40).collect();
    assert!(parse(&members(&keys)).is_ok());
    for (first, second) in [(0, 39), (15, 16), (16, 17), (30, 39)] {
        keys[second] = first;
        let error = parse(&members(&keys)).unwrap_err();
        assert_eq!(error.message, format!("the key `k{first}` appears twice in one object"));
        keys[second] = second;
    }
}

#[test]
fn parsing_agrees_with_serde_json() {
    let pieces = r#"{|}|[|]|,|:|"a"|"b\u00e9"|1|-2.5e3|true|null| |0|"\\""#.split('|').collect::<Vec<_>>();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut accepted = 0;
    for _ in 0..200_000 {
        let mut text = String::new();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for _ in 0..=(state >> 60) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        let ours = parse(&text);
        let common: Result<serde_json::Value, _> = serde_json::from_str(&text);
        match (&ours, &common) {
            (Ok(ours), Ok(_)) => {
                accepted += 1;
                let again: serde_json::Value = serde_json::from_str(&ours.to_string()).unwrap();
                assert_eq!(common.unwrap(), again, "{text}");
            }
            (Err(error), _) if error.message.contains("appears twice") => {}
            (Err(_), Err(_)) => {}
            _ => panic!("{text}: {ours:?} {common:?}"),
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

#[test]
fn a_range_contains_the_text_of_its_value() {
    let text = " {\"a\": 1.10 , \"b\" : [ 1 ] }";
    let members = parse_object(text).unwrap();
    let cut: Vec<_> = members.iter().map(|(key, _, range)| (key.as_str(), &text[range.clone()])).collect();
    assert_eq!(cut, [("a", "1.10"), ("b", "[ 1 ]")]);
    assert!(parse_object("[]").is_err());
}

#[test]
fn numbers_are_compared_to_the_last_digit() {
    let ascending = "-1e300 -10.5 -10 -0.30000000000000001 -0.3 -1e-400 -0.0 1e-99999999999999999999 1e-400 0.05 0.3 \
        0.30000000000000001 1 9.99 1.0e1 18446744073709551616 18446744073709551617 1e300";
    let ascending: Vec<_> = ascending.split(' ').collect();
    for (place, one) in ascending.iter().enumerate() {
        for (other_place, other) in ascending.iter().enumerate() {
            let order = decimal(one).cmp(&decimal(other));
            assert_eq!(order, place.cmp(&other_place), "{one} {other}");
        }
    }
    for (one, other) in [("1.0", "1"), ("10", "1e1"), ("0.50e1", "5"), ("-0", "0"), ("0e99", "0.000")] {
        assert_eq!(decimal(one), decimal(other));
    }
}

/// The examples of RFC 7396, appendix A.
#[test]
fn merging_follows_the_examples_of_the_standard() {
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
        // Numbers with different text are different.
        (r#"{"a":5}"#, r#"{"a":5.0}"#, Some(r#"{"a":5.0}"#)),
        // Without a change, even white space is kept.
        (r#"{ "a" : 1.50 }"#, "{}", None),
        (r#"{ "a" : 1.50 }"#, r#"{"a":1.50,"b":null}"#, None),
        (r#"{ "a" : {"b" : 1} }"#, r#"{"a":{"b":1}}"#, None),
    ] {
        assert_eq!(merge(target, patch).as_deref(), expected, "{target} {patch}");
    }
}
