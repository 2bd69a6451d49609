//! The page of a form in a browser: Chromium, with and without JavaScript, checked for accessibility by axe-core.
//!
//! Without `chromedriver` these tests pass and say so; `FORMS_REQUIRE_BROWSER` makes them fail. Each state of the page is saved
//! as pictures and HTML in `target/screens`.

mod driver;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};

use crate::harness::prelude::*;
use driver::Browser;

/// A server on a port, with a form that is public, and a browser.
struct Scene {
    server: Server,
    listening: ListeningServer,
    browser: Browser,
}

impl Scene {
    /// Returns `None` if there is no browser.
    async fn begin() -> Option<Self> {
        let browser = Browser::start().await?;
        let server = Server::start().await;
        let listening = server.listen().await;
        Some(Self { server, listening, browser })
    }

    /// Creates a public form with these members and returns its id.
    async fn form(&self, members: Value) -> String {
        let mut form =
            json!({"title": "Conference", "description": "Two *minutes*.", "questions": questions()});
        form.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        form["settings"]["public"] = true.into();
        let id = self.server.create(FORMS, form).await;
        self.server.patch(format!("{FORMS}/{id}"), json!({"status": "published"})).send().await.expect(200);
        id
    }

    fn url(&self, form: &str) -> String {
        format!("http://{}/f/{form}", self.listening.address)
    }

    async fn open(&self, form: &str) {
        self.browser.open(&self.url(form)).await;
        self.pass_time();
    }

    /// Lets the time pass in which a person fills in a form.
    fn pass_time(&self) {
        self.server.clock.advance(10_000);
    }

    /// Returns the answers that are stored, newest first.
    async fn stored(&self, form: &str) -> Vec<Value> {
        let list = self.server.read(format!("{FORMS}/{form}/submissions")).await;
        list["submissions"].as_array().unwrap().iter().map(|one| one["answers"].clone()).collect()
    }

    /// Fails unless the only answers that are stored are those that the API stores for `answers`.
    async fn expect_stored(&self, form: &str, answers: Value) {
        let stored = self.stored(form).await;
        assert_eq!(stored.len(), 1, "{stored:?}");
        self.server.submit(form, answers).await;
        assert_eq!(self.stored(form).await[0], stored[0]);
    }
}

/// A question of each kind that is drawn differently.
fn questions() -> Value {
    json!([
        {"id": "name", "type": "short_text", "title": "Your name", "required": true},
        {"id": "email", "type": "email", "title": "Email", "description": "We send the programme."},
        {"id": "age", "type": "number", "title": "Age"},
        {"id": "day", "type": "date", "title": "First day"},
        {"id": "track", "type": "single_choice", "title": "Track", "options": ["Web", "Data"], "allow_other": true},
        {"id": "why", "type": "long_text", "title": "Why the web?", "max_length": 200, "show_if": {"track": "Web"}},
        {"id": "meals", "type": "multiple_choice", "title": "Meals", "options": ["lunch", "dinner"]},
        {"id": "country", "type": "single_choice", "title": "Country", "display": "dropdown", "options": ["DE", "FR"]},
        {"id": "first", "type": "boolean", "title": "Your first time?"},
        {"id": "stars", "type": "rating", "title": "Last year"},
        {"id": "nps", "type": "opinion_scale", "title": "Would you recommend us?", "labels": {"0": "never", "10": "surely"}},
        {"id": "days", "type": "matrix", "title": "Each day", "rows": ["Monday", "Tuesday"], "columns": ["good", "bad"]},
        {"id": "order", "type": "ranking", "title": "In order", "options": ["talks", "food"]},
        {"id": "rules", "type": "consent", "title": "Rules", "required": true},
    ])
}

