//! Paginated lists: each page is fetched on demand.

use std::collections::HashSet;

use reqwest::header::{HeaderMap, LINK};

use super::{Client, ClientError, Request};

pub const MAX_PAGE: usize = 1_000;

#[derive(Debug)]
pub struct Pages<'a, T> {
    client: &'a Client,
    /// Path of the list, which all pages share.
    path: String,
    /// Query of the next page; `None` after the last.
    next: Option<String>,
    /// Queries already sent, to detect cycles.
    visited: HashSet<String>,
    total: Option<u64>,
    read: PageDecoder<T>,
}

type PageDecoder<T> = fn(&Client, &[u8]) -> Result<Vec<T>, ClientError>;

impl<'a, T> Pages<'a, T> {
    /// Creates the list whose first page is at `first`, a path and a query.
    pub(super) fn new(client: &'a Client, first: &str, read: PageDecoder<T>) -> Self {
        let (path, query) = first.split_once('?').unwrap_or((first, ""));
        let (path, next) = (path.to_owned(), Some(query.to_owned()));
        Self { client, path, next, visited: HashSet::new(), total: None, read }
    }

    /// Returns the total number of items, after the first page, if the server was asked to count.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Fetches the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, ClientError> {
        let Some(query) = self.next.take() else { return Ok(None) };
        if !self.visited.insert(query.clone()) {
            let message = "the link to the next page leads back to an earlier one";
            return Err(self.client.unexpected(message.to_owned()));
        }
        let answer = self.client.send(&Request::get(format!("{}?{query}", self.path))).await?;
        self.next = next_query(&answer.headers);
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

/// Returns the query of `Link: <…>; rel="next"`. Host and path are ignored: behind a proxy, the server may know itself by
/// others than the client does, and the key must not go elsewhere.
fn next_query(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(LINK).iter().filter_map(|line| line.to_str().ok());
    // Commas separate links and may occur in them; `<` begins one and cannot occur elsewhere in it (RFC 3986 §2).
    let mut links = lines.flat_map(|line| line.split('<').skip(1)).filter_map(|link| link.split_once('>'));
    let (address, _) = links.find(|(_, parameters)| parameters.contains("rel=\"next\""))?;
    address.split_once('?').map(|(_, query)| query.to_owned())
}
