//! Help: every command has it, short enough to read and with an example to copy.

use clap::Command;

use super::Home;

/// The names of every command that has no commands below it, with the help it gives.
pub(super) fn leaves(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    let visible: Vec<_> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if visible.is_empty() || command.get_name() == "responses" {
        found.push((path.to_vec(), command.clone()));
    }
    for below in visible.into_iter().filter(|below| below.get_name() != "help") {
        leaves(below, &[path, &[below.get_name().to_owned()]].concat(), found);
    }
}

fn all() -> Vec<(Vec<String>, Command)> {
    let mut found = Vec::new();
    leaves(&forms::cli::command(), &[], &mut found);
    assert!(found.len() >= 14, "{}", found.len());
    found
}

#[test]
fn short_help_fits_a_screen_and_long_help_has_an_example() {
    let home = Home::new();
    for (path, command) in all() {
        let written = command.get_after_long_help().unwrap().to_string();
        assert!(written.lines().all(|line| line.len() <= 80), "{path:?} is broken at 80 columns");
        let mut arguments: Vec<_> = path.iter().map(String::as_str).collect();
        arguments.push("-h");
        let short = home.run(&arguments).expect(0).stdout;
        assert!(short.lines().count() <= 40, "{arguments:?} has {} lines", short.lines().count());
        let widest = short.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{arguments:?} has {widest} columns");
        assert!(short.contains("\nExamples:\n  "), "{short}");
        *arguments.last_mut().unwrap() = "--help";
        let long = home.run(&arguments).expect(0).stdout;
        for block in ["Examples:\n  ", "Environment:\n  FORMS_URL", "Exit codes:\n  0 done, "] {
            assert!(long.contains(block), "{arguments:?}: {long}");
        }
        assert!(!long.contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn commands_show_their_own_options_and_the_root_those_of_all() {
    let home = Home::new();
    let command = forms::cli::command();
    let globals = command.get_arguments().filter(|argument| argument.is_global_set());
    let globals: Vec<_> = globals.map(|argument| argument.get_long().unwrap()).collect();
    let root = home.ok(&["--help"]);
    let shows = |help: &str, name: &str| help.contains(&format!(" --{name}"));
    assert!(globals.len() > 9 && globals.iter().all(|name| shows(&root, name)), "{root}");
    let (listed, _) = root.split_once("Global options:").unwrap();
    for (path, _) in all() {
        assert!(listed.split_whitespace().any(|word| word == path[0]), "{path:?}: {listed}");
        for flag in ["-h", "--help"] {
            let arguments = path.iter().map(String::as_str).chain([flag]).collect::<Vec<_>>();
            let help = home.ok(&arguments);
            let (options, rest) = help.split_once("  -h, --help").unwrap();
            let shown: Vec<_> = globals.iter().filter(|name| shows(options, name)).collect();
            let expected: &[&&str] = if path == ["serve"] { &[&"data"] } else { &[] };
            assert_eq!(shown, expected, "{arguments:?}");
            assert!(rest.contains("\nGlobal options (") && !shows(rest, "retries"), "{help}");
        }
    }
    // Typed wrongly, or half, they are known all the same.
    let run = home.run(&["list", "--outptu", "json"]).expect(2);
    assert!(run.stderr.contains("'--output'"), "{run:?}");
    let script = home.ok(&["completions", "bash"]);
    let (_, list) = script.split_once("forms__subcmd__list)").unwrap();
    assert!(list.lines().nth(1).unwrap().contains("--insecure-http"), "{list}");
}

#[test]
fn every_command_refuses_a_flag_it_does_not_know() {
    let home = Home::new();
    for (path, _) in all() {
        let mut arguments: Vec<_> = path.iter().map(String::as_str).collect();
        arguments.push("--no-such-flag");
        let run = home.run(&arguments).expect(2);
        assert!(run.stdout.is_empty() && run.stderr.contains("--no-such-flag"), "{arguments:?} {run:?}");
    }
}

#[test]
fn every_destructive_command_takes_yes() {
    let deletes: Vec<_> = all().into_iter().filter(|(path, _)| path.last().unwrap() == "delete").collect();
    assert!(deletes.len() >= 2);
    for (path, delete) in deletes {
        assert!(delete.get_arguments().any(|argument| argument.get_long() == Some("yes")), "{path:?}");
    }
}

#[test]
fn forms_alone_shows_its_help_and_is_a_mistake() {
    let home = Home::new();
    let run = home.run(&[]).expect(2);
    assert!(run.stdout.is_empty() && run.stderr.contains("WRITE    create"), "{run:?}");
    let short = home.run(&["-h"]).expect(0).stdout;
    assert!(short.lines().count() <= 40);
    assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
    assert!(!short.contains("\n\n\n") && short.ends_with("questions\n"), "{short}");
}

#[test]
fn topics_tell_of_the_environment_the_exit_codes_and_the_formats() {
    let home = Home::new();
    let codes = home.ok(&["help", "exit-codes"]);
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "70", "130"] {
        assert!(
            codes.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))),
            "{code}: {codes}"
        );
    }
    assert!(home.ok(&["help", "environment"]).contains("  FORMS_URL "));
    assert!(home.ok(&["help", "formatting"]).contains("  -o jsonl "));
    let codes = home.run(&["help", "exit-codes", "-o", "json"]).expect(0).json();
    assert_eq!(codes["exit_codes"][2]["code"], 2);
    assert!(home.run(&["help", "environment", "-o", "json"]).json()["variables"][0]["name"] == "FORMS_URL");
}

#[test]
fn help_is_that_of_the_command() {
    let home = Home::new();
    assert_eq!(home.ok(&["help", "responses", "list"]), home.ok(&["responses", "list", "--help"]));
    assert_eq!(home.ok(&["help"]), home.ok(&["--help"]));
    let run = home.run(&["help", "submti"]).expect(2);
    assert!(run.stderr.contains("a similar name exists: submit"), "{run:?}");
}

#[test]
fn a_misspelt_command_is_told_the_right_one() {
    let run = Home::new().run(&["publsh"]).expect(2);
    assert!(run.stderr.contains("'publish'"), "{run:?}");
    assert_eq!(Home::new().run(&["publi"]).code, Some(2), "commands have no abbreviations");
}

#[test]
fn a_key_cannot_be_given_where_other_users_see_it() {
    let help = Home::new().ok(&["--help"]);
    assert!(!help.contains("api-key "), "{help}");
}

#[test]
fn help_on_answers_tells_what_the_command_takes() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let help = home.ok(&["responses", "list", "--help"]);
    assert!(help.contains("Columns are id, submitted_at,"), "{help}");
    home.ok(&["--data", "store", "responses", &id, "--columns", "id,submitted_at,q1"]);
    let short = home.ok(&["responses", "-h"]);
    assert!(!short.contains("see below") && short.contains("score.gte=4"), "{short}");
}
