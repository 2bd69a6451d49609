//! On a terminal: confirmations, prompts, the cursor, colours.

use std::sync::mpsc::channel;

use super::Home;
use super::fake_server::{FakeServer, Reply};
use super::terminal::{Session, is_cursor_visible};

/// Creates a home with a published form and this number of responses; returns the form's id.
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
    session.wait_for("Lunch");
    session
}

#[test]
fn responses_are_deleted_after_a_y() {
    let (home, id) = with_form(2);
    let submissions = home.ok(&["--data", "store", "responses", &id, "--columns", "id"]);
    let submissions: Vec<_> = submissions.lines().collect();
    let command = [&["--data", "store", "responses", "delete", &id], &submissions[..]].concat();
    for (key, code, left) in [("n\r", 1, 2), ("y\r", 0, 0)] {
        let mut session = Session::start(&home, &[], &command);
        session.wait_for("Delete 2 responses to \"Lunch\" on store? [y/N]");
        session.type_keys(key);
        let (ended, shown) = session.finish();
        assert_eq!(ended, Some(code), "{shown}");
        assert_eq!(home.ok(&["--data", "store", "responses", &id]).lines().count(), left);
    }
}

#[test]
fn a_form_without_responses_is_deleted_after_a_y() {
    let (home, id) = with_form(0);
    let mut session = delete(&home, &id);
    session.wait_for("Delete \"Lunch\" (0 responses) on store? [y/N]");
    session.type_keys("y\r");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen:?}");
    home.run(&["--data", "store", "show", &id]).expect(3);
}

#[test]
fn a_declined_confirmation_changes_nothing_and_exits_1() {
    let (home, id) = with_form(0);
    for key in ["n\r", "No\r", "\r"] {
        let mut session = delete(&home, &id);
        session.wait_for("[y/N]");
        session.type_keys(key);
        let (code, screen) = session.finish();
        assert_eq!(code, Some(1), "{screen:?}");
    }
    home.ok(&["--data", "store", "show", &id]);
}

#[test]
fn a_form_with_responses_is_deleted_only_after_its_id_is_typed() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.wait_for(&format!("(1 response) on store? Type {id} to confirm"));
    session.type_keys("yes\r");
    assert_eq!(session.finish().0, Some(1));
    home.ok(&["--data", "store", "show", &id]);
    let mut session = delete(&home, &id);
    session.wait_for("to confirm");
    session.type_keys(&format!("{id}\r"));
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen:?}");
    home.run(&["--data", "store", "show", &id]).expect(3);
}

