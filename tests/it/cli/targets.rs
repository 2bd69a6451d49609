//! Targets of a command: server addresses, keys, data directories, running servers.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use super::fake_server::operator_key;
use super::{Home, Run, RunningServer};

#[test]
fn the_example_in_the_help_of_serve_reads_the_address() {
    let home = Home::new();
    let help = home.ok(&["help", "serve"]);
    let example = help.lines().find(|line| line.contains("read -r url")).unwrap().trim();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let script = format!("set -e; {example}; forms --url $url whoami -o json; kill $!");
    let mut bash = Command::new("timeout");
    bash.args(["20", "bash", "-c", &script]).current_dir(home.path()).env_clear().env("PATH", path);
    let shown: Run = bash.env("HOME", home.path()).stdin(Stdio::null()).output().unwrap().into();
    assert_eq!(shown.expect(0).json()["url"]["source"], "flag");
    // `$(forms serve | head -1)` would wait for the server to exit.
    assert!(!help.contains("| head"), "{help}");
}

#[test]
fn a_variable_that_is_not_utf_8_is_an_error() {
    let home = Home::new();
    let _server = home.serve();
    let id = home.published_form(&[]);
    for name in [
        "FORMS_DATA",
        "FORMS_URL",
        "FORMS_CONTEXT",
        "FORMS_CONFIG_DIR",
        "FORMS_API_KEY",
        "FORMS_API_KEY_FILE",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
        "VISUAL",
        "EDITOR",
        "TMPDIR",
    ] {
        let mut delete = home.command(&["delete", "--yes", &id]);
        let run: Run = delete.env(name, OsStr::from_bytes(b"st\xff")).output().unwrap().into();
        assert_eq!(run.expect(2).stderr, format!("error: {name} is not valid UTF-8\n"));
    }
    home.ok(&["show", &id]);
    let mut list = home.command(&["list"]);
    assert!(list.env("CI", OsStr::from_bytes(b"\xff")).status().unwrap().success());
}

#[test]
fn a_server_is_found_by_commands_with_another_environment() {
    for (of_server, of_command) in [
        (&["XDG_STATE_HOME"][..], &[][..]),
        (&[], &["XDG_STATE_HOME"]),
        (&["XDG_RUNTIME_DIR"], &[]),
        (&[], &["XDG_RUNTIME_DIR"]),
        (&["XDG_RUNTIME_DIR", "XDG_STATE_HOME"], &[]),
        (&["XDG_RUNTIME_DIR"], &["XDG_STATE_HOME"]),
        (&["XDG_STATE_HOME"], &["XDG_RUNTIME_DIR", "XDG_STATE_HOME"]),
    ] {
        let home = Home::new();
        let set = |command: &mut Command, names: &[&str]| {
            command.envs(names.iter().map(|name| (*name, home.path().join(name.to_lowercase()))));
        };
        let mut serve = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
        set(&mut serve, of_server);
        let mut server = home.start(serve);
        let mut whoami = home.command(&["whoami", "-o", "json"]);
        set(&mut whoami, of_command);
        let found: Run = whoami.output().unwrap().into();
        let found = found.expect(0).json();
        let url = serde_json::json!({"value": server.url, "source": "runtime"});
        assert_eq!((&found["url"], &found["key"]["source"]), (&url, &"runtime".into()), "{of_server:?}");
        // Each file is removed at exit.
        server.stop(rustix::process::Signal::TERM);
        let files = |folder: &str| std::fs::read_dir(home.path().join(folder)).map_or(0, Iterator::count);
        let folders = ["xdg_runtime_dir/forms", "xdg_state_home/forms/run", ".local/state/forms/run"];
        assert_eq!(folders.map(files), [0; 3], "{of_server:?}");
    }
}

#[test]
fn without_home_the_folders_are_those_of_the_user_database() {
    let home = Home::new();
    let runtime = home.path().join("runtime");
    let mut serve = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    serve.env("XDG_RUNTIME_DIR", &runtime);
    let server = home.start(serve);
    let mut whoami = home.command(&["whoami", "-o", "json"]);
    whoami.env_clear().env("XDG_RUNTIME_DIR", &runtime).env("FORMS_URL", &server.url);
    let found: Run = whoami.output().unwrap().into();
    assert_eq!(found.expect(0).json()["key"]["source"], "runtime");
}

