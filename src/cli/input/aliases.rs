//! What other tools call the fields and the types of a form: words that nothing here resembles, and what they are here.

/// A word from elsewhere, the name it has here, and what belongs to it besides.
const WORDS: [(&str, &str, &str); 9] = [
    ("label", "title", ""),
    ("choices", "options", ""),
    ("dropdown", "single_choice", " with `display: dropdown`"),
    ("select", "single_choice", " with `display: dropdown`"),
    ("radio", "single_choice", ""),
    ("checkbox", "boolean", ", or `multiple_choice` for several options"),
    ("checkboxes", "multiple_choice", ""),
    ("text", "short_text", ""),
    ("textarea", "long_text", ""),
];

/// Which of the `names` is meant by `word`.
pub fn meant<'a>(word: &str, names: &'a [String]) -> Option<&'a str> {
    let (_, here, _) = WORDS.iter().find(|(elsewhere, ..)| *elsewhere == word)?;
    names.iter().map(String::as_str).find(|name| name == here)
}

/// How what is meant by `word` is written here.
pub fn help(word: &str) -> Option<String> {
    let (_, here, besides) = WORDS.iter().find(|(elsewhere, ..)| *elsewhere == word)?;
    Some(format!("here `{word}` is `{here}`{besides}"))
}
