//! What the server counts about itself, in the text format of Prometheus, version 0.0.4.
//!
//! Counting a request takes two look-ups and a few atomic additions; figures that others keep, such as sizes, are set when
//! they are read. No label has a form, an id or an address, so that the number of series is bounded.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Counter, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

use crate::clock::Timestamp;
use crate::process::process_usage;

/// Upper bounds of the time of a request, in seconds.
const REQUEST_SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];

/// Upper bounds of the time of a sync, in seconds.
const SYNC_SECONDS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0];

/// Upper bounds of the time of an attempt, in seconds: one takes at most 15, of a mail 30.
const DELIVERY_SECONDS: &[f64] = &[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 15.0, 30.0];

/// Upper bounds of the operations in a group, which has at most 512 and a slice of a job.
const GROUP_OPERATIONS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 513.0];

/// The metrics of a server.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    request_duration: HistogramVec,
    connections: IntGauge,
    submissions: IntCounterVec,
    group_operations: Histogram,
    sync_duration: Histogram,
    journal_bytes: IntGauge,
    index_bytes: IntGauge,
    free_bytes: IntGauge,
    compactions: IntCounter,
    deliveries: IntCounterVec,
    delivery_duration: Histogram,
    deliveries_pending: IntGaugeVec,
    oldest_due: Gauge,
    integrations_paused: IntGauge,
    resident_bytes: IntGauge,
    open_files: IntGauge,
    cpu_seconds: Counter,
    /// Held while the metrics are rendered: two at once would both add the CPU time since the last.
    rendering: Mutex<()>,
}

/// Disk space of the store in bytes.
#[derive(Debug, Clone, Copy)]
pub struct StoreBytes {
    pub journal: u64,
    pub index: u64,
    pub free: u64,
}

impl Metrics {
    /// Creates the metrics of a process that began at `started`.
    pub fn new(started: Timestamp) -> Self {
        let registry = Registry::new();
        let set = Registrar(&registry);
        let start = set.gauge("process_start_time_seconds", "Start of the server, in seconds since 1970");
        start.set(started.millis() as f64 / 1_000.0);
        let version = Opts::new("forms_build_info", "The version of the server, with the value 1");
        let version = version.const_label("version", env!("CARGO_PKG_VERSION"));
        add(&registry, IntGauge::with_opts(version)).set(1);
        Self {
            requests: set.counters(
                "forms_http_requests_total",
                "Requests by route template, method and status",
                &["route", "method", "status"],
            ),
            request_duration: add(
                &registry,
                HistogramVec::new(
                    HistogramOpts::new(
                        "forms_http_request_duration_seconds",
                        "Time from the head of a request to that of its response",
                    )
                    .buckets(REQUEST_SECONDS.into()),
                    &["route"],
                ),
            ),
            connections: set.count("forms_http_connections", "Open connections"),
            submissions: set.counters(
                "forms_submissions_total",
                "Submissions sent, by result: accepted, replayed, rejected, or failed if the store is not available",
                &["result"],
            ),
            group_operations: set.histogram(
                "forms_store_group_operations",
                "Operations that one sync of the journal made durable",
                GROUP_OPERATIONS,
            ),
            sync_duration: set.histogram(
                "forms_store_sync_duration_seconds",
                "Time to write and sync a group",
                SYNC_SECONDS,
            ),
            journal_bytes: set.count("forms_store_journal_bytes", "Size of the journal"),
            index_bytes: set.count("forms_store_index_bytes", "Size of the index"),
            free_bytes: set.count("forms_store_free_bytes", "Bytes free on the disk of the store"),
            compactions: add(
                &registry,
                IntCounter::new("forms_store_compactions_total", "Compactions of the journal"),
            ),
            deliveries: set.counters(
                "forms_deliveries_total",
                "Attempts at deliveries, by type of integration and result: delivered, retried, dead, canceled or skipped",
                &["type", "result"],
            ),
            delivery_duration: set.histogram(
                "forms_delivery_duration_seconds",
                "Time of an attempt at a delivery",
                DELIVERY_SECONDS,
            ),
            deliveries_pending: add(
                &registry,
                IntGaugeVec::new(
                    Opts::new("forms_deliveries_pending", "Deliveries that wait for an attempt or are in one"),
                    &["type"],
                ),
            ),
            oldest_due: set.gauge(
                "forms_deliveries_oldest_due_seconds",
                "For how long the delivery that waits longest has been due; 0 if none is",
            ),
            integrations_paused: set.count(
                "forms_integrations_paused",
                "Integrations that the server has paused, because their receivers refuse deliveries",
            ),
            resident_bytes: set.count("process_resident_memory_bytes", "Memory in use"),
            open_files: set.count("process_open_fds", "Open files"),
            cpu_seconds: add(&registry, Counter::new("process_cpu_seconds_total", "CPU time")),
            rendering: Mutex::default(),
            registry,
        }
    }

