//! Every command in every format: stdout has only the document, and is empty after a failure.

use std::sync::Mutex;

use serde::Deserialize;

use super::help::leaf_commands;
use super::{Home, Run};

/// Calls of a command that succeed, and calls that fail, with their exit codes.
type Calls = (&'static [&'static str], &'static [(i32, &'static str)]);

/// Returns calls in which FORM and SUBMISSION exist; NEW is replaced by a new published form, TRASHED by a new form in the
/// trash, ANSWERED by FORM and a new submission, DISCARDED by FORM and a new submission in the trash, CONTEXT, KEY and
/// WORKSPACE by a new one, URL by the server's address, WEBHOOK by a new form and its integration to which a delivery is
/// owed, SPAM by a form and a quarantined submission, WEBHOOK-FORM by the form alone, CSV-FILE by a new form and its CSV file, DELIVERY by a new delivery.
#[expect(clippy::too_many_lines, reason = "an arm for each command")]
fn calls(command: &str) -> Calls {
    match command {
        "init" => (&["", "--template feedback"], &[(2, "set.json"), (2, "--template x")]),
        "import" => (
            &["survey.json"],
            &[(2, "set.json"), (6, "wrong-key"), (2, "missing.json"), (2, "--from x survey.json")],
        ),
        "schema" => (&["", "FORM"], &[(3, "nope")]),
        "create" => (
            &[
                "-f survey.yaml",
                "-f survey.yaml --publish",
                "-f survey.yaml --dry-run",
                "-f two.yaml",
                "--title A -Q email:B",
            ],
            &[(6, "-f bad.yaml"), (2, "-f missing.yaml"), (6, "--title A -Q ratting:B"), (2, "")],
        ),
        "edit" => (
            &["NEW --title A", "NEW --set questions.q2=", "FORM --title A --dry-run"],
            &[(2, "FORM"), (3, "nope --title A"), (6, "FORM --set questions.q1.required=5")],
        ),
        "validate" => (
            &["survey.yaml", "survey.yaml two.yaml", "survey.yaml q1=x", "survey.yaml --answers sets.jsonl"],
            &[(6, "bad.yaml"), (2, "missing.yaml"), (6, "bad.yaml q1=x")],
        ),
        "test" => {
            (&["survey.yaml", "survey.yaml two.yaml"], &[(6, "bad.yaml"), (2, "missing.yaml"), (2, "")])
        }
        "fill" => (&[], &[(2, "FORM")]),
        "ask" => {
            (&["survey.yaml q1=x"], &[(2, "survey.yaml"), (6, "survey.yaml q1=x q9=1"), (6, "bad.yaml")])
        }
        "diff" => (
            &["-f slug.yaml", "-f slug.yaml slugs"],
            &[(2, ""), (2, "-f missing.yaml"), (6, "-f bad.yaml"), (6, "-f survey.yaml")],
        ),
        "apply" => (
            &["-f slug.yaml", "-f slug.yaml slugs", "-f new.yaml --dry-run"],
            &[(2, ""), (6, "-f bad.yaml"), (6, "-f survey.yaml")],
        ),
        "promote" => (&[], &[(2, "FORM"), (3, "FORM --from nope --to nope")]),
        "dev" => (&[], &[(2, ""), (2, "missing.yaml"), (6, "bad.yaml")]),
        "publish" => {
            (&["FORM", "NEW NEW", "NEW --public", "FORM --dry-run"], &[(3, "nope"), (3, "nope --dry-run")])
        }
        "open" => (&["FORM", "NEW --print"], &[(3, "nope"), (2, "")]),
        "share" => (&["FORM", "NEW"], &[(3, "nope"), (2, "")]),
        "unpublish" => (&["NEW", "FORM --dry-run"], &[(3, "nope")]),
        "close" => (&["NEW", "FORM --dry-run"], &[(3, "nope")]),
        "list" => {
            (&["", "--limit 0", "--trashed"], &[(2, "--limit x"), (2, "--limit -1"), (2, "--columns id,x")])
        }
        "show" => (&["FORM"], &[(3, "nope")]),
        "delete" => (&["NEW --dry-run", "NEW --yes", "NEW --yes --purge"], &[(2, "NEW"), (3, "nope --yes")]),
        "restore" => (&["TRASHED"], &[(3, "nope"), (5, "FORM")]),
        "submit" => {
            (&["FORM q1=x", "FORM q1=x --dry-run", "FORM --file set.json"], &[(6, "FORM"), (3, "nope q1=x")])
        }
        "results" => (
            &["FORM", "FORM --search nobody", "FORM --where q1=x"],
            &[(3, "nope"), (2, "FORM --where q9=x"), (2, "FORM --watch")],
        ),
        "spam list" => (&["", "SPAM-FORM --limit 1"], &[(3, "nope"), (2, "--columns x")]),
        "spam release" => (&["SPAM"], &[(3, "FORM nope"), (5, "FORM SUBMISSION")]),
        "spam purge" => {
            (&["SPAM --yes"], &[(2, "SPAM"), (3, "FORM nope --yes"), (5, "FORM SUBMISSION --yes")])
        }
        "serve" => (&[], &[(5, "--data store"), (2, "")]),
        "login" => (
            &["URL --key-file store/operator-key", "--key-file store/operator-key --name a"],
            &[(2, "URL"), (2, "URL --key-file missing"), (4, "URL --key-file wrong-key")],
        ),
        "logout" => (&["CONTEXT"], &[(3, "nope")]),
        "context list" => (&[""], &[(2, "--columns x")]),
        "context use" => (&["CONTEXT"], &[(3, "nope")]),
        "context remove" => (&["CONTEXT"], &[(3, "nope"), (3, "nope nope")]),
        "keys list" => (&[""], &[(2, "--columns x")]),
        "keys create" => (
            &["--name a --scope read", "--name a --scope submit --form FORM --expires 1d"],
            &[(2, ""), (2, "--name a --scope x"), (6, "--name a --scope read --form nope")],
        ),
        "keys revoke" => (&["KEY --yes"], &[(2, "KEY"), (3, "nope --yes"), (3, "nope")]),
        "keys rotate" => (&["KEY", "KEY --grace 1h"], &[(3, "nope"), (2, "KEY --grace x")]),
        "workspaces list" => (&[""], &[(2, "--columns x")]),
        "workspaces create" => (&["a"], &[(2, "")]),
        "workspaces delete" => (&["WORKSPACE --yes"], &[(2, "WORKSPACE"), (3, "nope --yes"), (3, "nope")]),
        "listen" => (&[], &[(2, "--status 99"), (2, "--secret-file missing"), (2, "--listen x")]),
        "whoami" => (&[""], &[(7, "--url http://127.0.0.1:1 --retries 0")]),
        // Its result depends on what the webhooks of other calls are.
        "doctor" => (&[], &[(7, "--url http://127.0.0.1:1 --wait 1ms"), (2, "--wait x")]),
        "erase" => (
            &["--search nobody", "--where q1=nobody --dry-run"],
            &[(2, ""), (2, "--where x"), (7, "--search x --url http://127.0.0.1:1 --retries 0")],
        ),
        "explain" => (&["required", "unauthorized"], &[(2, "nope")]),
        // A completion script has no output format.
        "completions" => (&[], &[(2, "nope")]),
        "man" => (&["pages"], &[(2, ""), (70, "set.json")]),
        "help" => (&["exit-codes", "environment", "formatting", "submit", "responses list"], &[(2, "nope")]),
        command if command.starts_with("responses") => calls_about_responses(command),
        command => calls_about_integrations(command),
    }
}

