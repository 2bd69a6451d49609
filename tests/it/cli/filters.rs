//! `responses --where`, `--since` and `--until`: matching answers, and filters that are refused.

use super::Home;

#[test]
fn responses_are_filtered_by_answers_and_time() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
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
        (&["--since", "2020-01-01", "--until", "9999-01-01"], "Cem Bob Ada"),
        (&["--since", "90m"], "Cem Bob Ada"),
        (&["--since", "2w", "--until", "1d"], ""),
        (&["--since", "9999999d", "--until", "12h"], ""),
    ] {
        assert_eq!(names(arguments), expected, "{arguments:?}");
    }
    let logged = list(&["--since", "2026-12-01", "-v"]).expect(0).stderr;
    assert!(logged.contains("since=2026-12-01T00"), "{logged}");
    for (test, exit, message) in [
        ("q3", 2, "expected QUESTION=VALUE or QUESTION.OPERATOR=VALUE"),
        ("q3>=4", 2, "write q3.gte=4"),
        ("q3!=4", 2, "write q3.ne=4"),
        ("q3=good", 6, "`--where q3`: `q3` is a whole number from 1 to 5, not \"good\""),
        ("q3.gte=good", 6, "`--where q3.gte`: `q3` is a whole number from 1 to 5, not \"good\""),
        ("q33=4", 2, "`q33` is not a question of "),
        ("q33=4", 2, "help: a question with a similar id exists: `q3`"),
        ("score=4", 2, "help: its questions are q1, q2, q3"),
    ] {
        let refused = list(&["--where", test]).expect(exit).stderr;
        assert!(refused.contains(message), "{test}: {refused}");
    }
    let refused =
        list(&["--since", "2026-02-01T00:00:00Z", "--until", "2026-01-01T00:00:00Z"]).expect(6).stderr;
    let message = "`--since`: 2026-02-01T00:00:00.000Z is after 2026-01-01T00:00:00.000Z";
    assert!(refused.contains(message), "{refused}");
    for time in ["2026-13-01", "in 1d", "1x"] {
        list(&["--since", time]).expect(2);
    }
    let refused = list(&["--since", "yesterday"]).expect(2).stderr;
    let message =
        "expected a date, a time or a duration: 2026-11-20, 2026-11-20T09:00:00Z or 1d, found `yesterday`";
    assert!(refused.contains(message), "{refused}");
}

#[test]
fn a_filter_without_a_question_is_refused() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    for filter in ["=", "=4"] {
        let refused = home.run(&["--data", "store", "responses", &id, "--where", filter]).expect(2);
        let message = format!(
            "error: invalid value '{filter}' for '--where <QUESTION=VALUE>': expected QUESTION=VALUE or QUESTION.OPERATOR=VALUE\n"
        );
        assert!(refused.stderr.starts_with(&message), "{refused:?}");
    }
}

#[test]
fn a_filter_with_an_unknown_option_suggests_a_similar_one() {
    let home = Home::new();
    let choice = "{type: single_choice, title: Colour, options: [red, blue]}";
    let list = "{type: ranking, title: Order, options: [red, blue]}";
    let questions = format!("[{choice}, {list}]");
    home.write("colours.yaml", &format!("title: Colours\nquestions: {questions}\n"));
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "colours.yaml"]);
    for (test, help) in [
        ("q1=rde", "a similar option exists: --where q1=red"),
        ("q2=rde", "a similar option exists: --where q2.includes=red"),
        ("q2.in=red", "--where q2.includes=red"),
    ] {
        let refused = home.run(&["--data", "store", "responses", id.trim(), "--where", test]).expect(6);
        assert!(refused.stderr.contains(&format!("= help: {help}\n")), "{refused:?}");
    }
    // A filter is checked against the current questions, not against stored answers.
    home.ok(&["--data", "store", "submit", id.trim(), "q1=red"]);
    for (change, exit) in [("questions.q1.options=[green, blue]", 6), ("questions.q1=", 2)] {
        home.ok(&["--data", "store", "edit", id.trim(), "--set", change]);
        home.run(&["--data", "store", "responses", id.trim(), "--where", "q1=red"]).expect(exit);
    }
}
