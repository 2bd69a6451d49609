//! What a condition comes to while some answers are refused, and will change: it holds, it does not, or that is open.

use std::ops::Not;

/// What a condition comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether it holds with the answers as they are.
    pub holds: bool,
    /// The question with a refused answer that it hangs on, if there is one: mended, it may come to something else.
    pub refused: Option<&'a str>,
}

impl Decision<'_> {
    /// One that hangs on no refused answer.
    pub fn sure(holds: bool) -> Self {
        Self { holds, refused: None }
    }

    /// Whether all hold. One that surely does not settles it, wherever it stands among them.
    pub fn all(decisions: impl IntoIterator<Item = Self>) -> Self {
        let mut outcome = Self::sure(true);
        for decision in decisions {
            if decision == Self::sure(false) {
                return decision;
            }
            outcome.holds &= decision.holds;
            outcome.refused = outcome.refused.or(decision.refused);
        }
        outcome
    }

    /// Whether one holds. One that surely does settles it.
    pub fn any(decisions: impl IntoIterator<Item = Self>) -> Self {
        !Self::all(decisions.into_iter().map(Not::not))
    }
}

impl Not for Decision<'_> {
    type Output = Self;

    fn not(self) -> Self {
        Self { holds: !self.holds, ..self }
    }
}
