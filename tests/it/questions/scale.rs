//! The types `rating` and `opinion_scale`.

use super::*;

#[test]
fn opinion_scale_accepts_whole_numbers_in_its_range() {
    question(r#""type":"opinion_scale""#).check(&[
        ("[0, -0, 10, 1e1]", &[]),
        ("[11, -1]", &["out_of_range"]),
        ("[9.5]", &["not_an_integer"]),
        ("[-0.5, 10.5, -7.25]", &["not_an_integer", "out_of_range"]),
        (r#"["5", [5]]"#, &["type_mismatch"]),
    ]);
    question(r#""type":"opinion_scale","min":1,"max":7"#)
        .check(&[("[1, 7]", &[]), ("[0, 8]", &["out_of_range"])]);
    question(r#""type":"opinion_scale","nps":true"#).check(&[("[0, 10]", &[]), ("[11]", &["out_of_range"])]);
    question(r#""type":"rating","max":3"#).check(&[("[3]", &[]), ("[0, 4]", &["out_of_range"])]);
}

#[test]
fn the_settings_of_scales_are_checked() {
    check_canonical(r#""type":"rating","max":5,"labels":{"5":"good","1":"bad"}"#);
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
        (r#""type":"rating","max":11"#, &["invalid_range/max"]),
        (
            r#""type":"rating","labels":{"1":"a","6":"b","2":3}"#,
            &["invalid_range/labels/6", "type_mismatch/labels/2"],
        ),
    ]);
}

#[test]
fn rating_accepts_whole_numbers_by_value() {
    question(r#""type":"rating""#).check(&[
        ("[1, 5, 5.0, 5e0, 50e-1, 0.5e1]", &[]),
        ("[0, 6, -1, 18446744073709551616]", &["out_of_range"]),
        ("[4.5, 4.9999999999999999999]", &["not_an_integer"]),
        ("[1.5e-9223372036854775808]", &["not_an_integer", "out_of_range"]),
        ("[1.5e-92233720368547758080]", &["not_an_integer", "out_of_range"]),
        ("[5.00000000000000000000000000000000000001]", &["not_an_integer", "out_of_range"]),
        (r#"["5", true]"#, &["type_mismatch"]),
    ]);
    question(r#""type":"rating","max":10"#).check(&[("[10]", &[]), ("[11]", &["out_of_range"])]);
}
