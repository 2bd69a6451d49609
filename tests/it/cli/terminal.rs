//! A command on a pseudo-terminal, for tests of prompts.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::Home;

/// A command running on a pseudo-terminal.
pub(crate) struct Session {
    terminal: File,
    /// The output, in the pieces in which it is read.
    output: Receiver<String>,
    child: Child,
    screen: String,
    /// Bytes of the output that [`Session::wait_for_next`] has consumed.
    consumed: usize,
    /// The terminal modes at the start.
    modes: LocalModes,
}

/// Time without output after which the command counts as hung.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the terminal's output until it is closed, which Linux reports as an error.
fn read_output(mut terminal: File) -> Receiver<String> {
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

    /// Starts the command on a terminal with this many columns.
    pub(crate) fn start_at_width(
        columns: u16,
        home: &Home,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        Self::start_program(columns, home, variables, &home.command(arguments))
    }

    /// Starts `command`, which can be another program, on the terminal.
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
        // The terminal becomes the controlling terminal of the command, so that Ctrl-C sends it a signal.
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        leader.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        leader.current_dir(home.path()).env("TERM", "xterm").envs(variables.iter().copied());
        leader.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let terminal = File::from(master);
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        let output = read_output(terminal.try_clone().unwrap());
        Self { terminal, output, child: leader.spawn().unwrap(), screen: String::new(), consumed: 0, modes }
    }

    /// Waits until the output contains `text`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.screen.contains(text) {
            assert!(self.read(), "`{text}` was not shown: {:?}", self.screen);
        }
    }

    /// Like [`wait_for`](Self::wait_for), after the match of the previous call.
    #[track_caller]
    pub(crate) fn wait_for_next(&mut self, text: &str) {
        loop {
            if let Some(offset) = self.screen[self.consumed..].find(text) {
                self.consumed += offset + text.len();
                return;
            }
            assert!(self.read(), "`{text}` was not shown: {:?}", self.screen);
        }
    }

    /// Reads more output; returns false at its end.
    #[track_caller]
    fn read(&mut self) -> bool {
        match self.output.recv_timeout(TIMEOUT) {
            Ok(text) => self.screen.push_str(&text),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("no more output: {:?}", self.screen),
        }
        true
    }

    /// Waits until a prompt reads keys: it shows its question first.
    pub(crate) fn wait_for_key_reader(&self) {
        while tcgetattr(&self.terminal).unwrap().input_modes.contains(InputModes::ICRNL) {
            std::thread::yield_now();
        }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    pub(crate) fn type_bytes(&mut self, keys: &[u8]) {
        self.terminal.write_all(keys).unwrap();
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end and returns exit code and output. Fails if the terminal modes were not restored.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        assert_eq!(tcgetattr(&self.terminal).unwrap().local_modes, self.modes, "{:?}", self.screen);
        (code, self.screen)
    }
}

/// Whether the cursor is visible at the end.
pub(crate) fn is_cursor_visible(screen: &str) -> bool {
    let (hidden, shown) = (screen.rfind("\u{1b}[?25l"), screen.rfind("\u{1b}[?25h"));
    shown.is_some() && hidden <= shown
}
