//! `forms create` without a file: from flags in a script, and step by step at a terminal.

use forms::domain::question::QuestionKind;
use serde_json::{Value, json};

use super::terminal::{Session, has_cursor};
use super::{Home, Run};

fn create(home: &Home, arguments: &[&str]) -> Run {
    home.run(&[&["--data", "store", "create"], arguments].concat())
}

fn form(home: &Home, id: &str) -> Value {
    serde_json::from_str(&home.ok(&["--data", "store", "show", id.trim(), "-o", "json"])).unwrap()
}

#[test]
fn flags_make_a_form() {
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
fn a_question_is_its_type_its_title_and_its_lists() {
    let home = Home::new();
    home.empty_store();
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
    for short in ["email", "single_choice:Colour", "matrix:Taste:soup,rice"] {
        create(&home, &[&arguments[..], &["-Q", short]].concat()).expect(2);
    }
    let short = |kind: &str| {
        format!("{kind}:Title{}", ":a,b".repeat(QuestionKind::without_settings(kind).unwrap().1.len()))
    };
    let all = QuestionKind::NAMES.map(short);
    let flags: Vec<_> = all.iter().flat_map(|question| ["-Q", question]).collect();
    create(&home, &[&arguments[..], &flags].concat()).expect(0);
}

#[test]
fn flags_that_make_no_form_are_all_told_and_nothing_is_stored() {
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
        (&["--title", "A", "-Q", "ratting:B", "-Q", "email:"], 6, "2 problems, nothing was stored"),
        (&["--title", "A", "--slug", "taken"], 5, "slug `taken` already belongs to"),
        (&["--title", "A", "--slug", "taken", "--dry-run"], 5, "slug `taken` already belongs to"),
        (
            &["--title", "A", "-Q", "email:B", "-Q", "email:"],
            6,
            "error[empty]: question 2: `title` must not be empty\n",
        ),
        (
            &["--title", "A", "--publish"],
            6,
            "help: add a question that takes an answer, or leave out --publish",
        ),
        (&["-f", "empty.yaml", "--publish"], 6, "error[form_has_no_questions]: \"Empty\" has no question"),
        (&["-f", "both.yaml", "--publish"], 6, "error[form_has_no_questions]: \"Empty\" has no question"),
        (&["both.yaml"], 2, "create -f both.yaml"),
        (&["--title", "A", "email:B"], 2, "-Q email:B"),
        (&["--title", "A", "-Q", "email"], 2, "expected TYPE:TITLE"),
        (
            &["--title", "A", "-Q", "ranking:Best"],
            2,
            "options of a ranking follow behind a colon: ranking:Best:one,two",
        ),
        (&["-Q", "email:A"], 2, "--title"),
        (&["-f", "survey.yaml", "-Q", "email:A"], 2, "cannot be used with"),
        (&["-f", "survey.yaml", "--title", "A", "-Q", "email:A"], 2, "cannot be used with"),
        (&["-f", "survey.yaml", "--slug", "Bad Slug"], 6, "error[invalid_slug]"),
        (&["-f", "survey.yaml", "--title", ""], 6, "`title`"),
        (&["-f", "survey.yaml", "--slug", "taken"], 5, "slug `taken` already belongs to"),
        (
            &["-f", "both.yaml", "--slug", "lunch"],
            2,
            "--title and --slug are for one form, and the file has 2",
        ),
        (&["--slug", "lunch"], 2, "add -f FILE, or --title T with -Q TYPE:TITLE for each question"),
        (&[], 2, "add -f FILE, or --title T with -Q TYPE:TITLE for each question"),
    ];
    for (arguments, code, said) in cases {
        let run = create(&home, arguments).expect(*code);
        assert!(run.stdout.is_empty() && run.stderr.contains(said), "{arguments:?} {run:?}");
        let problem = create(&home, &[arguments, &["-o", "json"][..]].concat()).problem();
        assert_eq!(problem["exit"], *code, "{arguments:?}");
    }
    create(&home, &["--title", "A", "--dry-run"]).expect(0);
    assert_eq!(home.ok(&["--data", "store", "list"]).lines().count(), 1);
}

