//! `forms edit` in an editor, which is a shell script here: `$1` is the file, `$2` what the editor did before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::Home;
use super::terminal::{Session, has_cursor};

const DATA: [&str; 2] = ["--data", "store"];

/// A home with a form, its id, and `script` as the editor: it works on `$file`, in round `$round`.
fn with_editor(script: &str) -> (Home, String) {
    let home = Home::new();
    let id = home.published(&DATA);
    home.write(
        "editor",
        &format!("#!/bin/sh\nfile=$2\necho >> rounds\nround=$(grep -c '' rounds)\n{script}\n"),
    );
    fs::set_permissions(home.path().join("editor"), PermissionsExt::from_mode(0o700)).unwrap();
    fs::create_dir(home.path().join("tmp")).unwrap();
    (home, id)
}

fn start(home: &Home, arguments: &[&str]) -> Session {
    let editor = format!("{}/editor --wait", home.path().display());
    let folder = home.path().join("tmp");
    let folder = folder.to_str().unwrap();
    let variables = [("VISUAL", &*editor), ("EDITOR", "false"), ("TMPDIR", folder), ("NO_COLOR", "1")];
    Session::start(home, &variables, arguments)
}

/// Edits the form, and gives exit code and what the terminal showed.
fn edit(home: &Home, id: &str) -> (Option<i32>, String) {
    start(home, &[&DATA[..], &["edit", id]].concat()).end()
}

/// The texts that were kept.
fn kept(home: &Home) -> Vec<PathBuf> {
    fs::read_dir(home.path().join("tmp")).unwrap().map(|file| file.unwrap().path()).collect()
}

fn file(home: &Home, id: &str) -> String {
    home.ok(&[&DATA[..], &["show", id, "-o", "yaml"]].concat())
}

#[test]
fn what_was_written_is_what_the_form_becomes() {
    let (home, id) = with_editor(
        "stat -c %a $file > mode; cp $file first.yaml
         sed -i -e 's/Lunch/Dinner/' -e '/id: q2/,/Your email/d' $file
         printf '%s\\n' '- {type: page, title: Last}' '- {type: url, title: Your page}' >> $file",
    );
    let before = file(&home, &id);
    let (code, seen) = edit(&home, &id);
    assert_eq!(code, Some(0), "{seen}");
    for line in ["~ title", "+ question q4", "+ page \"Last\"", "- question q2", &id] {
        assert!(seen.contains(&format!("{line}\r\n")), "{line}: {seen}");
    }
    let first = fs::read_to_string(home.path().join("first.yaml")).unwrap();
    let expected = format!(
        "#> \"Lunch\" ({id}) on store\n\
         #> Change it, save, and close the editor. An empty file changes nothing.\n{before}"
    );
    assert_eq!(first, expected);
    assert_eq!(fs::read_to_string(home.path().join("mode")).unwrap(), "600\n");
    let after = file(&home, &id);
    assert!(
        after.contains("title: Dinner\n") && after.contains("id: q4\n") && !after.contains("q2"),
        "{after}"
    );
    assert!(kept(&home).is_empty());
}

#[test]
fn a_file_that_is_left_as_it_is_or_emptied_changes_nothing() {
    for script in ["true", "echo '# nothing' > $file", ": > $file"] {
        let (home, id) = with_editor(script);
        let before = file(&home, &id);
        let (code, seen) = edit(&home, &id);
        assert!(code == Some(0) && seen.contains("no change"), "{script}: {seen}");
        assert_eq!(file(&home, &id), before);
        assert!(kept(&home).is_empty());
    }
}

