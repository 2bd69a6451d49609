//! `forms store`: backups and their restoration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::fake_server::operator_key;
use super::{Home, Run};
use crate::harness::stored_text::has_text;

fn restore(home: &Home, archive: &str) -> Run {
    home.run(&["--data", "new", "store", "restore", archive])
}

#[test]
fn a_backup_of_a_running_server_is_restored_elsewhere() {
    let home = Home::new();
    let server = home.serve();
    let form = home.published_form(&[]);
    home.ok(&["submit", &form, "q1=before"]);
    let other = home.ok(&["keys", "create", "--name", "CI", "--scope", "read"]);
    let export = format!("exports/{form}/reports/visits.csv");
    fs::create_dir_all(home.path().join("store").join(&export).parent().unwrap()).unwrap();
    home.write(&format!("store/{export}"), "q1\nbefore\n");
    let backup = home.run(&["store", "backup", "--to", "forms.tar"]).expect(0);
    assert_eq!(backup.stdout, "forms.tar\n");
    assert!(backup.stderr.starts_with("backed up: 4 files, "), "{backup:?}");
    let mode = fs::metadata(home.path().join("forms.tar")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.ok(&["submit", &form, "q1=after"]);
    let old = operator_key(&home);
    drop(server);

    let restored = restore(&home, "forms.tar").expect(0);
    assert_eq!(restored.stdout, "new\n");
    assert!(restored.stderr.ends_with("a new operator key is in new/operator-key\n"), "{restored:?}");
    assert_eq!(fs::read_to_string(home.path().join("new").join(&export)).unwrap(), "q1\nbefore\n");
    let responses = home.ok(&["--data", "new", "responses", &form, "-o", "csv", "--columns", "q1"]);
    assert_eq!(responses, "q1\nbefore\n");
    let server = home.serve_with(&["serve", "--data", "new", "--listen", "127.0.0.1:0"]);
    let list = |key: &str| home.run_with_input(key, &["--url", &server.url, "--key-file", "-", "list"]);
    list(&old).expect(4);
    list(&other).expect(0);
    list(&fs::read_to_string(home.path().join("new/operator-key")).unwrap()).expect(0);
}

#[test]
fn a_backup_of_a_data_directory_needs_no_server() {
    let home = Home::new();
    let form = home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "store", "backup", "--to", "forms.tar"]);
    fs::create_dir(home.path().join("new")).unwrap();
    home.write("new/README", "mine");
    let refused = restore(&home, "forms.tar").expect(2);
    assert!(refused.stderr.starts_with("error: new is not empty\n"), "{refused:?}");
    fs::remove_file(home.path().join("new/README")).unwrap();
    // What an interrupted restore has left.
    fs::create_dir(home.path().join("new/.restoring")).unwrap();
    home.write("new/.restoring/state", "half");
    restore(&home, "forms.tar").expect(0);
    home.ok(&["--data", "new", "show", &form]);
    assert!(!home.path().join("new/.restoring").exists());
    let without = home.run(&["store", "restore", "forms.tar"]).expect(2);
    assert!(without.stderr.starts_with("error: --data is required\n"), "{without:?}");
}

#[test]
fn a_damaged_a_cut_and_a_foreign_archive_are_refused_and_nothing_is_written() {
    let home = Home::new();
    home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "store", "backup", "--to", "forms.tar"]);
    let whole = fs::read(home.path().join("forms.tar")).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(home.path().join("bad.tar"), bytes).unwrap();
        let error = restore(&home, "bad.tar").expect(2).stderr;
        assert!(!home.path().join("new").exists());
        error
    };
    for place in [600, 9_000, 100_000, 512 + (256 << 10) + 520] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        let error = refused(&damaged);
        assert!(error.starts_with("error: cannot use bad.tar: it is damaged: "), "{place}: {error}");
    }
    let end = whole.windows(8).rposition(|bytes| bytes == b"\"sha256\"").unwrap();
    for length in [0, 100, 512, 1_000, 200_000, end] {
        let error = refused(&whole[..length]);
        assert!(error.contains("its end is missing"), "{length}: {error}");
    }
    home.write("notes.txt", "notes");
    let arguments = ["cf", "foreign.tar", "notes.txt"];
    assert!(Command::new("tar").args(arguments).current_dir(home.path()).status().unwrap().success());
    let error = refused(&fs::read(home.path().join("foreign.tar")).unwrap());
    assert!(error.contains("it is not a backup of forms: it contains `notes.txt`"), "{error}");
    assert!(refused(b"not an archive at all").contains("its end is missing"));
}

#[test]
fn an_archive_appears_only_once_it_is_whole() {
    let home = Home::new();
    let missing = home.run(&["store", "backup", "--to", "nowhere/forms.tar"]).expect(2);
    assert!(missing.stderr.contains("there is no such folder"), "{missing:?}");
    home.write("forms.tar", "older");
    let away = home.run(&["--url", "http://127.0.0.1:1", "store", "backup", "--to", "forms.tar"]).expect(7);
    assert!(away.stderr.contains("no server responds"), "{away:?}");
    assert_eq!(fs::read_to_string(home.path().join("forms.tar")).unwrap(), "older");
}

