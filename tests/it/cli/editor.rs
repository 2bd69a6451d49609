//! `forms edit` with an editor, which is a shell script here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::terminal::{Session, is_cursor_visible};
use super::{Home, RunningServer};

const DATA: [&str; 2] = ["--data", "store"];

/// The folder for temporary files; its name needs quoting in a shell.
const TMP: &str = "it's tmp";

/// Creates a home with a form and `script` as the editor; returns the form's id.
fn with_editor(script: &str) -> (Home, String) {
    let home = Home::new();
    let id = home.published_form(&DATA);
    install(&home, &id, script);
    (home, id)
}

/// Like [`with_editor`], with a server, so that other clients can change the form while it is edited.
fn with_server(script: &str) -> (Home, RunningServer, String) {
    let home = Home::new();
    // At an address of its own: a server of another test would take the port of one that has ended.
    let server = home.serve_with(&["serve", "--data", "store", "--listen", "127.0.0.9:0"]);
    let id = home.published_form(&[]);
    install(&home, &id, script);
    (home, server, id)
}

/// Installs `script` as the editor. It edits `$file`; `$round` counts its runs, whose input is saved as
/// `round$round.yaml`; `other_client` runs `forms` concurrently, for example on `$form`.
fn install(home: &Home, id: &str, script: &str) {
    let binary = env!("CARGO_BIN_EXE_forms");
    let script = format!(
        "#!/bin/sh
         file=$2 form={id} IFS=
         other_client() {{ {binary} \"$@\" > theirs 2>&1; }}
         echo >> rounds; round=$(grep -c '' rounds); cp $file round$round.yaml
         {script}\n"
    );
    home.write("editor", &script);
    fs::set_permissions(home.path().join("editor"), PermissionsExt::from_mode(0o700)).unwrap();
    fs::create_dir(home.path().join(TMP)).unwrap();
}

/// The editor's input in a round.
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

/// The arguments of the command that the output offers to continue with, split by a shell.
#[track_caller]
fn offered_arguments(screen: &str) -> Vec<String> {
    let (_, offered) = screen.split_once("to continue: ").expect(screen);
    let offered = offered.lines().next().unwrap();
    let script = format!("forms() {{ printf '%s\\n' \"$@\"; }}; {offered}");
    let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs the offered command with `editor`, and answers the prompt with `key`.
#[track_caller]
fn continue_with(home: &Home, screen: &str, editor: &str, key: &str) -> (Option<i32>, String) {
    let arguments = offered_arguments(screen);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut session = start_with(home, editor, &arguments);
    session.wait_for("[y/N]");
    session.type_keys(key);
    session.finish()
}

/// Edits the form; returns exit code and output.
fn edit(home: &Home, id: &str) -> (Option<i32>, String) {
    start(home, &[&DATA[..], &["edit", id]].concat()).finish()
}

/// The saved texts.
fn saved_files(home: &Home) -> Vec<PathBuf> {
    fs::read_dir(home.path().join(TMP)).unwrap().map(|file| file.unwrap().path()).collect()
}

fn form_file(home: &Home, id: &str) -> String {
    home.ok(&[&DATA[..], &["show", id, "-o", "yaml"]].concat())
}

#[test]
fn the_edited_text_becomes_the_form() {
    let (home, id) = with_editor(
        "stat -c %a $file > mode
         sed -i -e 's/Lunch/Dinner/' -e '/id: q2/,/Your email/d' $file
         printf '%s\\n' '- {type: page, title: Last}' '- {type: url, title: Your page}' >> $file",
    );
    let before = form_file(&home, &id);
    let (code, screen) = edit(&home, &id);
    assert_eq!(code, Some(0), "{screen}");
    let shown = format!(
        "  ~ title            \"Lunch\" → \"Dinner\"\r
  + page \"Last\"      after q3\r
  + url \"Your page\"  after page \"Last\"\r
  - q2               email \"Your email\"\r
{id}\r
✓ updated \"Dinner\"\r\n"
    );
    assert!(screen.ends_with(&shown), "{screen}");
    let expected = format!(
        "#> \"Lunch\" ({id}) on store\n\
         #> Change it, save, and close the editor. An empty file changes nothing.\n{before}"
    );
    assert_eq!(round(&home, 1), expected);
    assert_eq!(fs::read_to_string(home.path().join("mode")).unwrap(), "600\n");
    let after = form_file(&home, &id);
    assert!(
        after.contains("title: Dinner\n") && after.contains("id: q4\n") && !after.contains("q2"),
        "{after}"
    );
    assert!(saved_files(&home).is_empty());
}

#[test]
fn an_unchanged_or_empty_file_changes_nothing() {
    for script in ["true", "echo '# nothing' > $file", ": > $file"] {
        let (home, id) = with_editor(script);
        let before = form_file(&home, &id);
        let (code, screen) = edit(&home, &id);
        assert!(code == Some(0) && screen.contains("no change"), "{script}: {screen}");
        assert_eq!(form_file(&home, &id), before);
        assert!(saved_files(&home).is_empty());
    }
}

#[test]
fn problems_are_written_as_comments_until_they_are_fixed() {
    // Only the server can find the second problem.
    let (home, id) = with_editor(
        "case $round in
         1) sed -i -e 's/^title:/# mine\\ntitel:/' -e 's/type: rating/type: ratting/' $file;;
         2) sed -i -e 's/^titel:/slug: taken\\ntitle:/' -e 's/ratting/rating/' $file;;
         3) sed -i 's/^slug: taken/slug: free/' $file;;
         esac",
    );
    home.write("other.yaml", "title: Other\nslug: taken\n");
    home.ok(&[&DATA[..], &["create", "-f", "other.yaml"]].concat());
    let (code, screen) = edit(&home, &id);
    assert!(code == Some(0) && screen.contains("+ slug  \"free\""), "{screen}");
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
    assert_eq!(comments.len(), 2, "the comments of the previous round were not removed: {third}");
    assert!(comments[1].starts_with("#> line 4: slug `taken` already belongs to"), "{third}");
    assert!(third.contains("# mine\n"), "{third}");
    assert!(form_file(&home, &id).starts_with("slug: free\ntitle: Lunch\n"));
    assert!(saved_files(&home).is_empty());
}

