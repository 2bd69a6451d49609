//! The command line as a process: the real binary in a home of its own.
//!
//! Each row of the conventions has its check; the tests name what a person or a script relies on.

mod answers;
mod arguments;
mod client;
mod columns;
mod conventions;
mod create;
mod dialogues;
mod edit;
mod editor;
mod errors;
mod filters;
mod form_files;
mod golden_files;
mod golden_messages;
mod help;
mod imported;
mod keys;
mod leaves;
mod life;
mod lists;
mod newer;
mod prompts;
mod rendering;
mod round_trip;
mod scene;
mod screens;
mod serving;
mod several;
mod shown;
mod stand_in;
mod strangers;
mod targets;
mod terminal;
mod trials;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A folder that is home, working directory and runtime folder; nothing of the tester's own is seen.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running `forms serve`, killed when it is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
}

/// A survey as small as they come: `q1` is text and required, `q2` an address, `q3` a rating.
pub(crate) const SURVEY: &str = "\
title: Lunch
questions:
  - {type: short_text, title: What would you like?, required: true}
  - {type: email, title: Your email}
  - {type: rating, title: How was it?}
";

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        home.write("survey.yaml", SURVEY);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The binary with these arguments, and an environment that has only `PATH` and `HOME`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forms"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// The same with environment variables.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        self.command(arguments).envs(variables.iter().copied()).output().unwrap().into()
    }

    /// The same with something on standard input.
    pub(crate) fn run_on(&self, input: &str, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Runs a command that must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run.stdout
    }

    /// Creates and publishes [`SURVEY`] in the data directory `store` or on the running server.
    #[track_caller]
    pub(crate) fn published_form(&self, global: &[&str]) -> String {
        let arguments = [global, &["create", "--publish", "-f", "survey.yaml"]].concat();
        self.ok(&arguments).trim().to_owned()
    }

    /// Makes the data directory `store`, without a form in it.
    #[track_caller]
    pub(crate) fn empty_store(&self) {
        let id = self.published_form(&["--data", "store"]);
        self.ok(&["--data", "store", "delete", "--yes", "--purge", &id]);
    }

    /// Starts a server on `store`, at a port of the system's choice.
    pub(crate) fn serve(&self) -> Served {
        self.serve_with(&["serve", "--data", "store", "--listen", "127.0.0.1:0"])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Served {
        let mut command = self.command(arguments);
        let log = fs::File::create(self.path().join("serve.log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(!url.is_empty(), "{}", fs::read_to_string(self.path().join("serve.log")).unwrap());
        Served { child, url: url.trim().to_owned() }
    }
}

impl Served {
    /// Sends the server a signal and waits for its end.
    pub(crate) fn stop(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard error as one line of JSON.
    #[track_caller]
    pub(crate) fn problem(&self) -> Value {
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
