//! Lists that come page by page, each fetched when it is asked for.

use std::collections::HashSet;

use reqwest::header::{HeaderMap, LINK};

use super::{Client, ClientError, Request};

/// The most items a page may have.
pub const MAX_PAGE: usize = 1_000;

/// A list that comes page by page.
#[derive(Debug)]
pub struct Pages<'a, T> {
    client: &'a Client,
    /// Path and query of the next page; `None` behind the last.
    next: Option<String>,
    /// The paths that were followed.
    followed: HashSet<String>,
    total: Option<u64>,
    read: Read<T>,
}

/// Takes the items out of a page's body.
type Read<T> = fn(&Client, &[u8]) -> Result<Vec<T>, ClientError>;

impl<'a, T> Pages<'a, T> {
    /// The list whose first page is at `first`, a path and a query.
    pub(super) fn new(client: &'a Client, first: String, read: Read<T>) -> Self {
        Self { client, next: Some(first), followed: HashSet::new(), total: None, read }
    }

    /// How many items all pages have together, once the first has come and if the server was asked to count.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// The next page; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, ClientError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        if !self.followed.insert(path.clone()) {
            let what = "the link to the next page leads back to an earlier one";
            return Err(self.client.unexpected(what.to_owned()));
        }
        let answer = self.client.send(&Request::get(path)).await?;
        self.next = next_link(&answer.headers);
        self.total = self.total.or(total(&answer.headers));
        (self.read)(self.client, &answer.body).map(Some)
    }

    /// Whether there are more pages.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

fn total(headers: &HeaderMap) -> Option<u64> {
    headers.get("forms-total")?.to_str().ok()?.parse().ok()
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
