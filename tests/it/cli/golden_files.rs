//! Files generated from the definition of the command line: manual pages and completion scripts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::ArgAction;
use clap_mangen::Man;
use forms::cli::commands::help::topics::{TOPICS, Topic};

use crate::golden::assert_golden;

/// Help of the program.
const ROOT: &str = include_str!("../../../src/cli/commands/help/root.txt");

/// Date of the manual, which mandoc expects in the header.
const DATE: &str = "2026-11-24";

/// Renders the pages of `command` and its subcommands. `clap_mangen` can do this itself, but writes a wrong program
/// name in the header, and a synopsis without values.
fn pages(command: &clap::Command, name: &str, found: &mut Vec<(String, String)>) {
    found.push((format!("{name}.1"), page(command, name)));
    for below in command.get_subcommands() {
        pages(below, &format!("{name}-{}", below.get_name()), found);
    }
}

fn man(command: clap::Command, name: &str, section: &str) -> Man {
    let source = format!("forms {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.name(name.to_owned())).title(name.to_uppercase()).section(section);
    man.date(DATE).source(source).manual("Forms Manual")
}

fn page(command: &clap::Command, name: &str) -> String {
    let program = name.replace('-', " ");
    let usage = format!("{program} {}", synopsis(command));
    let command = command
        .clone()
        .disable_help_subcommand(true)
        .bin_name(program)
        .override_usage(usage.trim_end().to_owned());
    // clap_mangen omits the descriptions of arguments that the short help hides.
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    let mut page = Vec::new();
    man(command, name, "1").render(&mut page).unwrap();
    let mut page = String::from_utf8(page).unwrap();
    // The long help has lines of its own, as wide as a terminal, and headings that a manual page has as sections.
    for (heading, section) in
        [(".SH EXTRA\n", ".SH DETAILS\n.nf\n.in 0\n"), ("Examples:\n", ".fi\n.SH EXAMPLES\n.nf\n.in 0\n")]
    {
        page = page.replace(&format!("\n{heading}"), &format!("\n{section}"));
    }
    let page = page.replace(".SH DETAILS\n.nf\n.in 0\n.fi\n", "").replace("\n.br\n\n.br\n", "\n.br\n");
    let note = page.find("\nGlobal options (").unwrap_or(page.len());
    // A value is in italics, without the brackets of the help.
    let value = regex::Regex::new(r"\\fI<(.*?)>\\fR|(?m:^)[<\[]\\fI(.*)\\fR[>\]](?:\.\.\.)?(?m:$)").unwrap();
    let page = value.replace_all(&page[..note], r"\fI$1$2\fR").into_owned();
    page + ".fi\n.SH \"SEE ALSO\"\n.BR forms (1),\n.BR forms\\-environment (7),\n.BR forms\\-exit\\-codes (7),\n.BR forms\\-formatting (7)\n"
}

/// The options and arguments of a command: `[--dry-run] [-f FILE] FORM [KEY=VALUE...]`.
fn synopsis(command: &clap::Command) -> String {
    let shown =
        command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_id() != "help");
    let (positional, options): (Vec<_>, Vec<_>) = shown.partition(|argument| argument.is_positional());
    let below = command.has_subcommands().then(|| "COMMAND".to_owned());
    let below =
        below.map(|name| if command.is_subcommand_required_set() { name } else { format!("[{name}]") });
    let words = options.into_iter().chain(positional).map(usage).chain(below);
    words.collect::<Vec<_>>().join(" ")
}

fn usage(argument: &clap::Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flag = short.or_else(|| argument.get_long().map(|long| format!("--{long}")));
    let takes_value = argument.get_action().takes_values();
    let name = match flag {
        Some(flag) if takes_value => format!("{flag} {values}"),
        Some(flag) => flag,
        None => values,
    };
    let is_repeated = matches!(argument.get_action(), ArgAction::Append | ArgAction::Count);
    let dots = if is_repeated { "..." } else { "" };
    if argument.is_required_set() { format!("{name}{dots}") } else { format!("[{name}{dots}]") }
}

/// The page of a topic of `forms help`.
fn topic_page(topic: &Topic) -> (String, String) {
    let name = format!("forms-{}", topic.name);
    let man = man(clap::Command::new("forms").about(topic.title).after_long_help(topic.page()), &name, "7");
    let mut page = Vec::new();
    man.render_title(&mut page).unwrap();
    man.render_name_section(&mut page).unwrap();
    man.render_extra_section(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap().replace(".SH EXTRA\n", ".SH DESCRIPTION\n.nf\n.in 0\n");
    (format!("{name}.7"), page + ".fi\n")
}

#[test]
fn manual_pages_match_the_commands() {
    let mut root = forms::cli::commands::help::hide_globals(forms::cli::command());
    let (_, examples) = ROOT.split_once("\nExamples:\n").unwrap();
    root = root.after_long_help(format!("Examples:\n{examples}"));
    let mut found = Vec::new();
    pages(&root, "forms", &mut found);
    found.extend(TOPICS.iter().map(topic_page));
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
fn mandoc_reads_title_section_date_and_usage_of_the_manual_pages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let read = |file: &str| {
        let output = Command::new("mandoc").args(["-T", "ascii"]).arg(folder.join(file)).output().unwrap();
        let overstrikes = regex::Regex::new(".\u{8}").unwrap();
        overstrikes.replace_all(&String::from_utf8(output.stdout).unwrap(), "").into_owned()
    };
    let page = read("forms-publish.1");
    let (first, last) = (page.lines().next().unwrap(), page.lines().last().unwrap());
    assert!(first.starts_with("FORMS-PUBLISH(1)") && first.contains("Forms Manual"), "{first}");
    assert!(last.starts_with("forms 0.1.0") && last.contains("2026-11-24"), "{last}");
    assert!(page.contains("forms publish [--dry-run] FORM...\n"), "{page}");
    assert!(read("forms-edit.1").contains("forms edit [-f FILE] [--title TITLE]"));
    assert!(read("forms-environment.7").starts_with("FORMS-ENVIRONMENT(7)"));
    for entry in fs::read_dir(folder).unwrap() {
        let mut lint = Command::new("mandoc");
        let lint = lint.args(["-T", "lint", "-W", "warning"]).arg(entry.unwrap().path()).output().unwrap();
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
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
