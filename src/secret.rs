//! Secrets: values that do not show themselves, and the text of API keys.

use std::fmt;
use std::str::FromStr;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::id::{Random, text_form};

/// A value that neither `Debug` nor a log shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one place that sends or stores it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl Secret<String> {
    /// The beginning of its SHA-256 in hexadecimal, which tells it from other long secrets and does not reveal it.
    pub fn digest(&self) -> String {
        let hash = digest::digest(&digest::SHA256, self.0.as_bytes());
        hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandomness;

impl Random for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        SystemRandom::new().fill(bytes).expect("the system's random generator works");
    }
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The public part of an API key: 8 base62 characters, written `key_` and those.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// The id of zeros, which no key has.
    pub const ZERO: Self = Self(*b"00000000");

    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    /// Decodes an id from its binary form; `None` if it is not valid.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Self(bytes))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key_{}", std::str::from_utf8(&self.0).map_err(|_unfit| fmt::Error)?)
    }
}

impl FromStr for KeyId {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let bytes = text.strip_prefix("key_").ok_or(ParseKeyError)?.as_bytes();
        let id: [u8; 8] = bytes.try_into().map_err(|_unfit| ParseKeyError)?;
        Self::from_bytes(id).ok_or(ParseKeyError)
    }
}

text_form!(KeyId);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API key")]
pub struct ParseKeyError;

/// The text of an API key: `fk_`, its 8-character id, 30 secret characters (178 bits), and 6 that hold the CRC-32 of
/// all before them, so that a mistyped key is known without asking the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyText(Secret<String>);

impl KeyText {
    const LENGTH: usize = 3 + 8 + 30 + 6;

    pub fn draw(random: &dyn Random) -> Self {
        let mut text = String::with_capacity(Self::LENGTH);
        text.push_str("fk_");
        while text.len() < Self::LENGTH - 6 {
            let mut byte = [0];
            random.fill(&mut byte);
            // 248 is the largest multiple of 62 in a byte: beyond it some characters would be likelier.
            if byte[0] < 248 {
                text.push(char::from(BASE62[usize::from(byte[0]) % 62]));
            }
        }
        text.extend(checksum(&text).map(char::from));
        Self(Secret::new(text))
    }

    pub fn id(&self) -> KeyId {
        let id = self.0.reveal().as_bytes()[3..11].try_into();
        KeyId(id.expect("a key has 8 bytes of id"))
    }

    /// SHA-256 of the whole text: what the store keeps.
    pub fn hash(&self) -> [u8; 32] {
        let hash = digest::digest(&digest::SHA256, self.0.reveal().as_bytes());
        hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Whether this is the key with the hash `hash`; takes the same time wherever they differ.
    pub fn matches(&self, hash: &[u8; 32]) -> bool {
        self.hash().ct_eq(hash).into()
    }

    /// The text, for the one place that sends or stores it.
    pub fn reveal(&self) -> &str {
        self.0.reveal()
    }
}

impl FromStr for KeyText {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let plain = text.len() == Self::LENGTH
            && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        let body = text.strip_prefix("fk_").filter(|_| plain).ok_or(ParseKeyError)?;
        let (start, sum) = text.split_at(Self::LENGTH - 6);
        if body.contains('_') || checksum(start) != sum.as_bytes() {
            return Err(ParseKeyError);
        }
        Ok(Self(Secret::new(text.to_owned())))
    }
}

/// CRC-32 (ISO-HDLC) of `text` in six base62 digits.
fn checksum(text: &str) -> [u8; 6] {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}
