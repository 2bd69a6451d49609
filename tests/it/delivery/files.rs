//! CSV files: every submission exactly once, and nothing outside of the folder of exports.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use axum::http::Method;
use forms::delivery::SendLimits;
use forms::domain::integration::csv_file::{CsvFile, CsvPosition};
use forms::store::QueueId;
use serde_json::{Value, json};

use super::rig::Rig;

const HEADER: &str = "id,submitted_at,q1,q2,q3";

/// A form whose submissions are appended to `path`.
async fn rig(path: &str) -> Rig {
    let rig = Rig::over_http(SendLimits::default()).await;
    rig.server.integrate(&rig.form, json!({"type": "csv_file", "name": "file", "path": path})).await;
    rig
}

fn exports(rig: &Rig) -> PathBuf {
    rig.server.folder().join("exports").join(&rig.form)
}

/// The lines of a file below the folder of exports.
fn lines(rig: &Rig, path: &str) -> Vec<String> {
    let text = fs::read_to_string(exports(rig).join(path)).unwrap();
    assert!(text.ends_with("\r\n"), "{text:?}");
    text.split_terminator("\r\n").map(str::to_owned).collect()
}

/// The rows that the submissions `ids` of `names` make.
fn rows(names_and_ids: &[(&str, &str)]) -> Vec<String> {
    let row = |(name, id): &(&str, &str)| format!("{id},2026-11-20T09:00:00.000Z,{name},,");
    [HEADER.to_owned()].into_iter().chain(names_and_ids.iter().map(row)).collect()
}

fn settings(path: &str) -> CsvFile {
    CsvFile { path: path.to_owned(), delimiter: ',' }
}

async fn queue(rig: &Rig) -> QueueId {
    let path = format!("/api/v1/forms/{}/integrations/file", rig.form);
    let integration = rig.server.get(path).send().await.expect(200);
    let whoami = rig.server.get("/api/v1/whoami").send().await.expect(200);
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    QueueId {
        workspace: id(&whoami["workspace"]).parse().unwrap(),
        form: rig.form.parse().unwrap(),
        integration: id(&integration).parse().unwrap(),
    }
}

#[tokio::test]
async fn each_submission_is_a_row_in_a_private_file() {
    let rig = rig("team/leads.csv").await;
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    for number in 0..150 {
        names.push(format!("n{number}"));
        ids.push(rig.submit(&names[number]).await);
        if number % 40 == 3 {
            rig.server.deliver().await;
        }
    }
    rig.server.deliver().await;
    let expected: Vec<_> = names.iter().zip(&ids).map(|(name, id)| (name.as_str(), id.as_str())).collect();
    assert_eq!(lines(&rig, "team/leads.csv"), rows(&expected));
    let mode = |path: &str| fs::metadata(exports(&rig).join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(""), mode("team"), mode("team/leads.csv")], [0o700, 0o700, 0o600]);
    assert_eq!(rig.deliveries("status=delivered").await.len(), 100, "a page");
}

#[tokio::test]
async fn what_a_killed_process_wrote_without_recording_it_is_written_again() {
    let rig = rig("leads.csv").await;
    // Killed while the first file was begun.
    let columns = ["q1", "q2", "q3"].map(str::to_owned).to_vec();
    let begun = CsvPosition { settings: settings("leads.csv"), number: 1, columns, length: 0 };
    rig.server.app.store.put_file_position(queue(&rig).await, begun).await.unwrap();
    fs::create_dir_all(exports(&rig)).unwrap();
    fs::write(exports(&rig).join("leads.csv"), format!("{HEADER}\r\nsub_x,half a r")).unwrap();
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada)]));
    // Killed after rows were appended.
    let mut file = fs::OpenOptions::new().append(true).open(exports(&rig).join("leads.csv")).unwrap();
    write!(file, "sub_y,2026-11-20T09:00:00.000Z,Bea,,\r\nsub_z,").unwrap();
    let bea = rig.submit("Bea").await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada), ("Bea", &bea)]));
}

