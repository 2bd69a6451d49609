//! `integrations` in form files: created, shown, edited, compared and validated.

use forms::domain::integration::IntegrationType;
use forms::domain::integration::secret_members::secret_names;
use serde_json::json;

use super::Home;
use super::listen::SECRET;

const FORM: &str = "\
title: Lunch
slug: lunch
questions:
  - {id: q1, type: short_text, title: What would you like?}
integrations:
  - name: crm
    type: webhook
    url: https://example.com/hooks
    secret: { env: CRM_SECRET }
    headers:
      X-Team: blue
      X-Key: { env: CRM_KEY }
  - type: csv_file
    path: lunch.csv
";

const KEY: &str = "a-key-of-more-than-16-characters";

/// Runs a command on the data directory `store` with both variables set.
fn run(home: &Home, arguments: &[&str]) -> super::Run {
    let variables = [("CRM_SECRET", SECRET), ("CRM_KEY", KEY)];
    home.run_with(&variables, &[&["--data", "store"], arguments].concat())
}

/// A home with the form in the file `lunch.yaml` and, published, in the data directory `store`.
fn home() -> Home {
    let home = Home::new();
    home.write("lunch.yaml", FORM);
    run(&home, &["create", "--publish", "-f", "lunch.yaml"]).expect(0);
    home
}

#[test]
fn a_form_is_created_with_its_integrations_and_shown_as_the_same_file() {
    let home = home();
    let shown = run(&home, &["show", "lunch", "-o", "json"]).expect(0).json();
    assert_eq!(shown["integrations"][0]["secret"], json!({"set": true, "env": "CRM_SECRET"}));
    assert!(!shown.to_string().contains(SECRET) && !shown.to_string().contains(KEY));
    let file = run(&home, &["show", "lunch", "-o", "yaml"]).expect(0).stdout;
    let expected = "\
integrations:
- name: crm
  type: webhook
  url: https://example.com/hooks
  secret:
    env: CRM_SECRET
  headers:
    X-Team: blue
    X-Key:
      env: CRM_KEY
- name: csv_file
  type: csv_file
  path: lunch.csv
";
    assert!(file.ends_with(expected), "{file}");
    // The same file, written by the author or by the command, changes nothing, whether the variables are set or not.
    home.write("shown.yaml", &file);
    for name in ["lunch.yaml", "shown.yaml"] {
        let edit = ["edit", "lunch", "-f", name, "--yes"];
        assert_eq!(run(&home, &edit).expect(0).stderr, "no change\n", "{name}");
        let unset = home.run(&[&["--data", "store"], &edit[..]].concat()).expect(0);
        assert_eq!(unset.stderr, "no change\n", "{name}");
    }
}

#[test]
fn an_edit_shows_changed_members_and_no_secrets() {
    let home = home();
    let changed = FORM
        .replace("https://example.com/hooks", "https://example.com/v2")
        .replace("X-Team: blue", "X-Team: red")
        .replace("path: lunch.csv", "path: other.csv")
        .replace("title: Lunch\n", "title: Dinner\n");
    home.write("lunch.yaml", &(changed + "  - {type: webhook, url: 'https://example.org/'}\n"));
    let variables = [("CRM_SECRET", SECRET), ("CRM_KEY", "another-key-of-a-good-length")];
    let edit = ["--data", "store", "edit", "lunch", "-f", "lunch.yaml", "--yes"];
    let run = home.run_with(&variables, &edit).expect(0);
    let lines = "  ~ title                      \"Lunch\" → \"Dinner\"
  ~ integrations.crm.url       \"https://example.com/hooks\" → \"https://example.com/v2\"
  ~ integrations.crm.headers.X-Team  \"blue\" → \"red\"
  ~ integrations.csv_file.path  \"lunch.csv\" → \"other.csv\"
  + integrations.webhook       webhook https://example.org/
updated \"Dinner\"
";
    let compact = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(compact(&run.stderr).starts_with(&compact(lines)), "{run:?}");
    assert!(!run.stderr.contains("another-key"), "{run:?}");
    assert!(run.stderr.contains("integrations rotate-secret"), "{run:?}");
    home.write("lunch.yaml", FORM.split("integrations:").next().unwrap());
    let removed = home.run_with(&variables, &edit).expect(0);
    for name in ["crm", "csv_file", "webhook"] {
        assert!(removed.stderr.contains(&format!("  - integrations.{name} ")), "{removed:?}");
    }
    assert_eq!(home.ok(&["--data", "store", "integrations", "list", "lunch"]), "");
}

