//! Cursors: a position in a list, signed together with the list it belongs to.

use ring::hmac;

/// Signs positions and takes back only its own.
pub struct Cursors {
    key: hmac::Key,
}

impl Cursors {
    /// Bytes of the signature: enough that guessing one is hopeless for what it guards, a place in one's own list.
    const TAG: usize = 8;

    /// Signs with `key`.
    pub fn new(key: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }

    /// The text of `position` in the list that `list` names.
    pub fn write(&self, list: &str, position: &[u8]) -> String {
        let tag = self.sign(list, position);
        position.iter().chain(&tag).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The position that `text` gives in the list that `list` names; `None` for any other text.
    pub fn read(&self, list: &str, text: &str) -> Option<Vec<u8>> {
        let mut position = from_hex(text)?;
        let tag = position.split_off(position.len().checked_sub(Self::TAG)?);
        (self.sign(list, &position) == *tag).then_some(position)
    }

    /// The same, of a position that is a number.
    pub fn read_number(&self, list: &str, text: &str) -> Option<u32> {
        self.read(list, text)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn sign(&self, list: &str, position: &[u8]) -> [u8; Self::TAG] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(list.as_bytes());
        context.update(&[0]);
        context.update(position);
        context.sign().as_ref()[..Self::TAG].try_into().expect("an HMAC-SHA-256 has 32 bytes")
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
        let cursors = Cursors::new(&[7; 32]);
        let text = cursors.write("submissions of a", b"position");
        assert_eq!(cursors.read("submissions of a", &text).unwrap(), b"position");
        assert_eq!(cursors.read("submissions of b", &text), None);
        assert_eq!(Cursors::new(&[8; 32]).read("submissions of a", &text), None);
        for bad in ["", "zz", "00", &text[1..], &text[2..], &format!("{text}00"), "é"] {
            assert_eq!(cursors.read("submissions of a", bad), None, "{bad}");
        }
    }
}
