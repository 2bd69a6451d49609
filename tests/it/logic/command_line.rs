//! The command line applies conditions before it sends anything.

use crate::cli::Home;

#[test]
fn the_command_line_applies_conditions_like_the_server() {
    let home = Home::new();
    home.write(
        "feedback.yaml",
        "\
title: Feedback
questions:
  - {id: score, type: rating, title: Score}
  - {type: page, title: Bad, show_if: {score: {lte: 2}}}
  - {id: why, type: short_text, title: Why?, required: true}
  - {type: page, title: End}
  - {type: statement, id: note, title: Nearly done}
  - {id: source, type: hidden, default: post}
",
    );
    let form = home.ok(&["--data", "store", "create", "--publish", "-f", "feedback.yaml"]);
    let submit = |answers: &[&str], code| {
        let arguments = ["--data", "store", "submit", form.trim(), "-o", "json"];
        home.run(&[&arguments, answers].concat()).expect(code)
    };
    assert_eq!(submit(&["score=5"], 0).json()["answers"].to_string(), r#"{"score":5,"source":"post"}"#);
    submit(&["score=2", "why=slow"], 0);
    let code = |answers: &[&str]| {
        let run = submit(answers, 6);
        let problem: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        problem["errors"][0]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(code(&["score=2"]), "required");
    assert_eq!(code(&["score=5", "why=slow"]), "question_not_visible");
    let table = home.ok(&["--data", "store", "responses", form.trim(), "-o", "csv"]);
    assert_eq!(table.lines().next(), Some("id,submitted_at,score,why,source"));
}
