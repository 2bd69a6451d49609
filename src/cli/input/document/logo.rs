//! The logo of a page in form files: the name of a picture becomes a `data:` URL of its content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::Diagnostic;
use crate::cli::output::io_error::reason;
use crate::domain::form::theme::MAX_LOGO;
use crate::domain::json::Value;

const LOGO: &str = "/settings/theme/logo";

impl Document {
    /// Replaces the name of a picture, relative to the file's folder, by a `data:` URL. Reports a picture that cannot be read
    /// or is too large; then the form has no logo.
    pub(super) fn inline_logo(&mut self) -> Option<Diagnostic> {
        let name = self.value.pointer(LOGO)?.as_str().filter(|name| !name.contains(':'))?.to_owned();
        let media_type = match Path::new(&name).extension()?.to_str()? {
            "png" => "image/png",
            "webp" => "image/webp",
            "svg" => "image/svg+xml",
            _ => return None,
        };
        let mut picture = Vec::new();
        let opened = File::open(Path::new(&self.file).with_file_name(&name));
        // Up to the first byte that is too much.
        let read = opened.and_then(|file| file.take(MAX_LOGO as u64 + 1).read_to_end(&mut picture));
        let (logo, problem) = match read {
            Err(error) => (Value::Null, Some(format!("cannot read {name}: {}", reason(&error)))),
            Ok(size) if size > MAX_LOGO => {
                (Value::Null, Some(format!("{name} is larger than {} KiB", MAX_LOGO >> 10)))
            }
            Ok(_) => (Value::String(format!("data:{media_type};base64,{}", STANDARD.encode(picture))), None),
        };
        self.value.set(&["settings", "theme", "logo"], logo);
        Some(self.problem(LOGO, "invalid_logo", problem?))
    }
}
