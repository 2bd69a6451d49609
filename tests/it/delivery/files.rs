//! CSV files: a view of what is stored, and nothing outside of the folder of exports.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use axum::http::Method;
use serde_json::{Value, json};

use super::rig::Rig;

const HEADER: &str = "id,q1,q2,q3";

/// A form whose submissions are rows of the file `path`.
async fn rig(path: &str) -> Rig {
    rig_with(json!({"type": "csv_file", "name": "file", "path": path})).await
}

async fn rig_with(integration: Value) -> Rig {
    let rig = Rig::embedded().await;
    rig.server.integrate(&rig.form, integration).await;
    rig
}

fn exports(rig: &Rig) -> PathBuf {
    rig.server.folder().join("exports").join(&rig.form)
}

/// Writes the file, once it may be written again.
async fn write(rig: &Rig) {
    rig.deliver_after(60_000).await;
}

/// The lines of a file below the folder of exports, without the column `submitted_at`.
fn lines(rig: &Rig, path: &str) -> Vec<String> {
    let text = fs::read_to_string(exports(rig).join(path)).unwrap();
    assert!(text.ends_with("\r\n"), "{text:?}");
    let line = |line: &str| {
        let (id, rest) = line.split_once(',').unwrap();
        format!("{id},{}", rest.split_once(',').unwrap().1)
    };
    text.split_terminator("\r\n").map(line).collect()
}

/// The rows that the submissions `ids` of `names` make.
fn rows(names_and_ids: &[(&str, &str)]) -> Vec<String> {
    let row = |(name, id): &(&str, &str)| format!("{id},{name},,");
    [HEADER.to_owned()].into_iter().chain(names_and_ids.iter().map(row)).collect()
}

#[tokio::test]
async fn each_submission_is_a_row_in_a_private_file() {
    let rig = rig("team/leads.csv").await;
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    for number in 0..150 {
        names.push(format!("n{number}"));
        ids.push(rig.submit(&names[number]).await);
        if number % 40 == 3 {
            write(&rig).await;
        }
    }
    write(&rig).await;
    let expected: Vec<_> = names.iter().zip(&ids).map(|(name, id)| (name.as_str(), id.as_str())).collect();
    assert_eq!(lines(&rig, "team/leads.csv"), rows(&expected));
    let mode = |path: &str| fs::metadata(exports(&rig).join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(""), mode("team"), mode("team/leads.csv")], [0o700, 0o700, 0o600]);
    assert_eq!(rig.deliveries("status=delivered").await.len(), 100, "a page");
    assert_eq!(fs::read_dir(exports(&rig).join("team")).unwrap().count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn a_file_follows_edits_deletions_and_erasure() {
    let rig = rig("leads.csv").await;
    let mut ids = Vec::new();
    for name in ["Ada", "Bea", "Cem", "secret-canary"] {
        ids.push(rig.submit(name).await);
    }
    write(&rig).await;
    let path = |id: &str| format!("/api/v1/forms/{}/submissions/{id}", rig.form);
    rig.server.patch(path(&ids[0]), json!({"answers": {"q1": "Adam"}})).send().await.expect(200);
    rig.server.call(Method::DELETE, path(&ids[1])).send().await;
    rig.server.call(Method::DELETE, format!("{}?purge=true", path(&ids[3]))).send().await;
    write(&rig).await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Adam", &ids[0]), ("Cem", &ids[2])]));
    assert!(!fs::read_to_string(exports(&rig).join("leads.csv")).unwrap().contains("canary"));
    rig.server.call(Method::POST, format!("{}/restore", path(&ids[1]))).send().await.expect(200);
    write(&rig).await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Adam", &ids[0]), ("Bea", &ids[1]), ("Cem", &ids[2])]));
}

#[tokio::test]
async fn what_is_erased_leaves_the_file_of_a_disabled_integration_too() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    write(&rig).await;
    rig.change("file", json!({"enabled": false})).await;
    let path = format!("/api/v1/forms/{}/submissions/{ada}?purge=true", rig.form);
    rig.server.call(Method::DELETE, path).send().await;
    write(&rig).await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[]));
}

#[tokio::test]
async fn a_new_question_is_a_column_at_the_right_and_a_removed_one_stays() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    write(&rig).await;
    let form = rig.server.get(format!("/api/v1/forms/{}", rig.form)).send().await.expect(200);
    let mut questions = form["questions"].as_array().unwrap().clone();
    questions.remove(1);
    questions.insert(0, json!({"id": "more", "type": "short_text", "title": "Anything else?"}));
    rig.change_form(json!({"questions": questions})).await;
    let answers = json!({"q1": "Bea", "more": "a, \"b\""});
    let bea = rig.server.submit(&rig.form, answers).await;
    write(&rig).await;
    let expected =
        [format!("{HEADER},more"), format!("{ada},Ada,,,"), format!("{bea},Bea,,,\"a, \"\"b\"\"\"")];
    assert_eq!(lines(&rig, "leads.csv"), expected);
}

#[tokio::test]
async fn whatever_else_writes_to_a_file_is_overwritten() {
    let rig = rig("leads.csv").await;
    let mut expected = Vec::new();
    let file = exports(&rig).join("leads.csv");
    fs::create_dir_all(exports(&rig)).unwrap();
    for (name, found) in
        [("Ada", Some("mine\r\n")), ("Bea", Some("")), ("Cem", Some("\u{feff}id;q1\nx")), ("Dot", None)]
    {
        match found {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::rename(&file, exports(&rig).join("old.csv")).unwrap(),
        }
        fs::write(exports(&rig).join(".leads.csv.tmp"), "half a r").unwrap();
        expected.push((name, rig.submit(name).await));
        write(&rig).await;
        let expected: Vec<_> = expected.iter().map(|(name, id)| (*name, id.as_str())).collect();
        assert_eq!(lines(&rig, "leads.csv"), rows(&expected));
    }
}

