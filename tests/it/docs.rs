//! The README and `docs/`: their tables are generated, and their examples are run as written.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use forms::api::Code;
use forms::cli::commands::help::hide_globals;
use forms::cli::output::exit::Exit;
use forms::domain::delivery::error_code::ErrorCode;
use forms::domain::integration::spec::{IntegrationSpec, Member, Need};
use forms::domain::integration::{Integration, IntegrationType};
use forms::domain::json as forms_json;
use forms::domain::language::ENGLISH;
use forms::domain::question::QuestionKind;
use forms::domain::validation::budget::Budget;
use forms::domain::validation::fields::Fields;
use forms::domain::validation::limits::Limits;
use forms::domain::validation::violation::Rule;
use serde_json::json;

use crate::cli::terminal::Session;
use crate::cli::{Home, RunningServer};
use crate::golden::assert_golden;
use crate::layers::sources;
use crate::questions::required_settings;

fn document(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// `text` with `block` between the marker that begins with `name` and the next end marker.
fn with_block(text: &str, name: &str, block: &str) -> String {
    let begin = text.find(&format!("<!-- {name}:")).unwrap_or_else(|| panic!("there is no block `{name}`"));
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = begin + text[begin..].find("<!-- end -->").unwrap();
    format!("{}{block}{}", &text[..begin], &text[end..])
}

fn exit_codes() -> String {
    let rows = Exit::ALL.map(|(exit, _, meaning)| format!("| {} | {meaning} |\n", exit.code()));
    format!("| Exit code | Meaning |\n|---|---|\n{}", rows.concat())
}

fn codes() -> String {
    let row =
        |code: &Code| format!("| {} | `{code}` | {}. {} |\n", code.status(), code.title(), code.meaning());
    let rows = Code::ALL.iter().map(row);
    format!("| Status | Code | Meaning |\n|---|---|---|\n{}", rows.collect::<String>())
}

fn rules() -> String {
    let rows = Rule::ALL.iter().map(|rule| format!("| `{}` | {} |\n", rule.name(), rule.meaning()));
    format!("| Code | Meaning |\n|---|---|\n{}", rows.collect::<String>())
}

fn questions() -> String {
    let rows = QuestionKind::NAMES.iter().map(|name| {
        let (kind, settings) = read_with_required_settings(name);
        let rules = kind.rules();
        let settings: Vec<_> = settings.iter().map(|setting| format!("`{setting}`")).collect();
        format!(
            "| `{name}` | {} | `{}` | {} |\n",
            rules.expects(ENGLISH),
            rules.example(),
            settings.join(", ")
        )
    });
    format!("| `type` | Answer | For instance | Settings |\n|---|---|---|---|\n{}", rows.collect::<String>())
}

/// The types of integrations, a line each.
fn overview() -> String {
    let rows = IntegrationType::ALL.map(|one| {
        let IntegrationSpec { about, repeats, .. } = one.spec();
        let promise = repeats.split([':', ';', '.']).next().unwrap();
        format!("| [`{one}`](#{one}) | {about} | {} |\n", promise.to_lowercase())
    });
    format!("| Type | Sends | Repeats |\n|---|---|---|\n{}", rows.concat())
}

/// What each type of integration takes.
fn types() -> String {
    let row = |member: &Member| {
        let need = match member.need {
            Need::Required => "required".to_owned(),
            Need::Optional => String::new(),
            Need::Default(value) => format!("default `{}`", value.trim_matches('"')),
        };
        let secret = if member.is_secret() { "secret" } else { "" };
        let notes: Vec<_> = [&*need, secret].into_iter().filter(|note| !note.is_empty()).collect();
        format!("| `{}` | {} | {} |\n", member.name, member.about.replace('|', "\\|"), notes.join(", "))
    };
    let section = |one: IntegrationType| {
        let IntegrationSpec { about, members, set_up, limits, repeats, source, .. } = one.spec();
        let rows: String = members.iter().map(row).collect();
        let source = if source.is_empty() { String::new() } else { format!(" ([source]({source}))") };
        format!(
            "### {one}\n\n{about}\n\n| Member | Meaning | |\n|---|---|---|\n{rows}\n\
             * **Set-up:** {set_up}\n* **Limits:** {limits}{source}\n* **Repeats:** {repeats}\n"
        )
    };
    IntegrationType::ALL.map(section).join("\n")
}

/// The waits between the attempts of each type of integration.
fn schedules() -> String {
    let mut schedules: Vec<(Vec<i64>, Vec<String>)> = Vec::new();
    for one in IntegrationType::ALL {
        let waits = stored_integration(one).retry_schedule(None).to_vec();
        let name = format!("`{one}`");
        match schedules.iter_mut().find(|(known, _)| *known == waits) {
            Some((_, names)) => names.push(name),
            None => schedules.push((waits, vec![name])),
        }
    }
    let row = |(waits, names): &(Vec<i64>, Vec<String>)| {
        let hours = waits.iter().sum::<i64>() as f64 / 3_600_000.0;
        let texts: Vec<_> = waits.iter().map(|wait| duration(*wait)).collect();
        format!("| {} | {} | {} | {hours:.1} h |\n", names.join(", "), waits.len(), texts.join(", "))
    };
    let rows: String = schedules.iter().map(row).collect();
    format!("| Type | Retries | Waits | Together |\n|---|---|---|---|\n{rows}")
}

/// An integration of the type `one` as stored, with as few settings as can be.
fn stored_integration(one: IntegrationType) -> Integration {
    let kind = json!({ "type": one.name() });
    let stored = json!({
        "id": "int_5w3n8r1t6y2d", "name": "a", "enabled": true, "events": [], "kind": kind,
        "created_at": "2026-11-22T12:00:00.000Z", "updated_at": "2026-11-22T12:00:00.000Z",
    });
    serde_json::from_value(stored).unwrap()
}

/// A wait of whole seconds, minutes or hours: `5 min`.
fn duration(millis: i64) -> String {
    let (unit, name) = [(3_600_000, "h"), (60_000, "min"), (1_000, "s")]
        .into_iter()
        .find(|(unit, _)| millis % unit == 0)
        .unwrap();
    format!("{} {name}", millis / unit)
}

/// The codes of failed attempts.
fn delivery_codes() -> String {
    let rows = ErrorCode::ALL.map(|code| format!("| `{code}` | {} |\n", code.meaning()));
    format!("| Code | Meaning |\n|---|---|\n{}", rows.concat())
}

/// All commands that do something by themselves, each with its arguments.
fn commands() -> String {
    let mut root = hide_globals(forms::cli::command());
    root.build();
    let mut rows = String::new();
    add_commands(&root, &mut rows);
    format!("| Command | Does |\n|---|---|\n{rows}")
}

fn add_commands(command: &clap::Command, rows: &mut String) {
    for below in command.get_subcommands() {
        if !below.is_subcommand_required_set() {
            let usage = below.clone().render_usage().to_string();
            let usage =
                usage.trim_start_matches("Usage: ").replace("[OPTIONS] ", "").replace(" [OPTIONS]", "");
            let usage = usage.lines().next().unwrap().replace('|', "\\|");
            *rows += &format!("| `{usage}` | {} |\n", below.get_about().unwrap());
        }
        add_commands(below, rows);
    }
}

#[test]
fn every_code_of_a_failed_attempt_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![root.join("domain/integration/chat/classify.rs")];
    sources(&root.join("delivery"), &mut files);
    sources(&root.join("domain/delivery"), &mut files);
    let all: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for code in ErrorCode::ALL {
        let is_used = regex::Regex::new(&format!(r"ErrorCode::{code:?}\b")).unwrap().is_match(&all);
        assert!(is_used, "`{code}` is not used");
    }
}

