//! Servers of newer versions, servers in another language, and other HTTP servers.

use serde_json::{Value, json};

use super::Home;
use super::fake_server::{FakeServer, Reply};

const TIME: &str = "2026-11-20T09:00:00.000Z";

/// A problem document with this status, code and additional fields.
fn problem(status: &str, code: &str, members: Value) -> Reply {
    let mut body = json!({
        "type": format!("/problems/{code}"), "title": "Nein", "code": code, "detail": "Das geht nicht",
        "status": status[..3].parse::<u16>().unwrap(), "retry_plan": {"after": 1.50},
    });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    FakeServer::status(status, "content-type: application/problem+json\r\n", &body.to_string())
}

/// A form with an unknown status, reason, question type and fields.
fn form() -> Value {
    json!({
        "id": "frm_7k2m9q4x1abz", "title": "Lunch", "slug": "lunch", "status": "archived", "version": 1,
        "accepting": false, "accepting_reason": "paused_by_owner",
        "questions": [
            {"id": "q1", "type": "signature", "title": "Sign", "required": true},
            {"id": "q3", "type": "rating", "title": "How was it?", "required": false},
        ],
        "settings": {"theme": "dark", "confirmation": {"page": "thanks"}, "max_responses": 9}, "response_count": 2, "created_at": TIME, "updated_at": TIME,
        "owner": {"name": "Ada"},
    })
}

fn submission() -> Value {
    json!({
        "id": "sub_01k3v8m2f4q6s8t0w2y4z6a8bc", "form_id": "frm_7k2m9q4x1abz", "status": "partial",
        "answers": {"q1": "x"}, "submitted_at": TIME, "form_version": 1, "score": 0.25,
    })
}

/// Runs the command against a server with these replies.
fn run(home: &Home, replies: Vec<Reply>, arguments: &[&str]) -> super::Run {
    let server = FakeServer::with_replies(replies);
    home.run(&[&["--url", &server.url, "--retries", "0"], arguments].concat())
}

#[test]
fn the_exit_code_of_an_unknown_code_follows_from_the_status() {
    let home = Home::new();
    for (status, code, exit) in [
        ("404 Not Found", "form_archived", 3),
        ("410 Gone", "form_gone", 3),
        ("403 Forbidden", "plan_exceeded", 4),
        ("409 Conflict", "form_frozen", 5),
        ("402 Payment Required", "unpaid", 6),
        ("503 Service Unavailable", "moving_house", 7),
    ] {
        let result = run(&home, vec![problem(status, code, json!({}))], &["show", "f"]).expect(exit);
        assert_eq!(result.stderr, format!("error[{code}]: Das geht nicht\n"), "{result:?}");
        let result =
            run(&home, vec![problem(status, code, json!({}))], &["show", "f", "-o", "json"]).problem();
        assert_eq!((&result["code"], &result["exit"]), (&json!(code), &json!(exit)), "{result}");
        assert_eq!(result["retry_plan"], json!({"after": 1.50}), "{result}");
    }
}

#[test]
fn the_status_in_the_body_of_a_problem_document_is_ignored() {
    let result = problem("403 Forbidden", "plan_exceeded", json!({"status": 500}));
    run(&Home::new(), vec![result], &["show", "f"]).expect(4);
}

