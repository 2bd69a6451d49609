//! The texts that respondents read, in each language.

use std::collections::BTreeSet;

use forms::domain::language::{ENGLISH, Language, direction, fill};

/// The places of a template: `{max}`.
fn places(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).map(|part| part.split_once('}').expect(text).0).collect()
}

#[test]
fn templates_have_the_same_places_in_every_language_and_every_text_is_translated() {
    for language in Language::ALL {
        let texts = language.texts().all();
        for ((name, text), (_, english)) in texts.iter().zip(ENGLISH.all()) {
            assert_eq!(places(text), places(english), "{name} in {language:?}");
            assert_eq!(text.trim().is_empty(), english.trim().is_empty(), "{name} in {language:?}");
        }
        let equal = texts.iter().zip(ENGLISH.all()).filter(|(text, english)| *text == english).count();
        assert_eq!(equal > texts.len() / 10, language == Language::English, "{language:?}");
    }
}

#[test]
fn the_primary_subtag_decides_the_language_ignoring_case() {
    for (tag, expected) in [
        (Some("de-AT"), Language::German),
        (Some("ZH-Hans-CN"), Language::Chinese),
        (Some("pt"), Language::Portuguese),
        (Some("den"), Language::English),
        (Some("nl"), Language::English),
        (Some(""), Language::English),
        (None, Language::English),
    ] {
        assert_eq!(Language::of_tag(tag), expected, "{tag:?}");
    }
    let of = |is: fn(Language) -> bool| Language::ALL.into_iter().filter(|language| is(*language)).count();
    assert_eq!((of(|language| direction(language.name()) == "rtl"), of(Language::decimal_comma)), (1, 4));
}

#[test]
fn places_are_filled_and_values_are_not_scanned_for_places() {
    let values: &[(&str, &dyn std::fmt::Display)] = &[("a", &"{b}"), ("b", &2)];
    assert_eq!(fill("{b}{a} of {b}}", values), "2{b} of 2}");
    assert_eq!(fill("none", values), "none");
}