#[test]
fn lines_like_the_comments_of_forms_are_kept_below_the_top() {
    let (home, id) = with_editor(
        "case $round in
         1) printf '%s\\n' '#> mine' 'description: |' '  #> one' '  two' 'titel: x' >> $file;;
         2) sed -i /^titel/d $file;;
         esac",
    );
    let (code, screen) = edit(&home, &id);
    assert_eq!(code, Some(0), "{screen}");
    let second = round(&home, 2);
    assert!(second.contains("\n#> mine\ndescription: |\n  #> one\n  two\n"), "{second}");
    let form = home.run(&[&DATA[..], &["show", &id, "-o", "json"]].concat()).json();
    assert_eq!(form["description"], "#> one\ntwo\n");
}

#[test]
fn closing_the_file_with_its_problems_gives_up_and_saves_the_text() {
    let (home, id) = with_editor("sed -i 's/^title:/titel:/' $file");
    let before = form_file(&home, &id);
    let (code, screen) = edit(&home, &id);
    assert_eq!(code, Some(6), "{screen}");
    let saved = saved_files(&home);
    assert!(screen.contains(&format!("your text is kept in {}", saved[0].display())), "{screen}");
    assert!(screen.contains(&format!("--> {}:3:1", saved[0].display())), "{screen}");
    let text = fs::read_to_string(&saved[0]).unwrap();
    assert_eq!(text.lines().nth(2), Some("titel: Lunch"), "{text}");
    assert_eq!((saved.len(), form_file(&home, &id)), (1, before));
    fs::write(&saved[0], text.replace("titel: Lunch", "title: Dinner")).unwrap();
    let (code, screen) = continue_with(&home, &screen, "true", "y\r");
    assert!(code == Some(0) && form_file(&home, &id).contains("title: Dinner"), "{screen}");
    assert_eq!(
        fs::read_dir(home.path().join(TMP)).unwrap().count(),
        1,
        "the saved file was removed: {screen}"
    );
}

#[test]
fn an_editor_that_fails_or_is_killed_changes_nothing_and_the_text_is_saved() {
    for (script, how, saved_texts) in [
        ("exit 3", "with exit code 3", 0),
        ("sed -i s/Lunch/Dinner/ $file; exit 3", "with exit code 3", 1),
        ("sed -i s/Lunch/Dinner/ $file; kill -KILL $$", "by a signal", 1),
    ] {
        let (home, id) = with_editor(script);
        let before = form_file(&home, &id);
        let (code, screen) = edit(&home, &id);
        assert_eq!(code, Some(70), "{screen}");
        let message = screen.replace("\r\n", " ");
        assert!(message.contains(&format!("ended {how}; nothing was changed")), "{screen}");
        assert_eq!(saved_files(&home).len(), saved_texts, "{screen}");
        assert_eq!(screen.contains("your text is kept in"), saved_texts == 1, "{screen}");
        assert_eq!(form_file(&home, &id), before);
    }
}

