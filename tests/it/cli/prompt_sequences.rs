//! Sequences of prompts: pasted input, and signals during prompts and during the request after them.

use std::process::Command;
use std::sync::mpsc::channel;

use rustix::process::Signal;

use super::Home;
use super::fake_server::{FakeServer, Reply};
use super::terminal::Session;

const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::INT];

const ASKS: &str =
    "title: Lunch\nquestions:\n  - {id: name, type: short_text, title: Who are you?, required: true}\n";

/// Runs `arguments` against a server that answers `forwarded` requests and not the next one, types `answers` at their
/// prompts, and sends `signal` once the server has received that request. Returns the terminal's output.
#[track_caller]
fn end_by_signal(
    signal: Signal,
    arguments: impl Fn(&str) -> Vec<String>,
    forwarded: usize,
    answers: &[(&str, &str)],
) -> String {
    let home = Home::new();
    let server = home.serve();
    home.write("asks.yaml", ASKS);
    let id = home.ok(&["create", "--publish", "-f", "asks.yaml"]);
    let (sender, received) = channel();
    let mut replies: Vec<_> = (0..forwarded).map(|_| Reply::Forward(server.url.clone())).collect();
    replies.push(Reply::NoResponse(sender));
    let fake_server = FakeServer::with_replies(replies);
    let key = home.path().join("store/operator-key");
    let mut words: Vec<_> =
        ["--url", &fake_server.url, "--key-file", key.to_str().unwrap(), "--timeout", "60s"]
            .map(str::to_owned)
            .into();
    words.extend(arguments(id.trim()));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &words);
    for (question, keys) in answers {
        session.wait_for_next(question);
        session.wait_for_key_reader();
        session.type_keys(keys);
    }
    received.recv().unwrap();
    session.signal(signal);
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{signal:?}: {screen}");
    screen
}

#[test]
fn signals_end_the_request_after_a_prompt() {
    for signal in SIGNALS {
        let submit = |id: &str| vec!["submit".to_owned(), id.to_owned()];
        let screen = end_by_signal(signal, submit, 1, &[("Who are you?", "Ann\r")]);
        assert!(screen.contains("to send your answers later: ") && screen.contains(" name=Ann"), "{screen}");
        let delete = |id: &str| vec!["delete".to_owned(), id.to_owned()];
        end_by_signal(signal, delete, 1, &[("[y/N]", "y\r")]);
        let answers = [
            ("Title", "Lunch\r"),
            ("Question 1", "Colour\r"),
            ("short_text", "\r"),
            ("answered?", "\r"),
            ("Question 2", "\r"),
            ("Publish it", "y\r"),
        ];
        let screen = end_by_signal(signal, |_| vec!["create".to_owned()], 1, &answers);
        assert!(
            screen.contains("your text is kept in ") && screen.contains(" create --publish -f "),
            "{screen}"
        );
    }
}

#[test]
fn pasted_text_answers_several_prompts() {
    let home = Home::new();
    let mut session = Session::start(&home, &[], &["--data", "store", "create"]);
    session.wait_for("Title");
    session.type_keys("Lunch\rColour\r\ry\rn");
    let (code, screen) = session.finish();
    assert!(code == Some(0) && screen.contains("created \"Lunch\" (draft, 1 question)"), "{screen}");
    let id = home.ok(&["--data", "store", "list", "--columns", "id"]);
    let file = home.ok(&["--data", "store", "show", id.trim(), "-o", "yaml"]);
    assert!(file.contains("title: Colour\n  required: true"), "{file}");
}

#[test]
fn the_rest_of_a_paste_is_not_passed_to_the_shell() {
    let home = Home::new();
    let script = format!(
        "{} --data store create; echo over; read line; echo \"[$line]\"",
        env!("CARGO_BIN_EXE_forms")
    );
    for paste in ["Lunch\r\u{3}leaked\r", "Lunch\r\rleaked\r"] {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).env("HOME", home.path());
        let mut session = Session::start_program(80, &home, &[], &shell);
        session.wait_for("Title");
        session.type_keys(paste);
        session.wait_for("over\r\n");
        session.type_keys("mine\r");
        let (_, screen) = session.finish();
        assert!(screen.ends_with("[mine]\r\n"), "{screen:?}");
    }
}
