//! Cursors: a position in a list, signed together with the list it belongs to.

use ring::hmac;

use super::AppError;

/// Signs positions in one list and takes back only its own.
pub(super) struct Cursors {
    key: hmac::Key,
    /// Name of the list, filters included.
    list: String,
}

impl Cursors {
    /// Bytes of the signature: enough that guessing one is hopeless for what it guards, a place in one's own list.
    const TAG_LENGTH: usize = 8;

    /// Signs positions in `list` with `key`.
    pub(super) fn new(key: &[u8; 32], list: String) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), list }
    }

    /// The cursor of `position`.
    pub(super) fn write(&self, position: &[u8]) -> String {
        let tag = self.sign(position);
        position.iter().chain(&tag).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The position that `cursor` gives, if there is one.
    ///
    /// # Errors
    /// [`AppError::InvalidCursor`] if it was not given for this list.
    pub(super) fn read<const N: usize>(&self, cursor: Option<&str>) -> Result<Option<[u8; N]>, AppError> {
        cursor.map(|text| self.position(text).ok_or(AppError::InvalidCursor)).transpose()
    }

    fn position<const N: usize>(&self, text: &str) -> Option<[u8; N]> {
        let mut position = from_hex(text)?;
        let tag = position.split_off(position.len().checked_sub(Self::TAG_LENGTH)?);
        if self.sign(&position) == *tag { position.try_into().ok() } else { None }
    }

    fn sign(&self, position: &[u8]) -> [u8; Self::TAG_LENGTH] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(self.list.as_bytes());
        context.update(&[0]);
        context.update(position);
        context.sign().as_ref()[..Self::TAG_LENGTH].try_into().expect("an HMAC-SHA-256 has 32 bytes")
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::Cursors;

    #[test]
    fn a_cursor_serves_its_own_list_only() {
        let cursors = |key, list: &str| Cursors::new(&[key; 32], list.to_owned());
        let own = cursors(7, "submissions of a");
        let text = own.write(b"position");
        assert_eq!(own.position(&text), Some(*b"position"));
        assert_eq!(own.position::<7>(&text), None);
        for other in [cursors(7, "submissions of b"), cursors(8, "submissions of a")] {
            assert_eq!(other.position::<8>(&text), None);
        }
        for bad in ["", "zz", "00", &text[1..], &text[2..], &format!("{text}00"), "é"] {
            assert_eq!(own.position::<8>(bad), None, "{bad}");
        }
    }
}
