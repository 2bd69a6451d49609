//! Lists: nothing is cut off in silence, and what strangers wrote can neither steer a terminal nor a spreadsheet.

use std::fmt::Write as _;

use super::Home;
use super::stand_in::{StandIn, operator_key, post, send};
use super::terminal::Session;

/// A file of `count` forms.
fn many(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        write!(text, "---\ntitle: Form {number}\n").unwrap();
    }
    text
}

#[test]
fn a_table_shows_fifty_and_says_how_many_there_are() {
    let home = Home::new();
    home.write("many.yaml", &many(60));
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
fn answers_are_paged_likewise() {
    let home = Home::new();
    let _server = home.serve();
    let id = home.published(&[]);
    for number in 0..52 {
        home.ok(&["submit", &id, &format!("q1=number {number}")]);
    }
    let table = home.run(&["responses", &id]).expect(0);
    assert_eq!(table.stdout.lines().count(), 50);
    assert_eq!(table.stderr, "showing 50 of 52 — use --all or --limit N\n");
    assert!(table.stdout.lines().next().unwrap().contains("\tnumber 51\t"), "newest first");
    assert_eq!(home.ok(&["responses", &id, "-o", "jsonl"]).lines().count(), 52);
    let body = home.run(&["responses", "list", &id, "-o", "json"]).expect(0).json();
    assert_eq!(body["submissions"].as_array().unwrap().len(), 52);
    assert!(body["next_cursor"].is_null());
    assert_eq!(home.run(&["submissions", &id, "--limit", "3"]).expect(0).stdout.lines().count(), 3);
}

#[test]
fn answers_are_listed_by_what_was_answered_and_when() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    for (name, score) in [("Ada", 5), ("Bob", 4), ("Cem", 2)] {
        home.ok(&["--data", "store", "submit", &id, &format!("q1={name}"), &format!("q3={score}")]);
    }
    let list = |arguments: &[&str]| home.run(&[&["--data", "store", "responses", &id], arguments].concat());
    let names = |arguments: &[&str]| {
        let csv = list(&[&["-o", "csv"], arguments].concat()).expect(0).stdout;
        let name = |line: &str| line.split(',').nth(2).unwrap().to_owned();
        csv.lines().skip(1).map(name).collect::<Vec<_>>().join(" ")
    };
    for (arguments, expected) in [
        (&["--where", "q1=Bob"][..], "Bob"),
        (&["--where", "q3.gte=4"], "Bob Ada"),
        (&["--where", "q3.gte=4", "--where", "q1.matches=^A"], "Ada"),
        (&["--where", "q1.in=Ada,Cem"], "Cem Ada"),
        (&["--where", "q2.answered=false", "--limit", "2"], "Cem Bob"),
        (&["--since", "2020-01-01T00:00:00+02:00", "--until", "9999-01-01T00:00:00Z"], "Cem Bob Ada"),
        (&["--since", "9999-01-01T00:00:00Z"], ""),
    ] {
        assert_eq!(names(arguments), expected, "{arguments:?}");
    }
    for (test, exit, said) in [
        ("q3", 2, "it has no `=`; write QUESTION=VALUE"),
        ("q3>=4", 2, "write q3.gte=4"),
        ("q3!=4", 2, "write q3.ne=4"),
        ("q3=good", 6, "`--where q3`: this can never be true of `q3`: Enter a whole number from 1 to 5"),
        ("q3.gte=good", 6, "`--where q3.gte`: this can never be true of `q3`: Enter"),
        ("q33=4", 2, "`q33` is not a question of "),
        ("q33=4", 2, "help: a question with a similar id exists: `q3`"),
        ("score=4", 2, "help: its questions are q1, q2, q3"),
    ] {
        let refused = list(&["--where", test]).expect(exit).stderr;
        assert!(refused.contains(said), "{test}: {refused}");
    }
    let refused =
        list(&["--since", "2026-02-01T00:00:00Z", "--until", "2026-01-01T00:00:00Z"]).expect(6).stderr;
    let said = "`--since` (2026-02-01T00:00:00.000Z) is after `--until` (2026-01-01T00:00:00.000Z)";
    assert!(refused.contains(said), "{refused}");
    let refused = list(&["--since", "yesterday"]).expect(6).stderr;
    let said =
        "`--since` expects a date and time with its offset, such as 2027-01-31T18:00:00Z, got `yesterday`";
    assert!(refused.contains(said), "{refused}");
}

