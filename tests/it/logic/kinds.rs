//! Conditions on each question type: which tests it allows, and how its answers compare.

use super::*;

const KINDS: &str = r#"{"id":"pick","type":"single_choice","title":"T","options":["red",{"value":"7","label":"Seven"}]},
    {"id":"free","type":"single_choice","title":"T","options":["red"],"allow_other":true},
    {"id":"many","type":"multiple_choice","title":"T","options":["a","b","c"],"min_selected":2},
    {"id":"rank","type":"ranking","title":"T","options":["a","b"],"rank_all":true},
    {"id":"grid","type":"matrix","title":"T","rows":["r"],"columns":["c"]},
    {"id":"yes","type":"boolean","title":"T"},{"id":"agree","type":"consent","title":"T"},
    {"id":"count","type":"number","title":"T","min":0,"max":10,"step":0.5},{"id":"any_number","type":"number","title":"T"},
    {"id":"nps","type":"opinion_scale","title":"T","nps":true},
    {"id":"day","type":"date","title":"T","min":"2026-01-01"},{"id":"soon","type":"date","title":"T","max":"today+30d"},
    {"id":"at","type":"time","title":"T"},{"id":"when","type":"datetime","title":"T"},
    {"id":"tale","type":"long_text","title":"T"},{"id":"from","type":"hidden"}"#;

