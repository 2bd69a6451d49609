//! The client on a network that loses answers: what was asked for happens once.

use super::Home;
use super::stand_in::{Reply, StandIn, operator_key};

const UNAVAILABLE: &str = r#"{"type":"/problems/store_unavailable","title":"The store is not available at the moment","status":503,"code":"store_unavailable"}"#;

/// The value of a header in a request.
fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_submission_whose_answer_was_lost_is_stored_once() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let replies = vec![Reply::Pass(url.clone()), Reply::Swallow(url.clone()), Reply::Pass(url)];
    let between = StandIn::answering(replies);
    let key = operator_key(&home);
    let variables = [("FORMS_URL", between.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["submit", &id, "q1=hello"]).expect(0);
    let requests = between.finish();
    let keys: Vec<_> =
        requests[1..].iter().map(|request| header(request, "idempotency-key").unwrap()).collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
    assert_eq!(header(&requests[0], "idempotency-key"), None, "a GET needs none");
    let stored = home.ok(&["responses", &id]);
    assert_eq!(stored.lines().count(), 1, "{stored}");
    assert!(stored.starts_with(run.stdout.trim()));
}

#[test]
fn a_submission_whose_answer_never_came_may_be_stored_and_says_how_to_look() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let key = operator_key(&home);
    let submit = |replies: Vec<Reply>, retries: &str| {
        let between = StandIn::answering(replies);
        let variables = [("FORMS_URL", between.url.as_str()), ("FORMS_API_KEY", key.as_str())];
        let run = home.run_with(&variables, &["--retries", retries, "submit", &id, "q1=hello"]).expect(7);
        between.finish();
        run.stderr
    };
    let lost = submit(vec![Reply::Pass(url.clone()), Reply::Swallow(url.clone())], "0");
    assert!(lost.contains("the request may have been carried out"), "{lost}");
    assert!(lost.contains(&format!("responses {id}\n")), "{lost}");
    let unavailable = StandIn::status("503 Service Unavailable", "retry-after: 0\r\n", UNAVAILABLE);
    let then = submit(vec![Reply::Pass(url.clone()), Reply::Swallow(url.clone()), unavailable], "1");
    assert!(
        then.contains("error[store_unavailable]") && then.contains("may have been carried out"),
        "{then}"
    );
    let never = home.run(&["--url", "http://127.0.0.1:1", "--retries", "0", "submit", &id, "q1=x"]).expect(7);
    assert!(!never.stderr.contains("may have been carried out"), "{never:?}");
}

