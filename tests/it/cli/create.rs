//! `forms create` without a file: from flags, and with the wizard on a terminal.

use forms::domain::question::QuestionKind;
use serde_json::{Value, json};

use super::terminal::{Session, is_cursor_visible};
use super::{Home, Run};

fn create(home: &Home, arguments: &[&str]) -> Run {
    home.run(&[&["--data", "store", "create"], arguments].concat())
}

fn form(home: &Home, id: &str) -> Value {
    serde_json::from_str(&home.ok(&["--data", "store", "show", id.trim(), "-o", "json"])).unwrap()
}

#[test]
fn a_form_is_created_from_flags() {
    let home = Home::new();
    let flags = ["--title", "Lunch", "--slug", "lunch", "--publish", "-Q", "short_text:What: exactly?!"];
    let more = ["-Q", "page:Last", "--question", "single_choice:Colour!:red, green"];
    let run = create(&home, &[&flags[..], &more].concat()).expect(0);
    let id = run.stdout.trim();
    let show = format!("forms --data store show {id} -o yaml");
    assert_eq!(run.stderr, format!("created and published \"Lunch\"\nas a file: {show}\n"));
    let form = form(&home, id);
    assert_eq!(
        (&form["title"], &form["slug"], &form["status"]),
        (&json!("Lunch"), &json!("lunch"), &json!("published"))
    );
    let expected = json!([
        {"id": "q1", "type": "short_text", "title": "What: exactly?", "required": true},
        {"type": "page", "title": "Last"},
        {"id": "q2", "type": "single_choice", "title": "Colour", "required": true, "options": ["red", "green"]},
    ]);
    assert_eq!(form["questions"], expected);
}

#[test]
fn a_question_flag_consists_of_type_title_and_lists() {
    let home = Home::new();
    home.create_empty_store();
    let arguments = ["--title", "T", "--dry-run", "-o", "json"];
    for (short, expected) in [
        ("email:Your email", json!({"type": "email", "title": "Your email", "required": false})),
        ("email: Your email!", json!({"type": "email", "title": "Your email", "required": true})),
        ("short_text:When: now?", json!({"type": "short_text", "title": "When: now?", "required": false})),
        (
            "single_choice:Colour!:red, green,,",
            json!({"type": "single_choice", "title": "Colour", "required": true, "options": ["red", "green"]}),
        ),
        (
            "ranking:Best: of all:1.10,no",
            json!({"type": "ranking", "title": "Best: of all", "required": false, "options": ["1.10", "no"]}),
        ),
        (
            "matrix:Taste:soup,rice:good,bad",
            json!({"type": "matrix", "title": "Taste", "required": false, "rows": ["soup", "rice"], "columns": ["good", "bad"]}),
        ),
    ] {
        let mut question =
            create(&home, &[&arguments[..], &["-Q", short]].concat()).json()["questions"][0].take();
        question.as_object_mut().unwrap().remove("id");
        assert_eq!(question, expected, "{short}");
    }
    for (short, message) in [
        ("email", "expected TYPE:TITLE"),
        (
            "single_choice:Colour",
            "options of a single_choice are expected after a colon: single_choice:Colour:one,two",
        ),
        ("matrix:Taste:soup,rice", "rows of a matrix are expected after a colon"),
    ] {
        let refused = create(&home, &[&arguments[..], &["-Q", short]].concat()).expect(2);
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
    let short = |kind: &str| {
        format!("{kind}:Title{}", ":a,b".repeat(QuestionKind::without_settings(kind).unwrap().1.len()))
    };
    let all = QuestionKind::NAMES.map(short);
    let flags: Vec<_> = all.iter().flat_map(|question| ["-Q", question]).collect();
    create(&home, &[&arguments[..], &flags].concat()).expect(0);
}

#[test]
fn all_problems_of_flags_are_reported_and_nothing_is_stored() {
    let home = Home::new();
    create(&home, &["--title", "Lunch", "--slug", "taken"]).expect(0);
    home.write("empty.yaml", "title: Empty\nquestions: [{type: page, title: P}]\n");
    home.write("both.yaml", "title: Asks\nquestions: [{type: url, title: U}]\n---\ntitle: Empty\n");
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--title", "A", "-Q", "ratting:B", "-Q", "email:"],
            6,
            "a type with a similar name exists: `rating`",
        ),
        (&["--title", "A", "--slug", "taken", "--dry-run"], 5, "slug `taken` already belongs to"),
        (
            &["--title", "A", "-Q", "email:B", "-Q", "email:"],
            6,
            "error[empty]: question 2: `title` must not be empty\n",
        ),
        (
            &["--title", "A", "--publish"],
            6,
            "help: add a question that takes an answer, or do not publish it",
        ),
        (&["-f", "empty.yaml", "--publish"], 6, "error[form_has_no_questions]: \"Empty\" has no question"),
        (&["-f", "both.yaml", "--publish"], 6, "error[form_has_no_questions]: \"Empty\" has no question"),
        (&["both.yaml"], 2, "create -f both.yaml"),
        (&["--title", "A", "email:B"], 2, "-Q email:B"),
        (&["-Q", "email:A"], 2, "--title"),
        (&["-f", "survey.yaml", "-Q", "email:A"], 2, "cannot be used with"),
        (&["-f", "survey.yaml", "--slug", "Bad Slug"], 6, "error[invalid_slug]"),
        (&["-f", "survey.yaml", "--title", ""], 6, "`title`"),
        (&["-f", "survey.yaml", "--slug", "taken"], 5, "slug `taken` already belongs to"),
        (
            &["-f", "both.yaml", "--slug", "lunch"],
            2,
            "--title and --slug are for one form, and the file has 2",
        ),
        (&[], 2, "add -f FILE, or --title T with -Q TYPE:TITLE for each question"),
    ];
    for (arguments, code, message) in cases {
        let run = create(&home, arguments).expect(*code);
        assert!(run.stdout.is_empty() && run.stderr.contains(message), "{arguments:?} {run:?}");
        let problem = create(&home, &[arguments, &["-o", "json"][..]].concat()).problem();
        assert_eq!(problem["exit"], *code, "{arguments:?}");
    }
    create(&home, &["--title", "A", "--dry-run"]).expect(0);
    assert_eq!(home.ok(&["--data", "store", "list"]).lines().count(), 1);
}

