//! `forms diff`, `apply`, `promote` and `dev`: a plan in words, carried out once, and nothing that it does not say.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::terminal::Session;
use super::{Home, Run, RunningServer};
use crate::engine::random::Random;
use crate::logic::random::draw_questions;

const DATA: [&str; 2] = ["--data", "store"];

const LUNCH: &str = "\
title: Lunch
slug: lunch
status: published
questions:
  - {id: dish, type: single_choice, title: What would you like?, options: [soop, salad, pasta]}
  - {id: phone, type: phone, title: Phone}
  - {id: score, type: rating, title: How was it?}
  - {id: comment, type: long_text, title: Comment}
settings: {max_responses: 9}
";

/// A home with this form, stored and answered.
fn answered(form: &str) -> Home {
    let home = Home::new();
    home.write("lunch.yaml", form);
    home.ok(&[&DATA[..], &["apply", "-f", "lunch.yaml"]].concat());
    for answers in [&["dish=soop", "phone=+4917612345678", "score=4"][..], &["dish=salad", "score=5"]] {
        home.ok(&[&DATA[..], &["submit", "lunch"], answers].concat());
    }
    home
}

fn run(home: &Home, arguments: &[&str]) -> Run {
    home.run(&[&DATA[..], arguments].concat())
}

fn form(home: &Home) -> Value {
    run(home, &["show", "lunch", "-o", "json"]).expect(0).json()
}

