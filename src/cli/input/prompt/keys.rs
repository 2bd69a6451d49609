//! Decoding of terminal input into keys.
//!
//! `console` has a decoder too, but it takes the end of an unknown escape sequence for typed text, reads bytes that are
//! not UTF-8 as Latin-1, and cannot be cancelled while it waits.

use std::io::{self, PipeReader};
use std::sync::atomic::{AtomicBool, Ordering};

use console::Key;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

const CTRL_C: u8 = 3;
const ESCAPE: u8 = 0x1b;

/// Maximum delay within an escape sequence; after it, Escape is a key of its own.
const ESCAPE_DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Whether the last byte was a carriage return: a line feed after it belongs to the same Enter, even if the carriage
/// return ended the previous prompt.
static AFTER_RETURN: AtomicBool = AtomicBool::new(false);

/// A source of bytes.
trait Bytes {
    /// Returns the next byte; Ctrl-C at the end of the input.
    fn next(&mut self) -> io::Result<u8>;

    /// Whether a byte is available now or shortly.
    fn has_next(&mut self) -> io::Result<bool>;

    /// Pushes `byte` back, to be read next.
    fn put_back(&mut self, byte: u8);
}

/// The keyboard of the terminal at stdin.
pub(super) struct Keyboard {
    /// Closed when the prompt is cancelled from outside: from then on each key is Ctrl-C.
    cancelled: PipeReader,
    put_back: Option<u8>,
}

impl Keyboard {
    pub(super) fn new(cancelled: PipeReader) -> Self {
        Self { cancelled, put_back: None }
    }

    /// Waits for the next key.
    pub(super) fn key(&mut self) -> io::Result<Key> {
        decode(self)
    }

    /// Whether more input is available, as in the middle of a paste.
    pub(super) fn has_pending(&self) -> io::Result<bool> {
        self.is_ready_within(&Timespec::default())
    }

