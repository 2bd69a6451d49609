//! `forms edit` in an editor, which is a shell script here: `$1` is the file, `$2` what the editor did before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::terminal::{Session, has_cursor};
use super::{Home, Served};

const DATA: [&str; 2] = ["--data", "store"];

/// The folder for temporary files, whose name is two words to a shell.
const TMP: &str = "it's tmp";

/// A home with a form, its id, and `script` as the editor.
fn with_editor(script: &str) -> (Home, String) {
    let home = Home::new();
    let id = home.published(&DATA);
    install(&home, &id, script);
    (home, id)
}

/// The same with a server, so that others can work on the form meanwhile.
fn with_others(script: &str) -> (Home, Served, String) {
    let home = Home::new();
    let server = home.serve();
    let id = home.published(&[]);
    install(&home, &id, script);
    (home, server, id)
}

/// Makes `script` the editor: it works on `$file`, in round `$round`, where somebody else can do something to `$form`
/// by `others`. What it gets in each round is kept.
fn install(home: &Home, id: &str, script: &str) {
    let binary = env!("CARGO_BIN_EXE_forms");
    let script = format!(
        "#!/bin/sh
         file=$2 form={id} IFS=
         others() {{ {binary} \"$@\" > theirs 2>&1; }}
         echo >> rounds; round=$(grep -c '' rounds); cp $file round$round.yaml
         {script}\n"
    );
    home.write("editor", &script);
    fs::set_permissions(home.path().join("editor"), PermissionsExt::from_mode(0o700)).unwrap();
    fs::create_dir(home.path().join(TMP)).unwrap();
}

/// What the editor got in a round.
fn round(home: &Home, number: usize) -> String {
    fs::read_to_string(home.path().join(format!("round{number}.yaml"))).unwrap()
}

fn start(home: &Home, arguments: &[&str]) -> Session {
    start_with(home, &format!("{}/editor --wait", home.path().display()), arguments)
}

fn start_with(home: &Home, editor: &str, arguments: &[&str]) -> Session {
    let folder = home.path().join(TMP);
    let folder = folder.to_str().unwrap();
    let variables = [("VISUAL", editor), ("EDITOR", "false"), ("TMPDIR", folder), ("NO_COLOR", "1")];
    Session::start(home, &variables, arguments)
}

/// Does what `seen` offers, which a shell takes apart: to send the text that was kept.
#[track_caller]
fn send_kept(home: &Home, seen: &str) -> (Option<i32>, String) {
    let (_, offered) = seen.split_once("to send it: ").expect(seen);
    let offered = offered.lines().next().unwrap();
    let script = format!("forms() {{ printf '%s\\n' \"$VISUAL\" \"$@\"; }}; {offered}");
    let told = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let (editor, arguments) = told.split_once('\n').unwrap();
    start_with(home, editor, &arguments.lines().collect::<Vec<_>>()).end()
}

/// Edits the form, and gives exit code and what the terminal showed.
fn edit(home: &Home, id: &str) -> (Option<i32>, String) {
    start(home, &[&DATA[..], &["edit", id]].concat()).end()
}

/// The texts that were kept.
fn kept(home: &Home) -> Vec<PathBuf> {
    fs::read_dir(home.path().join(TMP)).unwrap().map(|file| file.unwrap().path()).collect()
}

fn file(home: &Home, id: &str) -> String {
    home.ok(&[&DATA[..], &["show", id, "-o", "yaml"]].concat())
}

#[test]
fn what_was_written_is_what_the_form_becomes() {
    let (home, id) = with_editor(
        "stat -c %a $file > mode
         sed -i -e 's/Lunch/Dinner/' -e '/id: q2/,/Your email/d' $file
         printf '%s\\n' '- {type: page, title: Last}' '- {type: url, title: Your page}' >> $file",
    );
    let before = file(&home, &id);
    let (code, seen) = edit(&home, &id);
    assert_eq!(code, Some(0), "{seen}");
    for line in ["~ title", "+ question q4", "+ page \"Last\"", "- question q2", &id] {
        assert!(seen.contains(&format!("{line}\r\n")), "{line}: {seen}");
    }
    let expected = format!(
        "#> \"Lunch\" ({id}) on store\n\
         #> Change it, save, and close the editor. An empty file changes nothing.\n{before}"
    );
    assert_eq!(round(&home, 1), expected);
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
        "case $round in
         1) sed -i -e 's/^title:/# mine\\ntitel:/' -e 's/type: rating/type: ratting/' $file;;
         2) sed -i -e 's/^titel:/slug: taken\\ntitle:/' -e 's/ratting/rating/' $file;;
         3) sed -i 's/^slug: taken/slug: free/' $file;;
         esac",
    );
    home.write("other.yaml", "title: Other\nslug: taken\n");
    home.ok(&[&DATA[..], &["create", "-f", "other.yaml"]].concat());
    let (code, seen) = edit(&home, &id);
    assert!(code == Some(0) && seen.contains("+ slug"), "{seen}");
    let second = round(&home, 2);
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
    let third = round(&home, 3);
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
    fs::write(&kept[0], text.replace("titel: Lunch", "title: Dinner")).unwrap();
    let (code, seen) = send_kept(&home, &seen);
    assert!(code == Some(0) && file(&home, &id).contains("title: Dinner"), "{seen}");
}

