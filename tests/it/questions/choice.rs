//! The types `single_choice`, `multiple_choice` and `ranking`.

use super::*;

const COLOURS: &str = r#""options":["red",{"value":"green","label":"Green as grass"},{"value":"blue"}]"#;

#[test]
fn single_choice_accepts_the_value_of_an_option() {
    question(&format!(r#""type":"single_choice",{COLOURS}"#)).check(&[
        (r#"["red", "green"]"#, &[]),
        (r#"["Green as grass", "Red", "red "]"#, &["not_an_option"]),
        (r#"["re\nd"]"#, &["invalid_character"]),
        (r#"[5, ["red"], {"other":"pink"}]"#, &["type_mismatch"]),
    ]);
    // A YAML block scalar ends in a line break, which is allowed in an option.
    question(r#""type":"single_choice","options":["of one line\n"]"#).check(&[(r#"["of one line\n"]"#, &[])]);
    question(&format!(r#""type":"single_choice",{COLOURS},"allow_other":true"#)).check(&[
        (r#"["red", {"other":"pink"}, {"other":"red"}]"#, &[]),
        (r#"["pink"]"#, &["not_an_option"]),
        (r#"[{"other":" \u3000"}, {"other":5}, {"others":"pink"}]"#, &["type_mismatch"]),
        (r#"[{"other":"pink","more":"x"}]"#, &["type_mismatch"]),
        (r#"[{"other":"pi\nnk"}]"#, &["invalid_character"]),
    ]);
}

#[test]
fn multiple_choice_accepts_options_without_duplicates() {
    question(&format!(r#""type":"multiple_choice",{COLOURS}"#)).check(&[
        (r#"[["red"], ["blue","red","green"], []]"#, &[]),
        (r#"[["red","red"]]"#, &["duplicate_option/1"]),
        (r#"[["pink",5,"red"]]"#, &["not_an_option/0", "type_mismatch/1"]),
        (
            r#"[["red","red","red","red"]]"#,
            &["too_many", "duplicate_option/1", "duplicate_option/2", "duplicate_option/3"],
        ),
        ("[[null]]", &["type_mismatch/0"]),
        (r#"["red", {"0":"red"}]"#, &["type_mismatch"]),
    ]);
    question(&format!(r#""type":"multiple_choice",{COLOURS},"min_selected":2,"max_selected":2"#)).check(&[
        (r#"[["red"]]"#, &["too_few"]),
        (r#"[["red","blue"]]"#, &[]),
        (r#"[["red","blue","pink"]]"#, &["too_many", "not_an_option/2"]),
    ]);
    question(&format!(r#""type":"multiple_choice",{COLOURS},"allow_other":true"#)).check(&[
        (r#"[["red",{"other":"pink"}], ["red","green","blue",{"other":"pink"}]]"#, &[]),
        (r#"[[{"other":"pink"},{"other":"lilac"}]]"#, &["duplicate_option/1"]),
        (r#"[[{"other":""}]]"#, &["type_mismatch/0"]),
    ]);
}

#[test]
fn ranking_accepts_options_in_any_order() {
    question(&format!(r#""type":"ranking",{COLOURS}"#)).check(&[
        (r#"[["blue","red"]]"#, &[]),
        (r#"[["blue","red","blue"]]"#, &["duplicate_option/2"]),
        (r#"[["blue","red","blue","x"]]"#, &["too_many", "duplicate_option/2", "not_an_option/3"]),
        (r#"[["pink"]]"#, &["not_an_option/0"]),
        (r#"[[{"other":"pink"}]]"#, &["type_mismatch/0"]),
    ]);
    question(&format!(r#""type":"ranking",{COLOURS},"rank_all":true"#))
        .check(&[(r#"[["blue","red","green"]]"#, &[]), (r#"[["blue","red"]]"#, &["too_few"])]);
}

#[test]
fn the_settings_of_choices_are_checked() {
    check_canonical(
        r#""type":"single_choice","options":["a",{"value":"b","label":"B"}],"display":"dropdown","allow_other":false"#,
    );
    check_canonical(
        r#""type":"multiple_choice","options":["a","b"],"min_selected":0,"max_selected":3,"allow_other":true"#,
    );
    check_canonical(r#""type":"ranking","options":["a","b"],"rank_all":true"#);
    check_settings(&[
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
    check_settings(&[(&many(500), &[]), (&many(501), &["too_many/options"])]);
}

#[test]
fn a_list_reports_every_invalid_item_up_to_a_hundred() {
    let version = define(r#""type":"multiple_choice","options":["a","b"]"#).unwrap();
    let list = Value::from_iter(std::iter::repeat_n("a", 5_000));
    let found = violations(&version, &list);
    assert_eq!(found[..2], ["too_many", "duplicate_option/1"]);
    // The check stops after one more than the hundred violations that are listed.
    assert_eq!(found.len(), 101);
}

#[test]
fn a_list_over_64_kib_is_too_long_regardless_of_its_items() {
    let version = define(&format!(r#""type":"multiple_choice",{COLOURS}"#)).unwrap();
    let list = |count: usize| Value::from_iter(std::iter::repeat_n("", count));
    assert_eq!(violations(&version, &list(65_536))[..2], ["too_many", "not_an_option/0"]);
    assert_eq!(violations(&version, &list(65_537)), ["too_long"]);
}
