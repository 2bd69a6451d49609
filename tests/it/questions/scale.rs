//! The types `rating` and `opinion_scale`.

use super::{check_answers, check_canonical, check_settings};

#[test]
fn opinion_scale_accepts_whole_numbers_in_its_range() {
    check_answers(
        r#""type":"opinion_scale""#,
        &[
            ("0", &[]),
            ("-0", &[]),
            ("10", &[]),
            ("1e1", &[]),
            ("11", &["out_of_range"]),
            ("-1", &["out_of_range"]),
            ("9.5", &["not_an_integer"]),
            ("-0.5", &["not_an_integer", "out_of_range"]),
            ("10.5", &["not_an_integer", "out_of_range"]),
            ("-7.25", &["not_an_integer", "out_of_range"]),
            ("\"5\"", &["type_mismatch"]),
            ("[5]", &["type_mismatch"]),
        ],
    );
    check_answers(
        r#""type":"opinion_scale","min":1,"max":7"#,
        &[("1", &[]), ("7", &[]), ("0", &["out_of_range"]), ("8", &["out_of_range"])],
    );
    check_answers(
        r#""type":"opinion_scale","nps":true"#,
        &[("0", &[]), ("10", &[]), ("11", &["out_of_range"])],
    );
    check_answers(
        r#""type":"rating","max":3"#,
        &[("3", &[]), ("0", &["out_of_range"]), ("4", &["out_of_range"])],
    );
}

#[test]
fn the_settings_of_scales_are_checked() {
    check_canonical(r#""type":"opinion_scale","min":1,"max":5,"labels":{"1":"never","5":"always"}"#);
    check_canonical(r#""type":"opinion_scale","nps":true,"min":0,"max":10"#);
    check_settings(&[
        (r#""type":"opinion_scale","min":2"#, &["invalid_range/min"]),
        (r#""type":"opinion_scale","max":11"#, &["invalid_range/max"]),
        (r#""type":"opinion_scale","max":1"#, &["invalid_range/max"]),
        (r#""type":"opinion_scale","nps":true,"min":1"#, &["invalid_range/nps"]),
        (r#""type":"opinion_scale","nps":true,"max":9"#, &["invalid_range/nps"]),
        (r#""type":"opinion_scale","nps":1"#, &["type_mismatch/nps"]),
        (r#""type":"opinion_scale","min":1,"labels":{"0":"x"}"#, &["invalid_range/labels/0"]),
        (r#""type":"opinion_scale","labels":{"10":5}"#, &["type_mismatch/labels/10"]),
        (r#""type":"opinion_scale","labels":[]"#, &["type_mismatch/labels"]),
        (r#""type":"rating","nps":true"#, &["unknown_field/nps"]),
    ]);
}

#[test]
fn rating_accepts_whole_numbers_by_value() {
    check_answers(
        r#""type":"rating""#,
        &[
            ("1", &[]),
            ("5", &[]),
            ("5.0", &[]),
            ("5e0", &[]),
            ("0", &["out_of_range"]),
            ("6", &["out_of_range"]),
            ("-1", &["out_of_range"]),
            ("18446744073709551616", &["out_of_range"]),
            ("4.5", &["not_an_integer"]),
            ("4.9999999999999999999", &["not_an_integer"]),
            ("50e-1", &[]),
            ("1.5e-9223372036854775808", &["not_an_integer", "out_of_range"]),
            ("1.5e-92233720368547758080", &["not_an_integer", "out_of_range"]),
            ("0.5e1", &[]),
            ("5.00000000000000000000000000000000000001", &["not_an_integer", "out_of_range"]),
            ("\"5\"", &["type_mismatch"]),
            ("true", &["type_mismatch"]),
        ],
    );
    check_answers(r#""type":"rating","max":10"#, &[("10", &[]), ("11", &["out_of_range"])]);
}
