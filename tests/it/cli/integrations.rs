//! `forms integrations` and `forms deliveries`.

use serde_json::{Value, json};

use super::Home;
use super::fake_server::{FakeServer, operator_key, send};
use super::listen::{Listener, SECRET};
use super::terminal::Session;
use crate::delivery::google::{SPREADSHEET, key_file};

/// Runs a command on the data directory `store`.
fn local<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["--data", "store"], arguments].concat()
}

/// Creates a webhook of `form` in the data directory, and returns its secret.
#[track_caller]
fn create_webhook(home: &Home, form: &str, arguments: &[&str]) -> String {
    let create = ["integrations", "create", form, "--webhook", "https://example.com/hooks"];
    home.ok(&local(&[&create, arguments].concat())).trim().to_owned()
}

fn show(home: &Home, form: &str, name: &str) -> Value {
    home.run(&local(&["integrations", "show", form, name, "-o", "json"])).expect(0).json()
}

#[test]
fn create_prints_the_secret_that_the_server_made_or_the_id() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let create = ["integrations", "create", &form, "--webhook", "https://example.com/hooks"];
    let run = home.run(&local(&create)).expect(0);
    let secret = run.stdout.trim_end();
    assert!(secret.starts_with("whsec_") && run.stdout.lines().count() == 1, "{run:?}");
    let lines = format!(
        "created `webhook` (webhook https://example.com/hooks)\nshown only this once: store it now\n\
         next: forms --data store integrations test {form} webhook\n"
    );
    assert_eq!(run.stderr, lines);
    let shown = home.ok(&local(&["integrations", "show", &form, "webhook"]));
    assert!(shown.contains("secret:      set\n"), "{shown}");
    assert!(!shown.contains(&secret[..20]) && shown.contains("health:      state: ok\n"), "{shown}");
    home.write("own", &format!("{SECRET}\n"));
    let id = create_webhook(&home, &form, &["--name", "crm", "--set-secret", "secret=@own"]);
    assert!(id.starts_with("int_"), "{id}");
    let id = home.ok(&local(&["integrations", "create", &form, "--csv-file", "lunch.csv"]));
    assert!(id.starts_with("int_"), "{id}");
    let json = home.run(&[&local(&create)[..], &["-o", "json"]].concat()).expect(0);
    assert!(json.json()["secret"].as_str().unwrap().starts_with("whsec_") && json.stderr.is_empty());
    let names = home.ok(&local(&["integrations", "list", &form, "--columns", "name,type,target"]));
    let expected = "webhook\twebhook\thttps://example.com/hooks\ncrm\twebhook\thttps://example.com/hooks\n\
                    csv_file\tcsv_file\tlunch.csv\nwebhook-2\twebhook\thttps://example.com/hooks\n";
    assert_eq!(names, expected);
}

#[test]
fn the_key_of_a_service_account_comes_from_a_file_stdin_or_a_variable() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let id = format!("spreadsheet_id={SPREADSHEET}");
    let create = ["integrations", "create", &form, "--type", "google_sheets", "--set", &id, "--set-secret"];
    let create = |source| local(&[&create[..], &[source]].concat());
    let key = format!("{}\n", key_file());
    home.write("key.json", &key);
    home.ok(&create("service_account=@key.json"));
    home.run_with_input(&key, &create("service_account=@-")).expect(0);
    home.run_with(&[("GOOGLE_KEY", &key)], &create("service_account=env:GOOGLE_KEY")).expect(0);
    home.write("key.json", "CANARY");
    let refused = home.run(&create("service_account=@key.json")).expect(6);
    assert!(refused.stderr.contains("must be the content of the JSON file"), "{refused:?}");
    assert!(!refused.stderr.contains("CANARY"));
    for name in ["google_sheets", "google_sheets-2", "google_sheets-3"] {
        let shown = show(&home, &form, name);
        assert_eq!(shown["spreadsheet_id"], SPREADSHEET);
        assert_eq!(shown["service_account"]["set"], true);
        assert!(!shown.to_string().contains("PRIVATE KEY"), "{shown}");
    }
}

