//! The README: its tables are generated, and its first minute is run as it stands there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use forms::api::Code;
use forms::cli::exit::Exit;
use forms::domain::budget::Budget;
use forms::domain::fields::Fields;
use forms::domain::json;
use forms::domain::limits::Limits;
use forms::domain::question::Kind;

use crate::cli::Home;
use crate::golden::assert_golden;
use crate::questions::least_settings;

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// `text` with `block` between the marker that begins with `name` and the next end marker.
fn with_block(text: &str, name: &str, block: &str) -> String {
    let begin =
        text.find(&format!("<!-- {name}:")).unwrap_or_else(|| panic!("README.md has no block `{name}`"));
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = begin + text[begin..].find("<!-- end -->").unwrap();
    format!("{}{block}{}", &text[..begin], &text[end..])
}

fn exit_codes() -> String {
    let rows = Exit::ALL.iter().map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning()));
    format!("| Exit code | Meaning |\n|---|---|\n{}", rows.collect::<String>())
}

fn codes() -> String {
    let rows =
        Code::ALL.iter().map(|code| format!("| {} | `{}` | {} |\n", code.status(), code, code.title()));
    format!("| Status | Code | Meaning |\n|---|---|---|\n{}", rows.collect::<String>())
}

fn questions() -> String {
    let rows = Kind::NAMES.iter().map(|name| {
        let (kind, settings) = read_plain(name);
        let rules = kind.rules();
        let settings: Vec<_> = settings.iter().map(|setting| format!("`{setting}`")).collect();
        format!("| `{name}` | {} | `{}` | {} |\n", rules.expects(), rules.example(), settings.join(", "))
    });
    format!("| `type` | Answer | For instance | Settings |\n|---|---|---|---|\n{}", rows.collect::<String>())
}

/// A question of the kind `name` with only the settings it must have, and the names of those it could have.
fn read_plain(name: &str) -> (Kind, Vec<String>) {
    let mut violations = Vec::new();
    let settings = json::parse(&format!("{{{},\"unknown\":null}}", least_settings(name))).unwrap();
    let mut fields = Fields::open(&settings, "", "a question", &mut violations).unwrap();
    let kind = Kind::read(name, &mut fields, &mut Budget::new(&Limits::default())).unwrap();
    fields.close(&["type"]);
    (kind, violations.remove(1).candidates)
}

#[test]
fn the_readme_shows_the_tables_of_the_code() {
    let text = readme();
    let text = with_block(&text, "exit codes", &exit_codes());
    let text = with_block(&text, "questions", &questions());
    let text = with_block(&text, "codes", &codes());
    assert_golden("../../../README.md", &text);
}

/// The commands of the first `sh` block that holds `wanted`.
fn block_with(text: &str, wanted: &str) -> String {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains(wanted)).map(str::to_owned).next().unwrap()
}

/// Runs `script` in a folder that has the examples, as a person would type it, and gives what it printed.
fn run(script: &str) -> String {
    let home = Home::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = home.path().join("examples");
    fs::create_dir(&examples).unwrap();
    fs::copy(root.join("examples/survey.yaml"), examples.join("survey.yaml")).unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fails unless `PyYAML`, another parser than ours, reads `text` as an object.
fn parse_with_pyyaml(name: &str, text: &str) {
    let script = "import sys, yaml; assert isinstance(yaml.safe_load(sys.argv[1]), dict)";
    let output = Command::new("python3").args(["-c", script, text]).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_examples_and_the_readme_are_yaml_for_other_parsers_too() {
    let mut examples = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let path = entry.unwrap().path();
        parse_with_pyyaml(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
        examples += 1;
    }
    let readme = readme();
    let blocks = readme.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<_> = blocks.collect();
    blocks.iter().for_each(|block| parse_with_pyyaml("README.md", block));
    assert!(examples >= 10 && blocks.len() >= 2, "{examples} examples, {} blocks", blocks.len());
}

#[test]
fn the_first_minute_works_word_for_word() {
    let scene = block_with(&readme(), "forms serve");
    // Any free port, and the server's own line kept apart; the first command does not wait for the server.
    let scene =
        scene.replace("./store &", "./store --listen 127.0.0.1:0 >/dev/null 2>&1 & trap 'kill $!' EXIT");
    let said = run(&scene);
    assert!(said.ends_with("\nhello\n"), "{said}");
}

#[test]
fn the_first_minute_works_without_a_server() {
    let scene = block_with(&readme(), "forms serve");
    let scene: String = scene.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let said = run(&scene.replace("forms ", "forms --data ./store "));
    assert!(said.ends_with("\nhello\n"), "{said}");
}