#[test]
fn flags_override_the_fields_of_the_file() {
    let home = Home::new();
    home.write("named.yaml", "title: Named\nslug: named\n");
    let run = create(&home, &["-f", "survey.yaml", "--slug", "lunch"]).expect(0);
    let made = form(&home, &run.stdout);
    assert_eq!((&made["slug"], &made["title"]), (&json!("lunch"), &json!("Lunch")));
    assert_eq!(made["questions"].as_array().unwrap().len(), 3);
    let run = create(&home, &["-f", "named.yaml", "--slug", "", "--title", "1.10"]).expect(0);
    let made = form(&home, &run.stdout);
    assert_eq!((&made["slug"], &made["title"]), (&Value::Null, &json!("1.10")));
}

#[test]
fn the_suggested_next_step_is_possible() {
    let home = Home::new();
    for flags in [&["--title", "Empty"][..], &["--title", "Greets", "-Q", "statement:Hello"]] {
        let run = create(&home, flags).expect(0);
        let next = format!("next: add a question: forms --data store edit {}\n", run.stdout.trim());
        assert!(run.stderr.contains(&next), "{run:?}");
    }
    let run = create(&home, &["--title", "Asks", "-Q", "email:A"]).expect(0);
    assert!(
        run.stderr.contains(&format!("next: forms --data store publish {}\n", run.stdout.trim())),
        "{run:?}"
    );
}

fn wizard(home: &Home, arguments: &[&str]) -> Session {
    Session::start(home, &[("NO_COLOR", "1")], &[&["--data", "store", "create"], arguments].concat())
}

/// Waits for each prompt of the wizard and types the keys.
fn answer_prompts(session: &mut Session, answers: &[(&str, &str)]) {
    for (question, keys) in answers {
        session.wait_for_next(question);
        session.type_keys(keys);
    }
}

const DOWN: &str = "\u{1b}[B";

