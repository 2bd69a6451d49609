//! `forms edit` with flags or a file: only the named fields change, and concurrent changes are not overwritten.

use serde_json::{Value, json};

use super::fake_server::{FakeServer, Reply, operator_key, send};
use super::{Home, Run};

const DATA: [&str; 2] = ["--data", "store"];

fn edit(home: &Home, id: &str, arguments: &[&str]) -> Run {
    home.run(&[&DATA[..], &["edit", id], arguments].concat())
}

fn form(home: &Home, id: &str) -> Value {
    serde_json::from_str(&home.ok(&[&DATA[..], &["show", id, "-o", "json"]].concat())).unwrap()
}

#[test]
fn flags_change_the_fields_they_name_and_the_change_is_shown() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    let flags = ["--title", "Lunch: 1.10", "--description", "yes", "--slug", "lunch"];
    let run = edit(&home, &id, &flags).expect(0);
    assert_eq!(run.stdout, format!("{id}\n"));
    assert_eq!(
        run.stderr,
        "  ~ title        \"Lunch\" → \"Lunch: 1.10\"\n  + description  \"yes\"\n  + slug         \"lunch\"\nupdated \"Lunch: 1.10\"\n"
    );
    let sets = [
        ("settings.max_responses=100", "+ settings.max_responses  100"),
        (
            "settings.confirmation.message=Thank you: really",
            "+ settings.confirmation.message  \"Thank you: really\"",
        ),
        ("settings.closes_at=2030-01-31T18:00:00Z", "+ settings.closes_at  \"2030-01-31T18:00:00Z\""),
        ("questions.q2.required=true", "+ q2.required  true"),
        ("questions.q3.labels={1: bad, 5: good}", "+ q3.labels.1  \"bad\"\n  + q3.labels.5  \"good\""),
        ("questions.q1=", "- q1  short_text \"What would you like?\""),
        ("description=null", "- description  \"yes\""),
        ("settings.max_responses=", "- settings.max_responses  100"),
    ];
    for (set, lines) in sets {
        let message = format!("  {lines}\nupdated \"Lunch: 1.10\"\n");
        assert_eq!(edit(&home, "lunch", &["--set", set]).expect(0).stderr, message, "{set}");
    }
    let again = edit(&home, "lunch", &["--set", "settings.max_responses="]).expect(0);
    assert_eq!(again.stderr, "no change\n");
    let form = form(&home, &id);
    assert_eq!(form["title"], "Lunch: 1.10");
    assert_eq!((&form["status"], &form["description"]), (&json!("published"), &Value::Null));
    let closes =
        json!({"closes_at": "2030-01-31T18:00:00.000Z", "confirmation": {"message": "Thank you: really"}});
    assert_eq!(form["settings"], closes);
    assert_eq!(form["questions"][0]["required"], true);
    assert_eq!(form["questions"][1]["labels"], json!({"1": "bad", "5": "good"}));
    assert_eq!(form["questions"].as_array().unwrap().len(), 2);
}

#[test]
fn the_value_of_a_flag_is_not_parsed_as_yaml() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    edit(&home, &id, &["--title", "null", "--slug", "null", "--description", "null"]).expect(0);
    let made = form(&home, &id);
    for name in ["title", "slug", "description"] {
        assert_eq!(made[name], "null", "{name}");
    }
    edit(&home, &id, &["--slug", "", "--description", "'quoted'"]).expect(0);
    let made = form(&home, &id);
    assert_eq!((&made["slug"], &made["description"]), (&Value::Null, &json!("'quoted'")));
}

