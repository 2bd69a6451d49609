//! How large patterns may be, and how long the texts they are held against.

use forms::domain::form::definition::Definition;
use forms::domain::json;
use forms::domain::validation::limits::Limits;

use super::{define, holds, refuses};

/// The codes, pointers and messages of what is wrong with a form of `questions`.
fn problems(questions: &str) -> Vec<(&'static str, String, String)> {
    let form = json::parse(&format!(r#"{{"title":"F","questions":[{questions}]}}"#)).unwrap();
    let found = Definition::read(&form, &Limits::default()).err().unwrap_or_default();
    found
        .into_iter()
        .map(|found| (found.code.known().unwrap().name(), found.pointer, found.message))
        .collect()
}

/// Codes and pointers alone.
fn places(questions: &str) -> Vec<(&'static str, String)> {
    problems(questions).into_iter().map(|(code, pointer, _)| (code, pointer)).collect()
}

fn question(settings: &str) -> String {
    format!(r#"{{"type":"short_text","title":"T",{settings}}}"#)
}

fn patterned(pattern: &str) -> String {
    question(&format!(r#""pattern":"{pattern}""#))
}

#[test]
fn a_form_may_have_many_everyday_patterns() {
    let everyday = [
        r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"[0-9]{5}",
        r"[^@]+@[^@]+",
        r"\\p{L}+",
    ];
    let questions: Vec<_> = everyday.iter().cycle().take(40).map(|pattern| patterned(pattern)).collect();
    assert_eq!(problems(&questions.join(",")), []);
    assert_eq!(problems(&vec![patterned("[A-Z]{2}[0-9]{4}"); 200].join(",")), []);
}

#[test]
fn one_pattern_has_the_room_of_all() {
    let named = r#"{"id":"name","type":"short_text","title":"T"}"#;
    let asked = |pattern: &str| {
        format!("{named},{}", question(&format!(r#""show_if":{{"name":{{"matches":"{pattern}"}}}}"#)))
    };
    for pattern in [r"\\w{9}", "[ab]{3000}", "(a(b(c)))"] {
        assert_eq!(problems(&patterned(pattern)), [], "{pattern}");
        assert_eq!(problems(&asked(pattern)), [], "{pattern}");
    }
    let own = problems(&patterned(r"\\w{20}"));
    let [(code, pointer, message)] = &own[..] else { panic!("{own:?}") };
    assert_eq!((*code, pointer.as_str()), ("invalid_pattern", "/questions/0/pattern"));
    let expected = r"`pattern` compiles to more than 256 KiB: write `[A-Za-z0-9_]` for `\w`, repeat less,";
    assert!(message.starts_with(expected) && message.contains("`max_length`"), "{message}");
    assert!(!message.contains(r"\d"), "only what is there is named: {message}");
    let expected = [("invalid_pattern", "/questions/1/show_if/name/matches".to_owned())];
    assert_eq!(places(&asked(r"\\w{20}")), expected);
}

#[test]
fn the_patterns_of_a_form_compile_to_256_kib_at_most() {
    let large = patterned("[ab]{2000}");
    assert_eq!(problems(&[large.as_str(); 3].join(",")), []);
    let found = problems(&vec![large.as_str(); 100].join(","));
    let [(code, pointer, message)] = &found[..] else { panic!("it is reported once: {found:?}") };
    assert_eq!(*code, "invalid_pattern");
    assert!(pointer.ends_with("/pattern") && message.contains("more than 256 KiB"), "{pointer}: {message}");
    assert!(message.contains("together; the largest before it is `[ab]{2000}`"), "{message}");
    assert!(message.contains("`max_length`"), "{message}");
    // Those of conditions count too.
    let conditional = question(r#""show_if":{"q1":{"matches":"[ab]{2000}"}}"#);
    let form =
        |count| format!("{},{}", [large.as_str(); 2].join(","), vec![conditional.as_str(); count].join(","));
    assert_eq!(places(&form(1)), []);
    assert_eq!(places(&form(20)).len(), 1);
}

#[test]
fn word_boundaries_count_four_times() {
    // 18 KiB each, and 24 KiB.
    let (boundary, without) = (patterned(r"(?:a\\b){100}"), patterned("a{1000}"));
    assert_eq!(problems(&[boundary.as_str(); 3].join(",")), []);
    assert_eq!(problems(&[without.as_str(); 4].join(",")), []);
    let found = places(&[boundary.as_str(); 4].join(","));
    assert_eq!(found, [("invalid_pattern", "/questions/3/pattern".to_owned())]);
}

#[test]
fn the_patterns_of_a_form_have_10_000_characters_at_most() {
    // Written at length, and compiled to next to nothing.
    let long = format!("a{}", r"(?:\\pL){0}".repeat(90));
    assert_eq!(problems(&vec![patterned(&long); 10].join(",")), []);
    let found = problems(&vec![patterned(&long); 500].join(","));
    let [(code, pointer, message)] = &found[..] else { panic!("it is reported once: {found:?}") };
    assert_eq!((*code, pointer.as_str()), ("invalid_pattern", "/questions/11/pattern"));
    assert!(message.contains("more than 10000 characters"), "{message}");
}

#[test]
fn what_else_is_wrong_is_reported_beside_too_large_patterns() {
    let large = patterned("[ab]{2000}");
    let mut questions = vec![large.as_str(); 50];
    questions.push(r#"{"type":"rating"}"#);
    let found: Vec<_> = places(&questions.join(",")).into_iter().map(|(code, _)| code).collect();
    assert_eq!(found, ["invalid_pattern", "missing_field"]);
}

#[test]
fn a_text_with_a_pattern_has_1000_characters_at_most() {
    refuses(&[
        (r#""type":"long_text","pattern":"a*","max_length":1000"#, &[]),
        (r#""type":"long_text","pattern":"a*""#, &[]),
        (r#""type":"long_text","pattern":"a*","max_length":1001"#, &["invalid_range/max_length"]),
        (r#""type":"short_text","pattern":"a*","max_length":5000"#, &["invalid_range/max_length"]),
        (r#""type":"long_text","pattern":"a*","min_length":1001"#, &["invalid_range/min_length"]),
    ]);
    let text = |length| format!("\"{}\"", "a".repeat(length));
    for kind in ["short_text", "long_text"] {
        holds(
            &format!(r#""type":"{kind}","pattern":"a*""#),
            &[(&text(1_000), &[]), (&text(1_001), &["too_long"])],
        );
    }
    holds(r#""type":"long_text""#, &[(&text(20_000), &[]), (&text(20_001), &["too_long"])]);
}

#[test]
fn every_broken_rule_of_a_text_is_reported_as_long_as_it_is_short() {
    let long = format!("\"{}\"", "b".repeat(1_001));
    holds(
        r#""type":"short_text","pattern":"a|b[0-9]{2}","max_length":3"#,
        &[
            ("\"b123\"", &["too_long", "pattern_mismatch"]),
            ("\"b1\"", &["pattern_mismatch"]),
            ("\"b12\"", &[]),
            (&long, &["too_long"]),
        ],
    );
}

#[test]
fn a_pattern_is_anchored_whatever_it_is() {
    holds(
        r#""type":"short_text","pattern":"(?x) a | b # either""#,
        &[("\"a\"", &[]), ("\"b\"", &[]), ("\"ab\"", &["pattern_mismatch"])],
    );
    holds(
        r#""type":"long_text","pattern":"(?m)^a$""#,
        &[("\"a\"", &[]), (r#""a\na""#, &["pattern_mismatch"])],
    );
    refuses(&[(r#""type":"short_text","pattern":"a)|(b""#, &["invalid_pattern/pattern"])]);
}

#[test]
fn a_version_knows_what_its_patterns_weigh_and_whether_it_searches() {
    let version = |settings: &str| define(&format!(r#""type":"short_text"{settings}"#)).unwrap();
    let (none, little) = (version(""), version(r#","pattern":"a""#));
    let large = version(r#","pattern":"[ab]{3000}""#);
    assert_eq!((none.pattern_bytes, none.searches), (0, false));
    assert!((1..20_000).contains(&little.pattern_bytes) && little.searches);
    // Three thousand states, of 24 bytes at least.
    assert!((72_000..300_000).contains(&large.pattern_bytes));
}