#[test]
fn an_error_without_a_problem_document_comes_from_another_server() {
    let home = Home::new();
    for (status, body, message) in [
        ("403 Forbidden", "<html><h1>403</h1></html>", "is not a forms server: it responded 403 Forbidden"),
        ("404 Not Found", "{\"error\":\"nothing\"}", "is not a forms server: it responded 404 Not Found"),
        ("499 Strange", "", "is not a forms server: it responded 499"),
        ("501 Not Implemented", "<html>", "is not a forms server: it responded 501 Not Implemented"),
        ("302 Found", "", "is not a forms server: it responded 302 Found"),
        ("502 Bad Gateway", "", "cannot serve the request now: it responded 502 Bad Gateway"),
    ] {
        for command in [&["list"][..], &["show", "f"], &["delete", "--yes", "f"]] {
            let result = run(&home, vec![FakeServer::status(status, "", body)], command).expect(7);
            let first = result.stderr.lines().next().unwrap();
            assert!(first.starts_with("error: http://") && first.ends_with(message), "{result:?}");
            assert!(result.stderr.contains("\n  = note: address from: the command line\n"), "{result:?}");
        }
        let replies = vec![FakeServer::status(status, "", body)];
        let result = run(&home, replies, &["show", "f", "-o", "json"]).problem();
        assert_eq!((&result["code"], &result["exit"]), (&json!("unexpected_answer"), &json!(7)), "{result}");
    }
}

#[test]
fn after_an_error_of_a_proxy_the_change_may_have_been_made() {
    let replies = vec![FakeServer::status("502 Bad Gateway", "", "")];
    let result = run(&Home::new(), replies, &["create", "--title", "A", "-Q", "email:B"]).expect(7).stderr;
    assert!(
        result.contains("= note: the response was lost: the request may have been carried out"),
        "{result}"
    );
}

#[test]
fn a_response_of_more_than_64_mib_is_refused() {
    let home = Home::new();
    let endless = |status: &str, sent: usize| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 10000000000\r\n\r\n");
        Reply::Bytes([head.as_bytes(), &vec![b' '; sent]].concat())
    };
    let result = run(&home, vec![endless("200 OK", 70 << 20)], &["list"]).expect(7);
    let unexpected = "is not a forms server: its answer has more than 64 MiB\n";
    assert!(result.stderr.contains(unexpected) && !result.stderr.contains("start one"), "{result:?}");
    let result = run(&home, vec![endless("200 OK", 70 << 20)], &["close", "f"]).expect(7);
    let unsure = "= note: the response was lost: the request may have been carried out";
    assert!(result.stderr.contains(unexpected) && result.stderr.contains(unsure), "{result:?}");
}

#[test]
fn an_unknown_code_cannot_control_the_terminal() {
    let home = Home::new();
    let errors = json!([{"pointer": "/title", "code": "b\u{9b}31m", "message": "Nein"}]);
    let refused = vec![problem("422 Unprocessable Content", "a\u{1b}[31m", json!({"errors": errors}))];
    let result = run(&home, refused, &["create", "--title", "A"]).expect(6).stderr;
    assert!(result.starts_with("error[b\\u{9b}31m]: "), "{result}");
    let refused = vec![problem("409 Conflict", "a\u{1b}[31m", json!({}))];
    let result = run(&home, refused, &["show", "f"]).expect(5).stderr;
    assert_eq!(result, "error[a\\u{1b}[31m]: Das geht nicht\n");
}

#[test]
fn a_malformed_problem_document_is_not_one() {
    let home = Home::new();
    for malformed in
        [json!({"errors": {"a": 1}}), json!({"title": 1}), json!({"errors": [{"code": "shouting"}]})]
    {
        let refused = vec![problem("422 Unprocessable Content", "policy", malformed.clone())];
        let result = run(&home, refused, &["create", "--title", "A"]).expect(7).stderr;
        assert!(result.contains("is not a forms server"), "{malformed}: {result}");
    }
}

