//! `forms keys`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::fake_server::operator_key;
use super::terminal::Session;
use super::{Home, Run};

fn id_of(key: &str) -> String {
    format!("key_{}", &key[3..11])
}

/// Creates a key on the running server and returns its text.
#[track_caller]
fn create(home: &Home, arguments: &[&str]) -> String {
    let key = home.ok(&[&["keys", "create"], arguments].concat());
    key.trim().to_owned()
}

/// Runs a command with this key.
fn with_key(home: &Home, key: &str, arguments: &[&str]) -> Run {
    home.run_with(&[("FORMS_API_KEY", key)], arguments)
}

#[test]
fn the_only_output_of_create_is_the_key() {
    let home = Home::new();
    let _server = home.serve();
    let run = home.run(&["keys", "create", "--name", "web", "--scope", "submit"]).expect(0);
    let key = run.stdout.trim_end();
    assert!(key.starts_with("fk_") && key.len() == 47 && run.stdout.lines().count() == 1, "{run:?}");
    let id = id_of(key);
    let lines = format!("created {id} \"web\" (submit)\nshown only this once: store it now\n");
    assert_eq!(run.stderr, lines);
    let found = with_key(&home, key, &["whoami", "-o", "json"]).expect(0).json();
    assert_eq!(found["key"]["scopes"], serde_json::json!(["submit"]));
    let json = home.run(&["-o", "json", "keys", "create", "--name", "b", "--scope", "read"]).expect(0);
    assert!(json.stderr.is_empty() && json.json()["key"].as_str().unwrap().len() == 47, "{json:?}");
    // -vv logs bodies, but not the key.
    let logged = home.run(&["-vv", "keys", "create", "--name", "c", "--scope", "read"]).expect(0);
    assert!(!logged.stderr.contains(logged.stdout.trim_end()), "{logged:?}");
}

#[test]
fn a_key_can_be_limited_to_forms_scopes_and_time() {
    let home = Home::new();
    let _server = home.serve();
    let (one, other) = (home.published_form(&[]), home.published_form(&[]));
    let limits = ["--scope", "submit,read", "--form", &one, "--expires", "90d"];
    let key = create(&home, &[&["--name", "web"], &limits[..]].concat());
    with_key(&home, &key, &["submit", &one, "q1=x"]).expect(0);
    with_key(&home, &key, &["show", &other]).expect(3);
    let listed = home.run(&["keys", "list", "-o", "json"]).expect(0).json();
    let web = &listed["keys"][0];
    assert_eq!(
        (&web["scopes"], &web["forms"]),
        (&serde_json::json!(["submit", "read"]), &serde_json::json!([one]))
    );
    create(&home, &["--name", "day", "--scope", "read", "--expires", "2999-12-31"]);
    create(&home, &["--name", "time", "--scope", "read", "--expires", "2999-12-31T10:00:00Z"]);
    let ends = home.ok(&["keys", "list", "--columns", "expires_at"]);
    assert!(ends.starts_with("2999-12-31T10:00:00.000Z\n2999-12-31T23:59:59.999Z\n20"), "{ends}");
}

#[test]
fn create_names_the_flags_that_are_missing() {
    let home = Home::new();
    let _server = home.serve();
    let run = home.run(&["keys", "create"]).expect(2);
    let lines = "error: --name and --scope are required\n  \
                 = help: add --name NAME and --scope, one or more of: read, submit, write, admin, operator\n";
    assert_eq!(run.stderr, lines);
    let run = home.run(&["keys", "create", "--name", "a", "--scope", "read", "--expires", "soon"]).expect(2);
    assert!(run.stderr.contains("expected a time such as 90d or 2027-01-31"), "{run:?}");
}

