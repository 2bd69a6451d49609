//! Lists of submissions that are sent as a whole: JSON lines and CSV.

use std::collections::HashMap;
use std::time::Duration;

use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::filters::path;
use crate::harness::prelude::*;

const JSON_LINES: &str = "application/x-ndjson";

/// A form whose submissions take several pages of the store.
async fn large() -> (Server, String) {
    let server = Server::start().await;
    let question = json!([{"type": "long_text", "title": "Story", "max_length": 60_000}]);
    let form = server.published_form(question).await;
    for number in 0..120 {
        server.submit(&form, json!({"q1": format!("{number}{}", "x".repeat(59_000))})).await;
    }
    (server, form)
}

/// Reads the objects of a list page by page, as they are written.
async fn paged(server: &Server, query: &str) -> Vec<String> {
    let (mut next, mut found) = (Some(format!("{query}limit=7")), Vec::new());
    while let Some(path) = next {
        let response = server.get(&path).send().await;
        next = response.next_page();
        let body: HashMap<String, Box<RawValue>> = serde_json::from_slice(&response.body).unwrap();
        let items: Vec<Box<RawValue>> = serde_json::from_str(body["submissions"].get()).unwrap();
        found.extend(items.iter().map(|item| item.get().to_owned()));
    }
    found
}

async fn whole(server: &Server, path: &str, accept: &str) -> String {
    let response = server.get(path).header("accept", accept).send().await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some(accept));
    assert!(response.header("link").is_none() && response.header("content-length").is_none());
    response.text().to_owned()
}

#[tokio::test]
async fn lines_are_the_objects_of_all_pages_for_every_query() {
    let (server, form) = Server::with_form().await;
    for number in 0..40 {
        server.clock.advance(60_000);
        let answers = json!({"q1": format!("Ann {}", number % 7), "q3": 1 + number % 5});
        let body = json!({"answers": answers, "metadata": {"n": number.to_string()}});
        let id = server.create(path(&form), body).await;
        let at = format!("{}/{id}", path(&form));
        match number % 10 {
            3 => server.remove(at).await,
            4 => drop(server.patch(at, json!({"answers": {"q3": null}})).send().await.expect(200)),
            _ => {}
        }
    }
    let mut sizes = Vec::new();
    for query in [
        "",
        "order=asc&",
        "since=2026-11-20T09:10:00Z&until=2026-11-20T09:30:00Z&",
        "q=ann+3&",
        "filter[q3][gte]=4&order=asc&",
        "where=q3.answered%3Dfalse&",
        "filter[q1]=nobody&",
        "trashed=true&",
    ] {
        for list in [path(&form), path(&form).replace("submissions", "responses")] {
            let list = format!("{list}?{query}");
            let expected = paged(&server, &list).await;
            let lines = whole(&server, list.trim_end_matches(['?', '&']), JSON_LINES).await;
            assert_eq!(lines.lines().collect::<Vec<_>>(), expected, "{list}");
            assert!(lines.is_empty() || lines.ends_with("}\n"));
            sizes.push(expected.len());
        }
    }
    assert_eq!(sizes, [36, 36, 36, 36, 18, 18, 5, 5, 8, 8, 4, 4, 0, 0, 4, 4]);
    let (server, form) = large().await;
    let lines = whole(&server, &path(&form), JSON_LINES).await;
    assert_eq!(lines.lines().collect::<Vec<_>>(), paged(&server, &format!("{}?", path(&form))).await);
}

