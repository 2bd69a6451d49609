//! Summaries of the answers to a form.

use crate::harness::prelude::*;

/// The part of a summary of one question.
fn of<'a>(summary: &'a Value, id: &str) -> &'a Value {
    let questions = summary["questions"].as_array().unwrap();
    questions.iter().find(|question| question["id"] == id).unwrap()
}

/// The values of a list with their counts.
fn counts(list: &Value) -> Vec<(Value, u64)> {
    let count = |one: &Value| (one["value"].clone(), one["count"].as_u64().unwrap());
    list.as_array().unwrap().iter().map(count).collect()
}

async fn summary(server: &Server, form: &str, query: &str) -> Value {
    server.read(format!("/api/v1/forms/{form}/summary?{query}")).await
}

/// A question of each kind.
fn questions() -> Value {
    json!([
        {"id": "words", "type": "long_text", "title": "W"},
        {"id": "amount", "type": "number", "title": "A"},
        {"id": "stars", "type": "rating", "title": "S", "labels": {"5": "Great"}},
        {"id": "yes", "type": "boolean", "title": "Y"},
        {"id": "terms", "type": "consent", "title": "T"},
        {"id": "one", "type": "single_choice", "title": "O", "options": ["a", {"value": "b", "label": "B"}], "allow_other": true},
        {"id": "many", "type": "multiple_choice", "title": "M", "options": ["a", "b"]},
        {"id": "rank", "type": "ranking", "title": "R", "options": ["a", "b"]},
        {"id": "grid", "type": "matrix", "title": "G", "rows": ["r", "s"], "columns": ["a", "b"]},
        {"id": "day", "type": "date", "title": "D"},
        {"id": "at", "type": "time", "title": "A"},
        {"id": "when", "type": "datetime", "title": "W"},
        {"id": "from", "type": "hidden"},
        {"id": "note", "type": "statement", "title": "N"},
    ])
}

fn answers() -> [Value; 3] {
    let long = "x".repeat(301);
    [
        json!({"words": "soup", "amount": 1, "stars": 5, "yes": true, "terms": true, "one": "a", "many": ["a", "b"], "rank": ["b", "a"],
               "grid": {"r": "a"}, "day": "2026-02-28", "at": "23:30", "when": "2026-01-01T00:30:00+01:00", "from": 5}),
        json!({"words": "soup", "amount": 2.5, "stars": 2, "yes": false, "terms": false, "one": {"other": "c"}, "many": ["b"],
               "rank": ["a"], "grid": {"r": "b", "s": "b"}, "day": "2030-01-01", "at": "09:15:10", "when": "2026-01-01T00:00:00Z", "from": "5"}),
        json!({"words": long, "many": [], "grid": {}, "yes": null}),
    ]
}

