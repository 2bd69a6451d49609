//! Help texts: every command has one, with an example and a limited length.

use clap::Command;
use forms::domain::integration::template::FILTERS;

use super::Home;
use super::terminal::Session;

/// Collects every command without subcommands, with its path.
pub(super) fn leaf_commands(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    let visible: Vec<_> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if visible.is_empty() || command.get_name() == "responses" {
        found.push((path.to_vec(), command.clone()));
    }
    for below in visible.into_iter().filter(|below| below.get_name() != "help") {
        leaf_commands(below, &[path, &[below.get_name().to_owned()]].concat(), found);
    }
}

fn all() -> Vec<(Vec<String>, Command)> {
    let mut found = Vec::new();
    leaf_commands(&forms::cli::command(), &[], &mut found);
    assert!(found.len() >= 14, "{}", found.len());
    found
}

#[test]
fn short_help_fits_on_a_screen_and_long_help_has_an_example() {
    let home = Home::new();
    for (path, command) in all() {
        let written = command.get_after_long_help().unwrap().to_string();
        assert!(written.lines().all(|line| line.len() <= 80), "{path:?} has a line of more than 80 columns");
        let mut arguments: Vec<_> = path.iter().map(String::as_str).collect();
        arguments.push("-h");
        let short = home.run(&arguments).expect(0).stdout;
        assert!(short.lines().count() <= 40, "{arguments:?} has {} lines", short.lines().count());
        let widest = short.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{arguments:?} has {widest} columns");
        assert!(short.contains("\nExamples:\n  "), "{short}");
        *arguments.last_mut().unwrap() = "--help";
        let long = home.run(&arguments).expect(0).stdout;
        for text in ["Examples:\n  ", "forms help environment", "forms help exit-codes"] {
            assert!(long.contains(text), "{arguments:?}: {long}");
        }
        assert!(!long.contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn commands_show_their_own_options_and_the_root_shows_the_global_ones() {
    let home = Home::new();
    let command = forms::cli::command();
    let globals = command.get_arguments().filter(|argument| argument.is_global_set());
    let globals: Vec<_> = globals.map(|argument| argument.get_long().unwrap()).collect();
    let root = home.ok(&["--help"]);
    let shows = |help: &str, name: &str| help.contains(&format!(" --{name}"));
    assert!(globals.len() > 9 && globals.iter().all(|name| shows(&root, name)), "{root}");
    let (listed, _) = root.split_once("Global options:").unwrap();
    let lines = listed.lines().skip_while(|line| !line.starts_with("WRITE"));
    let cells = lines
        .flat_map(|line| [line.get(9..), line.get(43..).and_then(|rest| rest.strip_prefix(' '))])
        .flatten();
    let names: Vec<_> = cells.filter_map(|cell| cell.split_whitespace().next()).collect();
    assert_eq!(names, command.get_subcommands().map(Command::get_name).collect::<Vec<_>>());
    for (path, _) in all() {
        for flag in ["-h", "--help"] {
            let arguments = path.iter().map(String::as_str).chain([flag]).collect::<Vec<_>>();
            let help = home.ok(&arguments);
            let (options, rest) = help.split_once("  -h, --help").unwrap();
            let shown: Vec<_> = globals.iter().filter(|name| shows(options, name)).collect();
            let expected: &[&&str] = match &*path.join(" ") {
                "serve" => &[&"data"],
                "login" => &[&"key-file"],
                _ => &[],
            };
            assert_eq!(shown, expected, "{arguments:?}");
            assert!(rest.contains("\nGlobal options (") && !shows(rest, "retries"), "{help}");
        }
    }
    // Global options are still suggested for typos.
    let run = home.run(&["list", "--outptu", "json"]).expect(2);
    assert!(run.stderr.contains("'--output'"), "{run:?}");
}

#[test]
fn forms_without_arguments_shows_help_and_exits_2() {
    let home = Home::new();
    let run = home.run(&[]).expect(2);
    assert!(run.stdout.is_empty() && run.stderr.contains("WRITE    init"), "{run:?}");
    let short = home.run(&["-h"]).expect(0).stdout;
    assert!(short.lines().count() <= 48);
    assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
    assert!(!short.contains("\n\n\n") && short.ends_with("q1=hello\n"), "{short}");
}

#[test]
fn help_topics_cover_the_environment_exit_codes_and_formats() {
    let home = Home::new();
    let codes = home.ok(&["help", "exit-codes"]);
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "70", "130"] {
        assert!(
            codes.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))),
            "{code}: {codes}"
        );
    }
    let environment = home.ok(&["help", "environment"]);
    assert!(environment.contains("  FORMS_URL "));
    assert!(environment.lines().all(|line| line.len() <= 80), "{environment}");
    for arguments in [&["-h"][..], &["help", "environment"], &["help", "formatting"]] {
        let (_, screen) = Session::start_at_width(40, &home, &[("NO_COLOR", "1")], arguments).finish();
        assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    }
    assert!(home.ok(&["help", "formatting"]).contains("  -o jsonl "));
    let codes = home.run(&["help", "exit-codes", "-o", "json"]).expect(0).json();
    assert_eq!(codes["exit_codes"][2]["code"], 2);
    assert!(home.run(&["help", "environment", "-o", "json"]).json()["variables"][0]["name"] == "FORMS_URL");
}

#[test]
fn help_with_a_command_equals_its_help_flag() {
    let home = Home::new();
    assert_eq!(home.ok(&["help", "responses", "list"]), home.ok(&["responses", "list", "--help"]));
    assert_eq!(home.ok(&["help"]), home.ok(&["--help"]));
    let run = home.run(&["help", "submti"]).expect(2);
    assert!(run.stderr.contains("a similar name exists: submit"), "{run:?}");
}

#[test]
fn help_with_a_type_of_integrations_has_its_section_only() {
    let home = Home::new();
    let page = home.ok(&["help", "integrations"]);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let section = home.ok(&["help", "integrations", "slack"]);
    assert!(
        section.starts_with("  slack  ") && page.contains(&format!("\n{section}  discord  ")),
        "{section}"
    );
    let json = home.run(&["help", "integrations", "slack", "-o", "json"]).expect(0).json();
    assert!(FILTERS.iter().all(|filter| page.contains(filter)), "{page}");
    assert_eq!(json["integrations"].as_array().unwrap().len(), 1);
    assert_eq!(json["integrations"][0]["type"], "slack");
    let unknown = home.run(&["help", "integrations", "slak"]).expect(2).stderr;
    assert!(unknown.contains("a similar name exists: slack;"), "{unknown}");
    assert!(unknown.contains("types are webhook, csv_file, email,"), "{unknown}");
    assert_eq!(home.ok(&["help", "integrations", "list"]), home.ok(&["integrations", "list", "--help"]));
}

#[test]
fn there_is_no_flag_for_the_key_because_other_users_could_see_it() {
    let help = Home::new().ok(&["--help"]);
    assert!(!help.contains("api-key "), "{help}");
}

#[test]
fn the_help_of_responses_lists_columns_and_filters() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let help = home.ok(&["responses", "list", "--help"]);
    assert!(help.contains("Columns are id, submitted_at,"), "{help}");
    home.ok(&["--data", "store", "responses", &id, "--columns", "id,submitted_at,q1"]);
    let short = home.ok(&["responses", "-h"]);
    assert!(!short.contains("see below") && short.contains("score.gte=4"), "{short}");
}
