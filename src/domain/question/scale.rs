//! `rating` and `opinion_scale`: a whole number from a small range, whose values may have labels.

use std::ops::RangeInclusive;

use crate::domain::question::labels;
use crate::domain::question::number::Quantity;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

/// Parses a `rating`: from 1 to `max`, 5 by default.
pub(super) fn read_rating(fields: &mut Fields<'_, '_>) -> Quantity {
    let max = fields.integer("max", 2..=10);
    labelled(fields, 1..=max.unwrap_or(5))
}

/// Parses an `opinion_scale`: from `min`, 0 or 1, to `max`, 10 by default. `nps` requires the scale of the net promoter
/// score, 0 to 10.
pub(super) fn read_opinion(fields: &mut Fields<'_, '_>) -> Quantity {
    let nps = fields.flag("nps");
    let min = fields.integer("min", 0..=1);
    let max = fields.integer("max", 2..=10);
    let range = min.unwrap_or(0)..=max.unwrap_or(10);
    if nps == Some(true) && range != (0..=10) {
        fields.refuse(
            "nps",
            Rule::InvalidRange,
            "`nps` asks on a scale from 0 to 10; leave out `min` and `max`",
        );
    }
    labelled(fields, range)
}

fn labelled(fields: &mut Fields<'_, '_>, range: RangeInclusive<i64>) -> Quantity {
    let values: Vec<_> = range.clone().map(|number| number.to_string()).collect();
    labels::check(fields, &values);
    Quantity::whole(range)
}
