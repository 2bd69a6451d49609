//! The metrics: what is counted, and what no label has.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::prelude::*;

/// What Prometheus sends.
const ACCEPT: &str =
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";

async fn scrape(server: &Server) -> String {
    let response = server.get("/metrics").header("accept", ACCEPT).send().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    response.text().to_owned()
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("there is no {series}")).parse().unwrap()
}

#[tokio::test]
async fn requests_and_submissions_are_counted_without_names_and_ids() {
    let (server, form) = Server::with_form().await;
    let path = format!("{FORMS}/{form}/submissions");
    for _ in 0..2 {
        let body = json!({"answers": {"q1": "hello"}});
        server.post(&path, body).header("idempotency-key", "once").send().await.expect(201);
    }
    server.post(&path, json!({"answers": {"q1": 5}})).send().await.expect(422);
    let rows = json!({"submissions": [{"answers": {"q1": "a"}}, {"answers": {"q1": "b"}}, {"answers": {}}]});
    server.post(format!("{path}:batch"), rows).send().await.expect(200);
    server.get(format!("{FORMS}/{form}/responses")).send().await.expect(200);
    server.get("/secret-path?q1=canary").send().await.expect(404);
    server.call(Method::from_bytes(b"INVENTED").unwrap(), "/healthz").send().await.expect(405);
    let metrics = scrape(&server).await;
    for (labels, count) in [
        (r#"method="POST",route="/api/v1/forms/{form}/submissions",status="201""#, 2.0),
        (r#"method="POST",route="/api/v1/forms/{form}/submissions",status="422""#, 1.0),
        (r#"method="GET",route="/api/v1/forms/{form}/responses",status="200""#, 1.0),
        (r#"method="GET",route="unmatched",status="404""#, 1.0),
        (r#"method="other",route="/healthz",status="405""#, 1.0),
    ] {
        assert_eq!(value(&metrics, &format!("forms_http_requests_total{{{labels}}}")), count, "{labels}");
    }
    let submissions =
        r#"forms_http_request_duration_seconds_count{route="/api/v1/forms/{form}/submissions"}"#;
    assert_eq!(value(&metrics, submissions), 3.0);
    for (result, count) in [("accepted", 3.0), ("replayed", 1.0), ("rejected", 2.0), ("failed", 0.0)] {
        let series = format!("forms_submissions_total{{result=\"{result}\"}}");
        assert_eq!(value(&metrics, &series), count, "{result}");
    }
    for secret in [&*form, "sub_", "canary", "secret-path", "INVENTED", "Lunch"] {
        assert!(!metrics.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn deliveries_are_counted_by_type_and_result() {
    let (server, form) = Server::with_form().await;
    server.integrate(&form, webhook()).await;
    server.submit(&form, json!({"q1": "hello"})).await;
    server.clock.advance(5_000);
    let pending = "forms_deliveries_pending{type=\"webhook\"}";
    let before = scrape(&server).await;
    assert_eq!((value(&before, pending), value(&before, "forms_integrations_paused")), (1.0, 0.0));
    assert_eq!(value(&before, "forms_deliveries_oldest_due_seconds"), 5.0);
    server.deliver().await;
    let after = scrape(&server).await;
    let delivered = "forms_deliveries_total{result=\"delivered\",type=\"webhook\"}";
    assert_eq!((value(&after, pending), value(&after, delivered)), (0.0, 1.0));
    assert_eq!(value(&after, "forms_deliveries_oldest_due_seconds"), 0.0);
    assert_eq!(value(&after, "forms_delivery_duration_seconds_count"), 1.0);
}

#[tokio::test]
async fn the_documentation_names_exactly_the_metrics_that_exist() {
    let metrics = scrape(&Server::start().await).await;
    let families = |word: &str| -> BTreeSet<String> {
        let names = metrics.lines().filter_map(|line| line.strip_prefix(&format!("# {word} ")));
        names.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let exposed = families("TYPE");
    assert_eq!(families("HELP"), exposed);
    let manual = fs::read_to_string("docs/operating.md").unwrap();
    let section = manual.split("\n## ").find(|section| section.starts_with("Watch it")).unwrap();
    let is_name = |name: &&str| name.starts_with("forms_") || name.starts_with("process_");
    let words = section.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_name);
    let documented: BTreeSet<_> = words.map(|word| word.trim_end_matches("_bucket").to_owned()).collect();
    assert_eq!(documented, exposed);
}
