//! The first commands of a new user, with and without a server, and the example files.

use super::Home;

/// Runs `script` in bash.
fn bash(home: &Home, script: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_forms")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = home.command(&[]);
    let program = command.get_program().to_owned();
    assert!(program.to_str().unwrap().ends_with("forms"));
    let mut shell = std::process::Command::new("bash");
    shell.env_clear();
    for (name, value) in command.env("PATH", &path).get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = shell.args(["-euc", script]).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_form_is_created_published_submitted_and_listed_with_a_server() {
    let home = Home::new();
    let _server = home.serve();
    let output = bash(
        &home,
        "id=$(forms create -f survey.yaml)
         forms publish $id
         forms submit $id q1=hello
         forms list
         forms responses $id -o jsonl",
    );
    check(&output);
}

#[test]
fn a_form_is_created_published_submitted_and_listed_without_a_server() {
    let home = Home::new();
    let output = bash(
        &home,
        "id=$(forms --data ./store create -f survey.yaml)
         forms --data ./store publish $id
         forms --data ./store submit $id q1=hello
         forms --data ./store list
         forms --data ./store responses $id -o jsonl",
    );
    check(&output);
}

#[track_caller]
fn check(output: &str) {
    let lines: Vec<_> = output.lines().collect();
    let [published, submission, form, answers] = lines[..] else { panic!("{output}") };
    assert!(published.starts_with("frm_") && submission.starts_with("sub_"), "{output}");
    let cells: Vec<_> = form.split('\t').collect();
    assert_eq!([cells[0], cells[1], cells[2], cells[4]], [published, "published", "1", "Lunch"]);
    let answers: serde_json::Value = serde_json::from_str(answers).unwrap();
    assert_eq!(answers["answers"]["q1"], "hello");
}

#[test]
fn every_example_can_be_created() {
    let home = Home::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for example in std::fs::read_dir(folder).unwrap() {
        let path = example.unwrap().path();
        let path = path.to_str().unwrap();
        home.ok(&["validate", path]);
        let id = home.ok(&["--data", "store", "create", "--publish", "-f", path]);
        assert!(id.starts_with("frm_"), "{id}");
        count += 1;
    }
    assert!(count >= 4);
}
