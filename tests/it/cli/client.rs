//! The client on an unreliable network: retries, lost responses, timeouts, redirects.

use forms::client::{Client, RetryPolicy, Transport};
use forms::secret::SystemRandomness;
use rustix::process::{Pid, Signal, kill_process};

use super::Home;
use super::fake_server::{FakeServer, Reply, operator_key};

const UNAVAILABLE: &str = r#"{"type":"/problems/store_unavailable","title":"The store is not available at the moment","status":503,"code":"store_unavailable"}"#;

/// The value of a header in a request.
fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_submission_with_a_lost_response_is_retried_and_stored_once() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let replies = vec![Reply::Forward(url.clone()), Reply::DropResponse(url.clone()), Reply::Forward(url)];
    let proxy = FakeServer::with_replies(replies);
    let key = operator_key(&home);
    let variables = [("FORMS_URL", proxy.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["submit", &id, "q1=hello"]).expect(0);
    let requests = proxy.into_requests();
    let keys: Vec<_> =
        requests[1..].iter().map(|request| header(request, "idempotency-key").unwrap()).collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
    assert_eq!(header(&requests[0], "idempotency-key"), None, "a GET was sent with an idempotency key");
    let stored = home.ok(&["responses", &id]);
    assert_eq!(stored.lines().count(), 1, "{stored}");
    assert!(stored.starts_with(run.stdout.trim()));
}

#[test]
fn the_error_of_a_lost_response_says_that_the_submission_may_be_stored() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let key = operator_key(&home);
    let submit = |replies: Vec<Reply>, retries: &str| {
        let proxy = FakeServer::with_replies(replies);
        let variables = [("FORMS_URL", proxy.url.as_str()), ("FORMS_API_KEY", key.as_str())];
        let run = home.run_with(&variables, &["--retries", retries, "submit", &id, "q1=hello"]).expect(7);
        proxy.into_requests();
        run.stderr
    };
    let lost = submit(vec![Reply::Forward(url.clone()), Reply::DropResponse(url.clone())], "0");
    assert!(lost.contains("the request may have been carried out"), "{lost}");
    assert!(lost.contains(&format!("responses {id}\n")), "{lost}");
    let unavailable = FakeServer::status("503 Service Unavailable", "retry-after: 0\r\n", UNAVAILABLE);
    let then = submit(vec![Reply::Forward(url.clone()), Reply::DropResponse(url.clone()), unavailable], "1");
    assert!(
        then.contains("error[store_unavailable]") && then.contains("may have been carried out"),
        "{then}"
    );
    let never = home.run(&["--url", "http://127.0.0.1:1", "--retries", "0", "submit", &id, "q1=x"]).expect(7);
    assert!(!never.stderr.contains("may have been carried out"), "{never:?}");
}

#[test]
fn the_error_of_a_lost_response_says_how_to_check_the_change() {
    let home = Home::new();
    let (form, submission) = ("frm_7k2m9q4x1abz", "sub_01k3v8m2f4q6s8t0w2y4z6a8bc");
    let show_form = format!("show {form}");
    let integrations = format!("integrations show {form} hook");
    let show_submission = format!("responses show {form} {submission}");
    let keys = "keys list shows whether the key was created; its text is lost, so revoke it";
    let workspaces = "workspaces list shows whether it was created; its key is lost, so delete it";
    let cases: [(&[&str], &str); 13] = [
        (&["create", "--title", "A"], "list"),
        (&["keys", "create", "--name", "ci", "--scope", "read"], keys),
        (&["keys", "revoke", "--yes", "key_1a2b3c4d"], "keys list"),
        (&["keys", "rotate", "key_1a2b3c4d"], keys),
        (&["workspaces", "create", "shop"], workspaces),
        (&["deliveries", "cancel", "dlv_1"], "deliveries show dlv_1"),
        (&["integrations", "disable", form, "hook"], &integrations),
        (&["unpublish", form], &show_form),
        (&["close", form], &show_form),
        (&["delete", "--yes", form], &show_form),
        (&["restore", form], &show_form),
        (&["responses", "delete", "--yes", form, submission], &show_submission),
        (&["responses", "restore", form, submission], &show_submission),
    ];
    for (command, look) in cases {
        // The server closes the connection after it has received the request.
        let server = FakeServer::with_replies(vec![Reply::Bytes(Vec::new())]);
        let run = home.run(&[&["--url", &server.url, "--retries", "0"], command].concat()).expect(7);
        let url = &server.url;
        let expected = format!(
            "error: no response from {url} (it closed the connection without an answer)\n  = note: the response was lost: the \
             request may have been carried out; check before you repeat it\n  = help: forms --url {url} {look}\n"
        );
        assert_eq!(run.stderr, expected, "{command:?}");
    }
}