#[tokio::test]
async fn a_new_question_begins_a_new_file() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    let path = format!("/api/v1/forms/{}", rig.form);
    let form = rig.server.get(&path).send().await.expect(200);
    let mut questions = form["questions"].as_array().unwrap().clone();
    questions.push(json!({"type": "short_text", "title": "Anything else?"}));
    rig.server.call(Method::PATCH, &path).json(json!({"questions": questions})).send().await.expect(200);
    let answers = json!({"q1": "Bea", "q4": "a, \"b\""});
    let bea = rig.server.submit(&rig.form, answers).await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada)]));
    let expected = format!("{bea},2026-11-20T09:00:00.000Z,Bea,,,\"a, \"\"b\"\"\"");
    assert_eq!(lines(&rig, "leads.2.csv"), [format!("{HEADER},q4"), expected]);
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_begun_again() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    fs::rename(exports(&rig).join("leads.csv"), exports(&rig).join("old.csv")).unwrap();
    let bea = rig.submit("Bea").await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "old.csv"), rows(&[("Ada", &ada)]));
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Bea", &bea)]));
}

#[tokio::test]
async fn a_file_that_was_cut_is_not_appended_to() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    let file = exports(&rig).join("leads.csv");
    let complete = fs::read(&file).unwrap();
    fs::write(&file, &complete[..complete.len() - 1]).unwrap();
    let bea = rig.submit("Bea").await;
    rig.server.deliver().await;
    let waiting = &rig.deliveries("status=pending").await[0];
    assert_eq!(waiting["last_error"]["code"], "file_error");
    let message = waiting["last_error"]["message"].as_str().unwrap();
    assert!(message.contains("shorter than what was written"), "{message}");
    assert_eq!(fs::read(&file).unwrap().len(), complete.len() - 1);
    fs::write(&file, complete).unwrap();
    rig.server.clock.advance(10_000);
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada), ("Bea", &bea)]));
}

#[tokio::test]
async fn the_file_of_another_is_left_alone() {
    let rig = rig("leads.csv").await;
    fs::create_dir_all(exports(&rig)).unwrap();
    fs::write(exports(&rig).join("leads.csv"), "mine\r\n").unwrap();
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), ["mine"]);
    assert_eq!(lines(&rig, "leads.2.csv"), rows(&[("Ada", &ada)]));
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
    let delivery = folder_link.delivery().await;
    assert_eq!(
        (&delivery["status"], &delivery["last_error"]["code"]),
        (&json!("pending"), &json!("file_error"))
    );
    assert_eq!(lines(&file_link, "leads.2.csv").len(), 2, "another file is begun beside the link");
    assert_eq!(fs::read_to_string(outside.path().join("target.csv")).unwrap(), "mine\r\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_test_writes_nothing() {
    let rig = rig("leads.csv").await;
    let path = format!("/api/v1/forms/{}/integrations/file/test", rig.form);
    let attempt = rig.server.call(Method::POST, &path).send().await.expect(200);
    assert_eq!((&attempt["result"], &attempt["trigger"]), (&json!("delivered"), &json!("test")));
    assert_eq!(fs::read_dir(exports(&rig)).unwrap().count(), 0);
    fs::create_dir_all(exports(&rig).join("leads.csv")).unwrap();
    let attempt = rig.server.call(Method::POST, &path).send().await.expect(200);
    assert_eq!((&attempt["result"], &attempt["error"]["code"]), (&json!("failed"), &json!("file_error")));
}

