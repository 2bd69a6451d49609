//! `forms serve`: settings from flags, logging, signals, and the announcement of the server's address.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::commands::block_on::Signals;
use crate::cli::commands::{CliError, Run, Session};
use crate::cli::connection::local_store::{StoreFlags, open_error};
use crate::cli::connection::running_servers::{self, Announcement};
use crate::cli::connection::target;
use crate::cli::input::values::{count, duration, network, size, socket_address};
use crate::cli::output::io_error::reason;
use crate::client::Url;
use crate::config::{BaseUrl, Config, HttpSettings, Rate, StoreLocation, TlsFiles, WebOrigin};
use crate::domain::validation::limits::Limits;
use crate::process::raise_open_files;
use crate::server::{self, Serving};

/// Help if another process holds the data directory.
const IF_IN_USE: &str = "stop it, or name another directory";

/// Run the server
#[derive(Debug, Args)]
#[command(
    override_usage = "forms serve (--data <DIR> | --store <URL>) [OPTIONS]",
    after_long_help = "\
Prints the server's address on one line once it accepts requests; everything
else is logged to stderr: as text on a terminal, else as lines of JSON. Ctrl-C
or SIGTERM stops it after the requests in progress; a second Ctrl-C does not
wait for them.

Commands of the same user find the server and its key automatically. With
--tls-cert, they verify the certificate: it must be valid for the address, such
as 127.0.0.1. SSL_CERT_FILE names a file of authorities to trust instead of the
system's.

Any number of servers can use one database: give each the same master key,
which `openssl rand -base64 32` makes, as FORMS_MASTER_KEY or in a file, and the
first one --operator-key-file. A URL with a password belongs into FORMS_STORE:
other users can see the arguments of a command.

Examples:
  forms serve --data ./store
  read -r url < <(forms serve --data ./store --listen 127.0.0.1:0)
  forms serve --store postgres://forms@db/forms --master-key-file master.key
  forms serve --data ./store --tls-cert cert.pem --tls-key key.pem
  forms serve --data ./store --trusted-proxy 127.0.0.1
  forms serve --data ./store --base-url https://example.com/forms \\
    --cors-origin https://app.example.com --rate-limit 50/s"
)]
pub struct Serve {
    #[arg(long, value_name = "URL", help = "PostgreSQL URL, instead of --data [env: FORMS_STORE]")]
    store: Option<StoreLocation>,
    /// File for the operator key that the first server of a database makes
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    operator_key_file: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address, default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// Also serve /metrics here, over HTTP and without a key
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address, hide_short_help = true)]
    metrics_listen: Option<SocketAddr>,
    /// Log every request to stderr, not only those that fail
    #[arg(long, hide_short_help = true)]
    access_log: bool,
    /// Serve HTTPS with this certificate chain (PEM); SIGHUP reloads it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Refuse writes when less than this is free on the disk
    #[arg(long, value_name = "SIZE", value_parser = in_range(size, "0", "1024GiB"), default_value = "128MiB", hide_short_help = true)]
    min_free: u64,
    /// Memory for the store's cache
    #[arg(long, value_name = "SIZE", value_parser = in_range(size, "1MiB", "1024GiB"), default_value = "48MiB")]
    cache_size: u64,
    /// Days that deleted forms and submissions can be restored
    #[arg(long, value_name = "N", value_parser = in_range(count, "0", "36500"), default_value_t = 30)]
    trash_days: usize,
    #[command(flatten)]
    network: NetworkFlags,
    #[command(flatten)]
    delivery: DeliveryFlags,
    #[command(flatten)]
    settings: StoreFlags,
    #[command(flatten)]
    limits: Box<LimitFlags>,
}

/// Flags about proxies in front of the server, and browsers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
struct NetworkFlags {
    /// Address or network, such as 10.0.0.0/8, of a proxy whose X-Forwarded-* headers are used; repeatable
    #[arg(long, value_name = "CIDR", value_parser = network)]
    trusted_proxy: Vec<IpNet>,
    /// URL at which clients reach the server, with the path that the proxy removes
    #[arg(long, value_name = "URL", value_parser = BaseUrl::from_str)]
    base_url: Option<BaseUrl>,
    /// Web origin, as scheme and host, whose scripts may use the API (CORS); repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = WebOrigin::from_str)]
    cors_origin: Vec<WebOrigin>,
}

