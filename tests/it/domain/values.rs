//! Ids, keys, times, slugs, similar names, descriptions of conditions, patterns.

use forms::clock::Timestamp;
use forms::domain::condition::{Condition, Ids, Names};
use forms::domain::form::slug::is_slug;
use forms::domain::json::{Value, parse};
use forms::domain::language::{ENGLISH, Language};
use forms::domain::pattern::{Anchor, Pattern};
use forms::domain::validation::budget::Budget;
use forms::domain::validation::fields::Fields;
use forms::domain::validation::limits::Limits;
use forms::domain::validation::similar::{MAX_ALLOWED, nearest_first, similar};
use forms::id::{FormId, Random, SubmissionId};
use forms::secret::{KeyText, SystemRandomness};

struct Fixed(u8);
impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

#[test]
fn an_id_parses_its_own_text() {
    let form = FormId::draw(&Fixed(0xff));
    assert_eq!(form.to_string(), "frm_zzzzzzzzzzzz");
    assert_eq!(form.to_string().parse::<FormId>().unwrap(), form);
    assert_eq!(FormId::from_bytes(form.to_bytes()), form);
    let submission = SubmissionId::after(None, 1_763_629_200_000, &Fixed(7));
    assert_eq!(submission.to_string().len(), 30);
    assert_eq!(submission.to_string().parse::<SubmissionId>().unwrap(), submission);
    let refused = "frm_ frm_zzzzzzzzzzz frm_zzzzzzzzzzzu sub_zzzzzzzzzzzz zzzzzzzzzzzz frm_ZZZZZZZZZZZZ";
    for text in refused.split(' ') {
        assert!(text.parse::<FormId>().is_err(), "{text}");
    }
    assert!("sub_zzzzzzzzzzzzzzzzzzzzzzzzzz".parse::<SubmissionId>().is_err(), "130 bits do not fit");
}

#[test]
fn submission_ids_increase_even_if_the_clock_does_not() {
    let first = SubmissionId::after(None, 5_000, &Fixed(0xff));
    let same = SubmissionId::after(Some(first), 5_000, &Fixed(0));
    let earlier = SubmissionId::after(Some(same), 4_000, &Fixed(0));
    let later = SubmissionId::after(Some(earlier), 5_001, &Fixed(0));
    assert!(first < same && same < earlier && earlier < later);
    assert_eq!((first.millis(), earlier.millis(), later.millis()), (5_000, 5_000, 5_001));
}

#[test]
fn a_key_parses_its_own_text_and_a_changed_key_is_refused() {
    let key = KeyText::draw(&SystemRandomness);
    let text = key.reveal().to_owned();
    assert_eq!(text.len(), 47);
    let again: KeyText = text.parse().unwrap();
    assert!(again.matches(&key.hash()) && again.id() == key.id());
    for place in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[place] = if changed[place] == b'a' { b'b' } else { b'a' };
        assert!(String::from_utf8(changed).unwrap().parse::<KeyText>().is_err(), "place {place}");
    }
    assert!(!format!("{key:?}").contains(&text[3..40]));
    assert!("fk_é".parse::<KeyText>().is_err());
}

#[test]
fn a_timestamp_parses_its_own_text() {
    for text in ["2026-11-20T09:00:00.000Z", "1969-12-31T23:59:59.999Z", "2024-02-29T00:00:00.001Z"] {
        assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
    }
    let offset = Timestamp::parse("2026-11-20T10:30:00.1239+01:30").unwrap();
    assert_eq!(offset.to_string(), "2026-11-20T09:00:00.123Z");
    assert_eq!(Timestamp::parse("2026-11-20T09:00:00"), None);
    assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
}

#[test]
fn a_slug_consists_of_words_joined_by_hyphens() {
    for good in ["a", "0", "customer-feedback", "a-1-b", &"x".repeat(64)] {
        assert!(is_slug(good), "{good}");
    }
    let bad = ["", "-", "a-", "-a", "a--b", "A", "a_b", "a b", "\u{e9}", "frm_000000000000", &"x".repeat(65)];
    for bad in bad {
        assert!(!is_slug(bad), "{bad}");
    }
}

#[test]
fn a_typo_is_similar_and_another_word_is_not() {
    let names = ["title", "type", "email", "rating", "time", "d"];
    let typos = ["titel title", "tyep type", "emial email", "ratting rating", "tmie time", "d d"];
    let typos = typos.map(|pair| pair.split_once(' ').unwrap()).map(|(written, name)| (written, Some(name)));
    let others = ["slug", "file", "0", ""].map(|written| (written, None));
    for (written, expected) in typos.into_iter().chain(others) {
        assert_eq!(similar(written, names), expected, "{written}");
    }
}