#[test]
fn lists_and_messages_show_the_target_without_secrets_and_templates() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    home.write("slack", "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx");
    let create =
        |arguments: &[&str]| home.run(&local(&[&["integrations", "create", &form], arguments].concat()));
    let title = "title={{ answers.q1 }}!";
    let slack = create(&["--type", "slack", "--set-secret", "url=@slack", "--set", title]).expect(0);
    assert!(slack.stderr.starts_with("created `slack` (slack)\n"), "{slack:?}");
    let email = create(&["--email", "team@example.com"]).expect(0);
    assert!(email.stderr.starts_with("created `email` (email team@example.com)\n"), "{email:?}");
    let listed = home.ok(&local(&["integrations", "list", &form, "--columns", "name,target"]));
    assert_eq!(listed, "slack\t\nemail\tteam@example.com\n");
    let shown = home.ok(&local(&["show", &form]));
    let lines = "integrations:  slack: slack\n               email: email team@example.com\n";
    assert!(shown.ends_with(lines), "{shown}");
    let csv = ["integrations", "show", &form, "email", "-o", "csv", "--columns", "name,to,spreadsheet_id"];
    let csv = home.ok(&local(&csv));
    assert_eq!(csv, "name,to,spreadsheet_id\nemail,\"[\"\"team@example.com\"\"]\",\n");
}

#[test]
fn a_missing_secret_leads_to_the_flag_that_sets_it() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let create = local(&["integrations", "create", &form, "--type", "slack"]);
    let refused = home.run(&create).expect(6);
    let help = "= help: add --set-secret url=@FILE, url=@- or url=env:NAME\n";
    assert!(refused.stderr.contains("`url` is missing") && refused.stderr.contains(help), "{refused:?}");
    home.write("slack.yaml", "type: slack\n");
    let refused = home.run(&local(&["integrations", "create", &form, "-f", "slack.yaml"])).expect(6);
    assert!(refused.stderr.contains(help), "{refused:?}");
}

#[test]
fn members_come_from_flags_and_files() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    create_webhook(&home, &form, &["--set", "payload=thin", "--set", "when.q3.lte=2"]);
    let file = home.ok(&local(&["integrations", "show", &form, "webhook", "-o", "yaml"]));
    assert!(!file.contains("int_") && !file.contains("health") && !file.contains("enabled"), "{file}");
    home.write("hook.yaml", &file.replace("name: webhook", "name: other\nbearer_token: { env: TOKEN }"));
    let create = ["integrations", "create", &form, "-f", "hook.yaml", "--set", "payload=full"];
    let unset = home.run(&local(&create)).expect(6);
    assert!(
        unset.stderr.contains("environment variable `TOKEN` is not set\n --> hook.yaml:2:22"),
        "{unset:?}"
    );
    home.run_with(&[("TOKEN", "a-token-that-is-long")], &local(&create)).expect(0);
    let shown = show(&home, &form, "other");
    assert_eq!(shown["bearer_token"], json!({"set": true, "env": "TOKEN"}));
    assert_eq!([&shown["payload"], &shown["when"]], [&json!("full"), &json!({"q3": {"lte": 2}})]);
    home.write("wrong.yaml", "type: webhook\nurl: https://example.com\npayload: thn\n");
    let wrong = home.run(&local(&["integrations", "create", &form, "-f", "wrong.yaml"])).expect(6);
    assert!(wrong.stderr.contains(" --> wrong.yaml:3:10") && wrong.stderr.contains("`thin`"), "{wrong:?}");
}

