//! The checks of the server, through its API.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Check;
use crate::api::StoreView;
use crate::cli::commands::keys::scope_names;
use crate::cli::commands::{CliError, Session};
use crate::cli::connection::hints::address_origin;
use crate::cli::connection::target::{self, Target, display_url};
use crate::cli::output::humanize::{bytes, count_noun};
use crate::client::{Client, ClientError, RetryPolicy, ServerState, Transport, Url};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::config::Config;
use crate::secret::SystemRandomness;

/// Pause between two looks at a server that is not ready.
const PAUSE: Duration = Duration::from_millis(100);

/// Time before the end of a certificate from which on it should be renewed.
const RENEWAL_DAYS: i64 = 14;

/// Difference of two clocks that matters: one second is lost in the header `Date`.
const MAX_CLOCK_DIFFERENCE: i64 = 5_000;

/// Waits until the server is ready.
///
/// # Errors
/// At `deadline`, why it is not. A data directory needs no waiting.
pub(super) async fn wait_until_ready(session: &Session, deadline: Instant) -> Result<(), CliError> {
    loop {
        // The server announces its address only when it is ready.
        let Target::Server { url, .. } = target::resolve(session)? else { return Ok(()) };
        let remaining = deadline.saturating_duration_since(Instant::now());
        let error = match look(&url.value, remaining.min(session.global.timeout).max(PAUSE)).await {
            Ok(state) if state.status == "ready" => return Ok(()),
            Ok(state) => {
                let message = format!("is not ready: its status is {}", state.status);
                ClientError::Unexpected { url: display_url(&url.value), message }
            }
            Err(error) => error,
        };
        if remaining.is_zero() {
            return Err(error.into());
        }
        sleep(PAUSE.min(remaining)).await;
    }
}

/// Looks at the server once, without a key.
async fn look(url: &Url, timeout: Duration) -> Result<ServerState, ClientError> {
    let transport = Transport::http(url.clone(), target::is_loopback(url))?;
    let policy = RetryPolicy { timeout, retries: 0 };
    Client::new(transport, None, policy, Box::new(SystemRandomness)).server_state().await
}

/// Checks the server; if it cannot be reached, only that.
pub(super) async fn check(session: &Session) -> Vec<Check> {
    let opened = async {
        let client = session.client().await?;
        let state = client.server_state().await?;
        Ok::<_, CliError>((client, state))
    };
    let (client, state) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return vec![Check::failed("address", session, error)],
    };
    let mut checks = Vec::new();
    match session.target() {
        Ok(Target::Server { url, context, .. }) => {
            let origin = address_origin(url.source, context.as_deref());
            checks.push(Check::ok("address", format!("{}, from {origin}", display_url(&url.value))));
            checks.push(check_certificate(&url.value, &state, session.now()));
            checks.push(check_clock(&state, session.now()));
        }
        _ => checks.push(Check::ok("address", "the data directory, without a server")),
    }
    checks.push(match &*state.status {
        "ready" => Check::ok("ready", "accepts answers"),
        "full" => Check::problem("ready", "the disk is full", "free space, or lower --min-free"),
        status => Check::problem("ready", format!("the status is {status}"), "see the log of the server"),
    });
    checks.push(match client.whoami().await {
        Ok(caller) => {
            let (key, workspace) = (caller.key, caller.workspace.name);
            let scopes = scope_names(&key.scopes);
            Check::ok("key", format!("{} \"{}\" of workspace {workspace}: {scopes}", key.id, key.name))
        }
        Err(error) => Check::failed("key", session, error.into()),
    });
    checks.extend(check_store(session, &client).await);
    checks
}

fn check_certificate(url: &Url, state: &ServerState, now: Timestamp) -> Check {
    let Some(end) = state.certificate_end else {
        let is_https = url.scheme() == "https";
        return Check::skipped("certificate", if is_https { "it cannot be read" } else { "plain HTTP" });
    };
    let days = (end.millis() - now.millis()).div_euclid(DAY_MILLIS);
    let detail = format!("valid until {end}");
    match days {
        ..RENEWAL_DAYS => Check::warning(
            "certificate",
            detail,
            "renew it, and send SIGHUP to the server, or reload the proxy",
        ),
        _ => Check::ok("certificate", detail),
    }
}

fn check_clock(state: &ServerState, now: Timestamp) -> Check {
    let Some(clock) = state.clock else { return Check::skipped("clock", "the server sends no `Date`") };
    let difference = clock.millis() - now.millis();
    if difference.abs() <= MAX_CLOCK_DIFFERENCE {
        return Check::ok("clock", "the same as here");
    }
    let seconds = count_noun(difference.unsigned_abs() / 1_000, "second");
    let direction = if difference > 0 { "ahead of" } else { "behind" };
    Check::warning("clock", format!("{seconds} {direction} this machine"), "synchronise both clocks by NTP")
}

/// Checks what only an operator sees of the store.
async fn check_store(session: &Session, client: &Client) -> Vec<Check> {
    let store = match client.get::<StoreView>(&["store"]).await {
        Ok(store) => store,
        Err(error) if error.status() == Some(403) || error.status() == Some(401) => {
            return vec![Check::skipped("store", "needs a key with the scope operator")];
        }
        Err(error) => return vec![Check::failed("store", session, error.into())],
    };
    let (own, version) = (env!("CARGO_PKG_VERSION"), &store.version);
    let mut checks = vec![match version == own {
        true => Check::ok("version", own),
        false => {
            Check::warning("version", format!("{version}, of this command {own}"), "upgrade the older one")
        }
    }];
    checks
        .push(store.free_bytes.map_or_else(|| Check::skipped("disk", "the store is a database"), check_disk));
    checks.extend(store.verified_at.map(|at| Check::ok("store", format!("verified at {at}"))));
    checks.extend(store.erasure_due_at.map(|due| match due < session.now() {
        true => Check::warning("erasure", format!("due since {due}"), "run forms store compact"),
        false => Check::ok("erasure", format!("due at {due}")),
    }));
    checks
}

fn check_disk(free: u64) -> Check {
    let detail = format!("{} free", bytes(free));
    match free / Config::new("").min_free {
        0..4 => Check::warning("disk", detail, "free space: below --min-free (128 MiB) writes are refused"),
        _ => Check::ok("disk", detail),
    }
}
