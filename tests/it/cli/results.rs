//! `forms results`.

use super::Home;
use super::terminal::Session;
use crate::golden::assert_golden;

const DATA: [&str; 2] = ["--data", "store"];

const FORM: &str = r#"
title: "日本語のアンケート"
slug: visit
questions:
  - { id: words, type: short_text, title: Your words? }
  - { id: amount, type: number, title: How much? }
  - { id: stars, type: rating, title: How was it?, max: 3, labels: { "1": Poor } }
  - { id: nps, type: opinion_scale, nps: true, title: How likely are you to recommend us to a friend or to a colleague? }
  - { id: yes, type: boolean, title: Again? }
  - { id: one, type: single_choice, title: Which?, options: [a, { value: b, label: "とても長いラベルとても長いラベル" }], allow_other: true }
  - { id: rank, type: ranking, title: Which first?, options: [a, b] }
  - { id: grid, type: matrix, title: Each?, rows: [r, s], columns: [a, b] }
  - { id: day, type: date, title: When? }
  - { id: never, type: email, title: Your address? }
"#;

const ANSWERS: [&str; 3] = [
    r#"{"words": "soup", "amount": 3, "stars": 3, "nps": 10, "yes": true, "one": "b", "rank": ["b", "a"], "grid": {"r": "a", "s": "b"}, "day": "2026-03-01"}"#,
    r#"{"words": "soup", "amount": 4.25, "stars": 3, "nps": 9, "yes": true, "one": {"other": "c"}, "rank": ["a"], "grid": {"r": "a"}, "day": "2026-03-03"}"#,
    r#"{"words": "スープ とサラダ", "amount": -1, "stars": 1, "nps": 3, "yes": false, "one": "a", "day": "2026-03-03"}"#,
];

fn home_with_answers() -> Home {
    let home = Home::new();
    home.write("visit.yaml", FORM);
    home.ok(&[&DATA[..], &["create", "--publish", "-f", "visit.yaml"]].concat());
    home.write("answers.jsonl", &ANSWERS.join("\n"));
    home.ok(&[&DATA[..], &["submit", "visit", "--file", "answers.jsonl"]].concat());
    home
}

#[test]
fn the_screen_is_as_wide_as_a_terminal() {
    let home = home_with_answers();
    let edit = ["edit", "visit", "--yes", "--set", r#"questions.one.options=["a"]"#];
    home.ok(&[&DATA[..], &edit].concat());
    let screen = home.ok(&[&DATA[..], &["results", "visit"]].concat());
    assert!(screen.lines().all(|line| console::measure_text_width(line) <= 80), "{screen}");
    let moment = regex::Regex::new("20(2[7-9]|[3-9].)-..-..(T..)?|2026-1.-..(T..)?").unwrap();
    assert_golden("results.txt", &moment.replace_all(&screen, "(TODAY)"));
}

#[test]
fn filters_select_the_answers() {
    let home = home_with_answers();
    let results = |arguments: &[&str]| home.run(&[&DATA[..], &["results", "visit"], arguments].concat());
    let json: serde_json::Value =
        serde_json::from_str(&results(&["--where", "stars.gte=2", "-o", "json"]).expect(0).stdout).unwrap();
    assert_eq!((&json["totals"]["responses"], &json["filter"]["stars.gte"]), (&2.into(), &"2".into()));
    assert!(
        results(&["--search", "nobody"]).expect(0).stdout.ends_with("published   0 answers that match\n")
    );
    let unknown = results(&["--where", "star=3"]).expect(2).stderr;
    assert!(
        unknown.contains("--where: `star` is not a question of") && unknown.contains("stars"),
        "{unknown}"
    );
    assert!(results(&["--watch"]).expect(2).stderr.contains("--watch draws on a terminal"));
}

#[test]
fn it_draws_again_when_answers_come() {
    let home = home_with_answers();
    let _server = home.serve();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &["results", "visit", "--watch"]);
    session.wait_for("3 answers");
    home.ok(&["submit", "visit", "stars=2"]);
    session.wait_for("4 answers");
}
