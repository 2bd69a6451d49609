//! Charts made of block characters, which every terminal has.

use console::{measure_text_width, truncate_str};

use crate::cli::output::visible;

const BLOCKS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws `part` of `whole` as a bar of at most `width` columns; whatever is above nothing can be seen.
pub fn bar(part: f64, whole: f64, width: usize) -> String {
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * (width * 8) as f64).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let end = (eighths % 8).checked_sub(1).map(|last| BLOCKS[last]);
    BLOCKS[7..].iter().copied().cycle().take(eighths / 8).chain(end).collect()
}

/// Draws a column for each count; one without any is empty.
pub fn sparkline(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let level = |count: &u64| match count {
        0 => ' ',
        count => LEVELS[((*count as f64 / most as f64) * 7.0).round() as usize],
    };
    counts.iter().map(level).collect()
}

/// Returns `text` with control characters escaped, cut to `width` columns or filled up to them.
pub fn cell(text: &str, width: usize) -> String {
    let text = visible(text);
    let cut = truncate_str(&text, width, "…");
    let gap = width.saturating_sub(measure_text_width(&cut));
    format!("{cut}{}", " ".repeat(gap))
}
