//! Conditions in definitions: which are refused, and the code and pointer of each problem.

use super::*;
use crate::domain::{change, violations};

const EARLIER: &str = r#"{"id":"stars","type":"rating","title":"S"},{"id":"name","type":"short_text","title":"N","max_length":5},
    {"id":"mail","type":"email","title":"M"},{"id":"from","type":"hidden"},{"id":"intro","type":"statement","title":"I"},
    {"type":"email","title":"One"}"#;

/// The problems of `condition` in the seventh question: pointers within the condition, and codes.
fn problems(condition: &str) -> Vec<(String, &'static str)> {
    let questions = format!(
        r#"{EARLIER},{{"id":"me","type":"rating","title":"T","show_if":{condition}}},{{"id":"later","type":"rating","title":"L"}}"#
    );
    let violations = read(&questions).err().unwrap_or_default();
    let tail = |pointer: &str| pointer.strip_prefix("/questions/6/show_if").unwrap().to_owned();
    let mut found: Vec<_> =
        violations.iter().map(|found| (tail(&found.pointer), found.code.known().unwrap().name())).collect();
    found.sort_unstable();
    found
}

/// Checks lists of conditions, and the problems that each condition of a list has.
#[track_caller]
fn check_table(cases: &[(&str, &[(&str, &str)])]) {
    for (conditions, expected) in cases {
        for condition in json::parse(conditions).unwrap().as_array().unwrap() {
            let found = problems(&condition.to_string());
            let found: Vec<_> = found.iter().map(|(pointer, code)| (pointer.as_str(), *code)).collect();
            assert_eq!(found, *expected, "{condition}");
        }
    }
}