#[tokio::test]
async fn another_path_or_delimiter_leaves_the_rows_that_were_written() {
    let rig = rig("a.csv").await;
    let path = format!("/api/v1/forms/{}/integrations/file", rig.form);
    let mut ids = Vec::new();
    for (name, change) in [
        ("Ada", json!({})),
        ("Bea", json!({"path": "b.csv"})),
        ("Cem", json!({"path": "a.csv"})),
        ("Dot", json!({"delimiter": ";"})),
    ] {
        rig.server.call(Method::PATCH, &path).json(change).send().await.expect(200);
        ids.push(rig.submit(name).await);
        rig.server.deliver().await;
    }
    assert_eq!(lines(&rig, "a.csv"), rows(&[("Ada", &ids[0])]));
    assert_eq!(lines(&rig, "b.csv"), rows(&[("Bea", &ids[1])]));
    assert_eq!(lines(&rig, "a.2.csv"), rows(&[("Cem", &ids[2])]));
    let with_semicolons: Vec<_> = rows(&[("Dot", &ids[3])]).iter().map(|row| row.replace(',', ";")).collect();
    assert_eq!(lines(&rig, "a.3.csv"), with_semicolons);
}

#[tokio::test]
async fn the_file_of_a_deleted_integration_is_left_alone() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    let path = format!("/api/v1/forms/{}/integrations/file", rig.form);
    rig.server.call(Method::DELETE, &path).send().await;
    let again = json!({"type": "csv_file", "name": "again", "path": "other.csv"});
    rig.server.integrate(&rig.form, again).await;
    let bea = rig.submit("Bea").await;
    rig.server.deliver().await;
    let path = format!("/api/v1/forms/{}/integrations/again", rig.form);
    rig.server.call(Method::PATCH, &path).json(json!({"path": "leads.csv"})).send().await.expect(200);
    let cem = rig.submit("Cem").await;
    rig.server.deliver().await;
    for (file, name, id) in
        [("leads.csv", "Ada", &ada), ("other.csv", "Bea", &bea), ("leads.2.csv", "Cem", &cem)]
    {
        assert_eq!(lines(&rig, file), rows(&[(name, id)]));
    }
}

#[tokio::test]
async fn an_empty_file_is_used_and_another_is_not() {
    // The server ended after it had created the first file of one form.
    for (found, written) in [("", "leads.csv"), ("mine", "leads.2.csv")] {
        let rig = rig("leads.csv").await;
        fs::create_dir_all(exports(&rig)).unwrap();
        fs::write(exports(&rig).join("leads.csv"), found).unwrap();
        let ada = rig.submit("Ada").await;
        rig.server.deliver().await;
        assert_eq!(lines(&rig, written), rows(&[("Ada", &ada)]), "{found:?}");
    }
}

#[tokio::test]
async fn no_integration_can_name_a_later_file_of_another() {
    let rig = rig("leads.csv").await;
    let path = format!("/api/v1/forms/{}/integrations", rig.form);
    let other = json!({"type": "csv_file", "name": "other", "path": "leads.2.csv"});
    let refused = rig.server.post(&path, other).send().await.expect(422);
    assert_eq!(refused["errors"][0]["pointer"], "/path");
}

#[tokio::test]
async fn a_row_that_was_written_is_not_written_again_by_hand() {
    let rig = rig("leads.csv").await;
    let ada = rig.submit("Ada").await;
    rig.server.deliver().await;
    let delivery = rig.delivery().await;
    let path = format!("/api/v1/deliveries/{}/redeliver", delivery["id"].as_str().unwrap());
    assert_eq!(rig.server.call(Method::POST, &path).send().await.code(), "delivery_not_repeatable");
    let mut all = json!({"form": rig.form, "status": "delivered", "dry_run": true});
    let counted = rig.server.post("/api/v1/deliveries:redeliver", all.clone()).send().await.expect(200);
    assert_eq!(counted["count"], 0);
    all["dry_run"] = json!(false);
    let counted = rig.server.post("/api/v1/deliveries:redeliver", all).send().await.expect(200);
    assert_eq!(counted["count"], 0);
    rig.server.deliver().await;
    assert_eq!(lines(&rig, "leads.csv"), rows(&[("Ada", &ada)]));
}
