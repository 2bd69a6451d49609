//! `forms submit --file` with many rows.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::Home;

const FORM: &str = "\
title: Visit
slug: visit
questions:
  - {id: name, type: short_text, title: Your name, required: true}
  - {id: score, type: rating, title: How was it?}
  - {id: colours, type: multiple_choice, title: Colours, options: [{value: red, label: Deep red}, {value: sea, label: Blue; sea}, green], allow_other: true}
  - {id: ok, type: boolean, title: All right?}
  - {id: day, type: date, title: Which day}
  - {id: at, type: datetime, title: When}
  - {id: rooms, type: matrix, title: Rooms, rows: [{value: a, label: Room A}, b], columns: [good, {value: bad, label: Bad one}]}
";

const TABLE: &str = "\u{feff}\
Your name,how was it? ,Colours,ok,day,When,Rooms,submitted_at,seen
Ada,5,Deep red; Blue; sea; pink,Yes,2026-01-02,2026-01-02,Room A: Bad one; b: good,2020,1999
\"Bob, \"\"B\"\"\",3,green,false,,,,2020,
,,, ,,,,,
'=1+1,,,,,,,,
";

fn home() -> Home {
    let home = Home::new();
    home.write("visit.yaml", FORM);
    home.ok(&["--data", "store", "create", "--publish", "-f", "visit.yaml"]);
    home
}

/// Returns the answers and metadata of all submissions, oldest first.
fn stored(home: &Home) -> Vec<Value> {
    let all = home.ok(&["--data", "store", "responses", "visit", "-o", "jsonl"]);
    let row = |line: &str| {
        let whole: Value = serde_json::from_str(line).unwrap();
        json!([whole["answers"], whole["metadata"]])
    };
    all.lines().rev().map(row).collect()
}

#[test]
fn a_table_is_read_by_titles_and_labels_and_submitted_once() {
    let home = home();
    home.write("a.csv", TABLE);
    let submit = ["--data", "store", "submit", "visit", "--file", "a.csv", "--metadata", "seen"];
    let tried = home.run(&[&submit[..], &["--dry-run"]].concat()).expect(0);
    assert_eq!(tried.stdout, "");
    assert!(tried.stderr.contains("columns that are not imported: submitted_at"), "{}", tried.stderr);
    assert!(tried.stderr.contains("3 rows would be accepted; nothing was stored"), "{}", tried.stderr);
    let ids = home.ok(&submit);
    let rows = json!([
        [
            {
                "name": "Ada", "score": 5, "colours": ["red", "sea", {"other": "pink"}], "ok": true,
                "day": "2026-01-02", "at": "2026-01-02T00:00:00Z", "rooms": {"a": "bad", "b": "good"}
            },
            {"seen": "1999"}
        ],
        [{"name": "Bob, \"B\"", "score": 3, "colours": ["green"], "ok": false}, null],
        [{"name": "=1+1"}, null]
    ]);
    assert_eq!(json!(stored(&home)), rows);
    // Again, it is the same import.
    let again = home.run(&submit).expect(0);
    assert_eq!(again.stdout, ids);
    assert!(
        again.stderr.contains("3 rows submitted to \"Visit\", 3 of them by an earlier"),
        "{}",
        again.stderr
    );
    let results = home.run(&[&submit[..], &["-o", "json"]].concat()).expect(0).json();
    assert_eq!(results[2]["id"], ids.lines().last().unwrap());
    assert_eq!(results[2]["row"], 5);
    assert_eq!(json!(stored(&home)), rows);
}

#[test]
fn what_was_exported_is_imported_again_in_every_format() {
    let home = home();
    home.write("a.csv", TABLE);
    home.ok(&["--data", "store", "submit", "visit", "--file", "a.csv", "--metadata", "seen"]);
    let all = stored(&home);
    let answers = |rows: &[Value]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let responses = ["--data", "store", "responses", "visit"];
    let lines = home.ok(&[&responses[..], &["-o", "jsonl"]].concat());
    home.write("b.jsonl", &lines.lines().rev().map(|line| format!("{line}\n\n")).collect::<String>());
    let list: Vec<Value> = lines.lines().rev().map(|line| serde_json::from_str(line).unwrap()).collect();
    home.write("b.json", &json!(list.iter().map(|one| &one["answers"]).collect::<Vec<_>>()).to_string());
    home.ok(&[&responses[..], &["-o", "xlsx", "--to", "b.xlsx"]].concat());
    home.ok(&[&responses[..], &["-o", "csv", "--to", "b.csv"]].concat());
    for (file, keeps_order) in [("b.jsonl", true), ("b.json", true), ("b.xlsx", false), ("b.csv", false)] {
        home.ok(&["--data", "store", "submit", "visit", "--file", file]);
        let mut now = answers(&stored(&home)[all.len()..]);
        if !keeps_order {
            now.reverse();
        }
        assert_eq!(now[now.len().saturating_sub(3)..].len(), 3, "{file}");
        let expected = answers(&all);
        let last: Vec<_> = if keeps_order { now[now.len() - 3..].to_vec() } else { now[..3].to_vec() };
        assert_eq!(last, expected, "{file}");
    }
}

