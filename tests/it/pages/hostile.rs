//! Hostile texts of authors and visitors are shown as they are, and do nothing.

use super::{open, post, public_form};
use crate::harness::prelude::*;

const SCRIPT: &str = "\"'></title></textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>";

/// Texts that Markdown could turn into something active.
const MARKDOWN: [&str; 16] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java\nscript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "[a](//evil.example)",
    "<javascript:alert(1)>",
    "![a](https://evil.example/x.png)",
    "[a](https://a.b/\" onmouseover=\"alert(1))",
    "<https://a.b/\"onmouseover=alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]",
    "<div onclick=alert(1)>\n\ntext\n\n</div>",
];

/// Fails if a page has anything active that is not its own.
fn assert_inert(page: &TestResponse) {
    let text = page.text();
    let html = text.to_ascii_lowercase();
    assert_eq!(html.matches("<script").count(), html.matches("<script src=\"").count(), "{text}");
    for tag in ["<svg", "<iframe", "<object", "<embed", "<base", "<div onclick"] {
        assert!(!html.contains(tag), "{tag}: {text}");
    }
    // Attributes of tags: no handler, no style, no address that is not safe.
    let tags = html.split('<').skip(1).filter_map(|tag| tag.split('>').next());
    for tag in tags {
        let names = tag.split('"').step_by(2).flat_map(str::split_whitespace);
        for name in names.skip(1) {
            assert!(!name.starts_with("on") && !name.starts_with("style="), "{tag}");
        }
        for address in ["href=\"", "src=\"", "action=\""] {
            if let Some((_, rest)) = tag.split_once(address) {
                assert!(
                    !rest.starts_with("javascript:")
                        && !rest.starts_with("vbscript:")
                        && !rest.starts_with("data:text"),
                    "{tag}"
                );
                assert!(!rest.starts_with("//"), "{tag}");
            }
        }
    }
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[tokio::test]
async fn texts_of_authors_are_inert() {
    let server = Server::start().await;
    let questions = json!([
        {"id": "p", "type": "page", "title": SCRIPT, "description": SCRIPT},
        {"id": "s", "type": "statement", "title": SCRIPT, "description": SCRIPT},
        {"id": "a", "type": "short_text", "title": SCRIPT, "description": SCRIPT, "placeholder": SCRIPT},
        {"id": "b", "type": "single_choice", "title": SCRIPT, "options": [{"value": SCRIPT, "label": SCRIPT}, "x"], "allow_other": true},
        {"id": "c", "type": "multiple_choice", "title": SCRIPT, "options": [SCRIPT]},
        {"id": "d", "type": "single_choice", "title": SCRIPT, "options": [SCRIPT], "display": "dropdown"},
        {"id": "e", "type": "ranking", "title": SCRIPT, "options": [SCRIPT]},
        {"id": "f", "type": "matrix", "title": SCRIPT, "rows": [SCRIPT], "columns": [SCRIPT]},
        {"id": "g", "type": "opinion_scale", "title": SCRIPT, "labels": {"0": SCRIPT, "5": SCRIPT}},
        {"id": "h", "type": "boolean", "title": SCRIPT, "labels": {"true": SCRIPT}},
        {"id": "i", "type": "consent", "title": SCRIPT, "text": SCRIPT},
        {"id": "j", "type": "short_text", "title": "J", "show_if": {"b": SCRIPT}},
        {"id": "k", "type": "rating", "title": SCRIPT, "labels": {"1": SCRIPT}},
    ]);
    let settings = json!({"confirmation": {"message": SCRIPT}, "closed_message": SCRIPT});
    let form = public_form(&server, questions, settings).await;
    server
        .patch(format!("{FORMS}/{form}"), json!({"title": SCRIPT, "description": SCRIPT}))
        .send()
        .await
        .expect(200);
    assert_inert(&open(&server, format!("/f/{form}")).await);
    assert_inert(&open(&server, format!("/f/{form}/done")).await);
    server.patch(format!("{FORMS}/{form}"), json!({"settings": {"closed": true}})).send().await.expect(200);
    assert_inert(&open(&server, format!("/f/{form}")).await);
}

#[tokio::test]
async fn markdown_is_inert() {
    let server = Server::start().await;
    for text in MARKDOWN {
        let question = json!([
            {"id": "a", "type": "short_text", "title": "A", "description": text},
            {"id": "b", "type": "consent", "title": "B", "text": text},
        ]);
        let form = public_form(&server, question, json!({"confirmation": {"message": text}})).await;
        for path in [format!("/f/{form}"), format!("/f/{form}/done")] {
            let page = open(&server, path).await;
            assert_inert(&page);
            assert!(!page.text().contains("<img"), "{text}: {}", page.text());
        }
    }
}

#[tokio::test]
async fn answers_and_addresses_of_visitors_are_inert() {
    let server = Server::start().await;
    let questions = json!([
        {"id": "a", "type": "short_text", "title": "A", "max_length": 5},
        {"id": "b", "type": "long_text", "title": "B"},
        {"id": "c", "type": "single_choice", "title": "C", "options": ["x"], "allow_other": true},
        {"id": "d", "type": "hidden", "from_url": "d"},
        {"id": "e", "type": "number", "title": "E"},
    ]);
    let form = public_form(&server, questions, json!({})).await;
    let query = super::encode(&[
        ("b", SCRIPT),
        ("c.other", SCRIPT),
        ("d", SCRIPT),
        ("_embed", SCRIPT),
        ("_preview", SCRIPT),
        ("_t", SCRIPT),
    ]);
    assert_inert(&open(&server, format!("/f/{form}?{query}")).await);
    assert_inert(&open(&server, format!("/f/{form}/done?r={query}&_embed={query}")).await);
    let fields: Vec<_> =
        ["a", "b", "c", "c.other", "d", "e", "_t", "_next", "_hp", SCRIPT].map(|name| (name, SCRIPT)).into();
    assert_inert(&post(&server, format!("/f/{form}?{query}"), &fields).send().await);
    let token = super::token(&open(&server, format!("/f/{form}")).await);
    let with_token = |(name, value): &(&'static str, &'static str)| {
        (*name, if *name == "_t" { token.clone() } else { (*value).to_owned() })
    };
    let checked: Vec<_> = fields.iter().map(with_token).collect();
    let checked: Vec<_> = checked.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let refused = post(&server, format!("/f/{form}"), &checked).send().await;
    assert!(refused.status == 422 && refused.text().contains("class=\"msg\""), "{}", refused.text());
    assert_inert(&refused);
    server.patch(format!("{FORMS}/{form}"), json!({"settings": {"closed": true}})).send().await.expect(200);
    assert_inert(&post(&server, format!("/f/{form}"), &fields).send().await);
}
