//! Summaries: what is left out of large ones, and units of time.

use forms::domain::summary::Summarizer;
use forms::domain::summary::report::{AnswerSummary, Summary};

use super::*;

/// The summary of these answers to these questions, in JSON, each accepted a number of milliseconds after 1970.
fn summary<'a>(questions: &str, answers: impl IntoIterator<Item = (i64, &'a str)>) -> Summary {
    let questions = read(&format!(r#"{{"title":"F","questions":[{questions}]}}"#)).unwrap().questions;
    let mut summarizer = Summarizer::new(&questions);
    for (millis, answers) in answers {
        summarizer.add(&Submission { id: SubmissionId::first_of(millis), ..submission(answers) });
    }
    summarizer.finish(&questions)
}

#[test]
fn what_does_not_fit_in_memory_is_left_out_and_counts_are_exact() {
    const COUNT: u64 = 200_000;
    let questions = r#"{"id":"text","type":"short_text","title":"T"},{"id":"number","type":"number","title":"N"},
        {"id":"one","type":"single_choice","title":"O","options":["a"],"allow_other":true}"#;
    let draw = |n: u64| {
        let one = if n.is_multiple_of(2) { r#""a""#.to_owned() } else { format!(r#"{{"other":"{n}"}}"#) };
        format!(r#"{{"text":"text {n}","number":{n},"one":{one}}}"#)
    };
    let answers: Vec<_> = (1..=COUNT).map(draw).collect();
    let found = summary(questions, answers.iter().map(|answers| (0, &**answers)));
    assert!(found.questions.iter().all(|question| question.answered == COUNT && question.skipped == 0));
    let [text, number, one] = &found.questions[..] else { panic!("{found:?}") };
    let AnswerSummary::Text { distinct, top, latest } = &text.summary else { panic!("{text:?}") };
    assert_eq!((*distinct, top.len(), latest.len()), (None, 0, 5));
    let AnswerSummary::Number { min, max, mean, median, bins } = &number.summary else {
        panic!("{number:?}")
    };
    assert_eq!((*min, *max, *mean), (Some(1.0), Some(COUNT as f64), Some(100_000.5)));
    assert_eq!((*median, bins.len()), (None, 0));
    let AnswerSummary::Choice { options, other, unlisted, .. } = &one.summary else { panic!("{one:?}") };
    assert_eq!((options[0].count, other.len(), *unlisted), (COUNT / 2, 0, COUNT / 2));
}

#[test]
fn a_matrix_with_very_many_cells_has_no_rows() {
    let list = |name: &str| {
        let values: Vec<_> = (0..400).map(|n| format!(r#""{name}{n}""#)).collect();
        values.join(",")
    };
    let (rows, columns) = (list("r"), list("c"));
    let question =
        format!(r#"{{"id":"m","type":"matrix","title":"M","rows":[{rows}],"columns":[{columns}]}}"#);
    let found = summary(&question, [(0, r#"{"m":{"r1":"c1"}}"#), (0, r#"{"m":{}}"#)]);
    assert_eq!(found.questions[0].answered, 1);
    assert!(matches!(&found.questions[0].summary, AnswerSummary::Matrix { rows } if rows.is_empty()));
}

#[test]
fn sums_beyond_the_largest_number_have_no_mean() {
    let question = r#"{"id":"n","type":"number","title":"N"}"#;
    let large = [r#"{"n":1.7e308}"#; 3];
    let found = summary(question, large.map(|answers| (0, answers)));
    let number = &found.questions[0].summary;
    assert!(matches!(number, AnswerSummary::Number { mean: None, median: Some(1.7e308), .. }), "{number:?}");
    // The error of every addition is made up for.
    let cancelling = [r#"{"n":1e100}"#, r#"{"n":1}"#, r#"{"n":-1e100}"#, r#"{"n":2}"#];
    let found = summary(question, cancelling.map(|answers| (0, answers)));
    let number = &found.questions[0].summary;
    assert!(
        matches!(number, AnswerSummary::Number { mean: Some(0.75), median: Some(1.5), .. }),
        "{number:?}"
    );
}

#[test]
fn the_unit_of_a_timeline_follows_from_its_span() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    for (days, unit, first) in [
        (0, "hour", "1970-01-01T00"),
        (2, "hour", "1970-01-01T00"),
        (3, "day", "1970-01-01"),
        (731, "day", "1970-01-01"),
        (732, "month", "1970-01"),
        (7_305, "month", "1970-01"),
        (7_306, "year", "1970"),
    ] {
        let times = [days * DAY, DAY / 48, 0];
        let found = summary("", times.map(|millis| (millis, "{}"))).timeline;
        let points: Vec<_> = found.points.into_iter().collect();
        assert_eq!((&*found.unit, &*points[0].0), (unit, first), "{days} days");
        assert_eq!(points.iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
