//! `forms serve`: the ready line, signals, logs, flags, and the runtime files by which commands find the server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use forms::cli::connection::running_servers::running_in;
use forms::config::TlsFiles;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use serde_json::json;

use super::fake_server::{operator_key, send};
use super::{Home, RunningServer};
use crate::harness::authority::Authority;

/// The folder of the runtime files if `XDG_RUNTIME_DIR` is not set.
fn runtime_folder(home: &Home) -> PathBuf {
    home.path().join(".local/state/forms/run")
}

fn runtime_files(home: &Home) -> Vec<PathBuf> {
    fs::read_dir(runtime_folder(home)).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_signal_stops_the_server_and_removes_its_runtime_file() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let mut server = home.serve();
        let files = runtime_files(&home);
        assert_eq!(files.len(), 1);
        let port = server.url.rsplit(':').next().unwrap();
        assert_eq!(files[0].file_name().unwrap().to_str().unwrap(), format!("127.0.0.1-{port}.json"));
        assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(runtime_folder(&home)).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(server.stop(signal), Some(0));
        assert!(runtime_files(&home).is_empty());
    }
}

#[test]
fn stdout_has_only_the_address_and_logs_are_json_lines() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    let log = fs::File::create(home.path().join("serve.log")).unwrap();
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = Vec::new();
    while !ready.ends_with(b"\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        ready.push(byte[0]);
    }
    let url = String::from_utf8(ready).unwrap();
    let mut server = RunningServer { child, url: url.trim().to_owned() };
    let id = home.published_form(&[]);
    home.ok(&["submit", &id, "q1=a secret answer"]);
    server.stop(Signal::TERM);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let log = fs::read_to_string(home.path().join("serve.log")).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().any(|line| line["message"] == "ready" && line["url"] == *server.url), "{log}");
    assert!(!log.contains("a secret answer") && !log.contains("fk_"), "{log}");
}

#[test]
fn with_two_servers_a_command_asks_for_the_url() {
    let home = Home::new();
    let first = home.serve();
    let second = home.serve_with(&["serve", "--data", "other", "--listen", "127.0.0.1:0"]);
    let run = home.run(&["list"]).expect(2);
    for server in [&first, &second] {
        assert!(run.stderr.contains(&format!("--url {}", server.url)), "{run:?}");
        home.run(&["--url", &server.url, "list"]).expect(0);
    }
}