#[test]
fn all_problems_of_all_rows_are_reported_and_nothing_is_sent() {
    let home = home();
    home.write("a.csv", "name;score;day\nAda;9;2026-13-01\n;1;\nx;y;z;w\n");
    home.write("b.jsonl", "{\"name\":\"Ada\"}\n{\n{\"answers\":{\"nme\":1},\"x\":1}\n{\"nme\":\"Bob\"}\n7\n");
    home.write("c.csv", "name,colour,score,How was it?,\nAda,1,2,3,4\n");
    let submit = |file| home.run(&["--data", "store", "submit", "visit", "--file", file]);
    for (file, code, expected) in [
        (
            "a.csv",
            6,
            &[
                "error[out_of_range]: line 2, `score`: ",
                "error[invalid_date]: line 2, `day`: ",
                "error[required]: line 3, `name`: ",
                "error[malformed_file]: line 4: it has 4 cells, the header has 3",
                "error: a.csv: 4 problems found, nothing was sent",
            ][..],
        ),
        (
            "b.jsonl",
            6,
            &[
                "error[malformed_json]: line 2: ",
                "error[unknown_field]: line 3: unknown field `x`",
                "error[unknown_question]: line 4, `/answers/nme`: ",
                "error[required]: line 4, `name`: ",
                "error[type_mismatch]: line 5: expected an object such as {\"q1\": \"hello\"}, found a number",
            ],
        ),
        ("c.csv", 2, &["column `colour` is not a question of the form; a similar one exists: `colours`"]),
        ("none.csv", 2, &["cannot read none.csv: there is no such file"]),
    ] {
        let refused = submit(file).expect(code);
        for text in expected {
            assert!(refused.stderr.contains(text), "{text}:\n{}", refused.stderr);
        }
    }
    home.write("d.csv", "name,score,How was it?,\nAda,1,2,\n");
    assert!(
        submit("d.csv").expect(2).stderr.contains("`score` and `How was it?` belong to the same question")
    );
    home.write("d.csv", "name,\nAda,\nBob,x\n");
    assert!(submit("d.csv").expect(6).stderr.contains("line 3: column 2 has no name, but a value: x"));
    home.write("f.csv", "name,score\r\n\r\nAda,1\r\n\r\nBob,9\r\n");
    assert!(submit("f.csv").expect(6).stderr.contains("line 5, `score`: "));
    home.write("e.xlsx", "no workbook");
    submit("e.xlsx").expect(2);
    // A cell at the far end of a sheet takes no memory for those before it.
    let mut workbook = rust_xlsxwriter::Workbook::new();
    let sheet = workbook.add_worksheet();
    sheet.write_string(0, 0, "name").unwrap();
    sheet.write_string(1_048_575, 16_383, "far").unwrap();
    workbook.save(home.path().join("far.xlsx")).unwrap();
    assert!(submit("far.xlsx").expect(2).stderr.contains("far.xlsx has more than 1000 columns"));
    std::fs::create_dir(home.path().join("folder.csv")).unwrap();
    assert!(submit("folder.csv").expect(2).stderr.contains("folder.csv is not a file"));
    assert!(stored(&home).is_empty());
}

#[test]
fn an_import_that_was_stopped_adds_exactly_what_is_missing() {
    let home = home();
    let rows: String = (0..2_500).map(|number| format!("n{number},{}\n", number % 5 + 1)).collect();
    home.write("a.csv", &format!("name,score\n{rows}"));
    let server = home.serve();
    let submit = ["submit", "visit", "--file", "a.csv"];
    let mut command = home.command(&submit);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let ids = home.ok(&submit);
    assert_eq!((ids.lines().count(), ids.lines().next()), (2_500, Some(first.trim())));
    let form: Value = serde_json::from_str(&home.ok(&["show", "visit", "-o", "json"])).unwrap();
    assert_eq!(form["response_count"], 2_500);
    drop(server);
}

#[test]
fn a_file_that_grows_while_it_is_sent_is_not_taken_for_whole() {
    let home = home();
    let rows: String = (0..4_000).map(|number| format!("n{number},1\n")).collect();
    let file = home.write("a.csv", &format!("name,score\n{rows}"));
    let _server = home.serve();
    let mut command = home.command(&["submit", "visit", "--file", "a.csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its output is larger than a pipe, so it waits here.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    std::fs::write(file, format!("name,score\n{rows}late,1\n")).unwrap();
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{errors}");
    assert!(errors.contains("a.csv was changed after its rows were checked"), "{errors}");
}

#[test]
fn rows_that_the_server_refuses_are_named() {
    let home = home();
    home.write("a.jsonl", "{\"name\":\"1\"}\n{\"name\":\"2\"}\n{\"name\":\"3\"}\n");
    home.write("visit.yaml", &FORM.replace("slug: visit", "slug: small\nsettings: {max_responses: 2}"));
    home.ok(&["--data", "store", "create", "--publish", "-f", "visit.yaml"]);
    let submit = ["--data", "store", "submit", "small", "--file", "a.jsonl"];
    let refused = home.run(&submit).expect(8);
    assert_eq!(refused.stdout.lines().count(), 2);
    assert!(refused.stderr.contains("error[form_full]: line 3: "), "{}", refused.stderr);
    // What was refused is sent again once the form has more room.
    home.ok(&["--data", "store", "edit", "small", "--set", "settings.max_responses=9", "--yes"]);
    assert_eq!(home.ok(&submit).lines().count(), 3);
    assert_eq!(home.ok(&["--data", "store", "responses", "small", "-o", "jsonl"]).lines().count(), 3);
    let refused = home.run(&["--data", "store", "submit", "visit", "--file", "a.jsonl", "name=x"]).expect(2);
    assert!(refused.stderr.contains("`name=x` cannot be added to the rows"), "{}", refused.stderr);
    home.write("one.yaml", "name: Ada\n");
    home.run(&["--data", "store", "submit", "visit", "--file", "one.yaml", "--metadata", "x"]).expect(2);
}