#[test]
fn a_filter_that_asks_for_an_option_in_the_wrong_way_is_told_the_right_one() {
    let home = Home::new();
    let options = "options: [Risotto, 'b,c']";
    let question = |id: &str, kind: &str| format!("{{id: {id}, type: {kind}, title: {id}, {options}}}");
    let questions =
        [question("rk", "ranking"), question("m", "multiple_choice"), question("o", "single_choice")];
    home.write("meal.yaml", &format!("title: Meal\nquestions: [{}]\n", questions.join(", ")));
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "meal.yaml"]);
    for (test, help) in [
        ("rk=Risotto", "--where rk.includes=Risotto"),
        ("m=risoto", "a similar option exists: --where m.includes=Risotto"),
        ("m.in=Risotto", "--where m.includes=Risotto"),
        ("o.in=b,c", "--where o=b,c"),
        ("o.in=risoto", "a similar option exists: --where o.in=Risotto"),
    ] {
        let refused =
            home.run(&["--data", "store", "responses", id.trim(), "--where", test]).expect(6).stderr;
        assert!(refused.contains(&format!("= help: {help}\n")), "{test}: {refused}");
        assert!(!refused.contains("filter["), "{test}: {refused}");
    }
    let refused = home.run(&["--data", "store", "responses", id.trim(), "--where", "o="]).expect(6).stderr;
    assert!(refused.contains("`--where o.answered=false` asks for none"), "{refused}");
}

#[test]
fn a_filter_by_an_option_that_there_is_not_names_one_that_is_near() {
    let home = Home::new();
    let choice = "{type: single_choice, title: Colour, options: [red, blue]}";
    let questions = format!("[{choice}, {{type: number, title: Age}}]");
    home.write("colours.yaml", &format!("title: Colours\nquestions: {questions}\n"));
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "colours.yaml"]);
    let refused = home.run(&["--data", "store", "responses", id.trim(), "--where", "q1=rde"]).expect(6);
    assert!(refused.stderr.contains("= help: a similar option exists: --where q1=red"), "{refused:?}");
    // One that there was is no mistake.
    home.ok(&["--data", "store", "submit", id.trim(), "q1=red"]);
    for change in ["questions.q1.options=[green, blue]", "questions.q1="] {
        home.ok(&["--data", "store", "edit", id.trim(), "--set", change]);
        let found = home.ok(&["--data", "store", "responses", id.trim(), "--where", "q1=red", "-o", "jsonl"]);
        assert_eq!(found.lines().count(), 1, "{change}: {found}");
    }
}

#[test]
fn one_submission_has_the_columns_of_its_questions() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
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
fn forms_can_be_listed_with_their_slugs() {
    let home = Home::new();
    home.write("form.yaml", "title: Lunch\nslug: lunch\n");
    home.ok(&["--data", "store", "create", "-f", "form.yaml"]);
    let list = |arguments: &[&str]| home.ok(&[&["--data", "store", "list"], arguments].concat());
    assert_eq!(list(&["--columns", "slug,title"]), "lunch\tLunch\n");
    assert!(list(&["-o", "csv"]).starts_with("id,status,response_count,updated_at,title\n"));
}

