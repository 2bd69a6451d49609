//! One of some options, several, and an order of them.

use super::{define, faults, holds, keeps, refuses};

const COLOURS: &str = r#""options":["red",{"value":"green","label":"Green as grass"},{"value":"blue"}]"#;

#[test]
fn single_choice_takes_the_value_of_an_option() {
    holds(
        &format!(r#""type":"single_choice",{COLOURS}"#),
        &[
            ("\"red\"", &[]),
            ("\"green\"", &[]),
            ("\"Green as grass\"", &["not_an_option"]),
            ("\"Red\"", &["not_an_option"]),
            ("\"red \"", &["not_an_option"]),
            ("\"re\\nd\"", &["invalid_character"]),
            ("5", &["type_mismatch"]),
            ("[\"red\"]", &["type_mismatch"]),
            ("{\"other\":\"pink\"}", &["type_mismatch"]),
        ],
    );
    // A block of YAML ends in a line break, which makes it no less an option.
    holds(r#""type":"single_choice","options":["of one line\n"]"#, &[("\"of one line\\n\"", &[])]);
    holds(
        &format!(r#""type":"single_choice",{COLOURS},"allow_other":true"#),
        &[
            ("\"red\"", &[]),
            ("{\"other\":\"pink\"}", &[]),
            ("{\"other\":\"red\"}", &[]),
            ("\"pink\"", &["not_an_option"]),
            ("{\"other\":\" \\u3000\"}", &["type_mismatch"]),
            ("{\"other\":5}", &["type_mismatch"]),
            ("{\"others\":\"pink\"}", &["type_mismatch"]),
            ("{\"other\":\"pink\",\"more\":\"x\"}", &["type_mismatch"]),
            ("{\"other\":\"pi\\nnk\"}", &["invalid_character"]),
        ],
    );
}

#[test]
fn multiple_choice_takes_options_and_none_twice() {
    holds(
        &format!(r#""type":"multiple_choice",{COLOURS}"#),
        &[
            ("[\"red\"]", &[]),
            ("[\"blue\",\"red\",\"green\"]", &[]),
            ("[]", &[]),
            ("[\"red\",\"red\"]", &["duplicate_option/1"]),
            ("[\"pink\",5,\"red\"]", &["not_an_option/0", "type_mismatch/1"]),
            (
                "[\"red\",\"red\",\"red\",\"red\"]",
                &["too_many", "duplicate_option/1", "duplicate_option/2", "duplicate_option/3"],
            ),
            ("[null]", &["type_mismatch/0"]),
            ("\"red\"", &["type_mismatch"]),
            ("{\"0\":\"red\"}", &["type_mismatch"]),
        ],
    );
    holds(
        &format!(r#""type":"multiple_choice",{COLOURS},"min_selected":2,"max_selected":2"#),
        &[
            ("[\"red\"]", &["too_few"]),
            ("[\"red\",\"blue\"]", &[]),
            ("[\"red\",\"blue\",\"pink\"]", &["too_many", "not_an_option/2"]),
        ],
    );
    holds(
        &format!(r#""type":"multiple_choice",{COLOURS},"allow_other":true"#),
        &[
            ("[\"red\",{\"other\":\"pink\"}]", &[]),
            ("[\"red\",\"green\",\"blue\",{\"other\":\"pink\"}]", &[]),
            ("[{\"other\":\"pink\"},{\"other\":\"lilac\"}]", &["duplicate_option/1"]),
            ("[{\"other\":\"\"}]", &["type_mismatch/0"]),
        ],
    );
}

#[test]
fn ranking_takes_options_in_any_order() {
    holds(
        &format!(r#""type":"ranking",{COLOURS}"#),
        &[
            ("[\"blue\",\"red\"]", &[]),
            ("[\"blue\",\"red\",\"blue\"]", &["duplicate_option/2"]),
            ("[\"pink\"]", &["not_an_option/0"]),
            ("[{\"other\":\"pink\"}]", &["type_mismatch/0"]),
        ],
    );
    holds(
        &format!(r#""type":"ranking",{COLOURS},"rank_all":true"#),
        &[("[\"blue\",\"red\",\"green\"]", &[]), ("[\"blue\",\"red\"]", &["too_few"])],
    );
}

#[test]
fn the_settings_of_choices_are_checked() {
    keeps(
        r#""type":"single_choice","options":["a",{"value":"b","label":"B"}],"display":"dropdown","allow_other":false"#,
    );
    keeps(
        r#""type":"multiple_choice","options":["a","b"],"min_selected":0,"max_selected":3,"allow_other":true"#,
    );
    keeps(r#""type":"ranking","options":["a","b"],"rank_all":true"#);
    refuses(&[
        (r#""type":"single_choice""#, &["missing_field/options"]),
        (r#""type":"single_choice","options":[]"#, &["empty/options"]),
        (r#""type":"single_choice","options":{}"#, &["type_mismatch/options"]),
        (
            r#""type":"single_choice","options":["a","","a",5,{"value":"a"},{"label":"x"},{"value":"b","lable":"B"}]"#,
            &[
                "empty/options/1",
                "duplicate_option/options/2",
                "type_mismatch/options/3",
                "duplicate_option/options/4",
                "missing_field/options/5/value",
                "unknown_field/options/6/lable",
            ],
        ),
        (r#""type":"single_choice","options":["a"],"display":"list""#, &["invalid_range/display"]),
        (r#""type":"multiple_choice","options":["a","b"],"max_selected":3"#, &["invalid_range/max_selected"]),
        (r#""type":"multiple_choice","options":["a","b"],"max_selected":0"#, &["invalid_range/max_selected"]),
        (
            r#""type":"multiple_choice","options":["a","b"],"min_selected":2,"max_selected":1"#,
            &["invalid_range/min_selected"],
        ),
        (r#""type":"multiple_choice","options":[],"min_selected":2"#, &["empty/options"]),
        (r#""type":"ranking","options":["a"],"allow_other":true"#, &["unknown_field/allow_other"]),
    ]);
    let many = |count: usize| {
        let options: Vec<_> = (0..count).map(|number| format!("\"o{number}\"")).collect();
        format!(r#""type":"single_choice","options":[{}]"#, options.join(","))
    };
    refuses(&[(&many(500), &[]), (&many(501), &["too_many/options"])]);
}

#[test]
fn a_list_reports_every_item_that_does_not_fit_up_to_what_is_listed() {
    holds(
        r#""type":"multiple_choice","options":["a","b"],"max_selected":2"#,
        &[(r#"["a","c","c"]"#, &["too_many", "not_an_option/1", "not_an_option/2"])],
    );
    holds(
        r#""type":"ranking","options":["a","b"]"#,
        &[(r#"["a","b","a","c"]"#, &["too_many", "duplicate_option/2", "not_an_option/3"])],
    );
    let version = define(r#""type":"multiple_choice","options":["a","b"]"#).unwrap();
    let list = forms::domain::json::Value::from_iter(std::iter::repeat_n("a", 5_000));
    let found = faults(&version, &list);
    assert_eq!(found[..2], ["too_many", "duplicate_option/1"]);
    // One more than the hundred that are listed tells that there are more.
    assert_eq!(found.len(), 101);
}

#[test]
fn a_list_over_64_kib_is_too_long_whatever_is_in_it() {
    let version = define(&format!(r#""type":"multiple_choice",{COLOURS}"#)).unwrap();
    let list = |count: usize| forms::domain::json::Value::from_iter(std::iter::repeat_n("", count));
    assert_eq!(faults(&version, &list(65_536))[..2], ["too_many", "not_an_option/0"]);
    assert_eq!(faults(&version, &list(65_537)), ["too_long"]);
}