/// A question of type `name` with only its required settings, and the names of all settings of its type.
fn read_with_required_settings(name: &str) -> (QuestionKind, Vec<String>) {
    let mut violations = Vec::new();
    let settings = forms_json::parse(&format!("{{{},\"unknown\":null}}", required_settings(name))).unwrap();
    let mut fields = Fields::open(&settings, "", "a question", &mut violations).unwrap();
    let kind = QuestionKind::read(name, &mut fields, &mut Budget::new(&Limits::default())).unwrap();
    fields.close(&["type"]);
    (kind, violations.remove(1).allowed)
}

#[test]
fn the_docs_show_the_tables_of_the_code() {
    let files = document("docs/form-files.md");
    assert_golden("../../../docs/form-files.md", &with_block(&files, "questions", &questions()));
    let errors = with_block(&document("docs/errors.md"), "codes", &codes());
    let errors = with_block(&errors, "rules", &rules());
    assert_golden("../../../docs/errors.md", &with_block(&errors, "exit codes", &exit_codes()));
    let integrations = with_block(&document("docs/integrations.md"), "overview", &overview());
    let integrations = with_block(&integrations, "types", &types());
    let integrations = with_block(&integrations, "schedules", &schedules());
    let integrations = with_block(&integrations, "delivery codes", &delivery_codes());
    assert_golden("../../../docs/integrations.md", &integrations);
    assert_golden("../../../docs/cli.md", &with_block(&document("docs/cli.md"), "commands", &commands()));
}