#[test]
fn the_wizard_creates_a_form() {
    let home = Home::new();
    home.create_empty_store();
    let mut session = wizard(&home, &[]);
    let choice = format!("{}\r", DOWN.repeat(10));
    answer_prompts(
        &mut session,
        &[
            ("Title", "\r"),
            ("Title", "Lunch: 1.10\r"),
            ("Question 1", "What would you like?\r"),
            ("> short_text", "\r"),
            ("Must it be answered? [y/N]", "y"),
            ("Question 2", "Colour\r"),
            ("> short_text       one line of text", &choice),
            // A duplicate option: only these prompts are repeated, and their texts can be edited.
            ("Option 1", "red\r"),
            ("Option 2", "red\r"),
            ("Option 3 (Enter to finish)", "\r"),
            ("try again", ""),
            ("Option 1", "\r"),
            ("Option 2", "\u{7f}\u{7f}\u{7f}Yes, green\r"),
            ("Option 3", "\r"),
            ("Must it be answered? [y/N]", "n"),
            ("Question 3", "\r"),
            ("  - Yes, green", ""),
            ("Publish it at once? [y/N]", "y"),
        ],
    );
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("ranking") && !screen.contains("hidden"),
        "a hidden question is offered: {screen}"
    );
    for line in [
        "title: 'Lunch: 1.10'",
        "- type: short_text",
        "created and published",
        "as a file: forms --data store show frm_",
    ] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    let list = home.ok(&["--data", "store", "list", "-o", "jsonl"]);
    let id: Value = serde_json::from_str(&list).unwrap();
    let form = form(&home, id["id"].as_str().unwrap());
    let expected = json!([
        {"id": "q1", "type": "short_text", "title": "What would you like?", "required": true},
        {"id": "q2", "type": "single_choice", "title": "Colour", "required": false, "options": ["red", "Yes, green"]},
    ]);
    assert_eq!((&form["title"], &form["status"]), (&json!("Lunch: 1.10"), &json!("published")));
    assert_eq!(form["questions"], expected);
}

/// Returns the words of the offered command to continue with, and the content of the file that it names.
#[track_caller]
fn saved_draft(screen: &str) -> (Vec<&str>, String) {
    let (_, offered) = screen.split_once("to continue: ").expect(screen);
    let words: Vec<_> = offered.lines().next().unwrap().split(' ').collect();
    let text = std::fs::read_to_string(words.last().unwrap()).expect(screen);
    (words, text)
}

#[test]
fn cancelling_the_wizard_exits_130_and_saves_the_input() {
    let home = Home::new();
    home.create_empty_store();
    let answers = [
        ("Title", "Lunch\r"),
        ("Question 1", "Colour\r"),
        ("short_text", "\r"),
        ("answered?", "n"),
        ("Question 2", "\r"),
    ];
    let asked = ["Title", "Question 1", "  date", "answered?", "Question 2", "Publish it"];
    let kept_texts =
        [None, Some("title: Lunch\nquestions: []\n"), Some("title: Colour"), Some("title: Colour")];
    for so_far in 0..=answers.len() {
        let mut session = wizard(&home, &[]);
        answer_prompts(&mut session, &answers[..so_far]);
        session.wait_for_next(asked[so_far]);
        session.type_keys("\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{screen}");
        assert!(is_cursor_visible(&screen), "{screen:?}");
        let (_, after) = screen.split_once("canceled, nothing was created\r\n").expect(&screen);
        match kept_texts.get(so_far).unwrap_or(kept_texts.last().unwrap()) {
            Some(expected) => assert!(saved_draft(after).1.contains(expected), "{screen}"),
            None => assert!(after.is_empty(), "{screen}"),
        }
    }
    assert_eq!(home.ok(&["--data", "store", "list"]), "");
}

