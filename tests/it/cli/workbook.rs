//! `forms responses -o xlsx`, and `--to` in every format.

use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

use forms::cli::output::table::Cell;
use forms::cli::output::workbook::Workbook;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::fake_server::{FakeServer, Reply, operator_key};
use super::{Home, Run};

const DATA: [&str; 2] = ["--data", "store"];

/// Returns a part of a workbook.
#[track_caller]
fn part(workbook: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(workbook)).unwrap();
    let mut text = String::new();
    archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Returns the cells of each row of a sheet, the header included: the texts, numbers and booleans as they are written.
#[track_caller]
pub(super) fn rows(workbook: &[u8], sheet: u32) -> Vec<Vec<String>> {
    let xml = part(workbook, &format!("xl/worksheets/sheet{sheet}.xml"));
    let value = |cell: &str| {
        let (_, begin) = cell.split_once("<v>").or(cell.split_once("<t>")).unwrap();
        begin.split('<').next().unwrap().to_owned()
    };
    let cells = |row: &str| row.split("<c ").skip(1).map(value).collect();
    xml.split("</row>").filter(|row| row.contains("<row ")).map(cells).collect()
}

#[test]
fn numbers_and_booleans_are_cells_of_their_type_unless_excel_would_change_them() {
    let home = Home::new();
    let mut workbook = Workbook::new(home.path(), vec!["n".to_owned()]).unwrap();
    let values =
        ["-5", "1.10", "123456789012345", "true", "1234567890123456", "1e308", "2026-11-20", "a\r\nb"];
    for value in values {
        workbook.append(&[Cell::number(value)]).unwrap();
    }
    // An emoji has two UTF-16 units, and is not cut in two.
    workbook.append(&[Cell::text("a".repeat(32_766) + "😀"), Cell::text("4")]).unwrap();
    let mut written = Vec::new();
    assert_eq!(workbook.save(&mut written).unwrap(), 1);
    let sheet = part(&written, "xl/worksheets/sheet1.xml");
    for (row, value) in (2..).zip(["-5", "1.1", "123456789012345"]) {
        assert!(sheet.contains(&format!("<c r=\"A{row}\"><v>{value}</v></c>")), "{value}: {sheet}");
    }
    assert!(sheet.contains("<c r=\"A5\" t=\"b\"><v>1</v></c>"), "{sheet}");
    for text in ["1234567890123456", "1e308", "2026-11-20", "a\nb", "aaa…", "4"] {
        assert!(sheet.contains(&format!("{text}</t>")), "{text}");
    }
}

#[test]
fn rows_beyond_the_limit_continue_on_the_next_sheet() {
    let home = Home::new();
    let mut workbook = Workbook::new(home.path(), vec!["n".to_owned()]).unwrap();
    // A row without cells takes no time.
    for number in 1..=1_048_577 {
        let cells = [Cell::number(number)];
        workbook.append(if number > 1_048_574 { &cells } else { &[] }).unwrap();
    }
    let mut written = Vec::new();
    workbook.save(&mut written).unwrap();
    assert_eq!(rows(&written, 1).last().unwrap(), &["1048575"]);
    assert_eq!(rows(&written, 2), [["n"], ["1048576"], ["1048577"]]);
}

/// A data directory with a form that has two submissions, and the form's id.
fn answered() -> (Home, String) {
    let home = Home::new();
    let id = home.published_form(&DATA);
    home.ok(&[&DATA[..], &["submit", &id, "q1==1+1", "q3=4"]].concat());
    home.ok(&[&DATA[..], &["submit", &id, "q1=soup, \"hot\"", "q2=ann@example.com"]].concat());
    (home, id)
}

fn responses(home: &Home, id: &str, arguments: &[&str]) -> Run {
    home.run(&[&DATA[..], &["responses", id], arguments].concat())
}

/// Exports to a.xlsx and returns it.
#[track_caller]
fn export(home: &Home, id: &str, arguments: &[&str]) -> Vec<u8> {
    let run = responses(home, id, &[&["-o", "xlsx", "--to", "a.xlsx"], arguments].concat()).expect(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{run:?}");
    fs::read(home.path().join("a.xlsx")).unwrap()
}

/// The names of the files in a folder that are not there before an export.
fn leftovers(home: &Home) -> Vec<String> {
    let names =
        fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".a.")).collect()
}

#[test]
fn a_workbook_has_the_columns_and_rows_of_csv() {
    let (home, id) = answered();
    let workbook = export(&home, &id, &[]);
    let sheet = rows(&workbook, 1);
    let csv = responses(&home, &id, &["-o", "csv"]).expect(0).stdout;
    assert_eq!(sheet[0].join(","), csv.lines().next().unwrap());
    assert_eq!(sheet[1][2..], ["soup, \"hot\"", "ann@example.com"]);
    assert_eq!(sheet[2][2..], ["=1+1", "4"]);

    let selected = export(&home, &id, &["--columns", "q3,q1", "--where", "q3=4"]);
    assert_eq!(rows(&selected, 1), [["q3", "q1"], ["4", "=1+1"]]);
    assert_eq!(rows(&export(&home, &id, &["--limit", "1"]), 1).len(), 2);
    assert_eq!(rows(&export(&home, &id, &["--limit", "0"]), 1).len(), 1);

    let removed = ["edit", &id, "--set", "questions.q3=", "--set", "questions.q2="];
    home.ok(&[&DATA[..], &removed].concat());
    assert_eq!(rows(&export(&home, &id, &[]), 1)[2][2..], ["=1+1", "4"]);
}

