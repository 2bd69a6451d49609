//! Publishing, closing, deleting and restoring of forms and responses on the command line.

use rustix::process::Signal;

use super::Home;
use super::terminal::Session;

#[test]
fn a_deleted_form_is_listed_in_the_trash_and_can_be_restored() {
    let home = Home::new();
    let _server = home.serve();
    let (kept, deleted) = (home.published_form(&[]), home.published_form(&[]));
    home.ok(&["submit", &deleted, "q1=hello"]);
    let tried = home.run(&["delete", "--dry-run", &deleted]).expect(0);
    assert_eq!(tried.stderr, "would move \"Lunch\" (1 response) to the trash\n");
    let run = home.run(&["delete", "--yes", &deleted]).expect(0);
    assert_eq!(run.stderr, format!("In the trash for 30 days. Undo: forms restore {deleted}\n"));
    assert!(home.ok(&["list"]).starts_with(&kept));
    let shown = home.run(&["show", &deleted]).expect(3);
    assert!(
        shown.stderr.contains(&format!("help: it is in the trash; forms restore {deleted}\n")),
        "{shown:?}"
    );
    let trash = home.run(&["list", "--trashed", "-o", "json"]).expect(0).json();
    assert_eq!(trash["forms"][0]["id"], deleted);
    assert!(trash["forms"][0]["deleted_at"].is_string());
    assert!(
        home.ok(&["list", "--trashed", "-o", "csv"])
            .starts_with("id,status,response_count,deleted_at,title,slug\n")
    );
    let restored = home.run(&["restore", &deleted]).expect(0);
    assert_eq!(restored.stdout, format!("{deleted}\n"));
    assert_eq!(restored.stderr, "Restored \"Lunch\" (1 response)\n");
    assert_eq!(home.ok(&["list", "--trashed"]), "");
    let again = home.run(&["restore", &deleted]).expect(5);
    assert!(again.stderr.starts_with("error[not_in_trash]: "), "{again:?}");
    home.run(&["restore", "frm_000000000000"]).expect(3);
    home.ok(&["edit", &deleted, "--slug", "meal"]);
    home.ok(&["delete", "--yes", &deleted]);
    home.write("other.yaml", "title: Other\nslug: meal\n");
    let other = home.ok(&["create", "-f", "other.yaml"]).trim().to_owned();
    let refused = home.run(&["restore", &deleted]).expect(5).stderr;
    assert!(refused.contains(&format!("forms edit {other} --slug ''")), "{refused}");
    home.ok(&["edit", &other, "--slug", ""]);
    home.ok(&["restore", &deleted]);
}

#[test]
fn an_invalid_id_does_not_change_the_path_of_the_request() {
    let home = Home::new();
    let _server = home.serve();
    let id = home.published_form(&[]);
    home.ok(&["delete", "--yes", &id]);
    for arguments in [
        &["responses", "restore", &id, ".."][..],
        &["responses", "delete", "--yes", &id, ".."],
        &["show", "%2e%2e"],
        &["delete", "--yes", "../forms"],
        &["restore", &format!("x/../{id}")],
        &["submit", "..", "q1=hello"],
        &["publish", "?limit=1"],
    ] {
        let run = home.run(arguments).expect(3);
        assert!(
            run.stderr.starts_with("error[form_not_found]")
                || run.stderr.starts_with("error[submission_not_found]"),
            "{run:?}"
        );
    }
    assert!(home.ok(&["list", "--trashed"]).starts_with(&id));
}

#[test]
fn a_server_empties_the_trash_after_the_configured_days() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "delete", "--yes", &id]);
    let trash = || home.ok(&["list", "--trashed"]);
    let mut server = home.serve();
    assert!(trash().starts_with(&id));
    server.stop(Signal::TERM);
    let _server =
        home.serve_with(&["serve", "--data", "store", "--listen", "127.0.0.1:0", "--trash-days", "0"]);
    // The server does this right after its start.
    (0..500).find(|_| trash().is_empty()).expect("the trash is emptied");
    home.run(&["restore", &id]).expect(3);
}

#[test]
fn a_closed_form_accepts_no_answers_until_it_is_published_again() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let closed = run(&["close", &id]).expect(0);
    assert_eq!(
        (closed.stdout, closed.stderr.as_str()),
        (
            format!("{id}\n"),
            &*format!(
                "\"Lunch\" is closed and does not accept answers\nnext: forms --data store responses {id}\n"
            )
        )
    );
    assert!(run(&["show", &id]).expect(0).stdout.contains("accepting:  no: closed\n"));
    let refused = run(&["submit", &id, "q1=x"]).expect(5);
    assert!(refused.stderr.starts_with("error[form_closed]: "), "{refused:?}");
    let opened = run(&["publish", &id]).expect(0);
    let message = "\"Lunch\" is published and accepts answers\nnext: forms --data store submit ";
    assert!(opened.stderr.starts_with(message), "{opened:?}");
    run(&["submit", &id, "q1=x"]).expect(0);
}

