//! Formatting of results and errors: tables, CSV, JSON, YAML, shell words, colours.

use std::sync::Arc;

use forms::cli::output::diagnostics::{Diagnostic, Location, Report, Source};
use forms::cli::output::humanize::{count_noun, humanize};
use forms::cli::output::integrations::{authoring, describe};
use forms::cli::output::json::indented;
use forms::cli::output::shell_quote::shell_quote;
use forms::cli::output::table::{Cell, Color, Table};
use forms::cli::output::text::wrap_lines;
use forms::cli::output::{github, yaml};
use forms::clock::Timestamp;
use forms::domain::json::parse;

use super::Home;

fn table(headers: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    Table { headers: headers.iter().map(ToString::to_string).collect(), rows }
}

#[test]
fn columns_fit_the_width_of_the_terminal() {
    let long = || Cell::text("word ".repeat(9));
    let row = vec![Cell::text("sub_01k3v8m2f4"), Cell::text("x"), long(), long(), long()];
    let wide = table(&["id", "a", "b", "how_did_you_hear_of_us", "c"], vec![row]);
    for (width, count) in [(5, 1), (16, 1), (17, 2), (26, 2), (27, 3), (37, 4), (46, 4), (47, 5), (500, 5)] {
        let (text, shown) = wide.columns(width, false);
        assert_eq!(shown, count, "{width}");
        assert_eq!(text.lines().next().unwrap().split_whitespace().count(), count, "{width}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width.max(14))), "{text}");
    }
}

#[test]
fn long_cells_are_truncated_and_the_title_is_dropped_last() {
    let row = vec![
        Cell::text("frm_7k2m9q4x1abz"),
        Cell::text("published").with_colour(Color::DarkGreen),
        Cell::number(12),
        Cell::number(1),
        Cell::text("Supercalifragilistic expialidocious"),
    ];
    let table = table(&["id", "status", "response_count", "updated_at", "title"], vec![row]);
    for (width, colour, expected) in [
        (22, false, "frm_7k2m9q4x1abz"),
        (40, false, "frm_7k2m9q4x1abz  published  Supercalif…"),
        (40, true, "frm_7k2m9q4x1abz  \u{1b}[38;5;2mpublished\u{1b}[39m  Supercalif…"),
        (50, false, "frm_7k2m9q4x1abz  published  12         Supercali…"),
        (80, false, "frm_7k2m9q4x1abz  published  12         1        Supercalifragilistic expialido…"),
    ] {
        assert_eq!(table.columns(width, colour).0.lines().nth(1), Some(expected));
    }
}

#[test]
fn columns_without_a_value_are_left_out() {
    let row = vec![Cell::text("sub_01k3v8m2f4"), Cell::empty(), Cell::empty().with_display("never")];
    let filled = table(&["id", "nothing", "last_used_at"], vec![row]).without_empty();
    assert_eq!(filled.headers, ["id", "last_used_at"]);
}

#[test]
fn a_time_is_shown_as_elapsed_time() {
    let now = Timestamp::parse("2026-11-20T09:00:00.000Z").unwrap();
    for (time, expected) in [
        ("2026-11-20T08:59:30.000Z", "just now"),
        ("2026-11-20T08:30:00.000Z", "30 min ago"),
        ("2026-11-20T06:00:00.000Z", "3 h ago"),
        ("2026-11-19T06:00:00.000Z", "1 day ago"),
        ("2026-11-10T06:00:00.000Z", "10 days ago"),
        ("2025-11-10T06:00:00.000Z", "2025-11-10"),
        ("2026-11-20T10:00:00.000Z", "2026-11-20T10:00:00.000Z"),
    ] {
        let time = Timestamp::parse(time).unwrap();
        assert_eq!(
            table(&["a"], vec![vec![Cell::time(time, now)]]).columns(80, false).0,
            format!("A\n{expected}\n")
        );
    }
}

#[test]
fn values_are_formatted_for_reading() {
    for (json, expected) in [
        ("1.10", "1.10"),
        ("true", "true"),
        (r#""a, b""#, "a, b"),
        (r#"["late","a, b","dark blue",2]"#, r#"late, "a, b", "dark blue", 2"#),
        (r#"["red",{"value":"blue","label":"Dark blue"}]"#, r#"red, blue "Dark blue""#),
        (r#"{"1":"bad","5":"good"}"#, "1 = bad, 5 = good"),
        (r#"[{"other":"purple"}]"#, "other = purple"),
        ("[]", ""),
    ] {
        assert_eq!(humanize(&parse(json).unwrap()), expected);
    }
    let texts = [0_usize, 1, 2, 1204].map(|count| count_noun(count, "problem"));
    assert_eq!(texts, ["0 problems", "1 problem", "2 problems", "1 204 problems"]);
    let value = parse(r#"{"a":[1.10,{"b":"x\u001b"}],"c":{},"d":[]}"#).unwrap();
    let expected = "{\n  \"a\": [\n    1.10,\n    {\n      \"b\": \"x\\u001b\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}\n";
    assert_eq!(indented(&value, false), expected);
    assert!(indented(&value, true).contains("\u{1b}[34m\"c\"\u{1b}[0m: {}"));
}

#[test]
fn yaml_keeps_numbers_and_escapes_line_separators() {
    for (json, expected) in [
        (
            r#"{"a":1.10,"b":[18446744073709551616,-0,1e5,7],"c":"own0x","d":0.12345678901234567890}"#,
            "a: 1.10\nb:\n- 18446744073709551616\n- -0\n- 1e5\n- 7\nc: own0x\nd: 0.12345678901234567890\n",
        ),
        (
            "{\"a\":\"\\n\\\"b\\\\\u{2029}\",\"c\":[\"\u{85}é\u{9b}\u{fffe}\"]}",
            "a: \"\\n\\\"b\\\\\\u2029\"\nc:\n- \"\\u0085é\\u009b\\ufffe\"\n",
        ),
    ] {
        assert_eq!(yaml::yaml(&parse(json).unwrap()).unwrap(), expected);
    }
}

#[test]
fn a_message_is_wrapped_and_a_command_is_not() {
    let text = "nothing is known of the thing\nto copy it: forms show the-thing";
    assert_eq!(wrap_lines(text, 24), "nothing is known of the\nthing\nto copy it: forms show the-thing");
    let coloured = "\u{1b}[1merror\u{1b}[0m: short enough";
    assert_eq!(wrap_lines(coloured, 20), coloured);
    let noted =
        Diagnostic { notes: vec!["one note with several words".to_owned()], ..Diagnostic::plain("a") };
    let expected = "error: a\n  = note: one note with\n          several words";
    assert_eq!(noted.render(false, Some(28)), expected);
    for (argument, expected) in [
        ("q1=a", "q1=a"),
        ("q1=it's", "q1=\"it's\""),
        ("q1=x\ny's\\", "$'q1=x\\ny\\'s\\\\'"),
        ("a b=", "'a b='"),
        ("a=", "a="),
        ("q1:={}!", "q1:='{}!'"),
    ] {
        assert_eq!(shell_quote(argument), expected);
    }
}

#[test]
fn github_commands_are_escaped() {
    let location = Location {
        file: "a,b:c%.yaml".to_owned(),
        source: Arc::new(Source::new("x\n é: 1\n")),
        span: 5..6,
        label: None,
        earlier: None,
    };
    let diagnostic = Diagnostic::new("unknown_field", "100%\r\n::error::x").help(Some("one\ntwo".to_owned()));
    let located = Diagnostic { location: Some(location), ..diagnostic };
    let report = Report::of_file("a", vec![located, Diagnostic::plain("cannot read x")]);
    assert_eq!(
        github::commands(&report.into()),
        "::error file=a%2Cb%3Ac%25.yaml,line=2,col=3,title=unknown_field::100%25%0D%0A::error::x%0Ahelp: one two\n\
         ::error ::cannot read x\n"
    );
}

#[test]
fn colours_in_a_pipe_follow_the_flag_then_the_environment() {
    let home = Home::new();
    for (variables, flag, expected) in [
        (&[][..], "auto", false),
        (&[("FORCE_COLOR", "1")], "auto", true),
        (&[("FORCE_COLOR", "0")], "auto", false),
        (&[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], "auto", true),
        (&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], "auto", false),
        (&[("NO_COLOR", "1")], "always", true),
        (&[("FORCE_COLOR", "1")], "never", false),
    ] {
        let run = home.run_with(variables, &["--color", flag, "explain", "nothing"]).expect(2);
        assert_eq!(run.stderr.contains('\u{1b}'), expected, "{variables:?} {flag}");
    }
}

#[test]
fn integrations_are_shown_as_an_author_would_write_them() {
    let shown = r#"[
        {"id":"int_1","name":"crm","type":"webhook","enabled":true,"events":["submission.completed"],"url":"https://a/b",
         "payload":"full","secret":{"set":true},"headers":{"X-Key":{"set":true,"env":"KEY"},"X-A":"b"},
         "bearer_token":{"set":true},"when":{"env":"x"},"health":{},"created_at":"","updated_at":""},
        {"name":"webhook","type":"webhook","payload":"thin","enabled":false,"secret":{"set":true,"env":"S"}},
        {"type":"webhook"}
    ]"#;
    let expected = r#"[{"name":"crm","type":"webhook","url":"https://a/b","headers":{"X-Key":{"env":"KEY"},"X-A":"b"},"bearer_token":{"set":true},"when":{"env":"x"}},{"name":"webhook","type":"webhook","payload":"thin","enabled":false,"secret":{"env":"S"}},{"name":"webhook-2","type":"webhook"}]"#;
    assert_eq!(authoring(&parse(shown).unwrap()).to_string(), expected);
}

#[test]
fn an_integration_is_described_by_its_target_without_secrets() {
    for (integration, expected) in [
        (r#"{"type":"webhook","url":"https://a/b"}"#, "webhook https://a/b"),
        (r#"{"type":"csv_file","path":"lunch.csv"}"#, "csv_file lunch.csv"),
        (r#"{"type":"email","to":["a@b.org","c@d.org"],"subject":"Hi"}"#, "email a@b.org, c@d.org"),
        (r#"{"type":"email","to_question":"mail"}"#, "email the answer to mail"),
        (r#"{"type":"slack","url":{"set":true,"env":"S"},"title":"{{ form.title }}"}"#, "slack from S"),
        (r#"{"type":"teams","title":"{{ form.title }}","url":{"set":true}}"#, "teams"),
        (r#"{"type":"telegram","token":{"set":true},"server":"https://a","chat_id":"-1"}"#, "telegram -1"),
        (r#"{"type":"ntfy","server":"https://ntfy.sh:8443/a","topic":{"set":true}}"#, "ntfy ntfy.sh:8443"),
        (r#"{"type":"google_sheets","spreadsheet_id":"1AbC","sheet":"S"}"#, "google_sheets 1AbC"),
        (r#"{"type":"from_the_future","url":"https://a"}"#, "from_the_future https://a"),
    ] {
        assert_eq!(describe(&parse(integration).unwrap()), expected);
    }
}
