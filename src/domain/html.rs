//! Text in HTML.

/// Returns `text` so that HTML shows it as it is, also as the value of an attribute in double quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
