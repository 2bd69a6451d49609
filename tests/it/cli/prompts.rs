//! At a terminal: questions before danger, a cursor that comes back, colours where they are wanted.

use std::sync::mpsc::channel;

use super::Home;
use super::stand_in::{Reply, StandIn};
use super::terminal::{Session, has_cursor};

/// A home with a published form, and the form's id.
fn with_form(answers: usize) -> (Home, String) {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
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
    for (key, code, left) in [("n\r", 1, 2), ("y\r", 0, 0)] {
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
    session.press("y\r");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen:?}");
    home.run(&["--data", "store", "show", &id]).expect(3);
}

#[test]
fn a_no_does_nothing_and_says_so_by_its_code() {
    let (home, id) = with_form(0);
    for key in ["n\r", "No\r", "\r"] {
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
fn a_form_in_the_trash_is_erased_after_the_same_question() {
    let (home, id) = with_form(1);
    let data = ["--data", "store"];
    home.ok(&[&data[..], &["edit", &id, "--slug", "lunch"]].concat());
    home.ok(&[&data[..], &["delete", "--yes", &id]].concat());
    let purge = [&data[..], &["delete", "--purge", &id]].concat();
    let refused = home.run(&purge).expect(2);
    assert!(refused.stderr.contains("deleting \"Lunch\" (1 response) needs a confirmation"), "{refused:?}");
    let said = home.run(&[&purge[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!(said.stderr, "would erase \"Lunch\" (1 response)\n");
    for (typed, code) in [("Lunch\r", 1), ("\u{3}", 130), ("lunch\r", 0)] {
        let mut session = Session::start(&home, &[], &purge);
        session.until("Erase \"Lunch\" (1 response) on store? Type lunch to confirm");
        session.press(typed);
        let (ended, seen) = session.end();
        assert_eq!(ended, Some(code), "{seen}");
        let trashed = home.ok(&[&data[..], &["list", "--trashed"]].concat());
        assert_eq!(trashed.contains(&id), code != 0, "{seen}");
    }
    home.run(&purge).expect(3);
}

#[test]
fn the_question_names_the_server() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let mut session = Session::start(&home, &[], &["delete", &id]);
    session.until(&format!("on {}? [y/N]", server.url));
    session.press("n\r");
    session.end();
}

#[test]
fn a_question_that_is_cancelled_ends_its_line_and_the_command_with_130() {
    for answers in [0, 1] {
        let (home, id) = with_form(answers);
        // Ctrl-C, Ctrl-D, Esc.
        for key in ["\u{3}", "\u{4}", "\u{1b}"] {
            let mut session = delete(&home, &id);
            session.until(if answers == 0 { "[y/N] " } else { "to confirm: " });
            session.press(key);
            let (code, seen) = session.end();
            assert_eq!(code, Some(130), "{seen:?}");
            assert!(seen.ends_with("\r\n\u{1b}[?25hcancelled, nothing was done\r\n"), "{seen:?}");
            assert!(has_cursor(&seen), "{seen:?}");
            home.ok(&["--data", "store", "show", &id]);
        }
    }
}

#[test]
fn ctrl_d_in_a_line_that_is_not_empty_is_no_end() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.until("to confirm: ");
    session.press(&format!("{id}\u{4}\r"));
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn a_line_longer_than_the_terminal_can_be_edited() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.until("to confirm: ");
    let (wide, back) = ("é".repeat(200), "\u{7f}".repeat(200));
    session.press(&format!("{wide}{back}{id}\r"));
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn required_answers_that_are_missing_are_asked_for() {
    let home = Home::new();
    home.write(
        "asks.yaml",
        "title: Lunch
questions:
  - {id: name, type: short_text, title: Who are you?, required: true}
  - {id: note, type: short_text, title: Anything else?}
  - {id: size, type: single_choice, title: How much?, options: [{value: s, label: Small}, {value: l, label: Large}], required: true}
  - {id: days, type: multiple_choice, title: Which days?, options: [Mon, Tue, Wed], required: true}
  - {id: mail, type: email, title: Your email, required: true, show_if: {size: l}}
",
    );
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "asks.yaml"]);
    let submit = ["--data", "store", "submit", id.trim()];
    let start = |more: &[&str]| Session::start(&home, &[("NO_COLOR", "1")], &[&submit, more].concat());
    let mut session = start(&["note=none"]);
    for (question, keys) in [
        ("Who are you? (one line of text): ", "Ann\r"),
        ("How much?:", "\u{1b}[B\r"),
        ("Which days? (a list, each ", "Mon, Wed\r"),
        ("Your email (an email address): ", "example.com\r"),
        ("try again", ""),
        // What was refused can be edited.
        ("Your email (an email address): ", "\u{1}ann@\r"),
    ] {
        session.next(question);
        session.press(keys);
    }
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    let stored = home.ok(&["--data", "store", "responses", id.trim(), "-o", "jsonl"]);
    let answers = "\"answers\":{\"note\":\"none\",\"name\":\"Ann\",\"size\":\"l\",\"days\":[\"Mon\",\"Wed\"],\"mail\":\"ann@example.com\"}";
    assert!(stored.contains(answers), "{stored}");
    // What was answered before it was cancelled can be sent later.
    let mut session = start(&[]);
    session.next("Who are you?");
    session.press("Ann Lee\r");
    session.next("Large");
    session.press("\u{1b}");
    let (code, seen) = session.end();
    assert!(code == Some(130) && seen.contains("cancelled, nothing was sent\r\n"), "{seen}");
    let later = format!("to send your answers later: forms --data store submit {} name='Ann Lee'", id.trim());
    assert!(seen.contains(&later), "{seen}");
    // Nothing is asked where something else is wrong, or where nobody may be asked.
    let (code, seen) = start(&["mail=nobody"]).end();
    assert!(code == Some(6) && !seen.contains("(one line of text)"), "{seen}");
    let (code, seen) = start(&["--no-input"]).end();
    assert!(code == Some(6) && seen.contains("\"Who are you?\" needs an answer"), "{seen}");
}

#[test]
fn a_choice_takes_no_more_columns_than_the_terminal_has() {
    let home = Home::new();
    let wide = "wide ".repeat(30);
    let form = format!(
        "title: Lunch
questions:
  - {{id: size, type: single_choice, title: How {wide}?, options: [{wide}, Large], required: true}}
"
    );
    home.write("wide.yaml", &form);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "wide.yaml"]);
    let submit = ["--data", "store", "submit", id.trim()];
    let mut session = Session::start_at_width(40, &home, &[("NO_COLOR", "1")], &submit);
    for key in ["\u{1b}[B", "\u{1b}"] {
        session.next("How");
        session.next("Large");
        session.press(key);
    }
    let (code, seen) = session.end();
    assert_eq!(code, Some(130), "{seen}");
    // A row that wraps would be two for the command that clears the list.
    assert!(seen.split(['\r', '\n']).all(|row| console::measure_text_width(row) < 40), "{seen}");
}