#[test]
fn after_a_compaction_what_was_erased_is_in_no_file() {
    let home = Home::new();
    let data = ["--data", "store"];
    let forms = |arguments: &[&str]| home.ok(&[&data[..], arguments].concat());
    let form = home.published_form(&data);
    let store = home.path().join("store");
    let [erased, kept] = ["forget-me-0451", "remember-me-0451"];
    let submission = forms(&["submit", &form, &format!("q1={erased}")]);
    forms(&["submit", &form, &format!("q1={kept}")]);
    forms(&["responses", "delete", &form, submission.trim(), "--purge", "--yes"]);
    assert!(has_text(&store, erased));
    let compacted = home.run(&[&data[..], &["store", "compact"]].concat()).expect(0);
    assert!(compacted.stderr.starts_with("compacted: "), "{compacted:?}");
    assert!(compacted.stdout.trim().parse::<u64>().is_ok_and(|bytes| bytes > 0), "{compacted:?}");
    assert!(!has_text(&store, erased) && has_text(&store, kept));
    assert!(forms(&["responses", &form]).contains(kept));
    // A backup has the base.
    forms(&["store", "backup", "--to", "forms.tar"]);
    restore(&home, "forms.tar").expect(0);
    assert!(home.ok(&["--data", "new", "responses", &form]).contains(kept));
}

#[test]
fn verify_names_each_damage_and_a_server_may_run_meanwhile() {
    let home = Home::new();
    let server = home.serve();
    let form = home.published_form(&[]);
    for number in 0..5 {
        home.ok(&["submit", &form, &format!("q1=number{number}")]);
    }
    let whole = home.run(&["store", "verify"]).expect(0);
    assert!(whole.stdout.is_empty() && whole.stderr.starts_with("no damage: 1 file, "), "{whole:?}");
    home.ok(&["store", "compact"]);
    home.ok(&["submit", &form, "q1=later"]);
    let whole = home.run(&["store", "verify", "-o", "json"]).expect(0).json();
    assert!(whole["rows"].as_u64().is_some_and(|rows| rows > 5) && whole["files"] == 2, "{whole}");
    drop(server);
    // The killed server may not have sealed its last write.
    home.ok(&["--data", "store", "list"]);

    let journal = home.path().join("store/journal");
    let mut files: Vec<_> = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for (file, offset) in [(&files[0], 700), (&files[1], 10), (&files[1], 8_300)] {
        let mut bytes = fs::read(file).unwrap();
        bytes[offset] ^= 8;
        fs::write(file, &bytes).unwrap();
        let run = home.run(&["--data", "store", "store", "verify"]).expect(1);
        let name = file.file_name().unwrap().to_str().unwrap();
        let place = run.stdout.split('\t').nth(1).unwrap().parse::<usize>().unwrap();
        assert!(run.stdout.starts_with(&format!("journal/{name}\t")) && place <= offset, "{offset}: {run:?}");
        assert!(run.stderr.contains("the store in store is damaged in "), "{run:?}");
        bytes[offset] ^= 8;
        fs::write(file, &bytes).unwrap();
    }
    fs::rename(&files[1], journal.join("away")).unwrap();
    let run = home.run(&["--data", "store", "store", "verify"]).expect(1);
    assert!(run.stdout.contains("\t0\tthe file is missing\n"), "{run:?}");
}

#[test]
fn a_missing_index_is_no_damage() {
    let home = Home::new();
    home.published_form(&["--data", "store"]);
    fs::remove_dir_all(home.path().join("store/index")).unwrap();
    home.run(&["--data", "store", "store", "verify"]).expect(0);
}

#[test]
fn a_server_verifies_its_store_and_reports_its_state() {
    let home = Home::new();
    let server = home.serve();
    let form = home.published_form(&[]);
    home.ok(&["submit", &form, "q1=hello"]);
    let asked = home.run(&["--data", "store", "store", "verify", "-o", "json"]).expect(0).json();
    assert!(
        asked["writes"].as_u64().is_some_and(|writes| writes > 2) && asked["damage"] == serde_json::json!([])
    );
    let in_use = home.run(&["--data", "store", "store", "salvage", "--to", "new"]).expect(5);
    assert!(!home.path().join("new").exists(), "{in_use:?}");
    drop(server);
}

#[test]
fn answers_whose_form_is_lost_are_kept_in_a_file() {
    let home = Home::new();
    let data = ["--data", "store"];
    let form = home.published_form(&data);
    home.ok(&[&data[..], &["submit", &form, "q1=hello"]].concat());
    fs::create_dir(home.path().join("store/exports")).unwrap();
    home.write("store/exports/a.csv", "q1\n");
    fs::remove_dir_all(home.path().join("store/index")).unwrap();
    let segment = home.path().join("store/journal/00000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    let question = br#""questions":"#;
    let at = bytes.windows(question.len()).position(|found| found == question).unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();

    fs::create_dir_all(home.path().join("taken/of/mine")).unwrap();
    home.run(&[&data[..], &["store", "salvage", "--to", "taken"]].concat()).expect(2);
    let inside =
        home.run(&[&data[..], &["store", "salvage", "--to", "store/journal/new"]].concat()).expect(2);
    assert!(inside.stderr.contains("lies in store, which must not change"), "{inside:?}");
    let refused = home.run(&[&data[..], &["list"]].concat()).expect(70);
    assert!(refused.stderr.contains("forms store salvage --data DIR --to DIR"), "{refused:?}");
    let salvage = home.run(&[&data[..], &["store", "salvage", "--to", "new", "-o", "json"]].concat());
    let report = salvage.expect(1).json();
    assert_eq!(
        (&report["forms"]["lost"], &report["submissions"]["lost"]),
        (&1.into(), &1.into()),
        "{report}"
    );
    let kept = fs::read_to_string(home.path().join(format!("new/lost/{form}.jsonl"))).unwrap();
    assert!(kept.contains(r#""answers":{"q1":"hello"}"#), "{kept}");
    assert!(home.path().join("new/exports/a.csv").exists());
    assert_eq!(home.ok(&["--data", "new", "list", "-o", "json"]), "{\"forms\":[]}\n");
    home.run(&["--data", "new", "store", "verify"]).expect(0);
}