#[test]
fn the_error_of_an_answer_that_breaks_off_does_not_suggest_starting_a_server() {
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}".to_vec();
    let server = FakeServer::with_replies(vec![Reply::Bytes(broken)]);
    let run = Home::new().run(&["--url", &server.url, "--retries", "0", "list"]).expect(7);
    let result = format!("error: no response from {} (its answer broke off)\n", server.url);
    assert!(run.stderr.starts_with(&result) && !run.stderr.contains("start one"), "{run:?}");
}

#[test]
fn a_retried_deletion_that_finds_no_form_succeeds() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let proxy = FakeServer::with_replies(vec![Reply::DropResponse(url.clone()), Reply::Forward(url)]);
    let key = operator_key(&home);
    let variables = [("FORMS_URL", proxy.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["delete", "--yes", &id]).expect(0);
    assert_eq!(run.stdout.trim(), id);
    proxy.into_requests();
    home.run(&["delete", "--yes", &id]).expect(3);
}

#[test]
fn a_request_is_retried_after_retry_after() {
    let replies = vec![
        FakeServer::status("503 Service Unavailable", "retry-after: 0\r\n", UNAVAILABLE),
        FakeServer::status("429 Too Many Requests", "retry-after: 0\r\n", UNAVAILABLE),
        FakeServer::ok(r#"{"forms":[]}"#),
    ];
    let server = FakeServer::with_replies(replies);
    Home::new().run(&["--url", &server.url, "list"]).expect(0);
    assert_eq!(server.into_requests().len(), 3);
}

#[test]
fn a_retry_after_header_longer_than_the_timeout_fails_at_once() {
    let busy = |wait: &str| {
        FakeServer::status("503 Service Unavailable", &format!("retry-after: {wait}\r\n"), UNAVAILABLE)
    };
    for waits in [&["3600"][..], &["1", "18446744073709551615"]] {
        let server = FakeServer::with_replies(waits.iter().map(|wait| busy(wait)).collect());
        let run = Home::new().run(&["--url", &server.url, "list"]).expect(7);
        assert!(run.stderr.contains("error[store_unavailable]"), "{run:?}");
        server.into_requests();
    }
}

#[test]
fn a_refusal_is_not_retried() {
    let body = r#"{"type":"/problems/insufficient_scope","title":"The API key may not do this","status":403,"code":"insufficient_scope","detail":"the scope `read` is needed"}"#;
    let refusing = FakeServer::with_replies(vec![FakeServer::status("403 Forbidden", "", body)]);
    let run = Home::new().run(&["--url", &refusing.url, "list"]).expect(4);
    assert!(run.stderr.contains("error[insufficient_scope]: the scope `read` is needed"), "{run:?}");
    refusing.into_requests();
}

#[test]
fn a_request_ends_at_the_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let run = Home::new().run(&["--url", &url, "--timeout", "300ms", "list"]).expect(7);
    assert!(run.stderr.contains("no answer in time"), "{run:?}");
}

#[tokio::test]
async fn a_request_to_the_store_ends_at_the_timeout() {
    let router = axum::Router::new().fallback(std::future::pending::<()>);
    let policy = RetryPolicy { timeout: std::time::Duration::from_millis(10), retries: 2 };
    let client = Client::new(Transport::InProcess(router), None, policy, Box::new(SystemRandomness));
    let error = client.whoami().await.unwrap_err().to_string();
    assert_eq!(error, "no response from the store (no answer in time)");
}

#[test]
fn a_server_that_cannot_be_reached_is_tried_once() {
    let run = Home::new().run(&["--url", "http://127.0.0.1:1", "-v", "list"]).expect(7);
    assert_eq!(run.stderr.matches("no answer: connection refused").count(), 1, "{run:?}");
    assert!(
        run.stderr.contains("no server responds at http://127.0.0.1:1 (connection refused)\n"),
        "{run:?}"
    );
}

