//! Counts of moments by hour, day, month or year: the finest unit that their span allows.

use std::collections::BTreeMap;
use std::mem::take;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::{DAY_MILLIS, Timestamp};

/// Counts by time, in UTC. Times without any are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// What a point counts: `hour` if all lie within 48 hours, `day` within 2 years, `month` within 20 years, else `year`.
    pub unit: String,
    /// Oldest first.
    pub points: Vec<Point>,
}

/// The count of one unit of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Point {
    /// Such as `2026-05-01T09:00Z`, `2026-05-01`, `2026-05` or `2026`; an hour of the day is like `09:00`.
    pub at: String,
    pub count: u64,
}

/// The units: their names, the characters of a [`Timestamp`] that name one, and the most days that are counted by it.
const UNITS: [(&str, usize, i64); 4] =
    [("hour", 13, 2), ("day", 10, 731), ("month", 7, 7_305), ("year", 4, 10_000_000)];

pub(super) const HOUR: usize = 0;
pub(super) const DAY: usize = 1;

/// A [`Timeline`] in the making.
#[derive(Debug, Default)]
pub(super) struct TimeCounts {
    /// Index into [`UNITS`].
    unit: usize,
    /// By the beginning of the text of the moment.
    counts: BTreeMap<String, u64>,
    /// The first and the last moment.
    span: Option<(i64, i64)>,
}

impl TimeCounts {
    /// Counts by `unit`, an index into [`UNITS`], or by a coarser one if the span asks for it.
    pub(super) fn by(unit: usize) -> Self {
        Self { unit, ..Self::default() }
    }

    /// Counts a moment in milliseconds since 1970.
    pub(super) fn add(&mut self, millis: i64) {
        let (first, last) = self.span.unwrap_or((millis, millis));
        let (first, last) = (first.min(millis), last.max(millis));
        self.span = Some((first, last));
        while last - first > UNITS[self.unit].2 * DAY_MILLIS {
            self.unit += 1;
            take(&mut self.counts).into_iter().for_each(|(at, count)| self.count(at, count));
        }
        self.count(Timestamp::from_millis(millis).to_string(), 1);
    }

    fn count(&mut self, mut at: String, count: u64) {
        at.truncate(UNITS[self.unit].1);
        *self.counts.entry(at).or_default() += count;
    }

    /// Returns the counts; of the hours of a day if the moments are `times` of day.
    pub(super) fn finish(self, times: bool) -> Timeline {
        // Without a moment, the unit is of no meaning.
        let unit = if self.counts.is_empty() { DAY } else { self.unit };
        let point = |(at, count): (String, u64)| match at.split_once('T') {
            Some((_, hour)) if times => Point { at: format!("{hour}:00"), count },
            Some(_) => Point { at: format!("{at}:00Z"), count },
            None => Point { at, count },
        };
        Timeline { unit: UNITS[unit].0.to_owned(), points: self.counts.into_iter().map(point).collect() }
    }
}
