//! Progress bars, on terminals only.

use indicatif::{ProgressBar, ProgressStyle};

use super::Output;

impl Output {
    /// Shows how many bytes have been processed, on a terminal; elsewhere and with `--quiet` nothing is shown.
    pub fn progress(&self) -> ProgressBar {
        if self.quiet || !self.stderr.is_terminal {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{spinner} {bytes}, {bytes_per_sec}");
        ProgressBar::new_spinner().with_style(style.expect("the template is valid"))
    }

    /// Shows how many of `total` items have been processed, as [`progress`](Self::progress) does.
    pub fn progress_of(&self, total: usize, unit: &str) -> ProgressBar {
        let bar = self.progress();
        let template = format!("{{bar:30}} {unit} {{human_pos}} of {{human_len}}, {{eta}} left");
        bar.set_style(ProgressStyle::with_template(&template).expect("the template is valid"));
        bar.set_length(total as u64);
        bar
    }
}