#[test]
fn an_update_changes_only_what_is_given() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    create_webhook(&home, &form, &["--set", "payload=thin"]);
    let update = |arguments: &[&str]| {
        home.run(&local(&[&["integrations", "update", &form, "webhook"], arguments].concat()))
    };
    let id = update(&["--set", "url=https://example.com/v2", "--set", "name=crm"]).expect(0).stdout;
    let shown = show(&home, &form, "crm");
    assert_eq!([&shown["id"], &shown["payload"]], [&json!(id.trim()), &json!("thin")]);
    assert_eq!(shown["url"], "https://example.com/v2");
    let update = |arguments: &[&str]| {
        home.run(&local(&[&["integrations", "update", &form, "crm"], arguments].concat()))
    };
    let moved = update(&["--set", "url=https://example.org"]).expect(6);
    assert!(moved.stderr.contains("error[secret_required]: `secret` must be sent again"), "{moved:?}");
    let help = "= help: add --set-secret secret=@FILE, or --set secret= for a new one";
    assert!(moved.stderr.contains(help), "{moved:?}");
    let new = update(&["--set", "url=https://example.org", "--set", "secret="]).expect(0);
    assert!(new.stdout.starts_with("whsec_") && new.stderr.contains("shown only this once"), "{new:?}");
    assert!(update(&[]).expect(2).stderr.contains("there is nothing to change"));
    for (name, state) in [("disable", false), ("enable", true)] {
        let run = home.run(&local(&["integrations", name, &form, "crm"])).expect(0);
        assert_eq!(run.stderr, format!("{name}d `crm` (webhook https://example.org)\n"));
        assert_eq!(show(&home, &form, "crm")["enabled"], state);
    }
}

#[test]
fn a_secret_is_never_taken_from_an_argument() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let create = local(&["integrations", "create", &form, "--webhook", "https://example.com"]);
    for flag in [
        ["--set", "secret=CANARY"],
        ["--set", "secret.value=CANARY"],
        ["--set", "headers.authorization=CANARY"],
        ["--set", "headers={X-Key: {value: CANARY}}"],
        ["--set-secret", "bearer_token=CANARY"],
        ["--set-secret", "CANARY"],
        ["--set-secret", "url=CANARY"],
    ] {
        for format in [&[][..], &["-o", "json"]] {
            let run = home.run(&[&create[..], &flag, format].concat()).expect(2);
            assert!(!run.stderr.contains("CANARY") && run.stdout.is_empty(), "{run:?}");
            assert!(run.stderr.contains("--set"), "{run:?}");
        }
    }
    let header = home.run(&[&create[..], &["--set", "headers.Cookie=a"]].concat()).expect(2);
    let help = "use --set-secret headers.Cookie=@FILE, headers.Cookie=@- or headers.Cookie=env:NAME";
    assert!(header.stderr.contains("other users can see arguments"), "{header:?}");
    assert!(header.stderr.contains(help), "{header:?}");
    let no_secret = home.run(&[&create[..], &["--set-secret", "url=@file"]].concat()).expect(2);
    assert!(no_secret.stderr.starts_with("error: `url` is not a secret\n"), "{no_secret:?}");
    home.write("header", "Basic dXNlcjpwYXNzd29yZA==");
    let authorized = ["--name", "basic", "--set-secret", "headers.Authorization=@header"];
    home.run(&[&create[..], &authorized].concat()).expect(0);
    let shown = show(&home, &form, "basic");
    assert_eq!(shown["headers"]["Authorization"], json!({"set": true}));
    let logged = home
        .run_with_input(
            "token-4711-secret",
            &[&create[..], &["-vv", "--set-secret", "bearer_token=@-"]].concat(),
        )
        .expect(0);
    assert!(!logged.stderr.contains("token-4711") && !logged.stderr.contains("whsec_"), "{logged:?}");
    let twice = ["--set-secret", "bearer_token=@-", "--set-secret", "secret=@-"];
    let run = home.run(&[&create[..], &twice].concat()).expect(2);
    assert!(run.stderr.contains("standard input can be read only once"), "{run:?}");
    let short =
        home.run_with_input("short", &[&create[..], &["--set-secret", "secret=@-"]].concat()).expect(6);
    assert!(short.stderr.starts_with("error[invalid_range]: `secret` must be `whsec_` and"), "{short:?}");
    let unset = home.run(&[&create[..], &["--set-secret", "bearer_token=env:NOPE"]].concat()).expect(2);
    assert!(unset.stderr.contains("environment variable `NOPE` is not set"), "{unset:?}");
}

