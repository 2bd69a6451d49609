//! Results on a terminal: empty lists, colours, indented JSON, the suggested next step.

use super::Home;
use super::terminal::Session;

const DATA: [&str; 2] = ["--data", "store"];

fn run_on_terminal(home: &Home, arguments: &[&str]) -> String {
    let arguments = [&DATA[..], arguments].concat();
    Session::start(home, &[("NO_COLOR", "1")], &arguments).finish().1.replace('\r', "")
}

#[test]
fn an_empty_list_shows_a_message_instead_of_headings() {
    let home = Home::new();
    home.create_empty_store();
    assert_eq!(run_on_terminal(&home, &["list"]), "no forms yet: forms --data store create\n");
    assert_eq!(run_on_terminal(&home, &["list", "--status", "draft"]), "no forms match\n");
    assert_eq!(run_on_terminal(&home, &["list", "--trashed"]), "no forms in the trash\n");
    assert_eq!(run_on_terminal(&home, &["-q", "list"]), "");
    let piped = home.run(&["--data", "store", "list"]).expect(0);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("", ""));
    let id = home.published_form(&DATA);
    assert_eq!(run_on_terminal(&home, &["responses", &id]), "no responses yet\n");
    home.ok(&["--data", "store", "submit", &id, "q1=soup"]);
    assert_eq!(run_on_terminal(&home, &["responses", &id, "--where", "q1=stew"]), "no responses match\n");
    assert_eq!(run_on_terminal(&home, &["responses", &id, "--trashed"]), "no responses in the trash\n");
    assert_eq!(run_on_terminal(&home, &["responses", &id, "--limit", "0"]), "");
}

#[test]
fn only_json_formats_report_errors_as_json_on_a_terminal() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    for format in ["xlsx", "csv", "yaml", "table"] {
        let screen = run_on_terminal(&home, &["show", "no-such-form", "-o", format]);
        assert!(screen.starts_with("error"), "{format}: {screen}");
    }
    let screen = run_on_terminal(&home, &["responses", &id, "-o", "xlsx"]);
    assert!(screen.starts_with("error: -o xlsx needs a file\n"), "{screen}");
    assert!(screen.contains("= help: add --to FILE.xlsx\n"), "{screen}");
    assert!(run_on_terminal(&home, &["list", "-o", "xlsx", "--nope"]).starts_with("error: unexpected"));
    let both = run_on_terminal(&home, &["publish", &id, "no-such-form", "-o", "csv"]);
    assert!(both.contains("no-such-form") && !both.contains("\"exit\""), "{both}");
    for format in ["json", "jsonl"] {
        let screen = run_on_terminal(&home, &["show", "no-such-form", "-o", format]);
        assert!(screen.starts_with('{'), "{format}: {screen}");
    }
}

#[test]
fn statuses_and_columns_are_accepted_as_they_are_shown() {
    let home = Home::new();
    let (open, closed) = (home.published_form(&DATA), home.published_form(&DATA));
    home.ok(&["--data", "store", "close", &closed]);
    let ids = |status: &str| home.ok(&["--data", "store", "list", "--columns", "ID", "--status", status]);
    for status in ["closed", "Closed"] {
        assert_eq!(ids(status), format!("{closed}\n"));
    }
    home.ok(&["--data", "store", "edit", &open, "--set", "settings.opens_at=9999-01-01T00:00:00Z"]);
    for status in ["not open yet", "not_open_yet", "NOT-OPEN-YET"] {
        assert_eq!(ids(status), format!("{open}\n"));
    }
    assert_eq!(ids("Published").lines().count(), 2);
    assert_eq!((ids("full"), ids("draft")), (String::new(), String::new()));
    let unknown = home.run(&["--data", "store", "list", "--status", "open"]).expect(2).stderr;
    let names = "expected one of: draft, published, closed, full, expired, not_open_yet";
    assert!(unknown.contains(names), "{unknown}");
    for columns in ["responses,updated", "RESPONSES,Updated", "response_count,updated_at"] {
        let csv = home.ok(&["--data", "store", "list", "-o", "csv", "--columns", columns]);
        assert!(csv.starts_with("response_count,updated_at\n"), "{csv}");
    }
    let shown = home.ok(&["--data", "store", "show", &open, "--columns", "RESPONSES,Title"]);
    assert_eq!(shown, "0\tLunch\n");
}

#[test]
fn the_columns_of_csv_do_not_depend_on_their_content() {
    let home = Home::new();
    home.write("plain.yaml", "title: A\nquestions: [{type: email, title: T}]\n");
    home.write("rich.yaml", "title: A\nslug: a\ndescription: D\nquestions: [{type: email, title: T}]\n");
    let header = |arguments: &[&str]| {
        let csv = home.ok(&[&DATA[..], arguments, &["-o", "csv"]].concat());
        csv.lines().next().unwrap().to_owned()
    };
    assert_eq!(header(&["create", "-f", "plain.yaml"]), header(&["create", "-f", "rich.yaml"]));
    assert_eq!(header(&["publish", "a"]), header(&["unpublish", "a"]));
    assert_eq!(header(&["publish", "a"]).split(',').count(), 14);
    assert_eq!(header(&["help", "environment"]), "name,meaning");
    assert_eq!(header(&["help", "exit-codes"]), "code,name,meaning");
}

#[test]
fn json_is_indented_and_coloured_on_a_terminal() {
    let home = Home::new();
    home.published_form(&DATA);
    let screen = run_on_terminal(&home, &["list", "-o", "json"]);
    assert!(screen.starts_with("{\n  \"forms\": [\n    {\n      \"id\": \"frm_"), "{screen}");
    let coloured = Session::start(&home, &[], &["--data", "store", "list", "-o", "json"]).finish().1;
    assert!(coloured.contains("\u{1b}[34m\"forms\"\u{1b}[0m"), "{coloured}");
    assert_eq!(home.ok(&["--data", "store", "list", "-o", "json"]).lines().count(), 1);
}