#[test]
fn a_form_whose_answer_never_came_may_be_stored_too() {
    let home = Home::new();
    let server = home.serve();
    let between = StandIn::answering(vec![Reply::Swallow(server.url.clone())]);
    let key = operator_key(&home);
    let variables = [("FORMS_URL", between.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["--retries", "0", "create", "-f", "survey.yaml"]).expect(7);
    assert!(run.stderr.contains("may have been carried out") && run.stderr.contains(" list\n"), "{run:?}");
}

#[test]
fn a_change_whose_answer_never_came_may_have_been_made_and_says_how_to_look() {
    let home = Home::new();
    let (form, submission) = ("frm_7k2m9q4x1abz", "sub_01k3v8m2f4q6s8t0w2y4z6a8bc");
    let show_form = format!("show {form}");
    let show_submission = format!("responses show {form} {submission}");
    let cases: [(&[&str], &str); 6] = [
        (&["unpublish", form], &show_form),
        (&["close", form], &show_form),
        (&["delete", "--yes", form], &show_form),
        (&["restore", form], &show_form),
        (&["responses", "delete", "--yes", form, submission], &show_submission),
        (&["responses", "restore", form, submission], &show_submission),
    ];
    for (command, look) in cases {
        // It hangs up once the request has come.
        let server = StandIn::answering(vec![Reply::Bytes(Vec::new())]);
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
fn a_server_that_took_the_request_needs_no_start() {
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}".to_vec();
    for (reply, why) in [(Vec::new(), "it closed the connection"), (broken, "its answer broke off")] {
        let server = StandIn::answering(vec![Reply::Bytes(reply)]);
        let run = Home::new().run(&["--url", &server.url, "--retries", "0", "list"]).expect(7);
        let told = format!("error: no response from {} ({why}", server.url);
        assert!(run.stderr.starts_with(&told) && !run.stderr.contains("start one"), "{run:?}");
        assert!(!run.stderr.contains("may have been carried out"), "{run:?}");
    }
}

#[test]
fn a_form_that_is_gone_after_a_lost_answer_was_deleted() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let url = server.url.clone();
    let between = StandIn::answering(vec![Reply::Swallow(url.clone()), Reply::Pass(url)]);
    let key = operator_key(&home);
    let variables = [("FORMS_URL", between.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["delete", "--yes", &id]).expect(0);
    assert_eq!(run.stdout.trim(), id);
    between.finish();
    home.run(&["delete", "--yes", &id]).expect(3);
}

#[test]
fn a_server_that_asks_to_wait_is_asked_again() {
    let replies = vec![
        StandIn::status("503 Service Unavailable", "retry-after: 0\r\n", UNAVAILABLE),
        StandIn::status("429 Too Many Requests", "retry-after: 0\r\n", UNAVAILABLE),
        StandIn::ok(r#"{"forms":[]}"#),
    ];
    let server = StandIn::answering(replies);
    Home::new().run(&["--url", &server.url, "list"]).expect(0);
    assert_eq!(server.finish().len(), 3);
}

#[test]
fn a_wait_that_is_longer_than_patience_is_not_begun() {
    let busy = |wait: &str| {
        StandIn::status("503 Service Unavailable", &format!("retry-after: {wait}\r\n"), UNAVAILABLE)
    };
    for waits in [&["3600"][..], &["1", "18446744073709551615"]] {
        let server = StandIn::answering(waits.iter().map(|wait| busy(wait)).collect());
        let run = Home::new().run(&["--url", &server.url, "list"]).expect(7);
        assert!(run.stderr.contains("error[store_unavailable]"), "{run:?}");
        server.finish();
    }
}

#[test]
fn retries_can_be_turned_off_and_a_no_is_not_repeated() {
    let unavailable = StandIn::answering(vec![StandIn::status("503 Service Unavailable", "", UNAVAILABLE)]);
    Home::new().run(&["--url", &unavailable.url, "--retries", "0", "list"]).expect(7);
    unavailable.finish();
    let body = r#"{"type":"/problems/insufficient_scope","title":"The API key may not do this","status":403,"code":"insufficient_scope","detail":"the scope `read` is needed"}"#;
    let refusing = StandIn::answering(vec![StandIn::status("403 Forbidden", "", body)]);
    let run = Home::new().run(&["--url", &refusing.url, "list"]).expect(4);
    assert!(run.stderr.contains("error[insufficient_scope]: the scope `read` is needed"), "{run:?}");
    refusing.finish();
}

#[test]
fn patience_ends_at_the_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let run = Home::new().run(&["--url", &url, "--timeout", "300ms", "list"]).expect(7);
    assert!(run.stderr.contains("no answer in time"), "{run:?}");
}

#[test]
fn pages_are_followed_by_their_links_wherever_the_server_thinks_it_is() {
    let entry = |number: usize| {
        format!(
            r#"{{"id":"frm_{number:012}","title":"T","status":"draft","response_count":0,"created_at":"2026-11-20T09:00:00.000Z","updated_at":"2026-11-20T09:00:00.000Z"}}"#
        )
    };
    let link = "link: <https://inside.example/api/v1/forms?limit=1000&cursor=abc>; rel=\"next\"\r\n";
    let replies = vec![
        StandIn::status("200 OK", link, &format!("{{\"forms\":[{}]}}", entry(1))),
        StandIn::ok(&format!("{{\"forms\":[{}]}}", entry(2))),
    ];
    let server = StandIn::answering(replies);
    let list = Home::new().run(&["--url", &server.url, "list", "-o", "jsonl"]).expect(0);
    assert_eq!(list.stdout.lines().count(), 2);
    assert!(server.finish()[1].starts_with("GET /api/v1/forms?limit=1000&cursor=abc "));
}

#[test]
fn pages_that_lead_back_to_an_earlier_one_end_with_a_failure() {
    let page = |cursor: &str| {
        let link = format!("link: </api/v1/forms?cursor={cursor}>; rel=\"next\"\r\n");
        StandIn::status("200 OK", &link, r#"{"forms":[]}"#)
    };
    for cursors in [&["a", "a"][..], &["a", "b", "a"]] {
        let server = StandIn::answering(cursors.iter().map(|cursor| page(cursor)).collect());
        let run = Home::new().run(&["--url", &server.url, "--retries", "0", "list", "--all"]).expect(7);
        let told =
            "does not respond like a forms server: the link to the next page leads back to an earlier one";
        assert!(run.stderr.contains(told), "{run:?}");
    }
}

#[test]
fn an_answer_that_is_neither_success_nor_refusal_is_unexpected() {
    let server = StandIn::answering(vec![StandIn::status("304 Not Modified", "", "")]);
    let run = Home::new().run(&["--url", &server.url, "list"]).expect(7);
    assert!(
        run.stderr.contains("does not respond like a forms server: it answered 304 Not Modified"),
        "{run:?}"
    );
}

#[test]
fn an_answer_that_cannot_be_read_is_described_in_plain_words() {
    let home = Home::new();
    let whoami = r#"{"workspace":"w","key":{}}"#;
    let deep =
        format!(r#"{{"id":"frm_7k2m9q4x1abz","settings":{}1{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
    for (body, command, what) in [
        ("<html>login</html>", "list", "its answer is not JSON"),
        ("", "list", "its answer is not JSON"),
        (&*deep, "show", "its answer is nested too deeply"),
        ("{}", "list", "its answer lacks a field, or has one of another type"),
        (
            r#"{"forms":[{"id":"frm_7k2m9q4x1abz"}]}"#,
            "list",
            "its answer lacks a field, or has one of another type",
        ),
        (whoami, "whoami", "its answer lacks a field, or has one of another type"),
    ] {
        let server = StandIn::answering(vec![StandIn::ok(body)]);
        let form: &[&str] = if command == "show" { &["f"] } else { &[] };
        let run = home.run(&[&["--url", &server.url, command], form].concat()).expect(7);
        let expected = format!(
            "error: {} does not respond like a forms server: {what}\n  \
             = help: is it a forms server? forms whoami shows where the address came from\n",
            server.url
        );
        assert_eq!(run.stderr, expected);
    }
}

#[test]
fn a_redirection_is_not_followed_with_the_key() {
    let replies = vec![StandIn::status("301 Moved Permanently", "location: http://example.com/\r\n", "")];
    let server = StandIn::answering(replies);
    let run = Home::new().run(&["--url", &server.url, "list"]).expect(7);
    assert!(run.stderr.contains("it redirects to http://example.com/"), "{run:?}");
    assert!(!run.stderr.contains("no server responds"), "{run:?}");
    assert_eq!(server.finish().len(), 1, "it would redirect again");
}

#[test]
fn problems_of_the_server_are_drawn_in_the_local_file() {
    let home = Home::new();
    let body = r#"{"type":"/problems/validation_failed","title":"What was sent was not accepted","status":422,"code":"validation_failed","errors":[{"pointer":"/questions/1/type","code":"unknown_question_type","message":"unknown question type `email`"}]}"#;
    let server = StandIn::answering(vec![StandIn::status("422 Unprocessable Content", "", body)]);
    let run = home.run(&["--url", &server.url, "create", "-f", "survey.yaml"]).expect(6);
    assert!(
        run.stderr.contains(" --> survey.yaml:4:12\n") && run.stderr.contains("^^^^^ not a question type"),
        "{run:?}"
    );
    server.finish();
}

#[test]
fn a_client_over_tls_can_be_made() {
    // Nothing listens: what counts is that TLS is set up at all.
    let run = Home::new().run(&["--url", "https://127.0.0.1:1", "--retries", "0", "list"]).expect(7);
    assert!(run.stderr.contains("connection refused"), "{run:?}");
}

#[test]
fn ctrl_c_ends_a_request_that_is_under_way() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut child = Home::new().command(&["--url", &url, "list"]).spawn().unwrap();
    let (connection, _) = listener.accept().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(connection);
}
