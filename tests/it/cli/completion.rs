//! Completion of commands, values and files, as the shells ask for it.

use std::process::Command;

use super::Home;
use super::terminal::Session;

/// What is offered for the last word of `line`, however long it takes on a busy machine.
fn offered(home: &Home, line: &str) -> Vec<String> {
    offered_within(home, line, "30s")
}

fn offered_within(home: &Home, line: &str, timeout: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    let mut command = home.command(&["--"]);
    command.args(words).env("FORMS_COMPLETE", "fish").env("FORMS_COMPLETE_TIMEOUT", timeout);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn values_complete_from_the_tables_of_the_commands() {
    let home = Home::new();
    for (line, expected) in [
        ("forms pub", "publish"),
        ("forms list --status not", "not_open_yet"),
        ("forms deliveries list --status dead,pend", "dead,pending"),
        ("forms help exit", "exit-codes"),
        ("forms help subm", "submit"),
        ("forms explain untrusted", "untrusted_certificate"),
        ("forms explain smtp_def", "smtp_deferred"),
        ("forms show lunch -o json", "json"),
        ("forms show lunch --output=xl", "--output=xlsx"),
        ("forms validate --format git", "github"),
        ("forms show lunch --columns id,resp", "id,response_count"),
        ("forms explain --columns tit", "title"),
        ("forms create --file sur", "survey.yaml"),
        ("forms publish --dry", "--dry-run"),
        ("forms publish --insecure", "--insecure-http"),
    ] {
        let found = offered(&home, line);
        assert!(found.iter().any(|name| name == expected), "{line}: {found:?}");
        let (_, word) = line.rsplit_once(' ').unwrap();
        assert!(found.iter().all(|name| name.starts_with(word)), "{line}: {found:?}");
    }
}

#[test]
fn an_empty_word_gets_commands_and_values_but_no_options_aliases_or_files() {
    let home = Home::new();
    let commands = offered(&home, "forms ");
    assert!(commands.starts_with(&["init".to_owned(), "create".to_owned()]), "{commands:?}");
    for absent in ["update", "get", "ls", "rm", "--output", "exit-codes", "survey.yaml"] {
        assert!(!commands.iter().any(|name| name == absent), "{absent}: {commands:?}");
    }
    for present in ["show", "list", "delete"] {
        assert!(commands.iter().any(|name| name == present), "{present}: {commands:?}");
    }
    let codes = offered(&home, "forms explain ");
    assert!(!codes.is_empty() && codes.iter().all(|name| !name.starts_with('-')), "{codes:?}");
    for line in ["forms publish ", "forms list --status s", "forms --url "] {
        assert!(!offered(&home, line).contains(&"survey.yaml".to_owned()), "{line}");
    }
}

/// Returns a shell with the program in its path, if it is installed.
fn shell(home: &Home, name: &str, arguments: &[&str]) -> Option<Command> {
    let is_missing = Command::new(name).arg("--version").output().is_err();
    if is_missing {
        assert!(std::env::var_os("FORMS_REQUIRE_SHELLS").is_none(), "{name} is not installed");
        return None;
    }
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new(name);
    shell.args(arguments).env_clear().env("PATH", path).env("HOME", home.path()).current_dir(home.path());
    Some(shell)
}

fn start_bash(home: &Home, variables: &[(&str, &str)]) -> Session {
    let bash = shell(home, "bash", &["--norc", "--noprofile", "-i"]).unwrap();
    let variables = [&[("PS1", "ready> ")], variables].concat();
    let mut session = Session::start_program(80, home, &variables, &bash);
    session.wait_for_next("ready> ");
    session.type_keys("source <(forms completions bash)\r");
    session.wait_for_next("ready> ");
    session
}

#[test]
fn bash_completes_file_names_with_spaces() {
    let home = Home::new();
    home.write("my lunch.yaml", "title: Lunch\n");
    let mut session = start_bash(&home, &[]);
    session.type_keys("forms validate my\t");
    session.wait_for_next("my\\ lunch.yaml");
    session.type_keys("\r");
    session.wait_for_next("my lunch.yaml: ok");
    session.type_keys("exit\r");
    session.finish();
}

/// A form whose texts would do harm in a shell, or be split by one.
const HOSTILE: &str = r#"title: "Lunch: \"tab\t\" 'n' $(touch harm)\nmore"
slug: lunch
questions:
  - {id: dish, type: single_choice, title: "A: dish", options: ["ugly $(touch harm) `x`", {value: red, label: "Red: as\ta rose"}]}
  - {id: often, type: rating, title: How often}
  - {id: vegan, type: boolean, title: Vegan}
"#;

fn serve_hostile() -> (Home, super::RunningServer, [(&'static str, String); 3]) {
    let home = Home::new();
    home.write("hostile.yaml", HOSTILE);
    home.ok(&["--data", "store", "create", "--publish", "-f", "hostile.yaml"]);
    let server = home.serve();
    let key = std::fs::read_to_string(home.path().join("store/operator-key")).unwrap();
    let timeout = ("FORMS_COMPLETE_TIMEOUT", "30s".to_owned());
    let variables = [("FORMS_URL", server.url.clone()), ("FORMS_API_KEY", key.trim().to_owned()), timeout];
    (home, server, variables)
}

#[test]
fn forms_questions_and_options_complete_from_the_server() {
    let (home, _server, _) = serve_hostile();
    for (line, expected) in [
        ("forms publish l", &["lunch"][..]),
        ("forms responses delete lu", &["lunch"]),
        ("forms keys create --form lun", &["lunch"]),
        ("forms submit lunch d", &["dish="]),
        ("forms fill lunch v", &["vegan="]),
        ("forms responses edit lunch sub_x often=", &["often=1", "often=2", "often=3", "often=4", "often=5"]),
        ("forms responses lunch --where vegan=", &["vegan=true", "vegan=false"]),
        ("forms submit --quiet lunch dish=r", &["dish=red"]),
        ("forms submit nope d", &[]),
    ] {
        assert_eq!(offered(&home, line), expected, "{line}");
    }
    let id = offered(&home, "forms show frm_");
    assert!(id.len() == 1 && home.ok(&["show", &id[0]]).contains("lunch"), "{id:?}");
}

#[test]
fn contexts_complete_by_name() {
    let (home, server, _) = serve_hostile();
    home.ok(&["login", &server.url, "--name", "staging", "--key-file", "store/operator-key"]);
    for line in ["forms context use st", "forms logout st", "forms list --context st"] {
        assert_eq!(offered(&home, line), ["staging"], "{line}");
    }
    assert_eq!(offered(&home, "forms --context staging show lu"), ["lunch"]);
}

#[test]
fn nothing_is_offered_or_said_if_the_server_is_away_silent_or_has_the_store() {
    let (home, server, _) = serve_hostile();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    home.write("public-key", "fk_x");
    for target in [
        "--url http://127.0.0.1:1",
        &format!("--url {silent}"),
        "--data ./store",
        "--data ./missing",
        "--context nope",
        "--url nonsense",
        &format!("--url {} --key-file public-key", server.url),
        &format!("--url {} --key-file -", server.url.replace("127.0.0.1", "127.0.0.2")),
    ] {
        let line = format!("forms {target} show lu");
        assert_eq!(offered_within(&home, &line, "250ms"), [""; 0], "{target}");
    }
    drop(server);
    assert_eq!(offered(&home, "forms --data ./store show lu"), ["lunch"]);
}

#[test]
fn bash_completes_answers_behind_the_equals_sign() {
    let (home, _server, variables) = serve_hostile();
    let variables = variables.each_ref().map(|(name, value)| (*name, &**value));
    let mut session = start_bash(&home, &variables);
    session.type_keys("forms submit lunch of\t");
    session.wait_for_next("often=");
    session.type_keys("5 dish=r\t");
    session.wait_for_next("dish=red ");
    session.type_keys("vegan=f\t--dry-run\r");
    session.wait_for_next("(dry run)");
    session.type_keys("forms submit lunch dish=u\t--dry-run\r");
    session.wait_for_next("(dry run)");
    session.type_keys("exit\r");
    session.finish();
    assert!(!home.path().join("harm").exists());
}

#[test]
fn zsh_completes_answers_and_runs_nothing_that_they_contain() {
    let (home, _server, variables) = serve_hostile();
    let Some(zsh) = shell(&home, "zsh", &["-f", "-i"]) else { return };
    let variables = variables.each_ref().map(|(name, value)| (*name, &**value));
    let mut session = Session::start_program(80, &home, &variables, &zsh);
    session
        .type_keys("autoload -Uz compinit; compinit -u; source <(forms completions zsh); PS1='rea''dy> '\r");
    session.wait_for_next("ready> ");
    session.type_keys("forms submit lu\tof\t5 dish=r\tvegan=f\t--dry-run\r");
    session.wait_for_next("(dry run)");
    session.wait_for_next("ready> ");
    session.type_keys("forms submit lunch dish=u\t--dry-run\r");
    session.wait_for_next("(dry run)");
    session.type_keys("exit\r");
    session.finish();
    assert!(!home.path().join("harm").exists());
}

#[test]
fn fish_completes_answers_with_their_labels() {
    let (home, _server, variables) = serve_hostile();
    let script = "forms completions fish | source; complete -C 'forms submit lu'; complete -C 'forms submit lunch dish='";
    let Some(mut fish) = shell(&home, "fish", &["--no-config", "-c", script]) else { return };
    let output = fish.envs(variables).output().unwrap();
    let expected = "\
lunch\tLunch: \"tab\\t\" 'n' $(touch harm)\\nmore (published)
dish=ugly $(touch harm) `x`\tugly $(touch harm) `x`
dish=red\tRed: as\\ta rose
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert!(!home.path().join("harm").exists());
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(home.ok(&["completions", shell]).contains("FORMS_COMPLETE"), "{shell}");
    }
}
