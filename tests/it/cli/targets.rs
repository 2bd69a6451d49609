//! Where a command works: addresses, keys, data directories, and servers that were started elsewhere.

use std::ffi::OsStr;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use forms::cli::connection::running_servers::folders;
use forms::cli::environment::Environment;

use super::stand_in::operator_key;
use super::{Home, Run, Served};

#[test]
fn the_address_of_a_server_is_read_as_its_help_shows() {
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
    // A command substitution ends with the server, not with its first line.
    assert!(!help.contains("| head"), "{help}");
}

#[test]
fn a_variable_that_cannot_be_read_is_not_one_that_is_not_set() {
    let home = Home::new();
    let _server = home.serve();
    let id = home.published_form(&[]);
    for name in ["FORMS_DATA", "FORMS_URL", "FORMS_API_KEY", "FORMS_API_KEY_FILE"] {
        let mut delete = home.command(&["delete", "--yes", &id]);
        let run: Run = delete.env(name, OsStr::from_bytes(b"st\xff")).output().unwrap().into();
        assert_eq!(run.expect(2).stderr, format!("error: {name} is not valid UTF-8\n"));
    }
    home.ok(&["show", &id]);
    let mut list = home.command(&["list"]);
    assert!(list.env("CI", OsStr::from_bytes(b"\xff")).status().unwrap().success());
}

#[test]
fn a_server_that_was_started_without_a_runtime_folder_is_found_with_one() {
    let home = Home::new();
    let _server = home.serve();
    let runtime = home.path().join("runtime");
    let variables = [("XDG_RUNTIME_DIR", runtime.to_str().unwrap())];
    assert_eq!(home.run_with(&variables, &["list"]).expect(0).stdout, "");
}

#[test]
fn a_server_writes_to_the_runtime_folder_and_commands_look_in_all() {
    let user = rustix::process::getuid().as_raw();
    let usual = std::path::PathBuf::from(format!("/run/user/{user}/forms"));
    let with = folders(&Environment::of(&[("XDG_RUNTIME_DIR", "/somewhere")]));
    assert_eq!(with.first().unwrap(), std::path::Path::new("/somewhere/forms"));
    assert!(with.contains(&usual), "{with:?}");
    let without = folders(&Environment::default());
    assert!(without.contains(&usual) && without.first() != Some(&usual), "{without:?}");
    let usual_alone = format!("/run/user/{user}");
    let same = folders(&Environment::of(&[("XDG_RUNTIME_DIR", &usual_alone)]));
    assert_eq!(same.iter().filter(|folder| **folder == usual).count(), 1);
}

#[test]
fn an_address_that_is_none_is_told_the_right_one() {
    let home = Home::new();
    for (url, help) in [
        ("localhost:8787", "did you mean http://localhost:8787?"),
        ("127.0.0.1:8787/", "did you mean http://127.0.0.1:8787?"),
        ("forms.example.com", "did you mean https://forms.example.com?"),
        ("https://forms.example.com/#/", "did you mean https://forms.example.com?"),
        ("https://forms.example.com/?x=1", "did you mean https://forms.example.com?"),
        ("ftp://forms.example.com", "use only scheme, host and port: https://forms.example.com"),
    ] {
        let run = home.run(&["--url", url, "list"]).expect(2);
        let expected = format!("error: --url `{url}` is not a valid server address\n  = help: {help}\n");
        assert_eq!(run.stderr, expected);
    }
    let secret = home.run(&["--url", "https://user:secret@example.com", "list"]).expect(2);
    assert!(!secret.stderr.contains("secret"), "{secret:?}");
}

#[test]
fn a_key_may_end_in_a_line_break() {
    let home = Home::new();
    let server = home.serve();
    let key = format!("{}\n", operator_key(&home));
    let variables = [("FORMS_URL", server.url.as_str()), ("FORMS_API_KEY", &key)];
    home.run_with(&variables, &["list"]).expect(0);
    let run = home.run_with(&[variables[0], ("FORMS_API_KEY", "fk_a\nb")], &["list"]).expect(2);
    assert_eq!(run.stderr, "error: FORMS_API_KEY is not a valid API key\n");
}

#[test]
fn what_cannot_be_reached_gets_advice_that_helps() {
    let home = Home::new();
    let list = |url: &str| home.run(&["--url", url, "--retries", "0", "list"]).expect(7).stderr;
    assert!(list("http://127.0.0.1:1").contains("= help: start one: forms serve"));
    let elsewhere = list("https://forms.invalid");
    assert!(
        elsewhere.contains("= help: check the address") && !elsewhere.contains("forms serve"),
        "{elsewhere}"
    );
    assert!(!elsewhere.contains("os error"), "{elsewhere}");
}

#[test]
fn a_server_without_tls_is_said_to_be_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let answer = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let run = Home::new().run(&["--url", &url, "--retries", "0", "list"]).expect(7);
    assert!(run.stderr.contains("it does not answer in TLS; http:// may be meant"), "{run:?}");
    answer.join().unwrap();
}

#[test]
fn a_second_server_is_told_that_the_first_is_one() {
    let home = Home::new();
    let server = home.serve();
    let Served { child, url } = &server;
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
fn a_question_that_cannot_be_asked_says_why() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let delete = ["--data", "store", "delete", &id];
    for (variable, why) in [
        (("CI", "1"), "CI is set"),
        (("FORMS_NO_INPUT", "1"), "FORMS_NO_INPUT is set"),
        (("TERM", "dumb"), "TERM is `dumb`"),
        (("TERM", "xterm"), "there is no terminal"),
    ] {
        let run = home.run_with(&[variable], &delete).expect(2);
        assert!(run.stderr.contains(&format!("needs a confirmation, and {why}\n")), "{run:?}");
    }
    let run = home.run(&[&["--no-input"], &delete[..]].concat()).expect(2);
    assert!(run.stderr.contains("and --no-input is given\n"), "{run:?}");
}

#[test]
fn no_text_of_a_library_is_shown() {
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
        &["serve", "--data", "plain/x"],
    ];
    for call in calls {
        let run = home.run(call).expect(2);
        assert!(!run.stderr.contains("os error"), "{run:?}");
    }
    let mended = home.run(&["--data", "store", "list"]);
    assert_eq!((mended.code, mended.stderr.as_str()), (Some(0), ""));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path().join("store"), mode).unwrap();
    drop(home.serve());
    let log = std::fs::read_to_string(home.path().join("serve.log")).unwrap();
    assert!(log.contains("was readable by other users") && !log.contains("PermissionsRepaired"), "{log}");
}
