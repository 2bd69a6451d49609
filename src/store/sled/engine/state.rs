//! The file `state`: how far the index can be trusted when the store is opened next.

use std::io;

use super::disk::{Disk, read_all, replace};
use super::options::OpenError;
use super::segment::{FORMAT, OLDEST_FORMAT};

pub(crate) const PATH: &str = "state";
/// Version of this program, recorded in the file.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Position of a frame in the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) ordinal: u64,
    pub(crate) offset: u64,
    pub(crate) sequence: u64,
}

/// Identity of an index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexIdentity {
    /// Inode and creation time, without white space.
    pub text: String,
    /// Whether copies of the file have another identity: the file system records creation times.
    pub detects_copies: bool,
}

/// How far the index can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Not at all.
    None,
    /// Until the machine reboots.
    Boot { boot: String, identity: String },
    /// Closed cleanly, with all frames up to `end` applied, and synced.
    Clean { end: Position, identity: String },
}

/// Content of the file `state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateFile {
    pub(crate) instance: [u8; 16],
    /// Ordinal of the newest segment; 0 if it is unknown because the file was lost, or there is none yet.
    pub(crate) ordinal: u64,
    /// End of the journal at the last clean stop: the journal cannot end before it.
    pub(crate) floor: Position,
    pub(crate) trust: Trust,
}

impl StateFile {
    pub(crate) fn new(instance: [u8; 16]) -> StateFile {
        StateFile { instance, ordinal: 0, floor: Position::default(), trust: Trust::None }
    }

    /// Reads the file; `None` if it is missing or damaged.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Option<StateFile>, OpenError> {
        let bytes = match disk.open(PATH).and_then(|file| read_all(&*file)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::Io { doing: "read `state`".to_owned(), source }),
        };
        let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
        StateFile::parse(&text)
    }

    /// Replaces the file atomically and durably.
    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        self.put(disk)?;
        disk.sync_folder("")
    }

    /// Replaces the file atomically. A crash of the machine leaves the new or the old one.
    pub(crate) fn put(&self, disk: &dyn Disk) -> io::Result<()> {
        replace(disk, PATH, self.encode().as_bytes())
    }

    pub(crate) fn encode(&self) -> String {
        let trust = match &self.trust {
            Trust::None => "none".to_owned(),
            Trust::Boot { boot, identity } => format!("boot {boot} {identity}"),
            Trust::Clean { end, identity } => format!("clean {} {identity}", position_text(*end)),
        };
        let instance = u128::from_be_bytes(self.instance);
        let (ordinal, floor) = (self.ordinal, position_text(self.floor));
        let format = format!("format {FORMAT}\nversion {VERSION}\n");
        let content =
            format!("{format}instance {instance:032x}\nordinal {ordinal}\nfloor {floor}\ntrust {trust}\n");
        format!("{content}checksum {:08x}\n", crc32c::crc32c(content.as_bytes()))
    }

    fn parse(text: &str) -> Result<Option<StateFile>, OpenError> {
        let Some((content, checksum)) = text.split_once("checksum ") else { return Ok(None) };
        if u32::from_str_radix(checksum.trim_end(), 16) != Ok(crc32c::crc32c(content.as_bytes())) {
            return Ok(None);
        }
        let found = field(content, "format").and_then(|format| format.parse().ok()).unwrap_or(0);
        if !(OLDEST_FORMAT..=FORMAT).contains(&found) {
            let version = field(content, "version").map(str::to_owned);
            return Err(OpenError::Format { found, ours: FORMAT, version });
        }
        Ok(StateFile::fields(content))
    }

    fn fields(content: &str) -> Option<StateFile> {
        let instance = u128::from_str_radix(field(content, "instance")?, 16).ok()?.to_be_bytes();
        let ordinal = field(content, "ordinal")?.parse().ok()?;
        let floor = position(field(content, "floor")?)?;
        let words: Vec<&str> = field(content, "trust")?.split(' ').collect();
        let trust = match words[..] {
            ["none"] => Trust::None,
            ["boot", boot, identity] => Trust::Boot { boot: boot.to_owned(), identity: identity.to_owned() },
            ["clean", end, identity] => Trust::Clean { end: position(end)?, identity: identity.to_owned() },
            _ => return None,
        };
        Some(StateFile { instance, ordinal, floor, trust })
    }
}

fn field<'a>(content: &'a str, name: &str) -> Option<&'a str> {
    content.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

fn position_text(position: Position) -> String {
    format!("{}:{}:{}", position.ordinal, position.offset, position.sequence)
}

fn position(text: &str) -> Option<Position> {
    let mut parts = text.split(':').map(str::parse);
    let mut next = || parts.next()?.ok();
    Some(Position { ordinal: next()?, offset: next()?, sequence: next()? })
}
