//! Web origins, and the URLs that have nothing but an origin and a path.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// A web origin as browsers send it in `Origin`: `https://app.example.com`, with a port unless it is the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebOrigin(String);

impl WebOrigin {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "null" {
            return Err("any web page can send the origin `null`, from a sandboxed frame; list each origin"
                .to_owned());
        }
        if text.contains('*') {
            return Err("wildcards are not supported; list each origin".to_owned());
        }
        // Others are allowed in a host, and would begin another directive of a security policy.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:/[]".contains(&byte);
        let url = parse_web_url(text).filter(|url| url.path() == "/" && url.as_str().bytes().all(is_plain));
        let url =
            url.ok_or("expected scheme, host and optionally a port, such as https://app.example.com")?;
        let origin = url.origin().ascii_serialization();
        if origin == text { Ok(Self(origin)) } else { Err(format!("browsers send this origin as {origin}")) }
    }
}

/// Parses an http or https URL without user, password, query and fragment.
pub fn parse_web_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_bare = url.username().is_empty() && url.password().is_none() && !text.contains(['?', '#']);
    (matches!(url.scheme(), "http" | "https") && is_bare).then_some(url)
}
