//! Answers to unknown questions: refused, or dropped and named in a header.

use super::filters::path;
use crate::harness::prelude::*;

/// Creates a published form that drops unknown answers.
async fn with_dropping_form() -> (Server, String) {
    let (server, form) = Server::with_form().await;
    let settings = json!({"settings": {"unknown_answers": "drop"}});
    let changed = server.patch(format!("/api/v1/forms/{form}"), settings.clone()).send().await.expect(200);
    assert_eq!(changed["settings"], settings["settings"]);
    (server, form)
}

fn build_submission(server: &Server, path: &str, answers: &str) -> Call {
    server.post(path, json!({})).body(format!("{{\"answers\":{answers}}}"))
}

/// The raw JSON of the field `answers`.
fn answers_text(response: &TestResponse) -> &str {
    let members = forms::domain::json::parse_object(response.text()).unwrap();
    let (.., range) = members.into_iter().find(|(name, ..)| name == "answers").unwrap();
    &response.text()[range]
}

#[tokio::test]
async fn dropped_answers_are_cut_out_and_named_and_the_others_are_kept_byte_for_byte() {
    let (server, form) = with_dropping_form().await;
    for (place, (sent, expected, names)) in [
        (r#"{ "q3" : 5.0e0,"q1":"A" }"#, r#"{ "q3" : 5.0e0,"q1":"A" }"#, None),
        (r#"{ "x" : 5.0e0,"q1":"A" }"#, r#"{"q1":"A" }"#, Some("x")),
        (r#"{ "q1":"A" , "x" :[1, {"q3":","}] }"#, r#"{ "q1":"A" }"#, Some("x")),
        (
            "{\"q1\":\"A\",\n\t\"x\":1 ,\n\t\"q3\" : 1.0 , \"y\":2}",
            "{\"q1\":\"A\",\n\t\"q3\" : 1.0 }",
            Some("x,y"),
        ),
        (r#"{"x":"}{,","\u00711":"A\u002c,","":null}"#, r#"{"\u00711":"A\u002c,"}"#, Some("x,")),
        (r#"{"a b":1,"q1":"A","50%":2,"é,":3}"#, r#"{"q1":"A"}"#, Some("a%20b,50%25,%C3%A9%2C")),
    ]
    .into_iter()
    .enumerate()
    {
        let tried = build_submission(&server, &format!("{}?dry_run=true", path(&form)), sent).send().await;
        let make = || {
            build_submission(&server, &path(&form), sent).header("idempotency-key", &place.to_string()).send()
        };
        let (made, again) = (make().await, make().await);
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{sent}");
        let read = server.get(format!("{}/{id}", path(&form))).send().await;
        for answer in [&tried, &made, &again, &read] {
            assert_eq!(answers_text(answer), expected, "{sent}");
        }
        let dropped = [&tried, &made, &again].map(|response| response.header("forms-dropped"));
        assert_eq!(dropped, [names; 3], "{sent}");
        assert_eq!(read.header("forms-dropped"), None);
    }
}

#[tokio::test]
async fn a_replay_names_the_answers_dropped_by_the_first_request() {
    let (server, form) = with_dropping_form().await;
    let send = || {
        let call = build_submission(&server, &path(&form), r#"{"q1":"A","q3":4,"x":1}"#);
        call.header("idempotency-key", "1").send()
    };
    let made = send().await;
    made.expect(201);
    // Since then `x` was added, `q3` was removed, and the form no longer drops answers.
    let change = json!({"settings": {"unknown_answers": null}, "questions": [
        {"id": "q1", "type": "short_text", "title": "Name?"}, {"id": "x", "type": "number", "title": "X"},
    ]});
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    let again = send().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.text(), again.header("forms-dropped")), (made.text(), Some("x")));
}

#[tokio::test]
async fn the_other_answers_are_still_checked() {
    let (server, form) = with_dropping_form().await;
    let refused = build_submission(&server, &path(&form), r#"{"x":1,"q3":9}"#).send().await;
    let body = refused.expect(422);
    let codes: Vec<_> = body["errors"].as_array().unwrap().iter().map(|error| &error["code"]).collect();
    assert_eq!(codes, ["required", "out_of_range"]);
    assert_eq!(refused.header("forms-dropped"), None);
}

#[tokio::test]
async fn an_edit_drops_unknown_answers_like_a_submission() {
    let (server, form) = with_dropping_form().await;
    let one = format!("{}/{}", path(&form), server.submit(&form, json!({"q1": "Ada", "q3": 4})).await);
    for (patch, expected, names) in [
        (json!({"q1": "Eve", "x": 1, "y": null}), json!({"q1": "Eve", "q3": 4}), Some("x,y")),
        (json!({"x": {"a": 1}}), json!({"q1": "Eve", "q3": 4}), Some("x")),
        (json!({"q3": null}), json!({"q1": "Eve"}), None),
    ] {
        let edited = server.patch(&one, json!({"answers": patch})).send().await;
        assert_eq!(edited.expect(200)["answers"], expected, "{patch}");
        assert_eq!(edited.header("forms-dropped"), names, "{patch}");
    }
    let refused = server.patch(&one, json!({"answers": {"x": 1, "q3": 9}})).send().await;
    assert_eq!(refused.expect(422)["errors"].as_array().unwrap().len(), 1);
    assert_eq!(refused.header("forms-dropped"), None);
    // An edit is checked against the original version: `q3` is known there, `x` is not.
    let change = json!({"questions": [{"id": "q1", "type": "short_text", "title": "Name?"}, {"id": "x", "type": "number", "title": "X"}]});
    server.patch(format!("/api/v1/forms/{form}"), change).send().await.expect(200);
    let edited = server.patch(&one, json!({"answers": {"x": 1, "q3": 5}})).send().await;
    assert_eq!(edited.expect(200)["answers"], json!({"q1": "Eve", "q3": 5}));
    assert_eq!(edited.header("forms-dropped"), Some("x"));
}

#[tokio::test]
async fn the_header_names_as_many_dropped_answers_as_fit() {
    let (server, form) = with_dropping_form().await;
    let mut answers: Vec<_> = (0..400).map(|number| format!("\"k{number:03}\":0")).collect();
    answers.insert(0, format!("\"{}\":0", "é".repeat(1_000)));
    answers.push("\"q1\":\"A\"".to_owned());
    let made = build_submission(&server, &path(&form), &format!("{{{}}}", answers.join(","))).send().await;
    assert_eq!(made.expect(201)["answers"], json!({"q1": "A"}));
    let names = made.header("forms-dropped").unwrap();
    assert!((990..=1_000).contains(&names.len()), "{}", names.len());
    assert!(names.starts_with(&format!("{},k000,k001,", "%C3%A9".repeat(80))), "{names}");
}
