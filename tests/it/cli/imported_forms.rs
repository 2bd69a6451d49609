//! Forms that others wrote for other tools, said in our format: created, filled and listed.

use serde_json::{Value, json};

use super::Home;

/// Creates the example `name`, published, and gives its id.
fn published(home: &Home, name: &str) -> String {
    let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
    home.ok(&["--data", "store", "create", "--publish", "-f", &path]).trim().to_owned()
}

/// The command line that answers the form.
fn submit<'a>(form: &'a str, answers: &[&'a str]) -> Vec<&'a str> {
    [&["--data", "store", "submit", form][..], answers].concat()
}

/// Sends `answers` as a person would type them, and finds what is `kept` of them in the list.
fn fill(home: &Home, form: &str, answers: &[&str], kept: &Value) {
    let id = home.ok(&submit(form, answers));
    let listed = home.run(&["--data", "store", "responses", form, "-o", "json"]).expect(0).json();
    assert_eq!(listed["submissions"][0]["id"], id.trim());
    assert_eq!(listed["submissions"][0]["answers"], *kept);
}

/// The codes and questions of what is wrong with `answers`.
fn refused(home: &Home, form: &str, answers: &[&str]) -> Vec<String> {
    let run = home.run(&[&submit(form, answers)[..], &["-o", "json"]].concat()).expect(6);
    let problem: Value = serde_json::from_str(&run.stderr).unwrap();
    let said = |error: &Value| {
        format!("{} {}", error["code"].as_str().unwrap(), error["question"].as_str().unwrap_or_default())
    };
    problem["errors"].as_array().unwrap().iter().map(said).collect()
}

#[test]
fn a_bug_report_from_github() {
    let home = Home::new();
    let form = published(&home, "bug-report.yaml");
    fill(
        &home,
        &form,
        &["in_cpython=yes", "searched=yes", "versions=3.10", "versions=3.13", "description=It crashes."],
        &json!({"in_cpython": true, "searched": true, "versions": ["3.10", "3.13"], "description": "It crashes."}),
    );
    assert_eq!(
        refused(&home, &form, &["in_cpython=no", "versions=3.1", "systems=Plan 9"]),
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
fn a_form_from_google() {
    let home = Home::new();
    let form = published(&home, "experience.yaml");
    fill(
        &home,
        &form,
        &["name=Ann", "colour:={\"other\":\"Teal\"}", "experience=5"],
        &json!({"name": "Ann", "colour": {"other": "Teal"}, "experience": 5}),
    );
    assert_eq!(
        refused(&home, &form, &["colour=Teal", "experience=6"]),
        ["required name", "not_an_option colour", "out_of_range experience"]
    );
}

#[test]
fn a_survey_from_surveyjs() {
    let home = Home::new();
    let form = published(&home, "clinic-visit.yaml");
    fill(
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
        refused(&home, &form, &["care_provider:={\"parking\":\"good\",\"time\":\"long\"}"]),
        ["unknown_row care_provider", "not_an_option care_provider"]
    );
}

#[test]
fn a_demonstration_from_typeform() {
    let home = Home::new();
    let form = published(&home, "every-type.yaml");
    // To the end by way of the statement.
    fill(&home, &form, &["looks_better=no"], &json!({"looks_better": false}));
    // A number that ends it.
    fill(&home, &form, &["looks_better=yes", "uses=42"], &json!({"looks_better": true, "uses": 42}));
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
    let kept = json!({
        "enjoys": true, "looks_better": true, "uses": 0, "picked": 7, "last_use": "2026-03-01", "rating": 0,
        "form_rating": 9, "choice": "Choice 2", "choices": ["Choice 1", "Choice 3"], "selection": "Choice 4",
        "short": "hello", "long": "world",
    });
    fill(&home, &form, &all, &kept);
    // Where theirs jumps past a question, ours does not ask it.
    assert_eq!(refused(&home, &form, &["looks_better=no", "rating=3"]), ["question_not_visible rating"]);
    assert_eq!(
        refused(&home, &form, &["looks_better=yes", "rating=5", "choices=Choice 13", "short=no", "picked=3"]),
        ["question_not_visible picked", "question_not_visible short"]
    );
    assert_eq!(
        refused(&home, &form, &["looks_better=yes", "rating=1", "choices=Choice 1", "short=jump!", "long=x"]),
        ["question_not_visible long"]
    );
}

#[test]
fn a_form_of_health_workers() {
    let home = Home::new();
    let form = published(&home, "new-person.yaml");
    fill(
        &home,
        &form,
        &["name=Wanjiru Otieno", "dob_unknown=yes", "age_years=34", "sex=female", "phone=0712 123456"],
        &json!({"name": "Wanjiru Otieno", "dob_unknown": true, "age_years": 34, "sex": "female",
                "phone": "0712 123456", "parent": "PARENT", "type": "person"}),
    );
    assert_eq!(
        refused(
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
