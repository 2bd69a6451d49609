//! Exit codes, error messages, and errors as JSON.

use serde_json::json;

use super::{Home, Run};

#[test]
fn each_exit_code_is_reached() {
    let home = Home::new();
    let data = ["--data", "store"];
    let id = home.published_form(&data);
    let draft = home.ok(&[&data[..], &["create", "-f", "survey.yaml"]].concat());
    let draft = draft.trim();
    home.write("bad.yaml", "title: A\nquestions: 5\n");
    home.write("empty.yaml", "title: A\n");
    let empty = home.ok(&[&data[..], &["create", "-f", "empty.yaml"]].concat());
    let empty = empty.trim();
    let cases: &[(i32, &str, &[&str])] = &[
        (0, "", &["list"]),
        (2, "usage", &["submit", &id, "no-equals-sign"]),
        (2, "usage", &["create", "-f", "missing.yaml"]),
        (2, "usage", &["delete", &id]),
        (2, "usage", &["delete", "--yes", ""]),
        (2, "usage", &["publish", &id, ""]),
        (2, "usage", &["close", ""]),
        (2, "usage", &["restore", ""]),
        (2, "usage", &["show", ""]),
        (2, "usage", &["submit", "", "q1=x"]),
        (2, "usage", &["responses", ""]),
        (2, "usage", &["responses", "show", &id, ""]),
        (3, "form_not_found", &["show", "frm_000000000000"]),
        (3, "form_not_found", &["show", "nope"]),
        (3, "submission_not_found", &["responses", "show", &id, "sub_00000000000000000000000000"]),
        (5, "form_not_published", &["submit", draft, "q1=x"]),
        (6, "validation_failed", &["create", "-f", "bad.yaml"]),
        (6, "validation_failed", &["submit", &id, "q1=\u{1b}]0;pwn\u{7}"]),
        (6, "form_has_no_questions", &["publish", empty]),
        (8, "partial", &["publish", &id, "frm_000000000000"]),
        (3, "partial", &["publish", "frm_000000000000", "frm_000000000001"]),
    ];
    for (code, name, arguments) in cases {
        let run = home.run(&[&data[..], arguments].concat()).expect(*code);
        assert!(*code == 0 || run.stderr.contains("error"), "{arguments:?} {run:?}");
        let run = home.run(&[&data[..], &["-o", "json"], arguments].concat()).expect(*code);
        if !name.is_empty() {
            let last: serde_json::Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
            assert_eq!((&last["code"], &last["exit"]), (&json!(name), &json!(code)), "{arguments:?}");
        }
    }
}

#[test]
fn a_misspelt_slug_leads_to_a_hint_with_a_similar_one() {
    let home = Home::new();
    let check = |global: &[&str]| {
        home.run(&[global, &["create", "--title", "Barn", "--slug", "barn-workshop"]].concat()).expect(0);
        let help = "= help: a form with a similar slug exists: barn-workshop";
        for command in [&["show", "barn-worksho"][..], &["submit", "barn-worksho", "q1=x"]] {
            let run = home.run(&[global, command].concat()).expect(3);
            assert!(run.stderr.contains(help), "{run:?}");
        }
        let several = home.run(&[global, &["publish", "barn-worksho", "garden"]].concat()).expect(3);
        assert_eq!(several.stderr.matches(help).count(), 1, "{several:?}");
        for word in ["garden", "frm_000000000000"] {
            let run = home.run(&[global, &["show", word]].concat()).expect(3);
            assert!(run.stderr.contains("= help: forms ") && run.stderr.ends_with(" list\n"), "{run:?}");
        }
    };
    check(&["--data", "store"]);
    let _server = home.serve_with(&["serve", "--data", "other", "--listen", "127.0.0.1:0"]);
    check(&[]);
}