#[test]
fn an_invalid_edit_is_reported_and_changes_nothing() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    home.write("other.yaml", "title: Other\nslug: taken\n");
    home.ok(&[&DATA[..], &["create", "-f", "other.yaml"]].concat());
    let before = form(&home, &id);
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--set", "questions.q2.required=5"],
            6,
            "question `q2`: `required` must be true or false, not a number",
        ),
        (&["--set", "questions.q3.max=99", "--title", ""], 6, "2 problems, nothing was stored"),
        (&["--set", "questions.q3.mix=2"], 6, "error[unknown_field]: question `q3`: unknown field `mix`\n"),
        (
            &["--set", "settings.max_reponses="],
            6,
            "error[unknown_field]: `settings`: unknown field `max_reponses`\n  = help: a field with a similar name exists: `max_responses`",
        ),
        (&["--set", "titel=A"], 6, "= help: a field with a similar name exists: `title`"),
        (
            &["--title", "q\u{7}", "--set", "settings.closed=5"],
            6,
            "`title` has the control character U+0007, which is not allowed",
        ),
        (&["--slug", "taken"], 5, "slug `taken` already belongs to"),
        (&["--set", "questions.q9.title=A"], 2, "`q9` is not a question of the form"),
        (&["--set", "questions.q1={type: email}"], 2, "question `q1` is set member by member"),
        (&["--set", "title"], 2, "expected PATH=VALUE"),
        (&["--set", "questions=[]"], 6, "form_has_no_questions"),
        (&[], 2, "say what to change: --title, --description, --slug or --set"),
    ];
    for (arguments, code, message) in cases {
        let run = edit(&home, &id, arguments).expect(*code);
        assert!(run.stdout.is_empty() && run.stderr.contains(message), "{arguments:?} {run:?}");
        let problem = edit(&home, &id, &[arguments, &["-o", "json"][..]].concat()).problem();
        assert_eq!(problem["exit"], *code, "{arguments:?}");
    }
    let tried = edit(&home, &id, &["--title", "New", "--dry-run"]).expect(0);
    assert_eq!(tried.stdout, "(dry run)\n");
    assert_eq!(
        tried.stderr,
        "  ~ title  \"Lunch\" → \"New\"\nthe server would accept it; nothing was stored\n"
    );
    edit(&home, &id, &["--slug", "taken", "--dry-run"]).expect(5);
    assert_eq!(form(&home, &id), before);
}

#[test]
fn a_concurrent_change_is_not_overwritten() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    let key = operator_key(&home);
    let run_through = |title: &str, replies: Vec<Reply>| {
        let fake_server = FakeServer::with_replies(replies);
        let variables = [("FORMS_API_KEY", &*key), ("FORMS_URL", &*fake_server.url)];
        let run = home.run_with(&variables, &["edit", &id, "--title", title]);
        (run, fake_server.into_requests())
    };
    let pass = || Reply::Forward(server.url.clone());
    let (run, requests) = run_through("One", vec![pass(), pass()]);
    run.expect(0);
    assert!(requests[1].contains("if-match: \"r2\""), "{}", requests[1]);
    // The command reads an older revision than the current one.
    let screen = send(&server.url, "GET", &format!("/api/v1/forms/{id}"), &key, "");
    let stale = FakeServer::status("200 OK", "etag: \"r1\"\r\n", &screen);
    let (run, _) = run_through("Two", vec![stale, pass()]);
    let run = run.expect(5);
    assert!(run.stderr.contains("error[version_mismatch]"), "{run:?}");
    assert!(run.stderr.contains(&format!("forms show {id}")), "{run:?}");
    // The first response is lost: the retry conflicts with its own change, which it cannot know.
    let (run, _) = run_through("Three", vec![pass(), Reply::DropResponse(server.url.clone()), pass()]);
    assert!(
        run.expect(5).stderr.contains("the response was lost"),
        "the error does not say that the change may have been made"
    );
    assert!(home.ok(&["show", &id]).contains("Three"));
}

