//! Pages of forms that take no answers, confirmations, and the pages of the server.

use super::{answer, open, post, public_form, stored, token};
use crate::harness::prelude::*;

fn one_question() -> Value {
    json!([{"id": "name", "type": "short_text", "title": "Name"}])
}

#[tokio::test]
async fn a_form_that_takes_no_answers_says_why_and_shows_what_was_answered() {
    let server = Server::start().await;
    let cases = [
        (json!({"closed": true}), 410, "This form is closed", "It no longer takes answers."),
        (
            json!({"closed": true, "closed_message": "See *you* next year"}),
            410,
            "This form is closed",
            "See <em>you</em> next year",
        ),
        (
            json!({"closes_at": "2026-11-20T08:00:00Z"}),
            410,
            "This form is closed",
            "It no longer takes answers.",
        ),
        (json!({"max_responses": 1}), 410, "This form is full", "It has all the answers it can take."),
        (
            json!({"opens_at": "2026-12-01T08:30:00Z"}),
            403,
            "This form is not open yet",
            "It opens on 2026-12-01 08:30 UTC.",
        ),
    ];
    for (settings, status, title, text) in cases {
        let form = public_form(&server, one_question(), json!({})).await;
        let path = format!("/f/{form}");
        let token = token(&open(&server, &path).await);
        server.submit(&form, json!({"name": "first"})).await;
        server.patch(format!("{FORMS}/{form}"), json!({"settings": settings})).send().await.expect(200);
        let shown = open(&server, &path).await;
        assert_eq!(shown.status.as_u16(), status, "{settings}");
        assert!(
            shown.text().contains(&format!("<h1>{title}</h1>")) && shown.text().contains(text),
            "{}",
            shown.text()
        );
        let sent = post(&server, &path, &[("name", "A & B"), ("_t", &token)]).send().await;
        assert_eq!(sent.status.as_u16(), status, "{settings}");
        assert!(sent.text().contains("<dt>Name</dt><dd dir=\"auto\">A &#38; B</dd>"), "{}", sent.text());
        assert_eq!(stored(&server, &form).await.len(), 1);
    }
}

#[tokio::test]
async fn a_confirmation_is_a_message_or_another_page() {
    let server = Server::start().await;
    let message = json!({"confirmation": {"message": "See you on **Monday**"}});
    let form = public_form(&server, one_question(), message).await;
    let sent = answer(&server, &form, &[]).await;
    let done = open(&server, sent.header("location").unwrap()).await;
    assert!(done.text().contains("See you on <strong>Monday</strong>"), "{}", done.text());
    assert!(done.text().contains(&format!("href=\"../{form}\"")));
    let redirect = json!({"confirmation": {"redirect_url": "https://example.com/thanks?a=b"}});
    let form = public_form(&server, one_question(), redirect).await;
    let page = open(&server, format!("/f/{form}")).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self' https://example.com;"), "{policy}");
    let sent = answer(&server, &form, &[]).await;
    assert_eq!(sent.header("location"), Some("https://example.com/thanks?a=b"));
    // Only an id is shown as a reference.
    let done = open(&server, format!("/f/{form}/done?r=%3Cb%3E")).await;
    assert!(!done.text().contains("Reference"), "{}", done.text());
}

#[tokio::test]
async fn the_server_has_a_page_of_its_own_and_scripts_that_can_be_cached() {
    let server = Server::start().await;
    let home = open(&server, "/").await;
    assert_eq!(home.status, 200);
    assert!(home.text().contains("This server builds forms and collects answers."));
    let form = public_form(&server, one_question(), json!({})).await;
    let page = open(&server, format!("/f/{form}")).await;
    let (_, rest) = page.text().split_once("<script src=\"../_/").unwrap();
    let script = open(&server, format!("/_/{}", rest.split('"').next().unwrap())).await;
    assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(open(&server, "/_/form.000000000000.js").await.status, 404);
    let slash = open(&server, format!("/f/{form}/?name=Ada")).await;
    assert_eq!(
        (slash.status.as_u16(), slash.header("location")),
        (303, Some(&*format!("/f/{form}?name=Ada")))
    );
    let embed = open(&server, "/embed.js").await;
    assert!(embed.status == 200 && embed.body.len() < 1_024, "{}", embed.body.len());
    assert!(open(&server, "/robots.txt").await.text().contains("Disallow: /"));
}

