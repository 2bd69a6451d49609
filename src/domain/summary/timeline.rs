//! Counts of moments by hour, day, month or year: the finest unit that their span allows.

use std::collections::BTreeMap;
use std::mem::take;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::{DAY_MILLIS, Timestamp};

/// Counts by time, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// The period of a point: `hour` if all lie within 48 hours, `day` within 2 years, `month` within 20 years, else `year`.
    pub unit: String,
    /// The counts of times that have one, such as `2026-05-01T09`, `2026-05-01`, `2026-05` and `2026`; of hours of the day, `09`.
    pub points: BTreeMap<String, u64>,
    /// The first and the last moment.
    #[serde(skip)]
    pub(super) span: Option<(Timestamp, Timestamp)>,
}

/// The units: their names, the characters of a [`Timestamp`] that name one, and the most days that are counted by it.
const UNITS: [(&str, usize, i64); 4] =
    [("hour", 13, 2), ("day", 10, 731), ("month", 7, 7_305), ("year", 4, 10_000_000)];

impl Timeline {
    /// Creates counts by `unit`, or by a coarser one if the span asks for it.
    pub(super) fn by(unit: &str) -> Self {
        Self { unit: unit.to_owned(), points: BTreeMap::new(), span: None }
    }

    pub(super) fn add(&mut self, moment: Timestamp) {
        let (first, last) = self.span.unwrap_or((moment, moment));
        let (first, last) = (first.min(moment), last.max(moment));
        self.span = Some((first, last));
        let span = last.millis() - first.millis();
        let place = UNITS.iter().position(|(name, ..)| *name == self.unit).unwrap_or_default();
        let fits = |(_, _, days): &&(&str, usize, i64)| span <= days * DAY_MILLIS;
        let (unit, length, _) = UNITS[place..].iter().find(fits).expect("years have no end");
        // Earlier counts are regrouped only if the unit has changed.
        let counted = if self.unit == *unit { BTreeMap::new() } else { take(&mut self.points) };
        self.unit = (*unit).to_owned();
        for (mut at, count) in counted.into_iter().chain([(moment.to_string(), 1)]) {
            at.truncate(*length);
            *self.points.entry(at).or_default() += count;
        }
    }
}
