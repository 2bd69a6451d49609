//! Lists: truncation is always reported, and columns can be selected.

use super::Home;
use super::fake_server::{operator_key, send};
use super::terminal::Session;

#[test]
fn a_list_with_limit_0_is_still_validated() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let list = |arguments: &[&str]| {
        home.run(&[&["--data", "store", "responses", &id, "--limit", "0"], arguments].concat())
    };
    list(&["--where", "foo=1"]).expect(2);
    let no_number = home.run(&["list", "--limit", "ten"]).expect(2).stderr;
    assert!(no_number.contains("expected a number such as 10, found `ten`"), "{no_number}");
    assert!(list(&["--since", "yesterday"]).expect(2).stderr.contains("found `yesterday`"));
    home.ok(&["--data", "store", "submit", &id, "q1=x"]);
    assert_eq!(list(&[]).expect(0).stdout, "");
    assert_eq!(list(&["-o", "json"]).expect(0).json()["submissions"], serde_json::json!([]));
}

#[test]
fn a_table_shows_fifty_rows_and_the_total() {
    let home = Home::new();
    let form = |number| format!("---\ntitle: Form {number}\n");
    home.write("many.yaml", &(0..60).map(form).collect::<String>());
    let ids = home.ok(&["--data", "store", "create", "-f", "many.yaml"]);
    assert_eq!(ids.lines().count(), 60);
    let list = |arguments: &[&str]| home.run(&[&["--data", "store", "list"], arguments].concat()).expect(0);
    let table = list(&[]);
    assert_eq!(table.stdout.lines().count(), 50);
    assert_eq!(table.stderr, "showing 50 of 60 — use --all or --limit N\n");
    for format in ["jsonl", "csv"] {
        let rows = list(&["-o", format]).stdout.lines().filter(|line| line.contains("frm_")).count();
        assert_eq!(rows, 60, "{format}");
    }
    assert_eq!(list(&["-o", "json"]).json()["forms"].as_array().unwrap().len(), 60);
    let all = list(&["--all"]);
    assert_eq!((all.stdout.lines().count(), all.stderr.as_str()), (60, ""));
    let few = list(&["--limit", "7", "-o", "jsonl"]);
    assert_eq!((few.stdout.lines().count(), few.stderr.as_str()), (7, ""));
    assert_eq!(list(&["--limit", "0"]).stdout, "");
}

#[test]
fn a_single_response_has_the_columns_of_its_questions() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let submission = home.ok(&["--data", "store", "submit", &id, "q1=Ada", "q3=5"]);
    let show = |arguments: &[&str]| {
        let command = ["--data", "store", "responses", "show", &id, submission.trim()];
        home.run(&[&command, arguments].concat())
    };
    assert_eq!(show(&["--columns", "q3,q1"]).expect(0).stdout, "5\tAda\n");
    let csv = show(&["-o", "csv"]).expect(0).stdout;
    assert!(csv.lines().next().unwrap().ends_with(",q1,q2,q3"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().ends_with(",Ada,,5"), "{csv}");
    assert!(show(&["--columns", "q4"]).expect(2).stderr.contains("there is no column `q4`"));
}

#[test]
fn a_list_shows_why_a_published_form_accepts_no_answers() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let command = ["--data", "store", "list"];
    let chosen = || home.ok(&[&command[..], &["--columns", "status,accepting_reason"]].concat());
    let screen = || Session::start(&home, &[("NO_COLOR", "1")], &command).finish().1;
    assert_eq!(chosen(), "published\t\n");
    home.ok(&["--data", "store", "edit", &id, "--set", "settings.opens_at=9999-01-01T00:00:00Z"]);
    assert_eq!(chosen(), "not_open_yet\tnot_open_yet\n");
    let screen = screen();
    assert!(screen.contains("  not_open_yet  ") && screen.contains("  RESPONSES  UPDATED  "), "{screen}");
    let piped = home.ok(&command);
    let columns: Vec<_> = piped.trim_end().split('\t').collect();
    assert_eq!((columns.len(), columns[1], columns[4]), (5, "not_open_yet", "Lunch"));
    let listed = home.run(&[&command[..], &["-o", "json"]].concat()).expect(0).json();
    assert_eq!(listed["forms"][0]["accepting_reason"], "not_open_yet");
}

