//! Names that other tools use for fields and question types, for "did you mean" hints.

/// Foreign name, own name, and an additional remark.
const ALIASES: [(&str, &str, &str); 9] = [
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

/// Returns the one of `names` that the foreign name `word` corresponds to, and a hint.
pub fn resolve<'a>(word: &str, names: &'a [String]) -> Option<(&'a str, String)> {
    let (_, own, remark) = ALIASES.iter().find(|(alias, ..)| *alias == word)?;
    let name = names.iter().find(|name| name == own)?;
    Some((name, format!("here `{word}` is `{own}`{remark}")))
}