#[test]
fn a_change_that_hides_answers_warns_with_their_number() {
    let home = Home::new();
    home.write(
        "meal.yaml",
        "title: Meal
questions:
  - {id: dish, type: single_choice, title: Dish, options: [soup, {value: pasta, label: Noodles}, rice]}
  - {id: sides, type: multiple_choice, title: Sides, options: [bread, salad]}
  - {id: note, type: statement, title: Read this}
  - {id: stars, type: rating, title: Stars}
  - {id: why, type: short_text, title: Why}
",
    );
    let id = home.ok(&[&DATA[..], &["create", "--publish", "-f", "meal.yaml"]].concat());
    let id = id.trim();
    for answers in [
        &["dish=soup", "sides=bread", "stars=4"][..],
        &["dish=rice", "sides=bread", "sides=salad", "stars=5"],
    ] {
        home.ok(&[&DATA[..], &["submit", id], answers].concat());
    }
    let sets = [
        "questions.dish.options=[rice, {value: pasta, label: Pasta}]",
        "questions.sides.options=[salad]",
        "questions.note=",
        "questions.stars=",
        "questions.why.type=long_text",
    ];
    let flags: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let expected = "  ↕ dish                      option rice moved to the start
  ~ dish.options.pasta.label  \"Noodles\" → \"Pasta\"
  - dish                      option soup  ! 1 answer says soup
  - sides                     option bread  ! 2 answers say bread
  ~ why.type                  \"short_text\" → \"long_text\"
  - note                      statement \"Read this\"
  - stars                     rating \"Stars\"  ! 2 answers are hidden
updated \"Meal\"
";
    assert_eq!(edit(&home, id, &flags).expect(0).stderr, expected);
    // The earlier file can be deployed again, and the answers are seen again.
    let back = edit(&home, id, &["-f", "meal.yaml", "--yes"]).expect(0).stderr;
    assert!(back.contains("  + stars                     rating \"Stars\", after "), "{back}");
    let shown = home.ok(&[&DATA[..], &["responses", id, "-o", "csv", "--columns", "dish,stars"]].concat());
    assert_eq!(shown, "dish,stars\nrice,5\nsoup,4\n");
    let retyped = edit(&home, id, &["--set", "questions.stars.type=number"]).expect(0).stderr;
    assert!(retyped.contains("\"number\"  ! 2 answers are of type rating\n"), "{retyped}");
}

#[test]
fn without_a_terminal_an_edit_with_a_file_needs_yes() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    let file = || home.ok(&[&DATA[..], &["show", &id, "-o", "yaml"]].concat());
    let text = file().replace("Lunch", "Dinner");
    home.write("dinner.yaml", &text);
    let edit = [&DATA[..], &["edit", &id, "-f", "dinner.yaml"]].concat();
    let refused = home.run(&edit).expect(2);
    assert!(refused.stderr.contains("help: add --yes"), "{refused:?}");
    let tried = home.run(&[&edit[..], &["--dry-run"]].concat()).expect(0);
    let would = "  ~ title  \"Lunch\" → \"Dinner\"\nthe server would accept it; nothing was stored\n";
    assert_eq!((&*tried.stdout, &*tried.stderr), ("(dry run)\n", would));
    let sent = home.run(&[&edit[..], &["--yes"]].concat()).expect(0);
    assert_eq!(sent.stdout, format!("{id}\n"));
    assert_eq!(sent.stderr, "  ~ title  \"Lunch\" → \"Dinner\"\nupdated \"Dinner\"\n");
    assert_eq!(file(), text);
    assert_eq!(home.run(&[&edit[..], &["--yes"]].concat()).expect(0).stderr, "no change\n");
    home.write("dinner.yaml", &text.replace("type: rating", "type: ratting"));
    let refused = home.run(&[&edit[..], &["--yes"]].concat()).expect(6);
    assert!(refused.stderr.contains("--> dinner.yaml:"), "{refused:?}");
    let mixed = home.run(&[&edit[..], &["--title", "T"]].concat()).expect(2);
    assert!(mixed.stderr.contains("cannot be used with"), "{mixed:?}");
}

