//! Compression of responses, on request only: clients that do not ask for it pay nothing.

use std::io::{self, Write};

use axum::http::HeaderValue;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Higher levels cost several times as much and gain little.
const ZSTD_LEVEL: i32 = 1;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zstd,
}

impl Encoding {
    /// Returns the name in `Content-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the encoding that `accepted`, the value of `Accept-Encoding`, prefers. `None` is no encoding, even if the
    /// client excluded that too: an operation already carried out is not refused afterwards.
    pub(crate) fn preferred(accepted: &HeaderValue) -> Option<Self> {
        let listed = accepted.to_str().unwrap_or_default().split(',').filter_map(|item| {
            let mut parts = item.split(';').map(str::trim);
            let encoding = match parts.next()?.to_ascii_lowercase().as_str() {
                "identity" => None,
                "gzip" | "x-gzip" => Some(Self::Gzip),
                "zstd" => Some(Self::Zstd),
                _ => return None,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let weight = weight.map_or(Some(1.0), |weight| weight.parse::<f32>().ok())?;
            (weight > 0.0).then_some((weight, encoding))
        });
        // Of equal weights the cheapest encoding, which is the last variant.
        let rank = |encoding: Option<Self>| encoding.map(|encoding| encoding as u8);
        listed.max_by(|a, b| a.0.total_cmp(&b.0).then(rank(a.1).cmp(&rank(b.1))))?.1
    }

    /// Compresses `bytes`.
    pub(crate) fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        }
    }
}
