//! Carrying out deliveries: claim what is due, render, send, record how it ended. The only module that calls other servers on
//! behalf of forms.
//!
//! ```text
//!  dispatch    how many sends may be in progress
//!  runner      the loop: claims what is due, and starts a task for each send
//!  attempt     a task: from claimed deliveries to their outcome
//!  render      the bodies of claimed deliveries
//!  send, guard, report, redact      requests to other servers
//!  csv_file    files below the folder of exports
//!  google_sheets    rows of Google spreadsheets
//!  mail        messages to the operator's mail server
//!  send_test   test events, sent on request
//! ```

mod attempt;
mod csv_file;
mod dispatch;
mod google_sheets;
mod guard;
pub mod mail;
mod redact;
mod render;
mod report;
mod runner;
mod send;
mod send_test;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use self::dispatch::Dispatcher;
use self::google_sheets::TokenCache;
use self::mail::{Mailer, NoMailer};
use crate::clock::{Clock, Timestamp};
use crate::cpu_pool::CpuPool;
use crate::domain::delivery::attempt::{Outcome, SendReport};
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::google_sheets::GoogleEndpoints;
use crate::domain::integration::outbound::HttpRequest;
use crate::id::Random;
use crate::metrics::Metrics;
use crate::store::{Store, VersionCache};
use crate::vault::Vault;

pub use guard::{Lookup, SystemLookup};
pub use report::Answer;
pub use send::{HttpSender, SendLimits};

/// The operator's settings of deliveries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliverySettings {
    pub policy: AddressPolicy,
    /// Waits between attempts in milliseconds, instead of each kind's own.
    pub retry_schedule: Option<Vec<i64>>,
    /// The folder of CSV files.
    pub exports: PathBuf,
    /// Where Google spreadsheets are.
    pub google: GoogleEndpoints,
}

/// Sends requests to other servers.
#[async_trait]
pub trait Sender: Send + Sync {
    /// Sends `request`, within 15 seconds.
    async fn send(&self, request: &HttpRequest) -> SendReport;

    /// Sends `request`, within 15 seconds, and returns the answer with at most `max_body` bytes of its body.
    ///
    /// # Errors
    /// If there is no answer: the outcome of the attempt.
    async fn call(&self, request: &HttpRequest, max_body: usize) -> Result<Answer, Outcome>;
}

/// Approximate bytes of memory for compiled versions.
const VERSION_BYTES: u64 = 16 << 20;

pub struct DeliveryService {
    store: Arc<dyn Store>,
    pub vault: Vault,
    sender: Arc<dyn Sender>,
    mailer: Arc<dyn Mailer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    pub settings: DeliverySettings,
    versions: VersionCache,
    dispatcher: Dispatcher,
    tokens: TokenCache,
    pub metrics: Arc<Metrics>,
    /// Attempts at earlier events may have been begun by an earlier process.
    started_at: Timestamp,
}

impl DeliveryService {
    pub fn new(
        store: Arc<dyn Store>,
        vault: Vault,
        sender: Arc<dyn Sender>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        settings: DeliverySettings,
    ) -> Self {
        let versions = VersionCache::new(Arc::clone(&store), CpuPool::default(), VERSION_BYTES);
        let started_at = clock.now();
        Self {
            store,
            vault,
            sender,
            mailer: Arc::new(NoMailer),
            clock,
            random,
            settings,
            versions,
            dispatcher: Dispatcher::default(),
            tokens: TokenCache::default(),
            metrics: Arc::new(Metrics::new(started_at)),
            started_at,
        }
    }

    /// Returns it counting in `metrics`.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Returns it sending mail by `mailer`.
    #[must_use]
    pub fn with_mailer(self, mailer: Arc<dyn Mailer>) -> Self {
        Self { mailer, ..self }
    }
}
