//! The style and the scripts of the pages.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::domain::form::theme::Theme;

pub(super) const STYLE: &str = include_str!("templates/style.css");

/// A script of the pages.
pub struct Script {
    /// Its name, which changes with its text, so that it can be cached for good.
    pub name: String,
    pub text: String,
}

/// The script of pages without conditions and steps.
pub static FORM_SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("templates/form.js")]));

/// The script of forms with conditions or steps; includes [`FORM_SCRIPT`].
pub static LOGIC_SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("templates/logic.js"), include_str!("templates/form.js")]));

impl Script {
    /// Joins the `parts`, without comments and indentation.
    fn new(parts: &[&str]) -> Self {
        let lines = parts.iter().flat_map(|part| part.lines()).map(str::trim);
        let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect();
        let text = format!("(() => {{\n\"use strict\";\n{}\n}})();\n", lines.join("\n"));
        let hash = digest(&SHA256, text.as_bytes());
        let hash: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: format!("form.{hash}.js"), text }
    }
}

/// The script of sites that embed a page: it sets the height of the frame.
pub const EMBED_SCRIPT: &str = include_str!("templates/embed.js");

pub(super) static STYLE_HASH: LazyLock<String> = LazyLock::new(|| style_hash(STYLE));

/// Returns the hash of a `<style>` for the content security policy.
pub(super) fn style_hash(style: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, style.as_bytes())))
}

/// Returns the style of a form's own colours, if it has any.
pub(super) fn theme_style(theme: Option<&Theme>) -> Option<String> {
    let [light, dark] = theme?.accents()?;
    Some(format!(":root{{--accent:{light}}}@media(prefers-color-scheme:dark){{:root{{--accent:{dark}}}}}"))
}
