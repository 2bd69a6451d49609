//! `forms show`: a form as text and as a file.

use super::Home;

#[test]
fn a_question_without_an_id_begins_with_its_type() {
    let home = Home::new();
    home.write("welcome.yaml", "title: A\nquestions:\n  - {type: statement, title: Welcome}\n  - {id: name, type: email, title: Email, required: true}\n");
    let id = home.ok(&["--data", "store", "create", "-f", "welcome.yaml"]);
    let shown = home.ok(&["--data", "store", "show", id.trim()]);
    let rows = "questions:\n  statement\n      Welcome\n  name  email, required\n      Email\n";
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
settings: {confirmation: Thank you}
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
  score  rating, required
      How did we do?
      labels: 1 = bad, 5 = good
  page
      What went wrong
      shown if score is 2 or less
  reasons  multiple_choice
      Which of all the things that can go wrong with a delivery were they?
      Choose as many as you like.
      We read every answer.
      required if score is 1 or score is not answered
      options:
        late
        broken \"Broken, torn\"
        \"wrong, again\"
      max_selected: 2
      allow_other: true
  parts  matrix
      How was each?
      rows: \"a rather long name of a row\", \"another rather long name of a
        row\", place
      columns:
        good \"As good as anyone could ever have wished that it were\"
        bad \"Bad\"
settings:      confirmation: message = Thank you
";
    let about = "\nabout:      Two minutes. We read every answer, and we read it twice if it is\n            long enough for that.\n";
    assert!(shown.contains(about), "{shown}");
    assert_eq!(questions, expected, "{questions}");
    let file = home.ok(&["--data", "store", "show", id.trim(), "-o", "yaml"]);
    assert!(file.ends_with("settings:\n  confirmation:\n    message: Thank you\n"), "{file}");
    assert!(
        shown.contains("accepting:  no: draft\n") && !shown.lines().any(|line| line.len() > 80),
        "{shown}"
    );
}