#[test]
fn texts_cut_are_counted_in_one_warning() {
    let home = Home::new();
    home.write("long.yaml", "title: A\nquestions:\n  - {type: long_text, title: B, max_length: 50000}\n");
    let id = home.ok(&[&DATA[..], &["create", "--publish", "-f", "long.yaml"]].concat()).trim().to_owned();
    home.write("long.txt", &"x".repeat(40_000));
    home.ok(&[&DATA[..], &["submit", &id, "q1=@long.txt"]].concat());
    let warning = |count: &str| {
        let run = responses(&home, &id, &["-o", "xlsx", "--to", "a.xlsx"]).expect(0);
        let rest = "cut to 32,767 characters, the maximum of an XLSX cell; CSV has them whole";
        assert_eq!(run.stderr, format!("warning: {count} {rest}\n"));
    };
    warning("1 text was");
    home.ok(&[&DATA[..], &["submit", &id, "q1=@long.txt"]].concat());
    warning("2 texts were");
}

#[test]
fn a_file_has_the_bytes_of_stdout_in_every_format() {
    let (home, id) = answered();
    for format in ["csv", "json", "jsonl", "yaml"] {
        let stdout = responses(&home, &id, &["-o", format]).expect(0).stdout;
        let run = responses(&home, &id, &["list", "-o", format, "--to", "a.txt"][1..]).expect(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
        assert_eq!(fs::read_to_string(home.path().join("a.txt")).unwrap(), stdout);
    }
    home.ok(&[&DATA[..], &["responses", "list", &id, "-o", "csv", "--to", "b.txt"]].concat());
    let mode = |name: &str| fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777;
    let created = home.write("c.txt", "");
    assert_eq!(mode("b.txt"), mode("c.txt"), "not the mode of other new files");

    // A file that is replaced keeps its mode, and a link leads to the new file.
    fs::set_permissions(&created, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("c.txt", home.path().join("link")).unwrap();
    responses(&home, &id, &["-o", "csv", "--to", "link"]).expect(0);
    assert!(fs::read_link(home.path().join("link")).is_ok() && mode("c.txt") == 0o640);
    assert!(fs::read_to_string(created).unwrap().starts_with("id,"));
}

#[test]
fn what_cannot_be_written_is_refused_at_once() {
    let (home, id) = answered();
    for (arguments, message, hint) in [
        (&["-o", "xlsx"][..], "-o xlsx needs a file", "add --to FILE.xlsx"),
        (&["-o", "xlsx", "--to", "-"], "--to needs the name of a file, not -", "--to answers.xlsx"),
        (&["-o", "csv", "--to", "-"], "--to needs the name of a file, not -", "standard output"),
        (&["-o", "csv", "--to", "store"], "cannot write store: is a directory", ""),
        (&["-o", "csv", "--to", "/dev/null"], "cannot write /dev/null: is not a regular file", ""),
        (&["-o", "xlsx", "--to", "no/a.xlsx"], "cannot write no/a.xlsx: there is no such folder", ""),
        (&["-o", "xlsx", "--to", "survey.yaml/a"], "part of the path is not a directory", ""),
        (&["-o", "xlsx", "--to", ""], "a value is required for '--to <FILE>'", ""),
    ] {
        let problem = responses(&home, &id, arguments).expect(2).problem();
        assert!(problem["title"].as_str().unwrap().contains(message), "{problem}");
        assert!(problem["hint"].as_str().unwrap_or_default().contains(hint), "{problem}");
    }
    let table = responses(&home, &id, &["--to", "a.txt"]).expect(2);
    assert!(table.stderr.contains("add -o with one of: xlsx, csv, json, jsonl, yaml"), "{table:?}");
    assert!(!home.path().join("a.txt").exists());
}

#[test]
fn other_commands_refuse_the_format_before_they_do_anything() {
    let (home, id) = answered();
    for command in
        [&["list"][..], &["delete", "--yes", &id], &["responses", "show", &id, "x"], &["help", "submit"]]
    {
        let run = home.run(&[&DATA[..], command, &["-o", "xlsx"]].concat()).expect(2);
        let problem = run.problem();
        assert_eq!(problem["title"], "-o xlsx cannot be used with this command");
        assert!(run.stdout.is_empty() && problem["hint"].as_str().unwrap().contains("forms responses FORM"));
    }
    assert_eq!(home.ok(&[&DATA[..], &["list"]].concat()).lines().count(), 1);
}

/// Runs an export to a.xlsx and a.csv through a server that sends `replies` after the form and a first page.
fn export_with(replies: impl Fn() -> Vec<Reply>, check: impl Fn(&Home, &mut std::process::Command)) {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    home.ok(&["submit", &id, "q1=soup"]);
    let page = home.ok(&["responses", &id, "-o", "json"]);
    let link = format!("link: </api/v1/forms/{id}/submissions?cursor=a>; rel=\"next\"\r\n");
    let key = operator_key(&home);
    for format in ["xlsx", "csv"] {
        let begin = [Reply::Forward(server.url.clone()), FakeServer::status("200 OK", &link, &page)];
        let proxy = FakeServer::with_replies(begin.into_iter().chain(replies()).collect());
        let file = format!("a.{format}");
        home.write(&file, "old");
        let arguments = ["--retries", "0", "responses", &id, "-o", format, "--to", &file];
        let mut command = home.command(&arguments);
        command.env("FORMS_URL", &proxy.url).env("FORMS_API_KEY", &key).stderr(Stdio::piped());
        check(&home, &mut command);
        proxy.into_requests();
        assert_eq!(fs::read_to_string(home.path().join(&file)).unwrap(), "old");
        assert_eq!(leftovers(&home), [""; 0]);
    }
}

#[test]
fn a_failure_in_the_middle_leaves_the_old_file() {
    let refusal =
        r#"{"type":"/problems/store_unavailable","title":"T","status":503,"code":"store_unavailable"}"#;
    let replies = || vec![FakeServer::status("503 Service Unavailable", "", refusal)];
    export_with(replies, |_, command| {
        let run = Run::from(command.output().unwrap()).expect(7);
        assert_eq!(run.problem()["code"], "store_unavailable");
    });
}

#[test]
fn an_interrupted_export_leaves_the_old_file() {
    let (sender, received) = mpsc::channel();
    let replies = || vec![Reply::NoResponse(sender.clone())];
    export_with(replies, |home, command| {
        let child = command.spawn().unwrap();
        received.recv().unwrap();
        assert_eq!(leftovers(home).len(), 1);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        Run::from(child.wait_with_output().unwrap()).expect(130);
    });
}

#[test]
fn too_many_columns_are_an_error() {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
    home.ok(&["submit", &id, "q1=soup"]);
    // A newer version: removed questions have columns.
    home.ok(&["edit", &id, "--set", "questions.q3="]);
    let key = operator_key(&home);
    let question =
        |number| json!({"id": format!("r{number}"), "type": "short_text", "title": "A", "required": false});
    let questions: Vec<_> = (0..16_381).map(question).collect();
    let version = json!({"version": 1, "created_at": "2026-11-20T09:00:00.000Z", "questions": questions});
    let versions = FakeServer::ok(&json!({"versions": [version]}).to_string());
    let forward = || Reply::Forward(server.url.clone());
    let proxy = FakeServer::with_replies(vec![forward(), versions, forward()]);
    let variables = [("FORMS_URL", proxy.url.as_str()), ("FORMS_API_KEY", key.as_str())];
    let run = home.run_with(&variables, &["responses", &id, "-o", "xlsx", "--to", "a.xlsx"]).expect(2);
    assert_eq!(run.problem()["title"], "XLSX has room for 16384 columns, and the answers have 16385");
    assert!(!Path::new(&home.path().join("a.xlsx")).exists() && leftovers(&home).is_empty());
}

#[test]
fn a_full_disk_leaves_the_old_file_and_one_error() {
    let home = Home::new();
    let _server = home.serve();
    home.write("long.yaml", "title: A\nquestions:\n  - {type: long_text, title: B, max_length: 50000}\n");
    let id = home.ok(&["create", "--publish", "-f", "long.yaml"]).trim().to_owned();
    // A text that hardly shrinks.
    let digits = (0_u64..4_000).map(|number| (number * number * 2_654_435_761 % 1_000_003).to_string());
    home.write("long.txt", &digits.collect::<String>());
    home.ok(&["submit", &id, "q1=@long.txt"]);
    for (file, reason) in [("a.csv", "file too large"), ("a.xlsx", "there is no room for its temporary file")]
    {
        home.write(file, "old");
        let format = file.trim_start_matches("a.");
        // A write beyond the limit fails, since the signal is ignored.
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let mut command = std::process::Command::new("sh");
        let forms = home.command(&[]);
        command.args(["-c", script, "sh"]).arg(forms.get_program()).args([
            "responses",
            &id,
            "-o",
            format,
            "--to",
            file,
        ]);
        command.current_dir(home.path()).env_clear().env("HOME", home.path());
        let run = Run::from(command.output().unwrap()).expect(70);
        let problem = run.problem();
        assert_eq!(problem["title"], format!("cannot write {file}: {reason}"), "{problem}");
        assert_eq!(fs::read_to_string(home.path().join(file)).unwrap(), "old");
        assert_eq!(leftovers(&home), [""; 0]);
    }
}
