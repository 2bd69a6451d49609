//! On a terminal: confirmations, prompts, the cursor, colours.

use super::Home;
use super::terminal::{Session, is_cursor_visible};

/// Creates a home with a published form and this number of responses; returns the form's id.
fn with_form(answers: usize) -> (Home, String) {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    for _ in 0..answers {
        home.ok(&["--data", "store", "submit", &id, "q1=hello"]);
    }
    (home, id)
}

fn delete(home: &Home, id: &str) -> Session {
    let mut session = Session::start(home, &[], &["--data", "store", "delete", id]);
    session.wait_for("Lunch");
    session
}

#[test]
fn responses_are_deleted_after_a_y_only() {
    let (home, id) = with_form(2);
    let submissions = home.ok(&["--data", "store", "responses", &id, "--columns", "id"]);
    let submissions: Vec<_> = submissions.lines().collect();
    let command = [&["--data", "store", "responses", "delete", &id], &submissions[..]].concat();
    for (key, code, left) in [("n\r", 1, 2), ("No\r", 1, 2), ("\r", 1, 2), ("y\r", 0, 0)] {
        let mut session = Session::start(&home, &[], &command);
        session.wait_for("Move 2 responses to \"Lunch\" to the trash on store? [y/N]");
        session.type_keys(key);
        let (ended, shown) = session.finish();
        assert_eq!(ended, Some(code), "{shown}");
        assert_eq!(home.ok(&["--data", "store", "responses", &id]).lines().count(), left);
    }
}

#[test]
fn a_question_that_is_wider_than_the_terminal_is_wrapped_by_words() {
    let (home, id) = with_form(0);
    let mut session = Session::start_at_width(40, &home, &[], &["--data", "store", "delete", &id]);
    session.wait_for("Move \"Lunch\" (0 responses) to\r\nthe trash on store? [y/N]");
    session.type_keys("y");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen:?}");
    let screen = console::strip_ansi_codes(&screen);
    assert!(screen.contains("✓ In the trash for 30 days. Undo: forms"), "{screen:?}");
}