fn calls_about_responses(command: &str) -> Calls {
    match command {
        "responses" => (&["FORM", "NEW", "FORM --trashed"], &[(3, "nope")]),
        "responses list" => (&["FORM", "FORM --limit 1"], &[(3, "nope")]),
        "responses delete" => (
            &["FORM SUBMISSION --dry-run", "ANSWERED --yes", "ANSWERED --yes --purge"],
            &[(2, "FORM SUBMISSION"), (3, "FORM nope --yes")],
        ),
        "responses restore" => (&["DISCARDED"], &[(3, "FORM nope"), (5, "FORM SUBMISSION")]),
        "responses show" => (&["FORM SUBMISSION"], &[(3, "FORM nope")]),
        // It does not end.
        "responses watch" => (&[], &[(2, "FORM --interval x")]),
        "responses export" => (
            &["FORM --to out", "FORM NEW --to out --format xlsx --labels"],
            &[
                (3, "nope --to out"),
                (2, "FORM"),
                (2, "FORM --to out --format jsonl --labels"),
                (70, "FORM --to set.json"),
            ],
        ),
        "responses edit" => (
            &["FORM SUBMISSION q3=2", "ANSWERED q3=4 q1=y", "ANSWERED -f set.json"],
            &[
                (6, "FORM SUBMISSION q3=9"),
                (3, "FORM nope q1=x"),
                (2, "FORM SUBMISSION"),
                (6, "FORM SUBMISSION q1="),
            ],
        ),
        "responses history" => (&["FORM SUBMISSION"], &[(3, "FORM nope")]),
        _ => panic!("add calls of `forms {command}` to this table"),
    }
}

