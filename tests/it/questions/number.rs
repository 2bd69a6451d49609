//! The types `number`, `boolean` and `consent`.

use super::*;

#[test]
fn number_accepts_numbers_within_its_bounds() {
    question(r#""type":"number""#)
        .check(&[("[0, -1.5e300, 18446744073709551616]", &[]), (r#"["5", true, [5]]"#, &["type_mismatch"])]);
    question(r#""type":"number","min":-0.5,"max":0.3"#).check(&[
        ("[-0.5, 0.3, 3e-1]", &[]),
        ("[-0.50000000000000000001, 0.30000000000000000001]", &["out_of_range"]),
    ]);
    question(r#""type":"number","integer":true,"min":0"#).check(&[
        ("[5.0, 18446744073709551617]", &[]),
        ("[4.9999999999999999999]", &["not_an_integer"]),
        ("[-0.5]", &["not_an_integer", "out_of_range"]),
    ]);
}

#[test]
fn steps_are_counted_from_the_minimum_and_are_exact() {
    let not_a_step = &["not_a_step"][..];
    for (settings, steps, others) in [
        (r#""step":0.1"#, "[0.3, -0.7, 1e2, 1e300]", "[0.35, 0.30000000000000001]"),
        (r#""step":1,"min":0.5"#, "[2.5]", "[2]"),
        (r#""step":3,"min":1"#, "[1, 4, 10, 1e300]", "[3]"),
        (r#""step":3,"min":2"#, "[2, 5]", "[1e300]"),
        (r#""step":25e1"#, "[500]", "[300]"),
        (r#""step":1e18,"min":7"#, "[1000000000000000007]", "[1000000000000000008]"),
        (r#""step":0.25"#, "[0]", "[1e-99999999999999999999]"),
    ] {
        question(&format!(r#""type":"number",{settings}"#)).check(&[(steps, &[]), (others, not_a_step)]);
    }
    question(r#""type":"number","min":1,"max":10,"step":3"#)
        .check(&[("[-2]", &["out_of_range"]), ("[12]", &["out_of_range", "not_a_step"])]);
}

#[test]
fn the_settings_of_numbers_are_checked() {
    check_canonical(r#""type":"number","min":-1.50,"max":1e2,"step":0.5,"integer":false"#);
    check_settings(&[
        (r#""type":"number","min":1,"max":0.999"#, &["invalid_range/min"]),
        (r#""type":"number","min":0.1,"max":0.2,"integer":true"#, &["invalid_range/integer"]),
        (r#""type":"number","min":0.1,"max":1,"integer":true"#, &[]),
        (r#""type":"number","min":1,"max":1.0"#, &[]),
        (r#""type":"number","step":0"#, &["invalid_range/step"]),
        (r#""type":"number","step":-1"#, &["invalid_range/step"]),
        (r#""type":"number","step":1e-31"#, &["invalid_range/step"]),
        (r#""type":"number","min":1e-20,"step":1"#, &["invalid_range/step"]),
        (r#""type":"number","min":0.5,"step":1e19"#, &["invalid_range/step"]),
        (r#""type":"number","min":"1","integer":1"#, &["type_mismatch/min", "type_mismatch/integer"]),
    ]);
}

#[test]
fn boolean_accepts_true_and_false_and_consent_only_true() {
    question(r#""type":"boolean","required":true"#).check(&[
        ("[true, false]", &[]),
        (r#"["yes", 1]"#, &["type_mismatch"]),
        ("[null]", &["required"]),
    ]);
    question(r#""type":"consent","required":true"#).check(&[
        ("[true]", &[]),
        ("[false, null]", &["required"]),
        (r#"["true", 1]"#, &["type_mismatch"]),
    ]);
    question(r#""type":"consent""#).check(&[("[true, false]", &[])]);
    check_canonical(r#""type":"boolean","labels":{"true":"Coming","false":"Not this time"}"#);
    check_canonical(r#""type":"consent","text":"I agree to **the rules**""#);
    check_settings(&[
        (r#""type":"boolean","labels":{"yes":"x"}"#, &["invalid_range/labels/yes"]),
        (r#""type":"consent","text":" ""#, &["empty/text"]),
        (r#""type":"consent","labels":{"true":"x"}"#, &["unknown_field/labels"]),
    ]);
}

#[test]
fn steps_are_in_the_schema_only_if_all_validators_compute_them_alike() {
    for (settings, expected) in [
        (r#""step":3"#, true),
        (r#""step":5e1,"min":-100"#, true),
        (r#""step":3,"min":1"#, false),
        (r#""step":0.1"#, false),
    ] {
        let version = define(&format!(r#""type":"number",{settings}"#)).unwrap();
        let schema = version.questions[0].kind.rules().schema();
        assert_eq!(schema.get("multipleOf").is_some(), expected, "{settings}");
    }
}

#[test]
fn a_number_has_at_most_400_characters() {
    for kind in ["number", "hidden"] {
        let version = define(&format!(r#""type":"{kind}""#)).unwrap();
        for (length, expected) in [(400, &[][..]), (401, &["too_long"])] {
            let number = format!("1.{}", "1".repeat(length - 2));
            assert_eq!(violations(&version, &json::parse(&number).unwrap()), expected, "{kind} {length}");
        }
    }
}
