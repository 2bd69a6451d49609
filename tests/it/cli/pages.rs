//! The page of a form from the command line: `publish --public`, `open`, `share`, `show`, and the logo in a file.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use super::terminal::{Session, TIMEOUT};
use super::{Home, RunningServer};
use crate::golden::assert_golden;

const FORM: &str = "\
title: \"Customers' \\\"feedback\\\" & more\"
slug: feedback
questions:
  - {id: name, type: short_text, title: Your name, required: true}
  - {id: email, type: email, title: Email}
  - {id: score, type: rating, title: How did we do?}
  - {id: why, type: long_text, title: Why?, show_if: {score: {lte: 2}}}
  - {id: idea, type: long_text, title: Your <idea>}
  - {id: when, type: single_choice, title: When?, options: [now, {value: later, label: 'Later & elsewhere'}]}
  - {id: order, type: ranking, title: Order, options: [a, b]}
";

fn with_form() -> (Home, RunningServer, String) {
    let home = Home::new();
    let server = home.serve();
    home.write("feedback.yaml", FORM);
    let id = home.ok(&["create", "-f", "feedback.yaml"]).trim().to_owned();
    (home, server, id)
}

#[test]
fn a_draft_is_previewed_and_a_public_form_is_shared() {
    let (home, server, id) = with_form();
    let draft = home.run(&["share", "feedback"]).expect(0);
    assert!(draft.stdout.starts_with(&format!("{}/f/{id}?_preview=", server.url)), "{draft:?}");
    assert_eq!(draft.stdout.lines().count(), 1);
    let state = "feedback\" & more\" is not public; to open its page: forms publish ";
    assert!(draft.stderr.contains(&format!("{state}{id} --public\n")), "{draft:?}");
    assert!(draft.stderr.contains("this is its preview, until 20"), "{draft:?}");
    let shown = home.ok(&["show", "feedback"]);
    assert!(shown.contains(&format!("\npage:       {}/f/{id}?_preview=", server.url)), "{shown}");

    let published = home.run(&["publish", "feedback", "--public"]).expect(0);
    assert_eq!(published.stdout, format!("{id}\n"));
    let page = format!("page: {}/f/feedback\nnext: forms share {id}\n", server.url);
    assert!(published.stderr.ends_with(&page), "{published:?}");
    let shown = home.ok(&["show", "feedback"]);
    let page = format!("\npage:       {}/f/feedback\n", server.url);
    assert!(shown.contains(&page), "{shown}");

    let shared = home.run(&["share", "feedback"]).expect(0);
    assert_golden("share.txt", &shared.stdout.replace(&server.url, "http://127.0.0.1:8787"));
    assert_eq!(shared.stderr, "");
    let json = home.run(&["share", "feedback", "-o", "json"]).expect(0).json();
    assert_eq!(
        (&json["public"], json["url"].as_str()),
        (&true.into(), Some(&*format!("{}/f/feedback", server.url)))
    );
    assert!(shared.stdout.contains(json["html_form"].as_str().unwrap()));
}

#[test]
fn a_terminal_shows_a_qr_code_if_it_has_block_characters() {
    let (home, _server, _) = with_form();
    home.ok(&["publish", "feedback", "--public"]);
    let share = |locale| Session::start(&home, &[("LANG", locale)], &["share", "feedback"]).finish().1;
    let code = share("en_GB.UTF-8");
    let is_block = |line: &&str| line.contains('█');
    assert!(code.lines().filter(is_block).count() >= 16, "{code}");
    assert!(code.lines().filter(is_block).all(|line| line.chars().count() <= 40), "{code}");
    assert_eq!(share("C").lines().filter(is_block).count(), 0);
}

#[test]
fn open_prints_the_address_and_starts_a_browser_where_there_is_a_display() {
    let (home, server, id) = with_form();
    let draft = home.run(&["open", "feedback", "--print"]).expect(0);
    assert!(draft.stdout.starts_with(&format!("{}/f/{id}?_preview=", server.url)), "{draft:?}");
    home.ok(&["publish", "feedback", "--public"]);
    // A browser that writes down what it opens.
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let browser = home.write(
        "bin/xdg-open",
        "#!/bin/sh\necho \"$1\" > \"$HOME/opening\"\nmv \"$HOME/opening\" \"$HOME/opened\"\n",
    );
    let mut mode = fs::metadata(&browser).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&browser, mode).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let opened = home.path().join("opened");
    let page = format!("{}/f/feedback", server.url);
    let open = |variables: &[(&str, &str)], arguments: &[&str]| {
        let variables = [&[("PATH", &*path)], variables].concat();
        let (code, screen) = Session::start(&home, &variables, arguments).finish();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.starts_with(&page), "{screen}");
    };
    open(&[], &["open", "feedback"]);
    open(&[("DISPLAY", ":0"), ("SSH_CONNECTION", "a")], &["open", "feedback"]);
    open(&[("DISPLAY", ":0")], &["open", "feedback", "--print"]);
    open(&[("DISPLAY", ":0")], &["open", &id]);
    let started = Instant::now();
    while !opened.exists() {
        assert!(started.elapsed() < TIMEOUT, "the browser was not started");
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(&opened).unwrap(), format!("{page}\n"));
}

#[test]
fn without_a_server_there_are_only_paths() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    home.ok(&["--data", "store", "publish", &id, "--public"]);
    for command in ["open", "share"] {
        let run = home.run(&["--data", "store", command, &id]).expect(0);
        assert!(run.stdout.starts_with(&format!("/f/{id}\n")), "{run:?}");
        assert_eq!(run.stderr, "pages need a server: forms serve --data DIR\n");
    }
}

#[test]
fn the_logo_in_a_file_is_a_picture_beside_it() {
    let home = Home::new();
    fs::create_dir(home.path().join("forms")).unwrap();
    let file = |logo: &str| {
        let text = format!(
            "title: A\nquestions: [{{type: email, title: B}}]\nsettings:\n  theme:\n    logo: {logo}\n"
        );
        home.write("forms/a.yaml", &text);
    };
    home.write("forms/logo.svg", "<svg/>");
    home.write("forms/large.png", &"x".repeat(16 * 1024 + 1));
    file("logo.svg");
    let id = home.ok(&["--data", "store", "create", "-f", "forms/a.yaml"]);
    let form = home.run(&["--data", "store", "show", id.trim(), "-o", "json"]).expect(0).json();
    assert_eq!(form["settings"]["theme"]["logo"], Value::from("data:image/svg+xml;base64,PHN2Zy8+"));
    file("large.png");
    let large = home.run(&["validate", "forms/a.yaml"]).expect(6).stderr;
    assert!(
        large.starts_with("error[invalid_logo]: large.png is larger than 16 KiB\n --> forms/a.yaml:5:11\n"),
        "{large}"
    );
    file("../none.webp");
    let missing =
        home.run(&["--data", "store", "edit", id.trim(), "--yes", "-f", "forms/a.yaml"]).expect(6).stderr;
    assert!(missing.starts_with("error[invalid_logo]: cannot read ../none.webp: "), "{missing}");
    assert!(missing.ends_with("error: forms/a.yaml: 1 problem found\n"), "{missing}");
}
