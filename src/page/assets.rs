//! The style and the scripts of the pages.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::domain::form::theme::Theme;

pub(super) const STYLE: &str = include_str!("templates/style.css");

/// What pages do with JavaScript.
pub const FORM_SCRIPT: &str = include_str!("templates/form.js");

/// The script of sites that embed a page: it sets the height of the frame.
pub const EMBED_SCRIPT: &str = include_str!("templates/embed.js");

static FORM_SCRIPT_NAME: LazyLock<String> = LazyLock::new(|| {
    let hash = digest(&SHA256, FORM_SCRIPT.as_bytes());
    let hash: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("form.{hash}.js")
});

pub(super) static STYLE_HASH: LazyLock<String> = LazyLock::new(|| style_hash(STYLE));

/// The name of [`FORM_SCRIPT`], which changes with its content, so that it can be cached for good.
pub fn form_script_name() -> &'static str {
    &FORM_SCRIPT_NAME
}

/// Returns the hash of a `<style>` for the content security policy.
pub fn style_hash(style: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, style.as_bytes())))
}

/// Returns the style of a form's own colours, if it has any.
pub(super) fn theme_style(theme: Option<&Theme>) -> Option<String> {
    let [light, dark] = theme?.accents()?;
    Some(format!(":root{{--accent:{light}}}@media(prefers-color-scheme:dark){{:root{{--accent:{dark}}}}}"))
}