#[test]
fn only_the_changed_fields_are_shown_and_sent() {
    const BEFORE: &str = r#"{"slug":"s","title":"T","questions":[{"id":"a","type":"rating","title":"A","max":5},
        {"type":"page","title":"P"},{"id":"b","type":"email","title":"B"}],"settings":{"closed":true,
        "confirmation":{"message":"M"},"max_responses":7}}"#;
    let home = Home::new();
    home.write("before.json", BEFORE);
    let id = home.ok(&[&DATA[..], &["create", "-f", "before.json"]].concat());
    let questions = |list: &str| format!(r#"{{"questions":[{list}]}}"#);
    let [rating, page, email] = [
        r#"{"id":"a","type":"rating","title":"A","max":5}"#,
        r#"{"type":"page","title":"P"}"#,
        r#"{"id":"b","type":"email","title":"B"}"#,
    ];
    let cases = [
        (r#""title":"T""#, r#""title":"U""#, "~ title  \"T\" → \"U\"", r#"{"title":"U"}"#.to_owned()),
        (r#""slug":"s","#, "", "- slug  \"s\"", r#"{"slug":null}"#.to_owned()),
        (
            r#"{"message":"M"}"#,
            r#"{"redirect_url":"https://a.b"}"#,
            "- settings.confirmation.message  \"M\"\n+ settings.confirmation.redirect_url  \"https://a.b\"",
            r#"{"settings":{"confirmation":{"redirect_url":"https://a.b","message":null}}}"#.to_owned(),
        ),
        (":7", ":8", "~ settings.max_responses  7 → 8", r#"{"settings":{"max_responses":8}}"#.to_owned()),
        (
            email,
            r#"{"id":"c","type":"url","title":"C"}"#,
            "+ c  url \"C\", after page \"P\"\n- b  email \"B\"",
            questions(&format!(r#"{rating},{page},{{"id":"c","type":"url","title":"C"}}"#)),
        ),
        (
            r#""max":5"#,
            r#""max":7,"required":false"#,
            "~ a.max  5 → 7",
            questions(&format!(r#"{{"id":"a","type":"rating","title":"A","max":7}},{page},{email}"#)),
        ),
        (
            r#"{"type":"page","title":"P"},"#,
            r#"{"id":"n","type":"number","title":"N","min":1.10},"#,
            "+ n         number \"N\", after a\n- page \"P\"",
            questions(&format!(r#"{rating},{{"id":"n","type":"number","title":"N","min":1.10}},{email}"#)),
        ),
        (
            r#"{"type":"page","title":"P"},{"id":"b","type":"email","title":"B"}"#,
            r#"{"id":"b","type":"email","title":"B"},{"type":"page","title":"P"}"#,
            "↕ b  moved after a",
            questions(&format!("{rating},{email},{page}")),
        ),
    ];
    for (old, new, shown, sent) in cases {
        assert!(BEFORE.contains(old), "{old}");
        home.write("after.json", &BEFORE.replace(old, new));
        let run = edit(&home, id.trim(), &["-f", "after.json", "--yes", "--dry-run", "-vv"]).expect(0);
        let lines =
            |prefix: &'static str| run.stderr.lines().filter_map(move |line| line.strip_prefix(prefix));
        assert_eq!(lines("  ").collect::<Vec<_>>().join("\n"), shown, "{new}");
        assert_eq!(lines("> ").collect::<Vec<_>>(), [&sent], "{new}");
    }
}

#[test]
fn numbers_with_different_text_are_different() {
    let home = Home::new();
    let id = home.published_form(&DATA);
    for (min, shown) in [("1.10", "+ n      number"), ("1.1", "1.10 → 1.1"), ("1.1", "no change")] {
        home.write(
            "min.yaml",
            &format!("title: T\nquestions: [{{id: n, type: number, title: N, min: {min}}}]\n"),
        );
        let run = edit(&home, &id, &["-f", "min.yaml", "--yes"]).expect(0);
        assert!(run.stderr.contains(shown), "{min} {run:?}");
    }
}
