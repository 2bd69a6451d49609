//! Limits of patterns and of the texts that they are matched against.

use super::*;

/// Codes, pointers and messages of the problems of a form with `questions`.
fn problems(questions: &str) -> Vec<(&'static str, String, String)> {
    let form = json::parse(&format!(r#"{{"title":"F","questions":[{questions}]}}"#)).unwrap();
    let found = Definition::read(&form, &Limits::default()).err().unwrap_or_default();
    found
        .into_iter()
        .map(|found| (found.code.known().unwrap().name(), found.pointer, found.message))
        .collect()
}

/// Codes and pointers of the problems.
fn pointers(questions: &str) -> Vec<(&'static str, String)> {
    problems(questions).into_iter().map(|(code, pointer, _)| (code, pointer)).collect()
}

fn short_text(settings: &str) -> String {
    format!(r#"{{"type":"short_text","title":"T",{settings}}}"#)
}

fn with_pattern(pattern: &str) -> String {
    short_text(&format!(r#""pattern":"{pattern}""#))
}

#[test]
fn a_form_can_have_many_common_patterns() {
    let common = [
        r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"[0-9]{5}",
        r"[^@]+@[^@]+",
        r"\\p{L}+",
    ];
    let questions: Vec<_> = common.iter().cycle().take(40).map(|pattern| with_pattern(pattern)).collect();
    assert_eq!(problems(&questions.join(",")), []);
    assert_eq!(problems(&vec![with_pattern("[A-Z]{2}[0-9]{4}"); 200].join(",")), []);
}

#[test]
fn one_pattern_can_use_the_whole_budget() {
    let named = r#"{"id":"name","type":"short_text","title":"T"}"#;
    let in_condition = |pattern: &str| {
        format!("{named},{}", short_text(&format!(r#""show_if":{{"name":{{"matches":"{pattern}"}}}}"#)))
    };
    for pattern in [r"\\w{9}", "[ab]{3000}", "(a(b(c)))"] {
        assert_eq!(problems(&with_pattern(pattern)), [], "{pattern}");
        assert_eq!(problems(&in_condition(pattern)), [], "{pattern}");
    }
    let own = problems(&with_pattern(r"\\w{20}"));
    let [(code, pointer, message)] = &own[..] else { panic!("{own:?}") };
    assert_eq!((*code, pointer.as_str()), ("invalid_pattern", "/questions/0/pattern"));
    let expected = r"`pattern` compiles to more than 256 KiB: write `[A-Za-z0-9_]` for `\w`";
    assert!(message.starts_with(expected) && message.contains("`max_length`"), "{message}");
    let expected = [("invalid_pattern", "/questions/1/show_if/name/matches".to_owned())];
    assert_eq!(pointers(&in_condition(r"\\w{20}")), expected);
}

#[test]
fn the_patterns_of_a_form_compile_to_at_most_256_kib() {
    let large = with_pattern("[ab]{2000}");
    assert_eq!(problems(&[large.as_str(); 3].join(",")), []);
    let found = problems(&vec![large.as_str(); 100].join(","));
    let [(code, pointer, message)] = &found[..] else { panic!("not reported once: {found:?}") };
    assert_eq!(*code, "invalid_pattern");
    assert!(pointer.ends_with("/pattern") && message.contains("more than 256 KiB"), "{pointer}: {message}");
    assert!(message.contains("together: "), "{message}");
    assert!(message.contains("`max_length`"), "{message}");
    // Patterns of conditions count as well.
    let conditional = short_text(r#""show_if":{"q1":{"matches":"[ab]{2000}"}}"#);
    let form =
        |count| format!("{},{}", [large.as_str(); 2].join(","), vec![conditional.as_str(); count].join(","));
    assert_eq!(pointers(&form(1)), []);
    assert_eq!(pointers(&form(20)).len(), 1);
}

#[test]
fn a_pattern_with_word_boundaries_counts_four_times() {
    // 18 KiB with, 24 KiB without word boundaries.
    let (boundary, without) = (with_pattern(r"(?:a\\b){100}"), with_pattern("a{1000}"));
    assert_eq!(problems(&[boundary.as_str(); 3].join(",")), []);
    assert_eq!(problems(&[without.as_str(); 4].join(",")), []);
    let found = pointers(&[boundary.as_str(); 4].join(","));
    assert_eq!(found, [("invalid_pattern", "/questions/3/pattern".to_owned())]);
}

#[test]
fn the_patterns_of_a_form_have_at_most_10_000_characters() {
    // Long text that compiles to almost nothing.
    let long = format!("a{}", r"(?:\\pL){0}".repeat(90));
    assert_eq!(problems(&vec![with_pattern(&long); 10].join(",")), []);
    let found = problems(&vec![with_pattern(&long); 500].join(","));
    let [(code, pointer, message)] = &found[..] else { panic!("not reported once: {found:?}") };
    assert_eq!((*code, pointer.as_str()), ("invalid_pattern", "/questions/11/pattern"));
    assert!(message.contains("more than 10000 characters"), "{message}");
}

#[test]
fn other_problems_are_reported_together_with_too_large_patterns() {
    let large = with_pattern("[ab]{2000}");
    let mut questions = vec![large.as_str(); 50];
    questions.push(r#"{"type":"rating"}"#);
    let found: Vec<_> = pointers(&questions.join(",")).into_iter().map(|(code, _)| code).collect();
    assert_eq!(found, ["invalid_pattern", "missing_field"]);
}

#[test]
fn a_text_with_a_pattern_has_at_most_1000_characters() {
    check_settings(&[
        (r#""type":"long_text","pattern":"a*","max_length":1000"#, &[]),
        (r#""type":"long_text","pattern":"a*""#, &[]),
        (r#""type":"long_text","pattern":"a*","max_length":1001"#, &["invalid_range/max_length"]),
        (r#""type":"short_text","pattern":"a*","max_length":5000"#, &["invalid_range/max_length"]),
        (r#""type":"long_text","pattern":"a*","min_length":1001"#, &["invalid_range/min_length"]),
    ]);
    let text = |length| format!("[\"{}\"]", "a".repeat(length));
    for kind in ["short_text", "long_text"] {
        question(&format!(r#""type":"{kind}","pattern":"a*""#))
            .check(&[(&text(1_000), &[]), (&text(1_001), &["too_long"])]);
    }
}

#[test]
fn a_pattern_is_not_matched_against_a_text_over_1000_characters() {
    let long = format!("[\"{}\"]", "b".repeat(1_001));
    question(r#""type":"short_text","pattern":"a|b[0-9]{2}","max_length":3"#).check(&[
        (r#"["b123"]"#, &["too_long", "pattern_mismatch"]),
        (r#"["b1"]"#, &["pattern_mismatch"]),
        (r#"["b12"]"#, &[]),
        (&long, &["too_long"]),
    ]);
}

#[test]
fn every_pattern_is_anchored() {
    question(r#""type":"short_text","pattern":"(?x) a | b # either""#)
        .check(&[(r#"["a", "b"]"#, &[]), (r#"["ab"]"#, &["pattern_mismatch"])]);
    question(r#""type":"long_text","pattern":"(?m)^a$""#)
        .check(&[(r#"["a"]"#, &[]), (r#"["a\na"]"#, &["pattern_mismatch"])]);
    check_settings(&[(r#""type":"short_text","pattern":"a)|(b""#, &["invalid_pattern/pattern"])]);
}

#[test]
fn a_version_reports_the_size_of_its_patterns_and_whether_it_searches() {
    let version = |settings: &str| define(&format!(r#""type":"short_text"{settings}"#)).unwrap();
    let (none, little) = (version(""), version(r#","pattern":"a""#));
    let large = version(r#","pattern":"[ab]{3000}""#);
    assert_eq!((none.pattern_bytes, none.searches), (0, false));
    assert!((1..20_000).contains(&little.pattern_bytes) && little.searches);
    // 3,000 states of at least 24 bytes.
    assert!((72_000..300_000).contains(&large.pattern_bytes));
}
