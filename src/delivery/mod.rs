//! Carrying out deliveries: load what is due, render, count the attempt, send, record. The only module that calls other
//! servers on behalf of forms.
//!
//! ```text
//!  scheduler   which queue is next, and how many sends it may begin
//!  runner      the loop: load, begin, send, finish, each as a task
//!  steps       the tasks that use the store
//!  decide      from due deliveries to bodies
//!  attempt     from a body to an outcome
//!  send, guard, report      requests to other servers
//!  csv_file    files below the folder of exports
//!  throttle    how often respondents get mail
//!  mail        messages to the operator's mail server
//! ```

mod attempt;
mod csv_file;
mod decide;
mod guard;
pub mod mail;
mod report;
mod runner;
mod scheduler;
mod send;
mod send_test;
mod steps;
mod throttle;
mod versions;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use self::mail::{Mailer, NoMailer};
use self::throttle::Throttle;
use self::versions::VersionCache;
use crate::clock::Clock;
use crate::domain::delivery::attempt::SendReport;
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::outbound::HttpRequest;
use crate::id::Random;
use crate::store::Store;
use crate::vault::Vault;

pub use guard::{Lookup, SystemLookup};
pub use send::{HttpSender, SendLimits};

/// The operator's settings of deliveries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliverySettings {
    pub policy: AddressPolicy,
    /// Waits between attempts in milliseconds, instead of each kind's own.
    pub retry_schedule: Option<Vec<i64>>,
    /// The folder of CSV files.
    pub exports: PathBuf,
}

/// Sends requests to other servers.
#[async_trait]
pub trait Sender: Send + Sync {
    /// Sends `request`, within 15 seconds.
    async fn send(&self, request: &HttpRequest) -> SendReport;
}

/// Carries out deliveries.
pub struct DeliveryService {
    store: Arc<dyn Store>,
    pub vault: Vault,
    sender: Arc<dyn Sender>,
    mailer: Arc<dyn Mailer>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    pub settings: DeliverySettings,
    versions: VersionCache,
    throttle: Throttle,
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
        let versions = versions::new_cache();
        let mailer = Arc::new(NoMailer);
        let throttle = Throttle::default();
        Self { store, vault, sender, mailer, clock, random, settings, versions, throttle }
    }

    /// Returns it sending mail by `mailer`.
    #[must_use]
    pub fn with_mailer(self, mailer: Arc<dyn Mailer>) -> Self {
        Self { mailer, ..self }
    }
}