fn calls_about_integrations(command: &str) -> Calls {
    match command {
        "integrations list" => (&["FORM", "WEBHOOK-FORM"], &[(3, "nope"), (2, "FORM --columns x")]),
        "integrations show" => (&["WEBHOOK"], &[(3, "FORM nope"), (3, "nope webhook")]),
        "integrations create" => (
            &["NEW --webhook https://example.com", "NEW --csv-file a.csv --name a", "NEW -f hook.yaml"],
            &[
                (2, "FORM"),
                (6, "FORM --csv-file a.txt"),
                (6, "FORM -f bad.yaml --webhook https://example.com"),
                (2, "FORM -f missing.yaml"),
                (2, "FORM --webhook https://example.com --set secret=a"),
            ],
        ),
        "integrations update" => (
            &["WEBHOOK --set payload=thin"],
            &[(2, "WEBHOOK"), (6, "WEBHOOK --set payload=thn"), (3, "FORM nope --set payload=thin")],
        ),
        "integrations delete" => (&["WEBHOOK --yes"], &[(2, "WEBHOOK"), (3, "FORM nope --yes")]),
        "integrations enable" => (&["WEBHOOK"], &[(3, "FORM nope")]),
        "integrations disable" => (&["WEBHOOK"], &[(3, "FORM nope")]),
        // A failed test shows the attempt, see `integrations`.
        "integrations test" => (&["CSV-FILE"], &[(3, "FORM nope")]),
        "integrations rotate-secret" => (
            &["WEBHOOK", "WEBHOOK --grace 1h"],
            &[(3, "FORM nope"), (2, "WEBHOOK --grace x"), (6, "CSV-FILE")],
        ),
        "deliveries list" => (
            &["", "--status pending,dead --limit 1", "--form FORM --since 1h"],
            &[(3, "--form nope"), (2, "--status nope"), (2, "--since nope"), (2, "--columns x")],
        ),
        "deliveries show" => {
            (&["DELIVERY", "DELIVERY --attempts"], &[(3, "nope"), (2, "DELIVERY --attempts --body")])
        }
        "deliveries redeliver" => (
            &["DELIVERY", "DELIVERY DELIVERY", "--form FORM --dry-run", "--form FORM --rate 10/s"],
            &[(2, ""), (3, "nope"), (2, "DELIVERY --form FORM"), (2, "--form FORM --rate x")],
        ),
        "deliveries cancel" => (
            &["DELIVERY", "--form FORM --dry-run", "--form FORM --yes", "--form FORM"],
            &[(2, ""), (3, "nope"), (2, "--form WEBHOOK-FORM")],
        ),
        "deliveries stats" => (&[""], &[(2, "--columns x")]),
        // A server makes one backup at a time, and the formats are checked in parallel.
        "store backup" => (&[], &[(2, ""), (2, "--to nowhere/a.tar")]),
        "store compact" => (&[""], &[(2, "--columns x")]),
        "store verify" => (&[""], &[(2, "--columns x"), (2, "--data missing")]),
        "store salvage" => (&[], &[(2, ""), (2, "--data missing --to new"), (2, "--to new")]),
        "store copy" => (&[], &[(2, ""), (2, "--from missing --to new"), (5, "--from store --to new")]),
        "store restore" => (&[], &[(2, ""), (2, "a.tar"), (2, "missing.tar --data new")]),
        _ => panic!("add calls of `forms {command}` to one of these tables"),
    }
}

struct Fixture {
    home: Home,
    form: String,
    submission: String,
    /// A form, and the ids of quarantined submissions to it, each for one call.
    spam: (String, Mutex<Vec<String>>),
    url: String,
}