#[test]
fn an_editor_that_fails_changes_nothing_and_loses_nothing() {
    for (script, kept_texts) in [("exit 3", 0), ("sed -i s/Lunch/Dinner/ $file; exit 3", 1)] {
        let (home, id) = with_editor(script);
        let before = file(&home, &id);
        let (code, seen) = edit(&home, &id);
        assert_eq!(code, Some(70), "{seen}");
        let said = seen.replace("\r\n", " ");
        assert!(said.contains("ended with exit code 3; nothing was changed"), "{seen}");
        assert_eq!(kept(&home).len(), kept_texts, "{seen}");
        assert_eq!(seen.contains("your text is kept in"), kept_texts == 1, "{seen}");
        assert_eq!(file(&home, &id), before);
    }
}

#[test]
fn a_change_by_others_while_the_editor_is_open_is_not_overwritten() {
    let (home, _server, id) = with_others(
        "sed -i s/Lunch/Mine/ $file
         others edit $form --title Theirs --set settings.max_responses=9",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(5) && seen.contains("error[version_mismatch]"), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    let kept = kept(&home);
    assert!(seen.contains(&format!("your text is kept in {}", kept[0].display())), "{seen}");
    assert!(fs::read_to_string(&kept[0]).unwrap().contains("title: Mine"));
    assert!(seen.contains("somebody else has changed the form meanwhile"), "{seen}");
    // What it offers puts back nothing but what was written.
    let (code, seen) = send_kept(&home, &seen);
    assert_eq!(code, Some(0), "{seen}");
    let after = home.ok(&["show", &id, "-o", "yaml"]);
    assert!(after.contains("title: Mine\n") && after.contains("max_responses: 9\n"), "{after}");
}

#[test]
fn a_kept_text_overwrites_nothing_that_nobody_has_seen() {
    let (home, _server, id) = with_others("sed -i -e s/Lunch/Mine/ -e 's/^questions:/qestions:/' $file");
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(6) && seen.contains("qestions"), "{seen}");
    let slip = &kept(&home)[0];
    let mended = fs::read_to_string(slip).unwrap().replace("qestions:", "questions:");
    fs::write(slip, mended).unwrap();
    home.ok(&["edit", &id, "--title", "Theirs \u{2028}", "--set", "settings.max_responses=9"]);
    let (code, seen) = send_kept(&home, &seen);
    assert!(code == Some(5) && seen.contains("error[version_mismatch]"), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    assert_eq!(kept(&home).len(), 2);
    // Now they have been told, and the text that was kept of that says so.
    let (code, seen) = send_kept(&home, &seen);
    assert_eq!(code, Some(0), "{seen}");
    let after = home.ok(&["show", &id, "-o", "yaml"]);
    assert!(after.contains("title: Mine\n") && after.contains("max_responses: 9\n"), "{after}");
}

#[test]
fn a_kept_text_in_which_nothing_was_changed_changes_nothing() {
    let (home, _server, id) = with_others("echo '# mine' >> $file; exit 1");
    let (_, seen) = start(&home, &["edit", &id]).end();
    home.ok(&["edit", &id, "--title", "Theirs"]);
    let (code, seen) = send_kept(&home, &seen);
    assert!(code == Some(0) && seen.contains("no change") && !seen.contains("~ title"), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
}

#[test]
fn who_is_ended_from_outside_keeps_a_text_that_overwrites_nothing_unseen() {
    for signal in ["HUP", "TERM"] {
        // The editor stays until the text is kept: what has ended the command is the signal.
        let (home, _server, id) = with_others(&format!(
            "sed -i s/Lunch/Mine/ $file; kill -{signal} $PPID; tries=0
             until grep -q '#> For `forms edit`' $file || [ $((tries += 1)) = 3000 ]; do :; done"
        ));
        let (code, seen) = start(&home, &["edit", &id]).end();
        assert_eq!(code, Some(130), "{signal}: {seen}");
        home.ok(&["edit", &id, "--title", "Theirs"]);
        let (code, seen) = send_kept(&home, &seen);
        assert!(code == Some(5) && seen.contains("error[version_mismatch]"), "{signal}: {seen}");
        assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    }
}

#[test]
fn a_change_by_others_comes_back_as_comments_and_is_overwritten_only_on_purpose() {
    let (home, _server, id) = with_others(
        "case $round in
         1) sed -i s/Lunch/Mine/ $file; others edit $form --title Theirs --set questions.q3.required=true --set settings.max_responses=9;;
         2) sed -i '/take out this line/d' $file; others unpublish $form;;
         3) sed -i 's/Your email/Address/; /take out this line/d' $file;;
         esac",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(0) && seen.contains("~ title"), "{seen}");
    let expected = "\
#> Not saved yet: somebody else has changed the form meanwhile, as follows.
#>   ~ title: \"Theirs\"
#>   ~ question q3: {\"id\":\"q3\",\"type\":\"rating\",\"title\":\"How was it?\",\"required\":true}
#>   + settings.max_responses: 9
#> To save yours in its place, take out this line: what you left alone stays theirs.
#> To give up, close the file as it is.
title: Mine
";
    assert!(round(&home, 2).starts_with(expected), "{}", round(&home, 2));
    let third = round(&home, 3);
    assert!(third.lines().nth(1) == Some("#>   whether it is published"), "{third}");
    let after = home.ok(&["show", &id, "-o", "yaml"]);
    assert!(after.starts_with("title: Mine\n") && after.contains("title: Address\n"), "{after}");
    assert!(after.contains("max_responses: 9") && after.contains("required: true"), "{after}");
    assert!(kept(&home).is_empty());
}

