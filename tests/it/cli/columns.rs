//! `--columns` selects and orders the columns of every command with a result.

use super::Home;
use super::terminal::Session;

const DATA: [&str; 2] = ["--data", "store"];

fn home() -> (Home, String) {
    let home = Home::new();
    let id = home.published_form(&DATA);
    home.ok(&[&DATA[..], &["submit", &id, "q1=soup", "q3=4"]].concat());
    (home, id)
}

#[test]
fn columns_are_chosen_and_ordered() {
    let (home, id) = home();
    let run = |arguments: &[&str]| home.ok(&[&DATA[..], arguments].concat());
    assert_eq!(run(&["list", "--columns", "title,status"]), "Lunch\tpublished\n");
    assert_eq!(run(&["list", "--columns", "title,status", "-o", "csv"]), "title,status\nLunch,published\n");
    assert!(run(&["list", "-o", "csv"]).starts_with("id,status,response_count,updated_at,title,slug\n"));
    assert_eq!(run(&["responses", &id, "--columns", "q3,q1"]), "4\tsoup\n");
    assert_eq!(run(&["responses", &id, "--columns=q3", "--columns=q1", "-o", "csv"]), "q3,q1\n4,soup\n");
    assert_eq!(run(&["show", &id, "--columns", "slug,title,response_count"]), "\tLunch\t1\n");
    let both = ["publish", &id, &id, "--columns", "title,id", "-o", "csv"];
    assert_eq!(run(&both), format!("title,id\nLunch,{id}\nLunch,{id}\n"));
    let both = ["publish", &id, &id, "--columns", "title"];
    assert_eq!(run(&both), "Lunch\nLunch\n");
    assert_eq!(run(&["validate", "survey.yaml", "--columns", "valid"]), "true\n");
}

#[test]
fn an_unknown_column_is_refused_before_the_command_does_anything() {
    let (home, id) = home();
    let run = |arguments: &[&str]| home.run(&[&DATA[..], arguments].concat()).expect(2);
    let message = run(&["list", "--columns", "id,titel"]).stderr;
    assert!(message.starts_with("error: there is no column `titel`\n"), "{message}");
    for line in [
        "a column with a similar name exists: `title`",
        "columns are id, status, response_count, updated_at, title,",
    ] {
        assert!(message.contains(line), "{message}");
    }
    let message = run(&["responses", &id, "--columns", "q4", "-o", "csv"]);
    assert!(
        message.stdout.is_empty() && message.problem()["hint"].as_str().unwrap().contains("q3"),
        "{message:?}"
    );
    run(&["create", "-f", "survey.yaml", "--columns", "idd"]);
    run(&["delete", "--yes", &id, "--columns", "idd"]);
    run(&["completions", "bash", "--columns", "id"]);
    assert_eq!(home.ok(&[&DATA[..], &["list"]].concat()).lines().count(), 1);
}

#[test]
fn formats_without_columns_refuse_the_flag() {
    let (home, _) = home();
    for format in ["json", "jsonl", "yaml"] {
        let run = home.run(&["--data", "store", "list", "--columns", "id", "-o", format]).expect(2);
        assert!(run.problem()["hint"].as_str().unwrap().contains("jq"), "{run:?}");
    }
}

#[test]
fn a_terminal_shows_the_columns_that_fit_and_the_number_of_the_others() {
    let home = Home::new();
    let ids: Vec<_> = (1..13).map(|number| format!("q{number}")).collect();
    let question = |id: &String| format!("  - {{id: {id}, type: short_text, title: A}}\n");
    let questions: String = ids.iter().map(question).collect();
    home.write("wide.yaml", &format!("title: Wide\nquestions:\n{questions}"));
    let id = home.ok(&[&DATA[..], &["create", "--publish", "-f", "wide.yaml"]].concat());
    let submit = |answers: &[&str]| home.ok(&[&DATA[..], &["submit", id.trim()], answers].concat());
    let list = |arguments: &[&str]| {
        let command = [&DATA[..], &["responses", id.trim()], arguments].concat();
        let (_, screen) = Session::start(&home, &[("NO_COLOR", "1")], &command).finish();
        let headers = screen.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let message = screen.lines().find(|line| line.contains(" columns do not fit: ")).unwrap_or_default();
        (headers, message.to_owned())
    };
    let omitted =
        |count: &str| format!("{count} columns do not fit: select some with --columns, or use -o csv");
    submit(&["q12=last"]);
    assert_eq!(list(&[]), ("ID SUBMITTED Q12".to_owned(), String::new()));
    // Selected columns are shown even if they are empty.
    let chosen = format!("id,{}", ids.join(","));
    let headers = format!("ID {}", ids[..11].join(" ").to_uppercase());
    assert_eq!(list(&["--columns", &chosen]), (headers, omitted("1 of 13")));
    let answers: Vec<_> = ids.iter().map(|id| format!("{id}=abcdefghijkl")).collect();
    submit(&answers.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(list(&[]), ("ID SUBMITTED Q1 Q2 Q3".to_owned(), omitted("9 of 14")));
    assert_eq!(list(&["--columns", "q12,q11"]), ("Q12 Q11".to_owned(), String::new()));
}