#[test]
fn deleting_asks_and_missing_integrations_are_reported() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    create_webhook(&home, &form, &[]);
    home.ok(&local(&["submit", &form, "q1=x"]));
    let delete = local(&["integrations", "delete", &form, "webhook"]);
    let refused = home.run(&delete).expect(2);
    let what = "cannot delete `webhook` (webhook https://example.com/hooks) and cancel 1 pending without a confirmation";
    assert!(refused.stderr.contains(what) && refused.stderr.contains("add --yes"), "{refused:?}");
    let mut session = Session::start(&home, &[], &delete);
    session.wait_for("and cancel 1");
    session.wait_for("pending on store? [y/N]");
    session.type_keys("y\r");
    let (ended, screen) = session.finish();
    assert_eq!(ended, Some(0), "{screen}");
    create_webhook(&home, &form, &["--name", "crm"]);
    let near = home.run(&local(&["integrations", "test", &form, "crn"])).expect(3);
    assert!(near.stderr.contains("help: an integration with a similar name exists: crm\n"), "{near:?}");
    for command in ["show", "enable", "disable", "test", "rotate-secret"] {
        let gone = home.run(&local(&["integrations", command, &form, "webhook"])).expect(3);
        let help = format!("= help: forms --data store integrations list {form}\n");
        assert!(gone.stderr.contains("there is no integration `webhook`"), "{gone:?}");
        assert!(gone.stderr.contains(&help), "{gone:?}");
    }
}

#[test]
fn without_a_server_submit_reports_what_waits_for_one() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let submit = |arguments: &[&str]| {
        home.run(&local(&[&["submit", &form, "q1=x"], arguments].concat())).expect(0).stderr
    };
    let waiting = |stderr: &str| stderr.lines().find(|line| line.contains("for a server")).map(str::to_owned);
    assert_eq!(waiting(&submit(&[])), None);
    create_webhook(&home, &form, &[]);
    assert_eq!(waiting(&submit(&[])).as_deref(), Some("1 delivery waits for a server"));
    home.ok(&local(&["integrations", "create", &form, "--csv-file", "lunch.csv"]));
    assert_eq!(waiting(&submit(&[])).as_deref(), Some("2 deliveries wait for a server"));
    assert_eq!(waiting(&submit(&["--no-notify"])), None);
    let listed = home.run(&local(&["deliveries", "list", "-o", "json"])).expect(0).json();
    assert_eq!(listed["deliveries"].as_array().unwrap().len(), 3);
}