#[test]
fn purging_a_form_in_the_trash_needs_the_same_confirmation() {
    let (home, id) = with_form(1);
    let data = ["--data", "store"];
    home.ok(&[&data[..], &["edit", &id, "--slug", "lunch"]].concat());
    home.ok(&[&data[..], &["delete", "--yes", &id]].concat());
    let purge = [&data[..], &["delete", "--purge", &id]].concat();
    let refused = home.run(&purge).expect(2);
    assert!(refused.stderr.contains("deleting \"Lunch\" (1 response) needs a confirmation"), "{refused:?}");
    let message = home.run(&[&purge[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!(message.stderr, "would erase \"Lunch\" (1 response)\n");
    for (typed, code) in [("Lunch\r", 1), ("\u{3}", 130), ("lunch\r", 0)] {
        let mut session = Session::start(&home, &[], &purge);
        session.wait_for("Erase \"Lunch\" (1 response) on store? Type lunch to confirm");
        session.type_keys(typed);
        let (ended, screen) = session.finish();
        assert_eq!(ended, Some(code), "{screen}");
        let trashed = home.ok(&[&data[..], &["list", "--trashed"]].concat());
        assert_eq!(trashed.contains(&id), code != 0, "{screen}");
    }
    home.run(&purge).expect(3);
}

#[test]
fn the_confirmation_names_the_server() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let mut session = Session::start(&home, &[], &["delete", &id]);
    session.wait_for(&format!("on {}? [y/N]", server.url));
    session.type_keys("n\r");
    session.finish();
}

#[test]
fn a_canceled_prompt_ends_its_line_and_exits_130() {
    for answers in [0, 1] {
        let (home, id) = with_form(answers);
        // Ctrl-C, Ctrl-D, Esc.
        for key in ["\u{3}", "\u{4}", "\u{1b}"] {
            let mut session = delete(&home, &id);
            session.wait_for(if answers == 0 { "[y/N] " } else { "to confirm: " });
            session.type_keys(key);
            let (code, screen) = session.finish();
            assert_eq!(code, Some(130), "{screen:?}");
            assert!(screen.ends_with("\r\n\u{1b}[?25hcanceled, nothing was done\r\n"), "{screen:?}");
            assert!(is_cursor_visible(&screen), "{screen:?}");
            home.ok(&["--data", "store", "show", &id]);
        }
    }
}

#[test]
fn ctrl_d_in_a_line_that_is_not_empty_is_ignored() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.wait_for("to confirm: ");
    session.type_keys(&format!("{id}\u{4}\r"));
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn a_line_longer_than_the_terminal_can_be_edited() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.wait_for("to confirm: ");
    let (wide, back) = ("é".repeat(200), "\u{7f}".repeat(200));
    session.type_keys(&format!("{wide}{back}{id}\r"));
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn missing_required_answers_are_prompted_for() {
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
        // A refused answer can be edited.
        ("Your email (an email address): ", "\u{1}ann@\r"),
    ] {
        session.wait_for_next(question);
        session.type_keys(keys);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen}");
    let stored = home.ok(&["--data", "store", "responses", id.trim(), "-o", "jsonl"]);
    let answers = "\"answers\":{\"note\":\"none\",\"name\":\"Ann\",\"size\":\"l\",\"days\":[\"Mon\",\"Wed\"],\"mail\":\"ann@example.com\"}";
    assert!(stored.contains(answers), "{stored}");
    // Answers typed before the cancellation can be sent later.
    let mut session = start(&[]);
    session.wait_for_next("Who are you?");
    session.type_keys("Ann Lee\r");
    session.wait_for_next("Large");
    session.type_keys("\u{1b}");
    let (code, screen) = session.finish();
    assert!(code == Some(130) && screen.contains("canceled, nothing was sent\r\n"), "{screen}");
    let later = format!("to send your answers later: forms --data store submit {} name='Ann Lee'", id.trim());
    assert!(screen.contains(&later), "{screen}");
    // There is no prompt if another answer is invalid, or with --no-input.
    let (code, screen) = start(&["mail=nobody"]).finish();
    assert!(code == Some(6) && !screen.contains("(one line of text)"), "{screen}");
    let (code, screen) = start(&["--no-input"]).finish();
    assert!(code == Some(6) && screen.contains("\"Who are you?\" needs an answer"), "{screen}");
}

#[test]
fn a_list_prompt_fits_the_width_of_the_terminal() {
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
        session.wait_for_next("How");
        session.wait_for_next("Large");
        session.type_keys(key);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    // A wrapped row would break the clearing of the list, which counts rows.
    assert!(screen.split(['\r', '\n']).all(|row| console::measure_text_width(row) < 40), "{screen}");
}

#[test]
fn a_message_is_wrapped_at_the_width_of_the_terminal() {
    let home = Home::new();
    for (columns, expected) in [
        (40, "error: --url `localhost:8787` is not a\r\nvalid server address\r\n"),
        (200, "error: --url `localhost:8787` is not a valid server address\r\n"),
    ] {
        let arguments = ["--url", "localhost:8787", "list"];
        let (_, screen) = Session::start_at_width(columns, &home, &[("NO_COLOR", "1")], &arguments).finish();
        assert!(screen.starts_with(expected), "{screen:?}");
    }
}

#[test]
fn no_input_ci_and_dumb_terminals_disable_prompts() {
    let (home, id) = with_form(0);
    let delete = ["--data", "store", "delete", &id];
    let refused = |variables: &[(&str, &str)], arguments: &[&str]| {
        let (code, screen) = Session::start(&home, variables, arguments).finish();
        assert!(code == Some(2) && screen.contains("add --yes"), "{variables:?} {code:?} {screen:?}");
    };
    refused(&[], &[&delete[..], &["--no-input"]].concat());
    for variable in [("FORMS_NO_INPUT", "1"), ("CI", "true"), ("TERM", "dumb")] {
        refused(&[variable], &delete);
    }
}

#[test]
fn yes_skips_the_confirmation() {
    let (home, id) = with_form(1);
    let (code, screen) = Session::start(&home, &[], &["--data", "store", "delete", "--yes", &id]).finish();
    assert!(code == Some(0) && !screen.contains('?'), "{screen:?}");
}

#[test]
fn a_terminal_shows_columns_with_a_header_and_relative_times() {
    let (home, id) = with_form(0);
    let (code, screen) = Session::start(&home, &[], &["--data", "store", "list"]).finish();
    assert_eq!(code, Some(0));
    assert!(
        screen.contains("ID") && screen.contains("RESPONSES") && screen.contains("just now"),
        "{screen:?}"
    );
    assert!(screen.contains(&id) && !screen.contains('\t'), "{screen:?}");
}

#[test]
fn colours_follow_the_conventions() {
    let (home, _) = with_form(0);
    let colours = |variables: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["--data", "store"], flags, &["list"]].concat();
        Session::start(&home, variables, &arguments).finish().1.contains("\u{1b}[2m")
    };
    assert!(colours(&[], &[]));
    assert!(!colours(&[("NO_COLOR", "1")], &[]));
    assert!(colours(&[("NO_COLOR", "")], &[]));
    assert!(!colours(&[("TERM", "dumb")], &[]));
    assert!(!colours(&[], &["--color", "never"]));
    assert!(colours(&[("NO_COLOR", "1")], &["--color", "always"]));
}