#[tokio::test]
async fn a_file_is_not_written_sooner_than_twenty_times_as_long_as_that_took() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    rig.submit("Bea").await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada)]), "it rests");
    assert_eq!(rig.deliveries("status=pending").await.len(), 1);
    write(&rig).await;
    assert_eq!(lines(&rig, "leads.csv").len(), 3);
}

#[tokio::test]
async fn a_condition_and_a_selection_of_answers_hold_for_every_row() {
    let rig = rig_with(json!({"type": "csv_file", "name": "file", "path": "a.csv", "delimiter": ";",
        "when": {"q1": {"ne": "Bea"}}, "fields": {"except": ["q2"]}}))
    .await;
    let ada = rig.submit("Ada").await;
    rig.submit("Bea").await;
    write(&rig).await;
    let text = fs::read_to_string(exports(&rig).join("a.csv")).unwrap();
    assert!(text.starts_with("id;submitted_at;q1;q3\r\n"), "{text}");
    assert!(text.contains(&ada) && !text.contains("Bea"), "{text}");
    assert_eq!(rig.deliveries("status=skipped").await.len(), 1);
}

#[tokio::test]
async fn cells_show_labels_or_values() {
    let rig = Rig::embedded().await;
    let options = json!([{"value": "s", "label": "Soup"}, {"value": "c", "label": "Cake; =1"}]);
    let questions = json!([
        {"id": "one", "type": "single_choice", "title": "One", "options": options},
        {"id": "many", "type": "multiple_choice", "title": "Many", "options": options},
        {"id": "text", "type": "short_text", "title": "Text"}
    ]);
    rig.change_form(json!({"questions": questions})).await;
    for (name, values) in [("people", "labels"), ("programs", "raw")] {
        let file = json!({"type": "csv_file", "name": name, "path": format!("{name}.csv"), "values": values});
        rig.server.integrate(&rig.form, file).await;
    }
    let answers = json!({"one": "s", "many": ["s", "c"], "text": "=1+1"});
    let id = rig.server.submit(&rig.form, answers).await;
    write(&rig).await;
    let header = |file| lines(&rig, file).remove(0);
    assert_eq!(header("people.csv"), header("programs.csv"));
    let labels = &lines(&rig, "people.csv")[1];
    assert!(labels.ends_with(",Soup,Soup; Cake; =1,'=1+1"), "{labels}");
    let raw = &lines(&rig, "programs.csv")[1];
    assert!(raw.starts_with(&id) && raw.ends_with(r#",s,"[""s"",""c""]",'=1+1"#), "{raw}");
}

#[tokio::test]
async fn no_symbolic_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("target.csv"), "mine\r\n").unwrap();
    let folder_link = rig("team/leads.csv").await;
    fs::create_dir_all(exports(&folder_link)).unwrap();
    symlink(outside.path(), exports(&folder_link).join("team")).unwrap();
    let file_link = rig("leads.csv").await;
    fs::create_dir_all(exports(&file_link)).unwrap();
    symlink(outside.path().join("target.csv"), exports(&file_link).join("leads.csv")).unwrap();
    for rig in [&folder_link, &file_link] {
        rig.submit("Ada").await;
        rig.server.deliver().await;
    }
    folder_link.expect_failure("pending", "file_error").await;
    assert_eq!(lines(&file_link, "leads.csv").len(), 2, "the link is replaced");
    assert_eq!(fs::read_to_string(outside.path().join("target.csv")).unwrap(), "mine\r\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_tried_again() {
    let rig = rig("leads.csv").await;
    fs::create_dir_all(exports(&rig).join("leads.csv")).unwrap();
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    rig.expect_failure("pending", "file_error").await;
    fs::remove_dir(exports(&rig).join("leads.csv")).unwrap();
    write(&rig).await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada)]));
}

#[tokio::test]
async fn a_test_writes_nothing() {
    let rig = rig("leads.csv").await;
    let attempt = rig.test("file").await;
    assert_eq!((&attempt["result"], &attempt["trigger"]), (&json!("delivered"), &json!("test")));
    assert_eq!(fs::read_dir(exports(&rig)).unwrap().count(), 0);
    fs::create_dir_all(exports(&rig).join("leads.csv")).unwrap();
    let attempt = rig.test("file").await;
    assert_eq!((&attempt["result"], &attempt["error"]["code"]), (&json!("failed"), &json!("file_error")));
}

#[tokio::test]
async fn another_path_or_delimiter_writes_all_rows_and_leaves_the_file_before() {
    let rig = rig("a.csv").await;
    let ada = rig.submit("Ada").await;
    write(&rig).await;
    rig.change("file", json!({"path": "b.csv", "delimiter": ";"})).await;
    write(&rig).await;
    assert_eq!(lines(&rig, "a.csv"), rows(&[("Ada", &ada)]));
    let text = fs::read_to_string(exports(&rig).join("b.csv")).unwrap();
    assert!(text.starts_with("id;submitted_at;q1;q2;q3\r\n") && text.contains(";Ada;;\r\n"), "{text}");
}

#[tokio::test]
async fn a_row_that_was_written_is_not_written_again_by_hand() {
    let rig = rig("leads.csv").await;
    rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(rig.redeliver(&rig.delivery().await).await.code(), "delivery_not_repeatable");
    let mut all = json!({"form": rig.form, "status": "delivered", "dry_run": true});
    for dry_run in [true, false] {
        all["dry_run"] = json!(dry_run);
        let counted = rig.server.post("/api/v1/deliveries:redeliver", all.clone()).send().await.expect(200);
        assert_eq!(counted["count"], 0);
    }
}
