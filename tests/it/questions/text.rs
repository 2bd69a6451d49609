//! The types `short_text` and `long_text`.

use serde_json::json;

use super::*;

#[test]
fn long_text_accepts_lines_within_its_length_limits() {
    let long = format!("[\"{}\"]", "é\\n".repeat(10_000));
    let longer = format!("[\"{}\"]", "x".repeat(20_001));
    question(r#""type":"long_text""#).check(&[
        (r#"["one\ntwo\r\nthree\tx", "a\u2028b\u2029c"]"#, &[]),
        (&long, &[]),
        (r#"[" \n "]"#, &[]),
        (&longer, &["too_long"]),
        ("[5]", &["type_mismatch"]),
        (r#"["a\u000bb", "a\u0085b", "a\u001bb", "a\u007fb"]"#, &["invalid_character"]),
    ]);
    question(r#""type":"long_text","min_length":3,"max_length":4,"pattern":"a[^b]*""#).check(&[
        (r#"["a\nc", "a\ncd"]"#, &[]),
        (r#"["a\n"]"#, &["too_short"]),
        (r#"["a\nbde"]"#, &["too_long", "pattern_mismatch"]),
        (r#"["b\u000b"]"#, &["invalid_character", "too_short", "pattern_mismatch"]),
    ]);
}

#[test]
fn the_schema_has_patterns_in_ecma_262_syntax() {
    for (pattern, written) in [
        ("[A-F]-[0-9]{2}", Some("[A-F]-[0-9]{2}")),
        ("a\\\\.b|(?:c|d)+", Some("(?:a\\.b|[c-d]+)")),
        ("a.b", Some("a[^\\u000a]b")),
        ("(?s)a.b", Some("a[\\s\\S]b")),
        ("(?i)ka", Some("[Kk\u{212a}][Aa]")),
        ("(?P<n>a|bc)", Some("(?:a|bc)")),
        ("[[:alpha:]]", Some("[A-Za-z]")),
        ("[ab&&b-]{1,3}", Some("b{1,3}")),
        ("a\\\\@b", Some("a@b")),
        ("\\\\[a\\\\]\\\\{\\\\\\\\[.]", Some("\\[a\\]\\{\\\\\\.")),
        ("(?-u:\\\\d)+?", Some("[0-9]+")),
        ("a++", Some("(?:a+)+")),
        ("a{2}{3}", Some("(?:a{2}){3}")),
        ("[-a]\\\\-", Some("[\\-a]-")),
        ("a\\\\x{1F600}\\\\z", Some("a😀$(?!\\n)")),
        ("[^a-z]", Some("[^a-z]")),
        ("\\\\w", None),
        ("(a*)*", None),
        ("\\\\ba", None),
        ("(?m)^a", None),
        ("[a&&b]", None),
    ] {
        let version = define(&format!(r#""type":"short_text","pattern":"{pattern}""#)).unwrap();
        let schema = version.questions[0].kind.rules().schema();
        let expected = written.map(|text| json!([{ "pattern": format!("^{text}$(?!\\n)") }]));
        let found = schema.get("allOf").map(|found| serde_json::from_str(&found.to_string()).unwrap());
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn the_settings_of_text_are_checked() {
    check_canonical(
        r#""type":"long_text","min_length":1,"max_length":1000,"pattern":"a+","pattern_message":"only a","placeholder":"p""#,
    );
    check_settings(&[
        (r#""type":"long_text","min_length":20001"#, &["invalid_range/min_length"]),
        (r#""type":"long_text","max_length":65537"#, &["invalid_range/max_length"]),
        (r#""type":"long_text","pattern":"(?=a)""#, &["invalid_pattern/pattern"]),
        (r#""type":"short_text","pattern":"(""#, &["invalid_pattern/pattern"]),
        (r#""type":"short_text","pattern":"(a{1000}){1000}""#, &["invalid_pattern/pattern"]),
        (r#""type":"short_text","min_length":5,"max_length":4"#, &["invalid_range/min_length"]),
    ]);
}

#[test]
fn short_text_accepts_one_line_within_its_length_limits() {
    let long = format!("[\"{}\"]", "x".repeat(1_000));
    let longer = format!("[\"{}\"]", "é".repeat(1_001));
    question(r#""type":"short_text""#).check(&[
        (r#"["hello", "a\tb"]"#, &[]),
        (&long, &[]),
        // Empty values count as no answer, and none is required.
        (r#"["", " \u3000", null, [], {}]"#, &[]),
        (&longer, &["too_long"]),
        (r#"[5, true, ["a"], {"other":"a"}]"#, &["type_mismatch"]),
        (r#"["a\nb", "a\u2028b", "a\u0085b", "a\u001bb", "a\u007fb"]"#, &["invalid_character"]),
        (r#"["a\u009bb"]"#, &["invalid_character"]),
    ]);
    question(r#""type":"short_text","min_length":2,"max_length":3"#).check(&[
        (r#"["é"]"#, &["too_short"]),
        (r#"["éé", "ééé"]"#, &[]),
        (r#"["éééé"]"#, &["too_long"]),
    ]);
}

#[test]
fn an_answer_over_64_kib_is_too_long_regardless_of_the_question() {
    let version = define(r#""type":"short_text","max_length":65536"#).unwrap();
    assert_eq!(violations(&version, &"x".repeat(65_536).as_str().into()), [""; 0]);
    assert_eq!(violations(&version, &format!("{}é", "x".repeat(65_535)).as_str().into()), ["too_long"]);
}
