//! The messages people read when something is wrong, kept to the letter: plain and in colour.

use super::Home;
use crate::golden::assert_golden;

/// Keeps what the command says on standard error, plain and coloured.
#[track_caller]
fn keep(name: &str, code: i32, home: &Home, arguments: &[&str]) {
    keep_with(name, code, home, &[], arguments);
}

/// The same, with environment variables.
#[track_caller]
fn keep_with(name: &str, code: i32, home: &Home, variables: &[(&str, &str)], arguments: &[&str]) {
    let plain = home.run_with(variables, arguments).expect(code);
    assert!(plain.stdout.is_empty(), "{plain:?}");
    assert_golden(&format!("messages/{name}.txt"), &steady(&plain.stderr));
    let widest = plain.stderr.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 120, "{name} has {widest} columns");
    let coloured = home.run_with(variables, &[&["--color", "always"], arguments].concat()).expect(code);
    assert_golden(&format!("messages/{name}.colour.txt"), &steady(&coloured.stderr));
    let bare = console::strip_ansi_codes(&coloured.stderr).into_owned();
    assert_eq!(bare, plain.stderr, "colour changes nothing else");
}

/// `said` with the same id and port in every run.
fn steady(said: &str) -> String {
    let mut pieces = said.split("frm_");
    let begin = pieces.next().unwrap_or_default().to_owned();
    let said = pieces.fold(begin, |text, piece| text + "frm_7k2m9q4x1abz" + &piece[12..]);
    let Some((before, after)) = said.split_once("http://127.0.0.1:") else { return said };
    let rest = after.trim_start_matches(|character: char| character.is_ascii_digit());
    let port = if after.len() - rest.len() > 1 { "8787" } else { "1" };
    format!("{before}http://127.0.0.1:{port}{rest}")
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
}

#[test]
fn a_question_that_cannot_be_asked_names_the_flag() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "submit", &id, "q1=hello"]);
    keep("no-terminal", 2, &home, &["--data", "store", "delete", &id]);
}

#[test]
fn a_draft_says_how_it_is_published() {
    let home = Home::new();
    home.write(
        "survey.yaml",
        "title: Customer feedback\nslug: feedback\nquestions: [{type: email, title: T}]\n",
    );
    home.ok(&["--data", "store", "create", "-f", "survey.yaml"]);
    keep("draft", 5, &home, &["--data", "store", "submit", "feedback", "q1=ann@example.com"]);
}

#[test]
fn what_the_server_refuses_is_drawn_in_the_file() {
    let home = Home::new();
    let text = "# For the shop.\ntitle: Customer feedback\nslug: customer-feedback\nquestions: []\n";
    home.write("feedback.yaml", text);
    let create = ["--data", "store", "create", "-f", "feedback.yaml"];
    home.ok(&create);
    keep("slug-taken", 5, &home, &create);
    let problem = home.run(&[&create[..], &["-o", "json"]].concat()).expect(5).problem();
    assert_eq!((&problem["code"], &problem["status"]), (&"slug_taken".into(), &409.into()));
    assert_eq!((&problem["errors"][0]["line"], &problem["errors"][0]["column"]), (&3.into(), &7.into()));
    // Sizes are for the server to say.
    let question = |number| format!("  - {{type: email, title: Address {number}}}\n");
    let questions: String = (1..=501).map(question).collect();
    let title = "x".repeat(301);
    home.write("large.yaml", &format!("questions:\n{questions}title: {title}\nslug: large\n"));
    keep("limits", 6, &home, &["--data", "store", "create", "-f", "large.yaml"]);
}

#[test]
fn a_key_that_is_refused_is_told_with_its_source() {
    let home = Home::new();
    let server = home.serve();
    let key = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";
    let variables = [("FORMS_URL", &*server.url), ("FORMS_API_KEY", key)];
    keep_with("unauthorized", 4, &home, &variables, &["list"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let variables = [("FORMS_URL", &*server.url), ("HOME", elsewhere.path().to_str().unwrap())];
    keep_with("no-key", 4, &home, &variables, &["list"]);
}

#[test]
fn a_type_that_resembles_none_is_told_with_all_there_are() {
    let home = Home::new();
    home.write(
        "types.yaml",
        "title: A\nquestions:\n  - {type: dropdown, title: T}\n  - {type: video, title: U}\n",
    );
    keep("types", 6, &home, &["validate", "types.yaml"]);
}

#[test]
fn fields_that_are_no_fields_are_told_with_those_there_are() {
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
settings: {theme: dark}
",
    );
    keep("fields", 6, &home, &["validate", "fields.yaml"]);
}

#[test]
fn text_that_yaml_takes_for_something_else_is_to_be_quoted() {
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
    keep("scalars", 6, &home, &["validate", "scalars.yaml"]);
}

#[test]
fn what_is_given_twice_is_drawn_with_the_first() {
    let home = Home::new();
    home.write(
        "twice.yaml",
        "title: A\nquestions:\n  - {type: email, title: A, type: rating}\nsettings: {closed: true, closed: no}\ntitle: B\n",
    );
    keep("twice", 6, &home, &["validate", "twice.yaml"]);
    home.write("twice.json", "{\"title\": \"A\",\n \"questions\": [{\"type\": \"email\", \"title\": \"A\", \"title\": \"B\"}],\n \"title\": \"B\"}\n");
    keep("twice-json", 6, &home, &["validate", "twice.json"]);
}

#[test]
fn anchors_are_followed_and_merges_and_tags_refused() {
    let home = Home::new();
    let begin = "x-mail: &mail {type: email, title: Mail}\ntitle: T\nquestions:\n  - *mail\n";
    home.write("anchors.yaml", begin);
    home.ok(&["validate", "anchors.yaml"]);
    home.write(
        "merges.yaml",
        &format!("{begin}  - <<: *mail\n    id: other\n  - !mine {{type: email, title: A}}\n  - &twin {{id: twin, type: ratting, title: B}}\n  - *twin\n"),
    );
    keep("merges", 6, &home, &["validate", "merges.yaml"]);
}

#[test]
fn the_problems_of_all_forms_of_a_file_are_drawn() {
    let home = Home::new();
    home.write(
        "three.yaml",
        "title: A\n---\ntitle: B\nquestion: []\n---\ntitle: C\nslug: A B\n---\nslug: d\n",
    );
    keep("three-forms", 6, &home, &["validate", "three.yaml"]);
}

#[test]
fn what_is_wrong_with_a_record_is_drawn_in_its_file() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.write("answers.yaml", "answers:\n  q2: nobody\n  q3: many\n  q4: 1\n");
    keep("record", 6, &home, &["--data", "store", "submit", &id, "--file", "answers.yaml"]);
}