#[test]
fn deliveries_are_listed_selected_and_canceled() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    create_webhook(&home, &form, &["--name", "crm"]);
    home.ok(&local(&["integrations", "create", &form, "--csv-file", "lunch.csv"]));
    home.ok(&local(&["submit", &form, "q1=x"]));
    home.ok(&local(&["submit", &form, "q1=y"]));
    let count =
        |arguments: &[&str]| home.ok(&local(&[&["deliveries", "list"], arguments].concat())).lines().count();
    assert_eq!(count(&["--form", &form]), 4);
    assert_eq!(count(&["--form", &form, "--integration", "crm", "--status", "pending,dead"]), 2);
    assert_eq!([count(&["--since", "1h"]), count(&["--until", "1h"]), count(&["--limit", "3"])], [4, 0, 3]);
    let refused = |arguments: &[&str], exit: i32, text: &str| {
        let run = home.run(&local(&[&["deliveries"], arguments].concat())).expect(exit);
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    };
    for command in ["list", "redeliver", "cancel"] {
        refused(&[command, "--status", "ded"], 2, "Unknown status ded. Did you mean dead?");
        refused(&[command, "--status", "lost"], 2, "Unknown status lost. Statuses are pending, ");
        refused(&[command, "--integration", "crm"], 6, "a name needs the form that it belongs to");
        refused(&[command, "--form", &form, "--integration", "cmr"], 3, "integrations list");
    }
    let rate = "must be a rate such as \"10/s\", found `fast`";
    refused(&["redeliver", "--form", &form, "--rate", "fast"], 2, rate);
    let row =
        home.ok(&local(&["deliveries", "list", "--integration", "crm", "--form", &form, "--limit", "1"]));
    let cells: Vec<_> = row.trim_end_matches('\n').split('\t').collect();
    assert_eq!([cells[1], cells[6], cells[7], cells[8]], ["pending", "crm", "0", "submission.completed"]);
    let shown = home.ok(&local(&["deliveries", "show", cells[0]]));
    assert!(shown.contains("integration:   crm (webhook)\n") && !shown.contains("attempts:"), "{shown}");
    assert_eq!(home.ok(&local(&["deliveries", "cancel", cells[0]])), format!("{}\n", cells[0]));
    let again = home.run(&local(&["deliveries", "cancel", cells[0]])).expect(5);
    assert!(again.stderr.contains("error[delivery_not_pending]"), "{again:?}");
    let selected = ["deliveries", "cancel", "--form", &form, "--integration", "csv_file"];
    assert_eq!(home.ok(&local(&[&selected[..], &["--dry-run"]].concat())), "2\n");
    let refused = home.run(&local(&selected)).expect(2);
    assert!(refused.stderr.contains("cannot cancel 2 deliveries without a confirmation"), "{refused:?}");
    assert_eq!(home.ok(&local(&[&selected[..], &["--yes"]].concat())), "2\n");
    assert_eq!(count(&["--status", "canceled"]), 3);
    let redeliver = ["deliveries", "redeliver", "--status", "canceled"];
    assert_eq!(home.ok(&local(&[&redeliver[..], &["--dry-run"]].concat())), "3\n");
    assert_eq!(home.ok(&local(&redeliver)), "3\n");
    assert_eq!(count(&["--status", "canceled"]), 0);
    for arguments in [&["redeliver"][..], &["cancel"], &["cancel", "--form", &form, "dlv_1"]] {
        home.run(&local(&[&["deliveries"], arguments].concat())).expect(2);
    }
    let stats = home.ok(&local(&["deliveries", "stats", "-o", "csv"]));
    assert!(stats.starts_with("type,pending,in_flight,paused,dead,oldest_due_at,"), "{stats}");
    assert!(stats.contains("\ncsv_file,2,0,0,0,") && stats.contains("\nwebhook,2,0,0,0,"), "{stats}");
}

#[test]
fn json_is_the_body_of_the_api() {
    let home = Home::new();
    let server = home.serve();
    let form = home.published_form(&[]);
    home.ok(&["integrations", "create", &form, "--csv-file", "lunch.csv"]);
    let key = operator_key(&home);
    let body =
        |path: &str| -> Value { serde_json::from_str(&send(&server.url, "GET", path, &key, "")).unwrap() };
    let command = |arguments: &[&str]| home.run(&[arguments, &["-o", "json"]].concat()).expect(0).json();
    let path = format!("/api/v1/forms/{form}/integrations");
    assert_eq!(command(&["show", &form]), body(&format!("/api/v1/forms/{form}")));
    assert_eq!(command(&["integrations", "list", &form]), body(&path));
    assert_eq!(command(&["integrations", "show", &form, "csv_file"]), body(&format!("{path}/csv_file")));
    assert_eq!(command(&["deliveries", "stats"]), body("/api/v1/deliveries/stats"));
    assert_eq!(command(&["keys", "list"]), body("/api/v1/keys"));
    assert_eq!(command(&["workspaces", "list"]), body("/api/v1/workspaces"));
    assert_eq!(command(&["deliveries", "list"]), json!({"deliveries": []}));
}

