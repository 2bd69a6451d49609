//! Statistics of numbers: sums, and quantiles as long as the different numbers fit in memory.

use std::collections::HashMap;

use super::report::{AnswerSummary, Bin};

/// Bytes that an entry takes.
const ENTRY: usize = 48;

/// The number of bins at which numbers are no longer counted one by one.
const MAX_BINS: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Numbers {
    count: u64,
    sum: f64,
    /// The rounding error of the sum (Neumaier's variant of Kahan's algorithm).
    error: f64,
    range: Option<(f64, f64)>,
    /// How often each number occurs, by its bits; one too many if there are more.
    counts: HashMap<u64, u64>,
    max_distinct: usize,
}

impl Numbers {
    pub(super) fn new(memory: usize) -> Self {
        Self { max_distinct: memory / ENTRY, ..Self::default() }
    }

    /// Counts a number; returns true.
    pub(super) fn add(&mut self, number: f64) -> bool {
        let sum = self.sum + number;
        let is_small = number.abs() < self.sum.abs();
        let (large, small) = if is_small { (self.sum, number) } else { (number, self.sum) };
        self.error += (large - sum) + small;
        self.sum = sum;
        self.count += 1;
        let (min, max) = self.range.unwrap_or((number, number));
        self.range = Some((min.min(number), max.max(number)));
        if self.counts.len() <= self.max_distinct {
            *self.counts.entry(number.to_bits()).or_default() += 1;
        }
        true
    }

    pub(super) fn finish(self) -> AnswerSummary {
        let is_complete = self.counts.len() <= self.max_distinct;
        let counts = self.counts.into_iter().filter(|_| is_complete);
        let mut sorted: Vec<_> = counts.map(|(bits, count)| (f64::from_bits(bits), count)).collect();
        sorted.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        let [p25, median, p75] = [0.25, 0.5, 0.75].map(|part| quantile(&sorted, part));
        let mean = Some((self.sum + self.error) / self.count as f64).filter(|mean| mean.is_finite());
        let (min, max) = self.range.unzip();
        AnswerSummary::Number { min, max, mean, median, p25, p75, bins: bins(&sorted) }
    }
}

/// Returns the `part` quantile of sorted numbers with their counts, interpolated between the two nearest: 0.5 is the median.
pub(super) fn quantile(sorted: &[(f64, u64)], part: f64) -> Option<f64> {
    let count: u64 = sorted.iter().map(|(_, count)| count).sum();
    let place = count.checked_sub(1)? as f64 * part;
    let at = |place: f64| {
        let mut passed = 0;
        let reached = |(_, count): &&(f64, u64)| {
            passed += count;
            passed > place as u64
        };
        sorted.iter().find(reached).map(|(number, _)| *number)
    };
    let (low, high) = (at(place.floor())?, at(place.ceil())?);
    Some(low + (high - low) * place.fract()).filter(|found| found.is_finite())
}

/// Counts sorted numbers by intervals with round bounds, or by number if they are few.
fn bins(sorted: &[(f64, u64)]) -> Vec<Bin> {
    if sorted.len() <= MAX_BINS {
        return sorted.iter().map(|&(number, count)| Bin { from: number, to: number, count }).collect();
    }
    let [min, max] = [0, sorted.len() - 1].map(|place| sorted[place].0);
    let width = (max - min) / (MAX_BINS - 1) as f64;
    let power = width.log10().floor();
    let scale = 10_f64.powf(power.abs());
    if !scale.is_finite() {
        return Vec::new();
    }
    // Divided where that is exact: 3 / 10 is 0.3, and 3 * 0.1 is not.
    let scaled = |number: f64| if power < 0.0 { number / scale } else { number * scale };
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| scaled(*step) >= width).unwrap_or(10.0);
    let first = (min / scaled(step)).floor() - 1.0;
    let (mut bins, mut rest) = (Vec::new(), sorted);
    for place in 0..MAX_BINS + 3 {
        let [from, to] = [0.0, 1.0].map(|next| scaled((first + place as f64 + next) * step));
        let (within, later) = rest.split_at(rest.partition_point(|(number, _)| *number < to));
        let count = within.iter().map(|(_, count)| count).sum();
        if count > 0 || !(bins.is_empty() || rest.is_empty()) {
            bins.push(Bin { from, to, count });
        }
        rest = later;
    }
    if rest.is_empty() { bins } else { Vec::new() }
}
