//! `forms init` and `forms schema`.

use std::fs;

use serde_json::Value;

use super::Home;

#[test]
fn init_writes_a_valid_form_and_its_schema_and_replaces_nothing() {
    let home = Home::new();
    for template in ["minimal", "feedback", "registration", "bug-report"] {
        let file = format!("my-{template}.yaml");
        let run = home.run(&["init", &file, "--template", template]).expect(0);
        assert_eq!(run.stdout, format!("{file}\n"));
        assert!(run.stderr.contains(&format!("forms dev {file}")), "{run:?}");
        assert_eq!(home.ok(&["validate", &file]), format!("{file}: ok\n"));
        let text = fs::read_to_string(home.path().join(&file)).unwrap();
        assert!(text.starts_with("# yaml-language-server: $schema=.form.schema.json\n"), "{text}");
        assert!(text.contains(&format!("\nslug: my-{template}\n")), "{text}");
        let again = home.run(&["init", &file]).expect(2);
        assert!(again.stderr.contains("file exists"), "{again:?}");
        assert_eq!(fs::read_to_string(home.path().join(&file)).unwrap(), text);
    }
    let schema = fs::read_to_string(home.path().join(".form.schema.json")).unwrap();
    assert_eq!(schema, home.ok(&["schema"]));
    // The schema is hidden, so it is not taken for a form.
    assert!(home.ok(&["init"]).contains("\nslug: minimal\n"));
    let json: Value = serde_json::from_str(&home.ok(&["init", "-o", "json"])).unwrap();
    assert_eq!((&json["slug"], &json["title"]), (&"minimal".into(), &"Lunch order".into()));
}

#[test]
fn the_schema_of_a_form_is_that_of_the_api() {
    let home = Home::new();
    let id = home.published_form(&["--data", "store"]);
    let schema: Value = serde_json::from_str(&home.ok(&["--data", "store", "schema", &id])).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["q3"]["maximum"], 5);
    let file: Value = serde_json::from_str(&home.ok(&["schema", "-o", "json"])).unwrap();
    assert_eq!(file["definitions"]["ShortTextQuestion"]["additionalProperties"], false);
    assert_eq!(file["properties"]["status"]["enum"][2], "closed");
}