#[test]
fn keys_are_listed_without_their_text() {
    let home = Home::new();
    let _server = home.serve();
    let key = create(&home, &["--name", "web\tsite", "--scope", "submit", "--scope", "read"]);
    let rows = home.ok(&["keys", "list"]);
    let first: Vec<_> = rows.lines().next().unwrap().split('\t').collect();
    assert_eq!(first, [&*id_of(&key), "web\\tsite", "submit, read", "", ""]);
    assert_eq!(rows.lines().count(), 2);
    for format in ["table", "json", "jsonl", "csv", "yaml"] {
        let text = home.ok(&["keys", "list", "-o", format]);
        assert!(!text.contains(&key) && !text.contains(&operator_key(&home)), "{text}");
    }
    assert_eq!(home.ok(&["keys", "list", "-o", "jsonl"]).lines().count(), 2);
}

#[test]
fn a_revoked_key_is_not_valid() {
    let home = Home::new();
    let server = home.serve();
    let key = create(&home, &["--name", "web", "--scope", "read"]);
    let id = id_of(&key);
    let refused = home.run(&["keys", "revoke", &id]).expect(2);
    let message = format!(
        "error: cannot revoke {id} \"web\" (read) without a confirmation, and there is no terminal\n"
    );
    assert!(refused.stderr.starts_with(&message), "{refused:?}");
    for (typed, code) in [("n\r", 1), ("\u{3}", 130), ("y\r", 0)] {
        with_key(&home, &key, &["list"]).expect(0);
        let mut session = Session::start(&home, &[], &["keys", "revoke", &id]);
        session.wait_for(&format!("Revoke {id} \"web\" (read) on {}? [y/N]", server.url));
        session.type_keys(typed);
        let (ended, screen) = session.finish();
        assert_eq!(ended, Some(code), "{screen}");
    }
    with_key(&home, &key, &["list"]).expect(4);
    for arguments in
        [&["keys", "revoke", &id][..], &["keys", "revoke", "--yes", &id], &["keys", "rotate", &id]]
    {
        let gone = home.run(arguments).expect(3);
        assert!(gone.stderr.contains("= help: forms keys list\n"), "{gone:?}");
    }
}

#[test]
fn the_last_key_that_manages_keys_cannot_be_revoked() {
    let home = Home::new();
    let _server = home.serve();
    let id = id_of(&operator_key(&home));
    let refused = home.run(&["keys", "revoke", "--yes", &id]).expect(5);
    let lines = "error[last_key]: this is the workspace's last key with the scope `admin`; create another one first\n  \
                 = help: forms keys create --name admin --scope admin; a lost key is replaced by forms keys create --data DIR\n";
    assert!(refused.stderr.ends_with(lines), "{refused:?}");
    home.ok(&["list"]);
}

#[test]
fn revoking_the_key_in_use_causes_a_warning() {
    let home = Home::new();
    let _server = home.serve();
    let key = create(&home, &["--name", "admin", "--scope", "admin"]);
    let id = id_of(&key);
    let run = with_key(&home, &key, &["keys", "revoke", "--yes", &id]).expect(0);
    assert_eq!(run.stdout, format!("{id}\n"));
    let lines = format!("warning: {id} is the key in use: afterwards commands need another one\nRevoked\n");
    assert_eq!(run.stderr, lines);
    let other = create(&home, &["--name", "other", "--scope", "read"]);
    let run = home.run(&["keys", "revoke", "--yes", &id_of(&other), "nope"]).expect(8);
    assert!(!run.stderr.contains("warning"), "{run:?}");
}

#[test]
fn a_rotated_key_has_the_same_limits_and_the_old_one_may_have_a_grace_period() {
    let home = Home::new();
    let _server = home.serve();
    let key = create(&home, &["--name", "web", "--scope", "read"]);
    let run = home.run(&["keys", "rotate", &id_of(&key), "--grace", "1h"]).expect(0);
    let new = run.stdout.trim_end();
    let lines = format!(
        "{} is replaced by {} \"web\" (read)\nshown only this once: store it now\n",
        id_of(&key),
        id_of(new)
    );
    assert_eq!(run.stderr, lines);
    with_key(&home, &key, &["list"]).expect(0);
    with_key(&home, new, &["list"]).expect(0);
    let newer = home.ok(&["keys", "rotate", &id_of(new)]);
    with_key(&home, new, &["list"]).expect(4);
    with_key(&home, newer.trim(), &["list"]).expect(0);
}

