//! `forms show`: a form as text and as a file.

use super::Home;

#[test]
fn a_form_shown_as_a_file_creates_the_same_form() {
    let home = Home::new();
    let data = ["--data", "store"];
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let examples = std::fs::read_dir(examples).unwrap().map(|example| example.unwrap().path());
    for (place, example) in examples.enumerate() {
        let show = |id: &str| home.ok(&[&data[..], &["show", id.trim(), "-o", "yaml"]].concat());
        let create = |file: &str| home.ok(&[&data[..], &["create", "-f", file]].concat());
        let first = show(&create(example.to_str().unwrap()));
        let name = format!("again-{place}.yaml");
        home.write(&name, &first);
        assert_eq!(show(&create(&name)), first, "{}", example.display());
        assert!(!first.contains("frm_") && !first.contains("status") && !first.contains("created_at"));
    }
}

#[test]
fn a_question_without_an_id_leaves_the_id_column_blank_in_a_pipe() {
    let home = Home::new();
    home.write("welcome.yaml", "title: A\nquestions:\n  - {type: statement, title: Welcome}\n  - {id: name, type: email, title: Email, required: true}\n");
    let id = home.ok(&["--data", "store", "create", "-f", "welcome.yaml"]);
    let shown = home.ok(&["--data", "store", "show", id.trim()]);
    let rows = "questions:\n        statement            Welcome\n  name  email      required  Email\n";
    assert!(shown.contains(rows), "{shown}");
}

#[test]
fn a_form_is_shown_with_all_settings_in_80_columns() {
    let home = Home::new();
    home.write(
        "survey.yaml",
        "\
title: Customer feedback
slug: feedback
description: \"Two minutes. We read every answer, and we read it twice if it is long enough for that.\"
settings: {confirmation: {message: Thank you}}
questions:
  - {id: score, type: rating, title: How did we do?, required: true, labels: {1: bad, 5: good}}
  - {type: page, title: What went wrong, show_if: {score: {lte: 2}}}
  - id: reasons
    type: multiple_choice
    title: Which of all the things that can go wrong with a delivery were they?
    description: |
      Choose as many as you like.
      We read every answer.
    options: [late, {value: broken, label: 'Broken, torn'}, \"wrong, again\"]
    allow_other: true
    max_selected: 2
    required_if: {any: [{score: 1}, {score: {answered: false}}]}
  - id: parts
    type: matrix
    title: How was each?
    rows: [a rather long name of a row, another rather long name of a row, place]
    columns: [{value: good, label: As good as anyone could ever have wished that it were}, {value: bad, label: Bad}]
",
    );
    let id = home.ok(&["--data", "store", "create", "-f", "survey.yaml"]);
    let shown = home.ok(&["--data", "store", "show", id.trim()]);
    let (_, questions) = shown.split_once("\nquestions:\n").unwrap();
    let expected = "  \
  score    rating           required  How did we do?
      labels: 1 = bad, 5 = good
           page                       What went wrong
      shown if score is 2 or less
  reasons  multiple_choice            Which of all the things that can go wrong
                                      with a delivery were they?
      Choose as many as you like.
      We read every answer.
      required if score is 1 or score is not answered
      options: late, broken \"Broken, torn\", \"wrong, again\"
      max_selected: 2, allow_other: true
  parts    matrix                     How was each?
      rows: \"a rather long name of a row\", \"another rather long name of a
        row\", place
      columns:
        good \"As good as anyone could ever have wished that it were\"
        bad \"Bad\"
settings:
  confirmation: message = Thank you
";
    let about = "\nabout:      Two minutes. We read every answer, and we read it twice if it is\n            long enough for that.\n";
    assert!(shown.contains(about), "{shown}");
    assert_eq!(questions, expected, "{questions}");
    assert!(
        shown.contains("accepting:  no: draft\n") && !shown.lines().any(|line| line.len() > 80),
        "{shown}"
    );
}

#[test]
fn a_title_beside_a_long_id_gets_its_own_line() {
    let home = Home::new();
    let id = "how_much_would_you_be_willing_to_pay_for_";
    home.write("long.yaml", &format!("title: A\nquestions:\n  - {{id: {id}, type: multiple_choice, title: What would you pay for it today?, options: [a, b]}}\n"));
    let form = home.ok(&["--data", "store", "create", "-f", "long.yaml"]);
    let shown = home.ok(&["--data", "store", "show", form.trim()]);
    let rows =
        format!("  {id}  multiple_choice\n      What would you pay for it today?\n      options: a, b\n");
    assert!(shown.contains(&rows), "{shown}");
}
