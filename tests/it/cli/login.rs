//! `forms login` and `forms logout`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::fake_server::{FakeServer, operator_key};
use super::terminal::Session;
use super::{Home, RunningServer};

const OWNER: &str = r#"{"workspace":{"id":"ws_7k2m9q4x1abz","name":"default"},"key":{"id":"key_1a2b3c4d","name":"ci","scopes":["read"]}}"#;

/// Starts a server, and writes its key to the file `key`.
fn with_server() -> (Home, RunningServer, String) {
    let home = Home::new();
    let server = home.serve();
    let key = operator_key(&home);
    let file = home.write("key", &key);
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    (home, server, key)
}

fn credentials(home: &Home) -> PathBuf {
    home.path().join(".config/forms/credentials.yaml")
}

/// The default name of a server on loopback.
fn name_of(url: &str) -> String {
    url.replace("://", "-").replace(':', "-")
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn login_stores_the_server_and_makes_it_the_current_one() {
    let (home, server, key) = with_server();
    let url = &server.url;
    let name = name_of(url);
    let run = home.run(&["login", url, "--key-file", "key"]).expect(0);
    assert_eq!(run.stdout, format!("{name}\n"));
    let path = credentials(&home);
    let lines = format!(
        "logged in to {url} as \"operator\" (workspace \"default\")\nstored in {}, mode 600\n",
        path.display()
    );
    assert_eq!(run.stderr, lines);
    assert_eq!((mode(path.clone()), mode(home.path().join(".config/forms"))), (0o600, 0o700));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("current: {name}\ncontexts:\n  {name}:\n    url: {url}\n    key: {key}\n"));
    // Without the file of the running server, the context alone is enough.
    fs::remove_dir_all(home.path().join(".local")).unwrap();
    let found = home.run(&["whoami", "-o", "json"]).expect(0).json();
    assert_eq!(found["url"], serde_json::json!({"value": url, "source": "context", "context": name}));
    assert_eq!((&found["key"]["source"], &found["key"]["context"]), (&"context".into(), &(&*name).into()));
    let text = home.ok(&["whoami"]);
    assert!(text.contains(&format!("  (context {name})\nkey        key_")), "{text}");
}

#[test]
fn a_login_under_a_used_name_replaces_it() {
    let (home, server, _) = with_server();
    let other = home.serve_with(&["serve", "--data", "other", "--listen", "127.0.0.1:0"]);
    home.ok(&["login", &server.url, "--name", "prod", "--key-file", "key"]);
    // The name of a known address is kept.
    assert_eq!(home.ok(&["login", &server.url, "--key-file", "key"]), "prod\n");
    let login = ["login", &other.url, "--name", "prod", "--key-file", "other/operator-key"];
    let replaced = home.run(&login).expect(0);
    assert!(
        replaced.stderr.contains(&format!("\ncontext `prod` was {} before\n", server.url)),
        "{replaced:?}"
    );
    let listed = home.run(&["context", "list", "-o", "json"]).expect(0).json();
    assert_eq!(listed["contexts"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed["contexts"][0]["url"], &listed["contexts"][0]["current"]),
        (&(&*other.url).into(), &true.into())
    );
}

#[test]
fn the_default_name_is_the_whole_address() {
    let home = Home::new();
    let wrong = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let login = |path: &str| {
        let server = FakeServer::with_replies(vec![FakeServer::ok(OWNER)]);
        let url = format!("{}{path}", server.url);
        let run = home.run_with_input(wrong, &["login", &url, "--key-file", "-"]).expect(0);
        server.into_requests();
        (name_of(&url[..url.len() - path.len()]), run.stdout)
    };
    for (path, end) in [("", ""), ("/", ""), ("/a/b", "-a-b"), ("/a%20b", "-a-20b")] {
        let (host, name) = login(path);
        assert_eq!(name, format!("{host}{end}\n"));
    }
    let contexts = home.run(&["context", "list", "-o", "json"]).expect(0).json();
    assert_eq!(contexts["contexts"].as_array().unwrap().len(), 4);
}

