//! Texts within the limits of a service.

/// How a service measures a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Characters,
    /// Code units of UTF-16, as JavaScript counts: an emoji is two.
    Utf16,
    Bytes,
}

/// What marks a text that was cut.
const CUT: char = '…';

impl Unit {
    pub(super) fn of(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Bytes => text.len(),
        }
    }
}

/// Returns `text` with each character as `escape` writes it, given the one before; cut so that it has at most `max` units,
/// the mark of the cut included.
pub(super) fn clip(
    text: &str,
    max: usize,
    unit: Unit,
    escape: impl Fn(char, Option<char>, &mut String),
) -> String {
    let mut mark = [0; 4];
    let mark = unit.of(CUT.encode_utf8(&mut mark));
    let (mut clipped, mut size, mut before) = (String::new(), 0, None);
    // The end and the size of what leaves room for the mark.
    let mut safe_end = 0;
    for character in text.chars() {
        let start = clipped.len();
        escape(character, before, &mut clipped);
        size += unit.of(&clipped[start..]);
        if size > max {
            clipped.truncate(safe_end);
            clipped.push(CUT);
            return clipped;
        }
        if size + mark <= max {
            safe_end = clipped.len();
        }
        before = Some(character);
    }
    clipped
}

/// Writes every character as it is.
pub(super) fn verbatim(character: char, _: Option<char>, text: &mut String) {
    text.push(character);
}

/// Writes `&`, `<` and `>` as entities.
pub(super) fn entities(character: char, _: Option<char>, text: &mut String) {
    match character {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        other => text.push(other),
    }
}

/// How much of `total` each of `count` texts may have, `max` at most.
pub(super) fn share(total: usize, count: usize, max: usize) -> usize {
    (total / count.max(1)).min(max)
}

#[cfg(test)]
mod tests {
    use super::{Unit, clip, entities, verbatim};

    #[test]
    fn texts_are_cut_between_characters_with_a_mark() {
        for (text, max, unit, expected) in [
            ("abc", 3, Unit::Characters, "abc"),
            ("abcd", 3, Unit::Characters, "ab…"),
            ("😀😀😀", 4, Unit::Utf16, "😀…"),
            ("😀😀", 4, Unit::Utf16, "😀😀"),
            ("ééé", 5, Unit::Bytes, "é…"),
            ("", 0, Unit::Bytes, ""),
        ] {
            assert_eq!(clip(text, max, unit, verbatim), expected);
        }
        assert_eq!(clip("a<b<c", 8, Unit::Characters, entities), "a&lt;b…");
        assert_eq!(clip("<!channel> & co", 99, Unit::Characters, entities), "&lt;!channel&gt; &amp; co");
    }
}