#[test]
fn flags_take_the_place_of_what_the_file_says() {
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
fn what_comes_next_can_be_done() {
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

/// Answers each question the wizard asks; what it asks comes first.
fn answer(session: &mut Session, answers: &[(&str, &str)]) {
    for (question, keys) in answers {
        session.next(question);
        session.press(keys);
    }
}

const DOWN: &str = "\u{1b}[B";

#[test]
fn the_wizard_asks_for_a_form_and_makes_it() {
    let home = Home::new();
    home.empty_store();
    let mut session = wizard(&home, &[]);
    let choice = format!("{}\r", DOWN.repeat(10));
    answer(
        &mut session,
        &[
            ("Title", "Lunch: 1.10\r"),
            ("Question 1", "What would you like?\r"),
            ("> short_text", "\r"),
            ("Must it be answered? [y/N]", "y\r"),
            ("Question 2", "Colour\r"),
            ("> short_text", &choice),
            // An option that is given twice: they alone are asked for again, and can be edited.
            ("Options, with commas between", "red,red\r"),
            ("try again", ""),
            ("Options, with commas between", "\u{17}red, green\r"),
            ("Must it be answered? [y/N]", "n\r"),
            ("Question 3", "\r"),
            ("  - green", ""),
            ("Publish it at once? [y/N]", "y\r"),
        ],
    );
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("ranking") && !seen.contains("hidden"), "a type only for files: {seen}");
    for line in [
        "title: 'Lunch: 1.10'",
        "- type: short_text",
        "created and published",
        "as a file: forms --data store show frm_",
    ] {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    let list = home.ok(&["--data", "store", "list", "-o", "jsonl"]);
    let id: Value = serde_json::from_str(&list).unwrap();
    let form = form(&home, id["id"].as_str().unwrap());
    let expected = json!([
        {"id": "q1", "type": "short_text", "title": "What would you like?", "required": true},
        {"id": "q2", "type": "single_choice", "title": "Colour", "required": false, "options": ["red", "green"]},
    ]);
    assert_eq!((&form["title"], &form["status"]), (&json!("Lunch: 1.10"), &json!("published")));
    assert_eq!(form["questions"], expected);
}

/// The command that the terminal offers to continue with, and the file that it names.
#[track_caller]
fn kept(seen: &str) -> (Vec<&str>, String) {
    let (_, offered) = seen.split_once("to continue: ").expect(seen);
    let words: Vec<_> = offered.lines().next().unwrap().split(' ').collect();
    let text = std::fs::read_to_string(words.last().unwrap()).expect(seen);
    (words, text)
}

#[test]
fn cancelling_the_wizard_ends_with_130_and_keeps_what_was_entered() {
    let home = Home::new();
    home.empty_store();
    let answers = [
        ("Title", "Lunch\r"),
        ("Question 1", "Colour\r"),
        ("short_text", "\r"),
        ("answered?", "n\r"),
        ("Question 2", "\r"),
    ];
    let asked = ["Title", "Question 1", "  date", "answered?", "Question 2", "Publish it"];
    let kept_texts =
        [None, Some("title: Lunch\nquestions: []\n"), Some("title: Colour"), Some("title: Colour")];
    // Ctrl-C, Ctrl-D, Esc.
    for key in ["\u{3}", "\u{4}", "\u{1b}"] {
        for so_far in 0..=answers.len() {
            let mut session = wizard(&home, &[]);
            answer(&mut session, &answers[..so_far]);
            session.next(asked[so_far]);
            session.press(key);
            let (code, seen) = session.end();
            assert_eq!(code, Some(130), "{seen}");
            assert!(has_cursor(&seen), "{seen:?}");
            let (before, after) = seen.split_once("cancelled, nothing was created\r\n").expect(&seen);
            let drawn = before.trim_end_matches("\u{1b}[?25h");
            // The line is ended; the list of types, with the line above it, is erased.
            let is_clean = if so_far == 2 { drawn.ends_with("\u{1b}[20A") } else { drawn.ends_with("\r\n") };
            assert!(is_clean, "{seen:?}");
            match kept_texts.get(so_far).unwrap_or(kept_texts.last().unwrap()) {
                Some(expected) => assert!(kept(after).1.contains(expected), "{seen}"),
                None => assert!(after.is_empty(), "{seen}"),
            }
        }
    }
    assert_eq!(home.ok(&["--data", "store", "list"]), "");
}

#[test]
fn what_the_wizard_has_kept_is_what_create_continues_with() {
    let home = Home::new();
    let mut session = wizard(&home, &["--slug", "lunch", "--publish"]);
    let choice = format!("{}\r", DOWN.repeat(10));
    answer(
        &mut session,
        &[("Title", "Lunch\r"), ("Question 1", "Colour\r"), ("> short_text", &choice), ("Options", "a,b\r")],
    );
    session.next("answered?");
    session.press("\u{3}");
    let (_, seen) = session.end();
    assert!(!home.path().join("store").exists(), "{seen}");
    let (words, text) = kept(&seen);
    assert!(text.starts_with("title: Lunch\nslug: lunch\n"), "{text}");
    assert_eq!(words[..5], ["forms", "--data", "store", "create", "--publish"]);
    let id = home.ok(&words[1..]);
    assert_eq!(form(&home, &id)["questions"][0]["options"], json!(["a", "b"]));
}

#[test]
fn the_wizard_asks_nothing_where_no_server_answers() {
    let home = Home::new();
    let variables = [("FORMS_URL", "http://127.0.0.1:1"), ("FORMS_API_KEY", "fk_none")];
    let (code, seen) = Session::start(&home, &variables, &["create", "--retries", "0"]).end();
    assert!(code == Some(7) && seen.contains("no server responds at http://127.0.0.1:1"), "{seen}");
    assert!(!seen.contains("Title"), "{seen}");
    let (code, seen) = wizard(&home, &["--slug", "Bad Slug"]).end();
    assert!(code == Some(6) && seen.contains("error[invalid_slug]") && !seen.contains("Title"), "{seen}");
}

#[test]
fn a_server_that_goes_away_costs_no_answers() {
    let home = Home::new();
    let mut server = home.serve();
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &["create", "--retries", "0"]);
    answer(&mut session, &[("Title", "Lunch\r"), ("Question 1", "")]);
    server.stop(rustix::process::Signal::TERM);
    session.press("\r");
    let (code, seen) = session.end();
    assert!(code == Some(7) && seen.contains("error: no server responds at"), "{seen}");
    let (words, text) = kept(&seen);
    assert_eq!((&words[..2], &*text), (&["forms", "create"][..], "title: Lunch\nquestions: []\n"));
}

#[test]
fn an_empty_title_is_refused_and_ctrl_u_clears_the_line() {
    let home = Home::new();
    let mut session = wizard(&home, &[]);
    answer(
        &mut session,
        &[
            ("Title", "\r"),
            ("must not be empty; Ctrl-C cancels", "  \r"),
            ("must not be empty; Ctrl-C cancels", "Dinner\u{15}Lunch\r"),
            ("Question 1", "\r"),
        ],
    );
    let (code, seen) = session.end();
    assert!(code == Some(0) && seen.contains("created \"Lunch\""), "{seen}");
}

#[test]
fn a_wizard_that_is_ended_from_outside_keeps_what_was_entered() {
    let home = Home::new();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::HUP, rustix::process::Signal::INT]
    {
        let mut session = wizard(&home, &[]);
        answer(&mut session, &[("Title", "Lunch\r"), ("Question 1", "")]);
        session.signal(signal);
        let (code, seen) = session.end();
        assert_eq!(code, Some(130), "{seen}");
        assert!(seen.contains("\r\n\u{1b}[?25hcancelled, nothing was created\r\n"), "{seen:?}");
        assert!(has_cursor(&seen) && kept(&seen).1.starts_with("title: Lunch"), "{seen}");
    }
}