#[test]
fn the_status_is_coloured_and_the_slug_has_a_column_if_any_form_has_one() {
    let home = Home::new();
    home.published_form(&DATA);
    let list = ["--data", "store", "list"];
    let screen = Session::start(&home, &[], &list).finish().1;
    assert!(screen.contains("  \u{1b}[38;5;2mpublished\u{1b}[39m  ") && !screen.contains("SLUG"), "{screen}");
    home.write("slug.yaml", "title: B\nslug: brunch\n");
    home.ok(&["--data", "store", "create", "-f", "slug.yaml"]);
    let screen = Session::start(&home, &[], &list).finish().1;
    assert!(screen.contains("  \u{1b}[38;5;3mdraft\u{1b}[39m  ") && screen.contains("SLUG"), "{screen}");
    assert!(
        screen.contains("RESPONSES") && screen.contains("just now") && !screen.contains('\t'),
        "{screen}"
    );
    assert_eq!(home.ok(&list).lines().next().unwrap().split('\t').count(), 5);
}

#[test]
fn the_json_error_contains_warnings() {
    let home = Home::new();
    let server = home.serve();
    let key = home.write("key", "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, mode).unwrap();
    let failed = home.run(&["--url", &server.url, "--key-file", "key", "list", "-o", "json"]).expect(4);
    let warnings = failed.problem()["warnings"].to_string();
    assert!(warnings.contains("key is readable by others"), "{warnings}");
    std::fs::copy(home.path().join("store/operator-key"), &key).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let done = home.run(&["--url", &server.url, "--key-file", "key", "list", "-o", "json"]).expect(0);
    assert!(done.stderr.starts_with("warning: key is readable by others"), "{done:?}");
}

#[test]
fn the_next_step_and_the_confirmation_message_are_shown() {
    let home = Home::new();
    home.write(
        "thanks.yaml",
        "title: T\nsettings: {confirmation: Thank you}\nquestions: [{id: e, type: email, title: E}]\n",
    );
    let id = home.ok(&["--data", "store", "create", "-f", "thanks.yaml"]);
    let id = id.trim();
    let published = home.run(&["--data", "store", "publish", id]).expect(0).stderr;
    assert!(published.ends_with(&format!("next: forms --data store submit {id} e=VALUE\n")), "{published}");
    let sent = home.run(&["--data", "store", "submit", id, "e=a@example.com"]).expect(0);
    let expected = format!("submitted to \"T\"\nThank you\nnext: forms --data store responses {id}\n");
    assert_eq!(sent.stderr, expected);
    assert!(sent.stdout.starts_with("sub_") && sent.stdout.lines().count() == 1);
    let unpublished = home.run(&["--data", "store", "unpublish", id]).expect(0).stderr;
    assert!(unpublished.ends_with(&format!("next: forms --data store edit {id}\n")), "{unpublished}");
    home.ok(&["--data", "store", "responses", id, "--since", "1d", "--until", "9999-01-01"]);
    assert_eq!(home.ok(&["--data", "store", "responses", id, "--since", "9000-01-01"]), "");
}

#[test]
fn deleting_responses_checks_first_that_they_exist() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    let one = home.ok(&["--data", "store", "submit", &id, "q1=soup"]);
    let missing = "sub_01k3v8m2f4q6s8t0w2y4z6a8bc";
    let missed = ["--data", "store", "responses", "delete", &id, one.trim(), missing];
    let (code, screen) = Session::start(&home, &[("NO_COLOR", "1")], &missed).finish();
    assert!(
        code == Some(3) && !screen.contains("Move 2") && screen.contains("submission_not_found"),
        "{screen}"
    );
}

#[test]
fn a_file_beyond_a_default_limit_causes_a_warning() {
    let home = Home::new();
    home.write("long.yaml", &format!("title: {}\nquestions: [{{type: email, title: E}}]\n", "x".repeat(400)));
    let run = home.run(&["validate", "long.yaml"]).expect(0);
    assert_eq!(run.stdout, "long.yaml: ok\n");
    assert!(
        run.stderr.starts_with("warning: long.yaml:1: ") && run.stderr.contains("--max-title"),
        "{run:?}"
    );
    home.write("both.yaml", &format!("titel: A\ntitle: {}\n", "x".repeat(400)));
    home.run(&["validate", "both.yaml"]).expect(6);
}

#[test]
fn help_covers_question_types_and_codes() {
    let home = Home::new();
    let types = home.ok(&["help", "questions"]);
    assert!(types.contains("  rating                a whole number from 1 to 5\n"), "{types}");
    assert!(types.lines().all(|line| line.chars().count() <= 80), "{types}");
    let data = home.run(&["help", "questions", "-o", "json"]).expect(0).json();
    assert_eq!(data["questions"].as_array().unwrap().len(), 20);
    for example in ["\"hello\"", "\"+49 30 901820\"", "[\"red\",\"green\"]", "\"good\",\"taste\":\"good\"}"] {
        assert!(types.contains(&format!("{example}\n")), "{example}: {types}");
    }
    assert_eq!(data["questions"][6]["settings"], serde_json::json!(["max", "labels"]));
    let codes = home.ok(&["explain"]);
    assert!(codes.contains("\n  form_not_found ") && codes.contains("\n  out_of_range "), "{codes}");
    assert!(home.ok(&["explain", "-o", "csv"]).starts_with("code,status,title,meaning\n"));
}
