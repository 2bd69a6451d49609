//! CORS: which web origins may read responses (WHATWG Fetch §3.2).

use forms::config::WebOrigin;

use crate::harness::prelude::*;

const APP: &str = "https://app.example.com";
async fn server() -> Server {
    let cors_origins = vec![APP.parse().unwrap(), "http://localhost:3000".parse().unwrap()];
    Server::with_settings(HttpSettings { cors_origins, ..HttpSettings::default() }).await
}

/// The CORS headers and `Vary` of a response, one a line.
fn cors_headers(response: &TestResponse) -> String {
    let is_cors = |name: &str| name.starts_with("access-control-") || name == "vary";
    let headers = response.headers.iter().filter(|(name, _)| is_cors(name.as_str()));
    let mut lines: Vec<_> =
        headers.map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap())).collect();
    lines.sort_unstable();
    lines.concat()
}

fn allowed(origin: &str) -> String {
    format!(
        "access-control-allow-origin: {origin}\naccess-control-expose-headers: Location, Link, ETag, Retry-After, \
         X-Request-Id, Forms-Total, Forms-Dropped, Idempotency-Replayed\nvary: origin\n"
    )
}

#[tokio::test]
async fn a_listed_origin_may_read_every_response() {
    let server = server().await;
    for origin in [APP, "http://localhost:3000"] {
        let cases = [
            (server.get(FORMS), 200),
            (server.post(FORMS, json!({"title": "Visit"})), 201),
            (server.post(FORMS, json!({})), 422),
            (server.call_without_key(Method::GET, FORMS), 401),
            (server.get("/api/v1/nothing"), 404),
            (server.call(Method::PUT, FORMS), 405),
            (server.get(FORMS).header("x-filler", &"x".repeat(40_000)), 431),
            (server.get(FORMS).header("expect", "cake"), 417),
            (server.call_without_key(Method::GET, "/healthz"), 200),
        ];
        for (call, status) in cases {
            let response = call.header("origin", origin).send().await;
            assert_eq!((response.status.as_u16(), cors_headers(&response)), (status, allowed(origin)));
        }
    }
}

#[tokio::test]
async fn other_origins_get_the_same_response_as_without_an_origin() {
    let server = server().await;
    let send = async |call: Call| {
        let response = call.header("x-request-id", "same").send().await;
        (response.status, response.headers, response.body)
    };
    for method in [Method::GET, Method::OPTIONS] {
        let call = || server.call(method.clone(), FORMS).header("access-control-request-method", "GET");
        let without = send(call()).await;
        assert_eq!(without.1["vary"], "origin");
        let others = "https://evil.example|null||*|https://app.example.com.evil.example|https://app.example.com/|\
            https://app.example.com:443|http://app.example.com|https://APP.example.com|http://localhost|\
            http://localhost:3000, https://evil.example|é";
        for origin in others.split('|') {
            assert_eq!(send(call().header("origin", origin)).await, without, "{origin}");
        }
        let two = call().header("origin", APP).also_header("origin", "https://evil.example");
        assert_eq!(send(two).await, without);
    }
}

#[tokio::test]
async fn without_listed_origins_there_are_no_cors_headers() {
    let server = Server::start().await;
    for method in [Method::GET, Method::OPTIONS] {
        let call = server.call(method, FORMS).header("origin", APP);
        let response = call.header("access-control-request-method", "POST").send().await;
        assert_eq!(cors_headers(&response), "");
    }
}

#[tokio::test]
async fn a_preflight_request_lists_methods_and_headers() {
    let server = server().await;
    let preflight = |path: &str| {
        let call = server.call_without_key(Method::OPTIONS, path).header("origin", APP);
        call.header("access-control-request-method", "PATCH")
            .header("access-control-request-headers", "authorization,content-type,if-match")
    };
    for (path, methods) in [
        (FORMS, ["GET", "HEAD", "POST"].as_slice()),
        ("/api/v1/forms/frm_000000000000", &["DELETE", "GET", "HEAD", "PATCH"]),
        ("/healthz", &["GET", "HEAD"]),
    ] {
        let response = preflight(path).send().await;
        assert_eq!((response.status.as_u16(), response.text()), (204, ""));
        let mut listed: Vec<_> =
            response.header("access-control-allow-methods").unwrap().split(',').collect();
        listed.sort_unstable();
        assert_eq!(listed, methods, "{path}");
        let headers = cors_headers(&response);
        let others = headers.lines().filter(|line| !line.starts_with("access-control-allow-methods"));
        assert_eq!(
            others.collect::<Vec<_>>(),
            [
                "access-control-allow-headers: Authorization, Content-Type, Accept, If-Match, Idempotency-Key, X-Request-Id",
                "access-control-allow-origin: https://app.example.com",
                "access-control-max-age: 600",
                "vary: origin",
            ]
        );
    }
    // Browsers accept only a success, so that an unknown path ends here.
    assert_eq!(preflight("/api/v1/nothing").send().await.code(), "route_not_found");
    // Without the method that it asks for, it is an ordinary OPTIONS request.
    let plain = preflight(FORMS).without_header("access-control-request-method").send().await;
    assert_eq!(cors_headers(&plain), allowed(APP));
}

#[tokio::test]
async fn a_compressed_response_varies_by_both_headers() {
    let server = server().await;
    let call = server.get("/api/v1/openapi.json").header("origin", APP).header("accept-encoding", "gzip");
    let response = call.send().await;
    let varies: Vec<_> = response.headers.get_all("vary").iter().collect();
    assert_eq!(varies, ["accept-encoding", "origin"]);
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    let same =
        "https://app.example.com|http://localhost:3000|http://[::1]:8080|https://xn--bcher-kva.example";
    for text in same.split('|') {
        assert_eq!(text.parse::<WebOrigin>().unwrap().as_str(), text);
    }
    let wildcard = "wildcards are not supported; list each origin";
    let null = "any web page can send the origin `null`, from a sandboxed frame; list each origin";
    let malformed = "expected scheme, host and optionally a port, such as https://app.example.com";
    let app = "browsers send this origin as https://app.example.com";
    let all_malformed = "|app.example.com|//app.example.com|ftp://app.example.com|file:///tmp|https://app.example.com/path|\
        https://app.example.com?|https://app.example.com#x|https://ada@app.example.com|\
        https://app.example.com, https://b.example";
    for (texts, error) in [
        ("*|https://*.example.com", wildcard),
        ("null", null),
        (all_malformed, malformed),
        ("https://app.example.com/|https://app.example.com:443|HTTPS://App.example.com", app),
        ("https://bücher.example", "browsers send this origin as https://xn--bcher-kva.example"),
    ] {
        for text in texts.split('|') {
            assert_eq!(text.parse::<WebOrigin>(), Err(error.to_owned()), "{text}");
        }
    }
}
