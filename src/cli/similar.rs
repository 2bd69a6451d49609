//! Slips of the finger: the name that was meant.

/// The name most like `written`, if one is near: at most one slip, and one more for every four characters.
pub fn similar<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + written.chars().count() / 4;
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let names = ["title", "type", "email", "rating"];
        for (written, expected) in [
            ("titel", Some("title")),
            ("tipe", Some("type")),
            ("emial", Some("email")),
            ("ratting", Some("rating")),
            ("slug", None),
            ("", None),
        ] {
            assert_eq!(similar(written, names), expected, "{written}");
        }
    }
}