#[test]
fn problems_come_back_as_comments_until_they_are_mended() {
    // The second problem is one that only the server knows.
    let (home, id) = with_editor(
        "cp $file round$round.yaml
         case $round in
         1) sed -i -e 's/^title:/# mine\\ntitel:/' -e 's/type: rating/type: ratting/' $file;;
         2) sed -i -e 's/^titel:/slug: taken\\ntitle:/' -e 's/ratting/rating/' $file;;
         3) sed -i 's/^slug: taken/slug: free/' $file;;
         esac",
    );
    home.write("other.yaml", "title: Other\nslug: taken\n");
    home.ok(&[&DATA[..], &["create", "-f", "other.yaml"]].concat());
    let (code, seen) = edit(&home, &id);
    assert!(code == Some(0) && seen.contains("+ slug"), "{seen}");
    let round = |number| fs::read_to_string(home.path().join(format!("round{number}.yaml"))).unwrap();
    let second = round(2);
    let lines: Vec<_> = second.lines().collect();
    assert_eq!(lines[0], "#> Not saved yet, 2 problems. To give up, close the file as it is.");
    let typo = "unknown field `titel` in the form (a field with a similar name exists: `title`)";
    assert_eq!(lines[1], format!("#> line 5: {typo}"), "{second}");
    assert!(lines[4].starts_with("titel:") && lines[3] == "# mine", "{second}");
    let kind = lines.iter().position(|line| line.contains("ratting") && !line.starts_with("#>")).unwrap();
    assert!(
        lines[2].starts_with(&format!("#> line {}: unknown question type `ratting`", kind + 1)),
        "{second}"
    );
    let third = round(3);
    let comments: Vec<_> = third.lines().filter(|line| line.starts_with("#>")).collect();
    assert_eq!(comments.len(), 2, "comments do not pile up: {third}");
    assert!(comments[1].starts_with("#> line 4: slug `taken` already belongs to"), "{third}");
    assert!(third.contains("# mine\n"), "{third}");
    assert!(file(&home, &id).starts_with("slug: free\ntitle: Lunch\n"));
    assert!(kept(&home).is_empty());
}

#[test]
fn who_leaves_the_problems_gives_up_and_keeps_the_text() {
    let (home, id) = with_editor("sed -i 's/^title:/titel:/' $file");
    let before = file(&home, &id);
    let (code, seen) = edit(&home, &id);
    assert_eq!(code, Some(6), "{seen}");
    let kept = kept(&home);
    assert!(seen.contains(&format!("your text is kept in {}", kept[0].display())), "{seen}");
    assert!(seen.contains(&format!("--> {}:3:1", kept[0].display())), "{seen}");
    let text = fs::read_to_string(&kept[0]).unwrap();
    assert_eq!(text.lines().nth(2), Some("titel: Lunch"), "{text}");
    assert_eq!((kept.len(), file(&home, &id)), (1, before));
}

#[test]
fn an_editor_that_fails_changes_nothing_and_loses_nothing() {
    for (script, kept_texts) in [("exit 3", 0), ("sed -i s/Lunch/Dinner/ $file; exit 3", 1)] {
        let (home, id) = with_editor(script);
        let before = file(&home, &id);
        let (code, seen) = edit(&home, &id);
        assert_eq!(code, Some(70), "{seen}");
        assert!(seen.contains("ended with exit code 3; nothing was changed"), "{seen}");
        assert_eq!(kept(&home).len(), kept_texts, "{seen}");
        assert_eq!(seen.contains("your text is kept in"), kept_texts == 1, "{seen}");
        assert_eq!(file(&home, &id), before);
    }
}

#[test]
fn a_change_by_others_while_the_editor_is_open_is_not_overwritten() {
    let binary = env!("CARGO_BIN_EXE_forms");
    let script = format!("sed -i s/Lunch/Mine/ $file; {binary} edit $FORM --title Theirs > theirs 2>&1");
    let (home, _) = with_editor(&script);
    let _server = home.serve();
    let id = home.published(&[]);
    let script = fs::read_to_string(home.path().join("editor")).unwrap();
    home.write("editor", &script.replace("$FORM", &id));
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(5) && seen.contains("error[version_mismatch]"), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    let kept = kept(&home);
    assert!(seen.contains(&format!("your text is kept in {}", kept[0].display())), "{seen}");
    assert!(fs::read_to_string(&kept[0]).unwrap().contains("title: Mine"));
    assert!(seen.contains("somebody else has changed the form meanwhile"), "{seen}");
    // What it says to do does it.
    let editor = format!("cp {}", kept[0].display());
    assert!(seen.contains(&format!("VISUAL='{editor}' forms edit {id}")), "{seen}");
    let (code, seen) = Session::start(&home, &[("VISUAL", &editor)], &["edit", &id]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Mine"));
}

#[test]
fn a_change_by_others_comes_back_as_comments_and_is_overwritten_only_on_purpose() {
    let binary = env!("CARGO_BIN_EXE_forms");
    let theirs = "--title Theirs --set questions.q3.required=true --set settings.max_responses=9";
    let script = format!(
        "cp $file round$round.yaml
         case $round in
         1) sed -i s/Lunch/Mine/ $file; {binary} edit $FORM {theirs} > theirs 2>&1;;
         2) sed -i '/take out this line/d' $file; {binary} unpublish $FORM > theirs 2>&1;;
         3) sed -i 's/Your email/Address/; /take out this line/d' $file;;
         esac"
    );
    let (home, _) = with_editor(&script);
    let _server = home.serve();
    let id = home.published(&[]);
    let script = fs::read_to_string(home.path().join("editor")).unwrap();
    home.write("editor", &script.replace("$FORM", &id));
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(0) && seen.contains("~ title"), "{seen}");
    let round = |number| fs::read_to_string(home.path().join(format!("round{number}.yaml"))).unwrap();
    let expected = "\
#> Not saved yet: somebody else has changed the form meanwhile, as follows.
#>   ~ title: \"Theirs\"
#>   ~ question q3: {\"id\":\"q3\",\"type\":\"rating\",\"title\":\"How was it?\",\"required\":true}
#>   + settings.max_responses: 9
#> To save yours in its place, take out this line: what you left alone stays theirs.
#> To give up, close the file as it is.
title: Mine
";
    assert!(round(2).starts_with(expected), "{}", round(2));
    let third = round(3);
    assert!(third.lines().nth(1) == Some("#>   whether it is published"), "{third}");
    let after = home.ok(&["show", &id, "-o", "yaml"]);
    assert!(after.starts_with("title: Mine\n") && after.contains("title: Address\n"), "{after}");
    assert!(after.contains("max_responses: 9") && after.contains("required: true"), "{after}");
    assert!(kept(&home).is_empty());
}