#[test]
fn a_default_name_never_replaces_another_context() {
    let home = Home::new();
    let (server, key) = (home.serve(), operator_key(&home));
    let name = name_of(&server.url);
    let other = format!("{}/forms", server.url);
    let text = format!("current: {name}\ncontexts:\n  {name}:\n    url: {other}\n    key: {key}\n");
    fs::create_dir_all(credentials(&home).parent().unwrap()).unwrap();
    fs::write(credentials(&home), &text).unwrap();
    fs::set_permissions(credentials(&home), fs::Permissions::from_mode(0o600)).unwrap();
    let refused = home.run(&["login", &server.url, "--key-file", "store/operator-key"]).expect(2);
    let lines =
        format!("error: context `{name}` is for another server, {other}\n  = help: add --name NAME\n");
    assert_eq!(refused.stderr, lines);
    assert_eq!(fs::read_to_string(credentials(&home)).unwrap(), text);
}

#[test]
fn login_without_an_address_uses_the_one_found_otherwise() {
    let (home, server, _) = with_server();
    let url = server.url.as_str();
    assert_eq!(home.ok(&["login", "--key-file", "key"]), format!("{}\n", name_of(url)));
    assert_eq!(home.ok(&["--url", url, "login", "--name", "a", "--key-file", "key"]), "a\n");
    assert_eq!(home.ok(&["--context", "a", "login", "--key-file", "key"]), "a\n");
    for flags in [["--url", url], ["--context", "a"], ["--data", "store"]] {
        let refused = home.run(&[&flags[..], &["login", url, "--key-file", "key"]].concat()).expect(2);
        assert!(refused.stderr.contains("cannot be used with"), "{refused:?}");
    }
}

#[test]
fn login_asks_for_the_key_without_showing_it() {
    let (home, server, key) = with_server();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &["login", &server.url]);
    session.wait_for(&format!("API key for {}: ", server.url));
    session.type_keys(&format!("\r{key}x\u{7f}\r"));
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("✓ logged in to "), "{screen}");
    assert!(!screen.contains(&key[..8]), "{screen}");
    assert!(fs::read_to_string(credentials(&home)).unwrap().contains(&key));
}

#[test]
fn a_canceled_login_stores_nothing() {
    let (home, server, _) = with_server();
    for key in ["\u{3}", "\u{4}"] {
        let mut session = Session::start(&home, &[], &["login", &server.url]);
        session.wait_for("API key for");
        session.type_keys(key);
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{screen}");
        assert!(screen.contains("canceled, nothing was stored"), "{screen}");
    }
    assert!(!credentials(&home).exists());
}

#[test]
fn login_without_a_terminal_needs_a_key_file() {
    let (home, server, key) = with_server();
    // A key in the environment would override what is stored: it is not taken.
    let run = home.run_with(&[("FORMS_API_KEY", &key)], &["login", &server.url]).expect(2);
    let lines = "error: logging in needs an API key, and there is no terminal\n  \
                 = help: add --key-file PATH, or --key-file - to read it from stdin\n";
    assert_eq!(run.stderr, lines);
    assert!(!credentials(&home).exists());
}

#[test]
fn a_refused_key_is_not_stored() {
    let (home, server, _) = with_server();
    let wrong = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let run = home.run_with_input(wrong, &["login", &server.url, "--key-file", "-"]).expect(4);
    assert!(
        run.stderr.contains("refused the API key fk_…1234\n  = note: key from: --key-file -\n"),
        "{run:?}"
    );
    assert!(run.stderr.contains("= help: nothing was stored; check that the key"), "{run:?}");
    home.run_with_input("", &["login", &server.url, "--key-file", "-"]).expect(2);
    home.run_with_input(wrong, &["--retries", "0", "login", "http://127.0.0.1:1", "--key-file", "-"])
        .expect(7);
    let clear = home.run_with_input(wrong, &["login", "http://forms.invalid", "--key-file", "-"]).expect(2);
    assert!(clear.stderr.contains("--insecure-http"), "{clear:?}");
    for name in ["", "-a", "a b", ".a", "a/b"] {
        let run = home.run(&["login", &server.url, "--key-file", "key", &format!("--name={name}")]).expect(2);
        assert!(run.stderr.contains("--name"), "{run:?}");
    }
    assert!(!credentials(&home).exists());
}