/// The form whose problems the README shows.
const WRONG: &str = "title: Lunch order
questions:
  - id: dish
    type: single_choise
    title: What would you like?
    options: [soup, salad]
  - type: rating
    title: How was it last week?
    required: yes please
";

/// Shell commands that end the server of the first README block.
const STOP: &str = "kill %1\nwait\n";

#[test]
fn the_readme_shows_what_its_commands_print() {
    let text = document("README.md");
    let home = Home::new();
    let scene = blocks(&text, "sh")[0];
    let script = format!("{}echo END\n{STOP}", with_free_port(scene));
    let session = Session::start_program(80, &home, &[("NO_COLOR", "1")], &bash(&home, &script));
    let (code, printed) = session.finish();
    let (printed, _) = printed.split_once("END").unwrap();
    assert_eq!(code, Some(0), "{printed}");
    let filled = with_output(&text, "```text\n", &with_example_ids(&printed.replace('\r', "")));
    home.write("lunch.yaml", WRONG);
    let problems = home.run(&["validate", "lunch.yaml"]).expect(6).stderr;
    assert_golden("../../../README.md", &with_output(&filled, "$ forms validate lunch.yaml\n", &problems));
}

/// `text` with `printed` after `begin`, up to the end of the block.
fn with_output(text: &str, begin: &str, printed: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once("```").unwrap();
    format!("{before}{begin}{printed}```{after}")
}

/// The blocks of `text` that begin with the line ```` ```language ````.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// `text` with the ids and times of the examples in place of its own.
fn with_example_ids(text: &str) -> String {
    let parts = [
        ("frm_[0-9a-z]{12}", "frm_7k2m9q4x1abz"),
        ("sub_[0-9a-z]{26}", "sub_01m81yy3a44cvktw1ah7ycr7zq"),
        ("127.0.0.1:[0-9]+", "127.0.0.1:8787"),
        ("\"[0-9a-f]{16}\"", "\"4b9b27f6a9d09a40\""),
        ("\"20[0-9T:.-]+Z\"", "\"2026-11-22T12:00:00.000Z\""),
    ];
    parts.iter().fold(text.to_owned(), |text, (pattern, example)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *example).into_owned()
    })
}

