//! How each service reads the markup of its texts: the text that people see. Whatever would be markup fails the test.

use serde_json::Value;

/// All that people see of `message`.
pub(super) fn shown(chat: &str, message: &Value) -> String {
    let mut texts = Vec::new();
    match chat {
        "slack" => {
            texts_of(&message["blocks"], "text", &mut texts);
            let text = message["text"].as_str().unwrap();
            assert!(!text.contains(['<', '>']), "{text}");
        }
        "discord" => {
            for name in ["title", "name", "value"] {
                texts_of(&message["embeds"], name, &mut texts);
            }
            let mut texts: Vec<_> = texts.iter().map(|text| unescaped(text, &DISCORD)).collect();
            // A footer has no markup.
            texts.push(message["embeds"][0]["footer"]["text"].as_str().unwrap().to_owned());
            return texts.join("\n");
        }
        "teams" => texts_of(&message["attachments"], "text", &mut texts),
        "mattermost" => {
            let text = message["text"].as_str().unwrap();
            // An `@` as code, and one behind it.
            let text = text.replace("\u{200b}`@`", "`@`").replace("`@`", "\u{1}");
            return decoded(&unescaped(&without_bold(&text), &MATTERMOST).replace('\u{1}', "@"));
        }
        "google_chat" => return google_chat(message),
        "telegram" => {
            let text = message["text"].as_str().unwrap();
            check_apart(text);
            return text.to_owned();
        }
        "matrix" => {
            let html = message["formatted_body"].as_str().unwrap();
            assert!(!html.contains('\n'), "{html:?}");
            let text = html.replace("<b>", "").replace("</b>", "").replace("<br>", "\n");
            let html = entities(&text);
            assert_eq!(
                html.contains("more answer"),
                message["body"].as_str().unwrap().contains("more answer")
            );
            return html;
        }
        "ntfy" => {
            texts.push(message["title"].as_str().unwrap());
            texts.push(message["message"].as_str().unwrap());
        }
        other => panic!("{other}"),
    }
    texts.join("\n")
}

/// Collects the texts that are members `name` at any depth.
fn texts_of<'a>(value: &'a Value, name: &str, texts: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, name, texts)),
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str() {
                    Some(text) if key == name => texts.push(text),
                    _ => texts_of(member, name, texts),
                }
            }
        }
        _ => {}
    }
}

/// A dialect of Markdown.
struct Dialect {
    /// Signs that mean something anywhere.
    anywhere: &'static str,
    /// What a backslash takes its meaning from.
    escapable: &'static str,
    /// Whether mentions, smileys and entities are recognized in texts.
    is_apart: bool,
}

/// Discord's client: a backslash works before each sign that is neither letter, digit nor space.
const DISCORD: Dialect =
    Dialect { anywhere: "*_~`|[]()<>#@:", escapable: "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", is_apart: false };

/// Mattermost's fork of the library marked.
const MATTERMOST: Dialect =
    Dialect { anywhere: "*_~`|[]()>#$", escapable: "\\`*{}[]()#$+-.!_>~|", is_apart: true };

/// Returns the text as the dialect shows it.
fn unescaped(text: &str, dialect: &Dialect) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut shown = String::new();
    let mut place = 0;
    while place < characters.len() {
        let found = characters[place];
        let next = characters.get(place + 1).copied();
        let line = shown.rsplit('\n').next().unwrap();
        if found == '\\' && next.is_some_and(|next| dialect.escapable.contains(next)) {
            shown.extend(next);
            place += 2;
            continue;
        }
        assert!(!dialect.anywhere.contains(found), "{found} means something in {text:?}");
        let begins_line = line.trim().is_empty();
        assert!(
            !(begins_line && (matches!(found, '-' | '+') || found == '=' && dialect.is_apart)),
            "{found} begins a line of {text:?}"
        );
        assert!(!(begins_line && matches!(found, ' ' | '\t')), "a line begins with a space in {text:?}");
        let is_number = !begins_line && line.chars().all(|digit| digit.is_ascii_digit());
        assert!(!(is_number && matches!(found, '.' | ')')), "a list in {text:?}");
        assert!(!(found == '.' && line.to_lowercase().ends_with("www")), "a link in {text:?}");
        if dialect.is_apart {
            let is_address = line.ends_with(|before: char| before.is_ascii_alphanumeric());
            let is_time = line.ends_with(|before: char| before.is_ascii_digit());
            let entity = ["&#58;", "&#61;", "&amp;"]
                .into_iter()
                .find(|entity| text_from(&characters, place).starts_with(entity));
            assert!(found != ':' || is_time, "a smiley or a link in {text:?}");
            assert!(found != '@' || is_address, "a mention in {text:?}");
            assert!(found != '&' || entity.is_some(), "an entity in {text:?}");
            if let Some(entity) = entity {
                shown.push_str(entity);
                place += entity.len();
                continue;
            }
        }
        shown.push(found);
        place += 1;
    }
    shown
}

fn text_from(characters: &[char], place: usize) -> String {
    characters[place..].iter().take(5).collect()
}

/// Decodes the entities that Mattermost is sent.
fn decoded(text: &str) -> String {
    text.replace("&#58;", ":").replace("&#61;", "=").replace("&amp;", "&")
}

/// Returns a text of Mattermost without the marks of what is bold on purpose.
fn without_bold(text: &str) -> String {
    let line = |line: &str| {
        let bold = line.strip_prefix("**").and_then(|line| line.strip_suffix("**"));
        bold.unwrap_or(line).to_owned()
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Asserts that no mention, command or tag of Telegram is in `text`.
fn check_apart(text: &str) {
    let characters: Vec<char> = text.chars().collect();
    for (place, found) in characters.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| characters[place]);
        let next = characters.get(place + 1);
        let is_in_word = before.is_some_and(char::is_alphanumeric);
        let is_in_url = before.is_some_and(|before| matches!(before, ':' | '/'));
        let is_apart = next.is_none_or(|next| !next.is_alphanumeric() && *next != '_');
        match found {
            '@' => assert!(is_apart || before.unwrap().is_ascii_alphanumeric(), "{text:?}"),
            '/' | '#' | '$' => assert!(is_apart || is_in_word || is_in_url, "{text:?}"),
            _ => {}
        }
    }
}

/// Texts of widgets are HTML; titles are not.
fn google_chat(message: &Value) -> String {
    let card = &message["cardsV2"][0]["card"];
    let mut shown = vec![card["header"]["title"].as_str().unwrap().to_owned()];
    for widget in card["sections"][0]["widgets"].as_array().unwrap() {
        let answer = &widget["decoratedText"];
        shown.extend(answer["topLabel"].as_str().map(str::to_owned));
        let text = answer["text"].as_str().or_else(|| widget["textParagraph"]["text"].as_str());
        shown.push(entities(text.unwrap()));
    }
    shown.join("\n")
}

/// Reads HTML without elements.
fn entities(html: &str) -> String {
    assert!(!html.contains(['<', '>']), "{html:?}");
    let rest = html.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "");
    assert!(!rest.contains('&'), "{html:?}");
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
