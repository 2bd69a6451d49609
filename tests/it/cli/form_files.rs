//! Parsing of form files in YAML and JSON: definitions, positions, problems.

use forms::cli::input::document::{Document, read_text};
use forms::cli::output::diagnostics::{Diagnostic, Report};
use forms::cli::output::exit::CliError;

fn read(file: &str, text: &str) -> Vec<Document> {
    read_text(file, text, None).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn definition(text: &str) -> String {
    read("a.yaml", text)[0].value.to_string()
}

#[track_caller]
fn report(file: &str, text: &str) -> Report {
    match read_text(file, text, None) {
        Err(CliError::Rejected(report)) => *report,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn diagnostics(file: &str, text: &str) -> Vec<Diagnostic> {
    report(file, text).diagnostics
}

#[test]
fn values_are_converted_by_their_member() {
    for written in ["1.10", "007", "yes", "null", "~", "2024-01-01", "true", "0x1F", "1e3"] {
        assert_eq!(definition(&format!("title: {written}\n")), format!("{{\"title\":\"{written}\"}}"));
    }
    for (text, expected) in [
        ("title: T\ndescription:\n", r#"{"title":"T","description":null}"#),
        (
            "title: T\nquestions: [{type: number, title: !!str 1, min: 0x1F, max: +40, step: .5, x-a: .inf}]",
            r#"{"title":"T","questions":[{"type":"number","title":"1","min":31,"max":40,"step":0.5}]}"#,
        ),
        (
            "title: T\nquestions: [{type: rating, title: T, labels: {1: 2, 5: no}}]",
            r#"{"title":"T","questions":[{"type":"rating","title":"T","labels":{"1":"2","5":"no"}}]}"#,
        ),
        // The members of a condition are question ids, even if they have the name of a field.
        (
            "title: T\nquestions: [{id: title, type: rating, title: 1}, {type: rating, title: 2, show_if: {title: [3, 4]}}]",
            r#"{"title":"T","questions":[{"id":"title","type":"rating","title":"1"},{"type":"rating","title":"2","show_if":{"title":[3,4]}}]}"#,
        ),
        // Members that only files may have are removed.
        (
            "version: 1\ntitle: T\nx-anchors: {a: 1}\ntests: []\nquestions:\n  - {was: old, type: email, title: E, x-note: a, tests: []}\nsettings: {closed: true, x-b: {c: 1}}\n",
            r#"{"title":"T","questions":[{"was":"old","type":"email","title":"E"}],"settings":{"closed":true}}"#,
        ),
    ] {
        assert_eq!(definition(text), expected);
    }
}

#[test]
fn json_is_read_like_yaml() {
    let text = r#"{"title": "T", "questions": [{"type": "rating", "title": "T", "max": 7}]}"#;
    let json = read("a.json", text);
    assert_eq!(json[0].value.to_string(), definition(text));
    assert_eq!(json[0].span("/questions/0/max", false), Some(69..70));
    // What is in brackets is JSON, whatever the file's name; Python escapes characters beyond ASCII in pairs.
    for text in [r#" {"title": "\ud83d\ude00", "slug":	"a"}"#, r#"{title: "😀", slug: a}"#] {
        assert_eq!(read("<stdin>", text)[0].value.to_string(), r#"{"title":"😀","slug":"a"}"#);
    }
}

#[test]
fn one_file_can_have_several_forms() {
    let forms = read("a.yaml", "# two\n---\ntitle: A\n---\ntitle: B\n---\n");
    let definitions: Vec<_> = forms.iter().map(|form| form.value.to_string()).collect();
    assert_eq!(definitions, [r#"{"title":"A"}"#, r#"{"title":"B"}"#]);
    assert_eq!(forms[1].span("/title", false), Some(30..31));
}

#[test]
fn every_value_is_found_by_its_pointer() {
    let source = "x-a: &a {type: email, title: C}\ntitle: Lunch\nquestions:\n  - {id: a, type: email, title: \"A\"}\n  - type: rating # why\n    title: B\n    max: 5\n  - *a\n";
    let form = &read("a.yaml", source)[0];
    for (pointer, value, key) in [
        ("/title", "Lunch", "title"),
        ("/questions", "questions", "questions"),
        ("/questions/0", "{id: a, type: email, title: \"A\"}", "{id: a, type: email, title: \"A\"}"),
        ("/questions/0/title", "\"A\"", "title"),
        ("/questions/1/type", "rating", "type"),
        ("/questions/1/max", "5", "max"),
        ("/questions/1/missing", "type: rating # why", "type: rating # why"),
        // The position of an alias is its own, those of its members are at its anchor.
        ("/questions/2", "*a", "*a"),
        ("/questions/2/title", "C", "title"),
    ] {
        assert_eq!(&source[form.span(pointer, false).unwrap()], value, "{pointer}");
        assert_eq!(&source[form.span(pointer, true).unwrap()], key, "{pointer}");
    }
}

#[test]
fn a_file_that_is_not_a_form_is_refused() {
    let aliases = format!("x-a: &a {}\nx-b: [{}]\n", "b".repeat(100_000), "*a,".repeat(50));
    for (text, message) in [
        ("", "a.yaml contains no form"),
        ("a: [1\n", "`[` is not closed"),
        ("a: `x`\n", "text cannot begin with ``"),
        ("a:\n\t- b\n", "a tab is not allowed here"),
        ("a: b: c\n", "`:` is not expected here"),
        ("a: 'b\n", "a quoted text is not closed"),
        ("a: *b\n", "unknown anchor"),
        ("a: &b [*b]\n", "an alias within its own anchor"),
        ("a: }\n", "not valid YAML: misplaced bracket"),
        ("a: 1\nb: 2\na: 3\n", "field `a` given more than once"),
        ("a: &x {c: 1}\n<<: *x\n", "merge keys are not supported"),
        (&aliases, "aliases expand to more than 4 MiB"),
        ("a: !env SECRET\n", "unknown tag `!env`"),
        ("? [a]\n: 1\n", "a key must be text"),
        ("version: 2\ntitle: T\n", "unknown file format `version`, expected 1"),
    ] {
        let found = diagnostics("a.yaml", text);
        assert!(found.iter().any(|diagnostic| diagnostic.message.contains(message)), "{text}: {found:?}");
    }
}

#[test]
fn a_file_with_a_duplicate_key_is_checked_to_the_end() {
    let yaml = "titel: A\nquestions:\n  - {type: ratting, title: T, title: U}\n  - {type: email}\n";
    let json =
        r#"{"titel": "A", "questions": [{"type": "ratting", "title": "T", "title": 5}, {"type": "email"}]}"#;
    for (file, text) in [("a.yaml", yaml), ("a.json", json)] {
        let codes: Vec<_> =
            diagnostics(file, text).into_iter().filter_map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, ["unknown_field", "unknown_question_type", "duplicate_field", "missing_field"]);
    }
}

#[test]
fn deep_nesting_is_refused_before_it_is_parsed() {
    for (file, level) in [("a.yaml", "{a: "), ("a.json", "["), ("a.yaml", "- "), ("a.yaml", "? ")] {
        let deep = diagnostics(file, &level.repeat(5_000));
        assert_eq!(deep.len(), 1);
        assert_eq!(deep[0].message, "more than 16 levels of nesting");
        assert_eq!(deep[0].code.as_deref(), Some("malformed_file"));
        assert_eq!(deep[0].location.as_ref().unwrap().span.start, 16 * level.len(), "{level}");
    }
    let (begin, end) = ("[".repeat(10), "]".repeat(10));
    let by_alias = diagnostics("a.yaml", &format!("a: &a {begin}{end}\nb: {begin}*a{end}\n"));
    assert!(by_alias.iter().any(|diagnostic| diagnostic.message.contains("16 levels")), "{by_alias:?}");
}

#[test]
fn only_the_first_of_many_problems_are_shown() {
    let keys: String = (0..20_000).map(|number| format!("k{number}: 1\n")).collect();
    let report = report("a.yaml", &keys);
    assert_eq!(report.diagnostics.len(), 100);
    let summary = "a.yaml: more than 100 problems found, the first 100 are shown";
    assert_eq!(report.summary, summary);
}