#[test]
fn an_invalid_address_is_refused_with_what_it_needs() {
    let home = Home::new();
    let bare = "use only scheme, host, port and path: https://forms.example.com";
    for (url, help) in [
        ("localhost:8787", "add the scheme: https:// or http://"),
        ("forms.example.com", "add the scheme: https:// or http://"),
        ("https://forms.example.com/#/", bare),
        ("https://forms.example.com/?x=1", bare),
        ("ftp://forms.example.com", bare),
    ] {
        let run = home.run(&["--url", url, "list"]).expect(2);
        let expected = format!("error: --url `{url}` is not a valid server address\n  = help: {help}\n");
        assert_eq!(run.stderr, expected);
    }
    let secret = home.run(&["--url", "https://user:secret@example.com", "list"]).expect(2);
    assert!(!secret.stderr.contains("secret"), "{secret:?}");
}

#[test]
fn a_key_can_end_in_a_line_break() {
    let home = Home::new();
    let server = home.serve();
    let key = format!("{}\n", operator_key(&home));
    let variables = [("FORMS_URL", server.url.as_str()), ("FORMS_API_KEY", &key)];
    home.run_with(&variables, &["list"]).expect(0);
    let run = home.run_with(&[variables[0], ("FORMS_API_KEY", "fk_a\nb")], &["list"]).expect(2);
    assert_eq!(run.stderr, "error: FORMS_API_KEY is not a valid API key\n");
}

#[test]
fn the_help_of_an_unreachable_server_depends_on_its_address() {
    let home = Home::new();
    let list = |url: &str| home.run(&["--url", url, "--retries", "0", "list"]).expect(7).stderr;
    let start = "  = help: start one: forms serve --data ./store --listen";
    for (url, listen) in [
        ("http://127.0.0.1:1", "127.0.0.1:1"),
        ("http://localhost:1", "127.0.0.1:1"),
        ("http://[::1]:1", "[::1]:1"),
    ] {
        assert!(list(url).ends_with(&format!("{start} {listen}\n")), "{url}");
    }
    for other in ["https://localhost:1", "http://127.0.0.1:1/forms", "https://forms.invalid"] {
        let error = list(other);
        assert!(!error.contains("= help:") && !error.contains("os error"), "{error}");
    }
}

#[test]
fn a_server_without_tls_is_reported_as_such() {
    let home = Home::new();
    let server = home.serve();
    let url = server.url.replace("http:", "https:");
    let run = home.run(&["--url", &url, "list"]).expect(7);
    assert_eq!(run.stderr, format!("error: the server speaks plain HTTP: use {}\n", server.url));
}

#[test]
fn the_error_of_a_used_address_says_whether_a_forms_server_has_it() {
    let home = Home::new();
    let server = home.serve();
    let RunningServer { child, url } = &server;
    let listen = url.trim_start_matches("http://");
    let run = home.run(&["serve", "--data", "other", "--listen", listen]).expect(5);
    let data = home.path().canonicalize().unwrap().join("store");
    let expected =
        format!("{listen} is in use by a forms server of yours (pid {}, {})", child.id(), data.display());
    assert!(run.stderr.contains(&expected), "{run:?}\n{expected}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    let run = home.run(&["serve", "--data", "third", "--listen", &listen]).expect(5);
    assert!(run.stderr.contains(&format!("{listen} is in use by another program")), "{run:?}");
}

#[test]
fn errors_do_not_contain_texts_of_libraries() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("folder")).unwrap();
    home.write("plain", "x");
    home.published_form(&["--data", "store"]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path().join("store"), mode).unwrap();
    let calls: [&[&str]; 6] = [
        &["validate", "missing.yaml"],
        &["validate", "folder"],
        &["validate", "plain/x.yaml"],
        &["--key-file", "missing", "list"],
        &["--data", "plain", "list"],
        &["serve", "--data", "plain/x", "--listen", "127.0.0.1:0"],
    ];
    for call in calls {
        let run = home.run(call).expect(2);
        assert!(!run.stderr.contains("os error"), "{run:?}");
    }
    let repaired = home.run(&["--data", "store", "list"]);
    assert_eq!((repaired.code, repaired.stderr.as_str()), (Some(0), ""));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path().join("store"), mode).unwrap();
    drop(home.serve());
    let log = std::fs::read_to_string(home.path().join("serve.log")).unwrap();
    assert!(log.contains("was readable by other users") && !log.contains("PermissionsRepaired"), "{log}");
}
