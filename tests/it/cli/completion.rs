//! Completion of commands, values and files, as the shells ask for it.

use std::process::Command;

use super::Home;
use super::terminal::Session;

/// What is offered for the last word of `line`.
fn offered(home: &Home, line: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    let mut command = home.command(&["--"]);
    command.args(words).env("FORMS_COMPLETE", "fish");
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
    assert!(commands.starts_with(&["create".to_owned(), "edit".to_owned()]), "{commands:?}");
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

#[test]
fn bash_completes_file_names_with_spaces() {
    let home = Home::new();
    home.write("my lunch.yaml", "title: Lunch\n");
    home.write("completion.bash", &home.ok(&["completions", "bash"]));
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"]).env_clear().env("PATH", path).env("HOME", home.path());
    let mut session = Session::start_program(80, &home, &[("PS1", "ready> ")], &bash);
    session.wait_for_next("ready> ");
    session.type_keys("source ./completion.bash\r");
    session.wait_for_next("ready> ");
    session.type_keys("forms validate my\t");
    session.wait_for_next("my\\ lunch.yaml");
    session.type_keys("\r");
    session.wait_for_next("my lunch.yaml: ok");
    session.type_keys("exit\r");
    session.finish();
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(home.ok(&["completions", shell]).contains("FORMS_COMPLETE"), "{shell}");
    }
}