#[tokio::test]
async fn a_table_has_the_current_questions_first_and_removed_ones_at_the_end() {
    let server = Server::start().await;
    let text = |id: &str| json!({"id": id, "type": "short_text", "title": "Text"});
    let colours = json!({"id": "colours", "type": "multiple_choice", "title": "Which?", "options": ["red", "green"],
        "allow_other": true});
    let form = server.published_form(json!([text("old"), text("id"), colours])).await;
    let first = server
        .submit(&form, json!({"old": "=1+1", "id": "a \"b\", c", "colours": ["red", {"other": "blue"}]}))
        .await;
    let number = json!({"id": "amount", "type": "number", "title": "How much?"});
    let change = json!({"questions": [number, text("id"), colours]});
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    server.clock.advance(1_000);
    let second = server.submit(&form, json!({"amount": -5, "id": "-5"})).await;
    let begun = server.get(path(&form)).header("accept", "text/csv").response().await;
    let change = json!({"questions": [text("newer")]});
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    server.submit(&form, json!({"newer": "late"})).await;
    let table = String::from_utf8(begun.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let expected = format!(
        "id,submitted_at,amount,answers.id,colours,old\r\n\
         {second},2026-11-20T09:00:01.000Z,-5,-5,,\r\n\
         {first},{NOW},,\"a \"\"b\"\", c\",red; blue,'=1+1\r\n"
    );
    assert_eq!(table, expected);
    let table = whole(&server, &format!("{}?where=newer%3Dnone", path(&form)), "text/csv").await;
    assert_eq!(table, "id,submitted_at,newer,amount,answers.id,colours,old\r\n");
}

#[tokio::test]
async fn the_preferred_type_is_sent_and_parameters_of_pages_are_refused() {
    let (server, form) = Server::with_form().await;
    for (accept, expected) in [
        ("*/*", "application/json"),
        ("text/csv, application/json", "application/json"),
        ("text/csv, */*;q=0.1", "text/csv"),
        ("application/x-ndjson, text/csv", JSON_LINES),
        ("text/csv, application/x-ndjson;q=0.9", "text/csv"),
        ("text/*", "text/csv"),
        ("application/problem+json", "application/json"),
    ] {
        let response = server.get(path(&form)).header("accept", accept).send().await;
        assert_eq!(response.header("content-type"), Some(expected), "{accept}");
    }
    let lines = |path: String| server.get(path).header("accept", JSON_LINES);
    for parameter in ["limit=10", "cursor=a", "count=true"] {
        let refused = lines(format!("{}?{parameter}", path(&form))).send().await;
        refused.expect_problem(400, "invalid_query");
        let name = parameter.split('=').next().unwrap();
        assert_eq!(refused.json()["errors"][0]["pointer"], format!("/{name}"));
    }
    let wrong = lines(format!("{}?where=q3.gte%3Dx", path(&form))).send().await;
    assert_eq!(wrong.expect(400)["errors"][0]["pointer"], "/where/q3.gte");
    lines(path("nothing-here")).send().await.expect_problem(404, "form_not_found");
    let submit = server.key_with(&[Scope::Submit]).await;
    lines(path(&form)).key(&submit).send().await.expect_problem(403, "insufficient_scope");
}

/// Begins to receive the lines, and receives the first part.
async fn begin(server: &Server, form: &str) -> Response {
    let mut response = server.get(path(form)).header("accept", JSON_LINES).response().await;
    assert_eq!(response.status(), 200);
    response.body_mut().frame().await.unwrap().unwrap();
    response
}

#[tokio::test]
async fn a_list_that_cannot_be_completed_does_not_look_whole() {
    let (server, form) = large().await;
    let begun = begin(&server, &form).await;
    let listening = server.listen().await;
    // What the system keeps for the client is less than the list.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = socket.connect(listening.address).await.unwrap();
    let head = server.head("GET", &path(&form), "Accept: application/x-ndjson\r\nConnection: close\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let mut received = vec![0; 12];
    client.read_exact(&mut received).await.unwrap();
    let whole = begin(&server, &form).await.into_body().collect().await.unwrap().to_bytes();
    assert!(whole.ends_with(b"}\n"));
    server.remove(format!("/api/v1/forms/{form}")).await;
    begun.into_body().collect().await.unwrap_err();
    client.read_to_end(&mut received).await.ok();
    assert!(received.starts_with(b"HTTP/1.1 200") && received.len() < whole.len());
    assert!(!received.ends_with(b"\r\n0\r\n\r\n"), "{} bytes look whole", received.len());
}

#[tokio::test]
async fn a_key_has_a_share_of_the_lists_in_progress_until_its_clients_are_gone() {
    let (server, form) = large().await;
    let limits = PoolLimits { max_wait: Duration::from_millis(50), ..PoolLimits::default() };
    let server = server.with_pool(limits).await;
    let mut begun = Vec::new();
    for _ in 0..4 {
        begun.push(begin(&server, &form).await);
    }
    let refused = server.get(path(&form)).header("accept", "text/csv").send().await;
    refused.expect_problem(503, "overloaded");
    begun.pop();
    begin(&server, &form).await;
}