#[tokio::test]
async fn a_form_without_conditions_loads_the_small_script() {
    let server = Server::start().await;
    let script = |page: &TestResponse| {
        let (_, rest) = page.text().split_once("<script src=\"../_/").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let plain = public_form(&server, one_question(), json!({})).await;
    let stepped = public_form(&server, one_question(), json!({"layout": "steps"})).await;
    let conditional = json!([
        {"id": "a", "type": "boolean", "title": "A"},
        {"id": "b", "type": "short_text", "title": "B", "show_if": {"a": true}},
    ]);
    let conditional = public_form(&server, conditional, json!({})).await;
    let mut scripts = Vec::new();
    for form in [plain, stepped, conditional] {
        scripts.push(script(&open(&server, format!("/f/{form}")).await));
    }
    assert!(scripts[0] != scripts[1] && scripts[1] == scripts[2], "{scripts:?}");
}

#[tokio::test]
async fn a_page_speaks_the_language_of_its_form() {
    let server = Server::start().await;
    for (language, lang, dir, send) in [
        ("de-AT", "de-AT", "ltr", "Absenden"),
        ("ar", "ar", "rtl", "إرسال"),
        ("nl", "nl", "ltr", "Send"),
        ("he-IL", "he-IL", "rtl", "Send"),
    ] {
        let form = public_form(&server, one_question(), json!({"language": language})).await;
        let page = open(&server, format!("/f/{form}")).await;
        assert!(page.text().contains(&format!("<html lang=\"{lang}\" dir=\"{dir}\">")), "{}", page.text());
        assert!(page.text().contains(&format!("<button id=\"-send\">{send}</button>")), "{}", page.text());
    }
}

#[tokio::test]
async fn the_page_of_a_public_form_has_a_limit() {
    let server = Server::start().await;
    let options: Vec<_> = (0..60).map(|number| number.to_string()).collect();
    let questions = json!([{"id": "r", "type": "ranking", "title": "R", "options": options}]);
    let form = json!({"title": "Large", "questions": questions, "settings": {"public": true}});
    server.post(FORMS, form.clone()).send().await.expect_errors(&[("/questions", "too_many")]);
    let mut private = form;
    private["settings"] = json!({});
    let id = server.create(FORMS, private).await;
    let made_public =
        server.patch(format!("{FORMS}/{id}"), json!({"settings": {"public": true}})).send().await;
    made_public.expect_errors(&[("/questions", "too_many")]);
    let preview = server.read(format!("{FORMS}/{id}/page")).await["preview_url"].as_str().unwrap().to_owned();
    let refused = open(&server, preview).await;
    assert!(refused.status == 422 && refused.text().contains("KiB"), "{}", refused.text());
}

#[tokio::test]
async fn a_theme_has_its_own_style_with_readable_colours() {
    let server = Server::start().await;
    let logo = "data:image/svg+xml;base64,PHN2Zy8+";
    let theme = json!({"theme": {"accent": "#7a1fa2", "logo": logo}});
    let form = public_form(&server, one_question(), theme).await;
    let page = open(&server, format!("/f/{form}")).await;
    assert!(page.text().contains(":root{--accent:#7a1fa2}"), "{}", page.text());
    assert!(
        page.text().contains(&format!("<img class=\"logo\" src=\"{}\"", logo.replace('+', "&#43;")))
            || page.text().contains(logo)
    );
    assert_eq!(page.header("content-security-policy").unwrap().matches("'sha256-").count(), 2);
}

#[tokio::test]
async fn the_page_of_every_kind_of_question_is_light() {
    let server = Server::start().await;
    let form = public_form(&server, super::answers::every_kind(), json!({})).await;
    let path = format!("/f/{form}");
    let page = open(&server, &path).await;
    let resources: Vec<_> =
        page.text().split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let [script] = resources[..] else { panic!("{resources:?}") };
    for (path, raw, compressed) in [(path, 20_000, 6_000), (script.replace("..", ""), 5_000, 2_000)] {
        let plain = open(&server, &path).await.body.len();
        let gzip = server.call_without_key(Method::GET, &path).header("accept-encoding", "gzip").send().await;
        assert_eq!(gzip.header("content-encoding"), Some("gzip"));
        assert!(plain <= raw && gzip.body.len() <= compressed, "{path}: {plain} {}", gzip.body.len());
    }
}