#[tokio::test]
async fn errors_are_corrected_and_answers_are_stored_once() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let form = scene.form(json!({})).await;
    scene.open(&form).await;
    browser.check("form").await;
    browser.emulate_dark(true).await;
    browser.save("form-dark").await;
    browser.emulate_dark(false).await;
    assert_eq!(browser.eval("document.querySelector('#why').checkVisibility()").await, false);
    browser.fill("#email", "ann").await;
    browser.fill("#age", "41").await;
    browser.click("[name=track][value=Web]").await;
    browser.fill("#why", "It is\neverywhere").await;
    browser.click("[name=meals][value=dinner]").await;
    browser.click("label:has([name=stars][value='4'])").await;
    browser.click("#-send").await;

    browser.check("errors").await;
    assert_eq!(browser.eval("document.title").await, "Error: Conference");
    assert_eq!(browser.eval("document.activeElement.className").await, "sum");
    let links = "[...document.querySelectorAll('.sum a')].map(link => link.hash)";
    assert_eq!(browser.eval(links).await, json!(["#name", "#email", "#rules"]));
    browser.click(".sum a[href='#email']").await;
    assert_eq!(browser.eval("document.activeElement.id").await, "email");
    scene.pass_time();
    browser.fill("#name", "Ann").await;
    browser.fill("#email", "ann@example.com").await;
    browser.click("#rules").await;
    browser.click("#-send").await;

    browser.check("thank-you").await;
    let page = browser.eval("location.pathname").await;
    assert_eq!(page, format!("/f/{form}/done"));
    browser.back().await;
    browser.wait_until("document.querySelector('#name')?.value === 'Ann'").await;
    browser.click("#-send").await;
    browser.wait_until("location.pathname.endsWith('/done')").await;
    let answers = json!({
        "name": "Ann", "email": "ann@example.com", "age": 41, "track": "Web", "why": "It is\neverywhere",
        "meals": ["dinner"], "stars": 4, "rules": true,
    });
    scene.expect_stored(&form, answers).await;
    browser.expect_quiet_console().await;
}

#[tokio::test]
async fn without_javascript_errors_are_corrected_and_answers_are_stored() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let form = scene.form(json!({"settings": {"layout": "steps"}})).await;
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    scene.open(&form).await;
    browser.fill("#email", "ann@example.com").await;
    browser.click("#rules").await;
    browser.click("#-send").await;
    browser.wait_for(".sum a[href='#name']").await;
    assert_eq!(browser.eval("document.activeElement.className").await, "sum");
    browser.fill("#name", "Ann").await;
    browser.click("#-send").await;
    browser.click("body[data-done] a").await;
    scene.expect_stored(&form, json!({"name": "Ann", "email": "ann@example.com", "rules": true})).await;
}

#[tokio::test]
async fn steps_go_forward_and_back() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let questions = json!([
        {"id": "name", "type": "short_text", "title": "Your name", "required": true},
        {"type": "page", "title": "More"},
        {"id": "track", "type": "single_choice", "title": "Track", "options": ["Web", "Data"]},
        {"type": "page", "title": "The web", "show_if": {"track": "Web"}},
        {"id": "why", "type": "long_text", "title": "Why the web?"},
        {"type": "page", "title": "At last"},
        {"id": "email", "type": "email", "title": "Email"},
    ]);
    let form = scene.form(json!({"questions": questions, "settings": {"layout": "steps"}})).await;
    scene.open(&form).await;
    let shown = "[...document.querySelectorAll('input,textarea')]
        .filter(field => field.checkVisibility() && field.name[0] !== '_').map(field => field.name)";
    assert_eq!(browser.eval(shown).await, json!(["name"]));
    assert_eq!(browser.eval("document.title").await, "Step 1 of 3 – Conference");
    browser.fill("#name", "Ann\u{e007}").await; // Enter goes on
    assert_eq!(browser.eval(shown).await, json!(["track", "track"]));
    assert_eq!(browser.eval("document.activeElement.id").await, "track");
    browser.check("steps").await;
    browser.click("[value=Web]").await;
    assert_eq!(browser.eval("document.querySelector('progress').max").await, 4);
    browser.click("#-next").await;
    assert_eq!(browser.eval(shown).await, json!(["why"]));
    browser.click("#-back").await;
    browser.wait_until("document.querySelector('#track').checkVisibility()").await;
    browser.back().await;
    browser.wait_until("document.querySelector('#name').checkVisibility()").await;
    assert_eq!(browser.eval("document.querySelector('#-back').hidden").await, true);
    for _ in 0..3 {
        browser.click("#-next").await;
    }
    assert_eq!(browser.eval(shown).await, json!(["email"]));
    browser.click("#-send").await;
    browser.wait_until("location.pathname.endsWith('/done')").await;
    scene.expect_stored(&form, json!({"name": "Ann", "track": "Web"})).await;
    browser.expect_quiet_console().await;
}

