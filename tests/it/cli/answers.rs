//! Answers on the command line: text that the type of its question turns into more.

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
";

fn home() -> (Home, String) {
    let home = Home::new();
    home.write("everything.yaml", EVERYTHING);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "everything.yaml"]);
    let id = id.trim().to_owned();
    (home, id)
}

/// What the server is sent for `arguments`.
fn sent(home: &Home, id: &str, arguments: &[&str]) -> String {
    let command = [&["--data", "store", "submit", id, "--dry-run", "-o", "json"], arguments].concat();
    let tried: serde_json::Value = serde_json::from_str(&home.ok(&command)).unwrap();
    tried["answers"].to_string()
}

#[test]
fn text_becomes_what_its_question_asks_for() {
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
        assert_eq!(sent(&home, &id, arguments), answers, "{arguments:?}");
    }
}

#[test]
fn text_that_cannot_be_turned_is_told_with_what_is_asked_for() {
    let (home, id) = home();
    let submit = |arguments: &[&str]| {
        let command = [&["--data", "store", "submit", &id], arguments].concat();
        home.run(&command).expect(6).stderr
    };
    let said =
        submit(&["guests=many", "coming=perhaps", "colours=red", "colours=pink", r#"grid={"taste":"fair"}"#]);
    for line in [
        "error[type_mismatch]: \"Guests\": Enter a number, not text",
        "error[type_mismatch]: \"Coming\": Enter true or false, not text",
        "error[not_an_option]: \"Colours\" at 1: Choose one of red, blue",
        "error[not_an_option]: \"Grid\" at taste: Choose one of good, bad",
        "guests=… expects a number",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn what_is_given_twice_or_cannot_be_read_is_a_wrong_call() {
    let (home, id) = home();
    for arguments in [
        &["name=a", "name=b"][..],
        &["colours=red", "colours:=[\"blue\"]"],
        &["name:=\"a\"", "name:=\"b\""],
        &["name:=a"],
        &["story=@missing.txt"],
        &["name=@-", "story=@-"],
    ] {
        let command = [&["--data", "store", "submit", &id], arguments].concat();
        home.run(&command).expect(2);
    }
}