#[test]
fn a_message_is_wrapped_at_the_width_of_the_terminal() {
    let home = Home::new();
    for (columns, expected) in [
        (40, "error: --url `localhost:8787` is not a\r\nvalid server address\r\n"),
        (200, "error: --url `localhost:8787` is not a valid server address\r\n"),
    ] {
        let arguments = ["--url", "localhost:8787", "list"];
        let (_, seen) = Session::start_at_width(columns, &home, &[("NO_COLOR", "1")], &arguments).end();
        assert!(seen.starts_with(expected), "{seen:?}");
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

#[test]
fn answers_that_were_asked_for_survive_ctrl_c_while_they_are_sent() {
    let home = Home::new();
    let server = home.serve();
    home.write(
        "asks.yaml",
        "title: Lunch\nquestions:\n  - {id: name, type: short_text, title: Who are you?, required: true}\n",
    );
    let id = home.ok(&["create", "--publish", "-f", "asks.yaml"]);
    let (sender, came) = channel();
    let stand_in = StandIn::answering(vec![Reply::Pass(server.url.clone()), Reply::Silence(sender)]);
    let key = home.path().join("store/operator-key");
    let arguments = ["--url", &stand_in.url, "--key-file", key.to_str().unwrap(), "submit", id.trim()];
    let mut session = Session::start(&home, &[], &arguments);
    session.next("Who are you?");
    session.press("Ann\r");
    came.recv().unwrap();
    session.press("\u{3}");
    let (code, seen) = session.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("to send your answers later: ") && seen.contains(" name=Ann"), "{seen}");
}

#[test]
fn a_change_that_was_made_has_a_check_mark() {
    let (home, id) = with_form(0);
    let shown = |variables: &[(&str, &str)], arguments: &[&str]| {
        let arguments = [&["--data", "store"], arguments].concat();
        Session::start(&home, variables, &arguments).end().1
    };
    let closed = shown(&[], &["close", &id]);
    assert!(closed.contains("\u{1b}[32m✓\u{1b}[0m \""), "{closed:?}");
    let published = shown(&[("NO_COLOR", "1")], &["publish", &id]);
    assert!(published.contains("\r\n✓ \""), "{published:?}");
    let tried = shown(&[], &["close", "--dry-run", &id]);
    assert!(!tried.contains('✓'), "{tried:?}");
    let pipe = home.run(&["--data", "store", "close", &id]);
    assert!(!pipe.stderr.contains('✓'), "{pipe:?}");
}
