//! The logo of a page in form files: the name of a picture becomes a `data:` URL of its content.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::input::document::Document;
use crate::cli::output::diagnostics::Diagnostic;
use crate::cli::output::io_error::reason;
use crate::domain::form::theme::MAX_LOGO;
use crate::domain::json::Value;

impl Document {
    /// Replaces the name of a picture, relative to the file's folder, by a `data:` URL. Reports a picture that cannot be read
    /// or is too large; then the form has no logo.
    pub(super) fn inline_logo(&mut self) -> Option<Diagnostic> {
        let path = |name: &str| Path::new(&self.file).with_file_name(name);
        let name = self.value.pointer("/settings/theme/logo")?.as_str()?.to_owned();
        let (media_type, read) = (media_type(&name)?, read(&path(&name)));
        let (logo, problem) = match read {
            Ok(picture) if picture.len() <= MAX_LOGO => {
                (Value::String(format!("data:{media_type};base64,{}", STANDARD.encode(picture))), None)
            }
            Ok(_) => (Value::Null, Some(format!("{name} is larger than {} KiB", MAX_LOGO >> 10))),
            Err(error) => (Value::Null, Some(format!("cannot read {name}: {}", reason(&error)))),
        };
        self.value.set(&["settings", "theme", "logo"], logo);
        let problem = self.problem("/settings/theme/logo", "invalid_logo", problem?);
        Some(
            problem.help(Some("name a PNG, WebP or SVG of at most 16 KiB, relative to this file".to_owned())),
        )
    }
}

/// Returns the media type of the picture `name`; `None` if it is not the name of one.
fn media_type(name: &str) -> Option<&'static str> {
    if name.contains(':') {
        return None;
    }
    match Path::new(name).extension()?.to_str()? {
        "png" => Some("image/png"),
        "webp" => Some("image/webp"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// Reads the picture at `path`, up to the first byte that is too much.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut picture = Vec::new();
    File::open(path)?.take(MAX_LOGO as u64 + 1).read_to_end(&mut picture)?;
    Ok(picture)
}
