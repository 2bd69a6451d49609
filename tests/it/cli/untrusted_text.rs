//! Text written by others cannot control a terminal or run as a formula in a spreadsheet.

use super::Home;
use super::fake_server::{FakeServer, operator_key, send};
use super::terminal::Session;

/// A form in a list.
fn form(title: &str) -> serde_json::Value {
    serde_json::json!({
        "id": "frm_7k2m9q4x1abz", "title": title, "status": "published", "response_count": 0,
        "created_at": "2026-11-20T09:00:00.000Z", "updated_at": "2026-11-20T09:00:00.000Z",
    })
}

#[test]
fn csv_escapes_formulas_and_keeps_numbers() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    for answer in ["q1==1+1", "q1=-5", "q1=a,\"b\""] {
        home.ok(&["--data", "store", "submit", &id, answer, "q3=4"]);
    }
    let csv = home.ok(&["--data", "store", "responses", &id, "-o", "csv"]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "id,submitted_at,q1,q2,q3");
    assert!(lines[1].ends_with(",\"a,\"\"b\"\"\",,4"), "{csv}");
    assert!(lines[2].ends_with(",-5,,4"), "{csv}");
    assert!(lines[3].ends_with(",'=1+1,,4"), "{csv}");
    let raw = home.ok(&["--data", "store", "responses", &id, "-o", "csv", "--raw"]);
    assert!(raw.lines().nth(3).unwrap().ends_with(",=1+1,,4"), "{raw}");
}

#[test]
fn answers_in_jsonl_keep_their_text_on_one_line() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    // Sent by another client, with line breaks between tokens and a number in a special notation.
    let body = "{\"answers\":{\n  \"q1\": \"hello\",\r\n  \"q3\": 4.0\n}}";
    let path = format!("/api/v1/forms/{id}/submissions");
    send(&server.url, "POST", &path, &operator_key(&home), body);
    let line = home.ok(&["responses", &id, "-o", "jsonl"]);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("\"q3\": 4.0"), "{line}");
}

#[test]
fn control_characters_in_a_list_are_escaped() {
    let title = "\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}tab\there\nend";
    let body = serde_json::json!({ "forms": [form(title)] }).to_string();
    let server = FakeServer::with_replies(vec![FakeServer::ok(&body)]);
    let list = Home::new().run(&["--url", &server.url, "list"]).expect(0);
    assert!(!list.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{list:?}");
    assert!(list.stdout.contains("\\u{1b}]0;pwn\\u{7}\\u{9b}31m\\u{202e}tab\\there\\nend"), "{list:?}");
}

#[test]
fn control_characters_are_escaped_in_every_format_on_a_terminal() {
    let evil = "\u{1b}]0;pwn\u{7}\u{9b}31m\u{202e}\r";
    let time = "2026-11-20T09:00:00.000Z";
    let question = serde_json::json!({
        "id": "q1", "type": "single_choice", "title": evil, "required": true, "description": evil,
        "options": [evil, {"value": "a", "label": evil}], "show_if": {"q0": evil},
    });
    let form = serde_json::json!({
        "id": "frm_7k2m9q4x1abz", "title": evil, "description": evil, "status": "published", "version": 1,
        "accepting": true, "questions": [question], "settings": {"closed_message": evil},
        "response_count": 1, "created_at": time, "updated_at": time,
    });
    let submission = serde_json::json!({
        "id": "sub_01k3v8m2f4q6s8t0w2y4z6a8bc", "form_id": "frm_7k2m9q4x1abz", "status": "completed",
        "answers": {"q1": evil}, "metadata": {"from": evil}, "submitted_at": time, "form_version": 1,
    });
    let list = serde_json::json!({ "forms": [form] });
    let submissions = serde_json::json!({ "submissions": [submission], "next_cursor": null });
    let id = submission["id"].as_str().unwrap();
    let commands: [(&[&str], &[&serde_json::Value]); 5] = [
        (&["list"], &[&list]),
        (&["show", "f"], &[&form]),
        (&["responses", "f"], &[&form, &submissions]),
        (&["responses", "show", "f", id], &[&submission, &form]),
        (&["submit", "f", "q1=x"], &[&form]),
    ];
    for (command, bodies) in commands {
        for format in ["table", "json", "jsonl", "yaml", "csv"] {
            let replies = bodies.iter().map(|body| FakeServer::ok(&body.to_string())).collect();
            let server = FakeServer::with_replies(replies);
            let arguments = [&["--url", &server.url, "--retries", "0", "-o", format], command].concat();
            let (_, screen) = Session::start(&Home::new(), &[("NO_COLOR", "1")], &arguments).finish();
            let screen = screen.replace("\u{1b}[?25h", "").replace("\r\n", "\n");
            let has_control_characters = screen.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r']);
            assert!(!has_control_characters && screen.contains("pwn"), "{command:?} -o {format}: {screen:?}");
        }
    }
}

#[test]
fn json_on_a_terminal_has_json_escapes() {
    let title = "a\u{202e}b\u{9b}c\u{1b}";
    let list = serde_json::json!({ "forms": [form(title)] });
    for format in ["json", "jsonl"] {
        let server = FakeServer::with_replies(vec![FakeServer::ok(&list.to_string())]);
        let arguments = ["--url", &server.url, "list", "-o", format];
        let (_, screen) = Session::start(&Home::new(), &[("NO_COLOR", "1")], &arguments).finish();
        let json = screen.replace("\u{1b}[?25h", "");
        assert!(json.contains(r#""a\u202eb\u009bc\u001b""#), "{json:?}");
        let shown: serde_json::Value = serde_json::from_str(&json).expect(&json);
        assert_eq!(shown.pointer("/forms/0").unwrap_or(&shown)["title"], title);
    }
}

#[test]
fn commands_in_hints_are_quoted_for_the_shell() {
    let home = Home::new();
    let hint = |arguments: &[&str]| {
        let run = home.run(arguments).expect(2);
        run.stderr.split_once("= help: ").unwrap().1.trim_end().to_owned()
    };
    assert_eq!(hint(&["create", "x; touch y"]), "forms create -f 'x; touch y'");
    assert_eq!(hint(&["create", "$(touch y)"]), "forms create -f '$(touch y)'");
    assert!(hint(&["--data", "no such;dir", "list"]).contains("--data 'no such;dir', or"));
    let stray = hint(&["create", "x\u{1b}[31m\u{202e}"]);
    assert_eq!(stray, "forms create -f $'x\\U0000001b[31m\\U0000202e'");
    let file = home.write("esc\u{1b}[31m.yaml", "title: T\n");
    let result = home.ok(&["validate", file.file_name().unwrap().to_str().unwrap()]);
    assert_eq!(result, "esc\\u{1b}[31m.yaml: ok\n");
}
