//! Batches: many submissions in one request, each with its own result.

use super::filters::path;
use crate::harness::prelude::*;

fn batch_path(form: &str) -> String {
    format!("{}:batch", path(form))
}

fn batch(rows: &[Value]) -> Value {
    json!({ "submissions": rows })
}

fn named(name: &str) -> Value {
    json!({"answers": {"q1": name}})
}

fn statuses(results: &Value) -> Vec<u64> {
    let results = results["results"].as_array().unwrap();
    results.iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn each_submission_has_a_result_as_if_it_had_been_sent_alone() {
    let (server, form) = Server::with_form().await;
    let rows = [
        json!({"answers": {"q1": "Ada", "q3": 5}, "metadata": {"at": "1815"}}),
        json!({"answers": {"q2": "nobody"}}),
        json!(7),
        json!({"answers": {"q1": "Grace"}, "x": 1}),
        named("Bob"),
    ];
    let mut ids = Vec::new();
    let lines = rows.iter().map(|row| format!("{row}\r\n\n")).collect::<String>();
    let in_lines = server.call(Method::POST, batch_path(&form)).body(lines);
    let in_lines = in_lines.header("content-type", "application/x-ndjson; charset=utf-8");
    for call in [server.post(batch_path(&form), batch(&rows)), in_lines] {
        let results = call.send().await.expect(200);
        assert_eq!(statuses(&results), [201, 422, 422, 422, 201]);
        for (row, result) in rows.iter().zip(results["results"].as_array().unwrap()) {
            let alone = server.post(format!("{}?dry_run=true", path(&form)), row.clone()).send().await.json();
            for member in ["code", "detail", "errors"] {
                assert_eq!(result[member], alone[member], "{row}");
            }
            ids.extend(result["id"].as_str().map(str::to_owned));
        }
    }
    let stored = server.read(path(&form)).await;
    let listed = stored["submissions"].as_array().unwrap().iter().rev();
    assert_eq!(listed.map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), ids);
    let first = server.read(format!("{}/{}", path(&form), ids[0])).await;
    assert_eq!((&first["answers"], &first["metadata"]), (&rows[0]["answers"], &rows[0]["metadata"]));
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 4);
}

#[tokio::test]
async fn a_batch_that_cannot_be_read_is_refused_as_a_whole() {
    let (server, form) = Server::with_form().await;
    let post = |body: Value| server.post(batch_path(&form), body);
    post(json!({})).send().await.expect_errors(&[("/submissions", "missing_field")]);
    post(json!([])).send().await.expect_errors(&[("", "type_mismatch")]);
    post(json!({"submissions": 1, "x": 1}))
        .send()
        .await
        .expect_errors(&[("/submissions", "type_mismatch"), ("/x", "unknown_field")]);
    post(batch(&[])).send().await.expect_errors(&[("/submissions", "empty")]);
    post(batch(&vec![json!(0); 1_001])).send().await.expect_errors(&[("/submissions", "too_many")]);
    let text = |body: &'static str| server.call(Method::POST, batch_path(&form)).body(body);
    let json = text(r#"{"submissions":[}"#).header("content-type", "application/json");
    json.send().await.expect_problem(400, "malformed_json");
    text("{}").header("content-type", "text/csv").send().await.expect_problem(415, "unsupported_media_type");
    let lines = |body| text(body).header("content-type", "application/x-ndjson");
    lines("\n \n").send().await.expect_errors(&[("/submissions", "empty")]);
    // A line that is not JSON is only its own problem.
    let results = lines("{\"answers\":{\"q1\":\"Ada\"}}\n{").send().await.expect(200);
    assert_eq!(statuses(&results), [201, 400]);
    assert_eq!(results["results"][1]["code"], "malformed_json");
}

#[tokio::test]
async fn a_form_takes_no_more_of_a_batch_than_it_has_places_for() {
    let (server, form) = Server::with_form().await;
    let rows = batch(&[named("1"), json!({}), named("2"), named("3")]);
    let limited = json!({"settings": {"max_responses": 2}});
    server.patch(format!("{FORMS}/{form}"), limited).send().await.expect(200);
    let dry = format!("{}?dry_run=true", batch_path(&form));
    let would_be = server.post(&dry, rows.clone()).send().await.expect(200);
    assert_eq!(statuses(&would_be), [200, 422, 200, 409]);
    assert_eq!(would_be["results"][0]["id"], "sub_00000000000000000000000000");
    let results = server.post(batch_path(&form), rows.clone()).send().await.expect(200);
    assert_eq!(statuses(&results), [201, 422, 201, 409]);
    assert_eq!(results["results"][3]["code"], "form_full");
    for path in [batch_path(&form), dry] {
        server.post(path, rows.clone()).send().await.expect_problem(409, "form_full");
    }
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 2);
}

#[tokio::test]
async fn a_replayed_batch_is_the_first_response_and_stores_nothing() {
    let (server, form) = Server::with_form().await;
    let send = |key: &str| {
        let rows = batch(&[named("Ada"), json!({"answers": {}}), named("Bob")]);
        server.post(batch_path(&form), rows).header("idempotency-key", key)
    };
    let first = send("a").send().await;
    assert_eq!(statuses(&first.expect(200)), [201, 422, 201]);
    server.patch(format!("{FORMS}/{form}"), json!({"settings": {"closed": true}})).send().await.expect(200);
    let again = send("a").send().await;
    assert!(again.is_replay());
    assert_eq!(again.text(), first.text());
    send("b").send().await.expect_problem(409, "form_closed");
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 2);
}

#[tokio::test]
async fn the_largest_batch_is_one_write_and_notifies_of_each_submission() {
    let (server, form) = Server::with_form().await;
    let hook = server.create(format!("{FORMS}/{form}/integrations"), webhook()).await;
    let long = "x".repeat(1_000);
    let rows: Vec<_> = (0..1_000).map(|number| named(&format!("{number} {}", &long[..990]))).collect();
    let quiet = format!("{}?notify=false", batch_path(&form));
    for (path, waiting) in [(quiet, 0), (batch_path(&form), 1_000)] {
        let results = server.post(path, batch(&rows)).send().await.expect(200);
        assert_eq!(statuses(&results), [201; 1_000]);
        let integration = server.read(format!("{FORMS}/{form}/integrations/{hook}")).await;
        assert_eq!(integration["health"]["pending"], waiting);
    }
    let dropping = json!({"settings": {"unknown_answers": "drop"}});
    server.patch(format!("{FORMS}/{form}"), dropping).send().await.expect(200);
    let unknown = batch(&[json!({"answers": {"q1": "Ada", "q9": 1}})]);
    let results = server.post(batch_path(&form), unknown).send().await.expect(200);
    assert_eq!(results["results"][0]["dropped"], json!(["q9"]));
    let found = server.read(format!("{}?limit=1000", path(&form))).await;
    let pages = found["submissions"].as_array().unwrap().len();
    assert!(pages > 500, "a page ends at a megabyte: {pages}");
}