#[test]
fn a_list_tells_which_published_forms_take_no_answers() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    let command = ["--data", "store", "list"];
    let chosen = || home.ok(&[&command[..], &["--columns", "status,accepting_reason"]].concat());
    let seen = || Session::start(&home, &[("NO_COLOR", "1")], &command).end().1;
    assert_eq!(chosen(), "published\t\n");
    assert!(seen().contains("  published  "));
    home.ok(&["--data", "store", "edit", &id, "--set", "settings.opens_at=9999-01-01T00:00:00Z"]);
    assert_eq!(chosen(), "published\tnot_open_yet\n");
    let seen = seen();
    assert!(seen.contains("  not open yet  ") && seen.contains("  RESPONSES  UPDATED  "), "{seen}");
    let listed = home.run(&[&command[..], &["-o", "json"]].concat()).expect(0).json();
    assert_eq!(listed["forms"][0]["accepting_reason"], "not_open_yet");
}

#[test]
fn a_form_that_drops_takes_keys_it_does_not_know_with_a_warning() {
    let home = Home::new();
    let file =
        "title: Lunch\nsettings: {unknown_answers: drop}\nquestions:\n  - {type: short_text, title: Name}\n";
    home.write("drops.yaml", file);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "drops.yaml"]);
    let sent = home.run(&["--data", "store", "submit", id.trim(), "q1=Ada", "utm=x", "-o", "json"]).expect(0);
    assert_eq!(sent.json()["answers"], serde_json::json!({"q1": "Ada"}));
    assert!(
        sent.stderr.contains("warning: `utm` is not a question of \"Lunch\" and is left out"),
        "{}",
        sent.stderr
    );
    let missed = home.run(&["--data", "store", "submit", id.trim(), "qq1=Ada"]).expect(0);
    let warning =
        "warning: `qq1` is not a question of \"Lunch\" and is left out; a similar id exists: `q1`\n";
    assert!(missed.stderr.contains(warning), "{missed:?}");
    let refused = home.run(&["--data", "store", "submit", id.trim(), "qq1=Ada", "q1:=5"]).expect(6);
    assert!(refused.stderr.contains(warning), "{refused:?}");
}

#[test]
fn csv_runs_no_formula_and_changes_no_number() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    for answer in ["q1==1+1", "q1=-5", "q1=a,\"b\""] {
        home.ok(&["--data", "store", "submit", &id, answer, "q3=4"]);
    }
    let csv = home.ok(&["--data", "store", "responses", &id, "-o", "csv"]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "id,submitted_at,q1,q2,q3");
    assert!(lines[1].ends_with(",\"a,\"\"b\"\"\",,4"), "{csv}");
    assert!(lines[2].ends_with(",-5,,4"), "{csv}");
    assert!(lines[3].ends_with(",'=1+1,,4"), "{csv}");
    let raw = home.ok(&["--data", "store", "responses", &id, "-o", "csv", "--raw"]);
    assert!(raw.lines().nth(3).unwrap().ends_with(",=1+1,,4"), "{raw}");
}

#[test]
fn answers_keep_their_text_and_stay_on_one_line() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published(&[]);
    // Sent by another client, with line breaks between the tokens and a number with its own text.
    let body = "{\"answers\":{\n  \"q1\": \"hello\",\r\n  \"q3\": 4.0\n}}";
    post(&server.url, &format!("/api/v1/forms/{id}/submissions"), &operator_key(&home), body);
    let line = home.ok(&["responses", &id, "-o", "jsonl"]);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("\"q3\": 4.0"), "{line}");
}

