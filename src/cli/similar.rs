//! Slips of the finger: the name that was meant.

/// The name most like `written`, if one is near: at most one slip, and one more for every four characters, but most of
/// what is written as it is meant.
pub fn similar<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= 1 + length / 4 && distance * 2 < length)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let names = ["title", "type", "email", "rating", "time", "d"];
        for (written, expected) in [
            ("titel", Some("title")),
            ("tyep", Some("type")),
            ("emial", Some("email")),
            ("ratting", Some("rating")),
            ("tmie", Some("time")),
            ("d", Some("d")),
            ("slug", None),
            ("file", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(similar(written, names), expected, "{written}");
        }
    }
}
