//! Decoding of terminal input into keys.
//!
//! `console` has a decoder too, but it takes the end of an unknown escape sequence for typed text, reads bytes that are
//! not UTF-8 as Latin-1, and cannot be canceled while it waits.

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

/// The keyboard of the terminal at stdin.
pub(super) struct Keyboard {
    /// Closed when the prompt is canceled from outside: from then on each key is Ctrl-C.
    canceled: PipeReader,
    /// A byte to be read again.
    put_back: Option<u8>,
}

impl Keyboard {
    pub(super) fn new(canceled: PipeReader) -> Self {
        Self { canceled, put_back: None }
    }

    /// Waits for the next key; [`Key::Unknown`] if it has no meaning here.
    pub(super) fn key(&mut self) -> io::Result<Key> {
        Ok(match self.next_byte()? {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            1 => Key::Home,
            CTRL_C => Key::CtrlC,
            5 => Key::End,
            8 | 0x7f => Key::Backspace,
            ESCAPE => self.escape()?,
            ascii @ ..=0x7f => Key::Char(char::from(ascii)),
            first => self.character(first)?,
        })
    }

    /// Whether input is available within `delay`; with no delay, whether a paste goes on.
    pub(super) fn has_input(&self, delay: Timespec) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut sources = [PollFd::new(&stdin, PollFlags::IN)];
        Ok(self.put_back.is_some() || retry_on_intr(|| poll(&mut sources, Some(&delay)))? > 0)
    }

    fn next_byte(&mut self) -> io::Result<u8> {
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

    /// Waits for a byte from the terminal; Ctrl-C at the end of the input.
    fn read(&self) -> io::Result<u8> {
        let stdin = io::stdin();
        let mut sources = [PollFd::new(&self.canceled, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        retry_on_intr(|| poll(&mut sources, None))?;
        let mut byte = [CTRL_C];
        if sources[0].revents().is_empty() {
            retry_on_intr(|| rustix::io::read(&stdin, &mut byte))?;
        }
        Ok(byte[0])
    }

    /// Reads the rest of a character in UTF-8 that begins with `first`.
    fn character(&mut self, first: u8) -> io::Result<Key> {
        let mut read = vec![first];
        loop {
            match std::str::from_utf8(&read) {
                Ok(text) => return Ok(text.chars().next().map_or(Key::Unknown, Key::Char)),
                Err(error) if error.error_len().is_none() => read.push(self.next_byte()?),
                Err(_) => break,
            }
        }
        // The byte that does not continue the character may be a key of its own.
        self.put_back = read.drain(1..).next_back();
        Ok(Key::Unknown)
    }

    /// Reads the rest of an escape sequence.
    fn escape(&mut self) -> io::Result<Key> {
        while self.has_input(ESCAPE_DELAY)? {
            match self.next_byte()? {
                ESCAPE => {}
                b'[' => return self.sequence(),
                b'O' => return Ok(named(b"", self.next_byte()?)),
                _ => return Ok(Key::Unknown),
            }
        }
        Ok(Key::Escape)
    }

    /// Reads a control sequence (ECMA-48 §5.4) to its end. The markers of a bracketed paste are such sequences: they are
    /// unknown keys, and the text between them is typed text.
    fn sequence(&mut self) -> io::Result<Key> {
        let mut parameters = Vec::new();
        loop {
            match self.next_byte()? {
                byte @ 0x20..=0x3f => parameters.push(byte),
                end @ 0x40..=0x7e => return Ok(named(&parameters, end)),
                other => {
                    self.put_back = Some(other);
                    return Ok(Key::Unknown);
                }
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