#[test]
fn text_of_strangers_cannot_steer_the_terminal() {
    let title = "\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}tab\there";
    let form = serde_json::json!({
        "id": "frm_7k2m9q4x1abz", "title": title, "status": "published", "response_count": 0,
        "created_at": "2026-11-20T09:00:00.000Z", "updated_at": "2026-11-20T09:00:00.000Z",
    });
    let body = serde_json::json!({ "forms": [form] }).to_string();
    let server = StandIn::answering(vec![StandIn::ok(&body)]);
    let list = Home::new().run(&["--url", &server.url, "list"]).expect(0);
    assert!(!list.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{list:?}");
    assert!(list.stdout.contains("\\u{1b}]0;pwn\\u{7}\\u{9b}31m\\u{202e}tab\\there"), "{list:?}");
}

#[test]
fn what_old_stores_hold_cannot_steer_a_terminal_in_any_format() {
    let evil = "\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\r";
    let time = "2026-11-20T09:00:00.000Z";
    let question = serde_json::json!({
        "id": "q1", "type": "single_choice", "title": evil, "required": true, "description": evil,
        "options": [evil, {"value": "a", "label": evil}], "show_if": {"q0": evil},
    });
    let form = serde_json::json!({
        "id": "frm_7k2m9q4x1abz", "title": evil, "description": evil, "status": "published", "version": 1,
        "accepting": true, "questions": [question], "settings": {"closed_message": evil},
        "response_count": 1, "created_at": time, "updated_at": time,
    });
    let submission = serde_json::json!({
        "id": "sub_01k3v8m2f4q6s8t0w2y4z6a8bc", "form_id": "frm_7k2m9q4x1abz", "status": "completed",
        "answers": {"q1": evil}, "metadata": {"from": evil}, "submitted_at": time, "form_version": 1,
    });
    let list = serde_json::json!({ "forms": [form] });
    let submissions = serde_json::json!({ "submissions": [submission], "next_cursor": null });
    let id = submission["id"].as_str().unwrap();
    let commands: [(&[&str], &[&serde_json::Value]); 5] = [
        (&["list"], &[&list]),
        (&["show", "f"], &[&form]),
        (&["responses", "f"], &[&form, &submissions]),
        (&["responses", "show", "f", id], &[&submission, &form]),
        (&["submit", "f", "q1=x"], &[&form]),
    ];
    for (command, bodies) in commands {
        for format in ["table", "json", "jsonl", "yaml", "csv"] {
            let replies = bodies.iter().map(|body| StandIn::ok(&body.to_string())).collect();
            let server = StandIn::answering(replies);
            let arguments = [&["--url", &server.url, "--retries", "0", "-o", format], command].concat();
            let (_, seen) = Session::start(&Home::new(), &[("NO_COLOR", "1")], &arguments).end();
            let seen = seen.replace("\u{1b}[?25h", "").replace("\r\n", "\n");
            let is_steered = seen.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r']);
            assert!(!is_steered && seen.contains("pwn"), "{command:?} -o {format}: {seen:?}");
        }
    }
}

#[test]
fn answers_to_questions_that_are_gone_are_not_left_out_in_silence() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published(&[]);
    home.ok(&["submit", &id, "q1=hello", "q3=2"]);
    let patch = "{\"questions\":[{\"id\":\"q1\",\"type\":\"short_text\",\"title\":\"Only this\"}]}";
    send(&server.url, "PATCH", &format!("/api/v1/forms/{id}"), &operator_key(&home), patch);
    let table = home.run(&["responses", &id]).expect(0);
    assert!(table.stdout.ends_with("\thello\n"), "{table:?}");
    assert!(table.stderr.contains("-o jsonl has them"), "{table:?}");
}

#[test]
fn a_form_shown_as_a_file_makes_the_same_form_again() {
    let home = Home::new();
    let data = ["--data", "store"];
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let examples = std::fs::read_dir(examples).unwrap().map(|example| example.unwrap().path());
    for (place, example) in examples.enumerate() {
        let show = |id: &str| home.ok(&[&data[..], &["show", id.trim(), "-o", "yaml"]].concat());
        let create = |file: &str| home.ok(&[&data[..], &["create", "-f", file]].concat());
        let first = show(&create(example.to_str().unwrap()));
        let name = format!("again-{place}.yaml");
        home.write(&name, &first);
        assert_eq!(show(&create(&name)), first, "{}", example.display());
        assert!(!first.contains("frm_") && !first.contains("status") && !first.contains("created_at"));
    }
}

#[test]
fn what_has_no_id_stays_under_its_column_in_a_pipe() {
    let home = Home::new();
    home.write("welcome.yaml", "title: A\nquestions:\n  - {type: statement, title: Welcome}\n  - {id: name, type: email, title: Email, required: true}\n");
    let id = home.ok(&["--data", "store", "create", "-f", "welcome.yaml"]);
    let shown = home.ok(&["--data", "store", "show", id.trim()]);
    let rows = "questions:\n        statement            Welcome\n  name  email      required  Email\n";
    assert!(shown.contains(rows), "{shown}");
}

