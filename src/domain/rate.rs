//! Rates as text: `10/min`.

use std::fmt;
use std::str::FromStr;

use crate::domain::open_enum::named_enum;

/// A number of events per period: `10/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    pub per: Period,
}

impl Rate {
    /// Returns the milliseconds after which the event with this number is due, if the first has the number 0.
    pub fn offset_millis(self, number: u64) -> i64 {
        let millis = i128::from(number) * i128::from(self.per.millis()) / i128::from(self.count.max(1));
        i64::try_from(millis).unwrap_or(i64::MAX)
    }
}

named_enum! {
    /// The period of a [`Rate`].
    Period {
        Second = "s",
        Minute = "min",
        Hour = "h",
    }
}

impl Period {
    pub fn millis(self) -> i64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = text.split_once('/').and_then(|(count, period)| {
            let count = count.parse().ok().filter(|count| *count > 0)?;
            Some(Self { count, per: Period::parse(period)? })
        });
        rate.ok_or_else(|| format!("expected a rate such as 10/min, 5/s or 100/h, got `{text}`"))
    }
}