#[test]
fn a_concurrent_change_is_shown_and_not_overwritten_without_confirmation() {
    let (home, _server, id) = with_server(
        "sed -i s/Lunch/Mine/ $file
         other_client edit $form --title Theirs --set settings.max_responses=9 --set questions.q3.required=true
         other_client unpublish $form",
    );
    let (code, screen) = start(&home, &["edit", &id]).finish();
    assert!(code == Some(5) && screen.contains("error[version_mismatch]"), "{screen}");
    let shown = "  ~ title  \"Lunch\" → \"Mine\"\r
changed on the server after you read it:\r
  ~ title                   \"Lunch\" → \"Theirs\"\r
  + q3.required             true\r
  ~ status                  \"published\" → \"draft\"\r
  + settings.max_responses  9\r\n";
    assert!(screen.contains(shown), "{screen}");
    let saved = saved_files(&home);
    assert!(screen.contains(&format!("your text is kept in {}", saved[0].display())), "{screen}");
    assert!(home.ok(&["show", &id]).contains("title:      Theirs"));
    // The offered command compares the text with the current form and asks for confirmation.
    for (key, code, title) in [("n\r", 1, "Theirs"), ("\u{3}", 130, "Theirs"), ("y\r", 0, "Mine")] {
        let (ended, screen) = continue_with(&home, &screen, "true", key);
        assert_eq!(ended, Some(code), "{screen}");
        assert!(screen.contains("  ~ title                   \"Theirs\" → \"Mine\"\r\n"), "{screen}");
        assert!(screen.contains("  - settings.max_responses  9\r\n"), "{screen}");
        assert_eq!(
            screen.contains(&format!("your text is kept in {}", saved[0].display())),
            code != 0,
            "{screen}"
        );
        assert!(home.ok(&["show", &id]).contains(&format!("title:      {title}")), "{screen}");
    }
}

#[test]
fn a_second_conflict_saves_the_text_again() {
    let (home, _server, id) =
        with_server("sed -i s/Lunch/Mine/ $file; other_client edit $form --title Round$round");
    let (_, screen) = start(&home, &["edit", &id]).finish();
    let editor = format!("{}/editor --wait", home.path().display());
    let (code, again) = continue_with(&home, &screen, &editor, "y\r");
    assert!(code == Some(5) && again.contains("\"Round1\" → \"Round2\""), "{again}");
    let (code, screen) = continue_with(&home, &again, "true", "y\r");
    assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{screen}");
}

#[test]
fn the_text_is_saved_if_a_server_has_opened_the_store_meanwhile() {
    let (home, id) =
        with_editor("sed -i s/Lunch/Mine/ $file; touch begun; while [ ! -e served ]; do :; done");
    let session = start(&home, &[&DATA[..], &["edit", &id]].concat());
    while !home.path().join("begun").exists() {
        std::thread::yield_now();
    }
    let _server = home.serve();
    home.write("served", "");
    let (code, screen) = session.finish();
    assert!(code == Some(5) && screen.contains("is in use by a running server"), "{screen}");
    assert!(fs::read_to_string(&saved_files(&home)[0]).unwrap().contains("title: Mine"), "{screen}");
}

