//! The summary of a form as text of 80 columns.

use console::measure_text_width;

use crate::api::FormSummary;
use crate::cli::output::chart::{bar, cell, sparkline};
use crate::cli::output::humanize::{count_noun, grouped};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::summary::{AnswerSummary, ChoiceValue, MatrixRow, QuestionSummary, Timeline, ValueCount};

const WIDTH: usize = 80;
const LABEL: usize = 26;
const BAR: usize = 34;

/// Columns of a sparkline.
const SPARKS: usize = 40;

/// Most rows of options, of texts given instead, and of latest texts.
const MAX_ROWS: usize = 12;
const MAX_TEXTS: usize = 3;

/// Draws the summary, with bold titles if `colour`.
pub(super) fn draw(form: &FormSummary, colour: bool) -> String {
    let summary = &form.summary;
    let count = count_noun(summary.totals.responses, "answer");
    let end = format!("  {}   {count}", form.status);
    let mut text =
        format!("{}{end}\n", bold(cell(&form.title, WIDTH - measure_text_width(&end)).trim_end(), colour));
    let filter = &form.filter;
    if summary.totals.responses == 0 {
        let is_filtered = filter.since.is_some()
            || filter.until.is_some()
            || filter.q.is_some()
            || !filter.r#where.is_empty();
        text += if is_filtered { "no answers match\n" } else { "no answers yet\n" };
        return text;
    }
    text += &timeline(&summary.timeline);
    for question in &summary.questions {
        text += &format!("\n{}{}", head(question, colour), body(question));
    }
    text
}

