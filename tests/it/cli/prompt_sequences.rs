//! Several questions in a row: what is pasted into them, and the signals that end them and the request after them.

use std::process::Command;
use std::sync::mpsc::channel;

use rustix::process::Signal;

use super::Home;
use super::stand_in::{Reply, StandIn};
use super::terminal::{Session, has_cursor};

const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::INT];

const ASKS: &str =
    "title: Lunch\nquestions:\n  - {id: name, type: short_text, title: Who are you?, required: true}\n";

/// Runs `arguments` at a server that answers `passed` requests and not the next one, types `answers`, each after its
/// question, and sends `signal` when that request has come. Returns what was shown.
#[track_caller]
fn ended_by(
    signal: Signal,
    arguments: impl Fn(&str) -> Vec<String>,
    passed: usize,
    answers: &[(&str, &str)],
) -> String {
    let home = Home::new();
    let server = home.serve();
    home.write("asks.yaml", ASKS);
    let id = home.ok(&["create", "--publish", "-f", "asks.yaml"]);
    let (sender, came) = channel();
    let mut replies: Vec<_> = (0..passed).map(|_| Reply::Pass(server.url.clone())).collect();
    replies.push(Reply::Silence(sender));
    let stand_in = StandIn::answering(replies);
    let key = home.path().join("store/operator-key");
    let mut words: Vec<_> = ["--url", &stand_in.url, "--key-file", key.to_str().unwrap(), "--timeout", "60s"]
        .map(str::to_owned)
        .into();
    words.extend(arguments(id.trim()));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &words);
    for (question, keys) in answers {
        session.next(question);
        session.press(keys);
    }
    came.recv().unwrap();
    session.signal(signal);
    let (code, seen) = session.end();
    assert_eq!(code, Some(130), "{signal:?}: {seen}");
    seen
}

#[test]
fn signals_end_the_request_after_a_question() {
    for signal in SIGNALS {
        let submit = |id: &str| vec!["submit".to_owned(), id.to_owned()];
        let seen = ended_by(signal, submit, 1, &[("Who are you?", "Ann\r")]);
        assert!(seen.contains("to send your answers later: ") && seen.contains(" name=Ann"), "{seen}");
        let delete = |id: &str| vec!["delete".to_owned(), id.to_owned()];
        ended_by(signal, delete, 1, &[("[y/N]", "y\r")]);
        let answers = [
            ("Title", "Lunch\r"),
            ("Question 1", "Colour\r"),
            ("short_text", "\r"),
            ("answered?", "\r"),
            ("Question 2", "\r"),
            ("Publish it", "y\r"),
        ];
        let seen = ended_by(signal, |_| vec!["create".to_owned()], 1, &answers);
        assert!(seen.contains("your text is kept in ") && seen.contains(" create --publish -f "), "{seen}");
    }
}

#[test]
fn signals_end_a_question_as_ctrl_c_does() {
    for signal in SIGNALS {
        let home = Home::new();
        let id = home.published_form(&["--data", "store"]);
        let mut session = Session::start(&home, &[], &["--data", "store", "delete", &id]);
        session.until("[y/N] ");
        session.signal(signal);
        let (code, seen) = session.end();
        assert_eq!(code, Some(130), "{seen:?}");
        assert!(seen.ends_with("\r\n\u{1b}[?25hcancelled, nothing was done\r\n"), "{seen:?}");
        // The list of types, with the line above it, is erased.
        let mut session = Session::start(&home, &[], &["--data", "store", "create"]);
        session.until("Title");
        session.press("Lunch\rColour\r");
        session.until("> short_text");
        session.signal(signal);
        let (code, seen) = session.end();
        let (drawn, _) = seen.split_once("cancelled, nothing was created\r\n").expect(&seen);
        assert!(drawn.trim_end_matches("\u{1b}[?25h").ends_with("\u{1b}[20A"), "{seen:?}");
        assert!(code == Some(130) && has_cursor(&seen), "{seen:?}");
    }
}

#[test]
fn a_yes_is_a_y_and_enter() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let mut session = Session::start(&home, &[], &["--data", "store", "delete", &id]);
    session.next("[y/N] ");
    session.press("yellow\r");
    session.next("expected y or n");
    session.next("[y/N] ");
    session.press("Yes\r");
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn pasted_lines_answer_one_question_each() {
    for enter in ["\r", "\n", "\r\n"] {
        let home = Home::new();
        let mut session = Session::start(&home, &[], &["--data", "store", "create"]);
        session.until("Title");
        session.press(&["Lunch", "Colour", "", "y", "", "n", ""].join(enter));
        let (code, seen) = session.end();
        assert!(code == Some(0) && seen.contains("created \"Lunch\" (draft, 1 question)"), "{seen}");
        let id = home.ok(&["--data", "store", "list", "--columns", "id"]);
        let file = home.ok(&["--data", "store", "show", id.trim(), "-o", "yaml"]);
        assert!(file.contains("title: Colour\n  required: true"), "{file}");
    }
}

#[test]
fn the_rest_of_a_paste_is_not_left_to_the_shell() {
    let home = Home::new();
    let script = format!(
        "{} --data store create; echo over; read line; echo \"[$line]\"",
        env!("CARGO_BIN_EXE_forms")
    );
    for paste in ["Lunch\r\u{3}leaked\r", "Lunch\r\rleaked\r"] {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).env("HOME", home.path());
        let mut session = Session::start_program(80, &home, &[], &shell);
        session.until("Title");
        session.press(paste);
        session.until("over\r\n");
        session.press("mine\r");
        let (_, seen) = session.end();
        assert!(seen.ends_with("[mine]\r\n"), "{seen:?}");
    }
}

#[test]
fn unknown_keys_and_the_markers_of_a_paste_are_ignored() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "submit", &id, "q1=hello"]);
    let mut session = Session::start(&home, &[], &["--data", "store", "delete", &id]);
    session.until("to confirm: ");
    session.press(&format!("\u{1b}[200~{id}\u{1b}[201~\u{1b}[1;5D\u{1b}[15~\r"));
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen:?}");
}
