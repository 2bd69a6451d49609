//! Parsing of arguments: sizes and times, answers, and settings of `edit --set`.

use std::path::Path;

use forms::cli::input::answer_args::{AnswerArg, ArgValue, parse};
use forms::cli::input::assignment::Setting;
use forms::cli::input::values::{duration, size};
use forms::cli::output::exit::CliError;
use forms::domain::json;

#[test]
fn sizes_and_times_have_units() {
    for (text, bytes) in
        [("0", 0), ("512B", 512), ("64KiB", 65_536), ("1.5MiB", 3 << 19), ("2GiB", 2 << 30), ("1kB", 1_000)]
    {
        assert_eq!(size(text), Ok(bytes));
    }
    for text in ["", "KiB", "1x", "-1", "18446744073709551615GiB"] {
        assert!(size(text).is_err(), "{text}");
    }
    for (text, millis) in [
        ("500ms", 500),
        ("30s", 30_000),
        ("7", 7_000),
        ("2m", 120_000),
        ("1h 1m", 3_660_000),
        ("1d", 86_400_000),
    ] {
        assert_eq!(duration(text).unwrap().as_millis(), millis);
    }
    for text in ["", "s", "0", "0s", "-1s", "1x", "99999999999999999999s", "18446744073709551615h"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn the_value_of_an_answer_begins_after_the_first_equals_sign() {
    let parse_one = |argument: &str| {
        let read = |_: &str, path: &Path| Ok(format!("in {}", path.display()));
        parse(&[argument.to_owned()], &[], read).map(|mut args| args.remove(0))
    };
    let text = |text: &str| ArgValue::Text(text.to_owned());
    let json = |text: &str| ArgValue::Json(json::parse(text).unwrap());
    for (argument, value) in [
        ("q1=hello", text("hello")),
        ("q1=", text("")),
        ("q1==x", text("=x")),
        ("q1=a=b", text("a=b")),
        ("q1=a:=b", text("a:=b")),
        ("q1=\\@x", text("@x")),
        ("q1=\\x", text("\\x")),
        ("q1=01234", text("01234")),
        ("q1=@bio.txt", text("in bio.txt")),
        ("q1=@-", text("in -")),
        ("q1:=4.50", json("4.50")),
        ("q1:={\"a\":[1]}", json("{\"a\":[1]}")),
        ("q1:=\"@x\"", json("\"@x\"")),
    ] {
        assert_eq!(parse_one(argument).unwrap(), AnswerArg { key: "q1".to_owned(), value });
    }
    for argument in ["q1", "q1:=", "q1:=red", "q1:={\"a\":1,\"a\":2}", "q1:=@file"] {
        assert!(matches!(parse_one(argument), Err(CliError::Usage { .. })), "{argument}");
    }
}

const FORM: &str = r#"{"title":"T","questions":[{"type":"page","title":"P"},{"id":"name","type":"short_text","title":"N"},{"id":"size","type":"rating","title":"S","labels":{"1":"Bad"}}],"settings":{"closed":true}}"#;

#[test]
fn a_setting_is_converted_by_its_member() {
    let form = json::parse(FORM).unwrap();
    let set = |argument: &str| Setting::parse(argument).unwrap().apply(&form);
    for (argument, old, new) in [
        ("title=Lunch: today # or not", r#""title":"T""#, r#""title":"Lunch: today # or not""#),
        ("title=1.10", r#""title":"T""#, r#""title":"1.10""#),
        ("title=yes", r#""title":"T""#, r#""title":"yes""#),
        ("title=[a, b]", r#""title":"T""#, r#""title":"[a, b]""#),
        ("title=\"# a\"", r#""title":"T""#, r##""title":"# a""##),
        ("questions.name.pattern=[a-z]+", r#""N"}"#, r#""N","pattern":"[a-z]+"}"#),
        ("questions.name.required=true", r#""N"}"#, r#""N","required":true}"#),
        ("questions.name.show_if={size: [1, 2]}", r#""N"}"#, r#""N","show_if":{"size":[1,2]}}"#),
        ("questions.size.labels.5=1", r#"{"1":"Bad"}"#, r#"{"1":"Bad","5":"1"}"#),
        ("questions.size.labels.1=", r#""labels":{"1":"Bad"}"#, r#""labels":{}"#),
        ("questions.size.max=7", r#"{"1":"Bad"}"#, r#"{"1":"Bad"},"max":7"#),
        ("questions.name=", r#"{"id":"name","type":"short_text","title":"N"},"#, ""),
        ("settings.closed=null", r#"{"closed":true}"#, "{}"),
        ("settings.max_responses=100", r#"true}"#, r#"true,"max_responses":100}"#),
        ("settings.language=007", r#"true}"#, r#"true,"language":"007"}"#),
        (
            "settings.confirmation.message=Thanks!",
            r#"true}"#,
            r#"true,"confirmation":{"message":"Thanks!"}}"#,
        ),
        // A value of the wrong type is sent unchanged; the server reports it.
        ("settings.closed=5", r#""closed":true"#, r#""closed":5"#),
    ] {
        assert!(FORM.contains(old), "{old}");
        assert_eq!(set(argument).unwrap().to_string(), FORM.replacen(old, new, 1), "{argument}");
    }
    for argument in ["questions.nmae.title=A", "questions.name={type: email}"] {
        assert!(matches!(set(argument), Err(CliError::Usage { .. })), "{argument}");
    }
    for argument in ["title", "=5", "settings.=5", ".title=A"] {
        assert!(Setting::parse(argument).is_err(), "{argument}");
    }
}