impl Fixture {
    fn new() -> (Self, super::RunningServer) {
        let home = Home::new();
        let spammed = home.published_form(&["--data", "store"]);
        let spam = (spammed.clone(), Mutex::new(home.quarantine(&spammed, 20)));
        // What is owed waits.
        let serve = ["serve", "--data", "store", "--listen", "127.0.0.1:0", "--pause-deliveries"];
        let server = home.serve_with(&serve);
        home.write("hook.yaml", "type: webhook\nurl: https://example.com\n");
        home.write("two.yaml", "title: A\n---\ntitle: B\n");
        home.write("bad.yaml", "titel: A\n");
        home.write("new.yaml", "title: A\nslug: new\n");
        home.write("slug.yaml", "title: A\nslug: a\n");
        std::fs::create_dir(home.path().join("slugs")).unwrap();
        home.write("slugs/b.yaml", "title: B\nslug: b\nstatus: draft\n");
        home.write("wrong-key", "fk_wrong");
        home.write("set.json", "{\"q1\": \"x\", \"q3\": 4}");
        home.write("survey.json", "{\"title\": \"A\", \"elements\": []}");
        home.write("sets.jsonl", "{\"q1\": \"x\"}\n{\"q1\": \"y\"}\n");
        home.ok(&["apply", "-f", "slug.yaml", "slugs"]);
        let form = home.published_form(&[]);
        let submission = home.ok(&["submit", &form, "q1=\"tab\there,\"", "q3=2"]).trim().to_owned();
        let url = server.url.clone();
        (Self { home, form, submission, spam, url }, server)
    }

    /// Runs a command; each format has its own contexts, since formats are checked in parallel.
    fn run_in(&self, format: &str, arguments: &[&str]) -> Run {
        self.home.run_with(&[("FORMS_CONFIG_DIR", &*format!("config-{format}"))], arguments)
    }

    /// Replaces a placeholder.
    fn expand(&self, format: &str, word: &str) -> Vec<String> {
        let ok = |arguments: &[&str]| self.run_in(format, arguments).expect(0).stdout.trim().to_owned();
        let answered = || ok(&["submit", &self.form, "q1=x"]);
        match word {
            "FORM" => vec![self.form.clone()],
            "SUBMISSION" => vec![self.submission.clone()],
            "NEW" => vec![self.home.published_form(&[])],
            "SPAM-FORM" => vec![self.spam.0.clone()],
            "SPAM" => vec![self.spam.0.clone(), self.spam.1.lock().unwrap().pop().unwrap()],
            "TRASHED" => vec![ok(&["delete", "--yes", &self.home.published_form(&[])])],
            "ANSWERED" => vec![self.form.clone(), answered()],
            "URL" => vec![self.url.clone()],
            "CONTEXT" => vec![ok(&["login", &self.url, "--name", "new", "--key-file", "store/operator-key"])],
            "KEY" => {
                let key = ok(&["keys", "create", "--name", "a", "--scope", "read"]);
                vec![format!("key_{}", &key[3..11])]
            }
            "WEBHOOK" | "WEBHOOK-FORM" => {
                let form = self.home.published_form(&[]);
                ok(&["integrations", "create", &form, "--webhook", "https://example.com"]);
                ok(&["submit", &form, "q1=x"]);
                [form, "webhook".to_owned()].into_iter().take(if word == "WEBHOOK" { 2 } else { 1 }).collect()
            }
            "CSV-FILE" => {
                let form = self.home.published_form(&[]);
                ok(&["integrations", "create", &form, "--csv-file", &format!("{form}.csv")]);
                vec![form, "csv_file".to_owned()]
            }
            "DELIVERY" => {
                let form = self.expand(format, "WEBHOOK-FORM").remove(0);
                let listed = ok(&["deliveries", "list", "--form", &form, "--columns", "id"]);
                vec![listed]
            }
            "WORKSPACE" => {
                let created = self.run_in(format, &["-o", "json", "workspaces", "create", "a"]).json();
                vec![created["id"].as_str().unwrap().to_owned()]
            }
            "DISCARDED" => {
                vec![self.form.clone(), ok(&["responses", "delete", "--yes", &self.form, &answered()])]
            }
            word => vec![word.to_owned()],
        }
    }

