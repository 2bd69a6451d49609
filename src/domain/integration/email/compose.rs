//! From an event to a mail.

use std::fmt::Write as _;

use super::body::MailBody;
use super::{BODY, Email, REPLY_TO_QUESTION, SUBJECT, TO_QUESTION};
use crate::domain::integration::answers::ShownAnswer;
use crate::domain::integration::kind::{HasSpec, Rendering};
use crate::domain::integration::message::{MAX_TITLE, context_of, default_title, footer, one_line};
use crate::domain::integration::template;
use crate::domain::question::email_domain;

/// Maximum bytes of all answers in a mail; the last ones are left out.
const MAX_ANSWERS: usize = 256 << 10;

impl Email {
    /// Returns the mail about an event; `None` if it has no recipient.
    pub(super) fn compose(&self, rendering: Rendering<'_>) -> Option<MailBody> {
        let answers = ShownAnswer::all(rendering);
        let settings = self.settings();
        let is_confirmation = settings.text(TO_QUESTION).is_some();
        let (to, answers, reply_to) = match settings.text(TO_QUESTION) {
            // Of the respondent only the address is used: a confirmation must not carry anybody's words to an address that
            // somebody else has typed.
            Some(question) => (vec![respondent(rendering, question)?], Vec::new(), None),
            None => (Vec::new(), answers, self.reply_to(rendering)),
        };
        let context = context_of(rendering, &answers);
        let own = |name: &str| template::render(settings.text(name)?, &context).ok();
        let subject = own(SUBJECT).map(|text| one_line(&text)).filter(|text| !text.is_empty());
        let subject = subject.unwrap_or_else(|| default_subject(rendering, &answers, is_confirmation));
        let (text, html) = match own(BODY) {
            Some(text) => (format!("{text}\n"), paragraphs(&text)),
            None if is_confirmation => thanks(rendering),
            None => (listed(rendering, &answers), table(rendering, &answers)),
        };
        let subject = subject.chars().take(MAX_TITLE).collect();
        let html = format!("<!DOCTYPE html>\n<html><body>\n{html}</body></html>\n");
        let list = (!is_confirmation).then(|| rendering.form.id.to_string());
        Some(MailBody { to, reply_to, subject, text, html, date: rendering.event.at, list, is_confirmation })
    }

    /// The respondent's address, if it may leave the server.
    fn reply_to(&self, rendering: Rendering<'_>) -> Option<String> {
        match self.settings().text(REPLY_TO_QUESTION) {
            Some(question) => answered_address(rendering, |answer| answer.question == question),
            None => answered_address(rendering, |answer| answer.type_name == "email"),
        }
    }
}

/// Returns the first answer for which `is_meant` that is an address.
fn answered_address(rendering: Rendering<'_>, is_meant: impl Fn(&ShownAnswer) -> bool) -> Option<String> {
    let found = ShownAnswer::all(rendering).into_iter().find(is_meant)?;
    Some(found.text).filter(|text| email_domain(text).is_some())
}

/// Returns the address that a confirmation goes to. `fields` is about what others get.
fn respondent(rendering: Rendering<'_>, question: &str) -> Option<String> {
    let unselected = Rendering { selection: None, ..rendering };
    answered_address(unselected, |answer| answer.question == question)
}

fn default_subject(rendering: Rendering<'_>, answers: &[ShownAnswer], is_confirmation: bool) -> String {
    if is_confirmation {
        format!("Thank you for your response: {}", one_line(&rendering.form.title))
    } else {
        default_title(rendering, answers)
    }
}

fn thanks(rendering: Rendering<'_>) -> (String, String) {
    let text = format!("Thank you. Your answers to \"{}\" have arrived.", one_line(&rendering.form.title));
    let html = paragraphs(&text);
    (text + "\n", html)
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

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