#[test]
fn links_to_next_pages_are_followed_on_the_same_server() {
    let entry = |number: usize| {
        format!(
            r#"{{"id":"frm_{number:012}","title":"T","status":"draft","response_count":0,"created_at":"2026-11-20T09:00:00.000Z","updated_at":"2026-11-20T09:00:00.000Z"}}"#
        )
    };
    let link = "link: </help>; rel=\"help\", <https://inside.example/a,b/api/v1/forms?limit=1000&cursor=abc>; rel=\"next\"\r\n";
    let replies = vec![
        FakeServer::status("200 OK", link, &format!("{{\"forms\":[{}]}}", entry(1))),
        FakeServer::ok(&format!("{{\"forms\":[{}]}}", entry(2))),
    ];
    let server = FakeServer::with_replies(replies);
    let list = Home::new().run(&["--url", &server.url, "list", "-o", "jsonl"]).expect(0);
    assert_eq!(list.stdout.lines().count(), 2);
    assert!(server.into_requests()[1].starts_with("GET /api/v1/forms?limit=1000&cursor=abc "));
}

#[test]
fn a_cycle_of_pages_is_an_error() {
    let page = |cursor: &str| {
        let link = format!("link: </api/v1/forms?cursor={cursor}>; rel=\"next\"\r\n");
        FakeServer::status("200 OK", &link, r#"{"forms":[]}"#)
    };
    for cursors in [&["a", "a"][..], &["a", "b", "a"]] {
        let server = FakeServer::with_replies(cursors.iter().map(|cursor| page(cursor)).collect());
        let run = Home::new().run(&["--url", &server.url, "--retries", "0", "list", "--all"]).expect(7);
        let result = "is not a forms server: the link to the next page leads back to an earlier one";
        assert!(run.stderr.contains(result), "{run:?}");
    }
}

#[test]
fn a_response_that_cannot_be_parsed_is_described() {
    let home = Home::new();
    let whoami = r#"{"workspace":"w","key":{}}"#;
    let deep =
        format!(r#"{{"id":"frm_7k2m9q4x1abz","settings":{}1{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
    for (body, command, what) in [
        ("<html>login</html>", "list", ": its answer is not JSON"),
        ("", "list", ": its answer is not JSON"),
        (&*deep, "show", ": its answer is nested too deeply"),
        ("{}", "list", " of a known version: its answer lacks a field, or has one of another type"),
        (
            r#"{"forms":[{"id":"frm_7k2m9q4x1abz"}]}"#,
            "list",
            " of a known version: its answer lacks a field, or has one of another type",
        ),
        (whoami, "whoami", " of a known version: its answer lacks a field, or has one of another type"),
    ] {
        let server = FakeServer::with_replies(vec![FakeServer::ok(body)]);
        let form: &[&str] = if command == "show" { &["f"] } else { &[] };
        let run = home.run(&[&["--url", &server.url, command], form].concat()).expect(7);
        let expected = format!(
            "error: {} is not a forms server{what}\n  = note: address from: the command line\n",
            server.url
        );
        assert_eq!(run.stderr, expected);
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let replies = vec![FakeServer::status("301 Moved Permanently", "location: http://example.com/\r\n", "")];
    let server = FakeServer::with_replies(replies);
    let run = Home::new().run(&["--url", &server.url, "list"]).expect(7);
    assert!(run.stderr.contains("it redirects to http://example.com/"), "{run:?}");
    assert!(!run.stderr.contains("no server responds"), "{run:?}");
    assert_eq!(server.into_requests().len(), 1, "the redirect was retried");
}

#[test]
fn a_signal_ends_a_request_in_flight_and_leaves_no_file() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (home, (sender, receiver)) = (Home::new(), std::sync::mpsc::channel());
        let server = FakeServer::with_replies(vec![Reply::NoResponse(sender)]);
        let mut command =
            home.command(&["--url", &server.url, "responses", "f", "-o", "jsonl", "--to", "x.jsonl"]);
        let mut child = command.spawn().unwrap();
        receiver.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "only survey.yaml is left");
    }
}