#[test]
fn a_variable_that_is_not_set_is_an_error_where_its_value_is_needed() {
    let home = home();
    home.write("lunch.yaml", &FORM.replace("slug: lunch\n", ""));
    let unset = home.run(&["--data", "store", "create", "-f", "lunch.yaml"]).expect(6);
    assert!(unset.stdout.is_empty(), "{unset:?}");
    for place in [" --> lunch.yaml:8:20\n", " --> lunch.yaml:11:21\n"] {
        assert!(unset.stderr.contains(place), "{unset:?}");
    }
    assert!(unset.stderr.contains("error[unset_variable]: environment variable `CRM_KEY` is not set"));
    // An empty variable is not set, and another one has no stored value.
    let edit = ["--data", "store", "edit", "lunch", "-f", "lunch.yaml", "--yes"];
    home.write("lunch.yaml", &FORM.replace("CRM_KEY", "OTHER_KEY"));
    let unset = home.run_with(&[("OTHER_KEY", "")], &edit).expect(6);
    assert!(unset.stderr.contains("environment variable `OTHER_KEY` is not set"), "{unset:?}");
    let set = home.run_with(&[("OTHER_KEY", KEY)], &edit).expect(0);
    assert!(set.stderr.contains("X-Key  secret from CRM_KEY → secret from OTHER_KEY"), "{set:?}");
}

#[test]
fn validate_warns_of_unset_variables_and_of_secrets_in_the_file() {
    let home = Home::new();
    home.write("lunch.yaml", &FORM.replace("{ env: CRM_SECRET }", SECRET));
    let run = home.run(&["validate", "lunch.yaml"]).expect(0);
    let lines = "warning: lunch.yaml:12: environment variable `CRM_KEY` is not set here\n\
                 warning: lunch.yaml:9: the text of `secret` is in the file: { env: NAME } keeps it out\n";
    assert_eq!((&*run.stdout, &*run.stderr), ("lunch.yaml: ok\n", lines));
    home.write("lunch.yaml", &FORM.replace("url:", "ulr:").replace("type: csv_file", "type: csv"));
    let wrong = home.run(&["validate", "lunch.yaml"]).expect(6);
    for text in [
        "error[unknown_field]: unknown field `ulr`",
        "not a field here",
        "a field with a similar name exists: `url`",
        " --> lunch.yaml:13:11",
    ] {
        assert!(wrong.stderr.contains(text), "{text}: {wrong:?}");
    }
}

#[test]
fn the_command_that_prints_a_generated_secret_is_shown() {
    let home = Home::new();
    home.write("lunch.yaml", "title: A\nintegrations: [{type: webhook, url: 'https://example.com/'}]\n");
    let run = home.run(&["--data", "store", "create", "-f", "lunch.yaml"]).expect(0);
    let id = run.stdout.trim_end();
    let line = format!(
        "the server made a secret for `webhook`; to get one: forms --data store integrations rotate-secret {id} webhook\n"
    );
    assert!(run.stderr.contains(&line) && !run.stderr.contains("whsec_"), "{run:?}");
    let file = home.ok(&["--data", "store", "show", id, "-o", "yaml"]);
    assert!(!file.contains("secret"), "{file}");
}

#[test]
fn excerpts_of_a_file_do_not_show_its_secrets() {
    let home = Home::new();
    let file = "title: A
x: 1
integrations:
  - type: webhook
    url: https://example.com/
    secret: CANARY-one
    bearer_token:
      value: 'CANARY-two'
      vlaue: CANARY-three
    headers: { X-A: {value: CANARY-four}, cookie: CANARY-five, 'X B': a }
";
    home.write("a.yaml", file);
    let run = home.run(&["validate", "a.yaml"]).expect(6);
    assert!(!run.stderr.contains("CANARY"), "{run:?}");
    for line in ["\n--> a.yaml:6:13\n", "\n--> a.yaml:9:7\n", "2 | x: 1"] {
        assert!(run.stderr.contains(line), "{line}: {run:?}");
    }
    // Texts with a syntax error, or with questions that have the names of secrets.
    let json = "{\"integrations\": [{\"secret\": \"CANARY\" 1}]}";
    for (name, text) in
        [("b.yaml", "integrations:\n- secret: CANARY: x\n"), ("c.yaml", json), ("d.json", json)]
    {
        home.write(name, text);
        let run = home.run(&["validate", name]).expect(6);
        assert!(run.stderr.contains(&format!("--> {name}:")) && !run.stderr.contains("CANARY"), "{run:?}");
    }
    let blocks = "title: A\nintegrations:\n- type: webhook\n  url: https://a/\n  secret: |\n    CANARY\n    CANARY\n  x: 1\n";
    home.write("e.yaml", blocks);
    let run = home.run(&["validate", "e.yaml"]).expect(6);
    assert!(run.stderr.contains(" --> e.yaml:8:3\n") && run.stderr.contains("8 |   x: 1\n"), "{run:?}");
    assert!(!run.stderr.contains("CANARY"), "{run:?}");
    let question = "title: A\nquestions:\n- {id: q, type: email, title: Q, show_if: {secret: shown, z: 1}}\n";
    home.write("c.yaml", question);
    let run = home.run(&["validate", "c.yaml"]).expect(6);
    assert!(run.stderr.contains("secret: shown"), "{run:?}");
}

