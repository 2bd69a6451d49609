//! Golden error messages.

use super::Home;
use crate::golden::assert_golden;

/// Compares the command's stderr with a golden file.
#[track_caller]
fn assert_messages(name: &str, code: i32, home: &Home, arguments: &[&str]) {
    assert_messages_with(name, code, home, &[], arguments);
}

/// Like [`assert_messages`], with environment variables.
#[track_caller]
fn assert_messages_with(name: &str, code: i32, home: &Home, variables: &[(&str, &str)], arguments: &[&str]) {
    let plain = home.run_with(variables, arguments).expect(code);
    assert!(plain.stdout.is_empty(), "{plain:?}");
    assert_golden(&format!("messages/{name}.txt"), &normalize(&plain.stderr));
    let widest = plain.stderr.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{name} has {widest} columns");
}

/// Replaces ids and ports by fixed ones.
fn normalize(text: &str) -> String {
    let mut pieces = text.split("frm_");
    let begin = pieces.next().unwrap_or_default().to_owned();
    let text = pieces.fold(begin, |joined, piece| joined + "frm_7k2m9q4x1abz" + &piece[12..]);
    let mut pieces = text.split("http://127.0.0.1:");
    let begin = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(begin, |joined, piece| {
        let rest = piece.trim_start_matches(|character: char| character.is_ascii_digit());
        let port = if piece.len() - rest.len() > 1 { "8787" } else { "1" };
        joined + "http://127.0.0.1:" + port + rest
    })
}