#[test]
fn login_warns_of_variables_that_override_it() {
    let (home, server, key) = with_server();
    let login = ["login", &*server.url, "--name", "prod", "--key-file", "key"];
    for (variable, value) in [
        ("FORMS_URL", "http://127.0.0.1:1"),
        ("FORMS_CONTEXT", "other"),
        ("FORMS_API_KEY", &key),
        ("FORMS_API_KEY_FILE", "key"),
        ("FORMS_DATA", "store"),
    ] {
        let run = home.run_with(&[(variable, value)], &login).expect(0);
        let warning =
            format!("warning: {variable} is set and overrides context `prod`; unset it to use this context");
        assert_eq!(run.stderr.lines().nth(2), Some(&*warning), "{run:?}");
        let json = home.run_with(&[(variable, value)], &[&login[..], &["-o", "json"]].concat()).expect(0);
        assert_eq!((&json.json()["name"], json.stderr.trim_end()), (&"prod".into(), &*warning));
    }
    let same = [("FORMS_URL", server.url.as_str()), ("FORMS_CONTEXT", "prod")];
    assert!(!home.run_with(&same, &login).expect(0).stderr.contains("warning"));
}

#[test]
fn an_address_in_plain_http_is_stored_with_the_permission_for_it() {
    let home = Home::new();
    // 0.0.0.0 is this machine, but not a loopback address.
    let server = FakeServer::with_replies(vec![FakeServer::ok(OWNER), FakeServer::ok("{\"forms\":[]}")]);
    let url = server.url.replace("127.0.0.1", "0.0.0.0");
    let key = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let login = ["--insecure-http", "login", &url, "--key-file", "-"];
    let run = home.run_with_input(key, &login).expect(0);
    assert_eq!(run.stdout, format!("{}\n", name_of(&url)));
    assert!(fs::read_to_string(credentials(&home)).unwrap().contains("insecure_http: true"));
    home.ok(&["list"]);
    server.into_requests();
}

#[test]
fn logout_removes_the_context_and_shows_how_to_revoke_its_key() {
    let (home, server, key) = with_server();
    let login = |name: &str| home.ok(&["login", &server.url, "--name", name, "--key-file", "key"]);
    login("one");
    login("two");
    let out = home.run(&["logout"]).expect(0);
    assert_eq!(out.stdout, "two\n");
    let revoke = format!("forms --url {} keys revoke key_{}", server.url, &key[3..11]);
    let lines = format!(
        "Removed the key for {} from this machine\nThe key still works. Revoke it: {revoke}\n\
         No context selected. Select one: forms context use one\n",
        server.url
    );
    assert_eq!(out.stderr, lines);
    let none = home.run(&["logout"]).expect(2);
    assert!(none.stderr.contains("error: no context is selected"), "{none:?}");
    home.run_with(&[("FORMS_CONTEXT", "one")], &["logout", "one"]).expect(0);
    let text = fs::read_to_string(credentials(&home)).unwrap();
    assert_eq!((text.as_str(), mode(credentials(&home))), ("contexts: {}\n", 0o600));
}

#[test]
fn a_server_shows_that_commands_use_a_context_instead() {
    let (home, server, _) = with_server();
    home.ok(&["login", &server.url, "--name", "prod", "--key-file", "key"]);
    let serve = ["serve", "--data", "other", "--listen", "127.0.0.1:0"];
    let mut session = Session::start(&home, &[], &serve);
    session.wait_for("serving other at ");
    session.wait_for(", Ctrl-C stops");
    session.wait_for("commands use context `prod`; --url http://127.0.0.1:");
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_context_whose_key_was_refused_shows_how_to_log_in_again() {
    let (home, server, key) = with_server();
    home.ok(&["login", &server.url, "--name", "prod", "--key-file", "key"]);
    let wrong = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let overridden = home.run_with(&[("FORMS_API_KEY", wrong)], &["list"]).expect(4);
    let lines = format!(
        "error[unauthorized]: {url} refused the API key fk_…1234\n  \
         = note: key from: FORMS_API_KEY, which overrides context `prod`\n  \
         = help: unset FORMS_API_KEY, or log in again: forms login {url}\n",
        url = server.url
    );
    assert_eq!(overridden.stderr, lines);
    let text = fs::read_to_string(credentials(&home)).unwrap();
    fs::write(credentials(&home), text.replace(&key, wrong)).unwrap();
    let refused = home.run(&["list"]).expect(4);
    let lines = format!(
        "error[unauthorized]: {url} refused the API key fk_…1234\n  = note: key from: context `prod`\n  \
         = help: log in: forms login {url}\n",
        url = server.url
    );
    assert_eq!(refused.stderr, lines);
}