#[test]
fn a_form_with_an_unknown_question_type_can_be_edited() {
    let home = Home::new();
    let mut form = form();
    form["questions"] = json!([
        {"id": "q1", "type": "signature", "title": "Sign", "ink": "blue"},
        {"id": "q3", "type": "rating", "title": "How was it?", "glow": {"a": [1.50]}, "show_if": {"q1": {"signed_by": "x"}}},
        {"type": "banner", "title": "Bye"},
    ]);
    let etag = "etag: \"r1\"\r\n";
    let answer = || FakeServer::status("200 OK", etag, &form.to_string());
    let text = run(&home, vec![answer()], &["show", "f", "-o", "yaml"]).expect(0).stdout;
    let edit = |text: &str, replies: Vec<Reply>| {
        home.write("f.yaml", text);
        let server = FakeServer::with_replies(replies);
        (home.run(&["--url", &server.url, "edit", "f", "-f", "f.yaml", "--yes"]), server)
    };
    let moved =
        text.replace("questions:\n", "questions:\n- {type: email, title: E}\n").replace("Lunch", "Dinner");
    let (sent, server) = edit(&moved, vec![answer(), answer()]);
    sent.expect(0);
    let patch = server.into_requests().pop().unwrap();
    assert!(patch.contains("\"title\":\"Dinner\"") && patch.contains("\"ink\":\"blue\""), "{patch}");
    for (old, new, code) in [
        ("signature", "signatur", "unknown_question_type"),
        ("ink: blue", "ink: red", "unknown_field"),
        ("ink: blue", "inc: blue", "unknown_field"),
        ("signed_by: x", "signed_of: x", "unknown_field"),
        ("title: Lunch", "title: Lunch\ntheme: dark", "unknown_field"),
    ] {
        assert!(text.contains(old), "{text}");
        let refused = edit(&text.replace(old, new), vec![answer()]).0.expect(6).stderr;
        assert_eq!(refused.matches("error[").count(), 1, "{refused}");
        assert!(refused.contains(&format!("error[{code}]")), "{refused}");
    }
}

#[test]
fn an_unknown_status_is_checked_by_the_server() {
    let home = Home::new();
    let server = FakeServer::with_replies(vec![FakeServer::ok(&json!({"forms": [form()]}).to_string())]);
    let listed = home.run(&["--url", &server.url, "list", "--status", "In Review"]).expect(0).stdout;
    assert!(listed.contains("\tarchived\t"), "{listed}");
    assert!(server.into_requests()[0].contains("status=in_review"));
    let errors = json!([{"pointer": "/status", "code": "not_an_option", "message": "Nie", "allowed": ["draft", "archived"]}]);
    let refused = vec![problem("400 Bad Request", "invalid_query", json!({"errors": errors}))];
    let result = run(&home, refused, &["list", "--status", "open"]).expect(2).stderr;
    let expected = "error: invalid --status `open`: \
                    expected one of: draft, published, closed, full, expired, not_open_yet, archived\n";
    assert_eq!(result, expected);
}

#[test]
fn unknown_problems_are_shown_in_the_file_with_their_help() {
    let home = Home::new();
    home.write(
        "lunch.yaml",
        "title: LUNCH\nslug: lunch\nquestions:\n  - {id: a, type: rating, title: Taste}\n  - {id: aa, type: rating, title: Price}\n",
    );
    let errors = json!([
        {"pointer": "/title", "code": "shouting", "message": "Nicht so laut", "help": "schreib es klein", "since": 7},
        {"pointer": "/slug", "code": "slug_taken", "message": "Vergeben"},
        {"pointer": "/questions/0/title", "code": "not_a_topic", "message": "Unbekannt", "allowed": ["Tastes", "Size"]},
        {"pointer": "/questions/1/id", "code": "similar_id", "message": "Fast gleich", "related": "/questions/0/id"},
        {"pointer": "/questions/1/type", "code": "type_not_in_plan", "message": "Nicht im Plan", "allowed": ["email", "date"]},
    ]);
    let refused = || vec![problem("422 Unprocessable Content", "policy", json!({"errors": errors}))];
    let result = run(&home, refused(), &["create", "-f", "lunch.yaml"]).expect(6).stderr;
    let after: String = result.split("lunch.yaml: ").nth(1).unwrap().to_owned();
    assert_eq!(after, "5 problems found\n", "{result}");
    for part in [
        "error[shouting]: Nicht so laut\n --> lunch.yaml:1:8\n",
        "= help: schreib es klein\n",
        "error[slug_taken]: Vergeben\n --> lunch.yaml:2:7\n",
        "^^^^^ in use\n",
        " --> lunch.yaml:4:34\n",
        "= help: a similar name exists: `Tastes`\n",
        "4 |   - {id: a, type: rating, title: Taste}\n  |          - see here\n5 |   - {id: aa,",
        "= help: expected one of: email, date\n",
    ] {
        assert!(result.contains(part), "{part:?} is not in {result}");
    }
    let result = run(&home, refused(), &["create", "-f", "lunch.yaml", "-o", "json"]).problem();
    assert_eq!(
        (&result["code"], &result["status"], &result["exit"]),
        (&json!("policy"), &json!(422), &json!(6))
    );
    assert_eq!(result["retry_plan"], json!({"after": 1.50}));
    let first = &result["errors"][0];
    assert_eq!((&first["code"], &first["since"], &first["line"]), (&json!("shouting"), &json!(7), &json!(1)));
}

