//! Answers as arguments of `forms submit`, converted by question type, and answers in files.

use super::Home;

const EVERYTHING: &str = "\
title: Everything
questions:
  - {id: name, type: short_text, title: Name}
  - {id: story, type: long_text, title: Story}
  - {id: guests, type: number, title: Guests}
  - {id: score, type: opinion_scale, title: Score}
  - {id: coming, type: boolean, title: Coming}
  - {id: agreed, type: consent, title: Agreed}
  - {id: colour, type: single_choice, title: Colour, options: [red, blue], allow_other: true}
  - {id: colours, type: multiple_choice, title: Colours, options: [red, blue]}
  - {id: order, type: ranking, title: Order, options: [red, blue]}
  - {id: grid, type: matrix, title: Grid, rows: [taste], columns: [good, bad]}
  - {id: day, type: date, title: Day}
  - {id: gear, type: multiple_choice, title: Gear, options: [tent, rope], allow_other: true}
  - {id: every, type: ranking, title: All, options: [a, b, c], rank_all: true}
  - {id: three, type: multiple_choice, title: Three, options: [a, b, c, d], min_selected: 3}
  - {id: one, type: multiple_choice, title: One, options: [a, b], max_selected: 1}
";

fn home() -> (Home, String) {
    let home = Home::new();
    home.write("everything.yaml", EVERYTHING);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "everything.yaml"]);
    let id = id.trim().to_owned();
    (home, id)
}

/// Returns the answers that are sent for `arguments`.
fn sent_answers(home: &Home, id: &str, arguments: &[&str]) -> String {
    let command = [&["--data", "store", "submit", id, "--dry-run", "-o", "json"], arguments].concat();
    let tried: serde_json::Value = serde_json::from_str(&home.ok(&command)).unwrap();
    tried["answers"].to_string()
}

