//! A server process: started until it prints its address, and stopped by its process id.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::endpoint::{Endpoint, write_certificate};

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    endpoint: Endpoint,
}

/// `forms serve` on `data` at a free port; another program than the one just built if `FORMS_BENCH_PROGRAM` names it. Its home folder and its log are next to `data`, so that it is
/// independent of other servers.
pub(crate) fn forms_serve(data: &Path) -> io::Result<Command> {
    let home = data.with_extension("home");
    std::fs::create_dir_all(&home)?;
    let program = std::env::var_os("FORMS_BENCH_PROGRAM");
    let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_forms").into()));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.env_clear().env("HOME", &home).env("XDG_RUNTIME_DIR", &home).env("XDG_STATE_HOME", &home);
    command.stderr(log_of(data)?);
    Ok(command)
}

/// `forms serve` as [`forms_serve`], over TLS with the certificate that clients of this process trust.
pub(crate) fn forms_serve_tls(data: &Path) -> io::Result<Command> {
    let mut command = forms_serve(data)?;
    let [certificate, key] = write_certificate(&data.with_extension("home"))?;
    command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
    Ok(command)
}

/// Opens the log file of [`forms_serve`].
pub(crate) fn log_of(data: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(data.with_extension("log"))
}

/// The key that the first start writes to the data directory.
pub(crate) fn operator_key(data: &Path) -> io::Result<String> {
    Ok(std::fs::read_to_string(data.join("operator-key"))?.trim().to_owned())
}

/// Parses a base URL whose host is an IP address.
fn parse(url: &str) -> Option<Endpoint> {
    let (scheme, address) = url.split_once("://")?;
    Some(Endpoint { address: address.trim_end_matches('/').parse().ok()?, is_tls: scheme == "https" })
}

impl Server {
    /// Starts `command` and waits for its one line on stdout: the base URL.
    ///
    /// # Errors
    /// If it exits first, or prints something else.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        match parse(line.trim()) {
            Some(endpoint) => Ok(Self { child, endpoint }),
            None => {
                child.kill()?;
                let status = child.wait()?;
                Err(io::Error::other(format!("the server printed {line:?} and exited with {status}")))
            }
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time that it has used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> io::Result<f64> {
        // Fields 14 and 15 of the line, 12 and 13 after the name in parentheses, in ticks of 10 ms.
        let line = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        let fields = line.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        Ok(fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
    }

    /// Sends SIGTERM and waits for its exit.
    pub(crate) fn stop(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.child.wait()
    }

    /// Sends SIGKILL and waits for its exit.
    pub(crate) fn kill(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL)?;
        self.child.wait()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Waits for its exit.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// Maximum resident memory of the server, in MiB.
pub(crate) fn highest_memory(server: &Server) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib.div_ceil(1024)).ok_or_else(|| io::Error::other(format!("no VmHWM in {status}")))
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both may fail if the process has already exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
