//! `forms responses -o xlsx`, and `--to` in every format.

use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

use forms::cli::output::table::Cell;
use forms::cli::output::workbook::Workbook;
use rustix::process::{Pid, Signal, kill_process};

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

/// Returns the rows of a sheet: its `<row>` elements, without the header.
fn rows(workbook: &[u8], sheet: u32) -> Vec<String> {
    let xml = part(workbook, &format!("xl/worksheets/sheet{sheet}.xml"));
    xml.split_inclusive("</row>")
        .skip(1)
        .filter_map(|row| row.strip_suffix("</row>"))
        .map(str::to_owned)
        .collect()
}

/// Returns the workbook with these cells in its second row, and the number of texts cut.
fn with_row(cells: &[Cell], raw: bool) -> (Vec<u8>, u64) {
    let headers = cells.iter().map(|_| Cell::text("name")).collect();
    let mut workbook = Workbook::new(Cursor::new(Vec::new()), headers).unwrap();
    workbook.append(cells, raw).unwrap();
    let (written, cut) = workbook.finish().unwrap();
    (written.into_inner(), cut)
}

/// Returns the element of `cell` as A2 of a sheet.
fn cell_xml(cell: Cell) -> String {
    let (workbook, _) = with_row(&[cell], false);
    rows(&workbook, 1)[0].strip_prefix("<row r=\"2\">").unwrap().to_owned()
}

/// Returns the content of `text` in a cell.
#[track_caller]
fn text_xml(text: &str) -> String {
    let xml = cell_xml(Cell::text(text));
    let begin = "<c r=\"A2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">";
    xml.strip_prefix(begin).unwrap().strip_suffix("</t></is></c>").unwrap().to_owned()
}

#[test]
fn numbers_and_booleans_are_cells_of_their_type() {
    for number in ["0", "4", "-5", "1.10", "1e3", "123456789012345", "0.30000000000000004", "9e307"] {
        assert_eq!(cell_xml(Cell::number(number)), format!("<c r=\"A2\"><v>{number}</v></c>"));
    }
    assert_eq!(cell_xml(Cell::number(true)), "<c r=\"A2\" t=\"b\"><v>1</v></c>");
    assert_eq!(cell_xml(Cell::number(false)), "<c r=\"A2\" t=\"b\"><v>0</v></c>");
    // Excel would round these, refuse these, or never saw them as numbers.
    for text in ["1234567890123456", "-9999999999999999", "1e308", "1e999", "2026-11-20T09:00:00Z"] {
        assert!(cell_xml(Cell::number(text)).contains(&format!("preserve\">{text}<")), "{text}");
    }
    for text in ["4", "true", "-5"] {
        assert_eq!(text_xml(text), text);
    }
    assert_eq!(cell_xml(Cell::text("")), "");
}

