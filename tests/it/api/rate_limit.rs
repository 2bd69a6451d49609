//! The limit of requests with one API key.

use crate::harness::prelude::*;

async fn server(rate: &str) -> Server {
    Server::with_settings(HttpSettings { rate_limit: Some(rate.parse().unwrap()), ..HttpSettings::default() })
        .await
}

#[tokio::test]
async fn a_key_gets_429_beyond_its_rate_until_the_window_ends() {
    let server = server("3/min").await;
    let other = server.key_with(&[Scope::Admin]).await;
    // Every request counts, whatever its result.
    assert_eq!(server.get("/api/v1/forms").send().await.status, 200);
    assert_eq!(server.get("/api/v1/forms/frm_000000000000").send().await.status, 404);
    assert_eq!(server.post("/api/v1/forms", json!({})).send().await.status, 422);
    for address in ["192.0.2.1", "192.0.2.2"] {
        let refused = server.get("/api/v1/forms").with_client_address(address).send().await;
        assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("rate_limited", Some("60")));
        assert_eq!(
            refused.json()["detail"],
            "this API key has reached its rate limit of 3/min; wait 60 seconds"
        );
    }
    let made = server.post("/api/v1/forms", json!({"title": "Visit"})).send().await;
    assert_eq!(made.code(), "rate_limited");
    // Others are not affected: another key, requests without a key, invalid keys.
    assert_eq!(server.get("/api/v1/forms").key(&other).send().await.expect(200), json!({"forms": []}));
    assert_eq!(server.call_without_key(Method::GET, "/healthz").send().await.status, 200);
    assert_eq!(server.call_without_key(Method::GET, "/api/v1/openapi.json").send().await.status, 200);
    assert_eq!(server.get("/api/v1/forms").key("fk_1").send().await.status, 401);
    for (time, status) in [("09:00:59.001", 429), ("09:01:00", 200), ("09:01:01", 200)] {
        server.clock.set(&format!("2026-11-20T{time}Z"));
        assert_eq!(server.get("/api/v1/forms").send().await.status, status, "{time}");
    }
}

#[tokio::test]
async fn a_rate_per_second_waits_a_second() {
    let server = server("2/s").await;
    for _ in 0..2 {
        server.read("/api/v1/forms").await;
    }
    let refused = server.get("/api/v1/forms").send().await;
    assert_eq!(refused.json()["detail"], "this API key has reached its rate limit of 2/s; wait 1 second");
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.clock.set("2026-11-20T09:00:01Z");
    server.read("/api/v1/forms").await;
}

#[tokio::test]
async fn limits_report_the_rate_and_without_one_nothing_is_counted() {
    let limited = server("50/s").await.get("/api/v1/limits").send().await.expect(200);
    assert_eq!([&limited["rate_limit"], &limited["page_rate"]], ["50/s", "30/min"]);
    let server = Server::start().await;
    assert_eq!(server.read("/api/v1/limits").await["rate_limit"], Value::Null);
    for _ in 0..200 {
        assert_eq!(server.get("/api/v1/whoami").send().await.status, 200);
    }
}
