//! Files that are generated and kept: what is generated now must be what is kept.

use std::fs;
use std::path::Path;

use crate::harness::Server;

/// Compares `actual` with the file `path`, which lies under `tests/it/golden/`; writes it instead if `FORMS_BLESS` is
/// set.
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
        "{} is not what is generated now, from line {} on:\n  kept:      {}\n  generated: {}\n\
         if the change is meant: FORMS_BLESS=1 cargo test --test it golden",
        file.display(),
        line + 1,
        kept.lines().nth(line).unwrap_or("(end)"),
        actual.lines().nth(line).unwrap_or("(end)"),
    );
}

#[tokio::test]
async fn the_openapi_document_is_the_kept_one() {
    let server = Server::start().await;
    let document = server.get("/api/v1/openapi.json").send().await;
    document.expect(200);
    assert_golden("openapi.json", &format!("{}\n", document.text().trim_end()));
}
