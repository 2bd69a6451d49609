//! A published form with three questions, and submissions of about 500 bytes.

use std::io;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::load::{Load, NUMBER, Until};
use super::wire::{Connection, request};

/// Connections used to fill a store: enough for full write groups.
const FILL_CONNECTIONS: usize = 256;

const DEFINITION: &str = r#"{"title":"Customer feedback","questions":[
    {"type":"short_text","title":"What should we know?","required":true},
    {"type":"email","title":"Where can we reach you?"},
    {"type":"rating","title":"How did we do?"}]}"#;

/// A published form of a running server.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) endpoint: Endpoint,
    pub(crate) key: String,
    pub(crate) id: String,
}

/// Creates and publishes a form.
pub(crate) async fn published_form(endpoint: Endpoint, key: &str) -> io::Result<Form> {
    published(endpoint, key, DEFINITION).await
}

/// Creates and publishes a form from `definition`.
pub(crate) async fn published(endpoint: Endpoint, key: &str, definition: &str) -> io::Result<Form> {
    let mut connection = Connection::open(endpoint).await?;
    let create = request("POST", "/api/v1/forms", key, definition);
    let id = member(expect(&mut connection, &create, 201).await?, "id")?;
    let publish = request("PATCH", &format!("/api/v1/forms/{id}"), key, r#"{"status":"published"}"#);
    expect(&mut connection, &publish, 200).await?;
    Ok(Form { endpoint, key: key.to_owned(), id })
}

impl Form {
    /// The path of the form.
    pub(crate) fn path(&self) -> String {
        format!("/api/v1/forms/{}", self.id)
    }

    /// A GET request for `path`, relative to the form's path.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        request("GET", &format!("{}{path}", self.path()), &self.key, "")
    }

    /// Submissions over concurrent `connections`.
    pub(crate) fn submissions(&self, connections: usize) -> Load {
        let request = request("POST", &format!("{}/submissions", self.path()), &self.key, &submission());
        Load { endpoint: self.endpoint, connections, request, status: 201 }
    }

    /// The number of submissions that the server reports.
    pub(crate) async fn count(&self) -> io::Result<u64> {
        let mut connection = Connection::open(self.endpoint).await?;
        let body: serde_json::Value =
            serde_json::from_slice(expect(&mut connection, &self.get(""), 200).await?)?;
        body["response_count"].as_u64().ok_or_else(|| io::Error::other(format!("no count in {body}")))
    }

    /// Stores `count` more submissions.
    pub(crate) async fn fill(&self, count: u64) -> io::Result<()> {
        self.submissions(FILL_CONNECTIONS).run(Until::Sent { count, over: Duration::ZERO }).await?;
        Ok(())
    }
}

/// A submission of 500 bytes, with a placeholder for a sequence number.
pub(crate) fn submission() -> String {
    let fixed = format!(r#"{{"answers":{{"q1":"","q2":"person{NUMBER}@example.com","q3":4}}}}"#);
    let text = "The room was quiet and the breakfast good. ".repeat(12);
    let words = &text[..500 - fixed.len()];
    format!(r#"{{"answers":{{"q1":"{words}","q2":"person{NUMBER}@example.com","q3":4}}}}"#)
}

/// Sends `request`, requires `status`, and returns the body.
pub(crate) async fn expect<'a>(
    connection: &'a mut Connection,
    request: &[u8],
    status: u16,
) -> io::Result<&'a [u8]> {
    let response = connection.exchange(request).await?;
    if response.status == status {
        return Ok(response.body);
    }
    let body = String::from_utf8_lossy(response.body);
    Err(io::Error::other(format!("expected {status}, got {}: {body}", response.status)))
}

/// Returns a string member of a JSON object.
pub(crate) fn member(body: &[u8], name: &str) -> io::Result<String> {
    let object: serde_json::Value = serde_json::from_slice(body)?;
    let text = object.get(name).and_then(|member| member.as_str());
    text.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no `{name}` in {object}")))
}