#[test]
fn answers_to_removed_questions_are_listed_in_csv_and_mentioned_in_tables() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    home.ok(&["submit", &id, "q1=hello", "q3=2"]);
    let patch = "{\"questions\":[{\"id\":\"q1\",\"type\":\"short_text\",\"title\":\"Only this\"}]}";
    send(&server.url, "PATCH", &format!("/api/v1/forms/{id}"), &operator_key(&home), patch);
    let table = home.run(&["responses", &id]).expect(0);
    assert!(table.stdout.ends_with("\thello\n"), "{table:?}");
    assert!(table.stderr.contains("-o csv, xlsx and jsonl have them"), "{table:?}");
    let csv = home.run(&["responses", &id, "-o", "csv"]).expect(0);
    assert!(
        csv.stdout.starts_with("id,submitted_at,q1,q2,q3\n") && csv.stdout.ends_with(",hello,,2\n"),
        "{csv:?}"
    );
    assert_eq!(csv.stderr, "");
    assert_eq!(home.ok(&["responses", &id, "-o", "csv", "--columns", "Q3"]), "q3\n2\n");
    let run = home.run(&["-v", "responses", &id, "-o", "csv"]).expect(0);
    assert_eq!(run.stderr.lines().filter(|line| line.contains("/submissions?")).count(), 1);
}

#[test]
fn questions_named_like_other_columns_have_a_prefix() {
    let home = Home::new();
    home.write(
        "form.yaml",
        "\
title: T
slug: t
questions:
  - {id: id, type: short_text, title: A}
  - {id: submitted_at, type: short_text, title: B}
",
    );
    let run = |arguments: &[&str]| home.ok(&[&["--data", "store"], arguments].concat());
    run(&["create", "--publish", "-f", "form.yaml"]);
    let made = run(&["submit", "t", "id=7", "submitted_at=noon"]);
    let csv = run(&["responses", "t", "-o", "csv"]);
    assert!(csv.starts_with("id,submitted_at,answers.id,answers.submitted_at\n"), "{csv}");
    assert!(csv.contains(made.trim()) && csv.ends_with(",7,noon\n"), "{csv}");
    assert_eq!(run(&["responses", "t", "--columns", "answers.id"]), "7\n");
    let shown = run(&["responses", "show", "t", made.trim(), "-o", "csv"]);
    assert!(shown.lines().next().unwrap().ends_with(",answers.id,answers.submitted_at"), "{shown}");
}

#[test]
fn tables_show_answers_without_json_syntax() {
    let home = Home::new();
    home.write(
        "survey.yaml",
        "\
title: T
questions:
  - {id: days, type: multiple_choice, title: Which days?, options: [mon, tue]}
  - {id: comment, type: long_text, title: comment}
",
    );
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "survey.yaml"]);
    let id = id.trim();
    let made =
        home.ok(&["--data", "store", "submit", id, "days=mon", "days=tue", "comment=Dear all,\nhello"]);
    let list = ["--data", "store", "responses", id, "--columns", "days"];
    assert_eq!(home.ok(&list), "[\"mon\",\"tue\"]\n");
    let (_, screen) = Session::start(&home, &[("NO_COLOR", "1")], &list).finish();
    assert!(screen.starts_with("DAYS\r\nmon, tue\r\n"), "{screen:?}");
    let shown = home.ok(&["--data", "store", "responses", "show", id, made.trim()]);
    let expected = "answers:\n  Which days? (days): mon, tue\n  comment:\n      Dear all,\n      hello\n";
    assert!(shown.ends_with(expected), "{shown}");
}