#[test]
fn three_problems_of_a_file_are_shown_together() {
    let home = Home::new();
    home.write(
        "bad.yaml",
        "\
title: Customer feedback
questions:
  # Two minutes.
  - id: email
    type: email
    titel: Your e-mail
  - id: score
    title: How did we do?
    type: ratting
    max: 5

  - {id: email, type: short_text, title: \"Anything else?\"}
",
    );
    assert_messages("three-problems", 6, &home, &["validate", "bad.yaml"]);
    let coloured = home.run(&["--color", "always", "validate", "bad.yaml"]).expect(6).stderr;
    assert_golden("messages/three-problems.colour.txt", &coloured);
}

#[test]
fn all_problems_of_conditions_are_shown_together() {
    let home = Home::new();
    home.write(
        "conditions.yaml",
        "\
title: Customer feedback
questions:
  - {id: score, type: rating, title: How did we do?}
  - type: page
    title: What went wrong
    show_if: { scroe: { lte: 2 } }
  - id: reason
    type: short_text
    title: Why?
    required_if: { score: { gte: 6 } }
    show_if:
      any:
        - score: [1, 2, 7]
        - score: { ltee: 3 }
        - later: { answered: true }
  - {id: later, type: email, title: Your email, show_if: {reason: {matches: \"(\"}, score: {in: []}}}
",
    );
    assert_messages("conditions", 6, &home, &["validate", "conditions.yaml"]);
}

#[test]
fn syntax_errors_are_shown() {
    let home = Home::new();
    home.write("syntax.yaml", "title: A\nquestions:\n  - {type: email\n");
    assert_messages("syntax", 6, &home, &["validate", "syntax.yaml"]);
    home.write("syntax.json", "{\"title\": \"A\",\n \"questions\": [}\n");
    assert_messages("syntax-json", 6, &home, &["validate", "syntax.json"]);
}

#[test]
fn all_problems_of_answers_are_shown_before_anything_is_sent() {
    let home = Home::new();
    home.write(
        "feedback.yaml",
        "\
title: Customer feedback
questions:
  - {id: score, type: rating, title: How did we do?, required: true}
  - {id: email, type: email, title: Your email}
",
    );
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "feedback.yaml"]);
    let submit = |answers: &[&'static str]| {
        [&["--data", "store", "submit", id.trim()], answers]
            .concat()
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let both = submit(&["emial=ann@example.com"]);
    assert_messages("answers", 6, &home, &both.iter().map(String::as_str).collect::<Vec<_>>());
    let values = submit(&["score=6", "email=ann"]);
    assert_messages("answer-values", 6, &home, &values.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_submission_to_a_draft_shows_how_to_publish_it() {
    let home = Home::new();
    home.write(
        "survey.yaml",
        "title: Customer feedback\nslug: feedback\nquestions: [{type: email, title: T}]\n",
    );
    home.ok(&["--data", "store", "create", "-f", "survey.yaml"]);
    assert_messages("draft", 5, &home, &["--data", "store", "submit", "feedback", "q1=ann@example.com"]);
}

#[test]
fn problems_found_by_the_server_are_shown_in_the_file() {
    let home = Home::new();
    let text = "# For the shop.\ntitle: Customer feedback\nslug: customer-feedback\nquestions: []\n";
    home.write("feedback.yaml", text);
    let create = ["--data", "store", "create", "-f", "feedback.yaml"];
    home.ok(&create);
    assert_messages("slug-taken", 5, &home, &create);
    let problem = home.run(&[&create[..], &["-o", "json"]].concat()).expect(5).problem();
    assert_eq!((&problem["code"], &problem["status"]), (&"slug_taken".into(), &409.into()));
    assert_eq!((&problem["errors"][0]["line"], &problem["errors"][0]["column"]), (&3.into(), &7.into()));
    // Size limits are checked by the server.
    let question = |number| format!("  - {{type: email, title: Address {number}}}\n");
    let questions: String = (1..=501).map(question).collect();
    let title = "x".repeat(301);
    home.write("large.yaml", &format!("questions:\n{questions}title: {title}\nslug: large\n"));
    assert_messages("limits", 6, &home, &["--data", "store", "create", "-f", "large.yaml"]);
}

#[test]
fn a_refused_or_missing_key_is_reported_with_its_source() {
    let home = Home::new();
    let server = home.serve();
    let key = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let variables = [("FORMS_URL", &*server.url), ("FORMS_API_KEY", key)];
    assert_messages_with("unauthorized", 4, &home, &variables, &["list"]);
    let other_home = tempfile::tempdir().unwrap();
    let variables = [("FORMS_URL", &*server.url), ("HOME", other_home.path().to_str().unwrap())];
    assert_messages_with("no-key", 4, &home, &variables, &["list"]);
}

#[test]
fn unknown_fields_are_shown_with_the_existing_ones() {
    let home = Home::new();
    home.write(
        "fields.yaml",
        "\
title: Customer feedback
questions:
  - {type: rating, title: How was it?, min: 1, labels: {0: none}}
  - {type: single_choice, label: Which?, choices: [a, b]}
  - {type: multiple_choice, id: food, title: What?, options: [a, b]}
  - {type: email, title: Your email, show_if: {food: a}}
settings: {sound: loud}
",
    );
    assert_messages("fields", 6, &home, &["validate", "fields.yaml"]);
}

#[test]
fn scalars_that_are_not_text_in_yaml_must_be_quoted() {
    let home = Home::new();
    home.write(
        "scalars.yaml",
        "\
title: 1.10
slug: 2024
questions:
  - type: single_choice
    title: null
    options: [1.10, 007, yes, true, 2024-01-01, {value: 1e3, label: 1e3}]
  - {type: short_text, title: no, show_if: {q1: 7}, required: yes}
  - {type: rating, title: 2024-01-01, max: \"5\"}
settings: {closed_message: 404, max_responses: many}
",
    );
    assert_messages("scalars", 6, &home, &["validate", "scalars.yaml"]);
}

#[test]
fn a_duplicate_field_is_shown_with_the_first_one() {
    let home = Home::new();
    home.write(
        "twice.yaml",
        "title: A\nquestions:\n  - {type: email, title: A, type: rating}\nsettings: {closed: true, closed: no}\ntitle: B\n",
    );
    assert_messages("twice", 6, &home, &["validate", "twice.yaml"]);
    home.write("twice.json", "{\"title\": \"A\",\n \"questions\": [{\"type\": \"email\", \"title\": \"A\", \"title\": \"B\"}],\n \"title\": \"B\"}\n");
    assert_messages("twice-json", 6, &home, &["validate", "twice.json"]);
}

#[test]
fn anchors_are_resolved_and_merge_keys_and_tags_are_refused() {
    let home = Home::new();
    let begin = "x-mail: &mail {type: email, title: Mail}\ntitle: T\nquestions:\n  - *mail\n";
    home.write("anchors.yaml", begin);
    home.ok(&["validate", "anchors.yaml"]);
    home.write(
        "merges.yaml",
        &format!("{begin}  - <<: *mail\n    id: other\n  - !mine {{type: email, title: A}}\n  - &twin {{id: twin, type: ratting, title: B}}\n  - *twin\n"),
    );
    assert_messages("merges", 6, &home, &["validate", "merges.yaml"]);
}

#[test]
fn the_problems_of_all_forms_of_a_file_are_shown() {
    let home = Home::new();
    home.write(
        "three.yaml",
        "title: A\n---\ntitle: B\nquestion: []\n---\ntitle: C\nslug: A B\n---\nslug: d\n",
    );
    assert_messages("three-forms", 6, &home, &["validate", "three.yaml"]);
}

#[test]
fn problems_of_an_answer_file_are_shown_in_it() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.write("answers.yaml", "answers:\n  q2: nobody\n  q3: many\n  q4: 1\n");
    assert_messages("record", 6, &home, &["--data", "store", "submit", &id, "--file", "answers.yaml"]);
}