#[test]
fn reading_stdin_from_a_terminal_shows_a_notice() {
    let home = Home::new();
    let mut session = Session::start(&home, &[], &["validate", "-"]);
    session.wait_for("reading from the terminal, end with Ctrl-D");
    session.type_keys("title: T\n\u{4}");
    let (code, screen) = session.finish();
    assert!(code == Some(0) && screen.contains("-: ok"), "{screen:?}");
}

#[test]
fn ctrl_c_ends_a_command_that_reads_the_terminal() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let commands: [&[&str]; 4] = [
        &["create", "-f", "-"],
        &["edit", &id, "-f", "-"],
        &["submit", &id, "--file", "-"],
        &["submit", &id, "q1=@-"],
    ];
    for command in commands {
        let mut session = Session::start(&home, &[], &[&["--data", "store"], command].concat());
        session.wait_for("reading from the terminal, end with Ctrl-D");
        session.type_keys("title: Half\n\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{command:?}: {screen:?}");
    }
}

#[test]
fn an_api_key_is_not_typed_at_a_terminal() {
    let session = Session::start(&Home::new(), &[], &["list", "--key-file", "-"]);
    let (code, screen) = session.finish();
    assert!(code == Some(2) && screen.contains("cannot be typed: it would be shown"), "{screen:?}");
}

#[test]
fn serve_on_a_terminal_shows_the_address_and_how_to_stop() {
    let home = Home::new();
    let mut session = Session::start(&home, &[], &["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    session.wait_for("serving store at http://127.0.0.1:");
    session.wait_for("Ctrl-C stops");
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen:?}");
}

#[test]
fn prompted_answers_are_shown_after_ctrl_c_during_the_request() {
    let home = Home::new();
    let server = home.serve();
    home.write(
        "asks.yaml",
        "title: Lunch\nquestions:\n  - {id: name, type: short_text, title: Who are you?, required: true}\n",
    );
    let id = home.ok(&["create", "--publish", "-f", "asks.yaml"]);
    let (sender, received) = channel();
    let fake_server =
        FakeServer::with_replies(vec![Reply::Forward(server.url.clone()), Reply::NoResponse(sender)]);
    let key = home.path().join("store/operator-key");
    let arguments = ["--url", &fake_server.url, "--key-file", key.to_str().unwrap(), "submit", id.trim()];
    let mut session = Session::start(&home, &[], &arguments);
    session.wait_for_next("Who are you?");
    session.type_keys("Ann\r");
    received.recv().unwrap();
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("to send your answers later: ") && screen.contains(" name=Ann"), "{screen}");
}

#[test]
fn a_completed_change_is_shown_with_a_check_mark() {
    let (home, id) = with_form(0);
    let shown = |variables: &[(&str, &str)], arguments: &[&str]| {
        let arguments = [&["--data", "store"], arguments].concat();
        Session::start(&home, variables, &arguments).finish().1
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
