//! `forms test`: tests in form files and beside them.

use super::Home;

const FORM: &str = "\
title: How was it?
questions:
  - {id: score, type: rating, title: How did we do?, required: true}
  - id: reason
    type: short_text
    title: What went wrong?
    show_if: { score: { lte: 2 } }
    required_if: { score: 1 }
  - {id: code, type: short_text, title: Code}
  - {id: day, type: date, title: Day, min: today}
";

/// A home with a form, whose file ends with these tests.
fn with_tests(tests: &str) -> Home {
    let home = Home::new();
    home.write("how.yaml", &format!("{FORM}{tests}"));
    home
}

#[test]
fn tests_in_a_form_and_beside_it_are_run_once() {
    let home = with_tests(
        "\
tests:
  - name: a low score asks for a reason
    answers: { score: 1 }
    errors: { reason: [required] }
    asked: [reason]
  - {name: nor is one asked for, answers: {score: 5, code: 007}, accepted: true, not_asked: [reason]}
  - {name: an old day, answers: {score: 5, day: 2020-01-02}, now: 2020-01-02T12:00:00Z}
",
    );
    home.write("how.test.yaml", "- {name: beside, answers: {score: 2}}\n");
    let run = home.run(&["test", "how.yaml", "how.test.yaml", "survey.yaml", "--require-coverage"]).expect(0);
    assert_eq!(run.stdout, "how.yaml: 4 passed, 0 failed\nsurvey.yaml: no tests\n", "{run:?}");
    assert_eq!(home.ok(&["validate", "how.yaml", "how.test.yaml"]), "how.yaml: ok\nhow.test.yaml: ok\n");
    let id = home.ok(&["--data", "store", "create", "-f", "how.yaml"]);
    assert!(!home.ok(&["--data", "store", "show", id.trim(), "-o", "json"]).contains("a low score"));
}

#[test]
fn a_failure_names_its_place_what_was_expected_and_what_was_found() {
    let home = with_tests(
        "\
tests:
  - name: wrong
    answers: { score: 6 }
    errors: { reason: [required] }
    asked: [reason]
    not_asked: [code]
",
    );
    let run = home.run(&["test", "how.yaml"]).expect(1);
    let expected = "\
how.yaml: 0 passed, 1 failed
  how.yaml:12:5: failed: wrong
      `reason`: expected required, found no error
      `score`: expected no error, found out_of_range (Enter a whole number from 1 to 5)
      `reason`: expected asked, found not asked
      `code`: expected not asked, found asked
  how.yaml:7:5: `show_if` of `reason` was true in no test
  how.yaml:8:5: `required_if` of `reason` was true in no test
  how.yaml:8:5: `required_if` of `reason` was false in no test
";
    assert_eq!(run.stdout, expected);
    assert_eq!(run.stderr, "error: 1 of 1 test failed\n");
    let run = home.run(&["-o", "json", "test", "how.yaml"]).expect(1);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["tests"][0]["line"], 12);
    assert_eq!(result["conditions"][0], "how.yaml:7:5: `show_if` of `reason` was true in no test");
    assert_eq!(run.problem()["code"], "test_failed");
}

#[test]
fn coverage_is_required_only_if_asked_for() {
    let home = with_tests("tests: [{name: a, answers: {score: 5}}]\n");
    home.run(&["test", "how.yaml"]).expect(0);
    let run = home.run(&["test", "how.yaml", "--require-coverage"]).expect(1);
    // The page of a condition that is not reached covers nothing.
    assert_eq!(run.stderr, "error: 3 results of conditions not covered by tests\n");
}

#[test]
fn malformed_tests_are_reported_with_their_places() {
    let home = with_tests(
        "\
tests:
  - nam: a
    answers: { scor: 1, extra: 1 }
    errors: { score: [requird], extra: [unknown_question] }
    asked: [reasn]
    accepted: true
  - {name: b, answers: 5, now: soon}
",
    );
    for command in ["test", "validate"] {
        let run = home.run(&[command, "how.yaml"]).expect(6);
        for expected in [
            "unknown field `nam`\n  --> how.yaml:12:5",
            "`scor` is not a question of the form\n  --> how.yaml:13:16",
            "a question with a similar id exists: `score`",
            "`requird` is not the code of an error\n  --> how.yaml:14:23",
            "a similar name exists: `required`",
            "`reasn` is not a question of the form\n  --> how.yaml:15:13",
            "  --> how.yaml:16:15",
            "`answers` must be an object, not a number\n  --> how.yaml:17:24",
            "how.yaml:17:32",
        ] {
            assert!(run.stderr.contains(expected), "{command}: {expected}: {}", run.stderr);
        }
        assert!(!run.stderr.contains("`extra`"), "{}", run.stderr);
    }
    home.write("how.yaml", FORM);
    home.write("how.test.yaml", "tests: 5\n");
    let run = home.run(&["validate", "how.test.yaml"]).expect(6);
    assert!(run.stderr.contains("`tests` must be a list, not a number\n --> how.test.yaml:1:8"), "{run:?}");
    let run = home.run(&["test", "survey.yaml", "how.yaml", "missing.yaml"]).expect(6);
    assert!(run.stderr.contains("missing.yaml") && run.stdout.contains("survey.yaml"), "{run:?}");
}

#[test]
fn junit_xml_has_every_test_and_escapes_its_texts() {
    let home = with_tests(
        "tests:\n  - {name: \"<a> & \\\"b\\\" \\u202e\\uFFFE\", answers: {score: 5}}\n  - {name: no, answers: {}}\n",
    );
    home.run(&["test", "survey.yaml", "how.yaml", "--junit", "report.xml"]).expect(1);
    let xml = std::fs::read_to_string(home.path().join("report.xml")).unwrap();
    for expected in [
        r#"<testsuite name="how.yaml" tests="2" failures="1" errors="0" skipped="0">"#,
        "name=\"&lt;a&gt; &amp; &quot;b&quot; \\u{202e}\u{fffd}\" file=\"how.yaml\" line=\"12\"/>",
        r#"<failure message="`score`: expected no error, found required (&quot;How did we do?&quot; needs an answer)""#,
        r#"<testsuite name="survey.yaml" tests="0""#,
    ] {
        assert!(xml.contains(expected), "{expected}: {xml}");
    }
}