#[test]
fn unknown_problems_without_a_file_name_the_question_or_field() {
    let home = Home::new();
    let errors = json!([
        {"pointer": "/questions/0/title", "code": "shouting", "message": "Nicht so laut"},
        {"pointer": "/settings/theme", "code": "unknown_field", "message": "Kenne ich nicht", "allowed": ["them"]},
    ]);
    let refused = vec![problem("422 Unprocessable Content", "policy", json!({"errors": errors}))];
    let result = run(&home, refused, &["create", "--title", "A", "-Q", "email:B"]).expect(6).stderr;
    let expected = "error[shouting]: question 1: Nicht so laut\nerror[unknown_field]: `settings`: Kenne ich nicht\n  \
                    = help: a field with a similar name exists: `them`\nerror: 2 problems, nothing was stored\n";
    assert_eq!(result, expected);
}

#[test]
fn unknown_problems_of_answers_are_shown_with_their_answer() {
    let home = Home::new();
    home.write("answers.json", "{\"q1\": \"x\",\n \"q3\": 4}\n");
    let errors = json!([
        {"pointer": "/answers/q3", "question": "q3", "code": "too_nice", "message": "Zu gut", "allowed": ["1", "2"]},
        {"pointer": "/answers/q1", "question": "q1", "code": "unsigned", "message": "Leer", "help": "unterschreib"},
    ]);
    let mut open = form();
    open.as_object_mut().unwrap().remove("accepting_reason");
    let replies = |errors: &Value| {
        let refused = problem("422 Unprocessable Content", "policy", json!({"errors": errors}));
        vec![FakeServer::ok(&open.to_string()), refused]
    };
    let result = run(&home, replies(&errors), &["submit", "f", "q1=x", "q3=4"]).expect(6).stderr;
    let expected = "error[too_nice]: Zu gut\n  = help: expected one of: 1, 2\nerror[unsigned]: Leer\n  \
                    = help: unterschreib\nerror: 2 problems, nothing was sent\n";
    assert_eq!(result, expected);
    let result = run(&home, replies(&errors), &["submit", "f", "--file", "answers.json"]).expect(6).stderr;
    assert!(result.contains("error[too_nice]: Zu gut\n --> answers.json:2:8\n"), "{result}");
    // A known problem is shown like one that is found here.
    let known =
        json!([{"pointer": "/answers/q3", "question": "q3", "code": "out_of_range", "message": "Zu viel"}]);
    let result = run(&home, replies(&known), &["submit", "f", "q1=x", "q3=9"]).expect(6).stderr;
    let expected = "error[out_of_range]: \"How was it?\": Zu viel\n  \
                    = help: q3=… expects a whole number from 1 to 5\nerror: 1 problem, nothing was sent\n";
    assert_eq!(result, expected);
}

