//! Messages to chats: within the limits that each service documents, and inert, for any answers.

mod answers; // what services answer, and what it means
mod limits; // what each service refuses
mod literal; // how each service reads its markup
mod requests; // addresses, headers and secrets

use serde_json::{Map, Value};

use self::limits::check_limits;
use self::literal::shown;
use super::*;
use crate::engine::random::Random;
use crate::golden::assert_golden;

/// The members of an integration of each type.
const CHATS: [(&str, &str); 8] = [
    ("slack", r#""url":"https://hooks.slack.com/services/T/B/secretpart""#),
    ("discord", r#""url":"https://discord.com/api/webhooks/1/secretpart","thread_id":"7""#),
    ("teams", r#""url":"https://prod-1.westeurope.logic.azure.com/workflows/1?sig=secretpart""#),
    ("mattermost", r#""url":"https://chat.example.com/hooks/secretpart""#),
    ("google_chat", r#""url":"https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=secretpart""#),
    (
        "telegram",
        r#""bot_token":"123456:secretpart-AAAAAAAAAAAAAAAAAAAAAAAA","chat_id":"-1001234567890","message_thread_id":"42","silent":true"#,
    ),
    (
        "matrix",
        r#""homeserver":"https://matrix.example.org","room_id":"!room/a:example.org","access_token":"secretpart""#,
    ),
    (
        "ntfy",
        r#""server":"https://ntfy.example.com","topic":"secretpart","access_token":"secretpart2","priority":4,"tags":["memo"]"#,
    ),
];

/// Answers that mean something to a service.
const HOSTILE: [&str; 24] = [
    "@everyone @here @all @channel @room",
    "<!channel> <!here> <@U123> <#C1> <@&1> <@!1>",
    "<users/all> <https://evil.example|bank.example>",
    "<at>everyone</at> [x](javascript:alert(1)) ![i](https://evil.example/i.png)",
    "*bold* _italic_ ~~gone~~ `code` ||spoiler|| ***all*** __under__",
    "```\nblock\n```",
    "# heading\n## two\n-# small\n> quote\n>>> more",
    "- item\n+ item\n* item\n1. item\n2) item",
    "title\n===\ntitle\n---",
    "    code\n\tcode",
    "a | b\n--|--\n1 | 2",
    "/start /leave@bot #tag $USD ~town-square",
    "=1+1 +1 -1 @SUM(A1)",
    "Evil\r\nBcc: victim@example.com",
    ":smile: <:name:1> <t:0:R> </command:1>",
    "https://example.com/a_b_c?d=*e* http://[::1]/ www.evil.example",
    "ann@example.com mailto:ann@example.com",
    "<b>bold</b><script>alert(1)</script>&lt;&amp;&#64;all",
    "\\*not escaped\\* \\",
    "$$\\frac{1}{2}$$ {{ form.title }} {% raw %}",
    "a\u{1}b\u{2}c\u{7}d\u{1b}[31me\u{7f}f\u{9b}g",
    "left\u{202e}right\u{2066}\u{200f}",
    "  \t ",
    "שלום مرحبا Ελλάδα Россия 日本語 ไทย हिन्दी 👩‍👩‍👧‍👦 🏳️‍🌈 e\u{301} \u{10ffff} \u{fffe} \u{feff}",
];

/// A form with `questions` of long texts and an integration.
fn form(titles: &[String], integration: &str) -> (Form, Version, Integration) {
    let question = |title: &String| serde_json::json!({"type": "long_text", "title": title});
    form_of(titles.iter().map(question).collect(), integration)
}

fn form_of(questions: Value, integration: &str) -> (Form, Version, Integration) {
    let mut definition = serde_json::json!({"title": "Visit <!here> @all *x*", "questions": questions});
    definition["integrations"] = serde_json::from_str(&format!("[{integration}]")).unwrap();
    integrated(&definition.to_string())
}

/// The event of a submission with `answers` to the questions in their order.
fn answered(answers: &[String]) -> Event {
    let named = answers.iter().enumerate();
    let answers: Map<_, _> =
        named.map(|(place, text)| (format!("q{}", place + 1), Value::from(text.as_str()))).collect();
    completed(&Value::Object(answers).to_string())
}

/// What `chat` sends about `answers` to questions with `titles`.
fn message(chat: &str, members: &str, titles: &[String], answers: &[String]) -> Value {
    let (form, version, integration) = form(titles, &format!(r#"{{"type":"{chat}",{members}}}"#));
    let body = integration.render(&answered(answers), &form, Some(&version)).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A text as people read it, without what is not seen.
fn seen(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\u{200b}', "");
    let is_hidden = |found: char| {
        found.is_control() && !matches!(found, '\n' | '\t')
            || matches!(found, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // Spaces that do not break look as others do.
    let as_space = |found: char| if matches!(found, '\u{a0}' | '\t') { ' ' } else { found };
    text.chars().filter(|found| !is_hidden(*found)).map(as_space).collect()
}

#[test]
fn hostile_answers_are_shown_as_they_were_written() {
    for (chat, members) in CHATS {
        for answer in HOSTILE {
            let title = format!("Is it {answer}?").replace(char::is_control, " ");
            let sent = message(chat, members, std::slice::from_ref(&title), &owned(&[answer]));
            check_limits(chat, &sent);
            let text = seen(&shown(chat, &sent));
            let lines: Vec<_> = seen(answer).trim_end().lines().map(str::to_owned).collect();
            if lines.concat().trim().is_empty() {
                continue;
            }
            let expected = lines.join("\n");
            assert!(text.contains(&expected), "{chat}: {answer:?} is shown as {text:?}");
            let title = seen(&title).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&title), "{chat}: {title:?} is shown as {text:?}");
        }
    }
}

#[test]
fn answers_in_any_script_have_the_same_space() {
    let answers = vec!["答".repeat(400); 10];
    let titles: Vec<_> = (0..10).map(|number| format!("Question {number}")).collect();
    for (chat, members) in
        CHATS.into_iter().filter(|(chat, _)| matches!(*chat, "slack" | "discord" | "telegram"))
    {
        let text = shown(chat, &message(chat, members, &titles, &answers));
        assert!(text.contains("Question 9") && !text.contains("more answer"), "{chat}: {text}");
    }
}

#[test]
fn a_long_answer_has_all_the_space_that_short_ones_leave() {
    let titles: Vec<_> = (1..=8).map(|number| format!("Question {number}")).collect();
    let mut answers = vec!["short".to_owned(); 8];
    answers[3] = "word ".repeat(180);
    for (chat, members) in CHATS {
        let text = shown(chat, &message(chat, members, &titles, &answers));
        assert!(text.contains(answers[3].trim_end()) && !text.contains('…'), "{chat}: {text}");
    }
}

/// What `chat` sends about answers of the types `url` and `email`.
fn links(chat: &str, members: &str, url: &str, email: &str) -> String {
    let kinds = [("url", url), ("email", email)];
    let questions: Vec<_> =
        kinds.iter().map(|(kind, _)| serde_json::json!({"type": kind, "title": kind})).collect();
    let (form, version, integration) =
        form_of(questions.into(), &format!(r#"{{"type":"{chat}",{members}}}"#));
    let answers = owned(&[url, email]);
    String::from_utf8(integration.render(&answered(&answers), &form, Some(&version)).unwrap()).unwrap()
}

#[test]
fn urls_and_addresses_lead_to_themselves_and_nowhere_else() {
    let (url, email) = ("https://shop.example/a_b?c=1&d=@e#f", "ann.o@example.com");
    for (chat, members) in CHATS {
        let (as_url, as_email) = match chat {
            "slack" => {
                ("<https://shop.example/a_b?c=1&amp;d=@e#f>", "<mailto:ann.o@example.com|ann.o@example.com>")
            }
            "discord" => ("<https://shop.example/a_b?c=1&d=@e#f>", r"ann.o\\@example.com"),
            "mattermost" => ("<https://shop.example/a_b?c=1&d=@e#f>", "<ann.o@example.com>"),
            "google_chat" | "matrix" => (
                r#"<a href=\"https://shop.example/a_b?c=1&amp;d=@e#f\">https://shop.example/a_b?c=1&amp;d=@e#f</a>"#,
                r#"<a href=\"mailto:ann.o@example.com\">ann.o@example.com</a>"#,
            ),
            "teams" => (r#""url":"https://shop.example/a_b?c=1&d=@e#f""#, "ann.o@example.com"),
            _ => (url, email),
        };
        let sent = links(chat, members, url, email);
        assert!(sent.contains(as_url) && sent.contains(as_email), "{chat}: {sent}");
        // The form's title mentions everybody.
        assert!(!sent.replace("@\u{200b}all", "").contains('\u{200b}'), "{chat}: {sent}");
        // What would end a link is no link, but text.
        let hostile = links(chat, members, "https://evil.example/a|b>c)\"'", email);
        let is_link =
            ["a|b", "a%7Cb"].iter().any(|part| hostile.contains(&format!("<https://evil.example/{part}")));
        assert!(!is_link && !hostile.contains("href=\\\"https"), "{chat}: {hostile}");
    }
}

#[test]
fn a_message_of_each_chat_is_as_kept() {
    let titles = owned(&["Your name?", "Would you come again?", "Left out?"]);
    let answers = owned(&["Ann <!channel> @everyone", "Yes, *surely*:\n- [a](https://b.example)", "x"]);
    let mut kept = Map::new();
    for (chat, members) in CHATS {
        let members = format!(r#"{members},"title":"{{{{ answers.q1 }}}} answered","max_fields":2"#);
        kept.insert(chat.to_owned(), message(chat, &members, &titles, &answers));
    }
    assert_golden("chats.json", &format!("{:#}\n", Value::Object(kept)));
}

#[test]
fn messages_stay_within_the_limits_for_any_answers() {
    let mut random = Random::new(16);
    for (chat, members) in CHATS {
        let members = format!(r#"{members},"title":"{{{{ answers.q1 }}}}","max_fields":40"#);
        for _ in 0..8 {
            let count = 1 + random.below(60);
            let titles: Vec<_> = (0..count).map(|_| title(&mut random)).collect();
            let answers: Vec<_> = (0..count).map(|_| answer(&mut random)).collect();
            let sent = message(chat, &members, &titles, &answers);
            check_limits(chat, &sent);
            shown(chat, &sent);
        }
        let many: Vec<_> = (0..200).map(|number| format!("Question {number}")).collect();
        let megabyte = vec!["&<@💥".repeat(650); 200];
        let sent = message(chat, &members, &many, &megabyte);
        check_limits(chat, &sent);
        let text = shown(chat, &sent);
        assert!(text.contains("Question 0") && text.contains("more answers)"), "{chat}: {text}");
        assert!(text.contains("sub_01kagzwy3v0000000000000000"), "{chat}: {text}");
    }
}

/// The title of a question: 1 to 200 characters, not blank.
fn title(random: &mut Random) -> String {
    let text: String = answer(random).chars().filter(|found| !found.is_control()).take(199).collect();
    format!("{text}?")
}

/// Parts of hostile answers and random characters, mostly few, sometimes many.
fn answer(random: &mut Random) -> String {
    let parts = if random.below(10) == 0 { 200 + random.below(800) } else { random.below(20) };
    let mut text = String::new();
    for _ in 0..parts {
        match random.below(3) {
            0 => text.push_str(random.pick::<&str>(&HOSTILE)),
            1 => text.extend(char::from_u32(u32::try_from(1 + random.below(0x10_ffff)).unwrap())),
            _ => text.push(char::from(u8::try_from(1 + random.below(127)).unwrap())),
        }
    }
    text
}