#[test]
fn answers_are_converted_to_the_type_of_their_question() {
    let (home, id) = home();
    home.write("story.txt", "One day\nit rained.\n");
    for (arguments, answers) in [
        (&["name=5"][..], r#"{"name":"5"}"#),
        (&["guests=5", "score=10"], r#"{"guests":5,"score":10}"#),
        (&["coming=no", "agreed=YES"], r#"{"agreed":true,"coming":false}"#),
        (
            &["colour=red", "colours=red", "order=blue", "order=red"],
            r#"{"colour":"red","colours":["red"],"order":["blue","red"]}"#,
        ),
        (&[r#"grid={"taste":"good"}"#], r#"{"grid":{"taste":"good"}}"#),
        (
            &[r#"colour:={"other":"pink"}"#, r#"colours:=["blue"]"#],
            r#"{"colour":{"other":"pink"},"colours":["blue"]}"#,
        ),
        (
            &["story=@story.txt", "name=\\@ann", "day=2027-03-13"],
            r#"{"day":"2027-03-13","name":"@ann","story":"One day\nit rained."}"#,
        ),
    ] {
        assert_eq!(sent_answers(&home, &id, arguments), answers, "{arguments:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_converted_is_reported_with_the_expected_type() {
    let (home, id) = home();
    let submit = |arguments: &[&str]| {
        let command = [&["--data", "store", "submit", &id], arguments].concat();
        home.run(&command).expect(6).stderr
    };
    let message =
        submit(&["guests=many", "coming=perhaps", "colours=red", "colours=pink", r#"grid={"taste":"fair"}"#]);
    for line in [
        "error[type_mismatch]: \"Guests\": Enter a number, not text",
        "error[type_mismatch]: \"Coming\": Enter true or false, not text",
        "error[not_an_option]: \"Colours\", item 2: Choose one of red, blue",
        "error[not_an_option]: \"Grid\" at taste: Choose one of good, bad",
        "guests=… expects a number",
    ] {
        assert!(message.contains(line), "{message}");
    }
}

#[test]
fn the_help_of_a_refused_answer_is_a_command_line_argument() {
    let (home, id) = home();
    for (argument, help) in [
        ("colours=red,blue", "give it once for each: colours=red colours=blue"),
        ("colours=green", "give it once for each: colours=red colours=blue"),
        ("order=green", "give it once for each, the most preferred first: order=red order=blue"),
        ("every=a", "give it once for each, the most preferred first: every=a every=b every=c"),
        ("three=a", "give it once for each: three=a three=b three=c"),
        ("one=z", "give it once for each: one=a"),
        ("grid=good", r#"grid takes JSON from rows to columns: grid:='{"taste":"good"}'"#),
        (
            "colour=Mum's",
            r#"colour=… expects one of red, blue; in other words: colour:="{\"other\":\"Mum's\"}""#,
        ),
        (
            "gear=Pink",
            r#"give it once for each: gear=tent gear=rope; in other words: gear:='[{"other":"Pink"}]'"#,
        ),
        ("colour=rde", "a similar option exists: colour=red"),
        ("colour=BLUE", "a similar option exists: colour=blue"),
        ("day=soon", "day=… expects a date"),
    ] {
        let message = home.run(&["--data", "store", "submit", &id, argument]).expect(6).stderr;
        assert!(message.contains(&format!("= help: {help}")), "{argument}: {message}");
    }
}

#[test]
fn all_invalid_arguments_are_reported_together() {
    let (home, id) = home();
    let result = |arguments: &[&str]| {
        home.run(&[&["--data", "store", "submit", &id], arguments].concat()).expect(2).stderr
    };
    let both = result(&["colour:=red", "tick"]);
    for message in [
        "invalid JSON after `:=` in `colour:=red`",
        "; `tick` has no `=`",
        "= help: as text: colour=red; answers are",
    ] {
        assert!(both.contains(message), "{both}");
    }
    let twice = result(&["name=A", "name=B", "story=C", "story=D"]);
    assert!(twice.contains("`name` given more than once; `story` given more than once"), "{twice}");
    for invalid in [&["colours=red", "colours:=[\"blue\"]"][..], &["name=@-", "story=@-"]] {
        result(invalid);
    }
    let missing = result(&["name=@no file"]);
    assert!(missing.contains("cannot read no file: there is no such file\n"), "{missing}");
    assert!(
        missing.contains("= help: to send a text that begins with @: name=\"\\\\@no file\"\n"),
        "{missing}"
    );
}

#[test]
fn the_label_of_an_option_leads_to_a_hint_with_its_value() {
    let home = Home::new();
    let options = "[{value: s1, label: Soup of the day}, {value: s2, label: 'Bread, cheese'}]";
    let text = format!("title: T\nquestions:\n  - {{type: multiple_choice, title: Q, options: {options}}}\n");
    home.write("labels.yaml", &text);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "labels.yaml"]);
    let message = home.run(&["--data", "store", "submit", id.trim(), "q1=soup of the day"]).expect(6).stderr;
    assert!(message.contains("= help: a similar option exists: q1=s1"), "{message}");
}

#[test]
fn an_empty_argument_for_a_list_sends_an_empty_list() {
    let (home, id) = home();
    assert_eq!(sent_answers(&home, &id, &["colours=", "order="]), r#"{"colours":[],"order":[]}"#);
}

/// Submits the file `name` to the form, with more arguments.
fn submit_file(home: &Home, id: &str, name: &str, more: &[&str]) -> super::Run {
    home.run(&[&["--data", "store", "submit", id, "--file", name], more].concat())
}

#[test]
fn the_answers_of_a_file_are_sent_unchanged() {
    let (home, id) = home();
    home.write("bare.json", r#"{"guests": 1.50, "name": "Ann", "colours": ["red"]}"#);
    home.write("whole.json", r#"{"answers": {"guests": 1.50, "name": "Ann", "colours": ["red"]}}"#);
    home.write("bare.yaml", "guests: 1.50\nname: Ann\ncolours: [red]\n");
    let expected = r#"{"guests":1.50,"name":"Ann","colours":["red"]}"#;
    for name in ["bare.json", "whole.json", "bare.yaml"] {
        let sent = submit_file(&home, &id, name, &["-o", "jsonl"]).expect(0).stdout;
        assert!(sent.contains(&format!("\"answers\":{expected},")), "{sent}");
    }
    let command =
        ["--data", "store", "submit", &id, "--file", "-", "--dry-run", "-o", "jsonl", "name=Bob", "score=3"];
    let sent = home.run_with_input(expected, &command).expect(0).stdout;
    assert!(sent.contains(r#"{"guests":1.50,"name":"Bob","colours":["red"],"score":3}"#), "{sent}");
}

#[test]
fn problems_of_an_answer_file_are_shown_at_their_line() {
    let (home, id) = home();
    home.write("answers.yaml", "answers:\n  guests: many\n  nmae: Ann\n  coming: 5\n  day: soon\n");
    let message = submit_file(&home, &id, "answers.yaml", &["day=later"]).expect(6).stderr;
    for line in [
        " --> answers.yaml:2:11\n",
        " --> answers.yaml:3:3\n",
        " --> answers.yaml:4:11\n",
        "4 problems, nothing was sent",
    ] {
        assert!(message.contains(line), "{line}: {message}");
    }
    assert!(!message.contains("answers.yaml:5"), "an argument has no place in the file: {message}");
    // Problems that only the server finds are shown in the file as well.
    home.write("more.json", "{\"answers\": {\"name\": \"Ann\"},\n \"metdata\": {}}\n");
    let message = submit_file(&home, &id, "more.json", &[]).expect(6).stderr;
    assert!(
        message.contains("error[unknown_field]") && message.contains(" --> more.json:2:2\n"),
        "{message}"
    );
}

#[test]
fn a_file_with_several_records_is_refused() {
    let (home, id) = home();
    home.write("many.json", "{\"name\": \"Ann\"}\n{\"name\": \"Bob\"}\n");
    home.write("many.yaml", "name: Ann\n---\nname: Bob\n");
    for (name, message) in [
        ("many.json", "expected one record, found 2 in many.json"),
        ("many.yaml", "expected one record, found 2 in many.yaml"),
        ("missing.json", "there is no such file"),
    ] {
        let run = submit_file(&home, &id, name, &[]).expect(2);
        assert!(run.stderr.contains(message), "{run:?}");
    }
    let command = ["--data", "store", "submit", &id, "--file", "-", "story=@-"];
    home.run_with_input("{}", &command).expect(2);
    assert_eq!(home.ok(&["--data", "store", "responses", &id]), "");
}

#[test]
fn a_form_that_drops_unknown_answers_accepts_them_with_a_warning() {
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
