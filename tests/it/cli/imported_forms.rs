//! Forms from other tools, translated to our format, are created, submitted and listed.

use serde_json::{Value, json};

use super::Home;

/// Creates and publishes the example `name` and returns its id.
fn create_example(home: &Home, name: &str) -> String {
    let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
    home.ok(&["--data", "store", "create", "--publish", "-f", &path]).trim().to_owned()
}

/// The arguments of a submission.
fn submit_arguments<'a>(form: &'a str, answers: &[&'a str]) -> Vec<&'a str> {
    [&["--data", "store", "submit", form][..], answers].concat()
}

/// Submits `answers` and compares the listed answers with `expected`.
fn submit(home: &Home, form: &str, answers: &[&str], expected: &Value) {
    let id = home.ok(&submit_arguments(form, answers));
    let listed = home.run(&["--data", "store", "responses", form, "-o", "json"]).expect(0).json();
    assert_eq!(listed["submissions"][0]["id"], id.trim());
    assert_eq!(listed["submissions"][0]["answers"], *expected);
}

/// Submits invalid answers and returns the codes and questions of the errors.
fn submit_invalid(home: &Home, form: &str, answers: &[&str]) -> Vec<String> {
    let run = home.run(&[&submit_arguments(form, answers)[..], &["-o", "json"]].concat()).expect(6);
    let problem: Value = serde_json::from_str(&run.stderr).unwrap();
    let describe = |error: &Value| {
        format!("{} {}", error["code"].as_str().unwrap(), error["question"].as_str().unwrap_or_default())
    };
    problem["errors"].as_array().unwrap().iter().map(describe).collect()
}

#[test]
fn a_bug_report_from_github_is_supported() {
    let home = Home::new();
    let form = create_example(&home, "bug-report.yaml");
    submit(
        &home,
        &form,
        &["in_cpython=yes", "searched=yes", "versions=3.10", "versions=3.13", "description=It crashes."],
        &json!({"in_cpython": true, "searched": true, "versions": ["3.10", "3.13"], "description": "It crashes."}),
    );
    assert_eq!(
        submit_invalid(&home, &form, &["in_cpython=no", "versions=3.1", "systems=Plan 9"]),
        [
            "required in_cpython",
            "required searched",
            "not_an_option versions",
            "not_an_option systems",
            "required description"
        ]
    );
}

#[test]
fn a_form_from_google_is_supported() {
    let home = Home::new();
    let form = create_example(&home, "experience.yaml");
    submit(
        &home,
        &form,
        &["name=Ann", "colour:={\"other\":\"Teal\"}", "experience=5"],
        &json!({"name": "Ann", "colour": {"other": "Teal"}, "experience": 5}),
    );
    assert_eq!(
        submit_invalid(&home, &form, &["colour=Teal", "experience=6"]),
        ["required name", "not_an_option colour", "out_of_range experience"]
    );
}

#[test]
fn a_survey_from_surveyjs_is_supported() {
    let home = Home::new();
    let form = create_example(&home, "clinic-visit.yaml");
    submit(
        &home,
        &form,
        &[
            "got_appointment=yes",
            "seen_in_time=no",
            "care_provider:={\"courtesy\":\"very good\",\"time\":\"fair\"}",
        ],
        &json!({"got_appointment": true, "seen_in_time": false,
                "care_provider": {"courtesy": "very good", "time": "fair"}}),
    );
    assert_eq!(
        submit_invalid(&home, &form, &["care_provider:={\"parking\":\"good\",\"time\":\"long\"}"]),
        ["unknown_row care_provider", "not_an_option care_provider"]
    );
}

#[test]
fn a_demonstration_from_typeform_is_supported() {
    let home = Home::new();
    let form = create_example(&home, "from-typeform.yaml");
    // The shortest path, which ends with the statement.
    submit(&home, &form, &["looks_better=no"], &json!({"looks_better": false}));
    // A number that ends the form.
    submit(&home, &form, &["looks_better=yes", "uses=42"], &json!({"looks_better": true, "uses": 42}));
    let all = [
        "enjoys=yes",
        "looks_better=yes",
        "uses=0",
        "picked=7",
        "last_use=2026-03-01",
        "rating=0",
        "form_rating=9",
        "choice=Choice 2",
        "choices=Choice 1",
        "choices=Choice 3",
        "selection=Choice 4",
        "short=hello",
        "long=world",
    ];
    let expected = json!({
        "enjoys": true, "looks_better": true, "uses": 0, "picked": 7, "last_use": "2026-03-01", "rating": 0,
        "form_rating": 9, "choice": "Choice 2", "choices": ["Choice 1", "Choice 3"], "selection": "Choice 4",
        "short": "hello", "long": "world",
    });
    submit(&home, &form, &all, &expected);
    // A jump past questions becomes a condition that hides them.
    assert_eq!(
        submit_invalid(&home, &form, &["looks_better=no", "rating=3"]),
        ["question_not_visible rating"]
    );
    assert_eq!(
        submit_invalid(
            &home,
            &form,
            &["looks_better=yes", "rating=5", "choices=Choice 13", "short=no", "picked=3"]
        ),
        ["question_not_visible picked", "question_not_visible short"]
    );
    assert_eq!(
        submit_invalid(
            &home,
            &form,
            &["looks_better=yes", "rating=1", "choices=Choice 1", "short=jump!", "long=x"]
        ),
        ["question_not_visible long"]
    );
}

#[test]
fn a_form_of_the_community_health_toolkit_is_supported() {
    let home = Home::new();
    let form = create_example(&home, "new-person.yaml");
    submit(
        &home,
        &form,
        &["name=Wanjiru Otieno", "dob_unknown=yes", "age_years=34", "sex=female", "phone=0712 123456"],
        &json!({"name": "Wanjiru Otieno", "dob_unknown": true, "age_years": 34, "sex": "female",
                "phone": "0712 123456", "parent": "PARENT", "type": "person"}),
    );
    assert_eq!(
        submit_invalid(
            &home,
            &form,
            &["name=A", "short_name=much too long", "age_years=131", "sex=male", "role=other"]
        ),
        [
            "too_long short_name",
            "required date_of_birth",
            "question_not_visible age_years",
            "required role_other"
        ]
    );
}