/// The plan of the text, which differs from [`LUNCH`] by these replacements.
fn plan(home: &Home, replacements: &[(&str, &str)]) -> String {
    let text = replacements.iter().fold(LUNCH.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    home.write("lunch.yaml", &text);
    run(home, &["diff", "-f", "lunch.yaml"]).expect(0).stdout
}

#[test]
fn a_plan_says_in_words_what_changes_and_how_many_answers_it_touches() {
    let home = answered(LUNCH);
    let shown = plan(
        &home,
        &[
            ("title: Lunch", "title: Dinner"),
            ("soop, salad, pasta", "soup, pasta, salad"),
            ("  - {id: phone, type: phone, title: Phone}\n", ""),
            ("type: rating, title: How was it?", "type: number, title: How was it?"),
            (
                "title: Comment}\n",
                "title: Comment}\n  - {id: nps, type: opinion_scale, title: Recommend?, nps: true}\n",
            ),
            ("max_responses: 9", "max_responses: 8, closed_message: Sorry"),
            ("published", "closed"),
        ],
    );
    assert_eq!(
        shown,
        "\
lunch  \"Dinner\"  published, 2 responses
  ~ title                    \"Lunch\" → \"Dinner\"
  ~ dish                     option soop → soup  ! 1 answer says soop
  ↕ dish                     option pasta moved after soup
  ~ score.type               \"rating\" → \"number\"  ! 2 answers are of type rating
  + nps                      opinion_scale \"Recommend?\", after comment
  - phone                    phone \"Phone\"  ! 1 answer is hidden
  ~ settings.max_responses   9 → 8
  + settings.closed_message  \"Sorry\"
  ~ status                   \"published\" → \"closed\"

1 to change on store; apply needs --allow-breaking
"
    );
    let github = run(&home, &["diff", "-f", "lunch.yaml", "--format", "github"]).expect(0).stdout;
    assert!(
        github.starts_with(
            "### Forms: 1 to change on store; apply needs --allow-breaking\n\n```diff\n@@ lunch  \"Dinner\""
        ),
        "{github}"
    );
    assert!(
        github.contains("\n! title ") && github.contains("\n- phone ") && github.ends_with("```\n"),
        "{github}"
    );
    let json = run(&home, &["diff", "-f", "lunch.yaml", "-o", "json"]).expect(0).json();
    let changes = json["forms"][0]["changes"].as_array().unwrap();
    let of = |path: &str| changes.iter().find(|change| change["path"] == path).unwrap();
    let option = json!({"op": "rename", "path": "questions.dish.options.soop", "class": "hides", "before": "soop", "after": "soup", "answers": 1});
    assert_eq!(*of("questions.dish.options.soop"), option);
    assert_eq!(
        (&of("questions.score.type")["class"], &of("questions.phone")["answers"]),
        (&json!("retypes"), &json!(1))
    );
    assert_eq!((&json["forms"][0]["action"], &json["unmanaged"]), (&json!("update"), &json!([])));
}

#[test]
fn a_renamed_option_hides_no_other_change_and_a_removed_row_counts_its_own_answers() {
    let home = Home::new();
    let file = |options: &str, rows: &str, condition: &str| {
        format!(
            "title: T\nslug: lunch\nstatus: published\nquestions:
  - {{id: name, type: single_choice, title: N, options: [{options}]}}
  - {{id: grid, type: matrix, title: G, rows: [{rows}], columns: [c, d]}}
  - {{id: why, type: short_text, title: W, show_if: {{any: [{{name: {condition}}}, {{grid: {{answered: true}}}}]}}}}\n"
        )
    };
    home.write("lunch.yaml", &file("{value: soop, label: Soup}, pie", "r, s", "soop"));
    run(&home, &["apply", "-f", "lunch.yaml"]).expect(0);
    run(&home, &["submit", "lunch", "name=pie", "grid:={\"r\":\"c\"}"]).expect(0);
    home.write("lunch.yaml", &file("{value: soup, label: Hot soup}, pie", "t", "soup"));
    let shown = run(&home, &["diff", "-f", "lunch.yaml"]).expect(0).stdout;
    for line in [
        "  ~ name                     option soop → soup\n",
        "  ~ name.options.soup.label  \"Soup\" → \"Hot soup\"\n",
        "  ~ grid                     row r → t  ! 1 answer says r\n",
        "  - grid                     row s\n",
        "name = soop",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    run(&home, &["apply", "-f", "lunch.yaml", "lunch.yaml"]).expect(0);
}

#[test]
fn a_form_without_questions_is_not_published_and_nothing_is_stored() {
    let home = Home::new();
    home.write("a.yaml", "title: A\nslug: a\nstatus: published\nquestions: [{type: email, title: E}]\n");
    home.write("b.yaml", "title: B\nslug: b\nstatus: published\n");
    home.write("c.yaml", "title: C\nslug: c\n");
    let refused = run(&home, &["apply", "-f", "a.yaml", "b.yaml"]).expect(6);
    assert!(refused.stderr.contains("error[form_has_no_questions]: "), "{refused:?}");
    assert_eq!(run(&home, &["list"]).expect(0).stdout, "");
    run(&home, &["apply", "-f", "c.yaml"]).expect(0);
    run(&home, &["apply", "-f", "c.yaml", "--publish"]).expect(6);
}

#[test]
fn a_plan_marks_a_narrower_scale_names_variables_and_shows_no_credential() {
    let home = answered(LUNCH);
    let integration = "integrations: [{type: webhook, url: \"https://example.com\", headers: {Authorization: LEAK, X-Team: {env: TEAM_KEY}}}]\n";
    let shown = plan(
        &home,
        &[
            ("title: How was it?}", "title: How was it?, max: 4}"),
            ("settings:", &format!("{integration}settings:")),
        ],
    );
    assert!(shown.contains("  + score.max             4  ! 1 answer is above 4\n"), "{shown}");
    assert!(
        shown.contains("webhook https://example.com, with TEAM_KEY\n") && !shown.contains("LEAK"),
        "{shown}"
    );
    home.run_with(
        &[("TEAM_KEY", "team-key-of-a-good-length")],
        &[&DATA[..], &["apply", "-f", "lunch.yaml"]].concat(),
    )
    .expect(0);
    let changed = fs::read_to_string(home.path().join("lunch.yaml")).unwrap().replace("LEAK", "LEAK2");
    home.write("lunch.yaml", &changed);
    let run = run(&home, &["diff", "-f", "lunch.yaml"]).expect(0).stdout;
    assert!(run.contains("headers.Authorization  secret") && !run.contains("LEAK"), "{run}");
}

#[test]
fn moves_are_the_fewest_and_a_page_with_another_title_is_the_same_page() {
    let home = Home::new();
    let question = |id: &str| format!("  - {{id: {id}, type: email, title: T}}\n");
    let file = |ids: &str, page: &str| {
        let questions: String = ids.split(' ').map(question).collect();
        format!("title: T\nslug: lunch\nquestions:\n  - {{type: page, title: {page}}}\n{questions}")
    };
    home.write("a.yaml", &file("a b c d e", "One"));
    home.ok(&[&DATA[..], &["apply", "-f", "a.yaml"]].concat());
    home.write("a.yaml", &file("e a b d c", "Two"));
    let shown = run(&home, &["diff", "-f", "a.yaml"]).expect(0).stdout;
    let moved: Vec<_> = shown.lines().filter(|line| line.contains("moved")).collect();
    assert!(
        moved.len() == 2 && moved[0].contains("e ") && moved[0].ends_with("moved after page \"Two\""),
        "{shown}"
    );
    assert!(shown.contains("  ~ page \"Two\".title  \"One\" → \"Two\"\n"), "{shown}");
}

#[test]
fn a_second_apply_touches_nothing_and_a_revert_brings_everything_back() {
    let home = answered(LUNCH);
    let before = form(&home);
    let file = || run(&home, &["show", "lunch", "-o", "yaml"]).expect(0).stdout;
    let first = file();
    let again = run(&home, &["apply", "-f", "lunch.yaml", "-vv"]).expect(0);
    assert!(again.stdout.ends_with("\tlunch\tunchanged\n"), "{again:?}");
    assert!(!again.stderr.contains("PATCH") && !again.stderr.contains("POST"), "{again:?}");
    assert_eq!(form(&home), before);
    let removed =
        LUNCH.replace("  - {id: score, type: rating, title: How was it?}\n", "").replace("soop, ", "");
    home.write("lunch.yaml", &removed);
    let updated = run(&home, &["apply", "-f", "lunch.yaml"]).expect(0);
    assert!(
        updated.stdout.ends_with("\tlunch\tupdated\n") && updated.stderr.contains("! 2 answers are hidden"),
        "{updated:?}"
    );
    home.write("lunch.yaml", LUNCH);
    run(&home, &["apply", "-f", "lunch.yaml"]).expect(0);
    assert_eq!(file(), first);
    let shown =
        home.ok(&[&DATA[..], &["responses", "lunch", "-o", "csv", "--columns", "dish,score"]].concat());
    assert_eq!(shown, "dish,score\nsalad,5\nsoop,4\n");
}

#[test]
fn what_retypes_answers_needs_a_flag_or_a_yes() {
    let home = answered(LUNCH);
    home.write("lunch.yaml", &LUNCH.replace("type: rating", "type: number"));
    let before = form(&home);
    let refused = run(&home, &["apply", "-f", "lunch.yaml"]).expect(6);
    assert!(refused.stdout.is_empty() && refused.stderr.contains("error[breaking_change]: "), "{refused:?}");
    assert_eq!(run(&home, &["apply", "-f", "lunch.yaml", "-o", "json"]).expect(6).problem()["exit"], 6);
    let mut session = Session::start(&home, &[], &[&DATA[..], &["apply", "-f", "lunch.yaml"]].concat());
    session.wait_for("[y/N]");
    session.type_keys("n\r");
    assert_eq!(session.finish().0, Some(1));
    assert_eq!(form(&home), before);
    run(&home, &["apply", "-f", "lunch.yaml", "--dry-run"]).expect(6);
    run(&home, &["apply", "-f", "lunch.yaml", "--allow-breaking"]).expect(0);
    assert_eq!(form(&home)["questions"][2]["type"], "number");
}

#[test]
fn a_change_by_others_after_the_plan_is_noticed() {
    let home = Home::new();
    let _server = home.serve();
    home.write("lunch.yaml", LUNCH);
    home.ok(&["apply", "-f", "lunch.yaml"]);
    home.ok(&["submit", "lunch", "score=4"]);
    home.write("lunch.yaml", &LUNCH.replace("type: rating", "type: number"));
    let mut session = Session::start(&home, &[], &["apply", "-f", "lunch.yaml"]);
    session.wait_for("[y/N]");
    home.ok(&["edit", "lunch", "--title", "Theirs"]);
    session.type_keys("y\r");
    let (code, screen) = session.finish();
    assert!(code == Some(5) && screen.contains("error[version_mismatch]"), "{screen}");
    let shown = home.run(&["show", "lunch", "-o", "json"]).expect(0).json();
    assert_eq!((&shown["title"], &shown["questions"][2]["type"]), (&json!("Theirs"), &json!("rating")));
}

#[test]
fn all_files_are_checked_before_the_first_request_and_a_plan_needs_a_key_that_may_only_read() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("forms/.hidden")).unwrap();
    home.write("forms/a.yaml", "title: A\nslug: a\nquestions: [{type: email, title: E}]\n");
    home.write("forms/a.test.yaml", "not: a form\n");
    home.write("forms/.hidden/b.yaml", "not: a form\n");
    home.write("forms/notes.txt", "not: a form\n");
    home.write("forms/b.yaml", "title: B\nslug: a\nquestions: [{type: emial, title: E}]\n");
    home.write("forms/Survey 2.json", r#"{"title": "C"}"#);
    let bad = home.run(&["apply", "-f", "forms", "--url", "http://127.0.0.1:1", "--retries", "0"]).expect(6);
    for found in ["error[unknown_question_type]: ", "add the line `slug: survey-2`", "error: 2 of 3 failed"] {
        assert!(bad.stderr.contains(found), "{found}: {bad:?}");
    }
    home.write("forms/b.yaml", "title: B\nslug: a\n");
    let shared = home.run(&["diff", "-f", "forms/a.yaml", "forms/b.yaml"]).expect(6);
    assert!(shared.stderr.contains("both have the slug `a`"), "{shared:?}");
    home.run(&["diff", "-f"]).expect(2);
    home.run(&["diff", "--exit-code", "-f", "forms/a.yaml", "--url", "http://127.0.0.1:1", "--retries", "0"])
        .expect(7);

    let server = home.serve();
    let key = home.ok(&["keys", "create", "--name", "plan", "--scope", "read"]);
    home.ok(&["create", "-f", "survey.yaml"]);
    fs::remove_file(home.path().join("forms/b.yaml")).unwrap();
    fs::remove_file(home.path().join("forms/Survey 2.json")).unwrap();
    let variables = [("FORMS_URL", &*server.url), ("FORMS_API_KEY", key.trim())];
    let differs = home.run_with(&variables, &["diff", "-f", "forms", "--exit-code"]).expect(1);
    assert!(differs.stdout.contains("\n1 to create on http://127.0.0.1:"), "{differs:?}");
    assert!(
        differs.stderr.starts_with("1 form without a file: frm_") && differs.stderr.lines().count() == 1,
        "{differs:?}"
    );
    home.ok(&["apply", "-f", "forms"]);
    home.run_with(&variables, &["diff", "-f", "forms", "--exit-code"]).expect(0);
    let refused = home.run_with(&variables, &["apply", "-f", "forms", "--publish"]).expect(4);
    assert!(refused.stderr.contains("error[insufficient_scope]"), "{refused:?}");
}

#[test]
fn a_file_without_ids_can_be_applied_again_and_what_may_be_a_changed_question_is_refused() {
    let home = Home::new();
    let file = |questions: &str| format!("title: T\nslug: lunch\nquestions: [{questions}]\n");
    let (name, mail) = ("{type: short_text, title: Name}", "{type: email, title: Mail}");
    home.write("t.yaml", &file(&format!("{name}, {mail}")));
    home.ok(&[&DATA[..], &["apply", "-f", "t.yaml"]].concat());
    // In another order, with a new one: the ids stay.
    home.write("t.yaml", &file(&format!("{mail}, {{type: url, title: Page}}, {name}")));
    home.ok(&[&DATA[..], &["apply", "-f", "t.yaml"]].concat());
    let ids = |home: &Home| -> Vec<String> {
        let shown = form(home)["questions"].as_array().unwrap().clone();
        shown.iter().map(|question| question["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&home), ["q2", "q3", "q1"]);
    home.write("t.yaml", &file("{type: short_text, title: Full name}, {type: email, title: Mail}"));
    let refused = run(&home, &["apply", "-f", "t.yaml"]).expect(6);
    assert!(refused.stderr.contains("error[ambiguous_id]: question 1 has no `id`"), "{refused:?}");
    assert!(refused.stderr.contains(" --> t.yaml:3:13\n"), "{refused:?}");
    assert_eq!(ids(&home), ["q2", "q3", "q1"]);
}

#[test]
fn a_renamed_question_keeps_its_answers() {
    let home = answered(LUNCH);
    let shown = plan(&home, &[("id: phone", "id: mobile, was: phone")]);
    assert!(shown.contains("  ~ mobile  renamed from phone  1 answer follows\n"), "{shown}");
    run(&home, &["apply", "-f", "lunch.yaml"]).expect(0);
    run(&home, &["diff", "-f", "lunch.yaml", "--exit-code"]).expect(0);
    home.ok(&[&DATA[..], &["submit", "lunch", "mobile=+4917612345679"]].concat());
    let back = plan(&home, &[]);
    assert!(back.contains("! answers under mobile are hidden, those under phone return\n"), "{back}");
    let all = home.ok(&[&DATA[..], &["responses", "lunch", "-o", "csv", "--columns", "mobile"]].concat());
    assert_eq!(all, "mobile\n+4917612345679\n\"\"\n+4917612345678\n");
    let found =
        home.ok(
            &[&DATA[..], &["responses", "lunch", "--where", "mobile=+4917612345678", "-o", "jsonl"]].concat()
        );
    assert_eq!(found.lines().count(), 1);
    let summary = run(&home, &["results", "lunch", "-o", "json"]).expect(0).json();
    assert_eq!(
        (&summary["questions"][1]["id"], &summary["questions"][1]["answered"]),
        (&json!("mobile"), &json!(2))
    );
    home.ok(&[&DATA[..], &["responses", "export", "lunch", "--to", "out"]].concat());
    let exported = fs::read_to_string(home.path().join("out/lunch.csv")).unwrap();
    assert!(exported.starts_with("id,submitted_at,dish,mobile,score,comment\n"), "{exported}");
    assert_eq!(exported.matches("+491761234567").count(), 2, "{exported}");
    // An edited submission may have an answer under both: the present one counts.
    home.write(
        "lunch.yaml",
        &LUNCH
            .replace("id: phone", "id: mobile, was: [phone, comment]")
            .replace("  - {id: comment, type: long_text, title: Comment}\n", ""),
    );
    let id = home.ok(&[&DATA[..], &["submit", "lunch", "mobile=+4917612345670", "comment=a"]].concat());
    run(&home, &["apply", "-f", "lunch.yaml"]).expect(0);
    let both = run(&home, &["results", "lunch", "-o", "json"]).expect(0).json();
    assert_eq!((&both["questions"][1]["answered"], &both["questions"][1]["skipped"]), (&json!(3), &json!(1)));
    let shown =
        home.ok(&[&DATA[..], &["responses", "show", "lunch", id.trim(), "-o", "csv", "--columns", "mobile"]]
            .concat());
    assert_eq!(shown, "mobile\n+4917612345670\n");
    let twice = LUNCH.replace("id: phone", "id: mobile, was: score");
    home.write("lunch.yaml", &twice);
    let refused = run(&home, &["apply", "-f", "lunch.yaml"]).expect(6);
    assert!(
        refused.stderr.contains("error[duplicate_question_id]: question id `score` is used twice"),
        "{refused:?}"
    );
}

#[test]
fn the_state_is_what_the_file_says_or_stays_as_it_is() {
    let home = Home::new();
    let file = |status: &str| LUNCH.replace("status: published\n", status);
    for (status, flags, state) in [
        ("", &[][..], ("draft", None)),
        ("", &["--publish"], ("published", None)),
        ("status: closed\n", &[], ("published", Some("closed"))),
        ("", &[], ("published", Some("closed"))),
        ("status: draft\n", &["--publish"], ("draft", Some("draft"))),
        ("status: published\n", &[], ("published", None)),
    ] {
        home.write("lunch.yaml", &file(status));
        run(&home, &[&["apply", "-f", "lunch.yaml"], flags].concat()).expect(0);
        let form = form(&home);
        assert_eq!(form["status"], state.0, "{status} {flags:?}");
        if let Some(reason) = state.1 {
            assert_eq!(form["accepting_reason"], reason, "{status} {flags:?}");
        }
        assert!(!run(&home, &["show", "lunch", "-o", "yaml"]).stdout.contains("close"));
    }
    home.write("lunch.yaml", &file("status: open\n"));
    let bad = home.run(&["validate", "lunch.yaml"]).expect(6);
    assert!(bad.stderr.contains("`status` is not one of: draft, published, closed"), "{bad:?}");
    home.write("other.yaml", &file("status: closed\n").replace("slug: lunch", "slug: other"));
    let created = run(&home, &["create", "-f", "other.yaml", "-o", "json"]).expect(0).json();
    assert_eq!((&created["status"], &created["settings"]["closed"]), (&json!("published"), &json!(true)));
}

#[test]
fn the_file_that_is_shown_of_a_form_is_that_form() {
    let home = Home::new();
    let mut files = String::new();
    for seed in 0..40 {
        let questions = draw_questions(&mut Random::new(seed));
        files += &format!(
            "---\n{}\n",
            json!({"title": "T", "slug": format!("form-{seed}"), "questions": questions})
        );
    }
    home.write("all.yaml", &files);
    run(&home, &["apply", "-f", "all.yaml"]).expect(0);
    run(&home, &["diff", "-f", "all.yaml", "--exit-code"]).expect(0);
    let shown: String = (0..40)
        .map(|seed| {
            format!("---\n{}", run(&home, &["show", &format!("form-{seed}"), "-o", "yaml"]).expect(0).stdout)
        })
        .collect();
    home.write("shown.yaml", &shown);
    let run = run(&home, &["diff", "-f", "shown.yaml", "--exit-code"]).expect(0);
    assert_eq!(run.stdout, "40 unchanged on store\n");
}

#[test]
fn a_form_is_promoted_from_one_server_to_another() {
    let (home, other) = (Home::new(), Home::new());
    let (staging, production) = (home.serve(), other.serve());
    let key = |home: &Home| home.path().join("store/operator-key").display().to_string();
    home.ok(&["login", &staging.url, "--name", "staging", "--key-file", &key(&home)]);
    home.ok(&["login", &production.url, "--name", "production", "--key-file", &key(&other)]);
    home.write("lunch.yaml", LUNCH);
    home.ok(&["--context", "staging", "apply", "-f", "lunch.yaml"]);
    let promote = ["promote", "lunch", "--from", "staging", "--to", "production"];
    let refused = home.run(&promote).expect(2);
    assert!(refused.stderr.contains("add --yes"), "{refused:?}");
    let created = home.run(&[&promote[..], &["--yes"]].concat()).expect(0);
    assert!(
        created.stdout.ends_with("\tlunch\tcreated\n")
            && created.stderr.contains("lunch  \"Lunch\"  new form"),
        "{created:?}"
    );
    assert_eq!(other.run(&["show", "lunch", "-o", "json"]).expect(0).json()["status"], "draft");
    let again = home.run(&[&promote[..], &["--publish", "--yes"]].concat()).expect(0);
    assert!(again.stdout.ends_with("\tlunch\tupdated\n"), "{again:?}");
    let same = home.run(&promote).expect(0);
    assert!(same.stdout.ends_with("\tlunch\tunchanged\n"), "{same:?}");
    assert_eq!(
        home.ok(&["--context", "staging", "show", "lunch", "-o", "yaml"]),
        other.ok(&["show", "lunch", "-o", "yaml"])
    );
}

#[test]
fn dev_follows_the_file_and_shows_answers_until_ctrl_c() {
    let home = Home::new();
    home.write("lunch.yaml", "title: Lunch\nquestions: [{id: dish, type: short_text, title: Dish}]\nintegrations: [{type: webhook, url: \"https://example.com\", secret: {env: NOWHERE}}]\n");
    let mut command = home.command(&["dev", "lunch.yaml", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut page = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut page).unwrap();
    let stderr = child.stderr.take().unwrap();
    let mut dev = RunningServer { child, url: page.trim().to_owned() };
    let mut stderr = BufReader::new(stderr).lines().map(Result::unwrap);
    let mut wait_for =
        |text: &str| stderr.find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text}"));
    wait_for("watching lunch.yaml");
    let get = || {
        String::from_utf8(
            std::process::Command::new("curl").args(["-s", page.trim()]).output().unwrap().stdout,
        )
        .unwrap()
    };
    assert!(get().contains("Dish"));
    home.write("lunch.yaml", "title: Lunch\nquestions: [{id: dish, type: short_txt, title: Dish}]\n");
    wait_for("lunch.yaml:2:");
    wait_for("1 problem found");
    home.write("lunch.yaml", "title: Lunch\nquestions: [{id: dish, type: short_text, title: Meal}]\n");
    wait_for("~ dish.title  \"Dish\" → \"Meal\"");
    let html = get();
    assert!(html.contains("Meal"), "{html}");
    let field = |name: &str| {
        let (_, rest) = html.split_once(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("{html}"));
        rest.split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let token = format!("_t={}", field("_t"));
    let post = ["-s", "-o", "/dev/null", "-d", "dish=soup", "--data-urlencode", &token, page.trim()];
    assert!(std::process::Command::new("curl").args(post).status().unwrap().success());
    let line = wait_for("received sub_");
    assert!(line.ends_with("  dish: soup"), "{line}");
    assert_eq!(dev.stop(Signal::INT), Some(0));
    let left = fs::read_dir(home.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tmp"))
        .count();
    assert_eq!(left, 0);
}