#[test]
fn texts_are_escaped_and_never_formulas() {
    for (text, xml) in [
        ("=1+1", "'=1+1"),
        ("+49 30", "'+49 30"),
        ("\u{ff1d}1", "'\u{ff1d}1"),
        ("a<b>&\"'", "a&lt;b&gt;&amp;\"'"),
        ("]]>", "]]&gt;"),
        (" two\nlines\t ", " two\nlines\t "),
        ("a\r\nb\rc", "a&#13;\nb&#13;c"),
        ("\u{1}\u{b}\u{1f}\u{fffe}\u{ffff}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ("\u{7f}\u{85}\u{feff}😀", "\u{7f}\u{85}\u{feff}😀"),
        ("_x41_ _x00g1_ _X0041_ _x0041", "_x41_ _x00g1_ _X0041_ _x0041"),
        ("x_x000D_", "x_</t></r><r><t xml:space=\"preserve\">x000D_"),
    ] {
        let found = cell_xml(Cell::text(text));
        assert!(found.contains(&format!("<t xml:space=\"preserve\">{xml}</t>")), "{text:?}: {found}");
        assert!(!found.contains("<f>"), "{found}");
    }
    let (raw, _) = with_row(&[Cell::text("=1+1")], true);
    assert!(rows(&raw, 1)[0].contains("inlineStr\"><is><t xml:space=\"preserve\">=1+1</t>"));
}

#[test]
fn long_texts_are_cut_at_a_character() {
    let whole = "é".repeat(32_767);
    for (text, expected) in [
        (whole.clone(), whole),
        ("a".repeat(32_768), "a".repeat(32_766) + "…"),
        // An emoji has two UTF-16 units.
        ("😀".repeat(20_000), "😀".repeat(16_383) + "…"),
        ("a".repeat(32_766) + "😀", "a".repeat(32_766) + "…"),
    ] {
        let (workbook, cut) = with_row(&[Cell::text(&*text), Cell::text("short")], false);
        assert_eq!(cut, u64::from(text != expected));
        assert!(rows(&workbook, 1)[0].contains(&format!(">{expected}</t>")), "{} bytes", text.len());
    }
}

#[test]
fn columns_have_letters_and_the_header_is_bold() {
    let cells: Vec<_> = (0..=702).map(Cell::number).collect();
    let (workbook, _) = with_row(&cells, false);
    let row = &rows(&workbook, 1)[0];
    for cell in ["\"A2\"><v>0<", "\"Z2\"><v>25<", "\"AA2\"><v>26<", "\"ZZ2\"><v>701<", "\"AAA2\"><v>702<"] {
        assert!(row.contains(cell), "{cell}");
    }
    let sheet = part(&workbook, "xl/worksheets/sheet1.xml");
    assert!(
        sheet.contains("<row r=\"1\"><c r=\"A1\" s=\"1\" t=\"inlineStr\">") && sheet.contains("ySplit=\"1\"")
    );
}

#[test]
fn rows_beyond_the_limit_continue_on_the_next_sheet() {
    let mut workbook = Workbook::new(Cursor::new(Vec::new()), vec![Cell::text("n")]).unwrap();
    for number in 1..=1_048_577 {
        workbook.append(&[Cell::number(number)], false).unwrap();
    }
    let workbook = workbook.finish().unwrap().0.into_inner();
    let (first, second) = (rows(&workbook, 1), rows(&workbook, 2));
    assert_eq!(first.last().unwrap(), "<row r=\"1048576\"><c r=\"A1048576\"><v>1048575</v></c>");
    assert_eq!(second[0], "<row r=\"2\"><c r=\"A2\"><v>1048576</v></c>");
    assert_eq!(second[1], "<row r=\"3\"><c r=\"A3\"><v>1048577</v></c>");
    assert!(part(&workbook, "xl/worksheets/sheet2.xml").contains(">n</t>"));
    assert!(part(&workbook, "xl/workbook.xml").contains("name=\"Sheet2\" sheetId=\"2\" r:id=\"rId2\""));
}

/// A writer that fails after some bytes, like a disk that is full.
struct Full(Cursor<Vec<u8>>, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 = self.1.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_happens() {
    let write = |size| -> io::Result<()> {
        let mut workbook = Workbook::new(Full(Cursor::default(), size), vec![Cell::text("n")])?;
        (0..500).try_for_each(|number| workbook.append(&[Cell::number(number * 7919)], false))?;
        workbook.finish().map(drop)
    };
    write(20_000).unwrap();
    for size in (0..4_000).step_by(13) {
        assert_eq!(write(size).unwrap_err().kind(), io::ErrorKind::StorageFull, "{size} bytes");
    }
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

/// Returns the texts of a row, each before the next tag.
fn texts(row: &str) -> Vec<&str> {
    let values = row.split("<v>").flat_map(|part| part.split("preserve\">")).skip(1);
    values.map(|value| value.split('<').next().unwrap()).collect()
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
    assert_eq!(texts(&sheet[0])[2..], ["soup, \"hot\"", "ann@example.com"]);
    assert_eq!(texts(&sheet[1])[2..], ["'=1+1", "4"]);
    let csv = responses(&home, &id, &["-o", "csv"]).expect(0).stdout;
    let header = part(&workbook, "xl/worksheets/sheet1.xml");
    assert_eq!(texts(header.split("</row>").next().unwrap()).join(","), csv.lines().next().unwrap());

    let selected = rows(&export(&home, &id, &["--columns", "q3,q1", "--where", "q3=4"]), 1);
    assert_eq!(selected.iter().map(|row| texts(row)).collect::<Vec<_>>(), [["4", "'=1+1"]]);
    let raw = rows(&export(&home, &id, &["--raw", "--columns", "q1"]), 1);
    assert_eq!(texts(&raw[1]), ["=1+1"]);
    assert_eq!(rows(&export(&home, &id, &["--limit", "1"]), 1).len(), 1);
    assert_eq!(rows(&export(&home, &id, &["--limit", "0"]), 1).len(), 0);

    let removed = ["edit", &id, "--set", "questions.q3=", "--set", "questions.q2="];
    home.ok(&[&DATA[..], &removed].concat());
    let sheet = rows(&export(&home, &id, &[]), 1);
    assert_eq!(texts(&sheet[1])[2..], ["'=1+1", "4"]);
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
        let rest = "cut to 32,767 characters, the maximum of an XLSX cell; -o csv has them whole";
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
    // A newer version: the columns of removed questions are looked for.
    home.ok(&["edit", &id, "--set", "questions.q3="]);
    let key = operator_key(&home);
    let mut page: serde_json::Value =
        serde_json::from_str(&home.ok(&["responses", &id, "-o", "json"])).unwrap();
    let answers = (0..16_381).map(|number| (format!("r{number}"), "x".into())).collect();
    page["submissions"][0]["answers"] = serde_json::Value::Object(answers);
    let page = || FakeServer::ok(&page.to_string());
    let proxy = FakeServer::with_replies(vec![Reply::Forward(server.url.clone()), page(), page()]);
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
    for file in ["a.csv", "a.xlsx"] {
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
        assert_eq!(problem["title"], format!("cannot write {file}: file too large"), "{problem}");
        assert_eq!(fs::read_to_string(home.path().join(file)).unwrap(), "old");
        assert_eq!(leftovers(&home), [""; 0]);
    }
}
