//! `forms fill` and `forms ask`: questions, the review, and what is left when it is canceled.

use std::process::Command;

use super::Home;
use super::terminal::{Session, is_cursor_visible};

const FORM: &str = "\
title: How was it?
slug: how
questions:
  - {id: score, type: rating, title: How did we do?, required: true}
  - {id: reason, type: short_text, title: What went wrong?, show_if: {score: {lte: 2}}, required_if: {score: 1}}
  - {id: colour, type: single_choice, title: Colour, options: [{value: red, label: Red as a rose}, blue]}
  - {id: utm, type: hidden, default: web}
";

fn with_form() -> Home {
    let home = Home::new();
    home.write("how.yaml", FORM);
    home.ok(&["--data", "store", "create", "--publish", "-f", "how.yaml"]);
    home
}

fn choose(session: &mut Session, shown: &str, keys: &str) {
    session.wait_for_next(shown);
    session.wait_for_key_reader();
    session.type_keys(keys);
}

#[test]
fn fill_asks_reviews_and_sends_and_prints_the_same_command() {
    let home = with_form();
    let mut session = Session::start(&home, &[], &["--data", "store", "fill", "how", "colour=red"]);
    // A score of 1 asks for a reason, which the score of 5 that replaces it does not.
    choose(&mut session, "Choose", "\r");
    session.wait_for_next("What went wrong? (required)");
    choose(&mut session, "Answer", "cold\r");
    session.wait_for_next("How did we do? → 1\r\nWhat went wrong? → cold\r\nColour → Red as a rose");
    choose(&mut session, "Cancel", "\u{1b}[B\r");
    choose(&mut session, "Which one?", "\r");
    choose(&mut session, "Choose", "\u{1b}[A\r");
    session.wait_for_next("How did we do? → 5\r\nColour → Red as a rose");
    choose(&mut session, "Cancel", "\r");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen:?}");
    let screen = console::strip_ansi_codes(&screen).replace("\r\n", "");
    assert!(screen.contains("forms --data store submit how colour=red score:=5"), "{screen:?}");
    let stored = home.ok(&["--data", "store", "responses", "how", "-o", "jsonl"]);
    assert!(stored.contains(r#""answers":{"colour":"red","score":5,"utm":"web"}"#), "{stored}");
}

#[test]
fn a_canceled_fill_sends_nothing_and_restores_the_terminal() {
    let home = with_form();
    for (keys, code) in [("\u{3}", 130), ("\u{1b}", 1)] {
        let start = ["--data", "store", "fill", "how", "score=5", "colour=blue"];
        let mut session = Session::start(&home, &[], &start);
        choose(&mut session, "Cancel", keys);
        let (ended, screen) = session.finish();
        assert_eq!(ended, Some(code), "{screen:?}");
        assert!(is_cursor_visible(&screen) && screen.contains("to send your answers later"), "{screen:?}");
    }
    assert_eq!(home.ok(&["--data", "store", "responses", "how"]), "");
    let run = home.run(&["--data", "store", "fill", "how"]).expect(2);
    assert!(run.stderr.contains("cannot ask questions: there is no terminal"), "{run:?}");
    let mut session = Session::start(&home, &[], &["--data", "store", "fill", "how", "scor=5"]);
    session.wait_for("a question with a similar id exists");
    assert_eq!(session.finish().0, Some(6));
}

#[test]
fn ask_prints_the_answers_of_a_prompt_to_a_script() {
    let home = with_form();
    let ask = |keys: &[(&str, &str)]| {
        let mut shell = Command::new("sh");
        let forms = env!("CARGO_BIN_EXE_forms");
        shell
            .args(["-c", &format!("answers=$({forms} ask how.yaml colour=blue); echo \"rc=$? <$answers>\"")]);
        shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        let mut session = Session::start_program(80, &home, &[], &shell);
        keys.iter().for_each(|(shown, keys)| choose(&mut session, shown, keys));
        let (_, screen) = session.finish();
        assert!(is_cursor_visible(&screen), "{screen:?}");
        console::strip_ansi_codes(&screen).into_owned()
    };
    let screen = ask(&[("Choose", "\u{1b}[A\r"), ("Cancel", "\r")]);
    assert!(screen.contains(r#"rc=0 <{"colour":"blue","score":5,"utm":"web"}>"#), "{screen:?}");
    let screen = ask(&[("Choose", "\u{3}")]);
    assert!(screen.contains("canceled") && screen.contains("rc=130 <>"), "{screen:?}");
    let screen = ask(&[("Choose", "\u{1b}[A\r"), ("Cancel", "\u{1b}[A\r")]);
    assert!(screen.contains("rc=1 <>"), "{screen:?}");
}

#[test]
fn ask_needs_no_terminal_for_answers_that_are_given() {
    let home = with_form();
    assert_eq!(home.ok(&["ask", "how.yaml", "score=5"]), "{\"score\":5,\"utm\":\"web\"}\n");
    let run = home.run(&["ask", "how.yaml", "score=1"]).expect(2);
    assert_eq!(
        run.stderr,
        "error: cannot ask for `reason`: there is no terminal\n  = help: give the answer as an argument: reason=...\n"
    );
    let run = home.run(&["ask", "how.yaml", "score=5", "reason=cold"]).expect(6);
    assert!(run.stdout.is_empty() && run.stderr.contains("question_not_visible"), "{run:?}");
    home.write("two.yaml", "title: A\n---\ntitle: B\n");
    home.run(&["ask", "two.yaml"]).expect(2);
}