#[test]
fn an_unusable_variable_is_named_and_located() {
    let home = Home::new();
    home.write("lunch.yaml", FORM);
    let create = ["--data", "store", "create", "-f", "lunch.yaml"];
    let run = home.run_with(&[("CRM_SECRET", "CANARY"), ("CRM_KEY", KEY)], &create).expect(6);
    let message = "error[invalid_range]: environment variable `CRM_SECRET`: `secret` must be `whsec_` and";
    assert!(run.stderr.starts_with(message) && run.stderr.contains("\n --> lunch.yaml:9:13\n"), "{run:?}");
    assert!(!run.stderr.contains("CANARY"), "{run:?}");
    let json =
        home.run_with(&[("CRM_SECRET", "x"), ("CRM_KEY", KEY)], &[&create[..], &["-o", "json"]].concat());
    let problem: serde_json::Value = serde_json::from_str(&json.expect(6).stderr).unwrap();
    assert_eq!([&problem["errors"][0]["line"], &problem["errors"][0]["column"]], [&json!(9), &json!(13)]);
}

#[test]
fn validate_warns_of_headers_with_secrets_and_of_secrets_as_they_are_shown() {
    let home = Home::new();
    let headers = "X-Team: blue\n      authorization: Basic x\n      Cookie: { set: true }";
    home.write("lunch.yaml", &FORM.replace("X-Team: blue", headers).replace("{ env: CRM_KEY }", "a"));
    let run = home.run_with(&[("CRM_SECRET", SECRET)], &["validate", "lunch.yaml"]).expect(0);
    let lines = "warning: lunch.yaml:12: the text of `authorization` is in the file: { env: NAME } keeps it out\n\
                 warning: lunch.yaml:13: the value of `Cookie` is not in the file: a new form needs { env: NAME }\n";
    assert_eq!(run.stderr, lines);
}

#[test]
fn a_secret_as_it_is_shown_needs_a_variable_in_a_new_form() {
    let home = Home::new();
    home.write("token", "token-of-the-receiver");
    home.write("lunch.yaml", "title: A\nintegrations: [{type: webhook, url: 'https://example.com/'}]\n");
    let id = home.ok(&["--data", "store", "create", "-f", "lunch.yaml"]);
    let update = ["--data", "store", "integrations", "update", id.trim(), "webhook"];
    home.ok(&[&update[..], &["--set-secret", "bearer_token=@token"]].concat());
    let file = home.ok(&["--data", "store", "show", id.trim(), "-o", "yaml"]);
    assert!(file.contains("bearer_token:\n    set: true\n"), "{file}");
    home.write("shown.yaml", &file);
    let run = home.run(&["--data", "store", "create", "-f", "shown.yaml"]).expect(6);
    assert!(run.stderr.contains("error[secret_required]: `bearer_token` has no stored value"), "{run:?}");
    assert!(run.stderr.contains("= help: use { env: NAME }, and set the variable"), "{run:?}");
}

#[test]
fn the_log_of_bodies_shows_no_secret_of_any_type() {
    const CANARY: &str = "https://example.com/CANARY";
    let home = home();
    let log = |arguments: &[&str]| {
        let arguments = [&["--data", "store", "-vv", "integrations"], arguments].concat();
        let run = home.run_with(&[("SECRET", CANARY)], &arguments);
        assert!(!run.stderr.contains("CANARY"), "{run:?}");
        run.stderr.lines().find(|line| line.starts_with("> ")).unwrap_or_default().to_owned()
    };
    let mut form = "title: All\nslug: all\nintegrations:\n".to_owned();
    for kind in IntegrationType::ALL {
        let sources: Vec<_> =
            secret_names(Some(kind)).iter().map(|name| format!("{name}=env:SECRET")).collect();
        let flags: Vec<_> = sources.iter().flat_map(|source| ["--set-secret", source]).collect();
        let sent = log(&[&["create", "lunch", "--type", kind.name()], &flags[..]].concat());
        assert_eq!(sent.matches("(secret)").count(), sources.len(), "{sent}");
        // An update does not name the type.
        if !flags.is_empty() {
            assert!(log(&[&["update", "lunch", "crm"], &flags[..]].concat()).contains("(secret)"));
        }
        let headers = if kind == IntegrationType::Webhook { "headers: {X-Token: CANARY}, " } else { "" };
        form += &format!("- {{{headers}type: {}", kind.name());
        form.extend(secret_names(Some(kind)).iter().map(|name| format!(", {name}: {CANARY}")));
        form += "}\n";
    }
    home.write("all.yaml", &form);
    let run = home.run(&["--data", "store", "-vv", "edit", "lunch", "-f", "all.yaml", "--yes"]);
    assert!(!run.stderr.contains("CANARY"), "{run:?}");
}
