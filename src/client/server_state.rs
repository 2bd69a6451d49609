//! What a server shows of itself besides the API: whether it is ready, its clock and its certificate.

use reqwest::Method;
use reqwest::header::DATE;
use serde_json::Value;

use super::exchange::Request;
use super::{Client, Result};
use crate::clock::Timestamp;

/// The state of a server when it answered.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// `ready`, or why it does not accept answers.
    pub status: String,
    /// Its clock, in whole seconds.
    pub clock: Option<Timestamp>,
    /// When its certificate expires, over HTTPS.
    pub certificate_end: Option<Timestamp>,
}

impl Client {
    /// Asks for the state of the server once, without a key.
    pub async fn server_state(&self) -> Result<ServerState> {
        let request = Request::new(Method::GET, "/readyz".to_owned());
        let answer = self.transport.send(&request, &[], self.retry_policy.timeout).await?;
        let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok());
        Ok(ServerState {
            status: self.decode::<Value>(&answer.body)?["status"].as_str().unwrap_or_default().to_owned(),
            clock: date.and_then(Timestamp::parse_http_date),
            certificate_end: answer.certificate.as_deref().and_then(certificate_end),
        })
    }
}

/// Returns the end of validity of a certificate in DER (RFC 5280 §4.1). The libraries that read all of a certificate are
/// larger than the client.
fn certificate_end(certificate: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = der_element(certificate)?;
    let (mut rest, _) = der_element(certificate)?;
    if rest.first() == Some(&0xa0) {
        rest = der_element(rest)?.1; // the version
    }
    for _serial_algorithm_issuer in 0..3 {
        rest = der_element(rest)?.1;
    }
    let (validity, _) = der_element(rest)?;
    let (_, end) = der_element(validity)?;
    let is_utc_time = end.first() == Some(&0x17);
    let text = str::from_utf8(der_element(end)?.0).ok()?;
    // A year of two digits is before 2050.
    let text = if is_utc_time { format!("20{text}") } else { text.to_owned() };
    let part = |from: usize| text.get(from..from + 2);
    let (date, time) = ((part(4)?, part(6)?), (part(8)?, part(10)?, part(12)?));
    let year = text.get(..4)?;
    Timestamp::parse(&format!("{year}-{}-{}T{}:{}:{}Z", date.0, date.1, time.0, time.1, time.2))
}

/// Splits DER into the content of its first element and what follows.
fn der_element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
