//! `forms validate` with answers: which questions are shown, hidden or refused; and `--format github`.

use super::terminal::Session;
use super::{Home, Run};

const FEEDBACK: &str = "\
title: Feedback
questions:
  - {id: score, type: rating, title: Score}
  - {type: page, title: Bad, show_if: {score: {lte: 2}}}
  - {id: why, type: short_text, title: Why?, required: true}
  - {type: page, title: End}
  - {id: more, type: short_text, title: More, show_if: {score: 3}}
  - {type: statement, id: note, title: Nearly done}
  - {id: source, type: hidden, default: post}
  - {id: email, type: email, title: Mail}
";

fn home() -> Home {
    let home = Home::new();
    home.write("feedback.yaml", FEEDBACK);
    home.write(
        "sets.jsonl",
        "{\"score\":2}\n{\"answers\":{\"score\":5},\"id\":\"sub_1\"}\n\n{\"why\":\"x\"}\n",
    );
    home
}

fn validate(home: &Home, arguments: &[&str]) -> Run {
    home.run(&[&["validate", "feedback.yaml"], arguments].concat())
}

#[test]
fn each_question_is_listed_with_its_state_and_reason() {
    let home = home();
    let evaluation = validate(&home, &["score=2", "emial=x", "email=nope", "note=1"]).expect(6);
    assert_eq!(
        evaluation.stdout,
        "\
score\tasked\tanswered
why\trefused\trequired: \"Why?\" needs an answer
more\thidden\tits `show_if` does not hold
source\tasked\tanswered by its default
email\trefused\tinvalid_email: Enter an email address like name@example.com
note\trefused\tnot_answerable: This is only shown and takes no answer
emial\trefused\tunknown_question: `emial` is not a question of this form; a similar id exists: `email`
"
    );
    assert_eq!(evaluation.stderr, "error: feedback.yaml: the answers would be refused\n");
    let evaluation = validate(&home, &["score=3"]).expect(0);
    let lines = "\
score\tasked\tanswered
why\thidden\tthe `show_if` of its page does not hold
more\tasked\tno answer
source\tasked\tanswered by its default
email\tasked\tno answer
";
    assert_eq!((&*evaluation.stdout, &*evaluation.stderr), (lines, "the answers would be accepted\n"));
}

#[test]
fn evaluations_are_available_as_json_csv_and_github_annotations() {
    let home = home();
    let evaluation = validate(&home, &["score=2", "-o", "json"]).expect(6);
    let (shown, problem) = (evaluation.json(), evaluation.problem());
    assert_eq!((&shown["valid"], &shown["file"]), (&false.into(), &"feedback.yaml".into()));
    let row = serde_json::json!({"question": "why", "state": "refused", "why": "required: \"Why?\" needs an answer"});
    assert_eq!(shown["questions"][1], row);
    assert_eq!(
        (&shown["errors"][0]["pointer"], &shown["errors"][0]["code"]),
        (&"/answers/why".into(), &"required".into())
    );
    assert_eq!((&problem["code"], &problem["exit"]), (&"validation_failed".into(), &6.into()));
    assert_eq!(problem["errors"][0]["code"], "required");
    assert_eq!(
        validate(&home, &["score=5", "--columns", "state", "-o", "csv"]).expect(0).stdout.lines().count(),
        6
    );
    let github = validate(&home, &["score=2", "--format", "github"]).expect(6);
    let line = "::error title=required::\"Why?\" needs an answer%0Ahelp: why=… expects one line of text\n";
    assert_eq!(github.stdout, line);
    home.write("ans.yaml", "score: 5\nemail: nobody\n");
    let github = validate(&home, &["--answers", "ans.yaml", "--format", "github"]).expect(6);
    assert!(
        github.stdout.starts_with("::error file=ans.yaml,line=2,col=8,title=invalid_email::"),
        "{github:?}"
    );
}

#[test]
fn problems_of_answers_name_their_question() {
    let home = home();
    home.write(
        "two.yaml",
        "title: Two\nquestions: [{type: email, title: Work}, {type: email, title: Home}]\n",
    );
    let github = home.run(&["validate", "two.yaml", "q1=x", "q2=y", "--format", "github"]).expect(6);
    for title in ["Work", "Home"] {
        let line = format!("::error title=invalid_email::\"{title}\": Enter an email");
        assert!(github.stdout.contains(&line), "{github:?}");
    }
    let (_, screen) = Session::start(&home, &[("NO_COLOR", "1")], &["validate", "two.yaml", "q1=x"]).finish();
    assert!(screen.contains("error[invalid_email]: \"Work\": Enter an email"), "{screen}");
    let json = home.run(&["validate", "two.yaml", "q1=x", "q3=y", "-o", "json"]).expect(6).problem();
    assert_eq!(json["errors"][0]["hint"], "q1=… expects an email address");
    assert_eq!(json["errors"][1]["hint"], "its questions are q1, q2");
    home.write("sets.jsonl", "{\"q1\":\"x\"}\n{\"q2\":\"y\"}\n");
    let sets = home.run(&["validate", "two.yaml", "--answers", "sets.jsonl", "-o", "jsonl"]).expect(6);
    let result = sets.problem()["errors"][1]["message"].as_str().unwrap().to_owned();
    assert!(result.starts_with("\"Home\": Enter an email"), "{result}");
}

