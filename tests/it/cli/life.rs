//! The life of a form on the command line: into the trash and out of it, closed and opened again.

use rustix::process::Signal;

use super::Home;

#[test]
fn a_deleted_form_is_listed_in_the_trash_and_restored() {
    let home = Home::new();
    let _server = home.serve();
    let (kept, deleted) = (home.published(&[]), home.published(&[]));
    home.ok(&["submit", &deleted, "q1=hello"]);
    let run = home.run(&["delete", "--yes", &deleted]).expect(0);
    assert_eq!(run.stderr, format!("moved to the trash; forms restore {deleted} takes it out\n"));
    assert!(home.ok(&["list"]).starts_with(&kept));
    let trash = home.run(&["list", "--trashed", "-o", "json"]).expect(0).json();
    assert_eq!(trash["forms"][0]["id"], deleted);
    assert!(trash["forms"][0]["deleted_at"].is_string());
    assert!(home.ok(&["list", "--trashed", "-o", "csv"]).starts_with("id,status,responses,deleted,title\n"));
    let restored = home.run(&["restore", &deleted]).expect(0);
    assert_eq!(restored.stdout, format!("{deleted}\n"));
    assert_eq!(restored.stderr, "\"Lunch\" (1 response) is back\n");
    assert_eq!(home.ok(&["list", "--trashed"]), "");
    let again = home.run(&["restore", &deleted]).expect(5);
    assert!(again.stderr.starts_with("error[not_in_trash]: "), "{again:?}");
    home.run(&["restore", "frm_000000000000"]).expect(3);
}

#[test]
fn a_server_empties_the_trash_after_its_days() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    home.ok(&["--data", "store", "delete", "--yes", &id]);
    let trash = || home.ok(&["list", "--trashed"]);
    let mut server = home.serve();
    assert!(trash().starts_with(&id));
    server.stop(Signal::TERM);
    let _server =
        home.serve_with(&["serve", "--data", "store", "--listen", "127.0.0.1:0", "--trash-days", "0"]);
    // It begins with that as soon as it serves.
    while !trash().is_empty() {}
    home.run(&["restore", &id]).expect(3);
}

#[test]
fn lists_are_narrowed_by_status() {
    let home = Home::new();
    let published = home.published(&["--data", "store"]);
    let draft = home.ok(&["--data", "store", "create", "-f", "survey.yaml"]);
    for (status, expected) in [("draft", draft.trim()), ("published", &published)] {
        let listed = home.ok(&["--data", "store", "list", "--status", status]);
        assert!(listed.starts_with(expected) && listed.lines().count() == 1, "{listed}");
    }
    home.run(&["--data", "store", "list", "--status", "open"]).expect(2);
}