#[test]
fn unknown_statuses_reasons_types_and_fields_are_shown_unchanged() {
    let home = Home::new();
    let (form, submission) = (form(), submission());
    let list = json!({"forms": [form]});
    let submissions = json!({"submissions": [submission], "next_cursor": null});
    // All pages are merged into one list without a cursor.
    let merged = json!({"submissions": [submission]});
    let id = submission["id"].as_str().unwrap();
    let commands: [(&[&str], &[&Value], &Value); 8] = [
        (&["list"], &[&list], &list),
        (&["show", "f"], &[&form], &form),
        (&["publish", "f"], &[&form], &form),
        (&["restore", "f"], &[&form], &form),
        (&["edit", "f", "--set", "title=Lunch"], &[&form], &form),
        (&["responses", "f"], &[&form, &submissions], &merged),
        (&["responses", "show", "f", id], &[&submission], &submission),
        (&["submit", "f", "q1=x"], &[&form, &submission], &submission),
    ];
    for (command, bodies, shown) in commands {
        let etag = "etag: \"r1\"\r\n";
        let replies =
            bodies.iter().map(|body| FakeServer::status("200 OK", etag, &body.to_string())).collect();
        let result = run(&home, replies, &[command, &["-o", "json"]].concat()).expect(0);
        assert_eq!(serde_json::from_str::<Value>(&result.stdout).unwrap(), *shown, "{command:?}");
    }
    let shown = run(&home, vec![FakeServer::ok(&form.to_string())], &["show", "f"]).expect(0).stdout;
    assert!(shown.contains("status:     archived\naccepting:  no: paused by owner\n"), "{shown}");
    assert!(shown.ends_with("settings:      max_responses: 9\n"), "{shown}");
    let listed = run(&home, vec![FakeServer::ok(&list.to_string())], &["list"]).expect(0).stdout;
    assert!(listed.contains("\tarchived\t"), "{listed}");
    let message = run(&home, vec![FakeServer::ok(&form.to_string())], &["publish", "f"]).expect(0).stderr;
    assert_eq!(message, "\"Lunch\" does not accept answers: paused by owner\n");
}

#[test]
fn problems_of_a_filter_are_shown_with_the_flag_for_unknown_codes_too() {
    let home = Home::new();
    let refused = |errors: Value| {
        vec![
            FakeServer::ok(&form().to_string()),
            problem("400 Bad Request", "invalid_query", json!({"errors": errors})),
        ]
    };
    let command = ["responses", "f", "--where", "q3.gte=9", "--where", "q3.gt=2", "--since", "2026-01-01"];
    let errors = json!([
        {"pointer": "/filter/q3/gte", "code": "impossible_condition", "message": "Nie"},
        {"pointer": "/since", "code": "before_the_flood", "message": "Zu alt"},
    ]);
    let result = run(&home, refused(errors), &command).expect(6).stderr;
    assert!(
        result.starts_with("error[invalid_query]: `--where q3.gte`: Nie; `--since`: Zu alt\n"),
        "{result}"
    );
    let errors = json!([{"pointer": "/filter/q3", "code": "unknown_question", "message": "Weg"}]);
    let result = run(&home, refused(errors), &command).expect(2).stderr;
    assert!(result.starts_with("error: --where: `q3` is not a question of \"Lunch\"\n"), "{result}");
}

#[test]
fn hints_do_not_depend_on_the_messages_of_the_server() {
    let home = Home::new();
    let list = json!({"forms": [form()]}).to_string();
    let missing = vec![problem("404 Not Found", "form_not_found", json!({})), FakeServer::ok(&list)];
    let result = run(&home, missing, &["show", "lnuch"]).expect(3).stderr;
    assert_eq!(
        result,
        "error[form_not_found]: Das geht nicht\n  = help: a form with a similar slug exists: lunch\n"
    );
    let taken = vec![problem("409 Conflict", "slug_taken", json!({"form_id": "frm_000000000001"}))];
    let result = run(&home, taken, &["restore", "frm_7k2m9q4x1abz"]).expect(5).stderr;
    assert!(result.contains(" edit frm_000000000001 --slug ''"), "{result}");
}