/// The code of the first problem of `condition`, and its pointer within the condition.
fn problem(condition: &str) -> Option<(&'static str, String)> {
    let last = format!(r#"{{"id":"last","type":"rating","title":"T","show_if":{condition}}}"#);
    let violations = read(&format!("{KINDS},{last}")).err()?;
    let tail = violations[0].pointer.strip_prefix("/questions/16/show_if").unwrap().to_owned();
    Some((violations[0].code.known().unwrap().name(), tail))
}

#[test]
fn a_test_that_no_answer_of_a_type_satisfies_is_refused() {
    let possible = r#"[
        {"pick":"red"}, {"pick":["red","7"]}, {"pick":{"matches":"^r"}},
        {"free":{"eq":{"other":"x"}}}, {"many":{"includes":"b"}}, {"many":{"eq":["a","b"]}},
        {"rank":{"includes":"a"}}, {"grid":{"eq":{"r":"c"}}}, {"yes":false}, {"agree":true},
        {"count":{"gte":10}}, {"any_number":{"gt":1e300}}, {"nps":{"lte":6}},
        {"day":{"lt":"2026-01-02"}}, {"soon":{"gt":"2999-01-01"}}, {"soon":"2999-01-01"},
        {"at":{"gte":"09:00"}}, {"when":{"lt":"2026-01-01T00:00:00+01:00"}},
        {"tale":{"includes":"once"}}
    ]"#;
    for condition in json::parse(possible).unwrap().as_array().unwrap() {
        assert_eq!(problem(&condition.to_string()), None, "{condition}");
    }
    for (condition, at) in [
        (r#"{"pick":"Seven"}"#, "/pick"),
        (r#"{"pick":["red",7]}"#, "/pick/1"),
        (r#"{"pick":{"ne":"rde"}}"#, "/pick/ne"),
        (r#"{"many":["a"]}"#, "/many/0"),
        (r#"{"many":{"includes":"d"}}"#, "/many/includes"),
        (r#"{"many":{"eq":["a"]}}"#, "/many/eq"),
        (r#"{"many":{"gt":"a"}}"#, "/many/gt"),
        (r#"{"many":{"matches":"a"}}"#, "/many/matches"),
        (r#"{"rank":{"includes":"z"}}"#, "/rank/includes"),
        (r#"{"yes":"true"}"#, "/yes"),
        (r#"{"yes":{"includes":"t"}}"#, "/yes/includes"),
        (r#"{"count":0.3}"#, "/count"),
        (r#"{"count":{"gt":10}}"#, "/count/gt"),
        (r#"{"nps":11}"#, "/nps"),
        (r#"{"agree":false}"#, "/agree"),
        (r#"{"day":{"lt":"today"}}"#, "/day/lt"),
        (r#"{"day":"2025-12-31"}"#, "/day"),
        (r#"{"day":{"lt":"2026-02-30"}}"#, "/day/lt"),
        (r#"{"at":{"lt":"9"}}"#, "/at/lt"),
        (r#"{"when":{"gt":"2026-01-01"}}"#, "/when/gt"),
    ] {
        assert_eq!(problem(condition), Some(("impossible_condition", at.to_owned())), "{condition}");
    }
}

/// Tests of one question, each with a list of answers for which it holds, and one for which it does not.
const COMPARISONS: [(&str, &str, &str, &str); 42] = [
    // Equality is by value and exact.
    ("from", "3", "[3, 3.0, 30e-1]", r#"[3.0000000000000000001, "3", 4, true, null]"#),
    ("from", "9007199254740993", "[9007199254740993.0]", "[9007199254740992]"),
    ("from", "0", "[-0, 0e9]", "[1e-400, -1e-400]"),
    ("from", "\"é\"", r#"["\u00e9"]"#, r#"["e\u0301", "É", "é ", 1]"#),
    ("from", "true", "[true]", r#"[false, "true", 1]"#),
    ("from", r#"{"ne":3}"#, r#"[4, "3", null, ""]"#, "[3, 3.0]"),
    ("from", r#"["a",2]"#, r#"["a", 2.0]"#, r#"["b", null]"#),
    ("from", r#"{"in":["a",2]}"#, r#"["a", 2.0]"#, r#"["b", null]"#),
    ("rank", r#"{"eq":["a","b"]}"#, r#"[["a","b"]]"#, r#"[["b","a"]]"#),
    ("free", r#"{"eq":{"other":"x"}}"#, r#"[{"other":"x"}]"#, r#"[{"other":"y"}, "red"]"#),
    ("count", "0.5", "[5e-1]", "[1]"),
    ("yes", "false", "[false]", "[true, null]"),
    ("agree", "true", "[true]", "[false]"),
    // Numbers are ordered by value, texts by code point: U+FFFD before an emoji, not as UTF-16.
    ("from", r#"{"lt":3}"#, "[2.9999999999999999999, -4]", r#"[3, 3.0, 4, "2", true, null]"#),
    ("from", r#"{"lte":3}"#, "[2, 3.0]", r#"[3.0000000000000000001, "2", null]"#),
    ("from", r#"{"gt":-3}"#, "[-2.9999999999999999999, 0]", r#"[-3, -3.0000000000000000001, "a", null]"#),
    ("from", r#"{"gte":18446744073709551616}"#, "[18446744073709551616, 1e20]", "[18446744073709551615]"),
    ("from", r#"{"gt":0}"#, "[1e-400]", "[0, -1e-400]"),
    ("any_number", r#"{"gt":0.3}"#, "[0.30000000000000001]", "[3e-1]"),
    ("from", r#"{"gt":"Z"}"#, r#"["a", "Za", "é"]"#, r#"["Z", "A", "Y😀", 7, null]"#),
    ("from", r#"{"lt":"😀"}"#, r#"["\ufffd"]"#, r#"["😀"]"#),
    ("from", r#"{"gte":2,"lt":4}"#, "[2, 3.9]", "[1, 4]"),
    // Times are compared as points in time, unless they are plain texts.
    ("at", r#""09:00""#, r#"["09:00", "09:00:00"]"#, r#"["09:00:01"]"#),
    ("at", r#"["09:00"]"#, r#"["09:00:00"]"#, r#"["09:01"]"#),
    ("at", r#"{"lt":"10:00:30"}"#, r#"["10:00", "09:59:59"]"#, r#"["10:00:30", "10:01"]"#),
    ("at", r#"{"gte":"09:30:00"}"#, r#"["09:30"]"#, r#"["09:29:59"]"#),
    ("day", r#"{"gte":"2026-06-01"}"#, r#"["2026-06-01"]"#, r#"["2026-05-31"]"#),
    (
        "when",
        r#"["2026-11-20T09:00:00Z"]"#,
        r#"["2026-11-20T10:00:00+01:00"]"#,
        r#"["2026-11-20T10:00:00Z"]"#,
    ),
    (
        "when",
        r#"{"gte":"2026-11-20T09:00:00Z"}"#,
        r#"["2026-11-20T09:00:00.0000001Z"]"#,
        r#"["2026-11-20T09:59:59+01:00"]"#,
    ),
    (
        "when",
        r#"{"lt":"2026-06-01T12:00:00Z"}"#,
        r#"["2026-06-01T13:30:00+02:00"]"#,
        r#"["2026-06-01T11:30:00-02:00"]"#,
    ),
    ("from", r#""09:00""#, r#"["09:00"]"#, r#"["09:00:00"]"#),
    ("from", r#"{"lt":"2026-11-20"}"#, r#"["2026-11-19", "2025-12-31"]"#, r#"["2026-11-20"]"#),
    // A list includes an item, a text a part.
    ("many", r#"{"includes":"b"}"#, r#"[["a","b"]]"#, r#"[["a","c"], null]"#),
    ("from", r#"{"includes":"b"}"#, r#"["abc"]"#, r#"["B", 2, null]"#),
    ("from", r#"{"matches":"b+c"}"#, r#"["abbcd", "bc"]"#, r#"["ab", 5, null]"#),
    ("from", r#"{"matches":"^b$"}"#, r#"["b"]"#, r#"["ab"]"#),
    // An empty value is no answer, and neither is a consent that is not given.
    ("from", r#"{"answered":true}"#, r#"[0, false, "x"]"#, r#"[null, " \u3000", "", [], {}]"#),
    ("from", r#"{"answered":false}"#, r#"[null, " ", [], {}]"#, r#"[0, false, "x"]"#),
    ("agree", r#"{"answered":true}"#, "[true]", "[false]"),
    ("agree", r#"{"answered":false}"#, "[false]", "[true]"),
    ("yes", r#"{"answered":true}"#, "[false]", "[null]"),
    ("grid", r#"{"answered":true}"#, r#"[{"r":"c"}]"#, r#"[{"r":null}]"#),
];

/// Whether a question with this condition is shown.
fn holds(version: &Version, answers: &str) -> bool {
    let found = check(version, answers);
    assert!(found.iter().all(|(id, code)| id == "last" && *code == "required"), "{answers}: {found:?}");
    !found.is_empty()
}

fn version_with(questions: &str, condition: &str) -> Version {
    let last =
        format!(r#"{{"id":"last","type":"rating","title":"T","required":true,"show_if":{condition}}}"#);
    version(&format!("{questions},{last}"))
}

#[test]
fn answers_are_compared_by_the_rules_of_their_type() {
    for (id, test, is_true, is_false) in COMPARISONS {
        let version = version_with(KINDS, &format!(r#"{{"{id}":{test}}}"#));
        for (answers, expected) in [(is_true, true), (is_false, false)] {
            for answer in json::parse(answers).unwrap().as_array().unwrap() {
                let answers = format!(r#"{{"{id}":{answer}}}"#);
                assert_eq!(holds(&version, &answers), expected, "{test} of {answers}");
            }
        }
    }
}

#[test]
fn conditions_combine_with_any_all_and_not_and_are_kept_as_written() {
    let questions = r#"{"id":"a","type":"number","title":"A"},{"id":"b","type":"number","title":"B"}"#;
    for (text, expected) in [
        (r#"{"a":1,"b":2}"#, [true, false, false, false]),
        (r#"{"any":[{"a":1},{"b":2}]}"#, [true, true, true, false]),
        (r#"{"all":[{"a":1},{"b":2}]}"#, [true, false, false, false]),
        (r#"{"not":{"a":1}}"#, [false, false, true, true]),
        (r#"{"not":{"a":1,"b":2}}"#, [false, true, true, true]),
        (r#"{"a":1,"not":{"b":2}}"#, [false, true, false, false]),
        (
            r#"{"any":[{"not":{"any":[{"a":1}]}},{"all":[{"b":{"answered":true}}]}]}"#,
            [true, false, true, true],
        ),
        (r#"{"not":{"a":{"lt":5}}}"#, [false, false, true, true]),
    ] {
        let version = version_with(questions, text);
        let found =
            [r#"{"a":1,"b":2}"#, r#"{"a":1}"#, r#"{"b":2}"#, "{}"].map(|answers| holds(&version, answers));
        assert_eq!(found, expected, "{text}");
        let kept = serde_json::to_string(&version.questions[2]).unwrap();
        assert!(kept.contains(&format!(r#""show_if":{text}"#)), "{kept}");
    }
}
