//! No submission is acknowledged before the sync that covers it, shown by a trace of the server's system calls.

use std::io::Read;

use super::common::server::Server;
use super::recorder::{Recorder, marker};
use super::{has_strace, serve_by, with_data};

/// Submissions in the trace.
const SUBMISSIONS: usize = 100;

#[test]
fn no_submission_is_acknowledged_before_it_is_synced() {
    if !has_strace("the order of writes and syncs") {
        return;
    }
    with_data(async |data| {
        let trace = data.with_extension("trace");
        let calls = "trace=write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync";
        let output = trace.to_str().unwrap();
        let strace = ["strace", "-D", "-f", "-qq", "-y", "-s", "2000000", "-e", calls, "-o", output];
        let mut command = serve_by(&strace, data, &[]);
        let (mut log, stderr) = std::io::pipe().unwrap();
        let server = Server::start(command.stderr(stderr)).unwrap();
        drop(command);
        let mut recorder = Recorder::new(&server, data).await;
        recorder.store_until(server, SUBMISSIONS, |server| server.kill().unwrap()).await;
        // strace has the other end open as well: once the pipe is closed, the trace is complete.
        log.read_to_end(&mut Vec::new()).unwrap();
        let calls = parse(&std::fs::read_to_string(&trace).unwrap());
        let (answered, early) = early_answers(&calls, recorder.sent());
        assert!(answered >= SUBMISSIONS, "the trace has only {answered} responses");
        assert_eq!(early, Vec::<u64>::new(), "acknowledged before they were durable");
    });
}

/// One system call, with the lines of the trace where it was entered and left.
#[derive(Debug)]
struct Call {
    name: String,
    text: String,
    entered: usize,
    left: usize,
}

/// Parses a trace. A call that was interleaved with another thread's takes two lines.
fn parse(trace: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        let (thread, text) = line.trim_start().split_once(' ').unwrap_or((line, ""));
        let text = text.trim_start();
        if text.starts_with("<...") {
            let began = |call: &&mut Call| call.left == usize::MAX && call.text.starts_with(thread);
            if let Some(call) = calls.iter_mut().rev().find(began) {
                call.left = at;
            }
        } else if let Some((name, _)) = text.split_once('(') {
            let left = if text.ends_with("<unfinished ...>") { usize::MAX } else { at };
            calls.push(Call { name: name.to_owned(), text: format!("{thread} {text}"), entered: at, left });
        }
    }
    calls
}

/// The number of submissions below `sent` with a 201, and those of them whose 201 was written before a journal sync
/// that began after their bytes were written had finished.
fn early_answers(calls: &[Call], sent: u64) -> (usize, Vec<u64>) {
    let is_journal = |call: &&Call| call.text.contains("/store/journal/");
    let writes: Vec<_> = calls.iter().filter(|call| call.name == "pwrite64").filter(is_journal).collect();
    let syncs: Vec<_> = calls.iter().filter(|call| call.name.ends_with("sync")).filter(is_journal).collect();
    let answers: Vec<_> = calls.iter().filter(|call| call.text.contains("HTTP/1.1 201")).collect();
    let (mut answered, mut early) = (0, Vec::new());
    for number in 0..sent {
        let has_marker = |call: &&&Call| call.text.contains(&marker(number));
        let Some(answer) = answers.iter().find(has_marker) else { continue };
        answered += 1;
        let written = writes.iter().find(has_marker).map_or(usize::MAX, |write| write.left);
        if !syncs.iter().any(|sync| sync.entered > written && sync.left < answer.entered) {
            early.push(number);
        }
    }
    (answered, early)
}

#[test]
fn early_answers_finds_each_wrong_order() {
    let marker = marker(0);
    let write = format!(r#"7 pwrite64(9</d/store/journal/00000001.log>, "{marker}", 512, 0) = 512"#);
    let sync = "7 fdatasync(9</d/store/journal/00000001.log>) = 0";
    let other_sync = "7 fdatasync(8</d/store/index/db>) = 0";
    let answer =
        format!(r#"8 writev(12<socket:[1]>, [{{iov_base="HTTP/1.1 201 Created {marker}"}}], 1) = 99"#);
    let begun = "7 fdatasync(9</d/store/journal/00000001.log> <unfinished ...>";
    let ended = "7 <... fdatasync resumed>) = 0";
    let cases: [(&[&str], &[u64]); 7] = [
        (&[&write, sync, &answer], &[]),
        (&[&write, begun, ended, &answer], &[]),
        (&[&write, &answer, sync], &[0]),
        (&[&write, begun, &answer, ended], &[0]),
        (&[sync, &write, &answer], &[0]),
        (&[&write, other_sync, &answer], &[0]),
        (&[sync, &answer], &[0]),
    ];
    for (lines, early) in cases {
        let found = early_answers(&parse(&lines.join("\n")), 1);
        assert_eq!(found, (1, early.to_vec()), "{lines:?}");
    }
}
