//! `forms listen`: receives webhooks on this machine.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, value_parser};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::cli::commands::block_on::Signals;
use crate::cli::commands::{CliError, Run, Session, read_input};
use crate::cli::input::secret_file;
use crate::cli::input::values::socket_address;
use crate::cli::output::{Format, Output, visible};
use crate::clock::{SystemClock, Timestamp};
use crate::domain::json::{self, Value};
use crate::receiver::{self, Forward, ReceivedEvent, Settings, Signature, SigningSecret};

/// Receive webhooks on this machine
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints its address on one line, then a line for each event: when it came, its
type and id, whether the signature is verified, unverified (no --secret-file) or
invalid, and the status that was answered. With -o json each line is an object,
the first one {\"url\": ...}, and each event has its `body`.

Signatures are verified as in Standard Webhooks: the file has the secret of the
integration, whsec_..., or several, one per line. An event with an invalid
signature is answered with 401 and not forwarded. --forward-to passes the others
to the program that you are developing, as they came, and answers what it
answers; without it, every event is answered with --status, so that you can see
retries. A body has at most 1 MiB.

The server must be allowed to call this machine: forms serve --allow-net
127.0.0.0/8.

Examples:
  forms listen
  forms integrations create lunch --webhook http://127.0.0.1:9000 > secret
  forms listen --secret-file secret --forward-to http://localhost:3000/webhook
  forms listen --status 503")]
pub struct Listen {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address, default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// File with the signing secret, - for standard input
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[arg(long, value_name = "URL", value_parser = Forward::new, conflicts_with = "status")]
    #[arg(help = "Program that gets each event, such as http://localhost:3000/webhook")]
    forward_to: Option<Forward>,
    /// Status to answer with
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = value_parser!(u16).range(200..=599))]
    status: u16,
}

impl Run for Listen {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let output = &*session.output;
        if matches!(output.format, Format::Csv | Format::Yaml) {
            return Err(CliError::usage("events are lines: use -o table, -o json or -o jsonl"));
        }
        let settings = self.settings(session).await?;
        let is_verifying = !settings.secrets.is_empty();
        let mut signals = Signals::new(true)?;
        let (sender, mut events) = mpsc::channel(16);
        let bound = receiver::bind(self.listen, settings, sender).await;
        let (address, receiving) = bound.map_err(|error| self.not_bound(error))?;
        announce(output, address, is_verifying)?;
        let print = async {
            while let Some(event) = events.recv().await {
                print_event(output, &event)?;
            }
            Ok(())
        };
        tokio::select! {
            ended = receiving => ended.map_err(|error| CliError::io("cannot receive", error)),
            ended = print => ended,
            _is_ctrl_c = signals.next() => Ok(()),
        }
    }
}

impl Listen {
    async fn settings(&self, session: &Session) -> Result<Settings, CliError> {
        let status = self.status.try_into();
        let status = status.map_err(|_invalid| CliError::usage("--status is not a valid HTTP status"))?;
        let secrets = match &self.secret_file {
            Some(path) => {
                session.announce_stdin(path);
                let path = path.clone();
                read_input(move || read_secrets(&path)).await?
            }
            None => Vec::new(),
        };
        Ok(Settings { secrets, forward: self.forward_to.clone(), status, clock: Arc::new(SystemClock) })
    }

    fn not_bound(&self, error: io::Error) -> CliError {
        let address = self.listen;
        if error.kind() == io::ErrorKind::AddrInUse {
            return CliError::AddressInUse { address: address.to_string(), holder: None };
        }
        CliError::io(format!("cannot listen on {address}"), error)
    }
}

/// Reads the secrets in the file at `path`, one per line.
fn read_secrets(path: &Path) -> Result<Vec<SigningSecret>, CliError> {
    let invalid = |message: String| {
        CliError::usage_with_help(message, "forms integrations rotate-secret prints a new one")
    };
    let (text, name) = (secret_file::read_text(path)?, secret_file::name(path));
    if text.is_empty() {
        return Err(invalid(format!("{name} has no secret")));
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let secrets: Result<Vec<_>, _> = lines.map(SigningSecret::parse).collect();
    secrets.map_err(|error| invalid(format!("{name} has no valid secret: {error}")))
}

/// Prints the address: on stdout for programs, and on a terminal also for people.
fn announce(output: &Output, address: SocketAddr, is_verifying: bool) -> Result<(), CliError> {
    let url = format!("http://{address}");
    if output.stderr_is_terminal() {
        let how = if is_verifying { "verifying signatures" } else { "signatures are not verified" };
        output.status(&format!("receiving at {url}, {how}, Ctrl-C stops"));
    }
    match output.format {
        Format::Table => output.write(&format!("{url}\n")),
        _ => output.json_lines(&[serde_json::json!({"url": url})]),
    }
}

/// A received event as a line of JSON.
#[derive(Serialize)]
struct EventLine<'a> {
    received_at: Timestamp,
    id: Option<&'a str>,
    #[serde(rename = "type")]
    event_type: Option<&'a str>,
    signature: &'static str,
    /// Why the signature is not valid, or why the program got nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    answered: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// Text if it is not JSON.
    body: &'a Value,
}

fn print_event(output: &Output, event: &ReceivedEvent) -> Result<(), CliError> {
    let (signature, invalid) = match event.signature {
        Signature::Verified => ("verified", None),
        Signature::Unverified => ("unverified", None),
        Signature::Invalid(why) => ("invalid", Some(why)),
    };
    let text = String::from_utf8_lossy(&event.body);
    let body = json::parse(&text).unwrap_or_else(|_malformed| Value::String(text.clone().into_owned()));
    let line = EventLine {
        received_at: event.received_at,
        id: event.header("webhook-id"),
        event_type: body.get("type").and_then(Value::as_str),
        signature,
        error: invalid.or(event.forward_error.as_deref()),
        answered: event.answered.as_u16(),
        delivery: event.header("forms-delivery"),
        attempt: event.header("forms-attempt").and_then(|number| number.parse().ok()),
        body: &body,
    };
    match output.format {
        Format::Table => output.write(&line.to_text(output.truncates_rows())),
        _ => output.json_lines(&[line]),
    }
}

impl EventLine<'_> {
    /// Returns the line for people, or with tabs for programs.
    fn to_text(&self, for_people: bool) -> String {
        let time = self.received_at.to_string();
        let [event_type, id] = [self.event_type, self.id].map(|text| visible(text.unwrap_or_default()));
        let (signature, answered) = (self.signature, self.answered);
        let error = self.error.map(visible).unwrap_or_default();
        if !for_people {
            return format!("{time}\t{event_type}\t{id}\t{signature}\t{answered}\t{error}\n");
        }
        let clock = time.get(11..19).unwrap_or_default();
        let line = format!("{clock}  {event_type:<20}  {id:<30}  {signature:<10}  {answered}  {error}");
        line.trim_end().to_owned() + "\n"
    }
}
