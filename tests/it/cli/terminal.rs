//! A pseudo-terminal with a command at it, for the tests of what people are asked.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::Home;

/// A command at a terminal of its own.
pub(crate) struct Session {
    terminal: File,
    /// What it shows, as it comes.
    shown: Receiver<String>,
    child: Child,
    seen: String,
    /// How much of it [`Session::next`] has passed.
    passed: usize,
    /// How the terminal treats what is typed.
    modes: LocalModes,
}

/// A command that hangs must fail its test instead of stopping all of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hands on what the terminal shows, until nobody holds it any more: Linux says so by an error.
fn listen(mut terminal: File) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Session {
    pub(crate) fn start(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::start_program(80, home, variables, &home.command(arguments))
    }

    /// Starts the command at a terminal with this many columns.
    pub(crate) fn start_at_width(
        columns: u16,
        home: &Home,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        Self::start_program(columns, home, variables, &home.command(arguments))
    }

    /// Starts `command`, which may be another program, at the terminal.
    pub(crate) fn start_program(
        columns: u16,
        home: &Home,
        variables: &[(&str, &str)],
        command: &Command,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        // The terminal becomes the command's own, so that it gets the signals of its keys.
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        leader.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        leader.current_dir(home.path()).env("TERM", "xterm").envs(variables.iter().copied());
        leader.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let terminal = File::from(master);
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        let shown = listen(terminal.try_clone().unwrap());
        Self { terminal, shown, child: leader.spawn().unwrap(), seen: String::new(), passed: 0, modes }
    }

    /// Waits until the terminal shows `text`.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read(), "`{text}` did not come: {:?}", self.seen);
        }
    }

    /// The same behind what the last call has waited for.
    #[track_caller]
    pub(crate) fn next(&mut self, text: &str) {
        loop {
            if let Some(place) = self.seen[self.passed..].find(text) {
                self.passed += place + text.len();
                return;
            }
            assert!(self.read(), "`{text}` did not come: {:?}", self.seen);
        }
    }

    /// Takes what the terminal shows next; false at the end.
    #[track_caller]
    fn read(&mut self) -> bool {
        match self.shown.recv_timeout(PATIENCE) {
            Ok(text) => self.seen.push_str(&text),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more came: {:?}", self.seen),
        }
        true
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.press_bytes(keys.as_bytes());
    }

    pub(crate) fn press_bytes(&mut self, keys: &[u8]) {
        self.terminal.write_all(keys).unwrap();
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The exit code and all that was shown. The terminal treats what is typed as it did before.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        assert_eq!(tcgetattr(&self.terminal).unwrap().local_modes, self.modes, "{:?}", self.seen);
        (code, self.seen)
    }
}

/// Whether the cursor is there again, if it was hidden.
pub(crate) fn has_cursor(seen: &str) -> bool {
    let (hidden, shown) = (seen.rfind("\u{1b}[?25l"), seen.rfind("\u{1b}[?25h"));
    shown.is_some() && hidden <= shown
}
