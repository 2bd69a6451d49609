//! Statistics of numbers: sums, and quantiles as long as the different numbers fit in memory.

use std::collections::HashMap;
use std::iter::repeat_n;

use super::report::{AnswerSummary, Bin};

/// Bytes that an entry takes.
const ENTRY: usize = 48;

/// The number of intervals, and the most numbers that are counted one by one.
const BINS: usize = 10;

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

    pub(super) fn mean(&self) -> Option<f64> {
        Some((self.sum + self.error) / self.count as f64).filter(|mean| mean.is_finite())
    }

    /// Returns the median, if it is known.
    pub(super) fn median(&self) -> Option<f64> {
        let sorted = self.sorted();
        let all = || sorted.iter().flat_map(|&(number, count)| repeat_n(number / 2.0, count as usize));
        Some(all().nth(self.count.checked_sub(1)? as usize / 2)? + all().nth(self.count as usize / 2)?)
    }

    pub(super) fn finish(self) -> AnswerSummary {
        let (mean, median, (min, max)) = (self.mean(), self.median(), self.range.unzip());
        AnswerSummary::Number { min, max, mean, median, bins: self.bins() }
    }

    /// Returns the different numbers with their counts, none if there are too many.
    fn sorted(&self) -> Vec<(f64, u64)> {
        let counts = self.counts.iter().filter(|_| self.counts.len() <= self.max_distinct);
        let mut sorted: Vec<_> = counts.map(|(bits, count)| (f64::from_bits(*bits), *count)).collect();
        sorted.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        sorted
    }

    /// Counts the numbers by intervals of the same width, or by number if they are few.
    fn bins(&self) -> Vec<Bin> {
        let mut rest = &*self.sorted();
        if rest.len() <= BINS {
            return rest.iter().map(|&(number, count)| Bin { from: number, to: number, count }).collect();
        }
        let (first, last) = (rest[0].0, rest[rest.len() - 1].0);
        let bound = |place: usize| first + (last - first) * place as f64 / BINS as f64;
        let bin = |place| {
            let (from, to) = (bound(place), if place + 1 < BINS { bound(place + 1) } else { last });
            let end = rest.partition_point(|(number, _)| *number < to || place + 1 == BINS);
            let (within, later) = rest.split_at(end);
            rest = later;
            Bin { from, to, count: within.iter().map(|(_, count)| count).sum() }
        };
        // Of the largest numbers there are, the span is none.
        (0..BINS).filter(|_| (last - first).is_finite()).map(bin).collect()
    }
}
