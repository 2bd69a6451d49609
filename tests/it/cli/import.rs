//! `forms import`: real forms of other tools, and damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use forms::cli::commands::import::convert;
use forms::cli::input::document::read_text;
use forms::cli::output::exit::CliError;
use forms::cli::output::yaml;
use serde_json::{Value, json};

use super::Home;
use crate::engine::random::Random;
use crate::golden::assert_golden;

/// Returns the files of other tools, in order.
fn fixtures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/import")).unwrap()
    {
        let files = fs::read_dir(folder.unwrap().path()).into_iter().flatten();
        found.extend(files.map(|file| file.unwrap().path()).filter(|path| path.extension().unwrap() != "md"));
    }
    found.sort();
    found
}

#[test]
fn real_forms_become_files_that_are_stored_unchanged_and_every_loss_is_named() {
    let home = Home::new();
    let mut losses = String::new();
    for path in fixtures() {
        let run = home.run(&["import", path.to_str().unwrap()]).expect(0);
        home.write("form.yaml", &run.stdout);
        assert_eq!(home.ok(&["validate", "form.yaml"]), "form.yaml: ok\n");
        let id = home.ok(&["--data", "store", "create", "-f", "form.yaml"]);
        assert_eq!(home.ok(&["--data", "store", "show", id.trim(), "-o", "yaml"]), run.stdout, "{path:?}");
        let json = home.run(&["import", path.to_str().unwrap(), "-o", "json"]).expect(0);
        let form: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!(form, serde_yaml::from_str::<Value>(&run.stdout).unwrap());
        losses += &format!("{}\n{}\n", path.file_name().unwrap().display(), run.stderr);
    }
    assert_golden("import/losses.txt", &losses);
}

#[test]
fn jumps_and_expressions_become_conditions() {
    let shown = |name: &str| {
        let (form, _) =
            convert(&fixtures().into_iter().find(|path| path.ends_with(name)).unwrap(), None).unwrap();
        let form: Value = serde_json::from_str(&form.to_string()).unwrap();
        let questions = form["questions"].as_array().unwrap().clone();
        let shown = questions.into_iter().filter(|question| !question["show_if"].is_null());
        Value::Array(shown.map(|question| json!([question["id"], question["show_if"]])).collect())
    };
    let level = "hello_what_s_your_gender";
    assert_eq!(
        shown("integration-test-2.json"),
        json!([["cool_you_a_boy_whatchu_think", {level: "Male"}], ["i_see_you_not_a_boy", {level: {"ne": "Male"}}]])
    );
    assert_eq!(
        shown("hidden-fields-seed.json"),
        json!([
            ["this_is_branch_a_true_false", {"seed_2": "1"}],
            ["this_is_branch_b_true_false", {"all": [{"seed_2": ["1", "2"]}, {"seed_2": {"ne": "1"}}]}],
        ])
    );
    let grown_up = json!({"sex": "female", "age_in_years": {"gte": 15, "lte": 49}});
    assert_eq!(
        shown("tutorial.xls"),
        json!([
            ["age_in_months", {"older_than_five": "no"}],
            ["age_in_years", {"older_than_five": "yes"}],
            ["literate", grown_up],
            ["pregnant", grown_up],
        ])
    );
    // The sections of this survey are pages, each asked only if its switch is on.
    assert_eq!(shown("dora-self-assessment.json")[0], json!([null, {"section_one_enable": true}]));
}