    fn run(&self, format: &str, command: &str, call: &str) -> Run {
        let words =
            command.split(' ').chain(call.split_whitespace()).flat_map(|word| self.expand(format, word));
        let words: Vec<_> = ["-o".to_owned(), format.to_owned()].into_iter().chain(words).collect();
        self.run_in(format, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn commands() -> Vec<String> {
    let mut found = Vec::new();
    leaf_commands(&forms::cli::command(), &[], &mut found);
    let mut names: Vec<_> = found.into_iter().map(|(path, _)| path.join(" ")).collect();
    names.push("help".to_owned());
    names
}

/// Whether `text` is a valid document of this format.
#[track_caller]
fn is_document(format: &str, text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    match format {
        "json" => is_json(text) && text.lines().count() == 1,
        "jsonl" => text.lines().all(is_json),
        "yaml" => {
            let mut documents = serde_yaml::Deserializer::from_str(text);
            documents.all(|document| {
                let value = serde_yaml::Value::deserialize(document);
                value.is_ok_and(|value| value.is_mapping() || value.is_sequence())
            })
        }
        "csv" => {
            let widths = csv_widths(text);
            widths.first().is_some_and(|first| *first > 0 && widths.iter().all(|width| width == first))
        }
        _ => panic!("unexpected format {format}"),
    }
}

/// The number of cells of each CSV record (RFC 4180).
fn csv_widths(text: &str) -> Vec<usize> {
    let (mut widths, mut cells, mut is_quoted) = (Vec::new(), 1, false);
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells += 1,
            '\n' if !is_quoted => {
                widths.push(cells);
                cells = 1;
            }
            _ => {}
        }
    }
    assert!(!is_quoted, "{text}");
    widths
}

const FORMATS: [&str; 5] = ["json", "jsonl", "yaml", "csv", "table"];

fn place_of(format: &str) -> usize {
    FORMATS.iter().position(|known| *known == format).unwrap()
}

/// Runs `check` for every command and format, with the formats in parallel.
fn check_every_format(check: impl Fn(&str, &str) + Sync) {
    let commands = commands();
    std::thread::scope(|scope| {
        for format in FORMATS {
            let (check, commands) = (&check, &commands);
            scope.spawn(move || commands.iter().for_each(|command| check(format, command)));
        }
    });
}

#[test]
fn a_result_is_a_single_document_of_which_every_csv_column_can_be_selected() {
    let (fixture, _server) = Fixture::new();
    check_every_format(|format, command| {
        for call in calls(command).0 {
            let run = fixture.run(format, command, call).expect(0);
            // Help topics are texts without columns.
            if format == "csv" && command != "help" {
                let header = run.stdout.lines().next().unwrap();
                let same = fixture.run(format, command, &format!("{call} --columns {header}")).expect(0);
                assert_eq!(same.stdout.lines().next(), Some(header), "{command} {call}");
            }
            if format == "table" {
                assert!(!run.stdout.contains('\u{1b}') && !run.stderr.contains("error"), "{run:?}");
            } else {
                assert!(is_document(format, &run.stdout), "{command} {call} -o {format}: {run:?}");
                assert!(run.stderr.is_empty(), "{command} {call} -o {format}: {run:?}");
            }
        }
    });
}

#[test]
fn a_failure_is_one_line_of_json_without_a_result() {
    let (fixture, _server) = Fixture::new();
    check_every_format(|format, command| {
        let failures = calls(command).1.iter().chain(&[(2, "--no-such-flag")]);
        // One failure of each command in every format, of the others one in each.
        let is_due = |place: usize| place == 0 || place % FORMATS.len() == place_of(format);
        for (code, call) in failures.enumerate().filter(|(place, _)| is_due(*place)).map(|(_, call)| call) {
            let run = fixture.run(format, command, call).expect(*code);
            if format == "table" {
                assert!(run.stderr.contains("error"), "{command} {call}: {run:?}");
                continue;
            }
            // The problems of a file are the result of `validate`.
            let is_result = *code == 6 && *call == "bad.yaml" && command == "validate";
            assert!(run.stdout.is_empty() != is_result, "{command} {call} -o {format}: {run:?}");
            let problem = run.problem();
            assert_eq!(problem["exit"], *code, "{command} {call} -o {format}: {run:?}");
            assert!(problem["code"].is_string() && problem["title"].is_string(), "{problem}");
        }
    });
}