#[test]
fn the_calls_of_the_api_get_the_answers_that_are_shown() {
    const SEPARATOR: &str = "--- next call ---\n";
    let text = document("docs/api.md");
    let home = Home::new();
    let server = home.serve();
    let script = blocks(&text, "sh").join(&format!("echo '{}'\n", SEPARATOR.trim()));
    let printed = run_in(&home, &script.replace("http://127.0.0.1:8787", &server.url));
    let mut answers = printed.split(SEPARATOR);
    assert_eq!(answers.next(), Some(""), "setting two variables prints nothing");
    let mut parts = text.split("```json\n");
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, after) = part.split_once("```").unwrap();
        filled += &format!("```json\n{}```{after}", with_example_ids(answers.next().unwrap()));
    }
    assert!(answers.next().is_none() && filled.matches("curl -sS").count() == 5);
    assert_golden("../../../docs/api.md", &filled);
}

/// `script` as a person would type it in bash, in `home`.
fn bash(home: &Home, script: &str) -> Command {
    let folder = Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(home.path()).env_clear().stdin(Stdio::null());
    command.env("HOME", home.path());
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    command
}

/// Runs `script` in `home` and gives what it printed.
fn run_in(home: &Home, script: &str) -> String {
    stdout_of(&mut bash(home, script))
}

fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fails unless `PyYAML` parses `text` as an object.
fn parse_with_pyyaml(name: &str, text: &str) {
    let script = "import sys, yaml; assert isinstance(yaml.safe_load(sys.argv[1]), dict)";
    let output = Command::new("python3").args(["-c", script, text]).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Fails unless the form of the file can be created and published, and again from the file that is shown of it.
fn create_twice(home: &Home, path: &str) {
    let local = |arguments: &[&str]| home.ok(&[&["--data", "store"], arguments].concat());
    let show = |id: &str| local(&["show", id.trim(), "-o", "yaml"]);
    home.ok(&["validate", path]);
    let first = local(&["create", "--publish", "-f", path]);
    let file = show(&first);
    // A slug belongs to one form.
    local(&["delete", "--yes", first.trim()]);
    home.write("again.yaml", &file);
    assert_eq!(show(&local(&["create", "-f", "again.yaml"])), file, "{path}");
}

#[test]
fn the_examples_and_the_docs_are_valid_forms_and_valid_yaml_for_pyyaml() {
    let (home, mut examples) = (Home::new(), 0);
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let path = entry.unwrap().path();
        parse_with_pyyaml(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
        create_twice(&home, path.to_str().unwrap());
        examples += 1;
    }
    let mut forms = 0;
    for name in ["docs/form-files.md", "docs/integrations.md", "docs/pages.md"] {
        for block in blocks(&document(name), "yaml") {
            parse_with_pyyaml(name, block);
            home.write("form.yaml", block);
            assert_eq!(home.ok(&["validate", "form.yaml"]), "form.yaml: ok\n", "{name}");
            forms += 1;
        }
    }
    assert!(examples >= 10 && forms >= 4, "{examples} examples, {forms} forms");
}

/// Makes the server take any free port; the commands must find it.
fn with_free_port(script: &str) -> String {
    let serve = "forms serve --data ./store";
    assert!(script.contains(serve), "{script}");
    script.replace(serve, &format!("{serve} --listen 127.0.0.1:0"))
}

#[test]
fn the_webhook_of_the_readme_arrives_as_written() {
    let text = document("README.md");
    let scripts = blocks(&text, "sh");
    let receive = scripts.iter().find(|script| script.contains("forms listen")).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The receiver listens at that port and writes into a pipe, from which the test waits for the event.
    let listen = format!("forms listen --secret-file secret --listen 127.0.0.1:{port} >&3 &");
    let receive = receive
        .replace(":9000", &format!(":{port}"))
        .replace("forms listen --secret-file secret &", &listen)
        .replace(" &\n", " 2>/dev/null &\n");
    let (first, second) = (with_free_port(scripts[0]), with_free_port(&receive));
    let wait = "grep -m1 -P '\\tverified\\t200\\t' <&3\nkill %1 %2\nwait || true\n";
    let script = format!("mkfifo events\nexec 3<>events\n{first}{STOP}{second}{wait}");
    let stdout = run_in(&Home::new(), &script);
    assert!(stdout.contains("\tsubmission.completed\tevt_"), "{stdout}");
}

/// Two servers, and the repository and environment of a pipeline that deploys to both.
struct Pipeline {
    staging: Environment,
    production: Environment,
    repository: Home,
}

/// A server with the keys that `docs/ci.md` creates on it.
struct Environment {
    home: Home,
    server: RunningServer,
    plan_key: String,
    deploy_key: String,
}

impl Environment {
    fn start(create_keys: &str) -> Self {
        let home = Home::new();
        let server = home.serve();
        let keys = run_in(&home, create_keys);
        let mut keys = keys.lines().map(str::to_owned);
        let (plan_key, deploy_key) = (keys.next().unwrap(), keys.next().unwrap());
        Self { home, server, plan_key, deploy_key }
    }

    fn title(&self) -> serde_json::Value {
        self.home.run(&["show", "lunch", "-o", "json"]).expect(0).json()["title"].clone()
    }
}

impl Pipeline {
    /// Runs `script` in the repository, with the addresses and keys as the secrets of a pipeline.
    fn run(&self, script: &str) -> Output {
        let mut command = bash(&self.repository, script);
        let Self { staging, production, .. } = self;
        command.env("CI", "true");
        command.env("STAGING_URL", &staging.server.url).env("STAGING_DEPLOY_KEY", &staging.deploy_key);
        command.env("PRODUCTION_URL", &production.server.url);
        command.env("PRODUCTION_PLAN_KEY", &production.plan_key);
        command.env("PRODUCTION_DEPLOY_KEY", &production.deploy_key);
        command.output().unwrap()
    }

    #[track_caller]
    fn ok(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Whether `script`, indented, is a step of `workflow`.
fn is_step(workflow: &str, script: &str) -> bool {
    let lines = |text: &str| {
        text.lines()
            .map(|line| line.trim().trim_start_matches("- run: ").to_owned() + "\n")
            .collect::<String>()
    };
    lines(workflow).contains(&lines(script))
}

#[test]
fn the_workflow_of_the_docs_plans_tests_deploys_goes_back_and_notices_drift() {
    let text = document("docs/ci.md");
    let [create_keys, check, plan, to_staging, to_production, drift, export] = blocks(&text, "sh")[..] else {
        panic!("{text}")
    };
    let [form, tests, workflow] = blocks(&text, "yaml")[..] else { panic!("{text}") };
    parse_with_pyyaml("docs/ci.md", workflow);
    for script in [check, plan, to_staging, to_production, drift, export] {
        assert!(is_step(workflow, script), "{script}");
    }
    let (staging, production) = (Environment::start(create_keys), Environment::start(create_keys));
    let pipeline = Pipeline { staging, production, repository: Home::new() };
    let repository = &pipeline.repository;
    fs::create_dir(repository.path().join("forms")).unwrap();
    let write = |form: &str| drop(repository.write("forms/lunch.yaml", form));
    let comment = || fs::read_to_string(repository.path().join("plan.md")).unwrap();
    write(form);
    repository.write("forms/lunch.test.yaml", tests);

    // A pull request: nothing changes.
    pipeline.ok(check);
    assert!(
        fs::read_to_string(repository.path().join("tests.xml"))
            .unwrap()
            .contains("a salad needs no dressing")
    );
    pipeline.ok(plan);
    assert!(comment().starts_with("### Forms: 1 to create on http"), "{}", comment());
    write(&form.replace("show_if: { dish: salad }", "show_if: { dish: soup }"));
    assert_eq!(pipeline.run(check).status.code(), Some(1));
    write(&form.replace("dish: salad }", "dish: saldad }"));
    assert_eq!(pipeline.run(check).status.code(), Some(6));
    write(form);

    // Merged and tagged.
    for deploy in [to_staging, to_production] {
        assert!(pipeline.ok(deploy).ends_with("\tlunch\tcreated\n"));
        assert!(pipeline.ok(deploy).ends_with("\tlunch\tunchanged\n"));
    }
    for Environment { home, .. } in [&pipeline.staging, &pipeline.production] {
        home.ok(&["submit", "lunch", "dish=soup"]);
    }
    pipeline.ok(drift);

    // Another change, seen before it is made, and taken back.
    write(&form.replace("Lunch order", "Lunch on Friday").replace("[soup, salad]", "[salad]"));
    pipeline.ok(plan);
    assert!(comment().contains("\n- dish   option soup  ! 1 answer says soup\n"), "{}", comment());
    assert_eq!(pipeline.production.title(), "Lunch order");
    assert_eq!(pipeline.run(drift).status.code(), Some(1));
    pipeline.ok(to_production);
    assert_eq!(pipeline.production.title(), "Lunch on Friday");
    write(form);
    pipeline.ok(to_production);
    assert_eq!(pipeline.production.title(), "Lunch order");

    // A change by hand is noticed.
    pipeline.production.home.ok(&["edit", "lunch", "--title", "By hand"]);
    let found = pipeline.run(drift);
    let shown = String::from_utf8(found.stdout).unwrap();
    assert!(found.status.code() == Some(1) && shown.contains("\"By hand\" → \"Lunch order\""), "{shown}");

    pipeline.ok(export);
    let exported = fs::read_to_string(repository.path().join("exports/lunch.csv")).unwrap();
    assert!(
        exported.starts_with("id,submitted_at,dish,dressing\n") && exported.ends_with(",soup,\n"),
        "{exported}"
    );
}

#[test]
fn a_short_pipeline_deploys_and_submits() {
    const SCRIPT: &str = r#"
forms validate --format github forms/*.yaml
forms diff -f forms/ --exit-code || [ $? = 1 ]
forms apply -f forms/ --publish --no-input
id=$(forms create -f survey.yaml) && forms publish "$id" && forms submit "$id" q1=hello
forms responses "$id" -o jsonl | jq -r '.answers.q1' | grep -qx hello
"#;
    let home = Home::new();
    let _server = home.serve();
    fs::create_dir(home.path().join("forms")).unwrap();
    home.write("forms/lunch.yaml", "title: Lunch\nslug: lunch\nquestions: [{type: email, title: Mail}]\n");
    for action in ["created", "unchanged"] {
        let stdout = run_in(&home, SCRIPT);
        assert!(stdout.contains(&format!("\tlunch\t{action}\n")), "{stdout}");
    }
}

#[test]
fn the_backup_of_the_docs_is_restored_and_moved_as_written() {
    let text = document("docs/operating.md");
    let (_, chapter) = text.split_once("\n## Back up\n").unwrap();
    let [backup, restore, move_away, verify, salvage, ..] = blocks(chapter, "sh")[..] else {
        panic!("{chapter}")
    };
    let home = Home::new();
    let server = home.serve();
    let form = home.published_form(&[]);
    home.ok(&["submit", &form, "q1=hello"]);
    run_in(&home, backup);
    run_in(&home, verify);
    drop(server);
    let (salvage, _) = salvage.trim().split_once('\n').unwrap();
    run_in(&home, salvage);
    assert!(home.ok(&["--data", "salvaged", "responses", &form]).contains("\thello"));
    let (restore, serve) = restore.trim().split_once('\n').unwrap();
    run_in(&home, restore);
    let serve: Vec<_> = serve.split_whitespace().skip(1).chain(["--listen", "127.0.0.1:0"]).collect();
    let server = home.serve_with(&serve);
    assert!(home.ok(&["responses", &form]).contains("\thello"));
    drop(server);
    // Both machines are this one.
    let here = "scp() { mkdir there; cp \"$1\" there/; }; ssh() { shift; (cd there && \"$@\"); }";
    run_in(&home, &format!("{here}; {move_away}"));
    assert!(home.ok(&["--data", "there/store", "responses", &form]).contains("\thello"));
}