/// Starts a server that may call this machine and gives up after three attempts.
fn serve(home: &Home) -> super::RunningServer {
    let serve = ["serve", "--data", "store", "--listen", "127.0.0.1:0", "--allow-net", "127.0.0.0/8"];
    home.serve_with(&[&serve[..], &["--retry-schedule", "10ms,20ms"]].concat())
}

/// Waits for the next event, and checks that its signature is verified.
#[track_caller]
fn receive(listener: &mut Listener) -> Value {
    let event: Value = serde_json::from_str(&listener.line()).unwrap();
    assert_eq!(event["signature"], "verified", "{event}");
    event
}

#[test]
fn a_webhook_arrives_and_its_signature_is_verified() {
    let home = Home::new();
    let server = serve(&home);
    let form = home.published_form(&[]);
    home.write("secret", &format!("{SECRET}\n"));
    let mut listener = Listener::start(&home, &["-o", "json", "--secret-file", "secret"]);
    let create = ["integrations", "create", &form, "--webhook", &listener.url];
    home.ok(&[&create[..], &["--set-secret", "secret=@secret"]].concat());
    let test = ["integrations", "test", &form, "webhook"];
    let tested = home.ok(&test);
    assert!(tested.starts_with("result:    delivered\nstatus:    200\n"), "{tested}");
    assert_eq!(receive(&mut listener)["type"], "integration.test");
    // The old secret signs too after a rotation.
    home.ok(&["integrations", "rotate-secret", &form, "webhook"]);
    let id = home.ok(&["submit", &form, "q1=soup"]);
    let event = receive(&mut listener);
    assert_eq!(event["body"]["data"]["submission"]["id"], id.trim());
    let delivery = event["delivery"].as_str().unwrap();
    let body = home.run(&["deliveries", "show", delivery, "--body"]).expect(0);
    assert_eq!(body.json(), event["body"]);
    let sent =
        send(&server.url, "GET", &format!("/api/v1/deliveries/{delivery}/event"), &operator_key(&home), "");
    assert_eq!(body.stdout, sent, "the signature is over exactly these bytes");
    drop(listener);
    let failed = home.run(&test).expect(1);
    assert!(failed.stdout.starts_with("result:    failed\n"), "{failed:?}");
    assert_eq!(failed.stderr, "error: the test of `webhook` failed\n");
    let failed = home.run(&[&test[..], &["-o", "json"]].concat()).expect(1);
    let problem: Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!([&failed.json()["result"], &problem["code"]], [&json!("failed"), &json!("test_failed")]);
}

#[test]
fn rotating_a_secret_prints_the_new_one_and_how_long_the_old_one_works() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let old = create_webhook(&home, &form, &[]);
    let rotate = local(&["integrations", "rotate-secret", &form, "webhook"]);
    let run = home.run(&rotate).expect(0);
    assert!(run.stdout.starts_with("whsec_") && run.stdout.trim_end() != old, "{run:?}");
    assert!(run.stderr.starts_with("The old secret works until 20"), "{run:?}");
    let run = home.run(&[&rotate[..], &["--grace", "0"]].concat()).expect(0);
    assert_eq!(run.stderr, "The old secret no longer works\nshown only this once: store it now\n");
}