#[test]
fn a_satisfiable_condition_is_accepted() {
    check_table(&[
        (
            r#"[null, {"stars":5}, {"stars":{"gte":1,"lt":1.5}}, {"stars":{"lte":9}}, {"stars":{"answered":false}}]"#,
            &[],
        ),
        (r#"[{"name":["a","b"],"mail":{"matches":"@x"}}, {"mail":{"includes":"@"}}]"#, &[]),
        (
            r#"[{"name":{"gt":"longer than it may be"}}, {"from":7}, {"from":{"gt":7}}, {"from":{"includes":"x"}}]"#,
            &[],
        ),
        (r#"[{"from":true,"q1":{"ne":"a@b.example"}}]"#, &[]),
        (r#"[{"not":{"any":[{"all":[{"stars":1}]},{"stars":{"in":[1,2.0]}}]}}]"#, &[]),
        // Each test can be true, although not all of them together.
        (
            r#"[{"stars":{"eq":2,"ne":2}}, {"stars":{"gt":4,"lte":4}}, {"stars":{"answered":false,"eq":2}}]"#,
            &[],
        ),
        (r#"[{"all":[{"stars":1},{"stars":2}]}, {"name":{"eq":"abc","matches":"^b"}}]"#, &[]),
    ]);
}

#[test]
fn a_malformed_condition_is_refused() {
    check_table(&[
        (r#"[[], "stars"]"#, &[("", "type_mismatch")]),
        (r#"[{}]"#, &[("", "empty")]),
        (r#"[{"stars":{}}]"#, &[("/stars", "empty")]),
        (r#"[{"all":[]}]"#, &[("/all", "empty")]),
        (r#"[{"all":{"stars":1}}]"#, &[("/all", "type_mismatch")]),
        (r#"[{"any":[{"stars":1},7]}]"#, &[("/any/1", "type_mismatch")]),
        (r#"[{"not":[{"stars":1}]}]"#, &[("/not", "type_mismatch")]),
        (r#"[{"stars":{"gtt":1}}]"#, &[("/stars/gtt", "unknown_field")]),
        (r#"[{"stars":{"a/b":1,"lt":5}}]"#, &[("/stars/a~1b", "unknown_field")]),
        (r#"[{"stars":{"in":1}}]"#, &[("/stars/in", "type_mismatch")]),
        (r#"[{"stars":{"lt":true}}]"#, &[("/stars/lt", "type_mismatch")]),
        (r#"[{"stars":{"answered":1}}]"#, &[("/stars/answered", "type_mismatch")]),
        (r#"[{"name":{"matches":7}}]"#, &[("/name/matches", "type_mismatch")]),
        (r#"[{"name":{"matches":"("}}]"#, &[("/name/matches", "invalid_pattern")]),
        (r#"[{"name":{"matches":"a{1000}{100}"}}]"#, &[("/name/matches", "invalid_pattern")]),
    ]);
}

#[test]
fn a_condition_can_name_only_earlier_questions_that_take_answers() {
    check_table(&[
        (r#"[{"strs":1}]"#, &[("/strs", "unknown_reference")]),
        (r#"[{"me":1}]"#, &[("/me", "unknown_reference")]),
        (r#"[{"any":[{"later":1},{"stars":1}]}]"#, &[("/any/0/later", "unknown_reference")]),
        (r#"[{"intro":{"answered":false}}]"#, &[("/intro", "unknown_reference")]),
        (r#"[{"q2":1,"q1":"a@b.example"}]"#, &[("/q2", "unknown_reference")]),
        (r#"[{"a/b":1}]"#, &[("/a~1b", "unknown_reference")]),
    ]);
    let violations = read(&format!(
        r#"{EARLIER},{{"type":"page","title":"P","show_if":{{"strs":1}}}},{{"type":"page","title":"P","required_if":{{"stars":1}}}},
           {{"id":"x","type":"rating","title":"X","required_if":{{"x":1}}}}"#
    ))
    .unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("/questions/6/show_if/strs", "unknown_reference"),
            ("/questions/7/required_if", "unknown_field"),
            ("/questions/8/required_if/x", "unknown_reference"),
        ]
    );
    assert!(violations.iter().any(|found| found.allowed.contains(&"stars".to_owned())));
}

#[test]
fn an_unsatisfiable_test_is_refused() {
    let impossible = "impossible_condition";
    check_table(&[
        (r#"[{"stars":6}, {"stars":"5"}, {"stars":2.5}, {"stars":null}]"#, &[("/stars", impossible)]),
        (r#"[{"stars":[]}]"#, &[("/stars", impossible)]),
        (r#"[{"any":[]}]"#, &[("/any", impossible)]),
        (r#"[{"stars":[1,6,0]}]"#, &[("/stars/1", impossible), ("/stars/2", impossible)]),
        (r#"[{"stars":{"in":[6,1]}}]"#, &[("/stars/in/0", impossible)]),
        (r#"[{"stars":{"in":[]}}]"#, &[("/stars/in", impossible)]),
        (r#"[{"stars":{"eq":0}}]"#, &[("/stars/eq", impossible)]),
        (r#"[{"stars":{"ne":"5"}}]"#, &[("/stars/ne", impossible)]),
        (r#"[{"stars":{"gt":5}}]"#, &[("/stars/gt", impossible)]),
        (r#"[{"stars":{"gte":5.5}}]"#, &[("/stars/gte", impossible)]),
        (r#"[{"stars":{"lt":1}}, {"stars":{"lt":"5"}}]"#, &[("/stars/lt", impossible)]),
        (r#"[{"stars":{"lte":0}}]"#, &[("/stars/lte", impossible)]),
        (r#"[{"stars":{"includes":5}}]"#, &[("/stars/includes", impossible)]),
        (r#"[{"stars":{"matches":"5"}}]"#, &[("/stars/matches", impossible)]),
        (r#"[{"name":"too long"}]"#, &[("/name", impossible)]),
        (r#"[{"name":{"eq":" "}}]"#, &[("/name/eq", impossible)]),
        (r#"[{"name":{"includes":3}}]"#, &[("/name/includes", impossible)]),
        (r#"[{"name":{"lt":3}}]"#, &[("/name/lt", impossible)]),
        (r#"[{"mail":"ann"}]"#, &[("/mail", impossible)]),
        (r#"[{"from":["x",["y"]]}]"#, &[("/from/1", impossible)]),
        (r#"[{"not":{"all":[{"stars":6}]}}]"#, &[("/not/all/0/stars", impossible)]),
    ]);
}

#[test]
fn fixed_bounds_of_a_question_limit_its_conditions() {
    for (question, condition, is_possible) in [
        (r#""date","max":"2026-12-31""#, r#"{"gt":"2026-12-31"}"#, false),
        (r#""date","max":"2026-12-31""#, r#"{"gte":"2027-01-01"}"#, false),
        (r#""date","max":"2026-12-31""#, r#"{"gte":"2026-12-31"}"#, true),
        (r#""date","min":"2026-12-31""#, r#"{"lt":"2026-12-31"}"#, false),
        (r#""date","min":"today","max":"today+9d""#, r#"{"lt":"0001-01-01","answered":true}"#, true),
        (r#""time","min":"09:00","max":"17:00""#, r#"{"gt":"17:00:00"}"#, false),
        (r#""time","min":"09:00","max":"17:00""#, r#"{"lt":"09:00:01"}"#, true),
        (r#""time","min":"09:00","max":"17:00""#, r#"{"lt":"09:00"}"#, false),
        (r#""datetime","min":"2026-01-01T00:00:00Z""#, r#"{"lt":"2026-01-01T01:00:00+01:00"}"#, false),
        (r#""datetime","min":"2026-01-01T00:00:00Z""#, r#"{"lt":"2026-01-01T01:00:01+01:00"}"#, true),
    ] {
        let questions = format!(
            r#"{{"id":"x","type":{question},"title":"X"}},{{"type":"rating","title":"R","show_if":{{"x":{condition}}}}}"#
        );
        assert_eq!(read(&questions).is_ok(), is_possible, "{question} {condition}");
    }
}

#[test]
fn a_refused_condition_says_why_and_suggests_the_intended_one() {
    let earlier = r#"{"id":"stars","type":"rating","title":"R"},
        {"id":"food","type":"multiple_choice","title":"F","options":["a","b"]},
        {"id":"m","type":"multiple_choice","title":"M","options":["a","b"],"allow_other":true},
        {"id":"s","type":"single_choice","title":"S","options":["x","y"]},
        {"id":"t","type":"short_text","title":"T"},{"type":"rating","title":"T","show_if":"#;
    let whole = "whole number from 1 to 5";
    let list = "`food` is a list, each one of a, b, not ";
    for (condition, message, help) in [
        (r#"{"stars":{"eq":9}}"#, &*format!("`stars` is a {whole}, not 9"), ""),
        (r#"{"stars":{"ne":"a"}}"#, &format!("`stars` is a {whole}, not \"a\""), ""),
        (
            r#"{"stars":{"gt":5}}"#,
            &format!("never be true of `stars`: its answer is a {whole}, never > 5"),
            "",
        ),
        (r#"{"food":"a"}"#, list, r#"write `{"food": {"includes": "a"}}`"#),
        (r#"{"food":["b"]}"#, list, r#"write `{"food": {"includes": "b"}}`"#),
        (r#"{"food":"c"}"#, list, ""),
        (r#"{"m":["b"]}"#, "", r#"write `{"m": {"includes": "b"}}`"#),
        (r#"{"or":[{"s":"x"}]}"#, "", "write `any`"),
        (r#"{"and":[{"s":"x"}]}"#, "", "write `all`"),
        (r#"{"s":7}"#, "", ""),
        (r#"{"t":7}"#, "", r#"quote it: "7""#),
        (r#"{"t":["a",true]}"#, "", r#"quote it: "true""#),
        (r#"{"t":""}"#, "", r#"write `{"answered": false}` to ask for no answer"#),
    ] {
        let violation = read(&format!("{earlier}{condition}}}")).unwrap_err().remove(0);
        assert!(violation.message.contains(message), "{condition}: {violation:?}");
        assert_eq!(violation.help.as_deref().unwrap_or_default(), help, "{condition}: {violation:?}");
        assert!(!condition.contains("[{") || violation.allowed.is_empty(), "{violation:?}");
    }
}

#[test]
fn a_condition_can_name_a_question_that_is_invalid() {
    let violations = read(
        r#"{"id":"a","type":"ratting","title":"A"},{"type":"nope","title":"B"},{"id":"C","type":"rating","title":"C"},
           {"type":"rating","title":"D","show_if":{"a":77,"q1":1,"C":5,"gone":1}},{"type":"rating","show_if":{"q2":9}}"#,
    )
    .unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("/questions/0/type", "unknown_question_type"),
            ("/questions/1/type", "unknown_question_type"),
            ("/questions/2/id", "invalid_question_id"),
            ("/questions/3/show_if/gone", "unknown_reference"),
            ("/questions/4/show_if/q2", "impossible_condition"),
            ("/questions/4/title", "missing_field"),
        ]
    );
}

#[test]
fn the_conditions_of_a_form_have_at_most_50_matches_and_250_includes() {
    let list = |test: &str, times: usize| format!(r#"{{"any":[{}]}}"#, vec![test; times].join(","));
    for (test, limit) in [(r#"{"name":{"matches":"a"}}"#, 50), (r#"{"name":{"includes":"a"}}"#, 250)] {
        assert_eq!(problems(&list(test, limit)), []);
        // The excess is reported once, at the first test beyond the limit.
        let [(pointer, code)] = &problems(&list(test, 3 * limit))[..] else { panic!("{test}") };
        assert!(pointer.starts_with(&format!("/any/{limit}/name/")) && *code == "too_many", "{pointer}");
        let question = |times| format!(r#"{{"type":"rating","title":"T","show_if":{}}}"#, list(test, times));
        let form = |times| read(&format!("{EARLIER},{},{}", question(limit / 2), question(times)));
        assert!(form(limit / 2).is_ok());
        assert_eq!(form(limit / 2 + 1).unwrap_err()[0].code.known().unwrap().name(), "too_many");
    }
}

#[test]
fn the_conditions_of_a_form_have_at_most_10_000_values() {
    let one_of = |count: usize| {
        format!(
            r#"{{"stars":[{}],"any":[{{"stars":1}},{{"stars":{{"gt":2}}}}]}}"#,
            vec!["3"; count].join(",")
        )
    };
    assert_eq!(problems(&one_of(9_998)), []);
    assert_eq!(problems(&one_of(20_000)), [("/stars/10000".to_owned(), "too_many")]);
    assert_eq!(problems(&one_of(9_999)), [("/any/1/stars/gt".to_owned(), "too_many")]);
}

#[test]
fn a_condition_matches_a_pattern_only_against_short_texts() {
    let form = |settings: &str, test: &str| {
        read(&format!(
            r#"{{"id":"x","title":"X",{settings}}},{{"type":"rating","title":"R","show_if":{{"x":{test}}}}}"#
        ))
    };
    let matches = r#"{"matches":"a"}"#;
    let other = r#""single_choice","options":["a","b"],"allow_other":true"#;
    let kinds = [
        r#""short_text""#,
        r#""long_text","max_length":1000"#,
        r#""email""#,
        r#""url""#,
        r#""hidden""#,
        r#""date""#,
    ];
    for kind in kinds.into_iter().chain([other]) {
        assert!(form(&format!("\"type\":{kind}"), matches).is_ok(), "{kind}");
    }
    for settings in [r#""type":"long_text""#, r#""type":"short_text","max_length":1001"#] {
        let violations = form(settings, matches).unwrap_err();
        assert_eq!(pointers(&violations), [("/questions/1/show_if/x/matches", "invalid_range")]);
        let help = "set the `max_length` of `x`, or use `includes`, which serves longer texts";
        assert_eq!(violations[0].help.as_deref(), Some(help));
        assert!(form(settings, r#"{"includes":"a"}"#).is_ok());
    }
}

#[test]
fn the_conditions_of_a_change_are_checked_against_the_new_questions() {
    let (form, version) =
        form(r#"{"type":"rating","title":"A"},{"type":"email","title":"B","show_if":{"q1":5}}"#);
    let change = |text: &str| change(&form, &version, text);
    let same = r#"{"questions":[{"id":"q1","type":"rating","title":"A"},{"id":"q2","type":"email","title":"B","show_if":{"q1":5}}]}"#;
    assert!(matches!(change(same), Ok(None)));
    let other = same.replace("\"q1\":5", "\"q1\":4");
    assert!(matches!(change(&other), Ok(Some(edited)) if edited.version.is_some()));
    // Without its id the first question is a new one with a new id, so `q1` no longer exists.
    let unnamed = same.replace(r#""id":"q1","#, "");
    assert_eq!(
        pointers(&violations(change(&unnamed).unwrap_err())),
        [("/questions/1/show_if/q1", "unknown_reference")]
    );
    let impossible = violations(change(&same.replace("\"q1\":5", "\"q1\":6")).unwrap_err());
    assert_eq!(pointers(&impossible), [("/questions/1/show_if/q1", "impossible_condition")]);
}
