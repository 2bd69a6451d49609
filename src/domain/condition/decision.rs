//! The value of a condition, and whether it depends on an invalid answer, which has to change.

use std::ops::Not;

/// The value of a condition, and whether it is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether the condition holds with the current answers.
    pub holds: bool,
    /// A question with an invalid answer that the value depends on; a corrected answer may change the value.
    pub refused: Option<&'a str>,
}

impl Decision<'_> {
    /// A decision that depends on no invalid answer.
    pub fn certain(holds: bool) -> Self {
        Self { holds, refused: None }
    }

    /// The conjunction. A certain `false` decides it, at any position.
    pub fn all(decisions: impl IntoIterator<Item = Self>) -> Self {
        let mut outcome = Self::certain(true);
        for decision in decisions {
            if decision == Self::certain(false) {
                return decision;
            }
            outcome.holds &= decision.holds;
            outcome.refused = outcome.refused.or(decision.refused);
        }
        outcome
    }

    /// The disjunction. A certain `true` decides it, at any position.
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
