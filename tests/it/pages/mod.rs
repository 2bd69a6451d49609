//! The pages where people answer, through the router: what they show, take and refuse.

mod answers;
mod foreign;
mod hostile;
mod states;
mod visitors;
mod walks;

use crate::harness::prelude::*;

/// Creates a published, public form.
pub(crate) async fn public_form(server: &Server, questions: Value, settings: Value) -> String {
    let mut settings = settings;
    settings["public"] = true.into();
    let form = json!({"title": "Visit", "questions": questions, "settings": settings});
    let form = server.create(FORMS, form).await;
    server.patch(format!("{FORMS}/{form}"), json!({"status": "published"})).send().await.expect(200);
    form
}

/// Opens the page at `path`, without a key.
pub(crate) async fn open(server: &Server, path: impl AsRef<str>) -> TestResponse {
    server.call_without_key(Method::GET, path).send().await
}

/// Encodes fields as browsers do.
pub(crate) fn encode(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// Posts fields to the page at `path`, without a key.
pub(crate) fn post(server: &Server, path: impl AsRef<str>, fields: &[(&str, &str)]) -> Call {
    let call = server.call_without_key(Method::POST, path);
    call.header("content-type", "application/x-www-form-urlencoded").body(encode(fields))
}

/// Returns the token in a page.
pub(crate) fn token(page: &TestResponse) -> String {
    let (_, rest) = page.text().split_once("name=\"_t\" value=\"").expect("a page of a form has a token");
    rest.split('"').next().unwrap().to_owned()
}

/// Opens the page of `form`, takes two seconds to fill in `fields`, and sends them.
pub(crate) async fn answer(server: &Server, form: &str, fields: &[(&str, &str)]) -> TestResponse {
    let path = format!("/f/{form}");
    let token = token(&open(server, &path).await);
    server.clock.advance(2_000);
    let fields: Vec<_> = fields.iter().copied().chain([("_t", token.as_str())]).collect();
    post(server, path, &fields).send().await
}

/// Returns the submissions of `form`, oldest first: the answers of each.
pub(crate) async fn stored(server: &Server, form: &str) -> Vec<Value> {
    let mut stored = newest(server, form, 100).await;
    stored.reverse();
    stored
}

/// Returns the newest submissions of `form`: the answers of each.
pub(crate) async fn newest(server: &Server, form: &str, limit: usize) -> Vec<Value> {
    let list = server.read(format!("{FORMS}/{form}/submissions?limit={limit}")).await;
    list["submissions"].as_array().unwrap().iter().map(|one| one["answers"].clone()).collect()
}
