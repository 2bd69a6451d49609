//! Which modules may import which, and which crates stay inside one module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Each module of the crate and the modules that it may import.
const MAY_USE: &[(&str, &str)] = &[
    ("clock", ""),
    ("id", ""),
    ("process", ""),
    ("cpu_pool", ""),
    ("metrics", "clock process"),
    ("keyed_semaphore", ""),
    ("secret", "id"),
    ("request_error", ""),
    ("vault", "id secret"),
    ("domain", "clock id secret vault"),
    ("api", "clock domain id secret"),
    ("store", "clock cpu_pool domain id process secret"),
    ("delivery", "clock cpu_pool domain id metrics request_error secret store vault"),
    ("backup", "clock store"),
    ("app", "api backup clock cpu_pool delivery domain id keyed_semaphore metrics secret store vault"),
    ("config", "domain secret"),
    ("page", "clock domain"),
    ("http", "api app clock config cpu_pool domain id keyed_semaphore metrics page secret store"),
    ("server", "app clock config cpu_pool delivery domain http id metrics secret store vault"),
    ("receiver", "clock domain request_error secret"),
    ("client", "api clock domain id request_error secret"),
    ("cli", "api backup client clock config domain id process receiver secret server store"),
    ("main", "cli"),
    ("lib", ""),
];

/// Folders, each with a module that it must not import.
const FORBIDDEN: &[(&str, &str)] = &[
    ("src/cli/input/", "cli::commands"),
    ("src/cli/output/", "cli::commands"),
    ("src/cli/connection/", "cli::commands"),
    ("src/http/wire/", "http::routes"),
    ("src/http/server/", "http::routes"),
];

/// Crates that only these folders and files of `src/` may use.
const CRATE_USERS: &[(&str, &str)] = &[
    ("axum", "http/ server/ client/ receiver/"),
    ("hyper", "http/ delivery/report.rs"),
    ("hyper_util", "http/"),
    ("flate2", "http/ store/sled/engine/base.rs"),
    (
        "ipnet",
        "config.rs domain/integration/address.rs cli/commands/serve.rs \
         cli/connection/local_store.rs cli/input/values.rs",
    ),
    ("utoipa", "http/ api/ domain/summary/"),
    ("utoipa_axum", "http/"),
    ("sled", "store/sled/engine/index.rs"),
    ("tokio_postgres", "store/postgres/"),
    ("deadpool_postgres", "store/postgres/"),
    ("tokio_postgres_rustls", "store/postgres/"),
    ("reqwest", "client/ delivery/ receiver/forward.rs request_error.rs"),
    (
        "rustls",
        "client/transport.rs delivery/ \
         domain/integration/google_sheets/service_account.rs http/server/ \
         receiver/forward.rs request_error.rs store/postgres/connection.rs",
    ),
    ("tokio_rustls", "http/server/ delivery/mail/"),
    ("rustls_platform_verifier", "delivery/mail/ store/postgres/connection.rs"),
    ("lettre", "delivery/mail/"),
    ("clap", "cli/"),
    ("clap_complete", "cli/"),
    ("clap_mangen", "cli/commands/man.rs"),
    ("comfy_table", "cli/"),
    ("dialoguer", "cli/"),
    ("annotate_snippets", "cli/"),
    ("granit_parser", "cli/"),
    ("serde_yaml", "cli/input/document/ cli/output/yaml.rs cli/connection/credentials.rs"),
    ("regex", "client/exchange.rs cli/commands/man.rs cli/commands/import/ domain/submission/filter.rs"),
    ("regex_automata", "domain/pattern/"),
    ("regex_syntax", "domain/pattern/ domain/pattern/ecma262.rs"),
    ("console", "cli/"),
    ("textwrap", "cli/"),
    ("tempfile", "cli/"),
    ("indicatif", "cli/"),
    ("askama", "page/"),
    ("pulldown_cmark", "page/markdown.rs"),
    ("multer", "http/wire/extract.rs"),
    ("tar", "backup.rs"),
    ("prometheus", "metrics.rs"),
    ("matchit", "http/server/"),
    ("shlex", "cli/"),
    ("qrcode", "cli/commands/share.rs"),
    ("humantime", "cli/ domain/workspace/ domain/integration/definition/"),
    ("parse_size", "cli/"),
    (
        "ring",
        "secret.rs vault.rs backup.rs page/assets.rs app/signer.rs delivery/google_sheets/token.rs \
         domain/integration/google_sheets/service_account.rs \
         domain/integration/webhook/signature.rs",
    ),
];

