//! Erasing all that forms have of someone, and submissions at the age that their form sets.

use forms::app::MaintenanceOutcome;

use super::filters::path;
use crate::harness::prelude::*;

async fn submit(server: &Server, form: &str, body: Value) -> String {
    server.create(path(form), body).await
}

async fn erase(server: &Server, form: &str, query: &str) -> TestResponse {
    server.call(Method::POST, format!("{}:erase?{query}", path(form))).send().await
}

fn found(erasure: &Value) -> Vec<(&str, &Value)> {
    let submissions = erasure["submissions"].as_array().unwrap();
    submissions.iter().map(|one| (one["id"].as_str().unwrap(), &one["found_in"])).collect()
}

#[tokio::test]
async fn everything_that_a_form_has_of_someone_is_found_and_erased() {
    let (server, form) = Server::with_form().await;
    let live = submit(&server, &form, json!({"answers": {"q1": "Ann LEE"}})).await;
    let tagged =
        submit(&server, &form, json!({"answers": {"q1": "x"}, "metadata": {"by": "ann l\u{e9}e, ann lee"}}))
            .await;
    let trashed = submit(&server, &form, json!({"answers": {"q1": "ann lee"}})).await;
    let edited = submit(&server, &form, json!({"answers": {"q1": "Ann Lee", "q3": 4}})).await;
    let other = submit(&server, &form, json!({"answers": {"q1": "Bob", "q3": 4}})).await;
    let by_number = erase(&server, &form, "q=4&dry_run=true").await.expect(200);
    assert_eq!(found(&by_number).len(), 2);
    server.remove(format!("{}/{trashed}", path(&form))).await;
    server
        .patch(format!("{}/{edited}", path(&form)), json!({"answers": {"q1": "B"}}))
        .send()
        .await
        .expect(200);
    let dry = erase(&server, &form, "q=ann%20lee&dry_run=true").await.expect(200);
    let (answers, trash, history) = (json!(["answers"]), json!(["trash"]), json!(["history"]));
    let all = [(&*live, &answers), (&*tagged, &answers), (&*trashed, &trash), (&*edited, &history)];
    assert_eq!(found(&dry), all);
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 4);
    let call = || {
        let path = format!("{}:erase?q=ann%20lee", path(&form));
        server.call(Method::POST, path).header("idempotency-key", "a")
    };
    let erased = call().send().await;
    assert_eq!(found(&erased.expect(200)), all);
    assert_eq!(call().send().await.text(), erased.text());
    assert_eq!(found(&erase(&server, &form, "q=ann%20lee").await.expect(200)), []);
    let left = server.read(path(&form)).await;
    assert_eq!(left["submissions"].as_array().unwrap().len(), 1);
    assert_eq!(left["submissions"][0]["id"], *other);
    assert_eq!(server.read(format!("{}?trashed=true", path(&form))).await["submissions"], json!([]));
    let by_answer = erase(&server, &form, "where=q3.eq=4&q=bob").await.expect(200);
    assert_eq!(found(&by_answer), [(&*other, &answers)]);
}

#[tokio::test]
async fn a_form_in_the_trash_is_searched_too_and_notifies_nobody() {
    let (server, form) = Server::with_form().await;
    let hook =
        json!({"type": "webhook", "url": "https://example.com/hook", "events": ["submission.deleted"]});
    server.create(format!("{FORMS}/{form}/integrations"), hook).await;
    let ann = submit(&server, &form, json!({"answers": {"q1": "Ann", "q3": 4}})).await;
    submit(&server, &form, json!({"answers": {"q1": "Bob"}})).await;
    server.remove(format!("{FORMS}/{form}")).await;
    let erased = erase(&server, &form, "where=q3.gte=4").await.expect(200);
    assert_eq!(found(&erased), [(&*ann, &json!(["answers"]))]);
    server.call(Method::POST, format!("{FORMS}/{form}/restore")).send().await.expect(200);
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 1);
    assert_eq!(server.read("/api/v1/deliveries").await["deliveries"], json!([]));
}

#[tokio::test]
async fn an_erasure_says_what_to_find_and_has_a_limit() {
    let (server, form) = Server::with_form().await;
    for query in
        ["", "q=", "dry_run=true", "q=a&x=1", "where=q3.foo=1", "where=nobody.eq=4", "where=q3.gte=x"]
    {
        erase(&server, &form, query).await.expect_problem(400, "invalid_query");
    }
    erase(&server, "frm_000000000000", "q=a").await.expect_problem(404, "form_not_found");
    let rows = vec![json!({"answers": {"q1": "Ann"}}); 501];
    for _ in 0..2 {
        let batch = json!({"submissions": rows});
        server.post(format!("{}:batch", path(&form)), batch).send().await.expect(200);
    }
    erase(&server, &form, "q=ann").await.expect_errors(&[("/q", "too_many")]);
    assert_eq!(server.read(format!("{FORMS}/{form}")).await["response_count"], 1_002);
}

#[tokio::test]
async fn submissions_are_erased_at_the_age_that_their_form_sets() {
    let (server, form) = Server::with_form().await;
    let hook =
        json!({"type": "webhook", "url": "https://example.com/hook", "events": ["submission.deleted"]});
    server.create(format!("{FORMS}/{form}/integrations"), hook).await;
    let maintain = async |day: u32| {
        for hour in [0, 12] {
            server.clock.set(&format!("2026-11-{day}T{hour:02}:00:00.000Z"));
            let outcome = server.app.maintain(30).await.unwrap();
            if outcome != MaintenanceOutcome::Erased(0) {
                return outcome;
            }
        }
        MaintenanceOutcome::Erased(0)
    };
    let old = submit(&server, &form, json!({"answers": {"q1": "Ann"}})).await;
    let trashed = submit(&server, &form, json!({"answers": {"q1": "Bob"}})).await;
    server.remove(format!("{}/{trashed}", path(&form))).await;
    assert_eq!(maintain(21).await, MaintenanceOutcome::Erased(0));
    let new = submit(&server, &form, json!({"answers": {"q1": "Cem"}})).await;
    let days =
        |days: Value| server.patch(format!("{FORMS}/{form}"), json!({"settings": {"retention_days": days}}));
    for refused in [json!(0), json!(3_651), json!("7")] {
        assert_eq!(days(refused).send().await.status, 422);
    }
    assert_eq!(days(json!(2)).send().await.expect(200)["settings"]["retention_days"], 2);
    assert_eq!(maintain(22).await, MaintenanceOutcome::Erased(2));
    let left = server.read(path(&form)).await;
    assert_eq!(left["submissions"].as_array().unwrap().len(), 1);
    assert_eq!(left["submissions"][0]["id"], *new);
    let deliveries = server.read("/api/v1/deliveries").await;
    let of_old =
        deliveries["deliveries"].as_array().unwrap().iter().filter(|one| one["submission_id"] == *old);
    assert_eq!(of_old.count(), 1, "{deliveries}");
    days(json!(null)).send().await.expect(200);
    assert_eq!(maintain(23).await, MaintenanceOutcome::Erased(0));
}