/// Flags about deliveries to integrations.
#[derive(Debug, Args)]
#[command(next_help_heading = "Integrations")]
struct DeliveryFlags {
    /// Waits between attempts, such as 5s,5m,2h [default: by type of integration]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', hide_short_help = true)]
    #[arg(value_parser = in_range(duration, "1ms", "7d"))]
    retry_schedule: Vec<Duration>,
    /// Make a new master key in place of a lost one; stored secrets of integrations must be set again
    #[arg(long, hide_short_help = true, conflicts_with = "master_key_file")]
    new_master_key: bool,
    /// Deliver nothing; deliveries wait for the next start without this flag
    #[arg(long, hide_short_help = true)]
    pause_deliveries: bool,
}

/// Maximum waits between the attempts of a delivery.
const MAX_WAITS: usize = 20;

/// Maximum total of these waits.
const MAX_TOTAL_WAIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Limit flags. The short help hides them; `GET /api/v1/limits` reports their values.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Maximum size of a request body
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "1KiB", "16MiB"), default_value = "1MiB", hide_short_help = true)]
    max_body: usize,
    /// Maximum size of a form definition
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "1KiB", "16MiB"), default_value = "2MiB", hide_short_help = true)]
    max_definition: usize,
    /// Maximum size of a batch of submissions
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "1KiB", "16MiB"), default_value = "8MiB", hide_short_help = true)]
    max_batch: usize,
    /// Maximum number of questions in a form
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "10000"), default_value_t = 500, hide_short_help = true)]
    max_questions: usize,
    /// Maximum number of options of a question
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "10000"), default_value_t = 500, hide_short_help = true)]
    max_options: usize,
    /// Maximum number of characters in a title
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "10000"), default_value_t = 300, hide_short_help = true)]
    max_title: usize,
    /// Maximum size of one answer
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "1", "16MiB"), default_value = "64KiB", hide_short_help = true)]
    max_answer: usize,
    /// Maximum number of answers in a submission
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "100000"), default_value_t = 1_000, hide_short_help = true)]
    max_answers: usize,
    /// Maximum length of a request URI
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "64", "60KiB"), default_value = "8KiB", hide_short_help = true)]
    max_uri: usize,
    /// Maximum size of all request headers
    #[arg(long, value_name = "SIZE", value_parser = in_range(bytes, "1KiB", "1MiB"), default_value = "32KiB", hide_short_help = true)]
    max_head: usize,
    /// Maximum number of request headers
    #[arg(long, value_name = "N", value_parser = in_range(count, "8", "1000"), default_value_t = 64, hide_short_help = true)]
    max_headers: usize,
    /// Maximum time to receive the headers
    #[arg(long, value_name = "TIME", value_parser = in_range(duration, "100ms", "1h"), default_value = "5s", hide_short_help = true)]
    head_timeout: Duration,
    /// Maximum time from connecting to the first byte
    #[arg(long, value_name = "TIME", value_parser = in_range(duration, "100ms", "1h"), default_value = "10s", hide_short_help = true)]
    first_byte_timeout: Duration,
    /// Maximum time to receive a body
    #[arg(long, value_name = "TIME", value_parser = in_range(duration, "100ms", "1h"), default_value = "15s", hide_short_help = true)]
    body_timeout: Duration,
    /// Bytes per second that extend --body-timeout
    #[arg(long, value_name = "SIZE", value_parser = in_range(size, "1", "1GiB"), default_value = "1KiB", hide_short_help = true)]
    min_body_rate: u64,
    /// Maximum time a connection may be idle
    #[arg(long, value_name = "TIME", value_parser = in_range(duration, "100ms", "24h"), default_value = "60s", hide_short_help = true)]
    idle_timeout: Duration,
    /// Maximum number of connections; beyond it, the one idle longest is closed
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "1000000"), default_value_t = 1_024, hide_short_help = true)]
    max_connections: usize,
    /// Maximum number of connections per address [default: a quarter of all; loopback and trusted proxies: all]
    #[arg(long, value_name = "N", value_parser = in_range(count, "1", "1000000"), hide_short_help = true)]
    max_connections_per_address: Option<usize>,
    /// Maximum rate of failed authentications per address, such as 10/min, or off
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "10/min", hide_short_help = true)]
    auth_failures: MaximumRate,
    /// Maximum rate of requests with one API key, such as 50/s, or off
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "off", hide_short_help = true)]
    rate_limit: MaximumRate,
    /// Maximum rate of answers sent to pages per address, such as 30/min, or off
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "30/min", hide_short_help = true)]
    page_rate: MaximumRate,
}