#[test]
fn what_expressions_say_is_said_exactly_or_lost() {
    let home = Home::new();
    let convert = |expression: &str| {
        let element = |kind: &str, name: &str| json!({"type": kind, "name": name, "choices": ["x", "y"]});
        let last = json!({"type": "comment", "name": "last", "visibleIf": expression});
        let elements = json!([element("radiogroup", "one"), element("checkbox", "some"), {"type": "comment", "name": "text"},
            {"type": "text", "inputType": "number", "name": "count"}, last]);
        home.write("survey.json", &json!({"title": "T", "elements": elements}).to_string());
        let (form, losses) = convert(&home.path().join("survey.json"), None).unwrap();
        let form: Value = serde_json::from_str(&form.to_string()).unwrap();
        (form["questions"][4]["show_if"].clone(), losses)
    };
    for (expression, condition) in [
        ("{one} = 'x' and {count} > 3", json!({"one": "x", "count": {"gt": 3}})),
        ("{one} == 'x' or {one} = 'y'", json!({"one": ["x", "y"]})),
        (
            "{one} notempty && {text} contains 'a b'",
            json!({"one": {"answered": true}, "text": {"includes": "a b"}}),
        ),
        (
            "{some} anyof ['x', 'y'] or {one} empty",
            json!({"any": [{"some": {"includes": "x"}},
            {"some": {"includes": "y"}}, {"one": {"answered": false}}]}),
        ),
        ("{some} notcontains 'x'", json!({"not": {"some": {"includes": "x"}}})),
        ("not({one} = 'x')", json!({"one": {"ne": "x"}})),
        ("{count} != '2'", json!({"count": {"ne": 2}})),
    ] {
        let (shown, losses) = convert(expression);
        assert_eq!(shown, condition, "{expression}: {losses:?}");
        assert!(losses.is_empty(), "{losses:?}");
    }
    for (expression, loss) in [
        ("{one} = {text}", "`{text}` is not a fixed value"),
        ("{later} = 1", "`later` is not an earlier question that was kept"),
        ("{some} = 'x'", "it compares a whole list"),
        ("({one} = 'x')", "`({one} = 'x')` is not supported"),
        ("age({one}) > 3", "`age({one}) > 3` is not supported"),
        ("{one} = 'z'", "this can never be true of `one`"),
    ] {
        let (shown, losses) = convert(expression);
        assert_eq!(shown, Value::Null, "{expression}");
        assert!(losses.len() == 1 && losses[0].contains(loss), "{losses:?}");
    }
}

#[test]
fn damaged_forms_are_converted_or_refused_and_never_become_an_invalid_file() {
    let home = Home::new();
    let mut random = Random::new(20_261_128);
    for path in fixtures()
        .into_iter()
        .filter(|path| path.extension().unwrap().to_str().unwrap().starts_with(['j', 'y']))
    {
        // YAML has JSON as a subset.
        let whole: Value = serde_yaml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for _ in 0..60 {
            let mut damaged = whole.clone();
            for _ in 0..random.below(8) {
                damage(&mut damaged, &mut random);
            }
            let file = home.write("damaged.json", &damaged.to_string());
            match convert(&file, None) {
                Ok((form, _)) => {
                    let text = yaml::yaml(&form).unwrap();
                    assert!(read_text("form.yaml", &text, None).is_ok(), "{damaged}\n{text}");
                }
                Err(CliError::Rejected(_) | CliError::Usage { .. }) => {}
                Err(other) => panic!("{other:?}: {damaged}"),
            }
        }
    }
}

/// Replaces or removes a random part of `value`.
fn damage(value: &mut Value, random: &mut Random) {
    let replacements = [
        json!(null),
        json!(""),
        json!("\u{1}\n"),
        json!(-1e300),
        json!([[]]),
        json!({"a": {}}),
        json!("x".repeat(400)),
        json!(true),
    ];
    let count = value.as_array().map(Vec::len).or(value.as_object().map(|members| members.len()));
    let place = random.below(count.unwrap_or(0).max(1));
    let inner = match value {
        Value::Array(items) if !items.is_empty() => &mut items[place],
        Value::Object(members) if !members.is_empty() => members.values_mut().nth(place).unwrap(),
        _ => return,
    };
    if random.below(4) > 0 && (inner.is_array() || inner.is_object()) {
        return damage(inner, random);
    }
    *inner = random.pick(&replacements).clone();
}

#[test]
fn what_is_no_form_of_a_known_tool_is_refused() {
    let home = Home::new();
    home.write("other.json", r#"{"title": "A"}"#);
    let unknown = home.run(&["import", "other.json"]).expect(2);
    assert!(unknown.stderr.contains("name the tool with --from"), "{unknown:?}");
    home.write("broken.json", r#"{"fields": ["#);
    home.write("list.json", "[]");
    home.write("broken.xlsx", "PK");
    home.write("broken.xls", "\u{1}");
    for file in ["broken.xlsx", "broken.xls"] {
        let run = home.run(&["import", file]).expect(2);
        assert!(run.stderr.contains(&format!("cannot read {file}")), "{run:?}");
    }
    for (file, message) in [("broken.json", "broken.json:1:"), ("list.json", "must be one object")] {
        let run = home.run(&["import", file]).expect(6);
        assert!(run.stderr.contains(message) && run.stdout.is_empty(), "{run:?}");
    }
    assert!(home.run(&["import", "none.xlsx"]).expect(2).stderr.contains("there is no such file"));
    let named = home.run(&["import", "other.json", "--from", "surveyjs"]).expect(0);
    assert_eq!(named.stdout, "title: A\nquestions: []\n");
}