/// The summaries of questions, with the number of answers.
fn expected() -> [(&'static str, u64, Value); 10] {
    [
        (
            "amount",
            2,
            json!({"kind": "number", "min": 1.0, "max": 2.5, "mean": 1.75, "median": 1.75,
            "bins": [{"from": 1.0, "to": 1.0, "count": 1}, {"from": 2.5, "to": 2.5, "count": 1}]}),
        ),
        (
            "yes",
            2,
            json!({"kind": "choice", "multiple": false, "other": [], "unlisted": 0,
            "options": [{"value": true, "count": 1}, {"value": false, "count": 1}]}),
        ),
        (
            "terms",
            1,
            json!({"kind": "choice", "multiple": false, "other": [], "unlisted": 0, "options": [{"value": true, "count": 1}]}),
        ),
        (
            "one",
            2,
            json!({"kind": "choice", "multiple": false, "other": [{"value": "c", "count": 1}], "unlisted": 0,
            "options": [{"value": "a", "count": 1}, {"value": "b", "label": "B", "count": 0}]}),
        ),
        (
            "many",
            2,
            json!({"kind": "choice", "multiple": true, "other": [], "unlisted": 0,
            "options": [{"value": "a", "count": 1}, {"value": "b", "count": 2}]}),
        ),
        (
            "rank",
            2,
            json!({"kind": "choice", "multiple": true, "other": [], "unlisted": 0,
            "options": [{"value": "a", "count": 2, "mean": 1.5}, {"value": "b", "count": 1, "mean": 1.0}]}),
        ),
        (
            "grid",
            2,
            json!({"kind": "matrix", "rows": [
            {"value": "r", "count": 2, "options": [{"value": "a", "count": 1}, {"value": "b", "count": 1}], "unlisted": 0},
            {"value": "s", "count": 1, "options": [{"value": "a", "count": 0}, {"value": "b", "count": 1}], "unlisted": 0}]}),
        ),
        (
            "day",
            2,
            json!({"kind": "date", "min": "2026-02-28", "max": "2030-01-01",
            "timeline": {"unit": "month", "points": {"2026-02": 1, "2030-01": 1}}}),
        ),
        (
            "at",
            2,
            json!({"kind": "date", "min": "09:15:10", "max": "23:30:00", "timeline": {"unit": "hour", "points": {"09": 1, "23": 1}}}),
        ),
        (
            "when",
            2,
            json!({"kind": "date", "min": "2025-12-31T23:30:00.000Z", "max": "2026-01-01T00:00:00.000Z",
            "timeline": {"unit": "hour", "points": {"2025-12-31T23": 1, "2026-01-01T00": 1}}}),
        ),
    ]
}

#[tokio::test]
async fn a_summary_counts_the_answers_of_each_kind() {
    let server = Server::start().await;
    let form = server.published_form(questions()).await;
    for answers in answers() {
        server.submit(&form, answers).await;
    }
    let found = summary(&server, &form, "").await;
    assert_eq!(found["totals"]["responses"], 3);
    assert_eq!(found["timeline"], json!({"unit": "hour", "points": {"2026-11-20T09": 3}}));
    assert_eq!(found["questions"].as_array().unwrap().len(), 13);
    for (id, answered, expected) in expected() {
        let question = of(&found, id);
        assert_eq!(
            (&question["answered"], &question["skipped"]),
            (&json!(answered), &json!(3 - answered)),
            "{id}"
        );
        assert_eq!(question["summary"], expected, "{id}");
    }
    let stars = &of(&found, "stars")["summary"];
    assert_eq!(
        (&stars["kind"], &stars["mean"], &stars["median"]),
        (&json!("scale"), &json!(3.5), &json!(3.5))
    );
    assert_eq!(stars["options"][4], json!({"value": 5, "label": "Great", "count": 1}));
    let words = &of(&found, "words")["summary"];
    assert_eq!((&words["distinct"], counts(&words["top"])), (&json!(2), vec![(json!("soup"), 2)]));
    assert_eq!(words["latest"][0]["value"], "x".repeat(300) + "…");
    assert_eq!(counts(&of(&found, "from")["summary"]["top"]), [(json!("5"), 2)]);
}

#[tokio::test]
async fn the_net_promoter_score_is_rounded_half_away_from_zero() {
    let server = Server::start().await;
    let question = json!([{"id": "nps", "type": "opinion_scale", "title": "N", "nps": true}]);
    for (answers, score) in [
        (&[][..], json!(null)),
        (&[8], json!(0)),
        (&[9, 7, 7, 7, 7, 7, 7, 7], json!(13)),
        (&[6, 7, 7, 7, 7, 7, 7, 7], json!(-13)),
        (&[10, 9, 0], json!(33)),
    ] {
        let form = server.published_form(question.clone()).await;
        for answer in answers {
            server.submit(&form, json!({"nps": answer})).await;
        }
        assert_eq!(of(&summary(&server, &form, "").await, "nps")["summary"]["score"], score, "{answers:?}");
    }
}

#[tokio::test]
async fn an_edited_form_reads_earlier_answers_by_its_present_questions() {
    let server = Server::start().await;
    let question = |options: Value| {
        json!([
            {"id": "one", "type": "single_choice", "title": "O", "options": options, "allow_other": true},
            {"id": "stars", "type": "rating", "title": "S", "max": if options == json!(["a", "b"]) { 5 } else { 3 }},
            {"id": "grid", "type": "matrix", "title": "G", "rows": options, "columns": options},
        ])
    };
    let form = server.published_form(question(json!(["a", "b"]))).await;
    server.submit(&form, json!({"one": "b", "stars": 5, "grid": {"a": "b", "b": "a"}})).await;
    server.submit(&form, json!({"one": {"other": "b"}, "stars": 3, "grid": {"b": "b"}})).await;
    let edit = json!({"questions": question(json!(["a", "c"]))});
    server.patch(format!("/api/v1/forms/{form}"), edit).send().await.expect(200);
    let found = summary(&server, &form, "").await;
    let one = &of(&found, "one")["summary"];
    let removed = json!({"value": "b", "count": 1, "removed": true});
    assert_eq!(one["options"], json!([{"value": "a", "count": 0}, {"value": "c", "count": 0}, removed]));
    assert_eq!(counts(&one["other"]), [(json!("b"), 1)]);
    assert_eq!(
        (&of(&found, "stars")["answered"], &of(&found, "stars")["summary"]["mean"]),
        (&json!(1), &json!(3.0))
    );
    let grid = of(&found, "grid");
    assert_eq!((&grid["answered"], &grid["summary"]["rows"][0]["options"][2]), (&json!(1), &removed));
}

#[tokio::test]
async fn a_summary_has_the_filters_of_the_list() {
    let (server, form) = Server::with_form().await;
    let path = format!("/api/v1/forms/{form}");
    let questions = json!({"questions": [{"id": "n", "type": "number", "title": "N"}, {"id": "t", "type": "short_text", "title": "T"}]});
    server.patch(&path, questions).send().await.expect(200);
    for (n, day) in [(1, 20), (2, 21), (3, 25)] {
        server.clock.set(&format!("2026-11-{day}T09:00:00Z"));
        server.submit(&form, json!({"n": n, "t": format!("number {n}")})).await;
    }
    let all = summary(&server, &form, "").await;
    assert_eq!(all["timeline"]["unit"], "day");
    assert_eq!(all["filter"], json!({}));
    for (query, sum) in [
        ("where=n.gte=2", 5),
        ("filter[n][lt]=3&q=NUMBER", 3),
        ("since=2026-11-21T00:00:00Z&until=2026-11-25T09:00:00Z", 2),
        ("q=nothing", 0),
    ] {
        let found = summary(&server, &form, query).await;
        let number = of(&found, "n");
        let mean = number["summary"]["mean"].as_f64().unwrap_or_default();
        assert_eq!(mean * number["answered"].as_f64().unwrap(), f64::from(sum), "{query}");
    }
    let echoed = summary(&server, &form, "since=2026-11-21T00:00:00Z&q=x&where=n.gte=2").await;
    assert_eq!(echoed["filter"], json!({"since": "2026-11-21T00:00:00.000Z", "q": "x", "n.gte": "2"}));
    for (query, pointer) in
        [("where=m.gte=2", "/where/m.gte"), ("limit=5", "/limit"), ("since=monday", "/since")]
    {
        let problem = server.get(format!("{path}/summary?{query}")).send().await.expect(400);
        assert_eq!(
            (&problem["code"], &problem["errors"][0]["pointer"]),
            (&json!("invalid_query"), &json!(pointer))
        );
    }
}
