//! Slugs: names that authors give their forms. Slugs never contain `_`, which every id has.

/// Maximum characters of a slug.
const MAX: usize = 64;

/// Whether `text` is a valid slug: words of lower-case letters and digits, joined by hyphens.
pub fn is_slug(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= MAX && text.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::is_slug;

    #[test]
    fn a_slug_is_words_joined_by_hyphens() {
        for good in ["a", "0", "customer-feedback", "a-1-b", &"x".repeat(64)] {
            assert!(is_slug(good), "{good}");
        }
        let bad =
            ["", "-", "a-", "-a", "a--b", "A", "a_b", "a b", "\u{e9}", "frm_000000000000", &"x".repeat(65)];
        for bad in bad {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
