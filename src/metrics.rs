//! Counters and figures of the server, in the text format of Prometheus, version 0.0.4.
//!
//! Counting a request takes two look-ups and a few atomic additions; figures that others keep, such as sizes, are set when
//! they are read. No label has a form, an id or an address, so that the number of series is bounded.

use std::sync::{Mutex, PoisonError};

use prometheus::core::Collector;
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry,
    TextEncoder,
};

use crate::clock::Timestamp;
use crate::process::process_usage;

/// Upper bounds of times in seconds.
const SECONDS: &[f64] = &[0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Upper bounds of the operations in a group, which has at most 512 and a slice of a job.
const OPERATIONS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 513.0];

/// The metrics of a server, as `docs/operating.md` describes them.
pub struct Metrics {
    registry: Registry,
    pub requests: IntCounterVec,
    pub request_duration: HistogramVec,
    pub connections: Gauge,
    pub submissions: IntCounterVec,
    pub group_operations: Histogram,
    pub sync_duration: Histogram,
    pub journal_bytes: Gauge,
    pub index_bytes: Gauge,
    pub free_bytes: Gauge,
    pub verified: Gauge,
    pub compactions: Counter,
    pub deliveries: IntCounterVec,
    pub delivery_duration: Histogram,
    pub deliveries_pending: GaugeVec,
    pub oldest_due: Gauge,
    pub integrations_paused: Gauge,
    resident_bytes: Gauge,
    open_files: Gauge,
    cpu: Counter,
    /// Held while the metrics are rendered: two at once would both add the CPU time since the last.
    rendering: Mutex<()>,
}

impl Metrics {
    /// Creates the metrics of a server that began at `started`.
    pub fn new(started: Timestamp) -> Self {
        let new = Registrar(Registry::new());
        let version = Opts::new("forms_build_info", "Version of the server");
        new.add(Gauge::with_opts(version.const_label("version", env!("CARGO_PKG_VERSION")))).set(1.0);
        let start = new.gauge("process_start_time_seconds", "Start of the server, since 1970");
        start.set(started.millis() as f64 / 1_000.0);
        Self {
            requests: new.counters("forms_http_requests_total", "Requests", &["route", "method", "status"]),
            request_duration: new.add(HistogramVec::new(
                buckets(
                    "forms_http_request_duration_seconds",
                    "Time until the head of the response",
                    SECONDS,
                ),
                &["route"],
            )),
            connections: new.gauge("forms_http_connections", "Open connections"),
            submissions: new.counters("forms_submissions_total", "Submissions sent", &["result"]),
            group_operations: new.histogram("forms_store_group_operations", "Writes per sync", OPERATIONS),
            sync_duration: new.histogram("forms_store_sync_duration_seconds", "Time of a sync", SECONDS),
            journal_bytes: new.gauge("forms_store_journal_bytes", "Size of the journal"),
            index_bytes: new.gauge("forms_store_index_bytes", "Size of the index"),
            free_bytes: new.gauge(
                "forms_store_free_bytes",
                "Free space on the disk of the store; not a number if it is a database",
            ),
            verified: new.gauge(
                "forms_store_verified_timestamp_seconds",
                "When the store was last verified; 0 before",
            ),
            compactions: new.add(Counter::new("forms_store_compactions_total", "Compactions of the journal")),
            deliveries: new.counters("forms_deliveries_total", "Ended attempts", &["type", "result"]),
            delivery_duration: new.histogram(
                "forms_delivery_duration_seconds",
                "Time of an attempt",
                SECONDS,
            ),
            deliveries_pending: new.add(GaugeVec::new(
                Opts::new("forms_deliveries_pending", "Deliveries that wait or are in progress"),
                &["type"],
            )),
            oldest_due: new.gauge("forms_deliveries_oldest_due_seconds", "Delay of the oldest delivery"),
            integrations_paused: new.gauge("forms_integrations_paused", "Integrations paused by the server"),
            resident_bytes: new.gauge("process_resident_memory_bytes", "Memory in use"),
            open_files: new.gauge("process_open_fds", "Open files"),
            cpu: new.add(Counter::new("process_cpu_seconds_total", "CPU time")),
            rendering: Mutex::default(),
            registry: new.0,
        }
    }

    /// Returns all metrics as text. Memory and open files are 0 where there is no `/proc`.
    pub fn render(&self) -> String {
        let _one_at_a_time = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = process_usage();
        self.resident_bytes.set(usage.resident_bytes as f64);
        self.open_files.set(usage.open_files as f64);
        self.cpu.inc_by((usage.cpu.as_secs_f64() - self.cpu.get()).max(0.0));
        TextEncoder::new().encode_to_string(&self.registry.gather()).expect("every metric is valid")
    }
}

fn buckets(name: &str, help: &str, bounds: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).buckets(bounds.into())
}

/// Creates metrics in a registry.
struct Registrar(Registry);

impl Registrar {
    fn add<C: Collector + Clone + 'static>(&self, created: prometheus::Result<C>) -> C {
        let metric = created.expect("names and labels are valid");
        self.0.register(Box::new(metric.clone())).expect("each name is used once");
        metric
    }

    fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Histogram {
        self.add(Histogram::with_opts(buckets(name, help, bounds)))
    }
}
