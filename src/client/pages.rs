//! Lists that come page by page, each fetched when it is asked for.

use reqwest::header::{HeaderMap, LINK};

use super::{Client, ClientError, Request, form_path};
use crate::api::{FormEntry, FormList, SubmissionDetail, SubmissionList};

/// The most items a page may have.
pub const MAX_PAGE: usize = 1_000;

/// The workspace's forms.
#[derive(Debug)]
pub struct Forms<'a> {
    client: &'a Client,
    /// Path and query of the next page; `None` behind the last.
    next: Option<String>,
}

/// The submissions of a form.
#[derive(Debug)]
pub struct Submissions<'a> {
    client: &'a Client,
    path: String,
    next: Option<String>,
}

impl<'a> Forms<'a> {
    pub(super) fn new(client: &'a Client, page: usize) -> Self {
        let next = Some(format!("/api/v1/forms?limit={}", page.clamp(1, MAX_PAGE)));
        Self { client, next }
    }

    /// The next page; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Vec<FormEntry>>, ClientError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        let answer = self.client.send(&Request::get(path)).await?;
        self.next = next_link(&answer.headers);
        let page: FormList = self.client.decode(&answer.body)?;
        Ok(Some(page.forms))
    }

    /// Whether there are more pages.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

impl<'a> Submissions<'a> {
    pub(super) fn new(client: &'a Client, form: &str, page: usize) -> Self {
        let path = format!("{}/submissions?limit={}", form_path(form), page.clamp(1, MAX_PAGE));
        Self { client, next: Some(path.clone()), path }
    }

    /// The next page; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Vec<SubmissionDetail>>, ClientError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        let answer = self.client.send(&Request::get(path)).await?;
        let page: SubmissionList = self.client.decode(&answer.body)?;
        self.next = page.next_cursor.map(|cursor| format!("{}&cursor={cursor}", self.path));
        Ok(Some(page.submissions))
    }

    /// Whether there are more pages.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

/// Path and query of `Link: <…>; rel="next"`. The server may be known to us under another name than to itself: only
/// the part behind it counts.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let link = headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
    let next = link.flat_map(|links| links.split(',')).find(|link| link.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    let path = address.find("/api/").map(|start| &address[start..])?;
    Some(path.to_owned())
}
