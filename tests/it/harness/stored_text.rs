//! Search of the files of a store for a text.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::DeflateDecoder;

/// Whether a file in a folder has `text`, compressed ones too.
pub(crate) fn has_text(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has_text(&path, text);
        }
        contains(path.to_str().unwrap(), &fs::read(&path).unwrap(), text.as_bytes())
    })
}

/// Whether the content of the file `name` has `text`.
pub(crate) fn contains(name: &str, content: &[u8], text: &[u8]) -> bool {
    let rows = if name.ends_with(".base") { rows_of(content) } else { Vec::new() };
    let mut both = content.windows(text.len()).chain(rows.windows(text.len()));
    both.any(|found| found == text)
}

/// The rows in the blocks of a base.
fn rows_of(base: &[u8]) -> Vec<u8> {
    let (mut rows, mut rest) = (Vec::new(), &base[512..]);
    while let Some((head, blocks)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes(*head.first_chunk().unwrap()) as usize;
        DeflateDecoder::new(&blocks[..length]).read_to_end(&mut rows).unwrap();
        rest = &blocks[length..];
    }
    rows
}