    /// Counts a request to the route with the template `route`.
    pub fn count_request(&self, route: &str, method: &str, status: &str, took: Duration) {
        self.requests.with_label_values(&[route, method, status]).inc();
        self.request_duration.with_label_values(&[route]).observe(took.as_secs_f64());
    }

    /// Sets the number of open connections.
    pub fn set_connections(&self, open: usize) {
        self.connections.set(integer(open as u64));
    }

    pub fn count_compaction(&self) {
        self.compactions.inc();
    }

    /// Adds the series of a route, with zeros.
    pub fn add_route(&self, route: &str) {
        drop(self.requests.with_label_values(&[route, "GET", "200"]));
        drop(self.request_duration.with_label_values(&[route]));
    }

    /// Adds `count` submissions with a `result`; 0 adds the series.
    pub fn count_submissions(&self, result: &str, count: u64) {
        self.submissions.with_label_values(&[result]).inc_by(count);
    }

    /// Counts a group of operations that was written and synced within `took`.
    pub fn count_group(&self, operations: usize, took: Duration) {
        self.group_operations.observe(operations as f64);
        self.sync_duration.observe(took.as_secs_f64());
    }

    /// Adds `count` attempts at deliveries of a type of integration with a `result`; 0 adds the series.
    pub fn count_deliveries(&self, kind: &str, result: &str, count: u64) {
        self.deliveries.with_label_values(&[kind, result]).inc_by(count);
    }

    pub fn observe_delivery(&self, took: Duration) {
        self.delivery_duration.observe(took.as_secs_f64());
    }

    pub fn set_store(&self, bytes: StoreBytes) {
        let StoreBytes { journal, index, free } = bytes;
        for (gauge, bytes) in
            [(&self.journal_bytes, journal), (&self.index_bytes, index), (&self.free_bytes, free)]
        {
            gauge.set(integer(bytes));
        }
    }

    /// Sets how many deliveries of a type of integration wait.
    pub fn set_pending(&self, kind: &str, count: u64) {
        self.deliveries_pending.with_label_values(&[kind]).set(integer(count));
    }

    /// Sets for how long the oldest delivery has been due, and how many integrations are paused.
    pub fn set_queues(&self, oldest_due: Duration, paused: u64) {
        self.oldest_due.set(oldest_due.as_secs_f64());
        self.integrations_paused.set(integer(paused));
    }

    /// Returns all metrics as text. Those of the process are left at 0 where there is no `/proc`.
    pub fn render(&self) -> String {
        let _one_at_a_time = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = process_usage();
        self.resident_bytes.set(integer(usage.resident_bytes));
        self.open_files.set(integer(usage.open_files));
        self.cpu_seconds.inc_by((usage.cpu.as_secs_f64() - self.cpu_seconds.get()).max(0.0));
        TextEncoder::new().encode_to_string(&self.registry.gather()).expect("every metric is valid")
    }
}

fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Adds a metric to a registry.
fn add<C: Collector + Clone + 'static>(registry: &Registry, created: prometheus::Result<C>) -> C {
    let metric = created.expect("names and labels are valid");
    registry.register(Box::new(metric.clone())).expect("each name is used once");
    metric
}

/// Creates metrics in a registry.
struct Registrar<'a>(&'a Registry);

impl Registrar<'_> {
    fn count(&self, name: &str, help: &str) -> IntGauge {
        add(self.0, IntGauge::new(name, help))
    }

    fn gauge(&self, name: &str, help: &str) -> Gauge {
        add(self.0, Gauge::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        add(self.0, IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        add(self.0, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.into())))
    }
}