/// A rate; `None` for `off`. To clap, an `Option` would be a flag that may be left out.
type MaximumRate = Option<Rate>;

fn rate(text: &str) -> Result<MaximumRate, String> {
    if text == "off" { Ok(None) } else { text.parse().map(Some) }
}

/// Returns a parser that accepts values from `least` to `most`, both in the syntax of `read`.
fn in_range<T: PartialOrd + Clone + Send + Sync + 'static>(
    read: fn(&str) -> Result<T, String>,
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let (least_value, most_value) = (read(least)?, read(most)?);
        let value = read(text).ok().filter(|value| least_value <= *value && *value <= most_value);
        value.ok_or_else(|| format!("expected {least} to {most}"))
    }
}

impl Run for Serve {
    async fn run(self, session: &Session) -> Result<(), CliError> {
        let store = target::store(&session.global, &session.environment, self.store.clone())?;
        let Some(store) = store else {
            let help = "forms serve --data ./store";
            return Err(CliError::usage_with_help("serve needs a store: --data DIR, or --store URL", help));
        };
        let level = session.environment.get("FORMS_LOG").unwrap_or("info");
        let Ok(level) = level.parse() else {
            let expected = "off, error, warn, info, debug or trace";
            return Err(CliError::usage(format!("FORMS_LOG expects {expected}, found `{level}`")));
        };
        if let StoreLocation::Folder(data) = &store {
            session.refuse_if_served(data, IF_IN_USE)?;
        }
        init_logging(session, level);
        let mut config = self.config(store, session.global.insecure_http)?;
        if config.http.fit_open_files(raise_open_files()) {
            let max_connections = config.http.max_connections;
            tracing::warn!(max_connections, "the limit of open files allows no more connections");
        }
        serve(session, config).await
    }
}

impl Serve {
    /// Returns the settings of the flags.
    fn config(self, store: StoreLocation, insecure_http: bool) -> Result<Config, CliError> {
        let (network, delivery, limits) = (self.network, self.delivery, self.limits);
        let mut config = self.settings.config(store)?;
        config.listen = self.listen;
        config.metrics_listen = self.metrics_listen;
        config.insecure_http = insecure_http;
        let tls_files = |(certificate, key)| TlsFiles { certificate, key };
        config.tls = self.tls_cert.zip(self.tls_key).map(tls_files);
        config.min_free = self.min_free;
        config.trash_days = u32::try_from(self.trash_days).unwrap_or(u32::MAX);
        config.cache_size = self.cache_size;
        config.content = Limits {
            questions: limits.max_questions,
            options: limits.max_options,
            title: limits.max_title,
            answer: limits.max_answer,
            answers: limits.max_answers,
            ..Limits::default()
        };
        config.http = HttpSettings {
            max_body: limits.max_body,
            max_definition: limits.max_definition,
            max_batch: limits.max_batch,
            max_uri: limits.max_uri,
            max_head: limits.max_head,
            max_headers: limits.max_headers,
            head_timeout: limits.head_timeout,
            first_byte_timeout: limits.first_byte_timeout,
            body_timeout: limits.body_timeout,
            min_body_rate: u32::try_from(limits.min_body_rate).unwrap_or(u32::MAX),
            idle_timeout: limits.idle_timeout,
            max_connections: limits.max_connections,
            max_connections_per_address: limits.max_connections_per_address,
            auth_failures: limits.auth_failures,
            rate_limit: limits.rate_limit,
            page_rate: limits.page_rate,
            trusted_proxies: network.trusted_proxy,
            base_url: network.base_url,
            cors_origins: network.cors_origin,
            access_log: self.access_log,
        };
        config.delivery.operator_key_file = self.operator_key_file;
        config.delivery.retry_schedule = retry_schedule(&delivery.retry_schedule)?;
        config.delivery.new_master_key = delivery.new_master_key;
        config.delivery.is_paused = delivery.pause_deliveries;
        Ok(config)
    }
}

/// Returns the waits between attempts in milliseconds, if any are given.
fn retry_schedule(waits: &[Duration]) -> Result<Option<Vec<i64>>, CliError> {
    if waits.len() > MAX_WAITS || waits.iter().sum::<Duration>() > MAX_TOTAL_WAIT {
        let expected = format!("expected at most {MAX_WAITS} times, of 7 days together");
        return Err(CliError::usage(format!("invalid --retry-schedule: {expected}")));
    }
    let millis = |wait: &Duration| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Ok((!waits.is_empty()).then(|| waits.iter().map(millis).collect()))
}