/// Adds the Rust files in `folder` to `found`.
pub(crate) fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the code of a file without comments and inline tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Whether a path in `code` begins with the crate `name`.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = &code[..at];
        let absolute = before.ends_with("::").then(|| before.trim_end_matches("::"));
        let head = absolute.unwrap_or(before);
        !head.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    })
}

#[test]
fn every_module_imports_only_those_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 20, "src/ has moved");
    let mut broken = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let own = path.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_owned();
        let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == own) else {
            broken.push(format!("{path}: the module `{own}` is not in the table"));
            continue;
        };
        let code = code(&file);
        let named = named_paths(&code, &module(&path));
        let used = named.iter().filter_map(|path| path.first().map(String::as_str));
        let may_use: Vec<_> = may_use.split(' ').collect();
        let is_free = |other: &str| own == "lib" || own == other || may_use.contains(&other);
        for (other, _) in MAY_USE.iter().filter(|(other, _)| !is_free(other)) {
            let outside = own == "main" && code.contains(&format!("forms::{other}"));
            if outside || used.clone().any(|used| used == *other) {
                broken.push(format!("{path} uses `{other}`; {own} may use {}", may_use.join(", ")));
            }
        }
        for (_, module) in FORBIDDEN.iter().filter(|(folder, _)| path.starts_with(folder)) {
            if named.iter().any(|path| path.join("::").starts_with(module)) {
                broken.push(format!("{path} must not import `{module}`"));
            }
        }
        for (name, places) in CRATE_USERS {
            let is_theirs = places.split(' ').any(|place| path["src/".len()..].starts_with(place));
            if !is_theirs && names_crate(&code, name) {
                broken.push(format!("{path} names the crate `{name}`, which belongs to {places}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Returns the module path of the file at `path`.
fn module(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// Returns the paths in `code`, a file of `module`, that begin with `crate::` or `super::`; grouped imports are expanded.
/// A module that names its own children does not import them.
fn named_paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    static PATH: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r"\b(crate|super)((?:::\w+)*)(?:::\{([^;{}]*)\})?").unwrap());
    let steps = |text: &str| -> Vec<String> {
        let text = text.split(" as ").next().unwrap();
        text.split("::").filter(|step| !step.is_empty() && *step != "self").map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for named in PATH.captures_iter(code) {
        let mut base = if &named[1] == "crate" { Vec::new() } else { module[..module.len() - 1].to_vec() };
        for step in steps(&named[2]) {
            if step == "super" { drop(base.pop()) } else { base.push(step) }
        }
        let items = named.get(3).map_or("", |items| items.as_str());
        found.extend(items.split(',').map(|item| [base.clone(), steps(item.trim())].concat()));
    }
    found
}

/// Returns the file of the longest prefix of `path` that is in `modules`.
fn module_of<'a>(path: &[String], modules: &'a BTreeMap<Vec<String>, String>) -> Option<&'a str> {
    (1..=path.len()).rev().find_map(|length| modules.get(&path[..length])).map(String::as_str)
}

/// Returns the files that each file imports.
fn imports(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let relative = |file: &PathBuf| file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let modules = files.iter().map(|file| (module(&relative(file)), relative(file))).collect();
    let imported = |file: &PathBuf| {
        let path = relative(file);
        let paths = named_paths(&code(file), &module(&path));
        let files = paths.iter().filter_map(|path| module_of(path, &modules));
        let others = files.filter(|other| *other != path).map(str::to_owned).collect();
        (path, others)
    };
    files.iter().map(imported).collect()
}

/// Returns all files that `file` imports directly or indirectly.
fn reachable<'a>(file: &'a str, imports: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut found, mut pending) = (BTreeSet::new(), vec![file]);
    while let Some(next) = pending.pop() {
        for other in &imports[next] {
            if found.insert(other.as_str()) {
                pending.push(other);
            }
        }
    }
    found
}

#[test]
fn files_of_different_folders_have_no_import_cycles() {
    let imports = imports(Path::new(env!("CARGO_MANIFEST_DIR")));
    let edges: usize = imports.values().map(BTreeSet::len).sum();
    assert!(edges > 1_000, "only {edges} imports were found");
    let reached: BTreeMap<_, _> =
        imports.keys().map(|file| (file.as_str(), reachable(file, &imports))).collect();
    let folder = |file: &str| file.rsplit_once('/').unwrap().0.to_owned();
    let cycles = imports.iter().flat_map(|(file, others)| {
        let back = others.iter().filter(|other| reached[other.as_str()].contains(file.as_str()));
        back.filter(|other| folder(other) != folder(file)).map(move |other| format!("{file} -> {other}"))
    });
    let cycles: Vec<_> = cycles.collect();
    assert!(cycles.is_empty(), "these imports are part of a cycle:\n{}", cycles.join("\n"));
}
