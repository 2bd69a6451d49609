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
    let id = home.published_form(&DATA);
    install(&home, &id, script);
    (home, id)
}

/// The same with a server, so that others can work on the form meanwhile.
fn with_others(script: &str) -> (Home, Served, String) {
    let home = Home::new();
    let server = home.serve();
    let id = home.published_form(&[]);
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

/// The arguments of the command that `seen` offers to continue with, which a shell takes apart.
#[track_caller]
fn offered(seen: &str) -> Vec<String> {
    let (_, offered) = seen.split_once("to continue: ").expect(seen);
    let offered = offered.lines().next().unwrap();
    let script = format!("forms() {{ printf '%s\\n' \"$@\"; }}; {offered}");
    let told = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Continues as `seen` offers, with `editor`, and answers the question with `key`.
#[track_caller]
fn continue_with(home: &Home, seen: &str, editor: &str, key: &str) -> (Option<i32>, String) {
    let arguments = offered(seen);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut session = start_with(home, editor, &arguments);
    session.until("[y/N]");
    session.press(key);
    session.end()
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
    let shown = format!(
        "  ~ title            \"Lunch\" → \"Dinner\"\r
  + page \"Last\"      after q3\r
  + url \"Your page\"  after page \"Last\"\r
  - questions.q2     email \"Your email\"\r
{id}\r
✓ updated \"Dinner\"\r\n"
    );
    assert!(seen.ends_with(&shown), "{seen}");
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
    assert!(code == Some(0) && seen.contains("+ slug  \"free\""), "{seen}");
    let second = round(&home, 2);
    let lines: Vec<_> = second.lines().collect();
    assert_eq!(lines[0], "#> Not saved yet, 2 problems. To give up, close the file as it is.");
    let typo = "unknown field `titel` (a field with a similar name exists: `title`)";
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
    let (code, seen) = continue_with(&home, &seen, "true", "y\r");
    assert!(code == Some(0) && file(&home, &id).contains("title: Dinner"), "{seen}");
    assert_eq!(fs::read_dir(home.path().join(TMP)).unwrap().count(), 1, "the person's file stays: {seen}");
}

#[test]
fn an_editor_that_fails_or_is_killed_changes_nothing_and_loses_nothing() {
    for (script, how, kept_texts) in [
        ("exit 3", "with exit code 3", 0),
        ("sed -i s/Lunch/Dinner/ $file; exit 3", "with exit code 3", 1),
        ("sed -i s/Lunch/Dinner/ $file; kill -KILL $$", "by a signal", 1),
    ] {
        let (home, id) = with_editor(script);
        let before = file(&home, &id);
        let (code, seen) = edit(&home, &id);
        assert_eq!(code, Some(70), "{seen}");
        let said = seen.replace("\r\n", " ");
        assert!(said.contains(&format!("ended {how}; nothing was changed")), "{seen}");
        assert_eq!(kept(&home).len(), kept_texts, "{seen}");
        assert_eq!(seen.contains("your text is kept in"), kept_texts == 1, "{seen}");
        assert_eq!(file(&home, &id), before);
    }
}

#[test]
fn a_change_by_others_is_shown_and_never_overwritten_unseen() {
    let (home, _server, id) = with_others(
        "sed -i s/Lunch/Mine/ $file
         others edit $form --title Theirs --set settings.max_responses=9 --set questions.q3.required=true
         others unpublish $form",
    );
    let (code, seen) = start(&home, &["edit", &id]).end();
    assert!(code == Some(5) && seen.contains("error[version_mismatch]"), "{seen}");
    let shown = "  ~ title  \"Lunch\" → \"Mine\"\r
changed on the server after you read it:\r
  ~ status                  \"published\" → \"draft\"\r
  ~ title                   \"Lunch\" → \"Theirs\"\r
  + questions.q3.required   true\r
  + settings.max_responses  9\r\n";
    assert!(seen.contains(shown), "{seen}");
    let kept = kept(&home);
    assert!(seen.contains(&format!("your text is kept in {}", kept[0].display())), "{seen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    // What it offers compares the text with the form as it is now, and asks.
    for (key, code, title) in [("n\r", 1, "Theirs"), ("\u{3}", 130, "Theirs"), ("y\r", 0, "Mine")] {
        let (ended, seen) = continue_with(&home, &seen, "true", key);
        assert_eq!(ended, Some(code), "{seen}");
        assert!(seen.contains("  ~ title                   \"Theirs\" → \"Mine\"\r\n"), "{seen}");
        assert!(seen.contains("  - settings.max_responses  9\r\n"), "{seen}");
        assert_eq!(
            seen.contains(&format!("your text is kept in {}", kept[0].display())),
            code != 0,
            "{seen}"
        );
        assert!(home.ok(&["show", &id]).contains(&format!("title:      {title}")), "{seen}");
    }
}

#[test]
fn a_second_conflict_keeps_the_text_again() {
    let (home, _server, id) =
        with_others("sed -i s/Lunch/Mine/ $file; others edit $form --title Round$round");
    let (_, seen) = start(&home, &["edit", &id]).end();
    let editor = format!("{}/editor --wait", home.path().display());
    let (code, again) = continue_with(&home, &seen, &editor, "y\r");
    assert!(code == Some(5) && again.contains("\"Round1\" → \"Round2\""), "{again}");
    let (code, seen) = continue_with(&home, &again, "true", "y\r");
    assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{seen}");
}

#[test]
fn a_text_is_kept_where_no_server_answers_any_more() {
    let (home, server, id) = with_others(
        "sed -i s/Lunch/Mine/ $file; kill $(cat server); while kill -0 $(cat server) 2> /dev/null; do :; done",
    );
    home.write("server", &server.child.id().to_string());
    let reap = std::thread::spawn(move || {
        let mut server = server;
        server.child.wait().unwrap()
    });
    let (code, seen) = start(&home, &["edit", &id, "--retries", "0"]).end();
    reap.join().unwrap();
    assert!(code == Some(7) && seen.contains("error: no server responds at"), "{seen}");
    assert!(fs::read_to_string(&kept(&home)[0]).unwrap().contains("title: Mine"));
    let _server = home.serve();
    let (code, seen) = continue_with(&home, &seen, "true", "y\r");
    assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{seen}");
}

#[test]
fn a_text_in_another_encoding_is_refused_and_kept() {
    let (home, id) = with_editor("printf 'title: D\\351jeuner\\n' > $file");
    let (code, seen) = edit(&home, &id);
    assert_eq!(code, Some(6), "{seen}");
    assert!(
        seen.contains("error[malformed_file]: ") && seen.contains(" is not valid UTF-8 after byte 8"),
        "{seen}"
    );
    assert_eq!(fs::read(&kept(&home)[0]).unwrap(), b"title: D\xe9jeuner\n");
}

#[test]
fn who_is_ended_from_outside_keeps_the_text() {
    for signal in ["HUP", "TERM"] {
        // The editor stays until the command has ended: what has ended it is the signal.
        let (home, _server, id) = with_others(&format!(
            "sed -i s/Lunch/Mine/ $file; kill -{signal} $PPID; while kill -0 $PPID 2> /dev/null; do :; done"
        ));
        let (code, seen) = start(&home, &["edit", &id]).end();
        assert_eq!(code, Some(130), "{signal}: {seen}");
        let (code, seen) = continue_with(&home, &seen, "true", "y\r");
        assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{seen}");
    }
}

#[test]
fn the_store_is_free_while_the_editor_is_open() {
    let (home, id) = with_editor(
        "sed -i s/Lunch/Mine/ $file
         others --data store create --title Other -Q email:Yours; cat theirs; cp theirs free",
    );
    let (code, seen) = edit(&home, &id);
    assert!(code == Some(0) && seen.contains("updated \"Mine\""), "{seen}");
    assert!(fs::read_to_string(home.path().join("free")).unwrap().starts_with("frm_"), "{seen}");
    assert_eq!(home.ok(&[&DATA[..], &["list"]].concat()).lines().count(), 2);
}

#[test]
fn a_store_that_somebody_holds_when_the_editor_ends_costs_no_text() {
    let (home, id) = with_editor(
        "sed -i s/Lunch/Mine/ $file
         ready() { read url < address; }
         mkfifo address; forms serve --data store --listen 127.0.0.1:0 > address 2> log & ready; echo $! > server",
    );
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let tmp = home.path().join(TMP);
    let editor = format!("{}/editor --wait", home.path().display());
    let variables = [("VISUAL", &*editor), ("PATH", &*path), ("TMPDIR", tmp.to_str().unwrap())];
    let (code, seen) = Session::start(&home, &variables, &[&DATA[..], &["edit", &id]].concat()).end();
    let server: i32 = fs::read_to_string(home.path().join("server")).unwrap().trim().parse().unwrap();
    let server = rustix::process::Pid::from_raw(server).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::TERM).unwrap();
    assert!(code == Some(5) && seen.contains("is in use by a running server"), "{seen}");
    assert!(fs::read_to_string(&kept(&home)[0]).unwrap().contains("title: Mine"), "{seen}");
}

#[test]
fn a_question_with_answers_is_removed_or_retyped_only_after_a_warning() {
    let script = "sed -i -e '/id: q2/,/Your email/d' -e 's/type: rating/type: number/' $file";
    for (key, code) in [("n\r", 1), ("y\r", 0)] {
        let (home, id) = with_editor(script);
        for answers in [&["q1=a", "q2=a@example.com", "q3=1"][..], &["q1=b", "q3=2"]] {
            home.ok(&[&DATA[..], &["submit", &id], answers].concat());
        }
        let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
        session.until("  ~ questions.q3.type  \"rating\" → \"number\"\r\n");
        session
            .until("warning: `q2` has 1 answer; answers to a removed question are kept, and listed in -o csv and -o jsonl alone\r\n");
        session.until("warning: `q3` has 2 answers of the old type\r\n");
        session.until("Change \"Lunch\" on store? [y/N]");
        session.press(key);
        let (ended, seen) = session.end();
        assert_eq!((ended, kept(&home).len()), (Some(code), usize::from(code != 0)), "{seen}");
        assert_eq!(file(&home, &id).contains("type: number"), code == 0, "{seen}");
    }
}

#[test]
fn a_text_that_was_typed_at_the_terminal_is_kept_like_one_of_the_editor() {
    let (home, id) = with_editor("true");
    let mut session = start(&home, &[&DATA[..], &["edit", &id, "-f", "-"]].concat());
    session.until("end with Ctrl-D");
    session.press("title: Typed\n\u{4}");
    session.until("Change \"Lunch\" on store? [y/N]");
    session.press("n\r");
    let (code, seen) = session.end();
    assert!(code == Some(1) && seen.contains("your text is kept in "), "{seen}");
    assert!(fs::read_to_string(&kept(&home)[0]).unwrap().contains("title: Typed"), "{seen}");
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
    assert!(offered(&seen).contains(&"--dry-run".to_owned()), "{seen}");
}
