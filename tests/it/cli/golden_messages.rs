//! The messages people read when something is wrong, kept to the letter: plain and in colour.

use super::Home;
use crate::golden::assert_golden;

/// Keeps what the command says on standard error, plain and coloured.
#[track_caller]
fn keep(name: &str, code: i32, home: &Home, arguments: &[&str]) {
    let plain = home.run(arguments).expect(code);
    assert!(plain.stdout.is_empty(), "{plain:?}");
    assert_golden(&format!("messages/{name}.txt"), &plain.stderr);
    let coloured = home.run(&[&["--color", "always"], arguments].concat()).expect(code);
    assert_golden(&format!("messages/{name}.colour.txt"), &coloured.stderr);
}

#[test]
fn three_problems_of_a_file_are_drawn_in_one_run() {
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
    keep("three-problems", 6, &home, &["validate", "bad.yaml"]);
}

#[test]
fn what_is_wrong_with_conditions_is_drawn_in_one_run() {
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
    keep("conditions", 6, &home, &["validate", "conditions.yaml"]);
}

#[test]
fn what_yaml_allows_and_a_form_does_not_is_drawn() {
    let home = Home::new();
    home.write("twice.yaml", "title: A\nquestions: []\ntitle: B\n<<: {c: 1}\n");
    keep("given-twice", 6, &home, &["validate", "twice.yaml"]);
    home.write("syntax.yaml", "title: A\nquestions:\n  - {type: email\n");
    keep("syntax", 6, &home, &["validate", "syntax.yaml"]);
    home.write("syntax.json", "{\"title\": \"A\",\n \"questions\": [}\n");
    keep("syntax-json", 6, &home, &["validate", "syntax.json"]);
}

#[test]
fn everything_wrong_with_answers_is_told_before_anything_is_sent() {
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
    keep("answers", 6, &home, &both.iter().map(String::as_str).collect::<Vec<_>>());
    let values = submit(&["score=6", "email=ann"]);
    keep("answer-values", 6, &home, &values.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_server_that_does_not_answer_is_one_clear_line() {
    let home = Home::new();
    let command = ["--url", "http://127.0.0.1:1", "--retries", "0", "list"];
    keep("unreachable", 7, &home, &command);
    let default = home.run(&["--url", "http://127.0.0.1:1", "list"]).expect(7);
    assert!(default.stderr.contains("tried 3 times") && default.stderr.lines().count() <= 4, "{default:?}");
}

#[test]
fn a_question_that_cannot_be_asked_names_the_flag() {
    let home = Home::new();
    let id = home.published(&["--data", "store"]);
    home.ok(&["--data", "store", "submit", &id, "q1=hello"]);
    let run = home.run(&["--data", "store", "delete", &id]).expect(2);
    assert_golden("messages/no-terminal.txt", &run.stderr);
}
