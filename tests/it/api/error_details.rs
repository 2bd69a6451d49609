//! Details of errors for programs: the allowed names, help, and the related pointer.

use axum::http::Method;
use serde_json::{Value, json};

use crate::harness::Server;

const FORMS: &str = "/api/v1/forms";

/// Pointer, code and details of each entry of `errors`.
fn error_details(problem: &Value) -> Vec<Value> {
    let errors = problem["errors"].as_array().unwrap();
    let entry = |error: &Value| {
        let members = ["pointer", "code", "allowed", "help", "related"];
        members.iter().filter_map(|name| error.get(*name).cloned()).collect()
    };
    errors.iter().map(entry).collect()
}

#[tokio::test]
async fn errors_of_a_definition_have_allowed_values_help_and_related_pointers() {
    let server = Server::start().await;
    let form = json!({
        "title": 7,
        "status": "draft",
        "questions": [
            {"id": "a", "type": "ratting", "title": "A"},
            {"id": "a", "type": "short_text", "titel": "B", "required": "yes"},
            {"type": "single_choice", "title": "C", "options": ["x", "y", "x"], "display": "radoi"},
            {"type": "email", "title": "D", "show_if": {"or": [{"a": 1}]}, "required_if": {"b": 1}},
        ],
        "settings": {"opens_at": "2027-01-02T00:00:00Z", "closes_at": "2027-01-01T00:00:00Z"},
    });
    let refused = server.post(FORMS, form).send().await;
    let details = error_details(&refused.expect(422));
    let types = &details.iter().find(|entry| entry[1] == "unknown_question_type").unwrap()[2];
    assert_eq!((&types[0], types.as_array().unwrap().len()), (&json!("rating"), 20));
    for expected in [
        json!(["/title", "type_mismatch", "quote it: \"7\""]),
        json!(["/questions/1/required", "type_mismatch", "write `true`"]),
        json!(["/questions/1/title", "missing_field"]),
        json!(["/questions/2/options/2", "duplicate_option", "/questions/2/options/0"]),
        json!(["/questions/2/display", "invalid_range", ["radio", "dropdown"]]),
        json!(["/questions/3/show_if/or", "unknown_reference", "write `any`"]),
        json!(["/questions/3/required_if/b", "unknown_reference", ["a", "q1"]]),
        json!(["/settings/closes_at", "invalid_range", "/settings/opens_at"]),
        json!([
            "/questions/1/id",
            "duplicate_question_id",
            "every question needs its own id: answers are stored under it",
            "/questions/0/id"
        ]),
    ] {
        assert!(details.contains(&expected), "{expected} is not in {details:#?}");
    }
    let misspelt = details.iter().find(|entry| entry[0] == "/questions/1/titel").unwrap();
    assert_eq!(misspelt[2][0], "title");
    let status = details.iter().find(|entry| entry[0] == "/status").unwrap();
    assert!(status[2].as_str().unwrap().starts_with("leave it out"), "{status}");
}