#[test]
fn several_sets_of_answers_are_evaluated_individually() {
    let home = home();
    let lines = validate(&home, &["--answers", "sets.jsonl", "-o", "jsonl"]).expect(6);
    let sets: Vec<serde_json::Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let valid: Vec<_> = sets.iter().map(|set| (set["set"].as_u64().unwrap(), set["valid"] == true)).collect();
    assert_eq!(valid, [(1, false), (2, true), (3, false)]);
    assert_eq!(sets[2]["errors"][0]["code"], "question_not_visible");
    assert_eq!(lines.problem()["title"], "feedback.yaml: 2 of 3 sets of answers would be refused");
    let table = validate(&home, &["--answers", "sets.jsonl"]).expect(6).stdout;
    assert!(table.lines().count() == 15 && table.starts_with("1\tscore\tasked\t"), "{table}");
    let csv = validate(&home, &["--answers", "sets.jsonl", "-o", "csv"]).expect(6).stdout;
    assert!(csv.starts_with("set,question,state,why\n1,score,asked,answered\n"), "{csv}");
}

#[test]
fn arguments_override_the_answers_of_the_file() {
    let home = home();
    for (answers, code) in [("score: 5\nemail: nobody\n", 6), ("{\"answers\": {\"score\": 2}}", 6), ("{}", 0)]
    {
        let run = home.run_with_input(answers, &["validate", "feedback.yaml", "--answers", "-"]);
        run.expect(code);
        let amended = ["validate", "feedback.yaml", "--answers", "-", "score=5", "email=a@example.com"];
        home.run_with_input(answers, &amended).expect(0);
    }
}

#[test]
fn an_invalid_set_of_answers_is_shown_at_its_line() {
    let home = home();
    home.write("bad.jsonl", "{\"score\":1}\n{\"score\":\n[]\n");
    let bad = validate(&home, &["--answers", "bad.jsonl"]).expect(6);
    assert!(bad.stdout.is_empty() && bad.stderr.contains(" --> bad.jsonl:2:10\n"), "{bad:?}");
    assert!(bad.stderr.contains("error: bad.jsonl: 2 problems found"), "{bad:?}");
    for text in ["", "5", "{\"score\": 1, \"score\": 2}", "score: [1\n", "a: !x 1\n"] {
        home.write("one.yaml", text);
        validate(&home, &["--answers", "one.yaml"]).expect(6);
    }
}

#[test]
fn answers_need_exactly_one_form() {
    let home = home();
    home.write("two.yaml", "title: A\n---\ntitle: B\n");
    home.write("a=b.yaml", FEEDBACK);
    for arguments in [
        &["score=1"][..],
        &["feedback.yaml", "survey.yaml", "score=1"],
        &["two.yaml", "score=1"],
        &["feedback.yaml", "--answers", "answers.csv"],
        &["feedback.yaml", "--answers", "missing.json"],
        &["-", "--answers", "-"],
        &["feedback.yaml", "score=1", "score=2"],
    ] {
        home.run(&[&["validate"], arguments].concat()).expect(2);
    }
    home.run(&["validate", "./a=b.yaml", "score=4"]).expect(0);
}

#[test]
fn common_mistakes_in_files_are_reported_with_a_correction() {
    let home = Home::new();
    for (text, expected) in [
        (
            "title: A\nquestions:\n\t- {type: email, title: T}\n",
            "a tab is not allowed here: YAML is indented with spaces",
        ),
        ("title: A\nquestions: [{type: email, title: T, required: yes}]\n", "= help: write `true`"),
        (
            "title: A\nquestions: [{type: email, title: T}]\nsettings: {closed: Off}\n",
            "= help: write `false`",
        ),
        ("title: A\nquestions: [{type: file, title: T}]\n", "= help: expected one of: short_text, long_text"),
        (
            "title: A\nquestions: [{type: calculated, title: T}]\n",
            "= help: expected one of: short_text, long_text",
        ),
    ] {
        home.write("form.yaml", text);
        let stderr = home.run(&["validate", "form.yaml"]).expect(6).stderr;
        assert!(stderr.contains(expected), "{text}: {stderr}");
    }
}

#[test]
fn github_annotations_have_file_and_line() {
    let home = home();
    home.write("bad.yaml", "title: A\nquestion: 3\nslug: A\n");
    let result =
        home.run(&["validate", "--format", "github", "bad.yaml", "survey.yaml", "missing.yaml"]).expect(6);
    assert_eq!(
        result.stdout,
        "\
::error file=bad.yaml,line=2,col=1,title=unknown_field::unknown field `question`%0Ahelp: a field with a similar name exists: `questions`
::error file=bad.yaml,line=3,col=7,title=invalid_slug::`slug` has lower-case letters, digits and single hyphens, 64 at most
::error title=usage::cannot read missing.yaml: there is no such file
"
    );
    let json = home.run(&["validate", "--format", "json", "bad.yaml"]).expect(6);
    assert_eq!(json.json(), home.run(&["validate", "-o", "json", "bad.yaml"]).expect(6).json());
    assert_eq!(json.json()["errors"][0]["line"], 2);
    home.run(&["validate", "--format", "json", "-o", "json", "bad.yaml"]).expect(2);
}

#[test]
fn dropped_answers_are_not_refused() {
    let home = home();
    home.write("feedback.yaml", &format!("{FEEDBACK}settings: {{unknown_answers: drop}}\n"));
    let evaluation = validate(&home, &["score=5", "emial=x"]).expect(0);
    assert!(evaluation.stdout.contains("\nemial\tdropped\t"), "{evaluation:?}");
    validate(&home, &["score=5", "emial=x", "email=x"]).expect(6);
}
