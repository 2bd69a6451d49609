//! The house's walls: which room may import which, and which crates stay inside one room.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms of this crate it may name.
const MAY_USE: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("id", &[]),
    ("process", &[]),
    ("cpu_pool", &[]),
    ("keyed_semaphore", &[]),
    ("secret", &["id"]),
    ("domain", &["clock", "id", "secret"]),
    ("api", &["clock", "domain", "id", "secret"]),
    ("store", &["clock", "cpu_pool", "domain", "id", "process", "secret"]),
    ("app", &["clock", "cpu_pool", "domain", "id", "keyed_semaphore", "secret", "store"]),
    ("config", &["domain"]),
    (
        "http",
        &["api", "app", "clock", "config", "cpu_pool", "domain", "id", "keyed_semaphore", "secret", "store"],
    ),
    ("server", &["app", "clock", "config", "cpu_pool", "domain", "http", "id", "secret", "store"]),
    ("client", &["api", "clock", "id", "secret"]),
    ("cli", &["api", "client", "clock", "config", "domain", "id", "process", "secret", "server", "store"]),
    ("main", &["cli"]),
    (
        "lib",
        &[
            "api",
            "app",
            "cli",
            "client",
            "clock",
            "config",
            "cpu_pool",
            "domain",
            "http",
            "id",
            "keyed_semaphore",
            "process",
            "secret",
            "server",
            "store",
        ],
    ),
];

/// Each fenced crate and where it may be named.
const FENCES: &[(&str, &[&str])] = &[
    ("axum", &["src/http/", "src/server.rs", "src/client/"]),
    ("hyper", &["src/http/"]),
    ("hyper_util", &["src/http/"]),
    ("flate2", &["src/http/"]),
    ("zstd", &["src/http/"]),
    ("utoipa", &["src/http/", "src/api/"]),
    ("utoipa_axum", &["src/http/"]),
    ("sled", &["src/store/sled/engine/index.rs"]),
    ("reqwest", &["src/client/"]),
    ("clap", &["src/cli/"]),
    ("clap_complete", &["src/cli/"]),
    ("comfy_table", &["src/cli/"]),
    ("dialoguer", &["src/cli/"]),
    ("annotate_snippets", &["src/cli/"]),
    ("granit_parser", &["src/cli/"]),
    ("serde_yaml", &["src/cli/input/document/", "src/cli/output/yaml.rs"]),
    ("regex", &["src/domain/filter.rs"]),
    ("regex_automata", &["src/domain/pattern.rs"]),
    ("regex_syntax", &["src/domain/pattern.rs", "src/domain/ecma262.rs"]),
    ("console", &["src/cli/"]),
    ("textwrap", &["src/cli/"]),
    ("tempfile", &["src/cli/"]),
    ("shlex", &["src/cli/"]),
    ("humantime", &["src/cli/"]),
    ("parse_size", &["src/cli/"]),
    ("ring", &["src/secret.rs", "src/app/cursor.rs"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The file's code without its comments and its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Whether `code` names the crate `name` in a path: `name::`, with nothing before it that makes it another word.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = &code[..at];
        let absolute = before.ends_with("::").then(|| before.trim_end_matches("::"));
        let head = absolute.unwrap_or(before);
        !head.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    })
}

#[test]
fn every_room_uses_only_the_rooms_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 20, "the sources are somewhere else");
    let mut broken = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let room = path.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_owned();
        let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
            broken.push(format!("{path}: the room `{room}` is not in the table"));
            continue;
        };
        let code = code(&file);
        for (other, _) in MAY_USE.iter().filter(|(other, _)| *other != room && !may_use.contains(other)) {
            let outside = room == "main" && code.contains(&format!("forms::{other}"));
            if code.contains(&format!("crate::{other}::"))
                || code.contains(&format!("crate::{other};"))
                || outside
            {
                broken.push(format!("{path} uses `{other}`; {room} may use {}", may_use.join(", ")));
            }
        }
        for (name, places) in FENCES {
            if !places.iter().any(|place| path.starts_with(place)) && names_crate(&code, name) {
                broken
                    .push(format!("{path} names the crate `{name}`, which belongs to {}", places.join(", ")));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