#[tokio::test]
async fn errors_list_at_most_twenty_allowed_names_and_only_for_the_first_ten() {
    let server = Server::start().await;
    let question = |number| json!({"id": format!("question_{number}"), "type": "number", "title": "N"});
    let form = server.published_form((0..500).map(question).collect()).await;
    let misspelt_ids: serde_json::Map<_, _> =
        (0..40).map(|number| (format!("qeustion_4{number}"), json!(1))).collect();
    let refused =
        server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": misspelt_ids})).send().await;
    let details = error_details(&refused.expect(422));
    assert_eq!(details.len(), 40);
    let allowed: Vec<_> = details.iter().map(|entry| entry[2].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(allowed, [vec![20; 10], vec![0; 30]].concat());
    assert_eq!((&details[1][0], &details[1][2][0]), (&json!("/answers/qeustion_41"), &json!("question_41")));
}

#[tokio::test]
async fn an_answer_that_depends_on_a_refused_one_points_to_it() {
    let server = Server::start().await;
    let form = server
        .published_form(json!([
            {"id": "score", "type": "rating", "title": "Score"},
            {"id": "why", "type": "short_text", "title": "Why", "show_if": {"score": {"lt": 3}}},
        ]))
        .await;
    let path = format!("{FORMS}/{form}/submissions");
    for (answers, expected) in [
        (
            json!({"score": 9, "why": "x"}),
            json!(["/answers/why", "question_not_visible", "correct `score` first", "/answers/score"]),
        ),
        (json!({"score": 5, "why": "x"}), json!(["/answers/why", "question_not_visible", "leave it out"])),
    ] {
        let refused = server.post(&path, json!({"answers": answers})).send().await;
        assert_eq!(error_details(&refused.expect(422)).last(), Some(&expected));
    }
}

#[tokio::test]
async fn an_unknown_option_or_row_is_refused_with_the_existing_ones() {
    let server = Server::start().await;
    let form = server
        .published_form(json!([
            {"id": "one", "type": "single_choice", "title": "One", "options": ["red", "green", "blue"]},
            {"id": "some", "type": "multiple_choice", "title": "Some", "options": ["red", "green", "blue"]},
            {"id": "grid", "type": "matrix", "title": "Grid", "rows": ["taste", "price"], "columns": ["good", "bad"]},
        ]))
        .await;
    let answers = json!({"one": "gren", "some": ["red", "bleu"], "grid": {"prize": "good", "taste": "goof"}});
    let refused =
        server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": answers})).send().await;
    let expected = json!([
        ["/answers/one", "not_an_option", ["green", "red", "blue"]],
        ["/answers/some/1", "not_an_option", ["blue", "red", "green"]],
        ["/answers/grid/prize", "unknown_row", ["price", "taste"]],
        ["/answers/grid/taste", "not_an_option", ["good", "bad"]],
    ]);
    assert_eq!(json!(error_details(&refused.expect(422))), expected);
}

#[tokio::test]
async fn the_error_of_a_taken_slug_names_its_form() {
    let server = Server::start().await;
    let form = json!({"title": "A", "slug": "lunch"});
    let holder = server.post(FORMS, form.clone()).send().await.expect(201)["id"].clone();
    let refused = server.post(FORMS, form).send().await;
    assert_eq!(refused.expect(409)["form_id"], holder);
}

#[tokio::test]
async fn errors_of_a_query_point_to_each_invalid_parameter() {
    let server = Server::start().await;
    let form = server
        .published_form(json!([{"id": "score", "type": "rating", "title": "S"}, {"id": "m", "type": "multiple_choice", "title": "M", "options": ["a"]}]))
        .await;
    let list = format!("{FORMS}/{form}/submissions");
    for (query, expected) in [
        (
            "order=acs&limti=1&since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z",
            json!([
                ["/order", "not_an_option", ["asc", "desc"]],
                ["/since", "invalid_range", "/until"],
                [
                    "/limti",
                    "unknown_field",
                    [
                        "limit",
                        "cursor",
                        "trashed",
                        "order",
                        "since",
                        "until",
                        "status",
                        "q",
                        "filter[question][operator]",
                        "where",
                        "count"
                    ]
                ],
            ]),
        ),
        (
            "where=scroe=1&filter[m]=a&where=score.gte=9&where=score.eq=",
            json!([
                ["/where/scroe", "unknown_question", ["score", "m"]],
                [
                    "/where/score.eq",
                    "impossible_condition",
                    "the operator `answered` with `false` asks for no answer"
                ],
                ["/filter/m/eq", "impossible_condition", "the operator `includes` tests one option"],
                ["/where/score.gte", "impossible_condition"],
            ]),
        ),
        ("where=score=1&filter[score]=2", json!([["/filter/score/eq", "too_many"]])),
    ] {
        let refused = server.call(Method::GET, format!("{list}?{query}")).send().await;
        assert_eq!(json!(error_details(&refused.expect(400))), expected, "{query}");
    }
}
