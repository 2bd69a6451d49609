//! Conditions on each question type: which tests it allows, and how its answers compare.

use forms::domain::validation::limits::Limits;

use super::{now, object, read, version};

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
    {"id":"tale","type":"long_text","title":"T"}"#;

/// The code of the first problem of `condition`, and its pointer within the condition.
fn problem(condition: &str) -> Option<(&'static str, String)> {
    let last = format!(r#"{{"id":"last","type":"rating","title":"T","show_if":{condition}}}"#);
    let violations = read(&format!("{KINDS},{last}")).err()?;
    let tail = violations[0].pointer.strip_prefix("/questions/15/show_if").unwrap().to_owned();
    Some((violations[0].code.known().unwrap().name(), tail))
}

#[test]
fn a_test_that_no_answer_of_a_type_satisfies_is_refused() {
    for condition in [
        r#"{"pick":"red"}"#,
        r#"{"pick":["red","7"]}"#,
        r#"{"pick":{"matches":"^r"}}"#,
        r#"{"free":{"eq":{"other":"x"}}}"#,
        r#"{"many":{"includes":"b"}}"#,
        r#"{"many":{"eq":["a","b"]}}"#,
        r#"{"rank":{"includes":"a"}}"#,
        r#"{"grid":{"eq":{"r":"c"}}}"#,
        r#"{"yes":false}"#,
        r#"{"agree":true}"#,
        r#"{"count":{"gte":10}}"#,
        r#"{"any_number":{"gt":1e300}}"#,
        r#"{"nps":{"lte":6}}"#,
        r#"{"day":{"lt":"2026-01-02"}}"#,
        r#"{"soon":{"gt":"2999-01-01"}}"#,
        r#"{"soon":"2999-01-01"}"#,
        r#"{"at":{"gte":"09:00"}}"#,
        r#"{"when":{"lt":"2026-01-01T00:00:00+01:00"}}"#,
        r#"{"tale":{"includes":"once"}}"#,
    ] {
        assert_eq!(problem(condition), None, "{condition}");
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

#[test]
fn answers_are_compared_by_the_rules_of_their_type() {
    for (condition, answer, holds) in [
        (r#"{"when":"2026-06-01T12:00:00Z"}"#, r#"{"when":"2026-06-01T14:00:00+02:00"}"#, true),
        (r#"{"when":{"lt":"2026-06-01T12:00:00Z"}}"#, r#"{"when":"2026-06-01T11:30:00-02:00"}"#, false),
        (r#"{"at":["09:00"]}"#, r#"{"at":"09:00:00"}"#, true),
        (r#"{"day":{"gte":"2026-06-01"}}"#, r#"{"day":"2026-05-31"}"#, false),
        (r#"{"many":{"includes":"c"}}"#, r#"{"many":["a","c"]}"#, true),
        // A consent that is not given counts as no answer.
        (r#"{"agree":{"answered":false}}"#, r#"{"agree":false}"#, true),
        (r#"{"yes":{"answered":true}}"#, r#"{"yes":false}"#, true),
        (r#"{"count":0.5}"#, r#"{"count":5e-1}"#, true),
        (r#"{"any_number":{"gt":0.3}}"#, r#"{"any_number":0.30000000000000001}"#, true),
        (r#"{"any_number":{"gt":0.3}}"#, r#"{"any_number":3e-1}"#, false),
        (r#"{"yes":false}"#, r#"{"yes":false}"#, true),
        (r#"{"agree":true}"#, r#"{"agree":true}"#, true),
        (r#"{"agree":{"answered":true}}"#, r#"{"agree":false}"#, false),
        (r#"{"many":{"includes":"b"}}"#, r#"{"many":["a","c"]}"#, false),
        (r#"{"at":{"gte":"09:30:00"}}"#, r#"{"at":"09:30"}"#, true),
        (r#"{"grid":{"answered":true}}"#, r#"{"grid":{"r":null}}"#, false),
    ] {
        let last =
            format!(r#"{{"id":"last","type":"rating","title":"T","required":true,"show_if":{condition}}}"#);
        let version = version(&format!("{KINDS},{last}"));
        let found = version.check(&object(answer), &Limits::default(), now());
        let found = found.err().unwrap_or_default();
        let codes: Vec<_> = found.iter().map(|found| found.code.known().unwrap().name()).collect();
        assert_eq!(codes, if holds { vec!["required"] } else { vec![] }, "{condition}: {answer}");
    }
}
