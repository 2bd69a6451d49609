//! Latencies of many requests, and their statistics.

use std::time::Duration;

/// Latencies of the requests of one measurement, and its duration.
#[derive(Default)]
pub(crate) struct Samples {
    sorted: Vec<Duration>,
    elapsed: Duration,
}

impl Samples {
    /// `latencies` in any order, measured within `elapsed`.
    pub(crate) fn new(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        Self { sorted: latencies, elapsed }
    }

    /// Adds another measurement, made after this one.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.sorted.append(&mut other.sorted);
        self.sorted.sort_unstable();
        self.elapsed += other.elapsed;
    }

    /// Number of completed requests.
    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Duration of the measurement.
    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.sorted.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `share` of the requests, 0 to 1, did not exceed, in milliseconds; NaN if
    /// there are none.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let position = (last as f64 * share).round() as usize;
        self.sorted.get(position).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// The median of `values`; NaN if there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}