/// Parses a size in memory.
fn bytes(text: &str) -> Result<usize, String> {
    size(text)?.try_into().map_err(|_too_large| String::new())
}

/// Serves until the first signal, then until the requests in progress finish or a second signal arrives.
async fn serve(session: &Session, config: Config) -> Result<(), CliError> {
    let store = config.store.clone();
    let mut announcement = None;
    let (stop, stopped) = oneshot::channel();
    // SIGHUP reloads the certificate. Without one it stops the server, as a closed terminal should.
    let mut signals = Signals::new(config.tls.is_none())?;
    let unheard = |error| CliError::io("cannot listen for signals", error);
    let mut hangup = signal(SignalKind::hangup()).map_err(unheard)?;
    let next_reload = async || {
        hangup.recv().await;
    };
    let signals = async {
        signals.next().await;
        tracing::info!("stopping after the requests in progress; a second signal does not wait for them");
        let _over_already = stop.send(());
        signals.next().await;
    };
    let stopped = async { drop(stopped.await) };
    let ready = |serving: &Serving<'_>| announcement = announce(session, serving, &store);
    let ended = tokio::select! {
        ended = server::run(config, stopped, next_reload, ready) => {
            let name = store.to_string();
            ended.map_err(|error| with_holder(session, open_error(Path::new(&name), error, IF_IN_USE)))
        }
        () = signals => Err(CliError::Interrupted),
    };
    drop(announcement);
    ended
}

/// Adds to the error which server of this user holds the address.
fn with_holder(session: &Session, error: CliError) -> CliError {
    let CliError::AddressInUse { address, .. } = error else { return error };
    let url = Url::parse(&format!("http://{address}")).ok();
    let running = session.running_servers();
    let server = url.and_then(|url| running.into_iter().find(|server| server.may_be_at(&url)));
    CliError::AddressInUse { address, holder: server.map(|server| (server.pid, server.store().into())) }
}

/// Announces the address: on stdout for scripts and in the runtime file for commands, both on this machine; and in the log,
/// or as a status line on a terminal, with the URL for clients.
fn announce(session: &Session, serving: &Serving<'_>, store: &StoreLocation) -> Option<Announcement> {
    let Serving { local_url, url, .. } = serving;
    let announcement = write_runtime_file(session, serving, store);
    if session.output.stderr_is_terminal() {
        session.output.status(&format!("serving {store} at {url}, Ctrl-C stops"));
        session.output.status(&format!("pages of public forms are at {url}/f/FORM"));
        if let Some(context) = session.chosen_context() {
            let select = format!("--url {local_url} selects this server");
            session.output.status(&format!("commands use context `{context}`; {select}"));
        }
    } else {
        match store {
            StoreLocation::Folder(data) => tracing::info!(url, data = %data.display(), "ready"),
            StoreLocation::Database(_) => tracing::info!(url, store = %store, "ready"),
        }
    }
    // A reader that closed stdout does not need the address.
    if let Err(error @ CliError::Io { .. }) = session.output.write(&format!("{local_url}\n")) {
        session.output.report_error(&error);
    }
    announcement
}

fn write_runtime_file(
    session: &Session,
    serving: &Serving<'_>,
    store: &StoreLocation,
) -> Option<Announcement> {
    let url = Url::parse(&serving.local_url).ok()?;
    let warn = |(folder, error): (PathBuf, io::Error)| {
        let why = format!("cannot write {}: {}", folder.display(), reason(&error));
        tracing::warn!("{why}; commands need --url and a key to find this server");
    };
    running_servers::announce(&session.environment, &url, serving.key?.reveal(), store.folder())
        .map_err(warn)
        .ok()
}

/// Logs to stderr: as text on a terminal, else as lines of JSON.
fn init_logging(session: &Session, level: LevelFilter) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .log_internal_errors(false)
        .with_target(false);
    let installed = if session.output.stderr_is_terminal() {
        lines.with_ansi(false).try_init()
    } else {
        lines.json().flatten_event(true).with_current_span(false).try_init()
    };
    drop(installed);
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Config, StoreLocation};
    use crate::cli::commands::{Cli, Command};

    #[test]
    fn without_flags_the_settings_are_the_defaults() {
        let Ok(Cli { command: Command::Serve(serve), .. }) = Cli::try_parse_from(["forms", "serve"]) else {
            panic!("`forms serve` is a command");
        };
        assert_eq!(serve.config(StoreLocation::Folder("store".into()), false).unwrap(), Config::new("store"));
    }
}
