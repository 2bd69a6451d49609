//! Contexts: their file, the order in which settings are found, and `forms context`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

use serde_json::Value;

use super::fake_server::operator_key;
use super::{Home, Run};

const KEY: &str = "fk_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP1234";

/// Writes `credentials.yaml` into the folder that `FORMS_CONFIG_DIR` of [`with_contexts`] names.
fn write_credentials(home: &Home, text: &str) {
    fs::create_dir_all(home.path().join("config")).unwrap();
    let path = home.write("config/credentials.yaml", text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs a command with these contexts.
fn with_contexts(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    home.run_with(&[&[("FORMS_CONFIG_DIR", "config")], variables].concat(), arguments)
}

/// What `whoami` finds; the servers do not respond.
fn found(home: &Home, variables: &[(&str, &str)], flags: &[&str]) -> Value {
    let arguments = [flags, &["--retries", "0", "-o", "json", "whoami"]].concat();
    with_contexts(home, variables, &arguments).expect(7).problem()["found"].clone()
}

const THREE: &str = "\
current: one
contexts:
  one: {url: 'http://127.0.0.1:1', key: fk_one}
  two: {url: 'http://127.0.0.1:2', key: fk_two}
  twin: {url: 'http://127.0.0.1:1/', key: fk_twin}
";

#[test]
fn the_address_is_found_by_flag_then_variable_then_current_context() {
    let home = Home::new();
    write_credentials(&home, THREE);
    let (url, context) = (("FORMS_URL", "http://127.0.0.1:3"), ("FORMS_CONTEXT", "two"));
    for (variables, flags, port, source, name) in [
        (&[url, context][..], &["--url", "http://127.0.0.1:4"][..], 4, "flag", None),
        (&[url, context], &["--context", "one"], 1, "context", Some("one")),
        (&[url, context], &[], 3, "env", None),
        (&[context], &[], 2, "context", Some("two")),
        (&[], &[], 1, "context", Some("one")),
    ] {
        let found = found(&home, variables, flags);
        let mut expected = serde_json::json!({"value": format!("http://127.0.0.1:{port}"), "source": source});
        if let Some(name) = name {
            expected["context"] = name.into();
        }
        assert_eq!(found["url"], expected);
    }
    let both = with_contexts(&home, &[], &["--url", "http://127.0.0.1:4", "--context", "one", "list"]);
    assert_eq!(both.expect(2).stderr, "error: --url and --context cannot be used together\n");
}

#[test]
fn a_key_is_found_by_flag_then_variable_then_the_context_of_exactly_this_address() {
    let home = Home::new();
    write_credentials(&home, THREE);
    home.write("key", KEY);
    fs::set_permissions(home.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    let (key, file) = (("FORMS_API_KEY", KEY), ("FORMS_API_KEY_FILE", "key"));
    let of = |variables: &[(&str, &str)], flags: &[&str]| {
        let key = found(&home, variables, flags)["key"].clone();
        (key["source"].as_str().map(str::to_owned), key["context"].as_str().map(str::to_owned))
    };
    let source = |name: &str| (Some(name.to_owned()), None);
    let context = |name: &str| (Some("context".to_owned()), Some(name.to_owned()));
    assert_eq!(of(&[key, file], &["--key-file", "key"]), source("flag"));
    assert_eq!(of(&[key, file], &[]), source("env"));
    assert_eq!(of(&[file], &[]), source("env"));
    assert_eq!(of(&[], &[]), context("one"));
    assert_eq!(of(&[], &["--context", "two"]), context("two"));
    // The chosen one of two with the same address.
    assert_eq!(of(&[], &["--context", "twin"]), context("twin"));
    assert_eq!(of(&[("FORMS_URL", "http://127.0.0.1:2/")], &[]), context("two"));
    write_credentials(&home, &THREE.replace("current: one", "current: twin"));
    assert_eq!(of(&[("FORMS_URL", "http://127.0.0.1:1")], &[]), context("twin"));
    for other in ["http://127.0.0.1:3", "http://localhost:2", "http://127.0.0.1:2/forms"] {
        assert_eq!(of(&[("FORMS_URL", other)], &[]), (None, None), "{other}");
    }
}

#[test]
fn a_key_of_the_environment_goes_only_to_the_address_of_the_environment() {
    let home = Home::new();
    write_credentials(&home, THREE);
    let (key, file) = (("FORMS_API_KEY", KEY), ("FORMS_API_KEY_FILE", "missing"));
    let (url, context) = (("FORMS_URL", "http://127.0.0.1:3"), ("FORMS_CONTEXT", "two"));
    let none = Value::Null;
    for (variables, flags, source) in [
        (&[key][..], &[][..], "env"),
        (&[key, url], &[], "env"),
        (&[key, context], &[], "env"),
        (&[key, url], &["--url", "http://127.0.0.1:3/"], "env"),
        (&[key], &["--context", "one"], "env"),
        (&[key], &["--context", "two"], "context"),
        (&[key, url], &["--context", "one"], "context"),
        (&[file], &["--context", "two"], "context"),
        (&[key, url], &["--url", "http://127.0.0.1:2"], "context"),
    ] {
        assert_eq!(found(&home, variables, flags)["key"]["source"], source, "{variables:?} {flags:?}");
    }
    for variables in [&[key][..], &[key, url], &[file, context]] {
        assert_eq!(found(&home, variables, &["--url", "http://127.0.0.1:4"])["key"], none, "{variables:?}");
    }
    let server = home.serve();
    let missing = home.run_with(
        &[("FORMS_URL", "http://127.0.0.1:3"), key],
        &["--url", &server.url.replace("127.0.0.1", "localhost"), "list"],
    );
    let note = "  = note: FORMS_API_KEY was not sent: it is for http://127.0.0.1:3\n";
    assert!(missing.expect(4).stderr.contains(note));
}

#[test]
fn whoami_shows_the_name_of_the_context() {
    let home = Home::new();
    write_credentials(&home, &THREE.replace("fk_one", KEY));
    let shown = with_contexts(&home, &[], &["--retries", "0", "whoami"]).expect(7);
    let expected = "url        http://127.0.0.1:1  (context one)\nkey        fk_…1234  (context one)\nworkspace  unknown\n";
    assert_eq!(shown.stdout, expected);
    assert!(shown.stderr.contains("= note: address from: context `one`\n"), "{shown:?}");
    let flag = with_contexts(&home, &[], &["--retries", "0", "--context", "two", "list"]).expect(7);
    assert!(flag.stderr.contains("= note: address from: context `two`\n"), "{flag:?}");
    let variable = with_contexts(&home, &[("FORMS_URL", "http://127.0.0.1:3")], &["list"]).expect(7);
    assert!(variable.stderr.contains("= note: address from: FORMS_URL\n"), "{variable:?}");
}

#[test]
fn an_unknown_context_exits_3_with_a_suggestion() {
    let home = Home::new();
    let none = with_contexts(&home, &[], &["--context", "prod", "list"]).expect(3);
    assert_eq!(none.stderr, "error: there is no context `prod`\n  = help: forms login URL makes one\n");
    write_credentials(&home, "current: gone\ncontexts: {prod: {url: 'https://a.invalid', key: fk_a}}\n");
    for arguments in [
        &["--context", "pord", "list"][..],
        &["context", "use", "pord"],
        &["context", "remove", "pord"],
        &["logout", "pord"],
    ] {
        let run = with_contexts(&home, &[], arguments).expect(3);
        let help = "a similar name exists: prod";
        assert_eq!(run.stderr, format!("error: there is no context `pord`\n  = help: {help}\n"));
    }
    let gone = with_contexts(&home, &[], &["list", "-o", "json"]).expect(3).problem();
    assert_eq!(gone["code"], "context_not_found");
    assert_eq!(gone["hint"], "forms context list shows all");
}

#[test]
fn a_broken_file_stops_only_commands_that_need_it() {
    let home = Home::new();
    let server = home.serve();
    let key = operator_key(&home);
    for (broken, place) in [
        ("contexts: {a: {url: b\n", ":2:1"),
        ("current: a\ncontexts: fk_secret\n", ":2:11"),
        ("current: a\ncontexts:\n  a: {url: fk_secret}\n", ":3:6"),
        ("contexts: {}\ncontexts: {}\n", ""),
        ("fk_secret", ""),
    ] {
        write_credentials(&home, broken);
        let commands: [&[&str]; 5] = [
            &["list"],
            &["--url", &server.url, "list"],
            &["context", "list"],
            &["context", "use", "a"],
            &["login", &server.url, "--key-file", "store/operator-key"],
        ];
        for command in commands {
            let run = with_contexts(&home, &[], command).expect(2);
            assert!(
                run.stderr.starts_with(&format!("error: config/credentials.yaml{place}")),
                "{broken}: {run:?}"
            );
            assert!(run.stderr.contains("is not valid\n") && !run.stderr.contains("fk_secret"), "{run:?}");
        }
        assert_eq!(fs::read_to_string(home.path().join("config/credentials.yaml")).unwrap(), broken);
        let variables = [("FORMS_URL", server.url.as_str()), ("FORMS_API_KEY", &key)];
        with_contexts(&home, &variables, &["list"]).expect(0);
    }
    home.published_form(&["--data", "other"]);
    home.published_form(&["--data", "other"]);
    for command in [&["--data", "other", "list"][..], &["help", "environment"], &["validate", "survey.yaml"]]
    {
        with_contexts(&home, &[], command).expect(0);
    }
}

#[test]
fn a_file_that_is_too_large_or_not_a_file_is_refused() {
    let home = Home::new();
    write_credentials(&home, &format!("# {}\n", "x".repeat(1 << 20)));
    let run = with_contexts(&home, &[], &["context", "list"]).expect(2);
    assert_eq!(run.stderr, "error: cannot read config/credentials.yaml: it is larger than 1 MiB\n");
    fs::remove_file(home.path().join("config/credentials.yaml")).unwrap();
    fs::create_dir(home.path().join("config/credentials.yaml")).unwrap();
    let run = with_contexts(&home, &[], &["context", "list"]).expect(2);
    assert_eq!(run.stderr, "error: cannot read config/credentials.yaml: it is not a file\n");
}

#[test]
fn a_file_that_others_can_read_causes_a_warning() {
    let home = Home::new();
    write_credentials(&home, THREE);
    assert_eq!(with_contexts(&home, &[], &["context", "list"]).expect(0).stderr, "");
    let path = home.path().join("config/credentials.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let warning = "config/credentials.yaml is readable by others; chmod 600 config/credentials.yaml";
    let run = with_contexts(&home, &[], &["context", "list"]).expect(0);
    assert_eq!(run.stderr, format!("warning: {warning}\n"));
    // Waiting for a server that is starting reads the file only once.
    write_credentials(&home, "contexts: {}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let run = with_contexts(&home, &[], &["list"]);
    assert_eq!(run.stderr.matches("readable by others").count(), 1, "{run:?}");
}

#[test]
fn the_folder_is_found_by_the_xdg_rules() {
    let home = Home::new();
    let file = |context: &str| format!("contexts: {{{context}: {{url: 'https://a.invalid', key: fk_a}}}}\n");
    for folder in ["own", "xdg/forms", ".config/forms"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
        let path = home.write(&format!("{folder}/credentials.yaml"), &file(&folder.replace('/', "-")[..3]));
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let xdg = home.path().join("xdg");
    let xdg = ("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    for (variables, name) in [
        (&[("FORMS_CONFIG_DIR", "own"), xdg][..], "own"),
        (&[xdg], "xdg"),
        (&[("XDG_CONFIG_HOME", "relative")], ".co"),
        (&[], ".co"),
    ] {
        let run = home.run_with(variables, &["context", "list", "--columns", "name"]).expect(0);
        assert_eq!(run.stdout, format!("{name}\n"));
    }
}

#[test]
fn contexts_are_listed_without_their_keys() {
    let home = Home::new();
    write_credentials(&home, &THREE.replace("fk_one", KEY));
    let list = |format| with_contexts(&home, &[], &["context", "list", "-o", format]).expect(0).stdout;
    let rows = "one\thttp://127.0.0.1:1\ttrue\tfk_…1234\ntwin\thttp://127.0.0.1:1/\tfalse\tfk_…\n\
                two\thttp://127.0.0.1:2\tfalse\tfk_…\n";
    assert_eq!(list("table"), rows);
    assert!(list("csv").starts_with("name,url,current,key\none,"));
    let json: Value = serde_json::from_str(&list("json")).unwrap();
    assert_eq!(json["contexts"][0]["current"], true);
    for format in ["table", "json", "jsonl", "csv", "yaml"] {
        let text = list(format);
        assert!(!text.contains(&KEY[..20]) && !text.contains("fk_two"), "{text}");
    }
    write_credentials(&home, "");
    assert_eq!(list("json"), "{\"contexts\":[]}\n");
    assert_eq!((list("table"), list("csv")), (String::new(), "name,url,current,key\n".to_owned()));
    assert_eq!((list("jsonl"), list("yaml")), (String::new(), "contexts: []\n".to_owned()));
}

#[test]
fn the_current_context_is_chosen_and_others_are_removed() {
    let home = Home::new();
    let text = "current: one\ntheme: dark\ncontexts:\n  one: {url: 'http://127.0.0.1:1', key: fk_one, note: mine}\n  two: {url: 'http://127.0.0.1:2', key: fk_two}\n";
    write_credentials(&home, text);
    let used = with_contexts(&home, &[], &["context", "use", "two"]).expect(0);
    assert_eq!((&*used.stdout, &*used.stderr), ("two\n", "commands use http://127.0.0.1:2 from now on\n"));
    let saved = || {
        let text = fs::read_to_string(home.path().join("config/credentials.yaml")).unwrap();
        serde_yaml::from_str::<Value>(&text).unwrap()
    };
    // Members of newer versions stay.
    assert_eq!((&saved()["current"], &saved()["theme"]), (&"two".into(), &"dark".into()));
    assert_eq!(saved()["contexts"]["one"]["note"], "mine");
    let warned = with_contexts(&home, &[("FORMS_CONTEXT", "one")], &["context", "use", "two"]).expect(0);
    let warning = "warning: FORMS_CONTEXT is set and overrides context `two`; unset it to use this context\n";
    assert!(warned.stderr.ends_with(warning), "{warned:?}");
    let removed = with_contexts(&home, &[], &["context", "remove", "two", "nope", "one"]).expect(8);
    assert_eq!(removed.stdout, "two\none\n");
    assert_eq!(saved(), serde_json::json!({"theme": "dark", "contexts": {}}));
}

#[test]
fn commands_that_change_the_file_at_the_same_time_lose_nothing() {
    let home = Home::new();
    let names: Vec<_> = (0..16).map(|number| format!("c{number}")).collect();
    let entry = |name: &String| format!("  {name}: {{url: 'http://127.0.0.1:1', key: fk_{name}}}\n");
    write_credentials(&home, &format!("contexts:\n{}", names.iter().map(entry).collect::<String>()));
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| with_contexts(&home, &[], &["context", "remove", name]).expect(0));
        }
    });
    assert_eq!(with_contexts(&home, &[], &["context", "list"]).expect(0).stdout, "");
    let lock = fs::metadata(home.path().join("config/credentials.lock")).unwrap();
    assert_eq!(lock.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_behind_a_link_is_not_overwritten() {
    let home = Home::new();
    write_credentials(&home, "");
    let target = home.write("elsewhere.yaml", THREE);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    let path = home.path().join("config/credentials.yaml");
    fs::remove_file(&path).unwrap();
    symlink(&target, &path).unwrap();
    with_contexts(&home, &[], &["context", "use", "two"]).expect(0);
    assert_eq!(fs::read_to_string(&target).unwrap(), THREE);
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn plain_http_is_allowed_only_for_the_address_of_a_context_that_allows_it() {
    let home = Home::new();
    let context = |flag: &str| {
        write_credentials(
            &home,
            &format!("contexts: {{lan: {{url: 'http://forms.invalid', key: fk_a{flag}}}}}\n"),
        );
    };
    context("");
    let refused = with_contexts(&home, &[], &["--context", "lan", "list"]).expect(2);
    assert!(refused.stderr.contains("unencrypted"), "{refused:?}");
    context(", insecure_http: true");
    for arguments in [["--context", "lan"], ["--url", "http://forms.invalid/"]] {
        let sent =
            with_contexts(&home, &[], &[&arguments[..], &["--retries", "0", "list"]].concat()).expect(7);
        assert!(sent.stderr.contains("no server responds"), "{sent:?}");
    }
    with_contexts(&home, &[], &["--url", "http://other.invalid", "list"]).expect(2);
}

#[test]
fn without_contexts_and_without_home_the_key_and_the_address_are_enough() {
    let home = Home::new();
    let server = home.serve();
    let key = operator_key(&home);
    let mut list = home.command(&["list"]);
    list.env_clear().env("FORMS_API_KEY", &key).env("FORMS_URL", &server.url);
    let run: Run = list.output().unwrap().into();
    assert_eq!((run.expect(0).stdout, home.path().join(".config").exists()), (String::new(), false));
}