#[test]
fn what_the_wizard_has_kept_is_tried_again_by_a_dry_run() {
    let home = Home::new();
    let mut session = wizard(&home, &["--dry-run"]);
    answer(&mut session, &[("Title", "Lunch\r"), ("Question 1", "\u{3}")]);
    let (_, seen) = session.end();
    assert_eq!(kept(&seen).0[..5], ["forms", "--data", "store", "create", "--dry-run"]);
}

#[test]
fn the_server_judges_how_long_a_title_may_be() {
    let home = Home::new();
    let mut session = wizard(&home, &[]);
    let title = "long ".repeat(200);
    answer(&mut session, &[("Title", &format!("{title}\r")), ("Question 1", "\r")]);
    let (code, seen) = session.end();
    assert!(code == Some(6) && !seen.contains("try again"), "{seen}");
    assert!(kept(&seen).1.contains("long long"), "{seen}");
}

#[test]
fn the_wizard_asks_only_where_it_may() {
    let home = Home::new();
    let (code, seen) = wizard(&home, &["--no-input"]).end();
    assert!(code == Some(2) && seen.contains("add -f FILE"), "{seen}");
    let mut session = wizard(&home, &["--publish"]);
    answer(&mut session, &[("Title", "Empty\r"), ("Question 1", "\r")]);
    let (code, seen) = session.end();
    assert!(code == Some(6) && seen.contains("form_has_no_questions"), "{seen}");
    assert!(!seen.contains("Publish it"), "{seen}");
}
