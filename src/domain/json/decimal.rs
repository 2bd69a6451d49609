//! Exact decimal arithmetic: comparison and remainders of numbers as written, where an `f64` would round.

use std::cmp::Ordering;
use std::iter::repeat_n;

/// The exact value of a JSON number; equal values are equal however they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Significant digits, without leading or trailing zeros; empty for zero.
    digits: String,
    /// Power of ten of the last digit.
    power: i64,
}

impl Decimal {
    /// Parses `text`, a valid JSON number.
    pub(super) fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let kept = all.trim_end_matches('0');
        let digits = kept.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Self { negative: false, digits, power: 0 };
        }
        let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let power = exponent
            .parse::<i64>()
            .unwrap_or(beyond)
            .saturating_sub(fraction.len() as i64)
            .saturating_add((all.len() - kept.len()) as i64);
        Self { negative: text.starts_with('-'), digits, power }
    }

    pub fn is_integer(&self) -> bool {
        self.power >= 0
    }

    fn sign(&self) -> i8 {
        match (self.negative, self.digits.is_empty()) {
            (_, true) => 0,
            (true, false) => -1,
            (false, false) => 1,
        }
    }

    /// A sort key for nonzero values by magnitude: the power of the first digit, then the digits.
    fn magnitude(&self) -> (i64, &str) {
        (self.power.saturating_add(self.digits.len() as i64), &self.digits)
    }

    /// Returns the remainder of the value, in units of `10^unit`, divided by `by`; `None` if the value is not a whole
    /// number of units.
    fn remainder(&self, unit: i64, by: u64) -> Option<u64> {
        let zeros = usize::try_from(self.power.checked_sub(unit)?).ok()?;
        let digits = self.digits.bytes().chain(repeat_n(b'0', zeros));
        let by = u128::from(by);
        let rest = digits.fold(0, |rest, digit| (rest * 10 + u128::from(digit - b'0')) % by);
        let rest = if self.negative { (by - rest) % by } else { rest };
        u64::try_from(rest).ok()
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_size = || {
            if self.negative {
                other.magnitude().cmp(&self.magnitude())
            } else {
                self.magnitude().cmp(&other.magnitude())
            }
        };
        self.sign().cmp(&other.sign()).then_with(by_size)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An arithmetic sequence in both directions: `start`, `start + step`, `start - step`, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Power of ten of the unit that `step` and `start` are counted in.
    unit: i64,
    step: u64,
    /// The start modulo the step.
    start: u64,
}

impl Steps {
    /// Power of ten of the finest unit: bounds the work for one number.
    const FINEST: i64 = -30;

    /// Creates the sequence; `None` unless `step` is above 0, at most 19 decimal places separate it from `start`, and
    /// both have at most 30 decimal places.
    pub fn new(start: &Decimal, step: &Decimal) -> Option<Self> {
        let unit = start.power.min(step.power);
        if step.sign() != 1 || unit < Self::FINEST {
            return None;
        }
        let zeros = u32::try_from(step.power - unit).ok()?;
        let step = step.digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(zeros)?)?;
        Some(Self { unit, step, start: start.remainder(unit, step)? })
    }

    pub fn contains(&self, value: &Decimal) -> bool {
        value.remainder(self.unit, self.step) == Some(self.start)
    }

    /// Whether 0 is in the sequence, which then is that of the multiples of the step.
    pub fn contains_zero(&self) -> bool {
        self.start == 0
    }
}
