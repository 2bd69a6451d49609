//! The summary of a form as text of 80 columns.

use crate::api::FormSummary;
use crate::cli::output::chart::{bar, cell, sparkline};
use crate::cli::output::humanize::{count_noun, grouped};
use crate::cli::output::visible;
use crate::domain::summary::report::{
    AnswerSummary, Bin, ChoiceValue, MatrixRow, QuestionSummary, ValueCount,
};
use crate::domain::summary::timeline::Timeline;

const WIDTH: usize = 80;
const LABEL: usize = 26;
const BAR: usize = 34;
/// Most rows of one list, and most texts.
const MAX_ROWS: usize = 12;
const MAX_TEXTS: usize = 3;

/// Draws the summary, with bold titles if `colour`.
pub(super) fn draw(
    FormSummary { title, status, summary, .. }: &FormSummary,
    colour: bool,
    is_filtered: bool,
) -> String {
    let count = summary.totals.responses;
    let matching = if is_filtered { " that match" } else { "" };
    let about = format!("{status}   {}{matching}", count_noun(count, "answer"));
    let mut text = title_line(title, &visible(&about), colour);
    text += &timeline(&summary.timeline, "");
    for question in summary.questions.iter().filter(|_| count > 0) {
        let QuestionSummary { id, title, answered, skipped, .. } = question;
        let of = format!("{} of {}", grouped(*answered), grouped(answered + skipped));
        let end = figure(question)
            .filter(|_| *answered > 0)
            .into_iter()
            .chain([of])
            .collect::<Vec<_>>()
            .join("   ");
        text += &format!("\n{}", title_line(&format!("{id}  {title}"), &end, colour));
        if *answered > 0 {
            text += &body(question);
        }
    }
    text
}

fn title_line(title: &str, end: &str, colour: bool) -> String {
    let title = cell(title, WIDTH.saturating_sub(end.chars().count() + 3));
    if colour { format!("\u{1b}[1m{title}\u{1b}[0m   {end}\n") } else { format!("{title}   {end}\n") }
}

/// The main figure of a question.
fn figure(question: &QuestionSummary) -> Option<String> {
    match &question.summary {
        AnswerSummary::Nps { score, .. } => Some(format!("NPS {}", (*score)?)),
        AnswerSummary::Scale { mean, median, .. } | AnswerSummary::Number { mean, median, .. } => {
            let median = median.map(|median| format!(", median {}", number(median)));
            Some(format!("average {}{}", number((*mean)?), median.unwrap_or_default()))
        }
        AnswerSummary::Text { distinct, .. } => Some(format!("{} different", grouped((*distinct)?))),
        _ => None,
    }
}

fn body(question: &QuestionSummary) -> String {
    let answered = question.answered;
    match &question.summary {
        AnswerSummary::Other => "    a newer version of this program can show it\n".to_owned(),
        AnswerSummary::Choice { options, other, unlisted, .. } => {
            let others: u64 = other.iter().map(|one| one.count).sum::<u64>() + unlisted;
            let others = (others > 0).then(|| share("other answers", others, answered));
            shares(options, MAX_ROWS, answered)
                + &others.unwrap_or_default()
                + &shares(other, MAX_TEXTS, answered)
        }
        AnswerSummary::Scale { options, .. } => shares(options, MAX_ROWS, answered),
        AnswerSummary::Nps { options, promoters, passives, detractors, .. } => {
            let parts = [("promoters", promoters), ("passives", passives), ("detractors", detractors)];
            let parts = parts.map(|(name, count)| format!("{name} {}   ", percent(*count, answered)));
            format!("    {}0 {} 10\n", parts.concat(), sparkline(options.iter().map(|option| option.count)))
        }
        AnswerSummary::Number { min, max, bins, .. } => {
            let range = |from, to| format!("{} to {}", number(from), number(to));
            let label =
                |Bin { from, to, .. }: &Bin| if from == to { number(*from) } else { range(*from, *to) };
            let bins = bins.iter().map(|bin| share(&label(bin), bin.count, answered));
            let all = range(min.unwrap_or_default(), max.unwrap_or_default());
            format!("    from {all}\n") + &bins.collect::<String>()
        }
        AnswerSummary::Date { min, max, timeline: times } => {
            let range = [min, max].map(|bound| bound.as_deref().unwrap_or_default()).join(" to ");
            format!("    from {}\n{}", cell(&range, WIDTH - 9).trim_end(), timeline(times, "    "))
        }
        AnswerSummary::Text { top, latest, .. } => {
            let latest = latest.iter().take(MAX_TEXTS).map(|one| {
                format!("    {}  {}\n", &one.at.to_string()[..10], cell(&one.value, WIDTH - 16).trim_end())
            });
            shares(top, MAX_TEXTS, answered) + &latest.collect::<String>()
        }
        AnswerSummary::Matrix { rows } => {
            let row = |MatrixRow { row, options, .. }: &MatrixRow| {
                let title = cell(&format!("{}:", label(row)), WIDTH - 4);
                format!("    {}\n{}", title.trim_end(), shares(options, MAX_ROWS, row.count))
            };
            rows.iter().map(row).collect()
        }
    }
}

/// A row for each option, or for the most frequent ones if there are more than `most`.
fn shares(options: &[ValueCount], most: usize, answered: u64) -> String {
    let mut shown: Vec<_> = options.iter().collect();
    if shown.len() > most {
        shown.sort_by_key(|option| std::cmp::Reverse(option.count));
    }
    let lines: String =
        shown.iter().take(most).map(|option| share(&label(option), option.count, answered)).collect();
    let rest = shown.len().saturating_sub(most);
    if rest > 0 { format!("{lines}    and {rest} more\n") } else { lines }
}

fn share(label: &str, count: u64, answered: u64) -> String {
    let end = format!("{}  {:>5}", grouped(count), percent(count, answered));
    let bar = bar(count as f64 / answered.max(1) as f64, BAR);
    format!("    {}  {bar}{end:>14}\n", cell(label, LABEL))
}

fn percent(count: u64, answered: u64) -> String {
    format!("{:.0} %", 100.0 * count as f64 / answered.max(1) as f64)
}

/// Formats a number with at most two decimals.
fn number(number: f64) -> String {
    if number.abs() >= 1e15 {
        return format!("{number:.2e}");
    }
    format!("{number:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn label(ValueCount { value, label, mean, removed, .. }: &ValueCount) -> String {
    let text = match (value, label) {
        (ChoiceValue::Number(number), label) => format!("{number} {}", label.as_deref().unwrap_or_default()),
        (_, Some(label)) => label.clone(),
        (ChoiceValue::Flag(flag), _) => if *flag { "yes" } else { "no" }.to_owned(),
        (ChoiceValue::Text(text), _) => text.clone(),
    };
    let place = mean.map(|mean| format!(", place {mean:.1}"));
    format!("{text}{}{}", place.unwrap_or_default(), if *removed { " (removed)" } else { "" })
}

/// A column for each time that has a count.
fn timeline(Timeline { unit, points, .. }: &Timeline, indent: &str) -> String {
    let Some((at, highest)) = points.iter().max_by_key(|(_, count)| **count) else { return String::new() };
    let shown = points.values().skip(points.len().saturating_sub(WIDTH / 2)).copied();
    let times = count_noun(shown.len() as u64, unit);
    let line = format!("{times} with answers  {}  highest {} in {at}", sparkline(shown), grouped(*highest));
    format!("{indent}{}\n", cell(&line, WIDTH - indent.len()).trim_end())
}
