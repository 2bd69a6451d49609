//! Encoding of rows in the index: with checksums, large bodies split into pieces.
//!
//! ```text
//! whole   body                                         0   CRC-32C
//! head    length u64, checksum u32, revision u64       1   CRC-32C
//! piece   at most 4096 bytes of the body               2   CRC-32C
//! ```
//! The checksum covers key, content and kind. The key of a piece is `P`, the key of the row, the revision and the
//! number of the piece. The revision is the sequence of the frame that wrote the body, so that pieces of old and new
//! bodies never mix.

use super::frame::{u32_at, u64_at};
use super::index::{Index, IndexError};
use crate::store::{Result, StoreError};

/// Maximum bytes of a body in one cell: sled handles large values badly.
pub(crate) const PIECE_BYTES: usize = 4096;
const TRAILER: usize = 5;

/// A decoded cell; its checksum is valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Whole(Vec<u8>),
    Head(Head),
    Piece(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: u64,
    pub(crate) checksum: u32,
    pub(crate) revision: u64,
}

impl Head {
    pub(crate) fn of(body: &[u8], revision: u64) -> Head {
        Head { length: body.len() as u64, checksum: crc32c::crc32c(body), revision }
    }

    pub(crate) fn encode(&self, key: &[u8]) -> Vec<u8> {
        let mut content = Vec::with_capacity(20 + TRAILER);
        content.extend_from_slice(&self.length.to_be_bytes());
        content.extend_from_slice(&self.checksum.to_be_bytes());
        content.extend_from_slice(&self.revision.to_be_bytes());
        encode_cell(key, content, 1)
    }

    fn decode(content: &[u8]) -> Option<Head> {
        let is_valid = content.len() == 20;
        is_valid.then(|| Head {
            length: u64_at(content, 0),
            checksum: u32_at(content, 8),
            revision: u64_at(content, 12),
        })
    }

    /// Returns the keys of the pieces, in the order of the body.
    pub(crate) fn piece_keys(self, key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let pieces = self.length.div_ceil(PIECE_BYTES as u64);
        (0..u32::try_from(pieces).unwrap_or(u32::MAX)).map(move |piece| {
            let mut whole = Vec::with_capacity(key.len() + 13);
            whole.push(b'P');
            whole.extend_from_slice(key);
            whole.extend_from_slice(&self.revision.to_be_bytes());
            whole.extend_from_slice(&piece.to_be_bytes());
            whole
        })
    }
}

/// Returns the cell of a body that needs no pieces.
pub(crate) fn whole(key: &[u8], body: Vec<u8>) -> Vec<u8> {
    encode_cell(key, body, 0)
}

/// Returns the number of cells of a row, its head included; one for a damaged row.
pub(crate) fn cell_count(key: &[u8], cell: Vec<u8>) -> usize {
    match decode(key, cell) {
        Some(Cell::Head(head)) => {
            1 + usize::try_from(head.length.div_ceil(PIECE_BYTES as u64)).unwrap_or(usize::MAX - 1)
        }
        Some(Cell::Whole(_) | Cell::Piece(_)) | None => 1,
    }
}

pub(crate) fn piece(key: &[u8], part: &[u8]) -> Vec<u8> {
    encode_cell(key, part.to_vec(), 2)
}

fn encode_cell(key: &[u8], mut content: Vec<u8>, kind: u8) -> Vec<u8> {
    content.reserve_exact(TRAILER);
    content.push(kind);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(key), &content);
    content.extend_from_slice(&checksum.to_be_bytes());
    content
}

/// Whether the checksum of a cell is valid for its key.
pub(crate) fn is_intact(key: &[u8], cell: &[u8]) -> bool {
    let Some((content, checksum)) = cell.split_last_chunk::<4>() else { return false };
    crc32c::crc32c_append(crc32c::crc32c(key), content) == u32::from_be_bytes(*checksum)
}

/// Decodes a cell; `None` if its checksum is not valid for its key.
pub(crate) fn decode(key: &[u8], mut cell: Vec<u8>) -> Option<Cell> {
    let end = cell.len().checked_sub(TRAILER)?;
    if !is_intact(key, &cell) {
        return None;
    }
    let kind = cell[end];
    cell.truncate(end);
    match kind {
        0 => Some(Cell::Whole(cell)),
        1 => Head::decode(&cell).map(Cell::Head),
        2 => Some(Cell::Piece(cell)),
        _ => None,
    }
}

pub(crate) fn read(index: &dyn Index, key: &[u8]) -> Result<Option<Vec<u8>>> {
    match get(index, key)? {
        Some(cell) => resolve(index, key, cell),
        None => Ok(None),
    }
}

/// Returns the body of a stored cell, or `None` if the row has been deleted meanwhile.
pub(crate) fn resolve(index: &dyn Index, key: &[u8], cell: Vec<u8>) -> Result<Option<Vec<u8>>> {
    let mut known = decode(key, cell);
    loop {
        let head = match known {
            Some(Cell::Whole(body)) => return Ok(Some(body)),
            Some(Cell::Head(head)) => head,
            Some(Cell::Piece(_)) | None => return Err(damaged(key)),
        };
        if let Some(body) = join(index, key, head)? {
            return Ok(Some(body));
        }
        // Pieces are deleted after their head has changed: while the head is the same, they must exist.
        let Some(cell) = get(index, key)? else { return Ok(None) };
        known = decode(key, cell).filter(|cell| *cell != Cell::Head(head));
    }
}

fn join(index: &dyn Index, key: &[u8], head: Head) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::with_capacity(usize::try_from(head.length).unwrap_or(0));
    for piece_key in head.piece_keys(key) {
        let Some(cell) = get(index, &piece_key)? else { return Ok(None) };
        let Some(Cell::Piece(part)) = decode(&piece_key, cell) else { return Err(damaged(key)) };
        body.extend_from_slice(&part);
    }
    let is_valid = body.len() as u64 == head.length && crc32c::crc32c(&body) == head.checksum;
    Ok(is_valid.then_some(body))
}

/// Reads a cell. A failing index counts as damaged, unless the disk is full.
pub(crate) fn get(index: &dyn Index, key: &[u8]) -> Result<Option<Vec<u8>>> {
    index.get(key).map_err(unreadable)
}

pub(crate) fn unreadable(error: IndexError) -> StoreError {
    match error {
        IndexError::NoSpace => StoreError::Full,
        IndexError::Locked | IndexError::Failed(_) => StoreError::Damaged(error.to_string()),
    }
}

pub(crate) fn damaged(key: &[u8]) -> StoreError {
    StoreError::Damaged(format!("the row under `{}`", key.escape_ascii()))
}