#[test]
fn a_rotated_key_is_replaced_in_the_contexts_that_have_it() {
    let home = Home::new();
    let server = home.serve();
    let key = create(&home, &["--name", "admin", "--scope", "admin"]);
    let other_address = server.url.replace("127.0.0.1", "localhost");
    for (name, url) in [("one", &server.url), ("two", &other_address)] {
        home.run_with_input(&key, &["login", url, "--name", name, "--key-file", "-"]).expect(0);
    }
    let operator = operator_key(&home);
    home.run_with_input(&operator, &["login", &server.url, "--name", "op", "--key-file", "-"]).expect(0);
    let run = home.run(&["--context", "one", "keys", "rotate", &id_of(&key)]).expect(0);
    let path = home.path().join(".config/forms/credentials.yaml");
    let stored = format!("stored in {}, for context `one` and context `two`\n", path.display());
    assert!(run.stderr.ends_with(&stored) && run.stderr.lines().count() == 2, "{run:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!((text.matches(run.stdout.trim()).count(), text.matches(&operator).count()), (2, 1));
    assert!(!text.contains(&key));
    home.ok(&["--context", "two", "list"]);
}

#[test]
fn a_rotated_operator_key_is_replaced_where_commands_find_it() {
    let home = Home::new();
    let state = home.path().join("state");
    let mut serve = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    serve.env("XDG_STATE_HOME", &state);
    let mut server = home.start(serve);
    let old = operator_key(&home);
    let run = home.run(&["keys", "rotate", &id_of(&old)]).expect(0);
    assert_eq!(operator_key(&home), run.stdout.trim());
    // So does a command that finds the server in another folder.
    home.ok(&["list"]);
    home.run_with(&[("XDG_STATE_HOME", state.to_str().unwrap())], &["list"]).expect(0);
    with_key(&home, &old, &["list"]).expect(4);
    server.stop(rustix::process::Signal::TERM);
    let run = home.run(&["--data", "store", "keys", "rotate", &id_of(run.stdout.trim())]).expect(0);
    assert_eq!(operator_key(&home), run.stdout.trim());
    let mode = fs::metadata(home.path().join("store/operator-key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.ok(&["--data", "store", "list"]);
}

#[test]
fn a_lost_operator_key_is_replaced_with_the_data_directory() {
    let home = Home::new();
    home.create_empty_store();
    let lost = operator_key(&home);
    fs::remove_file(home.path().join("store/operator-key")).unwrap();
    let run = home.run(&["keys", "create", "--data", "store"]).expect(0);
    let key = run.stdout.trim_end();
    assert_eq!(operator_key(&home), key);
    let lines = format!(
        "created {} \"operator\" (admin, operator)\nstored in store/operator-key, mode 600\n",
        id_of(key)
    );
    assert_eq!(run.stderr, lines);
    let mode = fs::metadata(home.path().join("store/operator-key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = home.run(&["keys", "create", "--data", "store"]).expect(0);
    let end = format!(
        "The key {id} still works. Revoke it: forms --data store keys revoke {id}\n",
        id = id_of(key)
    );
    assert!(again.stderr.ends_with(&end), "{again:?}");
    // Any other flag asks for a usual key.
    home.run(&["keys", "create", "--data", "store", "--expires", "1d"]).expect(2);
    let _server = home.serve();
    home.ok(&["workspaces", "list"]);
    // The lost key is valid until it is revoked.
    with_key(&home, &lost, &["list"]).expect(0);
    home.ok(&["keys", "revoke", "--yes", &id_of(&lost)]);
    with_key(&home, &lost, &["list"]).expect(4);
}

#[test]
fn a_key_without_the_scope_is_reported_with_its_source() {
    let home = Home::new();
    let _server = home.serve();
    let key = create(&home, &["--name", "web", "--scope", "read"]);
    let run = with_key(&home, &key, &["keys", "list"]).expect(4);
    let lines = "error[insufficient_scope]: this operation needs an API key with the scope `admin`\n  \
                 = note: key from: FORMS_API_KEY\n  \
                 = help: use a key that has the scope; forms whoami shows the scopes of this one\n";
    assert_eq!(run.stderr, lines);
}
