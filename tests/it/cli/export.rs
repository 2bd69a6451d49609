//! `forms responses export`, and the other commands on answers: `edit`, `history`, `watch`; and `forms man`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::fake_server::{FakeServer, Reply, operator_key};
use super::workbook::rows;
use super::{Home, RunningServer};

const VISIT: &str = "\
title: Visit
slug: visit
questions:
  - {id: words, type: long_text, title: Your words?}
  - {id: old, type: rating, title: How was it?}
  - {id: day, type: date, title: Which day?}
  - {id: moment, type: datetime, title: Which day?}
  - id: colours
    type: multiple_choice
    title: Colours?
    options: [{value: red, label: Rot}, {value: green, label: Grün}]
    allow_other: true
";

/// A server with a form to which two submissions were sent before one of its questions was removed, and their ids.
fn visited() -> (Home, RunningServer, [String; 2]) {
    let home = Home::new();
    let server = home.serve();
    home.write("visit.yaml", VISIT);
    home.ok(&["create", "--publish", "-f", "visit.yaml"]);
    let submit = |answers: &[&str]| home.ok(&[&["submit", "visit"], answers].concat()).trim().to_owned();
    let colours = r#"colours:=["red",{"other":"blue; \"dark\""}]"#;
    let moment = "moment=2026-11-20T10:30:00+01:00";
    let first = submit(&["words==1+1\nΩ 😀", "old=4", "day=2026-11-20", moment, colours]);
    let second = submit(&["words=hello", "colours=green"]);
    home.ok(&["edit", "visit", "--set", "questions.old="]);
    (home, server, [second, first])
}

fn export(home: &Home, arguments: &[&str]) -> String {
    home.ok(&[&["responses", "export", "--to", "out"], arguments].concat())
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path().join("out").join(name)).unwrap()
}

/// When the submissions were sent, the newest first.
fn times(home: &Home) -> Vec<String> {
    let lines = home.ok(&["responses", "visit", "-o", "jsonl"]);
    let time = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["submitted_at"].as_str().unwrap().to_owned()
    };
    lines.lines().map(time).collect()
}

#[test]
fn a_csv_file_is_the_list_of_the_server_with_removed_questions_at_the_end() {
    let (home, server, [second, first]) = visited();
    assert_eq!(export(&home, &["visit"]), "out/visit.csv\t2\n");
    let [at_second, at_first] = &times(&home)[..] else { panic!("not two submissions") };
    // A text with the separator in it is not joined.
    let blue = r#""[""red"",{""other"":""blue; \""dark\""""}]""#;
    assert_eq!(
        read(&home, "visit.csv"),
        format!(
            "id,submitted_at,words,day,moment,colours,old\n\
             {second},{at_second},hello,,,green,\n\
             {first},{at_first},\"'=1+1\nΩ 😀\",2026-11-20,2026-11-20T10:30:00+01:00,{blue},4\n"
        )
    );
    let url = format!("{}/api/v1/forms/visit/responses", server.url);
    let authorization = format!("authorization: Bearer {}", operator_key(&home));
    let arguments = ["-sS", "-H", &authorization, "-H", "accept: text/csv", &url];
    let sent = std::process::Command::new("curl").args(arguments).output().unwrap().stdout;
    assert_eq!(String::from_utf8(sent).unwrap().replace("\r\n", "\n"), read(&home, "visit.csv"));

    export(&home, &["visit", "--raw", "--labels", "--split-choices"]);
    assert_eq!(
        read(&home, "visit.csv"),
        format!(
            "id,submitted_at,Your words?,Which day? (day),Which day? (moment),Colours?/Rot,Colours?/Grün,Colours?/other,How was it?\n\
             {second},{at_second},hello,,,0,1,0,\n\
             {first},{at_first},\"=1+1\nΩ 😀\",2026-11-20,2026-11-20T10:30:00+01:00,1,0,\"blue; \"\"dark\"\"\",4\n"
        )
    );
    export(&home, &["visit", "--labels"]);
    assert!(read(&home, "visit.csv").contains(",Grün,\n"), "{}", read(&home, "visit.csv"));
}

#[test]
fn what_is_exported_can_be_submitted_again() {
    let (home, _server, _) = visited();
    home.write("copy.yaml", &VISIT.replace("slug: visit", "slug: copy"));
    home.ok(&["create", "--publish", "-f", "copy.yaml"]);
    let answers = |form: &str| {
        let lines = home.ok(&["responses", form, "-o", "jsonl"]);
        let answers =
            lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["answers"].clone());
        let mut answers: Vec<_> = answers.collect();
        answers.sort_by_key(|answers| answers["words"].to_string());
        answers
    };
    for (sent, format) in (1..).zip(["csv", "jsonl"]) {
        export(&home, &["visit", "--format", format]);
        home.ok(&["submit", "copy", "--file", &format!("out/visit.{format}")]);
        let mut found = answers("copy");
        assert_eq!(found.len(), 2 * sent);
        found.dedup();
        assert_eq!(found, answers("visit"), "{format}");
    }
}

