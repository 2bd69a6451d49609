//! Golden files: what the code generates must equal the committed file.

use std::fs;
use std::path::Path;

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::Server;

/// Compares `actual` with the file `path` in `tests/it/golden/`; writes the file instead if `FORMS_BLESS` is set.
#[track_caller]
pub(crate) fn assert_golden(path: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(path);
    if std::env::var_os("FORMS_BLESS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, actual).unwrap();
        return;
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let line = kept.lines().zip(actual.lines()).take_while(|(kept, actual)| kept == actual).count();
    assert!(
        kept == actual,
        "{} differs from what is generated, from line {}:\n  golden:      {}\n  actual:    {}\n\
         if the change is intended: FORMS_BLESS=1 cargo test --test it -- golden docs",
        file.display(),
        line + 1,
        kept.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)"),
    );
}

/// Members of the document that only people read.
const TEXTS: [&str; 5] = ["description", "summary", "example", "examples", "title"];

/// Adds to `found` the paths of members, enumeration values and alternatives that `kept` has at `at` and `now` lacks:
/// generated clients depend on them.
fn removals(kept: &Value, now: &Value, at: &str, found: &mut Vec<String>) {
    match (kept, now) {
        (Value::Object(kept), Value::Object(now)) => {
            // Under these, `title` and the like are names of properties or schemas.
            let is_list = at.ends_with("/properties") || at.ends_with("/schemas");
            for (name, value) in kept.iter().filter(|(name, _)| is_list || !TEXTS.contains(&name.as_str())) {
                if at == "/components" && name == "responses" {
                    continue;
                }
                let at = format!("{at}/{name}");
                match now.get(name) {
                    Some(other) => removals(value, other, &at, found),
                    None => found.push(at),
                }
            }
        }
        (Value::Array(kept), Value::Array(now)) => {
            for item in kept {
                let same = |other: &&Value| match item.get("name") {
                    Some(name) => other.get("name") == Some(name) && other["in"] == item["in"],
                    None => *other == item,
                };
                match now.iter().find(same) {
                    Some(other) => removals(item, other, &format!("{at}/{}", item["name"]), found),
                    None => found.push(format!("{at}: {item}")),
                }
            }
        }
        // Error responses are shared under names made of their codes, which change when a code is added.
        (Value::String(kept), Value::String(now))
            if [kept, now].iter().all(|reference| reference.starts_with("#/components/responses/")) => {}
        _ if kept != now => found.push(format!("{at}: {kept}")),
        _ => {}
    }
}

#[tokio::test]
async fn the_openapi_document_equals_the_golden_one_and_only_grows() {
    let server = Server::start().await;
    let document = server.call_without_key(Method::GET, "/api/v1/openapi.json").send().await;
    let now = document.expect(200);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/openapi.json");
    let mut removed = Vec::new();
    if let Ok(kept) = fs::read_to_string(&file) {
        removals(&serde_json::from_str(&kept).unwrap(), &now, "", &mut removed);
    }
    assert!(
        removed.is_empty(),
        "`/api/v1` must only grow, but these were removed or changed:\n  {}\n\
         before the first release: remove {} and bless it again",
        removed.join("\n  "),
        file.display(),
    );
    assert_golden("openapi.json", &format!("{}\n", document.text().trim_end()));
}

#[test]
fn removals_from_the_document_are_found_and_additions_are_not() {
    let kept = json!({"a": {"enum": ["x", "y"], "description": "old"}, "parameters": [{"name": "q", "in": "query"}]});
    let grown = json!({"a": {"enum": ["x", "y", "z"]}, "b": 1, "parameters": [{"name": "r"}, {"name": "q", "in": "query"}]});
    let less = json!({"a": {"enum": ["x"], "description": "old"}, "parameters": []});
    let found = |now: &Value| {
        let mut found = Vec::new();
        removals(&kept, now, "", &mut found);
        found
    };
    assert_eq!(found(&grown), Vec::<String>::new());
    assert_eq!(found(&less), ["/a/enum: \"y\"", r#"/parameters: {"in":"query","name":"q"}"#]);
}