#[test]
fn purging_a_form_in_the_trash_needs_the_same_confirmation() {
    let (home, id) = with_form(1);
    let data = ["--data", "store"];
    home.ok(&[&data[..], &["edit", &id, "--slug", "lunch"]].concat());
    home.ok(&[&data[..], &["delete", "--yes", &id]].concat());
    let purge = [&data[..], &["delete", "--purge", &id]].concat();
    let refused = home.run(&purge).expect(2);
    assert!(
        refused.stderr.contains("cannot erase \"Lunch\" (1 response) without a confirmation"),
        "{refused:?}"
    );
    let message = home.run(&[&purge[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!(message.stderr, "would erase \"Lunch\" (1 response)\n");
    for (typed, code) in [("Lunch\r", 1), ("\u{3}", 130), ("lunch\r", 0)] {
        let mut session = Session::start(&home, &[], &purge);
        session.wait_for("Erase \"Lunch\" (1 response) on store?\r\nType lunch to confirm");
        session.type_keys(typed);
        let (ended, screen) = session.finish();
        assert_eq!(ended, Some(code), "{screen}");
        let trashed = home.ok(&[&data[..], &["list", "--trashed"]].concat());
        assert_eq!(trashed.contains(&id), code != 0, "{screen}");
    }
    home.run(&purge).expect(3);
}

#[test]
fn a_canceled_prompt_ends_its_line_and_exits_130() {
    for answers in [0, 1] {
        let (home, id) = with_form(answers);
        let mut session = delete(&home, &id);
        session.wait_for(if answers == 0 { "[y/N] " } else { "to confirm: " });
        session.type_keys("\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{screen:?}");
        assert!(screen.ends_with("\r\ncanceled, nothing was done\r\n"), "{screen:?}");
        assert!(is_cursor_visible(&screen), "{screen:?}");
        home.ok(&["--data", "store", "show", &id]);
    }
}

#[test]
fn a_line_longer_than_the_terminal_can_be_edited_and_ctrl_d_does_not_end_it() {
    let (home, id) = with_form(1);
    let mut session = delete(&home, &id);
    session.wait_for("to confirm: ");
    let (wide, back) = ("é".repeat(200), "\u{7f}".repeat(200));
    session.type_keys(&format!("{wide}{back}{id}\u{4}\r"));
    assert_eq!(session.finish().0, Some(0));
}

/// A form with all types of question that a person answers.
const EVERYTHING: &str = r#"title: Everything
slug: everything
questions:
  - {type: page, title: First page}
  - {id: name, type: short_text, title: Your name, required: true, description: As in your passport}
  - {id: story, type: long_text, title: Your story}
  - {id: mail, type: email, title: Your email, required: true}
  - {id: site, type: url, title: Your site, show_if: {name: Bob}}
  - {id: tel, type: phone, title: Your phone, default_country: DE}
  - {id: count, type: number, title: How many, integer: true}
  - {id: stars, type: rating, title: How was it, labels: {1: Poor, 5: Great}, required: true}
  - {id: nps, type: opinion_scale, title: Recommend us}
  - {id: write, type: boolean, title: May we write, labels: {"true": Gladly, "false": Rather not}}
  - {id: terms, type: consent, title: Terms, text: I agree, required: true}
  - {id: size, type: single_choice, title: Which size, options: [{value: s, label: "Small, please"}, {value: l, label: Large}]}
  - {id: dish, type: single_choice, title: Which dish, options: [soup], allow_other: true}
  - {id: days, type: multiple_choice, title: Which days, options: [Mon, Tue, Wed], required: true}
  - {id: rank, type: ranking, title: Rank them, options: [Tea, Coffee, Juice]}
  - {id: grid, type: matrix, title: Rate each, rows: [taste, {value: price, label: The price}], columns: [good, bad], required_rows: true, required: true}
  - {id: day, type: date, title: Which date}
  - {id: hour, type: time, title: Which time}
  - {id: exact, type: datetime, title: Exactly when}
  - {id: source, type: hidden, default: web}
  - {type: statement, title: Thank you}
"#;

/// Creates and publishes [`EVERYTHING`] in a new home.
fn with_everything() -> Home {
    let home = Home::new();
    home.write("everything.yaml", EVERYTHING);
    home.ok(&["--data", "store", "create", "--publish", "-f", "everything.yaml"]);
    home
}

fn submit(home: &Home, columns: u16, more: &[&str]) -> Session {
    let command = [&["--data", "store", "submit", "everything"], more].concat();
    Session::start_at_width(columns, home, &[("NO_COLOR", "1")], &command)
}

#[test]
fn every_type_of_question_is_answered_by_choosing_or_typing() {
    const DOWN: &str = "\u{1b}[B";
    for columns in [40, 80, 120] {
        let home = with_everything();
        let mut session = submit(&home, columns, &[]);
        let chosen = [DOWN, DOWN, "\r"].concat();
        for (shown, keys) in [
            ("First page", ""),
            ("1/17 Your name (required)\r\nAs in your passport", "Ann\r"),
            ("Your story", "Once\rupon\r\r"),
            ("Your email", "example.com\r"),
            (
                "try again",
                "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}ann@example.com\r",
            ),
            ("Your phone", "030 901820\r"),
            ("How many", "3\r"),
            ("5  Great", &chosen),
            ("Recommend us", &[DOWN, &chosen].concat()),
            ("n = Rather not", "n"),
            ("I agree", "y"),
            ("Small, please", &[DOWN, "\r"].concat()),
            ("Other …", &chosen),
            ("Other: ", "pie\r"),
            ("Which days", &[" ", DOWN, " \r"].concat()),
            ("Place 1", &chosen),
            ("Place 2", &[DOWN, "\r"].concat()),
            ("Place 3", "\r"),
            ("taste:", "\r"),
            ("The price:", &[DOWN, "\r"].concat()),
            ("Which date", "2026-12-24\r"),
            ("Which time", "09:30\r"),
            ("Exactly when", "\r"),
        ] {
            session.wait_for_next(shown);
            session.wait_for_key_reader();
            session.type_keys(keys);
        }
        let (code, screen) = session.finish();
        assert_eq!(code, Some(0), "{screen}");
        let stored = home.ok(&["--data", "store", "responses", "everything", "-o", "jsonl"]);
        let answers = r#""answers":{"name":"Ann","story":"Once\nupon","mail":"ann@example.com","tel":"030 901820","count":3,"stars":3,"nps":2,"write":false,"terms":true,"size":"s","dish":{"other":"pie"},"days":["Mon","Tue"],"rank":["Coffee","Tea"],"grid":{"taste":"good","price":"bad"},"day":"2026-12-24","hour":"09:30","source":"web"}"#;
        assert!(stored.contains(answers), "{stored}");
    }
}

#[test]
fn only_missing_required_answers_are_asked_for_beside_others() {
    let home = with_everything();
    let mut session = submit(&home, 80, &["name=Ann", "stars=5", "terms=yes", "days=Mon", "tel=030 901820"]);
    for (shown, keys) in
        [("Your email (required)", "ann@example.com\r"), ("taste", "\r"), ("The price", "\r")]
    {
        session.wait_for_next(shown);
        session.wait_for_key_reader();
        session.type_keys(keys);
    }
    let (code, screen) = session.finish();
    assert!(code == Some(0) && !screen.contains("Your story"), "{screen}");
}

#[test]
fn a_paste_answers_only_the_question_that_is_shown() {
    let home = Home::new();
    let questions = "  - {id: story, type: long_text, title: Your story}\n  - {id: public, type: boolean, title: May we publish it?, required: true}\n";
    home.write("paste.yaml", &format!("title: Paste\nslug: paste\nquestions:\n{questions}"));
    home.ok(&["--data", "store", "create", "--publish", "-f", "paste.yaml"]);
    let mut session = Session::start(&home, &[], &["--data", "store", "submit", "paste", "--no-notify"]);
    session.wait_for_next("up to an empty line");
    session.wait_for_key_reader();
    session.type_keys("Dear all,\rmy year was bad.\r\rYours, y\r");
    session.wait_for_next("May we publish it?");
    session.wait_for_key_reader();
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    let screen = console::strip_ansi_codes(&screen);
    assert!(screen.contains(r"submit --no-notify paste $'story=Dear all,\nmy year was bad.'"), "{screen}");
}

#[test]
fn what_was_entered_before_ctrl_c_can_be_sent_later() {
    let home = with_everything();
    let given = ["name=Ann", "mail=a@example.com", "stars=5", "terms=yes"];
    let mut session = submit(&home, 80, &given);
    for (shown, keys) in [("Which days", " \r"), ("taste", "\r"), ("The price", "\u{3}")] {
        session.wait_for_next(shown);
        session.wait_for_key_reader();
        session.type_keys(keys);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("canceled, nothing was sent\r\n") && is_cursor_visible(&screen), "{screen}");
    let later = r#"submit everything name=Ann mail=a@example.com stars=5 terms=yes days:='["Mon"]' grid:='{"taste":"good"}'"#;
    assert!(screen.contains(later), "{screen}");
}

#[test]
fn refused_text_is_kept_after_ctrl_c_and_the_command_has_all_flags() {
    let home = with_everything();
    let mut session = submit(&home, 80, &["--dry-run", "name=Ann", "stars=5", "terms=yes", "days=Mon"]);
    for (shown, keys) in [("Your email (required)", "nobody\r"), ("try again", "\u{3}")] {
        session.wait_for_next(shown);
        session.wait_for_key_reader();
        session.type_keys(keys);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    let later = "submit --dry-run everything name=Ann stars=5 terms=yes days=Mon mail=nobody";
    assert!(screen.contains(later), "{screen}");
}

#[test]
fn nothing_is_asked_if_an_answer_is_invalid_or_without_input() {
    let home = with_everything();
    let (code, screen) = submit(&home, 80, &["mail=nobody"]).finish();
    assert!(code == Some(6) && !screen.contains("Answer: "), "{screen}");
    let (code, screen) = submit(&home, 80, &["--no-input"]).finish();
    assert!(code == Some(6) && screen.contains("\"Your name\" needs an answer"), "{screen}");
}

#[test]
fn a_long_form_is_answered_in_the_editor() {
    let home = Home::new();
    let question = |number| format!("  - {{type: short_text, title: Part {number}, required: true}}\n");
    let questions: String = (1..=21).map(question).collect();
    home.write("long.yaml", &format!("title: Long\nslug: long\nquestions:\n{questions}"));
    home.ok(&["--data", "store", "create", "--publish", "-f", "long.yaml"]);
    let submit = ["--data", "store", "submit", "long"];
    let edit = |script| Session::start(&home, &[("EDITOR", script)], &submit).finish();
    let (code, screen) = edit("true");
    assert!(code == Some(1) && screen.contains("canceled, nothing was done"), "{screen}");
    assert!(screen.contains("21 questions: opening your editor"), "{screen}");
    let (code, screen) = edit(r#"sed -i "s/^q1:/q1: once/""#);
    assert!(code == Some(6) && screen.contains("\"Part 21\" needs an answer"), "{screen}");
    let (_, kept) = screen.split_once("to continue: forms --data store submit long -f ").expect(&screen);
    let kept = kept.lines().next().unwrap_or_default();
    let text = std::fs::read_to_string(kept).unwrap();
    assert!(text.contains("# Part 2\n# one line of text (required)\nq2:\n"), "{text}");
    let (code, screen) = edit(r#"sed -i "s/^\(q[0-9]*\):/\1: some/""#);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_list_prompt_fits_the_width_of_the_terminal() {
    let home = Home::new();
    let wide = "wide ".repeat(30);
    let form = format!(
        "title: Lunch
questions:
  - {{id: size, type: single_choice, title: How {wide}?, options: [{wide}, Large], required: true}}
"
    );
    home.write("wide.yaml", &form);
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "wide.yaml"]);
    let submit = ["--data", "store", "submit", id.trim()];
    let mut session = Session::start_at_width(40, &home, &[("NO_COLOR", "1")], &submit);
    for key in ["\u{1b}[B", "\u{3}"] {
        session.wait_for_next("Large");
        session.type_keys(key);
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(130), "{screen}");
    // A wrapped row would break the clearing of the list, which counts rows.
    assert!(screen.split(['\r', '\n']).all(|row| console::measure_text_width(row) < 40), "{screen}");
}

#[test]
fn no_input_ci_and_dumb_terminals_disable_prompts() {
    let (home, id) = with_form(0);
    let delete = ["--data", "store", "delete", &id];
    let no_input = [&delete[..], &["--no-input"]].concat();
    for (variables, arguments, why) in [
        (&[][..], &no_input[..], "--no-input is given"),
        (&[("FORMS_NO_INPUT", "1")], &delete, "FORMS_NO_INPUT is set"),
        (&[("CI", "true")], &delete, "CI is set"),
        (&[("TERM", "dumb")], &delete, "TERM is `dumb`"),
    ] {
        let (code, screen) = Session::start_at_width(200, &home, variables, arguments).finish();
        let screen = console::strip_ansi_codes(&screen);
        assert!(code == Some(2) && screen.contains("add --yes"), "{why}: {code:?} {screen:?}");
        assert!(screen.contains(&format!("without a confirmation, and {why}\r\n")), "{why}: {screen:?}");
    }
    let create = ["--data", "store", "create"];
    let (code, screen) = Session::start(&home, &[("CI", "true"), ("NO_COLOR", "1")], &create).finish();
    assert!(code == Some(2) && screen.contains("cannot ask for the form: CI is set"), "{screen:?}");
}

#[test]
fn colours_follow_the_conventions() {
    let (home, _) = with_form(0);
    let colours = |variables: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["--data", "store"], flags, &["list"]].concat();
        Session::start(&home, variables, &arguments).finish().1.contains("\u{1b}[2m")
    };
    assert!(colours(&[], &[]));
    assert!(!colours(&[("NO_COLOR", "1")], &[]));
    assert!(colours(&[("NO_COLOR", "")], &[]));
    assert!(!colours(&[("TERM", "dumb")], &[]));
    assert!(!colours(&[], &["--color", "never"]));
    assert!(colours(&[("NO_COLOR", "1")], &["--color", "always"]));
}

#[test]
fn ctrl_c_ends_a_command_that_reads_the_terminal() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let commands: [&[&str]; 5] = [
        &["validate", "-"],
        &["create", "-f", "-"],
        &["edit", &id, "-f", "-"],
        &["submit", &id, "--file", "-"],
        &["submit", &id, "q1=@-"],
    ];
    for command in commands {
        let mut session = Session::start(&home, &[], &[&["--data", "store"], command].concat());
        session.wait_for("reading from the terminal, end with Ctrl-D");
        session.type_keys("title: Half\n\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{command:?}: {screen:?}");
    }
}

#[test]
fn an_api_key_is_not_typed_at_a_terminal() {
    let session = Session::start(&Home::new(), &[], &["list", "--key-file", "-"]);
    let (code, screen) = session.finish();
    assert!(code == Some(2) && screen.contains("cannot be typed: it would be shown"), "{screen:?}");
}

#[test]
fn a_completed_change_is_shown_with_a_check_mark() {
    let (home, id) = with_form(0);
    let shown = |variables: &[(&str, &str)], arguments: &[&str]| {
        let arguments = [&["--data", "store"], arguments].concat();
        Session::start(&home, variables, &arguments).finish().1
    };
    let closed = shown(&[], &["close", &id]);
    assert!(closed.contains("\u{1b}[32m✓\u{1b}[0m \""), "{closed:?}");
    let published = shown(&[("NO_COLOR", "1")], &["publish", &id]);
    assert!(published.contains("\r\n✓ \""), "{published:?}");
    let tried = shown(&[], &["close", "--dry-run", &id]);
    assert!(!tried.contains('✓'), "{tried:?}");
    let pipe = home.run(&["--data", "store", "close", &id]);
    assert!(!pipe.stderr.contains('✓'), "{pipe:?}");
}