#[test]
fn lines_are_those_of_the_list_and_a_workbook_has_dates() {
    let (home, _server, [second, _]) = visited();
    let other = home.published_form(&[]);
    let printed = export(&home, &["--all", "--format", "jsonl"]);
    assert_eq!(printed, format!("out/{other}.jsonl\t0\nout/visit.jsonl\t2\n"));
    assert_eq!(read(&home, "visit.jsonl"), home.ok(&["responses", "visit", "-o", "jsonl"]));
    assert_eq!(read(&home, &format!("{other}.jsonl")), "");

    let exported = home
        .run(&["responses", "export", "visit", "--to", "out", "--format", "xlsx", "-o", "json"])
        .expect(0);
    assert_eq!((&exported.json()["file"], &exported.json()["rows"]), (&json!("out/visit.xlsx"), &json!(2)));
    let sheet = rows(&fs::read(home.path().join("out/visit.xlsx")).unwrap(), 1);
    assert_eq!(sheet[0], ["id", "submitted_at", "words", "day", "moment", "colours", "old"]);
    assert_eq!((&*sheet[1][0], &*sheet[1][2]), (&*second, "hello"));
    assert!(sheet[1][1].parse::<f64>().unwrap() > 46_000.0, "{sheet:?}");
    // Days since 1899-12-30, in UTC.
    assert_eq!(sheet[2][3..], ["46346", "46346.395833333336", r#"["red",{"other":"blue; \"dark\""}]"#, "4"]);
}

#[test]
fn what_cannot_be_completed_leaves_the_older_file() {
    let (home, server, _) = visited();
    export(&home, &["visit"]);
    let (before, key) = (read(&home, "visit.csv"), operator_key(&home));
    let forward = || Reply::Forward(server.url.clone());
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"i";
    let fake = FakeServer::with_replies(vec![forward(), forward(), Reply::Bytes(cut.into())]);
    let variables = [("FORMS_URL", fake.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["responses", "export", "visit", "--to", "out"]).expect(7);
    assert!(run.stdout.is_empty() && run.stderr.contains("the response was cut"), "{run:?}");
    assert_eq!(read(&home, "visit.csv"), before);
    let left = fs::read_dir(home.path().join("out")).unwrap().count();
    assert_eq!(left, 1);
    assert!(fake.into_requests()[2].contains("accept: application/x-ndjson\r\n"));
    let some = home.run(&["responses", "export", "visit", "nope", "--to", "out"]).expect(8);
    assert_eq!(some.stdout, "out/visit.csv\t2\n");
}

#[test]
fn an_edit_merges_answers_and_the_history_has_what_it_replaced() {
    let (home, _server, [second, first]) = visited();
    // The question `old` is of the version that the submission was sent to.
    let edit = ["responses", "edit", "visit", &first, "old=5", "day=", "colours=red", "colours=green"];
    let edited = home.run(&edit).expect(0);
    assert_eq!((edited.stdout, edited.stderr), (format!("{first}\n"), format!("Edited {first}\n")));
    assert_eq!(home.run(&["responses", "edit", "visit", &first, "old=5"]).expect(0).stderr, "no change\n");
    let shown = home.run(&["responses", "show", "visit", &first, "-o", "json"]).json();
    let expected = json!({"words": "=1+1\nΩ 😀", "old": 5, "moment": "2026-11-20T10:30:00+01:00", "colours": ["red", "green"]});
    assert_eq!(shown["answers"], expected);
    let history = home.run(&["responses", "history", "visit", &first, "-o", "json"]).json();
    let [replaced] = &history["history"].as_array().unwrap()[..] else { panic!("{history}") };
    assert_eq!((&replaced["answers"]["old"], &replaced["answers"]["day"]), (&json!(4), &json!("2026-11-20")));
    assert_eq!(
        home.ok(&["responses", "history", "visit", &second, "-o", "csv"]),
        "replaced_at,answers,metadata\n"
    );
    let refused = home.run(&["responses", "edit", "visit", &first, "old=9", "color=red"]).expect(6);
    assert!(
        refused.stderr.contains("\"How was it?\"") && refused.stderr.contains("similar id"),
        "{refused:?}"
    );
    home.write("more.json", "{\"answers\": {\"words\": \"new\"}, \"metadata\": {\"by\": \"me\"}}");
    let more =
        home.run(&["responses", "edit", "visit", &second, "-f", "more.json", "-o", "json"]).expect(0).json();
    assert_eq!((&more["answers"]["words"], &more["metadata"]), (&json!("new"), &json!({"by": "me"})));
}

#[test]
fn watch_prints_what_is_new_until_ctrl_c() {
    let (home, server, _) = visited();
    for format in ["jsonl", "table"] {
        let arguments = ["responses", "watch", "visit", "-v", "--interval", "20ms", "-o", format];
        let mut command = home.command(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // From then on it waits for what is new.
        assert!(log.by_ref().any(|line| line.unwrap().contains("order=asc")));
        let drained = std::thread::spawn(move || log.count());
        for words in ["one", "two"] {
            let id = home.ok(&["submit", "visit", &format!("words={words}")]);
            let line = lines.next().unwrap().unwrap();
            assert!(line.contains(id.trim()) && line.contains(words), "{line}");
            assert_eq!(line.starts_with('{'), format == "jsonl", "{line}");
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!((child.wait().unwrap().code(), lines.count()), (Some(130), 0));
        drained.join().unwrap();
    }
    drop(server);
    let local = home.run(&["--data", "store", "responses", "watch", "visit"]).expect(2);
    assert!(local.stderr.starts_with("error: --data cannot be used with this command"), "{local:?}");
}

#[test]
fn man_writes_the_pages_of_the_repository() {
    let home = Home::new();
    assert_eq!(home.ok(&["man", "a/pages"]), "a/pages\n");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let same = std::process::Command::new("diff")
        .arg("-r")
        .arg(home.path().join("a/pages"))
        .arg(kept)
        .output()
        .unwrap();
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stdout));
}
