//! Details of errors for programs: the allowed names, help, and the related pointer.

use crate::harness::prelude::*;

/// A line for each entry of `errors`: pointer, code, and those details that it has.
fn details(response: &TestResponse) -> Vec<String> {
    let body = response.json();
    let entry = |error: &Value| {
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        let allowed = error["allowed"].as_array().map(|names| json!(names).to_string());
        let parts = [text("pointer"), text("code"), allowed, text("help"), text("related")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    body["errors"].as_array().unwrap().iter().map(entry).collect()
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
    let details = details(&refused);
    let own_id = "every question needs its own id: answers are stored under it";
    for expected in [
        "/title type_mismatch quote it: \"7\"",
        "/questions/1/required type_mismatch write `true`",
        "/questions/1/title missing_field",
        "/questions/2/options/2 duplicate_option /questions/2/options/0",
        r#"/questions/2/display invalid_range ["radio","dropdown"]"#,
        "/questions/3/show_if/or unknown_reference write `any`",
        r#"/questions/3/required_if/b unknown_reference ["a","q1"]"#,
        "/settings/closes_at invalid_range /settings/opens_at",
        &format!("/questions/1/id duplicate_question_id {own_id} /questions/0/id"),
    ] {
        assert!(details.iter().any(|found| found == expected), "{expected} is not in {details:#?}");
    }
    for start in [
        r#"/questions/0/type unknown_question_type ["rating","#,
        r#"/questions/1/titel unknown_field ["title","#,
        "/status read_only_field leave it out",
    ] {
        assert!(details.iter().any(|found| found.starts_with(start)), "{start} is not in {details:#?}");
    }
    let types = refused.json()["errors"].as_array().unwrap().iter().find_map(|error| {
        (error["code"] == "unknown_question_type").then(|| error["allowed"].as_array().unwrap().len())
    });
    assert_eq!(types, Some(20));
}

#[tokio::test]
async fn errors_list_at_most_twenty_allowed_names_and_only_for_the_first_ten() {
    let server = Server::start().await;
    let question = |number| json!({"id": format!("question_{number}"), "type": "number", "title": "N"});
    let form = server.published_form((0..500).map(question).collect()).await;
    let misspelt: Value = (0..40).map(|number| (format!("qeustion_4{number}"), json!(1))).collect();
    let refused =
        server.post(format!("{FORMS}/{form}/submissions"), json!({"answers": misspelt})).send().await;
    let body = refused.expect(422);
    let errors = body["errors"].as_array().unwrap();
    let allowed: Vec<_> =
        errors.iter().map(|error| error["allowed"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(allowed, [vec![20; 10], vec![0; 30]].concat());
    let second = &errors[1];
    assert_eq!([&second["pointer"], &second["allowed"][0]], ["/answers/qeustion_41", "question_41"]);
}

#[tokio::test]
async fn errors_of_answers_name_what_exists_and_what_to_correct_first() {
    let server = Server::start().await;
    let colours = ["red", "green", "blue"];
    let questions = json!([
        {"id": "one", "type": "single_choice", "title": "One", "options": colours},
        {"id": "some", "type": "multiple_choice", "title": "Some", "options": colours},
        {"id": "grid", "type": "matrix", "title": "Grid", "rows": ["taste", "price"], "columns": ["good", "bad"]},
        {"id": "score", "type": "rating", "title": "Score"},
        {"id": "why", "type": "short_text", "title": "Why", "show_if": {"score": {"lt": 3}}},
    ]);
    let path = format!("{FORMS}/{}/submissions", server.published_form(questions).await);
    let misspelt =
        json!({"one": "gren", "some": ["red", "bleu"], "grid": {"prize": "good", "taste": "goof"}});
    for (answers, expected) in [
        (
            misspelt,
            &[
                r#"/answers/one not_an_option ["green","red","blue"]"#,
                r#"/answers/some/1 not_an_option ["blue","red","green"]"#,
                r#"/answers/grid/prize unknown_row ["price","taste"]"#,
                r#"/answers/grid/taste not_an_option ["good","bad"]"#,
            ][..],
        ),
        (
            json!({"score": 9, "why": "x"}),
            &[
                "/answers/score out_of_range",
                "/answers/why question_not_visible correct `score` first /answers/score",
            ],
        ),
        (json!({"score": 5, "why": "x"}), &["/answers/why question_not_visible leave it out"]),
    ] {
        let refused = server.post(&path, json!({"answers": answers})).send().await;
        assert_eq!(details(&refused), expected);
    }
}

#[tokio::test]
async fn errors_of_a_query_point_to_each_invalid_parameter() {
    let server = Server::start().await;
    let questions = json!([
        {"id": "score", "type": "rating", "title": "S"},
        {"id": "m", "type": "multiple_choice", "title": "M", "options": ["a"]},
    ]);
    let list = format!("{FORMS}/{}/submissions", server.published_form(questions).await);
    let known = r#"["limit","cursor","trashed","status","order","since","until","q","filter[question][operator]","where","count"]"#;
    for (query, expected) in [
        (
            "order=acs&limti=1&since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z",
            &[
                r#"/order not_an_option ["asc","desc"]"#,
                "/since invalid_range /until",
                &format!("/limti unknown_field {known}"),
            ][..],
        ),
        (
            "where=scroe=1&filter[m]=a&where=score.gte=9&where=score.eq=",
            &[
                r#"/where/scroe unknown_question ["score","m"]"#,
                "/where/score.eq impossible_condition the operator `answered` with `false` asks for no answer",
                "/filter/m/eq impossible_condition the operator `includes` tests one option",
                "/where/score.gte impossible_condition",
            ],
        ),
        ("where=score=1&filter[score]=2", &["/filter/score/eq too_many"]),
    ] {
        let refused = server.get(format!("{list}?{query}")).send().await;
        assert_eq!(details(&refused), expected, "{query}");
    }
}