#[test]
fn dead_deliveries_are_sent_again_with_the_same_id() {
    let home = Home::new();
    let _server = serve(&home);
    let form = home.published_form(&[]);
    home.write("secret", SECRET);
    let listener = Listener::start(&home, &["--status", "503"]);
    let create = ["integrations", "create", &form, "--webhook", &listener.url];
    home.ok(&[&create[..], &["--set-secret", "secret=@secret"]].concat());
    let address = listener.url.strip_prefix("http://").unwrap().to_owned();
    drop(listener);
    let submission = home.ok(&["submit", &form, "q1=soup"]);
    let dead = ["deliveries", "list", "--form", &form, "--status", "dead"];
    let rows = (0..500).map(|_| home.ok(&dead)).find(|rows| !rows.is_empty());
    let id = rows.expect("three attempts fail").split_once('\t').unwrap().0.to_owned();
    let shown = home.ok(&["deliveries", "show", &id]);
    assert!(shown.contains("status:        dead\n") && shown.contains(&submission), "{shown}");
    let attempts: Vec<_> = shown.lines().filter(|line| line.contains("connection refused")).collect();
    assert_eq!(attempts.len(), 3, "{shown}");
    assert_eq!(home.ok(&["deliveries", "show", &id, "--attempts"]).lines().count(), 3);
    let mut listener = Listener::start_at(&home, &address, &["-o", "json", "--secret-file", "secret"]);
    assert_eq!(home.ok(&["deliveries", "redeliver", "--form", &form, "--rate", "10/s"]), "1\n");
    let first = receive(&mut listener);
    assert_eq!([&first["delivery"], &first["attempt"]], [&json!(id), &json!(4)]);
    let delivered = ["deliveries", "list", "--form", &form, "--status", "delivered"];
    (0..500).find(|_| !home.ok(&delivered).is_empty()).expect("the outcome is recorded");
    assert_eq!(home.ok(&["deliveries", "redeliver", &id]), format!("{id}\n"));
    let again = receive(&mut listener);
    assert_eq!([&again["id"], &again["body"]], [&first["id"], &first["body"]]);
}

#[test]
fn a_redelivery_reports_what_it_waits_for() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    create_webhook(&home, &form, &[]);
    home.ok(&local(&["submit", &form, "q1=x"]));
    let id = home.ok(&local(&["deliveries", "list"])).split('\t').next().unwrap().to_owned();
    let redeliver = local(&["deliveries", "redeliver", &id]);
    assert_eq!(home.run(&redeliver).expect(0).stderr, "It will be sent again once a server runs\n");
    let all = local(&["deliveries", "redeliver", "--form", &form, "--status", "pending"]);
    assert_eq!(home.run(&all).expect(0).stderr, "1 delivery will be sent again once a server runs\n");
    home.ok(&local(&["integrations", "disable", &form, "webhook"]));
    let line = format!(
        "Its integration is disabled or paused. Enable it: forms --data store integrations enable {form} webhook\n"
    );
    assert_eq!(home.run(&redeliver).expect(0).stderr, line);
}

#[test]
fn a_skipped_delivery_has_no_body() {
    let home = Home::new();
    let _server = serve(&home);
    let form = home.published_form(&[]);
    home.ok(&["integrations", "create", &form, "--csv-file", "lunch.csv", "--set", "when.q3.lte=2"]);
    let shown = home.ok(&["integrations", "show", &form, "csv_file"]);
    assert!(shown.contains("when:        {\"q3\":{\"lte\":2}}\n"), "{shown}");
    home.ok(&["submit", &form, "q1=x"]);
    let skipped = ["deliveries", "list", "--status", "skipped"];
    let row = (0..500).map(|_| home.ok(&skipped)).find(|row| !row.is_empty()).expect("q3 has no answer");
    let body = home.run(&["deliveries", "show", row.split('\t').next().unwrap(), "--body"]).expect(3);
    let message = "error[delivery_not_found]: a delivery that was skipped has no body\n";
    assert!(body.stderr.starts_with(message), "{body:?}");
}

