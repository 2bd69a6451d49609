//! Commands on several items: one document of results, one line of failures.

use serde_json::{Value, json};

use super::{Home, Run, SURVEY};

const DATA: [&str; 2] = ["--data", "store"];

/// Runs a command on the data directory `store`.
fn run(home: &Home, format: &str, arguments: &[&str]) -> Run {
    home.run(&[&DATA[..], &["-o", format], arguments].concat())
}

/// Creates a home with two forms, one of which has a description.
fn with_forms() -> (Home, String, String) {
    let home = Home::new();
    let one = home.published_form(&DATA);
    home.write("other.yaml", "title: Other\ndescription: More\nquestions: [{type: email, title: T}]\n");
    let other = home.ok(&["--data", "store", "create", "-f", "other.yaml"]).trim().to_owned();
    (home, one, other)
}

#[test]
fn several_results_are_one_document() {
    let (home, one, other) = with_forms();
    let publish = |format| run(&home, format, &["publish", &one, &other]).expect(0).stdout;
    let list: Value = serde_json::from_str(&publish("json")).unwrap();
    assert_eq!((&list[0]["id"], &list[1]["id"]), (&json!(one), &json!(other)));
    let lines = publish("jsonl");
    assert!(lines.lines().count() == 2 && lines.lines().all(|line| line.starts_with("{\"id\":\"frm_")));
    let csv = publish("csv");
    let rows: Vec<_> = csv.lines().collect();
    assert!(rows.len() == 3 && rows[0].starts_with("id,title,description,slug,status,"));
    let commas =
        |row: &str| row.replace("\"\"", "").split('"').step_by(2).collect::<String>().matches(',').count();
    assert!(rows.iter().all(|row| commas(row) == commas(rows[0])), "{csv}");
    let yaml = publish("yaml");
    let documents = yaml.split("---\n").skip(1).map(serde_yaml::from_str::<serde_yaml::Value>);
    let ids: Vec<_> =
        documents.map(|document| document.unwrap()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [one.clone(), other.clone()]);
    // A single one is not in an array.
    assert_eq!(run(&home, "json", &["publish", &one]).expect(0).json()["id"], json!(one));
    assert!(!run(&home, "yaml", &["publish", &one]).expect(0).stdout.contains("---"));
    home.write("two.yaml", "title: A\n---\ntitle: B\n");
    let made = run(&home, "json", &["create", "-f", "two.yaml"]).expect(0).json();
    assert_eq!((&made[0]["title"], &made[1]["title"]), (&json!("A"), &json!("B")));
}

#[test]
fn several_failures_are_one_line() {
    let (home, one, other) = with_forms();
    let missing = "frm_000000000000";
    let partly = run(&home, "json", &["publish", &one, missing, &other]).expect(8);
    assert_eq!(partly.json().as_array().unwrap().len(), 2);
    let problem = partly.problem();
    assert_eq!((&problem["code"], &problem["exit"]), (&json!("partial"), &json!(8)));
    let failures = problem["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(
        (&failures[0]["item"], &failures[0]["code"], &failures[0]["exit"]),
        (&json!(missing), &json!("form_not_found"), &json!(3))
    );
    let all = run(&home, "csv", &["publish", missing, "frm_000000000001"]).expect(3);
    assert!(all.stdout.is_empty());
    assert_eq!(all.problem()["failures"].as_array().unwrap().len(), 2);
}