fn bold(text: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// The id and the title of a question, its main figure, and how many answered it.
fn head(question: &QuestionSummary, colour: bool) -> String {
    let figure = match &question.summary {
        Some(AnswerSummary::Nps { score: Some(score), .. }) => format!("NPS {score:+}   "),
        Some(
            AnswerSummary::Scale { mean: Some(mean), median: Some(median), .. }
            | AnswerSummary::Number { mean: Some(mean), median: Some(median), .. },
        ) => format!("average {}, median {}   ", number(*mean), number(*median)),
        Some(AnswerSummary::Number { mean: Some(mean), .. }) => format!("average {}   ", number(*mean)),
        Some(AnswerSummary::Text { distinct: Some(distinct), .. }) => {
            format!("{} different   ", grouped(*distinct))
        }
        _ => String::new(),
    };
    let (answered, all) = (grouped(question.answered), grouped(question.answered + question.skipped));
    let end = format!("   {figure}{answered} of {all}");
    let title = cell(&format!("{}  {}", question.id, question.title), WIDTH - end.len().min(WIDTH - 20));
    format!("{}{end}\n", bold(&title, colour))
}

fn body(question: &QuestionSummary) -> String {
    let answered = question.answered;
    match &question.summary {
        None => "    a newer version of this program can show it\n".to_owned(),
        Some(_) if answered == 0 => String::new(),
        Some(AnswerSummary::Choice { options, other, unlisted, .. }) => {
            let others =
                other.iter().take(MAX_TEXTS).map(|one| (format!("other: {}", label(one)), one.count));
            let more: u64 = other.iter().skip(MAX_TEXTS).map(|one| one.count).sum::<u64>() + unlisted;
            let more = (more > 0).then(|| ("more other answers".to_owned(), more));
            shares(options, answered)
                + &others.chain(more).map(|(label, count)| share(&label, count, answered)).collect::<String>()
        }
        Some(AnswerSummary::Ranking { options, .. }) => {
            let mut ranked: Vec<_> =
                options.iter().filter_map(|option| Some((option.mean?, option))).collect();
            ranked.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let last = ranked.len() as f64;
            let line = |(mean, option): &(f64, &ValueCount)| {
                row(&label(option), last + 1.0 - mean, last, &format!("place {mean:.1}"))
            };
            ranked.iter().take(MAX_ROWS).map(line).collect()
        }
        Some(AnswerSummary::Scale { options, .. }) if options.len() <= 7 => shares(options, answered),
        Some(AnswerSummary::Scale { options, .. }) => format!("    {}\n", scale(options)),
        Some(AnswerSummary::Nps { options, promoters, passives, detractors, .. }) => {
            let [promoters, passives, detractors] =
                [promoters, passives, detractors].map(|count| percent(*count, answered));
            let scale = scale(options);
            format!("    promoters {promoters}   passives {passives}   detractors {detractors}   {scale}\n")
        }
        Some(AnswerSummary::Number { min, max, bins, .. }) => {
            let range = [min, max].map(|bound| number(bound.unwrap_or_default()));
            let label = |from: f64, to: f64| {
                if from == to { number(from) } else { format!("{} to {}", number(from), number(to)) }
            };
            let bins = bins.iter().map(|bin| share(&label(bin.from, bin.to), bin.count, answered));
            format!("    from {} to {}\n{}", range[0], range[1], bins.collect::<String>())
        }
        Some(AnswerSummary::Date { min, max, timeline: times }) => {
            let [min, max] = [min, max].map(|bound| bound.clone().unwrap_or_default());
            format!(
                "    from {} to {}\n    {}",
                cell(&min, min.len()),
                cell(&max, max.len()),
                timeline(times)
            )
        }
        Some(AnswerSummary::Text { top, latest, .. }) => {
            let top = top.iter().take(MAX_TEXTS).map(|one| share(&label(one), one.count, answered));
            let latest = latest.iter().take(MAX_TEXTS).map(|one| {
                format!("    {}  {}\n", &one.at.to_string()[..10], cell(&one.value, WIDTH - 16).trim_end())
            });
            top.chain(latest).collect()
        }
        Some(AnswerSummary::Matrix { rows }) => matrix(rows),
    }
}

/// A row for each option, or for the most frequent ones.
fn shares(options: &[ValueCount], answered: u64) -> String {
    let mut shown: Vec<_> = options.iter().collect();
    if options.len() > MAX_ROWS {
        shown.sort_by_key(|option| std::cmp::Reverse(option.count));
    }
    let rest: u64 = shown.iter().skip(MAX_ROWS).map(|option| option.count).sum();
    let rest = (options.len() > MAX_ROWS)
        .then(|| share(&format!("{} more", options.len() - MAX_ROWS), rest, answered));
    shown
        .iter()
        .take(MAX_ROWS)
        .map(|option| share(&label(option), option.count, answered))
        .chain(rest)
        .collect()
}

fn share(label: &str, count: u64, answered: u64) -> String {
    row(label, count as f64, answered as f64, &format!("{}  {:>5}", grouped(count), percent(count, answered)))
}

fn row(label: &str, part: f64, whole: f64, end: &str) -> String {
    format!("    {}  {}{end:>14}\n", cell(label, LABEL), cell(&bar(part, whole, BAR), BAR))
}

fn percent(count: u64, answered: u64) -> String {
    format!("{:.0} %", 100.0 * count as f64 / answered.max(1) as f64)
}

/// A number with at most two decimals.
fn number(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn label(option: &ValueCount) -> String {
    let value = match &option.value {
        ChoiceValue::Text(text) => text.clone(),
        ChoiceValue::Number(number) => number.to_string(),
        ChoiceValue::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    };
    match &option.label {
        Some(label) if matches!(option.value, ChoiceValue::Number(_)) => format!("{value} {label}"),
        Some(label) => label.clone(),
        None if option.removed => format!("{value} (removed)"),
        None => value,
    }
}

/// A column for each value, between the first and the last.
fn scale(options: &[ValueCount]) -> String {
    let counts: Vec<_> = options.iter().map(|option| option.count).collect();
    let ends = [options.first(), options.last()].map(|option| option.map(label).unwrap_or_default());
    cell(&format!("{} {} {}", ends[0], sparkline(&counts), ends[1]), WIDTH - 4).trim_end().to_owned()
}

/// A column for each unit of time, and the highest.
fn timeline(timeline: &Timeline) -> String {
    let unit = &*timeline.unit;
    let points: Vec<_> =
        timeline.points.iter().filter_map(|point| Some((place(unit, &point.at)?, point))).collect();
    let (Some((last, _)), Some((_, highest))) =
        (points.last(), points.iter().rev().max_by_key(|(_, point)| point.count))
    else {
        return String::new();
    };
    let length = points.first().map_or(1, |(first, _)| (last - first + 1) as usize).min(SPARKS);
    let mut counts = vec![0; length];
    for (place, point) in &points {
        if let Some(count) =
            usize::try_from(last - place).ok().and_then(|back| counts.iter_mut().nth_back(back))
        {
            *count = point.count;
        }
    }
    let highest = format!("highest {} in {}", grouped(highest.count), highest.at);
    format!(
        "{}  {}  {}\n",
        count_noun(length as u64, unit),
        sparkline(&counts),
        cell(&highest, WIDTH).trim_end()
    )
}

/// Returns the number of units before the moment `at`.
fn place(unit: &str, at: &str) -> Option<i64> {
    let millis = |text: String| Some(Timestamp::parse(&text)?.millis());
    match unit {
        "year" => at.parse().ok(),
        "month" => Some(at.get(..4)?.parse::<i64>().ok()? * 12 + at.get(5..7)?.parse::<i64>().ok()?),
        "day" => Some(millis(format!("{at}T00:00:00Z"))? / DAY_MILLIS),
        _ if at.len() == 5 => at.get(..2)?.parse().ok(),
        _ => Some(millis(at.replace('Z', ":00Z"))? / (DAY_MILLIS / 24)),
    }
}

/// A table of the counts, with as many columns as fit.
fn matrix(rows: &[MatrixRow]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let width = ((WIDTH - 4 - LABEL) / first.options.len().max(1)).clamp(8, 16);
    let fit = (WIDTH - 4 - LABEL) / width;
    let line = |label: &str, cells: Vec<String>| {
        let cells = cells
            .iter()
            .take(fit)
            .map(|text| format!(" {:>1$}", cell(text, width - 1).trim_end(), width - 1));
        format!("    {}{}\n", cell(label, LABEL), cells.collect::<String>())
    };
    let mut text = line("", first.options.iter().map(label).collect());
    for row in rows {
        let value = ValueCount {
            value: row.value.clone(),
            label: row.label.clone(),
            count: 0,
            mean: None,
            removed: false,
        };
        text += &line(&label(&value), row.options.iter().map(|option| grouped(option.count)).collect());
    }
    text
}
