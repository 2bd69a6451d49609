//! Writes mail into a folder instead of sending it, for development and tests.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::fs::OFlags;
use tokio::task::spawn_blocking;

use super::Mailer;
use super::message::{self, clean_id};
use crate::delivery::report;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::integration::outbound::MailMessage;
use crate::domain::integration::smtp::MailFrom;

/// A folder with a file `<id>.eml` for each message.
#[derive(Debug, Clone)]
pub struct MailFolder {
    path: PathBuf,
    from: MailFrom,
}

impl MailFolder {
    /// Creates a mailer for the folder `path`, which is made if it is missing.
    pub fn new(path: PathBuf, from: MailFrom) -> Self {
        Self { path, from }
    }
}

#[async_trait]
impl Mailer for MailFolder {
    async fn send(&self, message: &MailMessage) -> SendReport {
        let mail = match message::build(message, &self.from) {
            Ok(mail) => mail,
            Err(outcome) => return outcome.into(),
        };
        let (folder, id) = (self.path.clone(), clean_id(&message.id));
        report::of_writing(spawn_blocking(move || write(&folder, &id, &mail.bytes)).await)
    }
}

/// Writes the file `<id>.eml`; a reader never finds a part of it.
fn write(folder: &Path, id: &str, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(format!(".{id}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    // A symbolic link planted there must not redirect the mail.
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&draft)?;
    file.write_all(bytes)?;
    fs::rename(&draft, folder.join(format!("{id}.eml")))
}