#[test]
fn a_change_by_others_is_told_until_somebody_agrees() {
    let binary = env!("CARGO_BIN_EXE_forms");
    let script = format!(
        "cp $file round$round.yaml
         case $round in
         1) sed -i s/Lunch/Mine/ $file; {binary} edit $FORM --title Theirs > theirs 2>&1;;
         2) sed -i -e 's/Your email/Address/' -e 's/type: rating/type: ratting/' $file;;
         3) sed -i '/take out this line/d' $file;;
         esac"
    );
    let (home, _) = with_editor(&script);
    let _server = home.serve();
    let id = home.published(&[]);
    let script = fs::read_to_string(home.path().join("editor")).unwrap();
    home.write("editor", &script.replace("$FORM", &id));
    let (code, seen) = start(&home, &["edit", &id]).end();
    // It has agreed, and left its slip.
    assert_eq!(code, Some(6), "{seen}");
    let round = |number| fs::read_to_string(home.path().join(format!("round{number}.yaml"))).unwrap();
    assert!(round(2).contains("~ title: \"Theirs\"") && round(3).contains("~ title: \"Theirs\""));
    assert!(round(3).contains("title: Address") && round(4).contains("Not saved yet, 1 problem."));
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
}

#[test]
fn ctrl_c_in_the_editor_ends_with_130_and_keeps_the_text() {
    for (script, kept_texts) in [("", 0), ("sed -i s/Lunch/Dinner/ $file;", 1)] {
        let (home, id) = with_editor(&format!("{script} echo open; exec sleep 60"));
        let before = file(&home, &id);
        let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
        session.until("open");
        session.press("\u{3}");
        let (code, seen) = session.end();
        assert_eq!(code, Some(130), "{seen}");
        assert!(has_cursor(&seen), "{seen}");
        assert_eq!((kept(&home).len(), file(&home, &id)), (kept_texts, before), "{seen}");
    }
}

#[test]
fn ctrl_c_that_the_editor_takes_as_a_key_is_the_editors() {
    let (home, id) =
        with_editor("trap 'sed -i s/Lunch/Dinner/ $file; exit 0' INT; echo open; sleep 60 & wait");
    let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
    session.until("open");
    session.press("\u{3}");
    let (code, seen) = session.end();
    assert!(code == Some(0) && seen.contains("~ title"), "{seen}");
    assert!(file(&home, &id).contains("title: Dinner"));
}

#[test]
fn where_nobody_can_be_asked_no_editor_opens() {
    let (home, id) = with_editor("echo opened");
    for arguments in [&["edit", &id][..], &["edit", &id, "--no-input"]] {
        let run = home.command(&[&DATA[..], arguments].concat()).env("VISUAL", "./editor").output().unwrap();
        assert_eq!(run.status.code(), Some(2));
    }
    assert!(!home.path().join("rounds").exists());
}

#[test]
fn a_dry_run_says_what_would_change_and_keeps_the_text() {
    let (home, id) = with_editor("sed -i s/Lunch/Dinner/ $file");
    let before = file(&home, &id);
    let (code, seen) = start(&home, &[&DATA[..], &["edit", &id, "--dry-run"]].concat()).end();
    assert!(code == Some(0) && seen.contains("(dry run)") && seen.contains("~ title"), "{seen}");
    assert_eq!((kept(&home).len(), file(&home, &id)), (1, before), "{seen}");
}