#[tokio::test]
async fn a_page_in_a_frame_of_another_site_fits_its_height_and_can_be_sent() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let form = scene.form(json!({"questions": [{"id": "name", "type": "short_text", "title": "Your name", "required": true}]})).await;
    let (page, script) = (scene.url(&form), format!("http://{}/embed.js", scene.listening.address));
    let html = format!(
        "<!doctype html><html lang=\"en\"><title>Another site</title><iframe src=\"{page}?_embed\" title=\"Form\" height=\"50\">\
         </iframe><script src=\"{script}\" async></script>"
    );
    let host = Router::new().route("/", get(async move || Html(html)));
    let host = ListeningServer::listen(Scheme::Http, host, HttpSettings::default()).await;
    browser.open(&format!("http://localhost:{}/", host.address.port())).await;
    browser.wait_until("document.querySelector('iframe').clientHeight > 200").await;
    browser.enter_frame("iframe").await;
    let rest = "document.documentElement.scrollHeight - innerHeight";
    browser.wait_until(&format!("{rest} <= 0")).await;
    scene.pass_time();
    browser.click("#-send").await;
    browser.fill("main:has(.sum) #name", "Ann").await;
    browser.leave_frame().await;
    browser.save("embedded").await;
    browser.enter_frame("iframe").await;
    browser.click("#-send").await;
    browser.wait_until("location.pathname.endsWith('/done')").await;
    scene.expect_stored(&form, json!({"name": "Ann"})).await;
    browser.leave_frame().await;
    browser.expect_quiet_console().await;
}

#[tokio::test]
async fn a_draft_is_restored_until_it_is_sent() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let form = scene.form(json!({})).await;
    let kept = format!("localStorage.getItem('forms:{form}')");
    scene.open(&form).await;
    browser.fill("#name", "Ann").await;
    browser.click("[name=meals][value=dinner]").await;
    browser.wait_until(&format!("({kept} || '').includes('Ann')")).await;
    browser.reload().await;
    let values = "[document.querySelector('#name').value, document.querySelector('[value=dinner]').checked,
        document.getElementById('-draft').hidden]";
    browser.wait_until("document.querySelector('#name').value").await;
    assert_eq!(browser.eval(values).await, json!(["Ann", true, false]));
    browser.click("#-draft button").await;
    assert_eq!(browser.eval(values).await, json!(["", false, true]));
    browser.fill("#name", "Bob").await;
    browser.click("#rules").await;
    browser.click("#-send").await;
    browser.wait_until(&format!("location.pathname.endsWith('/done') && {kept} === null")).await;
    scene.open(&form).await;
    assert_eq!(browser.eval(values).await, json!(["", false, true]));
    browser.expect_quiet_console().await;
}

#[tokio::test]
async fn every_state_is_accessible() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let settings = [
        ("closed", json!({"closed": true}), 410),
        ("full", json!({"max_responses": 1}), 410),
        ("not-open-yet", json!({"opens_at": "2027-01-01T09:00:00Z"}), 403),
        ("arabic", json!({"language": "ar"}), 200),
        ("themed", json!({"theme": {"accent": "#8a1c5b"}}), 200),
    ];
    let status = "performance.getEntriesByType('navigation')[0].responseStatus";
    for (name, settings, expected) in settings {
        let form = scene.form(json!({"settings": settings})).await;
        if name == "full" {
            scene.server.submit(&form, json!({"name": "Ann", "rules": true})).await;
        }
        scene.open(&form).await;
        assert_eq!(browser.eval(status).await, expected, "{name}");
        browser.check(name).await;
        let direction = if name == "arabic" { "rtl" } else { "ltr" };
        assert_eq!(browser.eval("getComputedStyle(document.body).direction").await, direction);
    }
    browser.open(&scene.url("frm_000000000000")).await;
    assert_eq!(browser.eval(status).await, 404);
    browser.check("not-found").await;
    let draft = scene.server.draft_form(questions()).await;
    let links = scene.server.read(format!("{FORMS}/{draft}/page")).await;
    let preview = links["preview_url"].as_str().unwrap();
    browser
        .open(&format!("http://{}{}", scene.listening.address, &preview[preview.find("/f/").unwrap()..]))
        .await;
    browser.check("preview").await;
    browser.devtools("Emulation.setEmulatedMedia", json!({"media": "print"})).await;
    assert_eq!(browser.eval("document.getElementById('-send').checkVisibility()").await, false);
    browser.save("print").await;
    browser.expect_quiet_console().await;
}

#[tokio::test]
async fn broken_pages_are_found() {
    let Some(scene) = Scene::begin().await else { return };
    let browser = &scene.browser;
    let form = scene.form(json!({})).await;
    scene.open(&form).await;
    let broken = "[document.querySelector('label[for=name]').remove(), document.documentElement.removeAttribute('lang'),
        document.querySelector('h1').style.color = '#bbb'].length";
    browser.eval(broken).await;
    let found = browser.axe().await;
    for rule in ["label ", "html-has-lang ", "color-contrast "] {
        assert!(found.iter().any(|one| one.starts_with(rule)), "{rule}: {found:?}");
    }
}