#[test]
fn a_terminal_shows_whole_statuses_and_the_beginning_of_long_responses() {
    let home = Home::new();
    let _server = serve(&home);
    let form = home.published_form(&[]);
    home.write("secret", SECRET);
    let program = FakeServer::with_replies(vec![FakeServer::status("410 Gone", "", &"long ".repeat(300))]);
    let create =
        ["integrations", "create", &form, "--webhook", &program.url, "--set-secret", "secret=@secret"];
    home.ok(&create);
    home.ok(&["integrations", "create", &form, "--csv-file", "lunch.csv"]);
    home.ok(&["submit", &form, "q1=x"]);
    let ended = ["deliveries", "list", "--status", "dead,delivered"];
    let rows = (0..500).map(|_| home.ok(&ended)).find(|rows| rows.lines().count() == 2);
    let rows = rows.expect("one is delivered, one is dead");
    let screen = |arguments: &[&str]| {
        let (code, screen) = Session::start(&home, &[], arguments).finish();
        assert_eq!(code, Some(0), "{screen}");
        let screen = console::strip_ansi_codes(&screen).into_owned();
        let is_fixed = |line: &&str| !line.contains("the receiver answered 410 Gone");
        assert!(screen.lines().filter(is_fixed).all(|line| line.chars().count() <= 80), "{screen}");
        screen
    };
    let list = screen(&["deliveries", "list"]);
    let columns = ["ID", "STATUS", "CREATED", "ERROR", "FORM_ID"];
    let titles: Vec<_> = list.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(titles, columns, "{list}");
    assert!(list.contains("  delivered  just now") && list.contains("  dead       just now"), "{list}");
    assert!(list.contains("the receiver"), "{list}");
    let dead = rows.lines().find(|row| row.contains("\tdead\t")).unwrap().split('\t').next().unwrap();
    let shown = screen(&["deliveries", "show", dead]);
    assert!(shown.contains("\r\n     long long ") && shown.contains('…'), "{shown}");
    assert!(home.ok(&["deliveries", "show", dead]).contains(&"long ".repeat(200)));
}

#[test]
fn without_a_server_a_variable_allows_networks() {
    let home = Home::new();
    let form = home.published_form(&local(&[]));
    let create = local(&["integrations", "create", &form, "--webhook", "http://127.0.0.1:9000"]);
    let refused = home.run(&create).expect(6);
    assert!(refused.stderr.contains("or FORMS_ALLOW_NET\n"), "{refused:?}");
    home.run_with(&[("FORMS_ALLOW_NET", "127.0.0.0/8")], &create).expect(0);
    let file = local(&["integrations", "create", &form, "--csv-file", "a.csv", "--set", "delimiter=x"]);
    let refused = home.run(&file).expect(6);
    assert!(refused.stderr.contains("expected one of: `,`, `;`, `\\t`"), "{refused:?}");
}

#[test]
fn a_setting_is_yaml_text_or_a_list_as_the_member_is() {
    for (settings, expected) in [
        (&["enabled=false", "payload=thin"][..], r#"{"enabled":false,"payload":"thin"}"#),
        (&["headers.X-A=1.10", "headers.X-B=yes"], r#"{"headers":{"X-A":"1.10","X-B":"yes"}}"#),
        (&["retry=5s, 5m", "fields.only=q1"], r#"{"retry":["5s","5m"],"fields":{"only":["q1"]}}"#),
        (&["events=[form.published]"], r#"{"events":["form.published"]}"#),
        (&["when.score.lte=2", "when.colour=red"], r#"{"when":{"score":{"lte":2},"colour":"red"}}"#),
        (&["when={score: {lte: 2}}", "when=", "secret="], r#"{"when":null,"secret":null}"#),
    ] {
        let server = FakeServer::with_replies(vec![FakeServer::ok("{}")]);
        let mut arguments = vec!["--url", &server.url, "integrations", "update", "lunch", "webhook"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        Home::new().run(&arguments);
        let request = server.into_requests().remove(0);
        assert_eq!(request.split_once("\r\n\r\n").unwrap().1, expected);
    }
}
