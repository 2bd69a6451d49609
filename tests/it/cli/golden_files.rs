//! Files generated from the definition of the command line: manual pages and completion scripts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap_mangen::Man;
use forms::cli::commands::help::TOPICS;

use super::Home;
use crate::golden::assert_golden;

/// Renders the pages of `command` and its subcommands. `clap_mangen` can do this itself, but writes a wrong program
/// name in the header.
fn pages(command: &clap::Command, name: &str, found: &mut Vec<(String, String)>) {
    found.push(page(command.clone().bin_name(name.replace('-', " ")), name));
    for below in command.get_subcommands() {
        pages(below, &format!("{name}-{}", below.get_name()), found);
    }
}

fn page(command: clap::Command, name: &str) -> (String, String) {
    let mut page = Vec::new();
    // clap_mangen omits the descriptions of arguments that the short help hides.
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    let (titled, title) = (command.name(name.to_owned()), name.to_uppercase());
    Man::new(titled).title(title).source("forms").manual("Forms Manual").render(&mut page).unwrap();
    let mut page = String::from_utf8(page).unwrap();
    // The long help has lines of its own, and headings that a manual page has as sections.
    for (heading, section) in [
        (".SH EXTRA\n", ".SH DETAILS\n.nf\n"),
        ("Examples:\n", ".fi\n.SH EXAMPLES\n.nf\n"),
        ("Environment:\n", ".fi\n.SH ENVIRONMENT\n.nf\n"),
        ("Exit codes:\n", ".fi\n.SH \"EXIT STATUS\"\n.nf\n"),
    ] {
        page = page.replace(&format!("\n{heading}"), &format!("\n{section}"));
    }
    (format!("{name}.1"), page.replace(".nf\n.fi\n", ""))
}

#[test]
fn manual_pages_match_the_commands() {
    let mut found = Vec::new();
    pages(&forms::cli::commands::help::hide_globals(forms::cli::command()), "forms", &mut found);
    for topic in TOPICS {
        let name = topic.name;
        let about = clap::Command::new(name).about(topic.title).long_about((topic.text)());
        let about = about.bin_name(format!("forms help {name}")).disable_help_flag(true);
        let is_command = found.iter().any(|(file, _)| *file == format!("forms-{name}.1"));
        found.push(page(about, &format!("{}-{name}", if is_command { "forms-help" } else { "forms" })));
    }
    for (file, page) in &found {
        let options = page.lines().zip(page.lines().skip(1)).filter(|(line, _)| line.starts_with("\\fB\\-"));
        for (option, description) in options {
            assert!(description.starts_with(char::is_alphanumeric), "{file}: {option} is not described");
        }
        assert_golden(&format!("../../../man/{file}"), page);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    for kept in fs::read_dir(folder).unwrap() {
        let name = kept.unwrap().file_name().into_string().unwrap();
        assert!(found.iter().any(|(file, _)| *file == name), "man/{name} does not belong to a command");
    }
}

#[test]
fn completion_scripts_contain_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = home.ok(&["completions", shell]);
        for command in forms::cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
        }
        assert!(!script.contains("exit-codes"), "{shell}: a help topic is offered as a command");
    }
}

#[test]
fn completion_loaders_run_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    for (file, shell) in [
        ("forms.bash", "bash"),
        ("forms.zsh", "zsh"),
        ("forms.fish", "fish"),
        ("forms.ps1", "powershell"),
        ("forms.elv", "elvish"),
    ] {
        let loader = fs::read_to_string(folder.join(file)).unwrap();
        assert!(loader.contains(&format!("forms completions {shell}")), "{file}");
    }
    let bash = folder.join("forms.bash");
    assert!(Command::new("bash").arg("-n").arg(&bash).status().unwrap().success());
    // bash can load it, and the completion is registered.
    let binary = Path::new(env!("CARGO_BIN_EXE_forms"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = format!("source {}; complete -p forms", bash.display());
    let loaded =
        Command::new("bash").args(["-c", &script]).env("PATH", path).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&loaded.stdout).contains("_forms"), "{loaded:?}");
}