#[test]
fn responses_can_be_deleted_restored_and_purged() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let submit = |answer: &str| run(&["submit", &id, answer]).expect(0).stdout.trim().to_owned();
    let (first, second) = (submit("q1=soup"), submit("q1=salad"));
    let refused = run(&["responses", "delete", &id, &first]).expect(2);
    assert!(
        refused.stderr.contains("cannot move 1 response to \"Lunch\" to the trash without a confirmation"),
        "{refused:?}"
    );
    assert_eq!(
        run(&["responses", "delete", &id, &first, "--dry-run"]).expect(0).stdout,
        format!("{first}\n")
    );
    assert_eq!(run(&["responses", &id]).expect(0).stdout.lines().count(), 2);
    let gone = run(&["responses", "delete", "--yes", &id, &first, &second]).expect(0);
    assert_eq!(gone.stdout, format!("{first}\n{second}\n"));
    let undo = format!("forms --data store responses restore {id} {first}");
    assert_eq!(gone.stderr, format!("In the trash for 30 days. Undo: {undo} {second}\n"));
    let shown = run(&["responses", "show", &id, &first]).expect(3).stderr;
    assert!(shown.contains(&format!("help: it is in the trash; {undo}\n")), "{shown}");
    assert_eq!(run(&["responses", &id]).expect(0).stdout, "");
    let trashed = run(&["responses", &id, "--trashed", "--columns", "id,q1"]).expect(0).stdout;
    assert!(trashed.contains(&format!("{first}\tsoup\n")) && trashed.lines().count() == 2, "{trashed}");
    let header = run(&["responses", &id, "--trashed", "-o", "csv"]).expect(0).stdout;
    assert!(header.starts_with("id,deleted_at,q1,"), "{header}");
    assert_eq!(run(&["responses", "restore", &id, &second]).expect(0).stdout, format!("{second}\n"));
    run(&["responses", "restore", &id, &second]).expect(5);
    let purge = ["responses", "delete", "--purge", &id, &first];
    let would = run(&[&purge[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!((would.stdout, would.stderr.as_str()), (format!("{first}\n"), "would erase 1 response\n"));
    run(&["responses", "delete", "--dry-run", &id, &first]).expect(3);
    run(&[&purge[..], &["--yes"]].concat()).expect(0);
    run(&[&purge[..], &["--dry-run"]].concat()).expect(3);
    assert_eq!(run(&["responses", &id, "--trashed"]).expect(0).stdout, "");
    let both = run(&["responses", "restore", &id, &first, &second, "-o", "json"]);
    assert_eq!(both.code, Some(8), "one was purged, the other is not in the trash: {both:?}");
}

#[test]
fn metadata_in_an_answer_file_is_sent_and_shown() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.write("answers.yaml", "answers: {q1: soup}\nmetadata: {table: \"5\"}\n");
    let submission = home.ok(&["--data", "store", "submit", &id, "--file", "answers.yaml"]);
    let shown = home.ok(&["--data", "store", "responses", "show", &id, submission.trim()]);
    assert!(
        shown.ends_with("metadata:\n  table: 5\nanswers:\n  What would you like? (q1): soup\n"),
        "{shown}"
    );
    home.write("answers.yaml", "answers: {q1: soup}\nmetadata: {table: 5}\n");
    let refused = home.run(&["--data", "store", "submit", &id, "--file", "answers.yaml"]).expect(6);
    assert!(refused.stderr.contains(" --> answers.yaml:2:19\n"), "{refused:?}");
}

#[test]
fn the_error_of_a_form_that_accepts_no_answers_shows_why_and_how_to_open_it() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let submit = || run(&["submit", &id, "q1=x"]).expect(0);
    submit();
    let set = |setting: &str| run(&["edit", &id, "--set", setting]).expect(0);
    set("settings.closed_message=Ann has gone home");
    let (gone, early) =
        ("Ann has gone home", format!("\"Lunch\" ({id}) accepts answers from 9999-01-01T00:00:00.000Z on"));
    let edit = |setting| ["edit", &id, "--set", setting].map(str::to_owned).to_vec();
    for (setting, code, message, opening) in [
        ("closed=true", "form_closed", gone, vec!["publish".to_owned(), id.clone()]),
        ("closes_at=2020-01-01T00:00:00Z", "form_expired", gone, edit("settings.closes_at=")),
        ("max_responses=1", "form_full", gone, edit("settings.max_responses=")),
        ("opens_at=9999-01-01T00:00:00Z", "form_not_open_yet", &*early, edit("settings.opens_at=")),
    ] {
        set(&format!("settings.{setting}"));
        // Invalid answers get the same error, because correcting them would not help.
        let refused = run(&["submit", &id, "q3=many"]).expect(5);
        let expected =
            format!("error[{code}]: {message}\n  = help: forms --data store {}\n", opening.join(" "));
        assert_eq!(refused.stderr, expected);
        run(&opening.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
        submit();
    }
}

#[test]
fn publish_unpublish_and_close_have_a_dry_run() {
    let home = Home::new();
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let id = home.published_form(&["--data", "store"]);
    let empty = run(&["create", "--title", "Empty"]).expect(0).stdout;
    let draft = run(&["create", "-f", "survey.yaml"]).expect(0).stdout;
    for command in ["publish", "unpublish", "close"] {
        let tried = run(&[command, &id, "--dry-run"]).expect(0);
        assert_eq!(tried.stdout, "(dry run)\n", "{command}");
        assert_eq!(tried.stderr, "\"Lunch\": the server would accept it; nothing was stored\n", "{command}");
    }
    run(&["submit", &id, "q1=x"]).expect(0);
    run(&["publish", empty.trim(), "--dry-run"]).expect(6);
    run(&["publish", draft.trim(), "--dry-run"]).expect(0);
    assert_eq!(run(&["list", "--status", "draft"]).expect(0).stdout.lines().count(), 2);
}

#[test]
fn the_error_of_a_failed_restore_shows_what_to_do() {
    let home = Home::new();
    home.write("tea.yaml", "slug: tea\ntitle: Tea\nquestions:\n  - {type: short_text, title: Which?}\n");
    let run = |arguments: &[&str]| home.run(&[&["--data", "store"], arguments].concat());
    let id = run(&["create", "--publish", "-f", "tea.yaml"]).expect(0).stdout;
    let id = id.trim();
    let first = run(&["submit", "tea", "q1=green"]).expect(0).stdout;
    let first = first.trim();
    let help = |arguments: &[&str], code, help: &str| {
        let refused = run(arguments).expect(code);
        assert!(refused.stderr.ends_with(&format!("  = help: {help}\n")), "{help}: {refused:?}");
    };
    help(&["restore", "tea"], 5, "forms --data store show tea");
    help(
        &["responses", "restore", "tea", first],
        5,
        &format!("forms --data store responses show tea {first}"),
    );
    run(&["responses", "delete", "--yes", "tea", first]).expect(0);
    run(&["submit", "tea", "q1=black"]).expect(0);
    run(&["edit", "tea", "--set", "settings.max_responses=1"]).expect(0);
    help(
        &["responses", "restore", "tea", first],
        5,
        "forms --data store edit tea --set settings.max_responses=",
    );
    run(&["delete", "--yes", "tea"]).expect(0);
    help(&["restore", "tea"], 3, "in the trash a form is known by its id: forms --data store list --trashed");
    run(&["restore", id]).expect(0);
}

/// Runs `command` on the data directory `store` at a terminal, and another command while it asks.
#[track_caller]
fn asks_without_the_store(home: &Home, command: &[&str], answer: &str) {
    let mut session = Session::start_at_width(160, home, &[], &[&["--data", "store"], command].concat());
    session.wait_for(" on store?");
    home.ok(&["--data", "store", "list"]);
    session.type_keys(&format!("{answer}\r"));
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{command:?}: {screen}");
}

#[test]
fn other_commands_can_use_the_store_while_a_command_asks() {
    let home = Home::new();
    let data = |arguments: &[&str]| home.ok(&[&["--data", "store"], arguments].concat());
    let id = home.published_form(&["--data", "store"]);
    let (one, other) = (data(&["submit", &id, "q1=x"]), data(&["submit", &id, "q1=y"]));
    asks_without_the_store(&home, &["responses", "delete", &id, one.trim(), other.trim()], "y");
    data(&["integrations", "create", &id, "--webhook", "https://example.com"]);
    data(&["submit", &id, "q1=z"]);
    asks_without_the_store(&home, &["deliveries", "cancel", "--form", &id], "y");
    asks_without_the_store(&home, &["integrations", "delete", &id, "webhook"], "y");
    let key = data(&["keys", "create", "--name", "a", "--scope", "read"]);
    asks_without_the_store(&home, &["keys", "revoke", &format!("key_{}", &key[3..11])], "y");
    data(&["workspaces", "create", "Other"]);
    let rows = data(&["workspaces", "list"]);
    let row = rows.lines().find(|row| row.contains("Other")).unwrap();
    asks_without_the_store(&home, &["workspaces", "delete", row.split('\t').next().unwrap()], "Other");
    asks_without_the_store(&home, &["delete", &id], &id);
}

#[test]
fn a_form_that_is_not_confirmed_is_unchanged_and_reported_as_such() {
    let home = Home::new();
    let (one, other) = (home.published_form(&["--data", "store"]), home.published_form(&["--data", "store"]));
    let mut session =
        Session::start(&home, &[("NO_COLOR", "1")], &["--data", "store", "delete", &one, &other]);
    for key in ["n", "y"] {
        session.wait_for_next("Move \"Lunch\" (0 responses) to the trash on store? [y/N]");
        session.type_keys(key);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(8), "{screen}");
    assert!(screen.contains(&format!("error: {one}: not confirmed, so it is unchanged")), "{screen}");
    assert!(home.ok(&["--data", "store", "list"]).starts_with(&one));
}
