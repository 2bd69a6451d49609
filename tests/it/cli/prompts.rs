//! At a terminal: questions before danger, a cursor that comes back, colours where they are wanted.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::Home;

/// A command at a terminal of its own.
struct Session {
    terminal: File,
    /// What it shows, as it comes.
    shown: Receiver<String>,
    child: Child,
    seen: String,
}

/// A command that hangs must fail its test instead of stopping all of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hands on what the terminal shows, until nobody holds it any more: Linux says so by an error.
fn listen(mut terminal: File) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Session {
    fn start(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        // The terminal becomes the command's own, so that it gets the signals of its keys.
        let command = home.command(arguments);
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        leader.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        leader.current_dir(home.path()).env("TERM", "xterm").envs(variables.iter().copied());
        leader.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let terminal = File::from(master);
        let shown = listen(terminal.try_clone().unwrap());
        Self { terminal, shown, child: leader.spawn().unwrap(), seen: String::new() }
    }

    /// Waits until the terminal shows `text`.
    #[track_caller]
    fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read(), "`{text}` did not come: {:?}", self.seen);
        }
    }

    /// Takes what the terminal shows next; false at the end.
    #[track_caller]
    fn read(&mut self) -> bool {
        match self.shown.recv_timeout(PATIENCE) {
            Ok(text) => self.seen.push_str(&text),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more came: {:?}", self.seen),
        }
        true
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// The exit code and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.seen)
    }
}

/// A home with a published form, and the form's id.
fn with_form(answers: usize) -> (Home, String) {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    for _ in 0..answers {
        home.ok(&["--data", "store", "submit", &id, "q1=hello"]);
    }
    (home, id)
}

fn delete(home: &Home, id: &str) -> Session {
    let mut session = Session::start(home, &[], &["--data", "store", "delete", id]);
    session.until("Lunch");
    session
}

#[test]
fn answers_are_deleted_at_a_y() {
    let (home, id) = with_form(2);
    let submissions = home.ok(&["--data", "store", "responses", &id, "--columns", "id"]);
    let submissions: Vec<_> = submissions.lines().collect();
    let command = [&["--data", "store", "responses", "delete", &id], &submissions[..]].concat();
    for (key, code, left) in [("n", 1, 2), ("y", 0, 0)] {
        let mut session = Session::start(&home, &[], &command);
        session.until("Delete 2 responses to \"Lunch\" on store? [y/N]");
        session.press(key);
        let (ended, shown) = session.end();
        assert_eq!(ended, Some(code), "{shown}");
        assert_eq!(home.ok(&["--data", "store", "responses", &id]).lines().count(), left);
    }
}

#[test]
fn a_form_without_answers_is_deleted_at_a_y() {
    let (home, id) = with_form(0);
    let mut session = delete(&home, &id);
    session.until("Delete \"Lunch\" (0 responses) on store? [y/N]");
    session.press("y");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen:?}");
    home.run(&["--data", "store", "show", &id]).expect(3);
}

#[test]
fn a_no_does_nothing_and_says_so_by_its_code() {
    let (home, id) = with_form(0);
    for key in ["n", "\r"] {
        let mut session = delete(&home, &id);
        session.until("[y/N]");
        session.press(key);
        let (code, seen) = session.end();
        assert_eq!(code, Some(1), "{seen:?}");
    }
    home.ok(&["--data", "store", "show", &id]);
}

#[test]
fn a_form_with_answers_is_deleted_only_when_its_id_is_typed() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.until(&format!("(1 response) on store? Type {id} to confirm"));
    session.press("yes\r");
    assert_eq!(session.end().0, Some(1));
    home.ok(&["--data", "store", "show", &id]);
    let mut session = delete(&home, &id);
    session.until("to confirm");
    session.press(&format!("{id}\r"));
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen:?}");
    home.run(&["--data", "store", "show", &id]).expect(3);
}

#[test]
fn the_question_names_the_server() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published(&[]);
    let mut session = Session::start(&home, &[], &["delete", &id]);
    session.until(&format!("on {}? [y/N]", server.url));
    session.press("n");
    session.end();
}

#[test]
fn ctrl_c_at_a_question_ends_with_130_and_gives_the_cursor_back() {
    for answers in [0, 1] {
        let (home, id) = with_form(answers);
        let mut session = delete(&home, &id);
        session.until(if answers == 0 { "[y/N]" } else { "to confirm" });
        session.press("\u{3}");
        let (code, seen) = session.end();
        assert_eq!(code, Some(130), "{seen:?}");
        let (hidden, shown) = (seen.rfind("\u{1b}[?25l"), seen.rfind("\u{1b}[?25h"));
        assert!(shown.is_some() && hidden <= shown, "{seen:?}");
        home.ok(&["--data", "store", "show", &id]);
    }
}

#[test]
fn nothing_is_asked_where_it_was_forbidden() {
    let (home, id) = with_form(0);
    let delete = ["--data", "store", "delete", &id];
    let refused = |variables: &[(&str, &str)], arguments: &[&str]| {
        let (code, seen) = Session::start(&home, variables, arguments).end();
        assert!(code == Some(2) && seen.contains("add --yes"), "{variables:?} {code:?} {seen:?}");
    };
    refused(&[], &[&delete[..], &["--no-input"]].concat());
    for variable in [("FORMS_NO_INPUT", "1"), ("CI", "true"), ("TERM", "dumb")] {
        refused(&[variable], &delete);
    }
}

#[test]
fn yes_is_not_asked_again() {
    let (home, id) = with_form(1);
    let (code, seen) = Session::start(&home, &[], &["--data", "store", "delete", "--yes", &id]).end();
    assert!(code == Some(0) && !seen.contains('?'), "{seen:?}");
}

#[test]
fn people_get_columns_with_a_header_and_times_they_can_read() {
    let (home, id) = with_form(0);
    let (code, seen) = Session::start(&home, &[], &["--data", "store", "list"]).end();
    assert_eq!(code, Some(0));
    assert!(seen.contains("ID") && seen.contains("RESPONSES") && seen.contains("just now"), "{seen:?}");
    assert!(seen.contains(&id) && !seen.contains('\t'), "{seen:?}");
}

#[test]
fn colours_follow_the_conventions() {
    let (home, _) = with_form(0);
    let colours = |variables: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["--data", "store"], flags, &["list"]].concat();
        Session::start(&home, variables, &arguments).end().1.contains("\u{1b}[2m")
    };
    assert!(colours(&[], &[]));
    assert!(!colours(&[("NO_COLOR", "1")], &[]));
    assert!(colours(&[("NO_COLOR", "")], &[]));
    assert!(!colours(&[("TERM", "dumb")], &[]));
    assert!(!colours(&[], &["--color", "never"]));
    assert!(colours(&[("NO_COLOR", "1")], &["--color", "always"]));
}

#[test]
fn a_dash_at_a_terminal_says_that_it_waits() {
    let home = Home::new();
    let mut session = Session::start(&home, &[], &["validate", "-"]);
    session.until("reading from the terminal, end with Ctrl-D");
    session.press("title: T\n\u{4}");
    let (code, seen) = session.end();
    assert!(code == Some(0) && seen.contains("-: ok"), "{seen:?}");
}

#[test]
fn serve_tells_a_person_what_it_does() {
    let home = Home::new();
    let mut session = Session::start(&home, &[], &["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    session.until("serving store at http://127.0.0.1:");
    session.until("Ctrl-C stops");
    session.press("\u{3}");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen:?}");
}
