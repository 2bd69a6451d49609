//! Charts made of block characters.

use console::{measure_text_width, truncate_str};

use crate::cli::output::visible;

/// Draws `share`, from 0 to 1, as a bar in a cell of `width` columns; anything above 0 can be seen.
pub fn bar(share: f64, width: usize) -> String {
    const ENDS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = ((share * 8.0 * width as f64).round() as usize).max(usize::from(share > 0.0));
    cell(&("█".repeat(eighths / 8) + ENDS[eighths % 8]), width)
}

/// Draws a column for each count; one of 0 is empty.
pub fn sparkline(counts: impl Iterator<Item = u64> + Clone) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.clone().max().unwrap_or_default() as f64;
    let level = |count| if count == 0 { ' ' } else { LEVELS[(count as f64 / most * 7.0).round() as usize] };
    counts.map(level).collect()
}

/// Returns `text` with control characters escaped, cut to `width` columns or filled up to them.
pub fn cell(text: &str, width: usize) -> String {
    let text = visible(text);
    let cut = truncate_str(&text, width, "…");
    format!("{cut}{}", " ".repeat(width.saturating_sub(measure_text_width(&cut))))
}
