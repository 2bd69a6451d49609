//! Servers behind proxies: the client's address and the URLs in responses.

use forms::client::{Client, FormQuery, RetryPolicy, Transport, Url};
use forms::secret::{Secret, SystemRandomness};

use crate::harness::prelude::*;

const PROXY: &str = "10.0.0.1";
const WHOAMI: &str = "/api/v1/whoami";

/// Settings with these trusted proxies, where a second failed authentication from an address gets 429.
fn behind(proxies: &[&str]) -> HttpSettings {
    HttpSettings {
        trusted_proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
        auth_failures: Some("1/min".parse().unwrap()),
        ..HttpSettings::default()
    }
}

/// Sends an invalid key from `peer`, with these lines of `X-Forwarded-For`.
async fn fail(server: &Server, peer: &str, lines: &[&str]) -> String {
    let mut call = server.call_without_key(Method::GET, WHOAMI).key("fk_1").with_client_address(peer);
    for line in lines {
        call = call.also_header("x-forwarded-for", line);
    }
    call.send().await.code()
}

#[tokio::test]
async fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
    let cases: [(&str, &[&str], &str); 25] = [
        (PROXY, &[], PROXY),
        (PROXY, &["192.0.2.1"], "192.0.2.1"),
        ("::ffff:10.0.0.1", &["192.0.2.1"], "192.0.2.1"),
        ("fd00::1", &["192.0.2.1"], "192.0.2.1"),
        (PROXY, &["::ffff:192.0.2.1"], "192.0.2.1"),
        (PROXY, &["198.51.100.1, 192.0.2.1"], "192.0.2.1"),
        (PROXY, &["198.51.100.1", "192.0.2.1"], "192.0.2.1"),
        (PROXY, &["192.0.2.1 ,\t10.0.0.2,fd00::9"], "192.0.2.1"),
        (PROXY, &["198.51.100.1", "192.0.2.1, 10.0.0.3", "10.0.0.2"], "192.0.2.1"),
        // Only proxies: the first of them.
        (PROXY, &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        // As proxies write ports and brackets.
        (PROXY, &["192.0.2.1:54321"], "192.0.2.1"),
        (PROXY, &["2001:db8::1"], "2001:db8::1"),
        (PROXY, &["[2001:db8::1]"], "2001:db8::1"),
        (PROXY, &["[2001:db8::1]:54321"], "2001:db8::1"),
        // A malformed entry ends the search.
        (PROXY, &["192.0.2.1, unknown"], PROXY),
        (PROXY, &["192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2"),
        (PROXY, &["192.0.2.1, "], PROXY),
        (PROXY, &["192.0.2.1, 192.0.2.2:99999"], PROXY),
        (PROXY, &["192.0.2.1, [192.0.2.2]"], PROXY),
        (PROXY, &["192.0.2.1, \"192.0.2.2\""], PROXY),
        (PROXY, &["192.0.2.1, é"], PROXY),
        (PROXY, &["unknown, 192.0.2.1"], "192.0.2.1"),
        // From others, the header has no effect.
        ("198.51.100.9", &["192.0.2.1"], "198.51.100.9"),
        ("198.51.100.9", &["192.0.2.1", "10.0.0.1"], "198.51.100.9"),
        ("10.1.0.1", &["192.0.2.1, 10.0.0.1"], "10.1.0.1"),
    ];
    for (peer, lines, client) in cases {
        let server = Server::with_settings(behind(&["10.0.0.0/16", "fd00::/8"])).await;
        // The client's own failure is the only one allowed, so that the next one shows whose it is.
        assert_eq!(fail(&server, client, &[]).await, "unauthorized");
        assert_eq!(fail(&server, peer, lines).await, "rate_limited", "{peer} {lines:?}");
        assert_eq!(fail(&server, "203.0.113.1", &[]).await, "unauthorized");
    }
}

/// The URLs of responses to requests with these headers: `Location`, `Link`, the `type` of a problem, and the server in
/// the OpenAPI document.
async fn urls(server: &Server, peer: &str, headers: &[(&'static str, &str)]) -> [String; 4] {
    let send = async |method: Method, path: &str, body: Value| {
        let call = server.call(method, path).json(body).with_client_address(peer);
        headers.iter().fold(call, |call, (name, value)| call.also_header(name, value)).send().await
    };
    let header = |response: &TestResponse, name: &str| response.header(name).unwrap().to_owned();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let made = send(Method::POST, "/api/v1/forms", json!({"title": "Visit", "questions": []})).await;
    send(Method::POST, "/api/v1/forms", json!({"title": "Visit", "questions": []})).await;
    let list = send(Method::GET, "/api/v1/forms?limit=1", json!({})).await;
    let problem = send(Method::GET, "/api/v1/nothing", json!({})).await;
    let document = send(Method::GET, "/api/v1/openapi.json", json!({})).await.expect(200);
    let id = text(&made.json()["id"]);
    let cursor = header(&list, "link").split_once("cursor=").unwrap().1.to_owned();
    [
        header(&made, "location").replace(&id, "ID"),
        header(&list, "link").replace(&cursor, "CURSOR"),
        text(&problem.json()["type"]),
        text(&document["servers"][0]["url"]),
    ]
}

fn expected_urls(base: &str) -> [String; 4] {
    [
        format!("{base}/api/v1/forms/ID"),
        format!("<{base}/api/v1/forms?limit=1&cursor=CURSOR"),
        format!("{base}/problems/route_not_found"),
        if base.is_empty() { "/".to_owned() } else { base.to_owned() },
    ]
}

#[tokio::test]
async fn urls_begin_with_what_a_trusted_proxy_reports() {
    const HOST: &str = "x-forwarded-host";
    const PREFIX: &str = "x-forwarded-prefix";
    const PROTO: &str = "x-forwarded-proto";
    let longest = format!("/{}", "x".repeat(199));
    let too_long = format!("/{}", "x".repeat(200));
    let all = [(PREFIX, "/surveys"), (HOST, "forms.example.com"), (PROTO, "https")];
    let with_prefix = |prefix| [(HOST, "forms.example.com"), (PREFIX, prefix)];
    let cases: [(&[(&'static str, &str)], &str); 30] = [
        (&[], ""),
        (&all, "https://forms.example.com/surveys"),
        (&[(HOST, "forms.example.com:8443"), (PROTO, "HTTPS")], "https://forms.example.com:8443"),
        (&[(HOST, "[2001:db8::1]:80"), (PROTO, "http")], "http://[2001:db8::1]:80"),
        (&[(HOST, "forms.example.com")], "http://forms.example.com"),
        (&[(PREFIX, "/surveys")], "/surveys"),
        (&[(PREFIX, "/a/api/v1/b/")], "/a/api/v1/b"),
        (&[(PREFIX, "/")], ""),
        (&[(PREFIX, "/~a-b_c%20d:e@f!$&'()*+;=.")], "/~a-b_c%20d:e@f!$&'()*+;=."),
        (&[(PREFIX, &longest)], &longest),
        (&[(PROTO, "https")], ""),
        // The nearest proxy wrote the last element; a client may have written the others.
        (&[(HOST, "evil.example, forms.example.com")], "http://forms.example.com"),
        (&[(HOST, "evil.example"), (HOST, "forms.example.com")], "http://forms.example.com"),
        (&[(PREFIX, "/evil,/surveys")], "/surveys"),
        // Each invalid header is ignored.
        (&[(PREFIX, &too_long)], ""),
        (&[(PREFIX, "")], ""),
        (&[(PREFIX, "surveys")], ""),
        (&[(PREFIX, "//evil.example")], ""),
        (&[(PREFIX, "/\\evil.example")], ""),
        (&[(PREFIX, "/a b")], ""),
        (&[(PREFIX, "/a?b")], ""),
        (&[(PREFIX, "/a#b")], ""),
        (&[(PREFIX, "/a>; rel=\"next\"")], ""),
        (&[(PREFIX, "/é")], ""),
        (&[(PREFIX, "https://evil.example")], ""),
        (&with_prefix("//evil.example"), "http://forms.example.com"),
        (&[(HOST, "evil.example/path"), (PROTO, "https")], ""),
        (&[(HOST, "user@evil.example"), (PREFIX, "/surveys")], "/surveys"),
        (&[(HOST, "")], ""),
        (&[(HOST, "forms.example.com"), (PROTO, "gopher")], "http://forms.example.com"),
    ];
    let server = Server::with_settings(behind(&["10.0.0.1/32"])).await;
    for (headers, base) in cases {
        assert_eq!(urls(&server, PROXY, headers).await, expected_urls(base), "{headers:?}");
    }
    assert_eq!(urls(&server, "10.0.0.2", &all).await, expected_urls(""), "the peer is not trusted");
    let server = Server::start().await;
    assert_eq!(urls(&server, "127.0.0.1", &all).await, expected_urls(""), "no proxy is trusted");
}

#[tokio::test]
async fn the_configured_base_url_takes_precedence() {
    let base_url = Some("https://forms.example.com/a,b/".parse().unwrap());
    let server = Server::with_settings(HttpSettings { base_url, ..behind(&["10.0.0.1/32"]) }).await;
    let reported = [("x-forwarded-host", "other.example"), ("x-forwarded-prefix", "/other")];
    for (peer, headers) in [(PROXY, reported.as_slice()), (PROXY, &[]), ("192.0.2.1", &reported)] {
        let expected = expected_urls("https://forms.example.com/a,b");
        assert_eq!(urls(&server, peer, headers).await, expected, "{peer} {headers:?}");
    }
    // A retry gets the URL of its own request.
    let send =
        || server.post("/api/v1/forms", json!({"title": "Visit"})).header("idempotency-key", "one").send();
    let (first, replay) = (send().await, send().await);
    assert_eq!(replay.header("location"), first.header("location"));
    assert!(first.header("location").unwrap().starts_with("https://forms.example.com/a,b/api/v1/forms/frm_"));
}

#[test]
fn a_base_url_is_an_http_url_without_user_query_and_fragment() {
    use forms::config::BaseUrl;
    for (text, url) in [
        ("https://forms.example.com", "https://forms.example.com"),
        ("https://forms.example.com/", "https://forms.example.com"),
        ("HTTP://Forms.Example.com:80/a/b/", "http://forms.example.com/a/b"),
        ("http://[::1]:8787/x", "http://[::1]:8787/x"),
    ] {
        assert_eq!(text.parse::<BaseUrl>().unwrap().as_str(), url);
    }
    let refused = "|/forms|forms.example.com|ftp://forms.example.com|https://|https://ada@forms.example.com|\
        https://ada:secret@forms.example.com|https://forms.example.com?x|https://forms.example.com/#x|\
        mailto:ada@example.com";
    for text in refused.split('|') {
        assert!(text.parse::<BaseUrl>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn the_client_follows_pages_under_a_prefix() {
    let server = Server::with_settings(behind(&["127.0.0.1/32"])).await;
    let form = server.published_form(questions()).await;
    for _ in 0..3 {
        server.draft_form(json!([])).await;
        server.submit(&form, json!({"q1": "Ada"})).await;
    }
    for prefix in ["/surveys", "/api/forms", "/api/v1/forms"] {
        let wire = server.listen_under(prefix).await;
        let url = Url::parse(&format!("http://{}{prefix}/", wire.address)).unwrap();
        let key = Some(Secret::new(server.key.clone()));
        let random = Box::new(SystemRandomness);
        let policy = RetryPolicy { timeout: std::time::Duration::from_secs(30), retries: 2 };
        let client = Client::new(Transport::http(url, true).unwrap(), key, policy, random);
        let mut pages = client.list_forms(&FormQuery::default(), 2);
        let mut sizes = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            sizes.push(page.len());
        }
        assert_eq!(sizes, [2, 2], "{prefix}");
        client.get_form(&form).await.unwrap();
        let problem = client.get_form("frm_000000000000").await.unwrap_err();
        assert_eq!(problem.problem().unwrap().kind, format!("{prefix}/problems/form_not_found"));
    }
}