#[test]
fn a_failure_leaves_stdout_empty_and_writes_one_line_of_json() {
    let home = Home::new();
    home.write("bad.yaml", "title: A\nquestions:\n  - {type: ratting, title: T}\n  - {type: email}\n");
    for format in ["json", "jsonl", "csv", "yaml"] {
        let run = home.run(&["--data", "store", "create", "-o", format, "-f", "bad.yaml"]).expect(6);
        assert!(run.stdout.is_empty());
        let problem = run.problem();
        assert_eq!(problem["exit"], 6);
        assert_eq!(problem["hint"], "a type with a similar name exists: `rating`");
        let error = &problem["errors"][0];
        assert_eq!((&error["line"], &error["column"]), (&json!(3), &json!(12)));
        assert_eq!((&error["pointer"], &error["file"]), (&json!("/questions/0/type"), &json!("bad.yaml")));
        // A missing field has no place in the file; the error points to its question.
        let error = &problem["errors"][1];
        assert_eq!(
            (&error["code"], &error["pointer"]),
            (&json!("missing_field"), &json!("/questions/1/title"))
        );
        assert_eq!((&error["line"], &error["column"]), (&json!(4), &json!(5)));
    }
    // The problems that `validate` finds are its result.
    let run = home.run(&["validate", "-o", "json", "bad.yaml"]).expect(6);
    let (result, problem) = (run.json(), run.problem());
    assert_eq!((&result["file"], &result["valid"]), (&json!("bad.yaml"), &json!(false)));
    assert_eq!(
        (&result["errors"][0]["line"], &result["errors"][1]["code"]),
        (&json!(3), &json!("missing_field"))
    );
    assert_eq!((&problem["title"], &problem["errors"]), (&json!("bad.yaml: 2 problems found"), &json!([])));
    assert_eq!(
        home.run(&["validate", "-o", "csv", "bad.yaml"]).expect(6).stdout,
        "file,valid\nbad.yaml,false\n"
    );
    let usage = home.run(&["-o", "json", "publsh"]).expect(2).problem();
    assert_eq!(usage["code"], "usage");
    assert_eq!(usage["hint"], "some similar subcommands exist: 'unpublish', 'publish'");
    for flags in ["-ojson", "-qo=json", "-qvojson", "--output=json", "-vqo json"] {
        let given: Vec<_> = flags.split(' ').chain(["publsh"]).collect();
        assert_eq!(home.run(&given).expect(2).problem()["code"], "usage", "{given:?}");
    }
    let usage = home.run(&["-o", "json", "show"]).expect(2).problem();
    assert_eq!(usage["title"], "the following required arguments were not provided: <FORM>");
}

#[test]
fn a_failed_write_to_stdout_exits_70() {
    let home = Home::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let to_full = |arguments: &[&str]| {
        let run = Run::from(home.command(arguments).stdout(full.try_clone().unwrap()).output().unwrap());
        run.expect(70).stderr
    };
    to_full(&["completions", "bash"]);
    let data = ["--data", "store"];
    let id = home.published_form(&data);
    let error = to_full(&[&data[..], &["submit", &id, "q1=hello"]].concat());
    let stored = home.ok(&[&data[..], &["responses", &id, "-o", "jsonl"]].concat());
    let (_, rest) = error.split_once("the answers are stored as ").expect(&error);
    let (submission, rest) = rest.split_once(',').unwrap();
    assert!(rest.starts_with(" but cannot write to standard output: "), "{error}");
    assert!(stored.contains(submission), "{stored}");
}

#[test]
fn codes_are_explained() {
    let home = Home::new();
    assert!(home.ok(&["explain", "unknown_field"]).starts_with("Unknown field."));
    assert_eq!(home.run(&["explain", "-o", "json", "form_not_published"]).json()["status"], 409);
    for code in ["malformed_file", "duplicate_field", "unsupported_yaml", "file_too_large"] {
        home.ok(&["explain", code]);
    }
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/output/render_error.rs");
    let used = regex::Regex::new(r#"local_diagnostic\(\s*"([a-z_]+)""#).unwrap();
    let source = std::fs::read_to_string(source).unwrap();
    let used: Vec<_> = used.captures_iter(&source).map(|found| found[1].to_owned()).collect();
    assert!(used.contains(&"untrusted_certificate".to_owned()), "{used:?}");
    for code in &used {
        home.ok(&["explain", code]);
    }
    let both = home.ok(&["explain", "rate_limited"]);
    assert!(
        both.contains("API key sent more requests") && both.contains("In deliveries: The receiver"),
        "{both}"
    );
    let unreachable = home.run(&["--url", "http://127.0.0.1:1", "--retries", "0", "-o", "json", "list"]);
    home.ok(&["explain", unreachable.problem()["code"].as_str().unwrap()]);
    let run = home.run(&["explain", "unknown_fild"]).expect(2);
    assert!(run.stderr.contains("a similar code exists: unknown_field"), "{run:?}");
    let run = home.run(&["explain", "nope"]).expect(2);
    assert_eq!(run.stderr, "error: there is no code `nope`\n  = help: forms explain lists all codes\n");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let home = Home::new();
    home.write("large.yaml", &format!("title: {}\n", "x".repeat(1 << 20)));
    assert!(home.run(&["validate", "large.yaml"]).expect(6).stderr.contains("error[file_too_large]"));
    std::fs::create_dir(home.path().join("empty")).unwrap();
    home.run(&["validate", "empty"]).expect(2);
}

#[test]
fn a_command_after_its_arguments_is_answered_with_the_right_order() {
    let home = Home::new();
    for (given, name, group, right) in [
        ("responses lunch show sub_1", "show", "responses", "responses show lunch sub_1"),
        (
            "--data store integrations lunch test crm",
            "test",
            "integrations",
            "--data store integrations test lunch crm",
        ),
    ] {
        let refused = home.run(&given.split(' ').collect::<Vec<_>>()).expect(2);
        let lines = format!("error: `{name}` comes right after `{group}`\n  = help: forms {right}\n");
        assert_eq!(refused.stderr, lines);
    }
}