#[test]
fn a_form_is_shown_with_all_that_its_questions_ask_for_in_80_columns() {
    let home = Home::new();
    home.write(
        "survey.yaml",
        "\
title: Customer feedback
slug: feedback
description: \"Two minutes. We read every answer, and we read it twice if it is long enough for that.\"
settings: {confirmation: {message: Thank you}}
questions:
  - {id: score, type: rating, title: How did we do?, required: true, labels: {1: bad, 5: good}}
  - {type: page, title: What went wrong, show_if: {score: {lte: 2}}}
  - id: reasons
    type: multiple_choice
    title: Which of all the things that can go wrong with a delivery were they?
    description: |
      Choose as many as you like.
      We read every answer.
    options: [late, {value: broken, label: 'Broken, torn'}, \"wrong, again\"]
    allow_other: true
    max_selected: 2
    required_if: {any: [{score: 1}, {score: {answered: false}}]}
  - id: parts
    type: matrix
    title: How was each?
    rows: [a rather long name of a row, another rather long name of a row, place]
    columns: [{value: good, label: As good as anyone could ever have wished that it were}, {value: bad, label: Bad}]
",
    );
    let id = home.ok(&["--data", "store", "create", "-f", "survey.yaml"]);
    let shown = home.ok(&["--data", "store", "show", id.trim()]);
    let (_, questions) = shown.split_once("\nquestions:\n").unwrap();
    let expected = "  \
  score    rating           required  How did we do?
      labels: 1 = bad, 5 = good
           page                       What went wrong
      shown if score is 2 or less
  reasons  multiple_choice            Which of all the things that can go wrong
                                      with a delivery were they?
      Choose as many as you like.
      We read every answer.
      required if score is 1 or score is not answered
      options: late, broken \"Broken, torn\", \"wrong, again\"
      max_selected: 2, allow_other: true
  parts    matrix                     How was each?
      rows: \"a rather long name of a row\", \"another rather long name of a
        row\", place
      columns:
        good \"As good as anyone could ever have wished that it were\"
        bad \"Bad\"
settings:
  confirmation: message = Thank you
";
    let about = "\nabout:      Two minutes. We read every answer, and we read it twice if it is\n            long enough for that.\n";
    assert!(shown.contains(about), "{shown}");
    assert_eq!(questions, expected, "{questions}");
    assert!(
        shown.contains("accepting:  no: draft\n") && !shown.lines().any(|line| line.len() > 80),
        "{shown}"
    );
}

#[test]
fn people_read_answers_without_the_marks_of_json() {
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
    let (_, seen) = Session::start(&home, &[("NO_COLOR", "1")], &list).end();
    assert!(seen.starts_with("DAYS\r\nmon, tue\r\n"), "{seen:?}");
    let shown = home.ok(&["--data", "store", "responses", "show", id, made.trim()]);
    let expected = "answers:\n  Which days? (days): mon, tue\n  comment:\n      Dear all,\n      hello\n";
    assert!(shown.ends_with(expected), "{shown}");
}

#[test]
fn a_title_that_long_ids_leave_no_room_for_has_lines_of_its_own() {
    let home = Home::new();
    let id = "how_much_would_you_be_willing_to_pay_for_";
    home.write("long.yaml", &format!("title: A\nquestions:\n  - {{id: {id}, type: multiple_choice, title: What would you pay for it today?, options: [a, b]}}\n"));
    let form = home.ok(&["--data", "store", "create", "-f", "long.yaml"]);
    let shown = home.ok(&["--data", "store", "show", form.trim()]);
    let rows =
        format!("  {id}  multiple_choice\n      What would you pay for it today?\n      options: a, b\n");
    assert!(shown.contains(&rows), "{shown}");
}
