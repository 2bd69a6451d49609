//! Paginated lists: each page is fetched on demand.

use std::collections::HashSet;

use reqwest::header::{HeaderMap, LINK};

use super::{Client, ClientError, Request};

pub const MAX_PAGE: usize = 1_000;

#[derive(Debug)]
pub struct Pages<'a, T> {
    client: &'a Client,
    /// Path and query of the next page; `None` after the last.
    next: Option<String>,
    /// Paths already fetched, to detect cycles.
    visited: HashSet<String>,
    total: Option<u64>,
    read: PageDecoder<T>,
}

type PageDecoder<T> = fn(&Client, &[u8]) -> Result<Vec<T>, ClientError>;

impl<'a, T> Pages<'a, T> {
    /// Creates the list whose first page is at `first`, a path and a query.
    pub(super) fn new(client: &'a Client, first: String, read: PageDecoder<T>) -> Self {
        Self { client, next: Some(first), visited: HashSet::new(), total: None, read }
    }

    /// Returns the total number of items, after the first page, if the server was asked to count.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Fetches the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, ClientError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        if !self.visited.insert(path.clone()) {
            let message = "the link to the next page leads back to an earlier one";
            return Err(self.client.unexpected(message.to_owned()));
        }
        let answer = self.client.send(&Request::get(path)).await?;
        self.next = next_link(&answer.headers);
        self.total = self.total.or(total(&answer.headers));
        (self.read)(self.client, &answer.body).map(Some)
    }

    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

fn total(headers: &HeaderMap) -> Option<u64> {
    headers.get("forms-total")?.to_str().ok()?.parse().ok()
}

/// Returns path and query of `Link: <…>; rel="next"`. The host is ignored: the server may know itself by another name
/// than the client does.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let link = headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok());
    let next = link.flat_map(|links| links.split(',')).find(|link| link.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    let path = address.find("/api/").map(|start| &address[start..])?;
    Some(path.to_owned())
}