#[test]
fn a_runtime_file_is_trusted_only_if_private_and_of_a_running_server() {
    let home = Home::new();
    let server = home.serve();
    let file = runtime_files(&home).remove(0);
    let content = fs::read_to_string(&file).unwrap();
    let other = |name: &str, text: &str, mode: u32| {
        let path = runtime_folder(&home).join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let pid = server.child.id().to_string();
    let dead = other("dead.json", &content.replace(&pid, &dead_pid().to_string()), 0o600);
    let open = other("open.json", &content.replace(&server.url, "http://127.0.0.1:1"), 0o644);
    let broken = other("broken.json", "{", 0o600);
    home.run(&["list"]).expect(0);
    assert!(!dead.exists(), "the stale runtime file was not removed");
    assert!(open.exists() && broken.exists());
}

#[test]
fn a_runtime_file_that_is_not_a_regular_file_is_ignored() {
    let home = Home::new();
    let server = home.serve();
    let file = runtime_files(&home).remove(0);
    let (pipe, link) = (runtime_folder(&home).join("pipe.json"), runtime_folder(&home).join("link.json"));
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    symlink(&file, &link).unwrap();
    fs::create_dir(runtime_folder(&home).join("folder.json")).unwrap();
    let (found, folder) = (mpsc::channel(), runtime_folder(&home));
    thread::spawn(move || found.0.send(running_in(&[folder])));
    let found = found.1.recv_timeout(Duration::from_secs(20)).expect("opening the pipe waits for a writer");
    assert_eq!(found.iter().map(|server| &server.url).collect::<Vec<_>>(), [&server.url]);
    assert!(pipe.exists() && link.exists());
}

#[test]
fn a_server_is_found_once_if_two_folders_are_the_same() {
    let home = Home::new();
    let server = home.serve();
    let link = home.path().join("link");
    symlink(runtime_folder(&home), &link).unwrap();
    let found = running_in(&[runtime_folder(&home), link]);
    assert_eq!(found.iter().map(|server| &server.url).collect::<Vec<_>>(), [&server.url]);
}

/// The pid of a process that has exited.
fn dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn the_error_of_a_store_in_use_names_its_process() {
    let home = Home::new();
    let server = home.serve();
    let here = [("FORMS_DATA", "store")];
    for (variables, arguments, help) in [
        (&[][..], &["--data", "store", "list"][..], "drop --data, or stop it"),
        (&here, &["list"], "unset FORMS_DATA, or stop it"),
        (&[], &["serve", "--data", "./store"], "stop it, or name another directory"),
    ] {
        let run = home.run_with(variables, arguments).expect(5);
        let holder = format!("(pid {}, {})", server.child.id(), server.url);
        assert!(run.stderr.contains(&holder), "{run:?}");
        assert!(run.stderr.ends_with(&format!("help: {help}\n")), "{run:?}");
    }
}

#[test]
fn serve_waits_for_a_killed_server_to_release_its_locks() {
    let home = Home::new();
    home.create_empty_store();
    // A killed process with gigabytes of memory takes a while to exit: until then it holds its locks and its port, but
    // does not respond.
    let (mut killed, listener) = (zombie(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (pid, address) = (killed.id(), listener.local_addr().unwrap());
    let (data, url) = (fs::canonicalize(home.path().join("store")).unwrap(), format!("http://{address}"));
    fs::write(data.join("lock"), format!("{pid} {url}\n")).unwrap();
    let lock = fs::File::open(data.join("lock")).unwrap();
    lock.lock().unwrap();
    fs::create_dir_all(runtime_folder(&home)).unwrap();
    let file = runtime_folder(&home).join(format!("127.0.0.1-{}.json", address.port()));
    let content = json!({"url": url, "key": "fk_", "pid": pid, "data": data});
    fs::write(&file, content.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

    let mut command = home.command(&["serve", "--data", "store", "--listen", &address.to_string()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("waiting for it to end")), "the server did not wait");
    drop((listener, lock));
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready.trim(), url);
    let _server = RunningServer { child, url };
    killed.wait().unwrap();
}

/// Starts a process that exits and stays a zombie.
fn zombie() -> std::process::Child {
    let child = std::process::Command::new("true").spawn().unwrap();
    let id = WaitId::Pid(Pid::from_child(&child));
    waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    child
}

#[test]
fn invalid_addresses_proxies_origins_and_rates_are_refused() {
    let home = Home::new();
    let listen = "expected an IP address and a port, such as 127.0.0.1:8787";
    for (flag, value, message) in [
        ("--listen", "localhost:8787", listen),
        ("--listen", "127.0.0.1", listen),
        ("--listen", "127.0.0.1:65536", listen),
        ("--listen", "0.0.0.0:0", "--tls-cert"),
        (
            "--google-url",
            "google.example.com",
            "expected an http or https URL without user, query and fragment",
        ),
        ("--trusted-proxy", "10.0.0.0/33", "expected an IP address or a network, such as 10.0.0.0/8"),
        ("--trusted-proxy", "proxy.example", "expected an IP address or a network, such as 10.0.0.0/8"),
        ("--base-url", "forms.example.com", "expected an http or https URL without user, query and fragment"),
        ("--cors-origin", "*", "wildcards are not supported; list each origin"),
        ("--cors-origin", "null", "any web page can send the origin `null`, from a sandboxed frame"),
        (
            "--cors-origin",
            "https://app.example.com/",
            "browsers send this origin as https://app.example.com\n",
        ),
        ("--rate-limit", "50", "expected a rate such as 10/min, 5/s or 100/h"),
    ] {
        let run = home.run(&["serve", "--data", "store", flag, value]).expect(2);
        assert!(run.stderr.contains(message), "{flag} {value}: {run:?}");
    }
    assert!(!home.path().join("store").exists(), "a refused command created a store");
}

#[test]
fn incomplete_flags_about_mail_are_refused() {
    let home = Home::new();
    let (url, from) = ("--smtp-url=smtps://mail.example.com", "--mail-from=forms@example.com");
    for (flags, message) in [
        (&[url][..], "--smtp-url needs a sender: --mail-from"),
        (&[url, from, "--mail-dir=mail"], "--mail-dir writes mail to files, and --smtp-url sends it"),
        (&[url, from, "--smtp-username=me"], "--smtp-username needs the password: --smtp-password-file FILE"),
        (&[url, from, "--smtp-password-file=x"], "--smtp-password-file needs the user name"),
        (&["--smtp-username=me", "--smtp-password-file=x"], "need the mail server: --smtp-url"),
        (&["--smtp-url=mail.example.com:587"], "expected smtps://HOST:PORT or smtp://HOST:PORT (STARTTLS)"),
        (&["--smtp-url=smtp+plain://mail.example.com", from], "smtp+plain:// sends mail unencrypted"),
        (&["--smtp-url=smtps://me:pw@mail.example.com", from], "give the user name with --smtp-username"),
        (&[url, "--mail-from=Example Forms"], "expected an address, or a name and an address"),
    ] {
        let run = home.run(&[&["serve", "--data", "store"], flags].concat()).expect(2);
        assert!(run.stderr.contains(message) && !run.stderr.contains("pw@"), "{flags:?}: {run:?}");
    }
    let run = home.run_with(&[("FORMS_SMTP_URL", "smtps://me:pw@a.example")], &["serve", "--data", "store"]);
    let expected = "error: invalid --smtp-url: give the user name with --smtp-username and the password with";
    assert!(run.expect(2).stderr.starts_with(expected));
    let variables = [("FORMS_SMTP_URL", "smtps://a.example"), ("FORMS_SMTP_USERNAME", "me")];
    let run = home.run_with(&variables, &["serve", "--data", "store", from]).expect(2);
    assert!(run.stderr.contains("--smtp-username needs the password"), "{run:?}");
    assert!(!home.path().join("store").exists(), "a refused command created a store");
}

#[test]
fn the_password_of_the_mail_server_is_read_at_the_start() {
    let home = Home::new();
    let url = "--smtp-url=smtps://mail.example.com";
    let flags = ["serve", "--data", "store", "--listen", "127.0.0.1:0", url, "--mail-from=forms@example.com"];
    let flags = [&flags[..], &["--smtp-username=me", "--smtp-password-file=password"]].concat();
    let run = home.run(&flags).expect(70);
    assert!(run.stderr.contains("cannot use the password of the mail server in `password`"), "{run:?}");
    home.write("password", "correct horse\n");
    home.serve_with(&flags);
    // An empty variable counts as not set.
    let mut command =
        home.command(&["serve", "--data", "other", "--listen", "127.0.0.1:0", "--mail-dir", "mail"]);
    command.env("FORMS_SMTP_URL", "").env("FORMS_MASTER_KEY_FILE", "");
    home.start(command);
}

#[test]
fn a_flag_about_mail_wins_over_the_variables_of_the_other_way() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--data=one", "--listen=127.0.0.1:0", "--mail-dir=mail"]);
    command.env("FORMS_SMTP_URL", "smtps://mail.example.com");
    command.env("FORMS_SMTP_USERNAME", "me").env("FORMS_SMTP_PASSWORD_FILE", "missing");
    home.start(command);
    let flags = ["--smtp-url=smtps://mail.example.com", "--mail-from=forms@example.com"];
    let mut command = home.command(&["serve", "--data=two", "--listen=127.0.0.1:0"]);
    home.start({
        command.args(flags).env("FORMS_MAIL_DIR", "mail");
        command
    });
    let variables = [("FORMS_SMTP_URL", "smtps://mail.example.com"), ("FORMS_MAIL_DIR", "mail")];
    let run = home.run_with(&variables, &["serve", "--data", "three"]).expect(2);
    assert!(run.stderr.contains("--mail-dir writes mail to files, and --smtp-url sends it"), "{run:?}");
}

#[test]
fn flags_about_proxies_browsers_and_rates_have_their_effect() {
    let home = Home::new();
    let server = home.serve_with(&[
        "serve",
        "--data=store",
        "--listen=127.0.0.1:0",
        "--trusted-proxy=10.0.0.0/8",
        "--trusted-proxy=127.0.0.1",
        "--base-url=https://example.com/forms/",
        "--cors-origin=https://app.example.com",
        "--cors-origin=http://localhost:3000",
        "--rate-limit=2/h",
    ]);
    let get = |headers: &str| {
        let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
        let head = format!("GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("Origin: http://localhost:3000");
    assert!(answer.contains("\"type\":\"https://example.com/forms/problems/route_not_found\""), "{answer}");
    assert!(answer.contains("access-control-allow-origin: http://localhost:3000\r\n"), "{answer}");
    get("X-Forwarded-For: 192.0.2.7, 10.1.2.3");
    // Commands on this machine use the local address.
    home.ok(&["list"]);
    home.ok(&["list"]);
    let limited = home.run(&["list", "--retries", "0"]);
    assert!(limited.stderr.contains("this API key has reached its rate limit of 2/h"), "{limited:?}");
    let log = fs::read_to_string(home.path().join("serve.log")).unwrap();
    assert!(log.contains("\"url\":\"https://example.com/forms\""), "{log}");
    assert!(log.contains("\"client\":\"192.0.2.7\""), "{log}");
}

/// The arguments of a server on `store` with a certificate.
pub(super) fn https_args(files: &TlsFiles) -> Vec<&str> {
    let (certificate, key) = (files.certificate.to_str().unwrap(), files.key.to_str().unwrap());
    vec!["serve", "--data", "store", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key]
}

#[test]
fn commands_verify_the_certificate_of_an_https_server() {
    let (home, authority) = (Home::new(), Authority::new());
    let server = home.serve_with(&https_args(&authority.issue("localhost")));
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let file = fs::read_to_string(runtime_files(&home).remove(0)).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&file).unwrap()["url"], server.url);
    let trusted = authority.file();
    home.run_with(&[("SSL_CERT_FILE", trusted.to_str().unwrap())], &["list"]).expect(0);
    let run = home.run_with(&[("SSL_CERT_FILE", "missing.pem")], &["list"]).expect(2);
    assert!(run.stderr.contains("cannot read SSL_CERT_FILE, missing.pem: there is no such file"), "{run:?}");
    let run = home.run_with(&[("SSL_CERT_FILE", "survey.yaml")], &["list"]).expect(2);
    assert_eq!(run.stderr, "error: SSL_CERT_FILE, survey.yaml, has no certificate in PEM format\n");
    let other = Authority::new();
    let run = home.run_with(&[("SSL_CERT_FILE", other.file().to_str().unwrap())], &["list"]).expect(7);
    assert!(run.stderr.contains("is not trusted: it is from an unknown authority"), "{run:?}");
    assert!(!run.stderr.contains("SSL_CERT_FILE"), "{run:?}");
}

#[test]
fn the_certificate_for_a_trial_is_trusted_as_the_advice_says() {
    let home = Home::new();
    let manual = fs::read_to_string("docs/operating.md").unwrap();
    let command = manual.split("```").find(|block| block.starts_with("\nopenssl")).unwrap();
    let mut shell = std::process::Command::new("sh");
    let made = shell.args(["-c", command]).current_dir(home.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let files = TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into() };
    let server = home.serve_with(&https_args(&files));
    let run = home.run(&["list"]).expect(7);
    let lines = format!(
        "error: the certificate of {} is not trusted: it is from an unknown authority\n  \
         = help: set SSL_CERT_FILE to the certificate of its authority, or to its own if it is self-signed\n",
        server.url
    );
    assert_eq!(run.stderr, lines);
    home.run_with(&[("SSL_CERT_FILE", "cert.pem")], &["list"]).expect(0);
}

#[test]
fn a_command_waits_for_a_server_that_is_just_starting() {
    let home = Home::new();
    let mut serve = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    let child = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _server = RunningServer { child, url: String::new() };
    home.run(&["list"]).expect(0);
}

#[test]
fn commands_find_an_https_server_at_its_base_url() {
    let (home, authority) = (Home::new(), Authority::new());
    let files = authority.issue("localhost");
    let mut args = https_args(&files);
    args.push("--base-url=https://localhost:1/forms");
    let server = home.serve_with(&args);
    assert_eq!(server.url, "https://localhost:1/forms");
    let whoami = home.run(&["whoami", "--retries", "0"]).expect(7);
    assert!(whoami.stdout.contains("https://localhost:1/forms  (runtime)"), "{whoami:?}");
}

#[test]
fn invalid_tls_settings_are_refused() {
    let (home, authority) = (Home::new(), Authority::new());
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    for flag in ["--tls-cert", "--tls-key"] {
        let run = home.run(&["serve", "--data", "store", flag, "file.pem"]).expect(2);
        assert!(run.stderr.contains("--tls-"), "{run:?}");
    }
    let mixed = TlsFiles { key: other.key, ..one.clone() };
    let missing = TlsFiles { key: "missing.key".into(), ..one };
    for (files, fault) in [(mixed, "does not match"), (missing, "cannot read missing.key: No such file")] {
        let run = home.run(&https_args(&files)).expect(2);
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(fault), "{run:?}");
    }
    assert!(!home.path().join("store").exists(), "a refused command created a store");
}

#[test]
fn a_key_that_others_can_read_is_reported() {
    let (home, authority) = (Home::new(), Authority::new());
    let files = authority.issue("localhost");
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
    let _server = home.serve_with(&https_args(&files));
    let log = fs::read_to_string(home.path().join("serve.log")).unwrap();
    assert!(log.contains("other users can read the TLS key"), "{log}");
}

#[test]
fn only_serve_and_create_can_create_a_store() {
    let home = Home::new();
    fs::create_dir(home.path().join("empty")).unwrap();
    let dry_run = ["create", "--dry-run", "-f", "survey.yaml"];
    for data in ["./mistyped", "./empty"] {
        for command in [&["list"][..], &["show", "frm_000000000000"], &["whoami"], &dry_run] {
            let run = home.run(&[&["--data", data], command].concat()).expect(2);
            assert!(run.stderr.starts_with(&format!("error: there is no store in {data}\n")), "{run:?}");
            assert!(run.stderr.contains(&format!("help: forms serve --data {data}")), "{run:?}");
        }
    }
    assert!(!home.path().join("mistyped").exists(), "a refused command created a store");
    home.published_form(&["--data", "./empty"]);
    home.ok(&["--data", "./empty", "list"]);
}

#[test]
fn the_error_of_an_invalid_data_directory_names_it() {
    let home = Home::new();
    home.write("file", "");
    fs::create_dir(home.path().join("music")).unwrap();
    home.write("music/song", "");
    let create = ["create", "-f", "survey.yaml"];
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for data in ["file", "file/store", "music"] {
        for command in [&["list"][..], &create, &serve] {
            let run = home.run(&[&["--data", data], command].concat()).expect(2);
            let first = run.stderr.lines().next().unwrap();
            assert!(first.starts_with("error: ") && first.contains(data), "{command:?} {run:?}");
        }
    }
    assert!(home.run(&["--data", "file", "list"]).stderr.contains("file is not a folder"));
}

#[test]
fn limits_can_be_set_with_flags() {
    let home = Home::new();
    let limits = ["--max-questions=2", "--max-body=64KiB", "--max-answer=1KiB"];
    let server = home.serve_with(&[&["serve", "--data=store", "--listen=127.0.0.1:0"], &limits[..]].concat());
    let id = home.ok(&["create", "--publish", "--title", "A", "-Q", "long_text:B"]);
    // Two bytes per character.
    home.ok(&["submit", id.trim(), &format!("q1={}", "é".repeat(512))]);
    let run = home.run(&["submit", id.trim(), &format!("q1={}", "é".repeat(513))]).expect(6);
    assert!(run.stderr.contains("at most 1024 bytes"), "{run:?}");
    let run = home.run(&["create", "-f", "survey.yaml"]).expect(6);
    assert!(run.stderr.contains("error[too_many]: 3 questions are too many, 2 are allowed"), "{run:?}");
    assert!(run.stderr.contains(" --> survey.yaml:2:1"), "{run:?}");
    let key = operator_key(&home);
    let limits = send(&server.url, "GET", "/api/v1/limits", &key, "");
    let limits: serde_json::Value = serde_json::from_str(&limits).unwrap();
    assert_eq!((&limits["max_questions"], &limits["max_body"]), (&2.into(), &65_536.into()));
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_requests() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--data", "store", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut server = RunningServer { child, url: url.trim().to_owned() };
    let mut stuck = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stuck,
        "POST /api/v1/forms HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n",
        operator_key(&home)
    )
    .unwrap();
    // The server asks for the body: the request is in flight.
    let mut head = [0; 12];
    stuck.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 100");
    let pid = Pid::from_child(&server.child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert!(log.any(|line| line.contains("stopping after the requests in progress")));
    assert_eq!(server.stop(Signal::INT), Some(130));
}

#[test]
fn commands_on_one_data_directory_wait_for_each_other() {
    let home = Home::new();
    let create = || {
        let mut command = home.command(&["--data", "store", "create", "-q", "-f", "survey.yaml"]);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children = [create(), create(), create()];
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(home.ok(&["--data", "store", "list"]).lines().count(), 3);
}

#[test]
fn a_runtime_file_whose_pid_was_reused_is_not_trusted() {
    let home = Home::new();
    home.published_form(&["--data", "store"]);
    let run = runtime_folder(&home);
    fs::create_dir_all(&run).unwrap();
    let data = fs::canonicalize(home.path().join("store")).unwrap();
    // This process is running and belongs to this user, but is not a server.
    let content = serde_json::json!({
        "url": "http://127.0.0.1:1", "key": "fk_x", "pid": std::process::id(), "data": data,
    });
    let file = run.join("127.0.0.1-1.json");
    fs::write(&file, content.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(home.run(&["--data", "store", "list"]).code, Some(0));
    assert!(!file.exists(), "the stale runtime file was not removed");
    fs::write(&file, content.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let served = home.serve();
    assert!(served.url.starts_with("http://127.0.0.1:"));
}

#[test]
fn another_host_name_of_the_users_server_gets_no_key_but_a_hint() {
    let home = Home::new();
    let server = home.serve();
    let other_name = server.url.replace("127.0.0.1", "localhost");
    let run = home.run(&["--url", &other_name, "list"]).expect(4);
    assert!(run.stderr.contains(&format!("your own server is at --url {}\n", server.url)), "{run:?}");
}

#[test]
fn an_invalid_log_level_is_refused() {
    let home = Home::new();
    let serve = ["serve", "--data", "store", "--listen", "127.0.0.1:0"];
    for level in ["inof", "forms=debug"] {
        let mut command = home.command(&serve);
        let mut child =
            command.env("FORMS_LOG", level).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        drop(child.kill());
        let run = super::Run::from(child.wait_with_output().unwrap()).expect(2);
        let expected = format!("FORMS_LOG expects off, error, warn, info, debug or trace, found `{level}`");
        assert!(run.stderr.contains(&expected), "{run:?}");
    }
    assert!(!home.path().join("store").exists());
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let home = Home::new();
    let largest = u64::MAX.to_string();
    for (flag, min, max, below) in [
        ("--min-free", "0", "1024GiB", "-1"),
        ("--trash-days", "0", "36500", "-1"),
        ("--max-body", "1KiB", "16MiB", "0"),
        ("--max-uri", "64", "60KiB", "63"),
        ("--head-timeout", "100ms", "1h", "99ms"),
        ("--max-connections-per-address", "1", "1000000", "0"),
    ] {
        for value in [below, &largest, "many"] {
            let run = home.run(&["serve", "--data", "store", &format!("{flag}={value}")]).expect(2);
            let expected = format!(": expected {min} to {max}\n");
            assert!(run.stderr.contains(&expected), "{flag} {value}: {}", run.stderr);
        }
    }
}
