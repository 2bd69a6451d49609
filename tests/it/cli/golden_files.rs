//! Files generated from the definition of the command line: manual pages and completion scripts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use forms::cli::commands::man::pages;

use crate::golden::assert_golden;

#[test]
fn manual_pages_match_the_commands() {
    let found = pages();
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
    assert!(page.contains("forms publish [--dry-run] [--public] FORM...\n"), "{page}");
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