    fn is_ready_within(&self, delay: &Timespec) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut sources = [PollFd::new(&stdin, PollFlags::IN)];
        Ok(self.put_back.is_some() || retry_on_intr(|| poll(&mut sources, Some(delay)))? > 0)
    }

    /// Waits for a byte from the terminal.
    fn read(&self) -> io::Result<u8> {
        let stdin = io::stdin();
        let mut sources = [PollFd::new(&self.cancelled, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        retry_on_intr(|| poll(&mut sources, None))?;
        let mut byte = [CTRL_C];
        if sources[0].revents().is_empty() {
            retry_on_intr(|| rustix::io::read(&stdin, &mut byte))?;
        }
        Ok(byte[0])
    }
}

impl Bytes for Keyboard {
    fn next(&mut self) -> io::Result<u8> {
        if let Some(byte) = self.put_back.take() {
            return Ok(byte);
        }
        loop {
            let byte = self.read()?;
            let after_return = AFTER_RETURN.swap(byte == b'\r', Ordering::Relaxed);
            if byte != b'\n' || !after_return {
                return Ok(byte);
            }
        }
    }

    fn has_next(&mut self) -> io::Result<bool> {
        self.is_ready_within(&ESCAPE_DELAY)
    }

    fn put_back(&mut self, byte: u8) {
        self.put_back = Some(byte);
    }
}

/// Reads a key; [`Key::Unknown`] if it has no meaning here.
fn decode(bytes: &mut impl Bytes) -> io::Result<Key> {
    Ok(match bytes.next()? {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        1 => Key::Home,
        CTRL_C => Key::CtrlC,
        5 => Key::End,
        8 | 0x7f => Key::Backspace,
        ESCAPE => escape(bytes)?,
        ascii @ ..=0x7f => Key::Char(char::from(ascii)),
        first => character(first, bytes)?,
    })
}

/// Reads the rest of a character in UTF-8 that begins with `first`.
fn character(first: u8, bytes: &mut impl Bytes) -> io::Result<Key> {
    let mut read = vec![first];
    loop {
        match std::str::from_utf8(&read) {
            Ok(text) => return Ok(text.chars().next().map_or(Key::Unknown, Key::Char)),
            Err(error) if error.error_len().is_none() => read.push(bytes.next()?),
            Err(_) => break,
        }
    }
    // The byte that does not continue the character may be a key of its own.
    read.drain(1..).next_back().into_iter().for_each(|byte| bytes.put_back(byte));
    Ok(Key::Unknown)
}

/// Reads the rest of an escape sequence.
fn escape(bytes: &mut impl Bytes) -> io::Result<Key> {
    while bytes.has_next()? {
        match bytes.next()? {
            ESCAPE => {}
            b'[' => return sequence(bytes),
            b'O' => return Ok(named(b"", bytes.next()?)),
            _ => return Ok(Key::Unknown),
        }
    }
    Ok(Key::Escape)
}

/// Reads a control sequence (ECMA-48 §5.4) to its end. The markers of a bracketed paste are such sequences: they are
/// unknown keys, and the text between them is typed text.
fn sequence(bytes: &mut impl Bytes) -> io::Result<Key> {
    let mut parameters = Vec::new();
    loop {
        match bytes.next()? {
            byte @ 0x20..=0x3f => parameters.push(byte),
            end @ 0x40..=0x7e => return Ok(named(&parameters, end)),
            other => {
                bytes.put_back(other);
                return Ok(Key::Unknown);
            }
        }
    }
}

/// Returns the key of a control sequence.
fn named(parameters: &[u8], end: u8) -> Key {
    match (parameters, end) {
        (b"", b'A') => Key::ArrowUp,
        (b"", b'B') => Key::ArrowDown,
        (b"", b'C') => Key::ArrowRight,
        (b"", b'D') => Key::ArrowLeft,
        (b"", b'Z') => Key::BackTab,
        (b"", b'H') | (b"1" | b"7", b'~') => Key::Home,
        (b"", b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"3", b'~') => Key::Del,
        _ => Key::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;

    use console::Key;

    use super::{Bytes, CTRL_C, decode};

    impl Bytes for VecDeque<u8> {
        fn next(&mut self) -> io::Result<u8> {
            Ok(self.pop_front().unwrap_or(CTRL_C))
        }

        fn has_next(&mut self) -> io::Result<bool> {
            Ok(!self.is_empty())
        }

        fn put_back(&mut self, byte: u8) {
            self.push_front(byte);
        }
    }

    /// Decodes `bytes`, without the Ctrl-C at the end and unknown keys.
    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut bytes = VecDeque::from(bytes.to_vec());
        let keys = std::iter::repeat_with(|| decode(&mut bytes).unwrap());
        keys.take_while(|key| *key != Key::CtrlC).filter(|key| *key != Key::Unknown).collect()
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_are_decoded() {
        for (bytes, expected) in [
            (&b"\r"[..], vec![Key::Enter]),
            (b"\n", vec![Key::Enter]),
            (b"\x1b", vec![Key::Escape]),
            (b"\x1b\x1b", vec![Key::Escape]),
            (b"\x1b[A\x1bOA", vec![Key::ArrowUp, Key::ArrowUp]),
            (b"\x1b[B\x1b[C\x1b[D", vec![Key::ArrowDown, Key::ArrowRight, Key::ArrowLeft]),
            (b"\x1b[H\x1b[1~\x01", vec![Key::Home; 3]),
            (b"\x1b[F\x1b[4~\x05", vec![Key::End; 3]),
            (b"\x1b[3~\x1b[Z\t", vec![Key::Del, Key::BackTab, Key::Tab]),
            (b"\x08\x7f", vec![Key::Backspace; 2]),
            ("aé日🎉".as_bytes(), typed("aé日🎉")),
        ] {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_are_ignored_to_their_end() {
        for bytes in [
            &b"a\x1b[1;5Db"[..],
            b"\x1b[200~ab\x1b[201~",
            b"a\x1b[15~b\x1b[<0;1;1M",
            b"a\x1bxb",
            b"a\x1b\x1b[1;3Db",
        ] {
            assert_eq!(keys(bytes), typed("ab"), "{bytes:?}");
        }
        assert_eq!(keys(b"\x1b[1;\x1b[D"), [Key::ArrowLeft]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_ignored() {
        for bytes in [&b"a\xe9b"[..], b"a\xffb", b"a\x80b", b"a\xe2\x82b", b"a\xc0\xafb", b"a\xf0\x9f\x8eb"] {
            assert_eq!(keys(bytes), typed("ab"), "{bytes:?}");
        }
        assert_eq!(keys(b"caf\xe9\r"), [typed("caf"), vec![Key::Enter]].concat());
    }
}
