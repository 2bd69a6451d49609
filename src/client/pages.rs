//! Lists: their items, and pages that are fetched on demand.

use std::collections::{HashMap, HashSet};

use reqwest::Method;
use reqwest::header::{HeaderMap, LINK};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Client, Request, Result};

pub const MAX_PAGE: usize = 1_000;

/// A list in pages of items.
pub struct Pages<'a, T> {
    client: &'a Client,
    /// Path of the list, which all pages share.
    path: String,
    /// The member of a page that has its items.
    member: &'static str,
    /// Query of the next page; `None` after the last.
    next: Option<String>,
    /// Queries already sent, to detect cycles.
    visited: HashSet<String>,
    total: Option<u64>,
    read: fn(&Client, &[u8], &str) -> Result<Vec<T>>,
}

impl<'a, T> Pages<'a, T> {
    pub(super) fn new(client: &'a Client, path: String, query: String, member: &'static str) -> Self
    where
        T: DeserializeOwned,
    {
        let (next, visited) = (Some(query), HashSet::new());
        Self { client, path, member, next, visited, total: None, read: Client::items }
    }

    /// Returns the total number of items, after the first page, if the server was asked to count.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Fetches the next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>> {
        let Some(query) = self.next.take() else { return Ok(None) };
        if !self.visited.insert(query.clone()) {
            return Err(self.client.foreign("the link to the next page leads back to an earlier one"));
        }
        let answer = self.client.send(&Request::new(Method::GET, format!("{}?{query}", self.path))).await?;
        self.next = next_query(&answer.headers);
        self.total = self.total.or(total(&answer.headers));
        (self.read)(self.client, &answer.body, self.member).map(Some)
    }

    /// Fetches all items.
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while let Some(page) = self.next().await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// Returns the first item for which `is_it` holds.
    pub async fn find(mut self, is_it: impl Fn(&T) -> bool) -> Result<Option<T>> {
        while let Some(page) = self.next().await? {
            if let Some(found) = page.into_iter().find(&is_it) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }
}

impl Client {
    /// Decodes the items of a list.
    pub(super) fn items<T: DeserializeOwned>(&self, body: &[u8], member: &str) -> Result<Vec<T>> {
        let members: HashMap<String, &RawValue> = self.decode(body)?;
        self.decode(members.get(member).map_or("null", |items| items.get()).as_bytes())
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
