//! From an event to a mail.

use std::fmt::Write as _;

use super::{BODY, MailBody, REPLY_TO_QUESTION, SUBJECT, TO_QUESTION};
use crate::domain::html::escape;
use crate::domain::integration::answers::ShownAnswer;
use crate::domain::integration::kind::Rendering;
use crate::domain::integration::message::{MAX_TITLE, context_of, default_title, footer, one_line};
use crate::domain::integration::outbound::MailMessage;
use crate::domain::integration::settings::Settings;
use crate::domain::integration::template;
use crate::domain::question::email_domain;

/// Maximum bytes of all answers in a mail; the last ones are left out.
const MAX_ANSWERS: usize = 256 << 10;

/// Returns the mail about an event; `None` if it has no recipient.
pub(super) fn compose(settings: &Settings, rendering: Rendering<'_>) -> Option<MailBody> {
    let answers = ShownAnswer::all(rendering);
    let is_confirmation = settings.text(TO_QUESTION).is_some();
    let (to, answers, reply_to) = match settings.text(TO_QUESTION) {
        // Of the respondent only the address is used: a confirmation must not carry anybody's words to an address that
        // somebody else has typed. `fields` is about what others get.
        Some(question) => {
            let unselected = Rendering { selection: None, ..rendering };
            (vec![address_in(&ShownAnswer::all(unselected), Some(question))?], Vec::new(), None)
        }
        None => {
            let reply_to = address_in(&answers, settings.text(REPLY_TO_QUESTION));
            (Vec::new(), answers, reply_to)
        }
    };
    let context = context_of(rendering, &answers);
    let own = |name: &str| template::render(settings.text(name)?, &context).ok();
    let subject = own(SUBJECT).map(|text| one_line(&text)).filter(|text| !text.is_empty());
    let subject = subject.unwrap_or_else(|| match is_confirmation {
        true => format!("Thank you for your response: {}", one_line(&rendering.form.title)),
        false => default_title(rendering, &answers),
    });
    let (text, html) = match own(BODY) {
        Some(text) => (format!("{text}\n"), paragraphs(&text)),
        None if is_confirmation => {
            let title = one_line(&rendering.form.title);
            let text = format!("Thank you. Your answers to \"{title}\" have arrived.\n");
            let html = paragraphs(&text);
            (text, html)
        }
        None => (listed(rendering, &answers), table(rendering, &answers)),
    };
    let message = MailMessage {
        id: String::new(),
        to: String::new(),
        reply_to,
        subject: subject.chars().take(MAX_TITLE).collect(),
        text,
        html: format!("<!DOCTYPE html>\n<html><body>\n{html}</body></html>\n"),
        date: rendering.event.at,
        list: (!is_confirmation).then(|| rendering.form.id.to_string()),
        is_confirmation,
    };
    Some(MailBody { to, message })
}

/// Returns the answer to `question` if it is an address, or without one the first answer to a question of type `email`.
fn address_in(answers: &[ShownAnswer], question: Option<&str>) -> Option<String> {
    let found = answers.iter().find(|answer| match question {
        Some(question) => answer.question == question,
        None => answer.type_name == "email",
    });
    Some(found?.text.clone()).filter(|text| email_domain(text).is_some())
}

/// Returns how many answers a mail has, and how many are left out.
fn fitting(answers: &[ShownAnswer]) -> (&[ShownAnswer], usize) {
    let mut size = 0;
    let fits = |answer: &&ShownAnswer| {
        size += answer.title.len() + answer.text.len();
        size <= MAX_ANSWERS
    };
    let count = answers.iter().take_while(fits).count();
    (&answers[..count], answers.len() - count)
}

/// All answers as text: `Your name: Ann`, and lines of text below their question.
fn listed(rendering: Rendering<'_>, answers: &[ShownAnswer]) -> String {
    let (shown, left_out) = fitting(answers);
    let mut text = format!("{}\n\n", default_title(rendering, answers));
    for ShownAnswer { title, text: answer, .. } in shown {
        let label = label(title);
        let _ = match answer.contains('\n') {
            true => writeln!(text, "{label}\n  {}", answer.replace('\n', "\n  ")),
            false => writeln!(text, "{label} {answer}"),
        };
    }
    if let Some(note) = note(left_out) {
        let _ = writeln!(text, "\n{note}");
    }
    let _ = writeln!(text, "\n-- \n{}", footer(rendering).join("\n"));
    text
}

/// All answers as a table. Answers are text: neither links nor images come of them.
fn table(rendering: Rendering<'_>, answers: &[ShownAnswer]) -> String {
    let (shown, left_out) = fitting(answers);
    let row = |ShownAnswer { title, text, .. }: &ShownAnswer| {
        let (label, text) = (escape(&label(title)), escape(text).replace('\n', "<br>\n"));
        format!("<tr><th align=\"left\" valign=\"top\">{label}</th><td>{text}</td></tr>\n")
    };
    let mut html = format!("<h2>{}</h2>\n", escape(&default_title(rendering, answers)));
    if !shown.is_empty() {
        let rows: String = shown.iter().map(row).collect();
        let _ = writeln!(html, "<table cellpadding=\"6\">\n{rows}</table>");
    }
    if let Some(note) = note(left_out) {
        let _ = writeln!(html, "<p>{note}</p>");
    }
    let _ = writeln!(
        html,
        "<p><small>{}</small></p>",
        escape(&footer(rendering).join("\n")).replace('\n', "<br>\n")
    );
    html
}

/// Returns the title of a question before its answer: with a colon, unless it ends in another sign.
fn label(title: &str) -> String {
    let title = one_line(title);
    let is_ended =
        title.ends_with(|last: char| last.is_ascii_punctuation() && !matches!(last, ')' | '"' | '\''));
    if is_ended { title } else { title + ":" }
}

fn note(left_out: usize) -> Option<String> {
    match left_out {
        0 => None,
        1 => Some("1 more answer is left out: the mail would be too large.".to_owned()),
        more => Some(format!("{more} more answers are left out: the mail would be too large.")),
    }
}

/// Returns `text` as HTML: a paragraph for each block of lines.
fn paragraphs(text: &str) -> String {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    blocks.map(|block| format!("<p>{}</p>\n", escape(block).replace('\n', "<br>\n"))).collect()
}