#[test]
fn create_continues_with_the_draft_that_the_wizard_saved() {
    let home = Home::new();
    let mut session = wizard(&home, &["--slug", "lunch", "--publish"]);
    let choice = format!("{}\r", DOWN.repeat(10));
    answer_prompts(
        &mut session,
        &[
            ("Title", "Lunch\r"),
            ("Question 1", "Colour\r"),
            ("> short_text", &choice),
            ("Option 1", "a\r"),
            ("Option 2", "b\r"),
            ("Option 3", "\r"),
        ],
    );
    session.wait_for_next("answered?");
    session.type_keys("\u{3}");
    let (_, screen) = session.finish();
    assert!(!home.path().join("store").exists(), "{screen}");
    let (words, text) = saved_draft(&screen);
    assert!(text.starts_with("title: Lunch\nslug: lunch\n"), "{text}");
    assert_eq!(words[..5], ["forms", "--data", "store", "create", "--publish"]);
    let id = home.ok(&words[1..]);
    assert_eq!(form(&home, &id)["questions"][0]["options"], json!(["a", "b"]));
}

#[test]
fn the_wizard_does_not_start_without_a_server() {
    let home = Home::new();
    let variables = [("FORMS_URL", "http://127.0.0.1:1"), ("FORMS_API_KEY", "fk_none")];
    let (code, screen) = Session::start(&home, &variables, &["create", "--retries", "0"]).finish();
    assert!(code == Some(7) && screen.contains("no server responds at http://127.0.0.1:1"), "{screen}");
    assert!(!screen.contains("Title"), "{screen}");
    let (code, screen) = wizard(&home, &["--slug", "Bad Slug"]).finish();
    assert!(
        code == Some(6) && screen.contains("error[invalid_slug]") && !screen.contains("Title"),
        "{screen}"
    );
}

#[test]
fn the_wizard_saves_the_input_if_the_server_becomes_unavailable() {
    let home = Home::new();
    let mut server = home.serve();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &["create", "--retries", "0"]);
    answer_prompts(&mut session, &[("Title", "Lunch\r"), ("Question 1", "")]);
    server.stop(rustix::process::Signal::TERM);
    session.type_keys("\r");
    let (code, screen) = session.finish();
    assert!(code == Some(7) && screen.contains("error: no server responds at"), "{screen}");
    let (words, text) = saved_draft(&screen);
    assert_eq!((&words[..2], &*text), (&["forms", "create"][..], "title: Lunch\nquestions: []\n"));
}

#[test]
fn a_wizard_ended_by_a_signal_saves_the_input() {
    let home = Home::new();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP, rustix::process::Signal::INT]
    {
        let mut session = wizard(&home, &[]);
        answer_prompts(&mut session, &[("Title", "Lunch\r"), ("Question 1", "")]);
        session.wait_for_key_reader();
        session.signal(signal);
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{screen}");
        assert!(screen.contains("\r\ncanceled, nothing was created\r\n"), "{screen:?}");
        assert!(is_cursor_visible(&screen) && saved_draft(&screen).1.starts_with("title: Lunch"), "{screen}");
    }
}

#[test]
fn the_offered_command_of_a_dry_run_is_a_dry_run() {
    let home = Home::new();
    let mut session = wizard(&home, &["--dry-run"]);
    answer_prompts(&mut session, &[("Title", "Lunch\r"), ("Question 1", "\u{3}")]);
    let (_, screen) = session.finish();
    assert_eq!(saved_draft(&screen).0[..5], ["forms", "--data", "store", "create", "--dry-run"]);
}

#[test]
fn the_maximum_title_length_is_checked_by_the_server() {
    let home = Home::new();
    let mut session = wizard(&home, &[]);
    let title = "long ".repeat(200);
    answer_prompts(&mut session, &[("Title", &format!("{title}\r")), ("Question 1", "\r")]);
    let (code, screen) = session.finish();
    assert!(code == Some(6) && !screen.contains("try again"), "{screen}");
    assert!(saved_draft(&screen).1.contains("long long"), "{screen}");
}

#[test]
fn the_wizard_does_not_prompt_with_no_input_or_for_fields_set_by_flags() {
    let home = Home::new();
    let (code, screen) = wizard(&home, &["--no-input"]).finish();
    assert!(code == Some(2) && screen.contains("add -f FILE"), "{screen}");
    let mut session = wizard(&home, &["--publish"]);
    answer_prompts(&mut session, &[("Title", "Empty\r"), ("Question 1", "\r")]);
    let (code, screen) = session.finish();
    assert!(code == Some(6) && screen.contains("form_has_no_questions"), "{screen}");
    assert!(!screen.contains("Publish it"), "{screen}");
}
