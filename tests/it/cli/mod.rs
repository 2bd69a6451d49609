//! The command line as a process: the binary in a temporary home directory.

mod answers;
mod arguments;
mod batch;
mod bulk;
mod client;
mod columns;
mod completion;
mod contexts;
mod conventions;
mod create;
mod doctor;
mod edit;
mod editor;
mod erase;
mod errors;
mod export;
mod fake_server;
mod fill;
mod filters;
mod form_files;
mod form_lifecycle;
mod form_tests;
mod golden_files;
mod golden_messages;
mod help;
mod import;
mod init;
mod integrations;
mod integrations_in_files;
mod keys;
pub(crate) mod listen;
mod lists;
mod login;
mod newer_server;
mod output_formats;
mod pages;
mod plan;
mod prefix;
mod prompt_sequences;
mod prompts;
mod rendering;
mod results; // counts and averages on a screen
mod round_trip;
mod serve;
mod show;
mod spam;
mod store;
mod targets;
pub(crate) mod terminal;
mod terminal_output;
mod untrusted_text;
mod validate_answers;
mod workbook;
mod workspaces;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use forms::clock::{Clock, SystemClock};
use forms::store::{Keys, Maintenance};
use serde_json::Value;

use crate::store::{open_store, quarantine_in};

/// A temporary folder used as home and working directory, isolated from the environment of the test run.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running `forms serve`, killed when it is dropped.
pub(crate) struct RunningServer {
    pub(crate) child: Child,
    pub(crate) url: String,
}

/// A small form: `q1` is a required text, `q2` an e-mail address, `q3` a rating.
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

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The binary with these arguments and an environment of only `PATH` and `HOME`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forms"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// Like [`run`](Self::run), with environment variables.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
        self.command(arguments).envs(variables.iter().copied()).output().unwrap().into()
    }

    /// Like [`run`](Self::run), with `input` on stdin.
    pub(crate) fn run_with_input(&self, input: &str, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Runs a command that must succeed and returns its stdout.
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

    /// Stores `count` quarantined submissions in `store`, to a form of the first workspace, and returns their ids.
    pub(crate) fn quarantine(&self, form: &str, count: usize) -> Vec<String> {
        let store = open_store(&self.path().join("store"));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let form = store.list_workspaces().await.unwrap()[0].id.form(form.parse().unwrap());
            let mut ids = Vec::new();
            for _ in 0..count {
                let id = quarantine_in(&store, form, r#"{"q1":"cheap pills"}"#, SystemClock.now()).await;
                ids.push(id.to_string());
            }
            store.close().await.unwrap();
            ids
        })
    }

    /// Creates the data directory `store` without forms.
    #[track_caller]
    pub(crate) fn create_empty_store(&self) {
        let id = self.published_form(&["--data", "store"]);
        self.ok(&["--data", "store", "delete", "--yes", "--purge", &id]);
    }

    /// Starts a server on `store` at a free port.
    pub(crate) fn serve(&self) -> RunningServer {
        self.serve_with(&["serve", "--data", "store", "--listen", "127.0.0.1:0"])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> RunningServer {
        self.start(self.command(arguments))
    }

    /// Starts this `forms serve`.
    pub(crate) fn start(&self, mut command: Command) -> RunningServer {
        let log = fs::File::create(self.path().join("serve.log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(!url.is_empty(), "{}", fs::read_to_string(self.path().join("serve.log")).unwrap());
        RunningServer { child, url: url.trim().to_owned() }
    }
}

impl RunningServer {
    /// Sends the server a signal and waits until it exits.
    pub(crate) fn stop(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // The server may have exited already.
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
