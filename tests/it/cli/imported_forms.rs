//! Forms from other tools, translated to our format: what they accept and refuse.

use serde_json::{Value, json};

use super::Home;

/// Creates the example `name`, sends the `accepted` answers, which are listed as expected, and fails unless the `refused` ones
/// have the codes and questions expected.
#[track_caller]
fn check(name: &str, accepted: &[(&[&str], Value)], refused: &[(&[&str], &[&str])]) {
    let home = Home::new();
    let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let form = home.ok(&["--data", "store", "create", "--publish", "-f", &path]);
    let submit = ["--data", "store", "submit", form.trim()];
    for (answers, expected) in accepted {
        let id = home.ok(&[&submit[..], answers].concat());
        let listed = home.run(&["--data", "store", "responses", form.trim(), "-o", "json"]).json();
        assert_eq!(listed["submissions"][0]["id"], id.trim());
        assert_eq!(listed["submissions"][0]["answers"], *expected);
    }
    for (answers, expected) in refused {
        let problem = home.run(&[&submit[..], answers, &["-o", "json"]].concat()).expect(6).problem();
        let text = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().to_owned();
        let errors = problem["errors"].as_array().unwrap().iter();
        let errors: Vec<_> =
            errors.map(|error| format!("{} {}", text(error, "code"), text(error, "question"))).collect();
        assert_eq!(errors, *expected, "{answers:?}");
    }
}

#[test]
fn a_bug_report_from_github_is_supported() {
    check(
        "bug-report.yaml",
        &[(
            &["in_cpython=yes", "searched=yes", "versions=3.10", "versions=3.13", "description=It crashes."],
            json!({"in_cpython": true, "searched": true, "versions": ["3.10", "3.13"], "description": "It crashes."}),
        )],
        &[(
            &["in_cpython=no", "versions=3.1", "systems=Plan 9"],
            &[
                "required in_cpython",
                "required searched",
                "not_an_option versions",
                "not_an_option systems",
                "required description",
            ],
        )],
    );
}

#[test]
fn a_form_from_google_is_supported() {
    check(
        "experience.yaml",
        &[(
            &["name=Ann", "colour:={\"other\":\"Teal\"}", "experience=5"],
            json!({"name": "Ann", "colour": {"other": "Teal"}, "experience": 5}),
        )],
        &[(
            &["colour=Teal", "experience=6"],
            &["required name", "not_an_option colour", "out_of_range experience"],
        )],
    );
}

#[test]
fn a_survey_from_surveyjs_is_supported() {
    let care = json!({"courtesy": "very good", "time": "fair"});
    check(
        "clinic-visit.yaml",
        &[(
            &["got_appointment=yes", "seen_in_time=no", &format!("care_provider:={care}")],
            json!({"got_appointment": true, "seen_in_time": false, "care_provider": care}),
        )],
        &[(
            &["care_provider:={\"parking\":\"good\",\"time\":\"long\"}"],
            &["unknown_row care_provider", "not_an_option care_provider"],
        )],
    );
}

#[test]
fn a_demonstration_from_typeform_is_supported() {
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
    let listed = json!({
        "enjoys": true, "looks_better": true, "uses": 0, "picked": 7, "last_use": "2026-03-01", "rating": 0,
        "form_rating": 9, "choice": "Choice 2", "choices": ["Choice 1", "Choice 3"], "selection": "Choice 4",
        "short": "hello", "long": "world",
    });
    check(
        "from-typeform.yaml",
        &[
            // The shortest path, which ends with the statement, and a number that ends the form.
            (&["looks_better=no"], json!({"looks_better": false})),
            (&["looks_better=yes", "uses=42"], json!({"looks_better": true, "uses": 42})),
            (&all, listed),
        ],
        &[
            // A jump past questions becomes a condition that hides them.
            (&["looks_better=no", "rating=3"], &["question_not_visible rating"]),
            (
                &["looks_better=yes", "rating=5", "choices=Choice 13", "short=no", "picked=3"],
                &["question_not_visible picked", "question_not_visible short"],
            ),
            (
                &["looks_better=yes", "rating=1", "choices=Choice 1", "short=jump!", "long=x"],
                &["question_not_visible long"],
            ),
        ],
    );
}

#[test]
fn a_form_of_the_community_health_toolkit_is_supported() {
    check(
        "new-person.yaml",
        &[(
            &["name=Wanjiru Otieno", "dob_unknown=yes", "age_years=34", "sex=female", "phone=0712 123456"],
            json!({"name": "Wanjiru Otieno", "dob_unknown": true, "age_years": 34, "sex": "female",
                "phone": "0712 123456", "parent": "PARENT", "type": "person"}),
        )],
        &[(
            &["name=A", "short_name=much too long", "age_years=131", "sex=male", "role=other"],
            &[
                "too_long short_name",
                "required date_of_birth",
                "question_not_visible age_years",
                "required role_other",
            ],
        )],
    );
}