#[test]
fn similar_names_come_first_and_the_others_keep_their_order() {
    assert_eq!(nearest_first("tiem", ["email", "title", "time", "type"]), ["time", "email", "title", "type"]);
    assert_eq!(nearest_first("titl", ["time", "title"]), ["title", "time"]);
    let names: Vec<_> = (0..100).map(|number| format!("question_{number}")).collect();
    let nearest = nearest_first("qeustion_77", names.iter().map(String::as_str));
    assert_eq!((nearest.len(), &*nearest[0]), (MAX_ALLOWED, "question_77"));
}

#[test]
fn a_condition_is_described() {
    for (written, expected) in [
        (r#"{"a":"red"}"#, "a is red"),
        (r#"{"a":["red","dark blue",1.10]}"#, "a is red, \"dark blue\" or 1.10"),
        (r#"{"a":["don't","C#","a (b)","a,b"]}"#, r#"a is don't, C#, "a (b)" or "a,b""#),
        (r#"{"a":true,"b":{"ne":"dark blue"}}"#, "a is true and b is not \"dark blue\""),
        (r#"{"a":{"gte":2,"lt":4.5}}"#, "a is 2 or more and a is less than 4.5"),
        (r#"{"a":{"gt":2,"lte":4}}"#, "a is more than 2 and a is 4 or less"),
        (r#"{"a":{"gte":"2027-01-31"}}"#, "a is 2027-01-31 or after"),
        (r#"{"a":{"lt":"2027-01-31"}}"#, "a is before 2027-01-31"),
        (r#"{"a":{"in":["x"]}}"#, "a is x"),
        (r#"{"a":{"includes":"x"},"b":{"matches":"^A b"}}"#, "a includes x and b matches ^A b"),
        (r#"{"a":{"answered":true},"b":{"answered":false}}"#, "a is answered and b is not answered"),
        (r#"{"any":[{"a":1,"b":2},{"c":3}]}"#, "(a is 1 and b is 2) or c is 3"),
        (r#"{"any":[{"a":1},{"b":2}],"c":3}"#, "(a is 1 or b is 2) and c is 3"),
        (r#"{"not":{"all":[{"a":1},{"b":2}]}}"#, "not (a is 1 and b is 2)"),
    ] {
        assert_eq!(condition(written).describe(ENGLISH, &Ids), expected);
    }
}

fn condition(written: &str) -> Condition {
    let question = parse(&format!("{{\"show_if\":{written}}}")).unwrap();
    let mut violations = Vec::new();
    let mut fields = Fields::open(&question, "", "here".to_owned(), &mut violations).unwrap();
    Condition::read(&mut fields, "show_if", &mut Budget::new(&Limits::default())).unwrap()
}

#[test]
fn a_condition_is_described_in_a_language_with_names_for_questions_and_values() {
    /// The titles in quotation marks, and the values in capitals.
    struct Titles(Language);

    impl Names for Titles {
        fn question(&self, id: &str) -> String {
            self.0.texts().quote(&format!("{{{id}}}?"))
        }

        fn value(&self, id: &str, value: &Value) -> String {
            format!("{}{id}", value.display_text().to_uppercase())
        }
    }

    let colours = r#"{"not":{"any":[{"a":["red","blue"]},{"b":{"gte":2}}]},"c":{"lt":"2027-01-31"}}"#;
    for (language, expected) in [
        (
            Language::English,
            "not (“{a}?” is REDa or BLUEa or “{b}?” is 2b or more) and “{c}?” is before 2027-01-31c",
        ),
        (
            Language::German,
            "nicht („{a}?“ REDa oder BLUEa ist oder „{b}?“ mindestens 2b ist) und „{c}?“ vor 2027-01-31c liegt",
        ),
        (
            Language::Japanese,
            "（「{a}?」がREDaまたはBLUEaまたは「{b}?」が2b以上）ではない、かつ「{c}?」が2027-01-31cより前",
        ),
    ] {
        assert_eq!(condition(colours).describe(language.texts(), &Titles(language)), expected);
    }
}

#[test]
fn a_prepared_pattern_matches_the_same_texts() {
    for (text, anchor) in [
        ("a|b", Anchor::None),
        ("a|b", Anchor::Both),
        ("^.{2}$", Anchor::None),
        (r"(?x)a #b", Anchor::Both),
        (r"\bß\b", Anchor::None),
        ("(?i)K{3}", Anchor::Both),
    ] {
        let pattern = Pattern::compile(text, anchor, 1 << 20).unwrap();
        let mut prepared = pattern.clone();
        prepared.prepare();
        assert_eq!(prepared.size(), pattern.size(), "{text}");
        for answer in ["", "a", "ab", "\na", "a\n", "aß", "a ß", "kkK", "kkkk", "K\u{212a}k", "日本"] {
            assert_eq!(prepared.matches(answer), pattern.matches(answer), "{text} {answer:?}");
        }
    }
}