#[test]
fn what_was_left_alone_stays_as_others_have_made_it() {
    let (home, _server, id) = with_others(
        "case $round in
         1) sed -i 's/What would you like?/Mine/' $file
            others edit $form --set 'questions=[{id: q3, type: rating, title: How was it?},
            {type: statement, title: Theirs}, {id: q1, type: short_text, title: Theirs, max_length: 9}]';;
         2) sed -i '/take out this line/d' $file;;
         esac",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert_eq!(code, Some(0), "{seen}");
    let questions = "questions:
- id: q3
  type: rating
  title: How was it?
- type: statement
  title: Theirs
- id: q1
  type: short_text
  title: Mine
  max_length: 9
";
    let after = home.ok(&["show", &id, "-o", "yaml"]);
    assert!(after.ends_with(questions), "{after}");
}

#[test]
fn a_change_of_what_others_have_deleted_comes_back() {
    let (home, _server, id) = with_others(
        "case $round in
         1) sed -i 's/Your email/Address/' $file; others edit $form --set questions.q2= --set questions.q1.max_length=9;;
         2) sed -i '/take out this line/d' $file;;
         3) sed -i '/id: q2/,/Address/d' $file;;
         esac",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(0) && seen.contains("no change"), "{seen}");
    assert!(round(&home, 2).contains("#>   - question q2\n"), "{}", round(&home, 2));
    let told = "#> question `q2`: `q2` belonged to a question that was removed";
    assert!(round(&home, 3).contains(told), "{}", round(&home, 3));
}

#[test]
fn a_change_by_others_is_told_until_somebody_agrees() {
    let (home, _server, id) = with_others(
        "case $round in
         1) sed -i s/Lunch/Mine/ $file; others edit $form --title Theirs;;
         2) sed -i -e 's/Your email/Address/' -e 's/type: rating/type: ratting/' $file;;
         3) sed -i '/take out this line/d' $file;;
         4) sed -i 's/ratting/rating/' $file;;
         esac",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    // Who has agreed need not do so again once the slip is mended.
    assert_eq!(code, Some(0), "{seen}");
    for number in [2, 3] {
        assert!(round(&home, number).contains("~ title: \"Theirs\""), "{}", round(&home, number));
    }
    let fourth = round(&home, 4);
    assert!(fourth.contains("title: Address") && fourth.contains("Not saved yet, 1 problem."), "{fourth}");
    assert!(home.ok(&["show", &id]).contains("title:      Mine"));
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
        with_editor("trap 'sed -i s/Lunch/Dinner/ $file; kill $!; exit 0' INT; sleep 60 & echo open; wait");
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