#[test]
fn several_files_are_validated_and_reported_together() {
    let home = Home::new();
    home.write("bad.yaml", "titel: A\nquestions: [{type: ratting, title: T}]\n");
    home.write("same.yaml", SURVEY);
    let fit = home.run(&["validate", "-o", "json", "survey.yaml", "same.yaml"]).expect(0).json();
    assert_eq!(fit, json!([{"file": "survey.yaml", "valid": true}, {"file": "same.yaml", "valid": true}]));
    let one = home.run(&["validate", "-o", "json", "survey.yaml"]).expect(0).json();
    assert_eq!(one, fit[0]);
    let csv = home.ok(&["validate", "-o", "csv", "survey.yaml", "same.yaml"]);
    assert_eq!(csv, "file,valid\nsurvey.yaml,true\nsame.yaml,true\n");
    let mixed = home.run(&["validate", "-o", "json", "bad.yaml", "survey.yaml", "missing.yaml"]).expect(6);
    let results = mixed.json();
    assert_eq!(results[1], json!({"file": "survey.yaml", "valid": true}));
    assert_eq!((&results[0]["file"], &results[0]["valid"]), (&json!("bad.yaml"), &json!(false)));
    let failures = &mixed.problem()["failures"];
    assert_eq!((&failures[0]["item"], &failures[1]["item"]), (&json!("bad.yaml"), &json!("missing.yaml")));
    let hints: Vec<_> = (0..2).map(|place| &results[0]["errors"][place]["hint"]).collect();
    assert_eq!(
        hints,
        ["a field with a similar name exists: `title`", "a type with a similar name exists: `rating`"]
    );
    home.write("a.yaml", "title: A\nslug: same\n");
    home.write("b.yaml", "title: B\nslug: same\n");
    let shared = home.run(&["validate", "a.yaml", "b.yaml"]).expect(6);
    assert_eq!(shared.stdout, "a.yaml: ok\n");
    let message = "error[slug_taken]: a.yaml and b.yaml both have the slug `same`\n --> b.yaml:2:7\n";
    assert!(shared.stderr.starts_with(message), "{shared:?}");
    let text = home.run(&["validate", "bad.yaml", "survey.yaml"]).expect(6);
    assert_eq!(text.stdout, "survey.yaml: ok\n");
    assert!(text.stderr.contains("bad.yaml: 2 problems found\nerror: 1 of 2 failed\n"), "{text:?}");
}

#[test]
fn an_invalid_file_determines_the_exit_code_over_a_missing_one() {
    let home = Home::new();
    let validate = |files: &[&str]| run(&home, "jsonl", &[&["validate"], files].concat());
    home.write("bad.yaml", "titel: A\n");
    validate(&["survey.yaml", "missing.yaml"]).expect(2);
    validate(&["missing.yaml", "missing.yaml"]).expect(2);
    validate(&["survey.yaml", "missing.yaml", "bad.yaml"]).expect(6);
    validate(&["missing.yaml", "bad.yaml"]).expect(6);
}

#[test]
fn the_message_of_a_failure_names_the_item() {
    let home = Home::new();
    let form = home.published_form(&DATA);
    let submit = || home.ok(&["--data", "store", "submit", &form, "q1=x"]).trim().to_owned();
    let (one, other) = (submit(), submit());
    let message = run(&home, "table", &["responses", "restore", &form, &one, &other]).expect(5).stderr;
    for id in [one, other] {
        assert!(
            message.contains(&format!(
                "error[not_in_trash]: {id}: the form or submission is not in the trash\n"
            )),
            "{message}"
        );
    }
    let message = run(&home, "table", &["publish", "nope", "neither"]).expect(3).stderr;
    assert!(message.starts_with("error[form_not_found]: there is no form `nope`\n"), "{message}");
}

#[test]
fn either_all_forms_of_a_file_are_stored_or_none() {
    let home = Home::new();
    home.write("one.yaml", "slug: taken\ntitle: A\n");
    home.ok(&["--data", "store", "create", "-f", "one.yaml"]);
    home.write("three.yaml", "slug: free\ntitle: A\n---\nslug: taken\ntitle: B\n---\ntitle: C\n");
    let refused = run(&home, "table", &["create", "-f", "three.yaml"]).expect(5);
    assert!(refused.stdout.is_empty(), "{refused:?}");
    assert!(refused.stderr.contains(" --> three.yaml:4:7\n"), "{refused:?}");
    assert!(refused.stderr.ends_with("\nnothing was stored\nerror: 1 of 3 failed\n"), "{refused:?}");
    home.write("same.yaml", "slug: free\ntitle: A\n---\nslug: free\ntitle: B\n");
    let offline = home.run(&["validate", "same.yaml"]).expect(6).stderr;
    assert!(offline.contains("error[slug_taken]: two forms of the file have the slug `free`"), "{offline}");
    for place in [" --> same.yaml:4:7\n", "first used here", "used again here"] {
        assert!(offline.contains(place), "{offline}");
    }
    let refused = run(&home, "table", &["create", "-f", "same.yaml"]).expect(6);
    assert_eq!(refused.stderr, offline);
    assert_eq!(run(&home, "table", &["list"]).expect(0).stdout.lines().count(), 1);
}
