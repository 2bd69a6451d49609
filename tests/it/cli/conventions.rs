//! Conventions of command lines: streams, formats, colours, keys, precedence of settings.

use std::process::Command;

use super::Home;
use super::fake_server::operator_key;

#[test]
fn the_result_goes_to_stdout_and_everything_else_to_stderr() {
    let home = Home::new();
    let run = home.run(&["--data", "store", "create", "-f", "survey.yaml"]).expect(0);
    let id = run.stdout.trim_end();
    assert!(id.starts_with("frm_") && id.len() == 16 && run.stdout.lines().count() == 1, "{run:?}");
    assert!(run.stderr.contains("created \"Lunch\" (draft, 3 questions)"), "{run:?}");
    let quiet = home.run(&["--data", "store", "-q", "publish", id]).expect(0);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Home::new();
    let binary = env!("CARGO_BIN_EXE_forms");
    let script = format!("set -o pipefail; {binary} completions bash | head -1; echo ${{PIPESTATUS[*]}}");
    let output = Command::new("bash").args(["-c", &script]).current_dir(home.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("0 0\n"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn standard_input_is_read_only_if_an_argument_names_it() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    // A pipe that never ends: a command that reads it hangs.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = home.command(&["--data", "store", "submit", &id, "q1=hi"]);
    let submitted = command.stdin(reader).output().unwrap();
    assert!(submitted.status.success(), "{submitted:?}");
    drop(writer);
    let made = home.run_with_input(super::SURVEY, &["--data", "store", "create", "-f", "-"]).expect(0);
    assert!(made.stdout.starts_with("frm_"));
    let wrong = home.run_with_input("title: 1\nquestion: []\n", &["validate", "-"]).expect(6);
    assert!(wrong.stderr.contains("--> <stdin>:2:1"), "{wrong:?}");
}

#[test]
fn whoami_shows_the_settings_found_even_without_a_server() {
    let home = Home::new();
    let key = ("FORMS_API_KEY", "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234");
    let refused =
        home.run_with(&[("FORMS_URL", "http://b"), key], &["--url", "http://b", "whoami", "-o", "json"]);
    let refused = refused.expect(2);
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let found = &refused.problem()["found"];
    assert_eq!(found["url"], serde_json::json!({"value": "http://b", "source": "flag"}));
    assert_eq!((&found["key"]["source"], &found["workspace"]), (&"env".into(), &serde_json::Value::Null));
    let nowhere = home.run(&["--data", "store", "whoami", "-o", "json"]).expect(2);
    let data = serde_json::json!({"value": "store", "source": "flag"});
    let expected = serde_json::json!({"data": data, "key": null, "workspace": null});
    assert_eq!(nowhere.problem()["found"], expected);
    let silent =
        home.run_with(&[("FORMS_URL", "http://127.0.0.1:1"), key], &["--retries", "0", "whoami"]).expect(7);
    let lines = "url        http://127.0.0.1:1  (env)\nkey        fk_…1234  (env)\nworkspace  unknown\n";
    assert_eq!(silent.stdout, lines);
    assert!(silent.stderr.contains("no server responds"), "{silent:?}");
    let nobody = home.run(&["--url", "http://127.0.0.1:1", "--retries", "0", "whoami"]).expect(7);
    assert!(nobody.stdout.contains("key        none\n"), "{nobody:?}");
}

#[test]
fn a_key_is_not_sent_over_plain_http_to_another_machine() {
    let home = Home::new();
    for url in ["http://example.com", "http://10.0.0.1:8787", "http://[2001:db8::1]"] {
        let run = home.run_with(&[("FORMS_URL", url)], &["list"]).expect(2);
        assert!(run.stderr.contains("--insecure-http"), "{run:?}");
    }
}

#[test]
fn conflicting_settings_are_refused() {
    let home = Home::new();
    let both = ["--data", "store", "--url", "http://127.0.0.1:1", "list"];
    assert!(home.run(&both).expect(2).stderr.contains("cannot be used together"));
    let both = ["serve", "--data", "store", "--listen", "0.0.0.0:0", "--url", "http://127.0.0.1:1"];
    assert!(home.run(&both).expect(2).stderr.contains("cannot be used together"));
    let both = ["--data", "store", "--context", "prod", "list"];
    assert!(home.run(&both).expect(2).stderr.contains("cannot be used together"));
    for (name, value) in [("FORMS_URL", "http://127.0.0.1:1"), ("FORMS_CONTEXT", "prod")] {
        let both = home.run_with(&[("FORMS_DATA", "store"), (name, value)], &["list"]).expect(2);
        assert!(both.stderr.contains(&format!("FORMS_DATA and {name} are both set")), "{both:?}");
    }
    home.create_empty_store();
    home.run_with(&[("FORMS_DATA", "store")], &["list"]).expect(0);
    home.run(&["serve"]).expect(2);
}

#[test]
fn verbose_logs_requests_without_the_key() {
    let home = Home::new();
    home.published_form(&["--data", "store"]);
    let quiet = home.run(&["--data", "store", "list"]).expect(0);
    assert!(quiet.stderr.is_empty());
    let lines = home.run(&["--data", "store", "-v", "list"]).expect(0).stderr;
    assert!(
        lines.starts_with("GET /api/v1/forms?limit=50&count=true -> 200 in ") && lines.lines().count() == 1,
        "{lines}"
    );
    let bodies = home.run(&["--data", "store", "-vv", "list"]).expect(0).stderr;
    let key = operator_key(&home);
    assert!(bodies.contains("< {\"forms\":[") && !bodies.contains(&key[3..key.len() - 4]), "{bodies}");
    assert!(lines.contains(&format!("(Authorization: Bearer fk_…{})", &key[key.len() - 4..])), "{lines}");
    let lost = home.run(&["--url", "http://127.0.0.1:1", "--retries", "0", "-v", "list"]).expect(7).stderr;
    assert!(
        lost.starts_with("GET /api/v1/forms?limit=50&count=true -> no answer: connection refused\n"),
        "{lost}"
    );
}

#[test]
fn a_dry_run_stores_nothing() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let tried = home.ok(&["--data", "store", "submit", "--dry-run", &id, "q1=x"]);
    assert_eq!(tried, "(dry run)\n");
    assert_eq!(home.ok(&["--data", "store", "create", "--dry-run", "-f", "survey.yaml"]), "(dry run)\n");
    assert_eq!(home.ok(&["--data", "store", "delete", "--dry-run", &id]), format!("{id}\n"));
    let shown = home.run(&["--data", "store", "show", &id, "-o", "json"]).expect(0).json();
    assert_eq!(shown["response_count"], 0);
    assert_eq!(home.ok(&["--data", "store", "list"]).lines().count(), 1);
    home.run(&["--data", "store", "submit", "--dry-run", &id]).expect(6);
}

#[test]
fn version_is_one_line() {
    assert_eq!(Home::new().ok(&["--version"]), concat!("forms ", env!("CARGO_PKG_VERSION"), "\n"));
}
