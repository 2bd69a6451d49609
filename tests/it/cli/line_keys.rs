//! Keys in prompts: editing a line, choosing from a list, ignored input.

use super::Home;
use super::terminal::Session;

/// Types each of `keys` at the prompt of a required question with the settings `kind`, and returns the answers.
#[track_caller]
fn answers(kind: &str, keys: &[&[u8]]) -> Vec<String> {
    let home = Home::new();
    let question = |index| format!("  - {{id: q{index}, {kind}, title: Part {index}, required: true}}\n");
    let questions: String = (1..=keys.len()).map(question).collect();
    home.write("keys.yaml", &format!("title: Keys\nquestions:\n{questions}"));
    let id = home.ok(&["--data", "store", "create", "--publish", "-f", "keys.yaml"]);
    let mut session = Session::start(&home, &[("NO_COLOR", "1")], &["--data", "store", "submit", id.trim()]);
    for (index, keys) in keys.iter().enumerate() {
        session.wait_for_next(&format!("Part {}", index + 1));
        session.type_bytes(&[keys, &b"\r"[..]].concat());
    }
    let (code, screen) = session.finish();
    assert_eq!(code, Some(0), "{screen}");
    let ids: Vec<_> = (1..=keys.len()).map(|index| format!("q{index}")).collect();
    let row = home.ok(&["--data", "store", "responses", id.trim(), "--columns", &ids.join(",")]);
    row.trim_end_matches('\n').split('\t').map(str::to_owned).collect()
}

#[test]
fn common_keys_edit_a_line() {
    let rows: [(&[u8], &str); 27] = [
        ("aé日🎉".as_bytes(), "aé日🎉"),
        ("añb\u{7f}c".as_bytes(), "añc"),
        (b"ab\x08c", "ac"),
        ("ab\u{1b}[Dñ\u{1b}[Cc".as_bytes(), "añbc"),
        (b"ab\x1bODc", "acb"),
        (b"ab\x1b[H\x1b[3~c\x1b[Fd", "cbd"),
        (b"ab\x1b[1~c\x1b[4~d", "cabd"),
        (b"ab\x1b[7~c\x1b[8~d", "cabd"),
        (b"ab\x01c\x05d", "cabd"),
        // Ctrl-U, Ctrl-K and Ctrl-W.
        (b"ab\x1b[D\x15c", "c"),
        (b"ab\x1b[D\x0b", "a"),
        (b"ab cd \x17c", "ab c"),
        // Keys without an effect here.
        (b"ab\x04\x07\t", "ab"),
        (b"\x7f\x1b[3~\x1b[D\x1b[Cab", "ab"),
        // Unknown sequences are ignored to their end.
        (b"a\x1b[1;5Db", "ab"),
        (b"\x1b[200~ab\x1b[201~", "ab"),
        (b"a\x1b[15~b\x1b[<0;1;1M", "ab"),
        (b"a\x1bxb", "ab"),
        (b"a\x1b\x1b[1;3Db", "ab"),
        (b"b\x1b[1;\x1b[Da", "ab"),
        // Bytes that are not UTF-8 are ignored.
        (b"a\xe9b", "ab"),
        (b"a\xffb", "ab"),
        (b"a\x80b", "ab"),
        (b"a\xe2\x82b", "ab"),
        (b"a\xc0\xafb", "ab"),
        (b"a\xf0\x9f\x8eb", "ab"),
        (b"caf\xe9", "caf"),
    ];
    assert_eq!(answers("type: short_text", &rows.map(|(keys, _)| keys)), rows.map(|(_, text)| text));
}

#[test]
fn common_keys_choose_from_a_list() {
    let rows: [(&[u8], &str); 7] = [
        (b"", "a"),
        (b"\x1b[B", "b"),
        (b"\x1bOB\x1bOA", "a"),
        (b"\x1b[A", "c"),
        (b"\t\t\x1b[Z", "b"),
        (b"jjk", "b"),
        (b"\x1b[B\x1b[B\x1b[B", "a"),
    ];
    let kind = "type: single_choice, options: [a, b, c]";
    assert_eq!(answers(kind, &rows.map(|(keys, _)| keys)), rows.map(|(_, choice)| choice));
}

#[test]
fn escape_and_ctrl_c_cancel_a_line_that_is_not_empty() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    for keys in ["ab\u{1b}", "ab\u{3}", "\u{1b}\u{1b}"] {
        let mut session = Session::start(&home, &[], &["--data", "store", "submit", &id]);
        session.wait_for_next("What would you like?");
        session.type_keys(keys);
        assert_eq!(session.finish().0, Some(130), "{keys:?}");
    }
}
