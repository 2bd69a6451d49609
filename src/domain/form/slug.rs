//! Slugs: names that authors give their forms. Slugs never contain `_`, which every id has.

const MAX: usize = 64;

/// Whether `text` is a valid slug: words of lower-case letters and digits, joined by hyphens.
pub fn is_slug(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= MAX && text.split('-').all(is_word)
}