#[test]
fn the_text_is_saved_if_the_server_is_gone() {
    let (home, server, id) = with_server(
        "sed -i s/Lunch/Mine/ $file; kill $(cat server); while kill -0 $(cat server) 2> /dev/null; do :; done",
    );
    home.write("server", &server.child.id().to_string());
    let reap = std::thread::spawn(move || {
        let mut server = server;
        server.child.wait().unwrap()
    });
    let (code, screen) = start(&home, &["edit", &id, "--retries", "0"]).finish();
    reap.join().unwrap();
    assert!(code == Some(7) && screen.contains("error: no server responds at"), "{screen}");
    assert!(fs::read_to_string(&saved_files(&home)[0]).unwrap().contains("title: Mine"));
    let _server = home.serve();
    let (code, screen) = continue_with(&home, &screen, "true", "y\r");
    assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{screen}");
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_and_saved() {
    let (home, id) = with_editor("printf 'title: D\\351jeuner\\n' > $file");
    let (code, screen) = edit(&home, &id);
    assert_eq!(code, Some(6), "{screen}");
    assert!(
        screen.contains("error[malformed_file]: ") && screen.contains(" is not valid UTF-8 after byte 8"),
        "{screen}"
    );
    assert_eq!(fs::read(&saved_files(&home)[0]).unwrap(), b"title: D\xe9jeuner\n");
}

#[test]
fn a_signal_saves_the_text() {
    for signal in ["HUP", "TERM"] {
        // The editor runs until the command has ended, so that only the signal can have ended it.
        let (home, _server, id) = with_server(&format!(
            "sed -i s/Lunch/Mine/ $file; kill -{signal} $PPID; while kill -0 $PPID 2> /dev/null; do :; done"
        ));
        let (code, screen) = start(&home, &["edit", &id]).finish();
        assert_eq!(code, Some(130), "{signal}: {screen}");
        let (code, screen) = continue_with(&home, &screen, "true", "y\r");
        assert!(code == Some(0) && home.ok(&["show", &id]).contains("title:      Mine"), "{screen}");
    }
}

#[test]
fn retyping_a_question_with_answers_needs_confirmation_and_removing_one_warns() {
    let script = "sed -i -e '/id: q2/,/Your email/d' -e 's/type: rating/type: number/' $file";
    for (key, code) in [("n\r", 1), ("y\r", 0)] {
        let (home, id) = with_editor(script);
        for answers in [&["q1=a", "q2=a@example.com", "q3=1"][..], &["q1=b", "q3=2"]] {
            home.ok(&[&DATA[..], &["submit", &id], answers].concat());
        }
        let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
        session.wait_for("  ~ q3.type  \"rating\" → \"number\"  ! 2 answers are of type rating\r\n");
        session.wait_for("  - q2       email \"Your email\"  ! 1 answer is hidden\r\n");
        session.wait_for("Change \"Lunch\" on store? [y/N]");
        session.type_keys(key);
        let (ended, screen) = session.finish();
        assert_eq!((ended, saved_files(&home).len()), (Some(code), usize::from(code != 0)), "{screen}");
        assert_eq!(form_file(&home, &id).contains("type: number"), code == 0, "{screen}");
    }
}

#[test]
fn a_text_typed_on_the_terminal_is_saved_like_that_of_an_editor() {
    let (home, id) = with_editor("true");
    let mut session = start(&home, &[&DATA[..], &["edit", &id, "-f", "-"]].concat());
    session.wait_for("end with Ctrl-D");
    session.type_keys("title: Typed\n\u{4}");
    session.wait_for("Change \"Lunch\" on store? [y/N]");
    session.type_keys("n\r");
    let (code, screen) = session.finish();
    assert!(code == Some(1) && screen.contains("your text is kept in "), "{screen}");
    assert!(fs::read_to_string(&saved_files(&home)[0]).unwrap().contains("title: Typed"), "{screen}");
}

#[test]
fn ctrl_c_in_the_editor_exits_130_and_saves_the_text() {
    for (script, saved_texts) in [("", 0), ("sed -i s/Lunch/Dinner/ $file;", 1)] {
        let (home, id) = with_editor(&format!("{script} echo open; exec sleep 60"));
        let before = form_file(&home, &id);
        let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
        session.wait_for("open");
        session.type_keys("\u{3}");
        let (code, screen) = session.finish();
        assert_eq!(code, Some(130), "{screen}");
        assert!(is_cursor_visible(&screen), "{screen}");
        assert_eq!((saved_files(&home).len(), form_file(&home, &id)), (saved_texts, before), "{screen}");
    }
}

#[test]
fn ctrl_c_that_the_editor_handles_does_not_end_the_command() {
    let (home, id) =
        with_editor("trap 'sed -i s/Lunch/Dinner/ $file; kill $!; exit 0' INT; sleep 60 & echo open; wait");
    let mut session = start(&home, &[&DATA[..], &["edit", &id]].concat());
    session.wait_for("open");
    session.type_keys("\u{3}");
    let (code, screen) = session.finish();
    assert!(code == Some(0) && screen.contains("  ~ title"), "{screen}");
    assert!(form_file(&home, &id).contains("title: Dinner"));
}

#[test]
fn the_editor_does_not_open_without_a_terminal_or_with_no_input() {
    let (home, id) = with_editor("echo opened");
    for arguments in [&["edit", &id][..], &["edit", &id, "--no-input"]] {
        let run = home.command(&[&DATA[..], arguments].concat()).env("VISUAL", "./editor").output().unwrap();
        assert_eq!(run.status.code(), Some(2));
    }
    assert!(!home.path().join("rounds").exists());
}

#[test]
fn a_dry_run_shows_the_change_and_saves_the_text() {
    let (home, id) = with_editor("sed -i s/Lunch/Dinner/ $file");
    let before = form_file(&home, &id);
    let (code, screen) = start(&home, &[&DATA[..], &["edit", &id, "--dry-run"]].concat()).finish();
    assert!(code == Some(0) && screen.contains("(dry run)") && screen.contains("  ~ title"), "{screen}");
    assert_eq!((saved_files(&home).len(), form_file(&home, &id)), (1, before), "{screen}");
    assert!(offered_arguments(&screen).contains(&"--dry-run".to_owned()), "{screen}");
}
