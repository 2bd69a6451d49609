//! `forms erase`, `responses list --all-forms` and `responses delete --where`.

use serde_json::{Value, json};

use super::Home;

const DATA: [&str; 2] = ["--data", "store"];

/// Creates two forms, one of them in the trash, with answers of Ann and Bob.
fn home() -> (Home, Vec<String>) {
    let home = Home::new();
    let mut ids = Vec::new();
    for (slug, question) in [("lunch", "name"), ("visit", "email")] {
        let form = format!(
            "title: {slug}\nslug: {slug}\nquestions: [{{id: {question}, type: short_text, title: Q}}]\n"
        );
        home.write("form.yaml", &form);
        let form = home.ok(&["--data", "store", "create", "--publish", "-f", "form.yaml"]).trim().to_owned();
        for who in ["ann@example.com", "bob@example.com"] {
            let answer = format!("{question}={who}");
            ids.push(home.ok(&["--data", "store", "submit", &form, &answer]).trim().to_owned());
        }
    }
    (home, ids)
}

fn run(home: &Home, arguments: &[&str]) -> super::Run {
    home.run(&[&DATA[..], arguments].concat())
}

#[test]
fn a_person_is_erased_from_all_forms_and_the_receipt_has_no_answers() {
    let (home, ids) = home();
    run(&home, &["delete", "visit", "--yes"]).expect(0);
    let search = ["erase", "--search", "ANN@example.com"];
    let refused = run(&home, &search).expect(2);
    assert!(refused.stderr.contains("add --yes"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("{} of frm_", ids[0])), "{}", refused.stderr);
    let tried = run(&home, &[&search[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!(tried.stdout, format!("{}\n{}\n", ids[0], ids[2]));
    let receipt = run(&home, &[&search[..], &["--yes", "-o", "json"]].concat()).expect(0);
    assert!(!receipt.stdout.contains("ann"), "{}", receipt.stdout);
    let receipt: Value = serde_json::from_str(&receipt.stdout).unwrap();
    assert_eq!(
        (&receipt["erased"], &receipt["compacted"], &receipt["forms"]),
        (&json!(true), &json!(true), &json!(2))
    );
    assert_eq!(receipt["submissions"][1]["id"], *ids[2]);
    // What is erased is in no file.
    let files = walk(&home.path().join("store"));
    assert!(files.len() > 3);
    for (file, content) in files {
        let has = |text: &str| content.windows(text.len()).any(|found| found == text.as_bytes());
        assert!(!has("ann@example.com"), "{file}");
    }
    let again = run(&home, &[&search[..], &["--yes"]].concat()).expect(0);
    assert_eq!((again.stdout.as_str(), again.stderr.as_str()), ("", "nothing found in 2 forms\n"));
    run(&home, &["erase"]).expect(2);
    run(&home, &["erase", "--search", ""]).expect(2);
    let typo = run(&home, &["erase", "--where", "nmae=x", "--yes"]).expect(2);
    assert!(typo.stderr.contains("`nmae` is not a question of \"any form\""), "{}", typo.stderr);
    let by_answer = run(&home, &["erase", "--where", "name=bob@example.com", "--dry-run"]).expect(0);
    assert_eq!(by_answer.stdout, format!("{}\n", ids[1]));
}

fn walk(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    files
}

#[test]
fn answers_are_searched_in_all_forms_and_deleted_by_what_they_say() {
    let (home, ids) = home();
    let list = ["responses", "list", "--all-forms", "--search", "bob"];
    let found = run(&home, &[&list[..], &["-o", "json"]].concat()).expect(0).json();
    let mut listed: Vec<_> =
        found["submissions"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    listed.sort_by_key(ToString::to_string);
    assert_eq!(json!(listed), json!([ids[1], ids[3]]));
    let by_answer =
        run(&home, &["responses", "list", "--all-forms", "--where", "email.includes=bob", "-o", "csv"]);
    assert_eq!(by_answer.expect(0).stdout.lines().count(), 2);
    let limited = run(&home, &[&list[..], &["--limit", "1"]].concat()).expect(0);
    assert_eq!((limited.stdout.lines().count(), limited.stderr.contains("showing 1 of 2")), (1, true));
    run(&home, &["responses", "list", "--all-forms", "--where", "nosuch=1"]).expect(2);
    run(&home, &["responses", "list", "lunch", "--all-forms"]).expect(2);
    run(&home, &["responses", "list"]).expect(2);
    let one = run(&home, &["responses", "lunch", "--search", "ann"]).expect(0);
    assert!(one.stdout.starts_with(&ids[0]), "{}", one.stdout);
    let delete = ["responses", "delete", "lunch", "--where", "name.includes=example", "--purge"];
    assert!(run(&home, &delete).expect(2).stderr.contains("2 responses"));
    let deleted = run(&home, &[&delete[..], &["--yes"]].concat()).expect(0);
    let mut lines: Vec<_> = deleted.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [&ids[0], &ids[1]]);
    let none = run(&home, &["responses", "delete", "lunch", "--search", "ann", "--yes"]).expect(0);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "no responses match\n"));
    let wrong = run(&home, &["responses", "delete", "lunch", "--where", "nam=x", "--yes"]).expect(2);
    assert!(wrong.stderr.contains("`nam` is not a question of \"lunch\""), "{}", wrong.stderr);
    run(&home, &["responses", "delete", "lunch", &ids[0], "--search", "x"]).expect(2);
}
