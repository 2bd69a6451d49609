//! Conditions as logic, and as form files have them.

use crate::domain::json::{Object, Value};

/// When a question is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Logic {
    Always,
    Never,
    /// The answer to a question, compared by an operator of conditions.
    Test(String, &'static str, Value),
    All(Vec<Logic>),
    Any(Vec<Logic>),
    Not(Box<Logic>),
}

use Logic::{All, Always, Any, Never, Not, Test};

impl Logic {
    pub(super) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::combine(parts, true)
    }

    pub(super) fn any(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::combine(parts, false)
    }

    fn combine(parts: impl IntoIterator<Item = Self>, is_all: bool) -> Self {
        let (neutral, absorbing) = if is_all { (Always, Never) } else { (Never, Always) };
        let mut kept: Vec<Self> = Vec::new();
        for part in parts {
            let flat = match part {
                All(inner) if is_all => inner,
                Any(inner) if !is_all => inner,
                other => vec![other],
            };
            for part in flat {
                if part != neutral && !kept.contains(&part) {
                    kept.push(part);
                }
            }
        }
        match kept.len() {
            _ if kept.contains(&absorbing) => absorbing,
            0 => neutral,
            1 => kept.remove(0),
            _ if is_all => All(kept),
            _ => Any(kept),
        }
    }

    /// Returns the opposite, of equality without `not`.
    pub(super) fn negate(self) -> Self {
        let is_equality = |part: &Self| matches!(part, Test(_, "eq" | "ne", _));
        match self {
            Always => Never,
            Never => Always,
            Not(inner) => *inner,
            Test(id, "eq", value) => Test(id, "ne", value),
            Test(id, "ne", value) => Test(id, "eq", value),
            Test(id, "answered", value) => Test(id, "answered", (value != true.into()).into()),
            Any(parts) => Self::all(parts.into_iter().map(Self::negate)),
            All(parts) if parts.iter().all(is_equality) => Self::any(parts.into_iter().map(Self::negate)),
            other => Not(Box::new(other)),
        }
    }

    /// Whether it holds only if `id` was answered.
    pub(super) fn needs_answer(&self, id: &str) -> bool {
        match self {
            Test(tested, operator, value) => {
                tested == id && !matches!((*operator, value), ("ne", _) | ("answered", Value::Bool(false)))
            }
            All(parts) => parts.iter().any(|part| part.needs_answer(id)),
            Any(parts) => parts.iter().all(|part| part.needs_answer(id)),
            Always | Never | Not(_) => false,
        }
    }

    /// Returns the parts that must all hold.
    pub(super) fn conjuncts(&self) -> &[Self] {
        match self {
            All(parts) => parts,
            Always => &[],
            other => std::slice::from_ref(other),
        }
    }

    /// Returns the number of its tests, and how deeply they are nested.
    pub(super) fn size(&self) -> (usize, usize) {
        let parts = match self {
            All(parts) | Any(parts) => parts.as_slice(),
            Not(inner) => std::slice::from_ref(&**inner),
            Always | Never | Test(..) => return (1, 1),
        };
        let sizes = parts.iter().map(Self::size);
        sizes.fold((0, 1), |(count, depth), (more, below)| (count + more, depth.max(below + 1)))
    }

    /// Returns the members of the condition in a form; none if it holds always or never.
    pub(super) fn members(&self) -> Object {
        match self {
            Always | Never => Object::new(),
            Test(id, "eq", value) => vec![(id.clone(), value.clone())],
            Test(id, operator, value) => {
                vec![(id.clone(), Value::Object(vec![((*operator).to_owned(), value.clone())]))]
            }
            Not(inner) => vec![("not".to_owned(), Value::Object(inner.members()))],
            Any(parts) => one_of(parts).unwrap_or_else(|| vec![("any".to_owned(), list(parts))]),
            All(parts) => {
                let mut members = Object::new();
                let is_merged =
                    parts.iter().flat_map(Self::members).all(|member| merge(&mut members, member));
                if is_merged { members } else { vec![("all".to_owned(), list(parts))] }
            }
        }
    }
}

fn list(parts: &[Logic]) -> Value {
    Value::Array(parts.iter().map(|part| Value::Object(part.members())).collect())
}

/// Returns alternative values of one answer as a list.
fn one_of(parts: &[Logic]) -> Option<Object> {
    let Test(id, ..) = parts.first()? else { return None };
    let value = |part: &Logic| match part {
        Test(tested, "eq", value) if tested == id => Some(value.clone()),
        _ => None,
    };
    let values = parts.iter().map(value).collect::<Option<Vec<_>>>()?;
    Some(vec![(id.clone(), Value::Array(values))])
}

/// Adds a member, to the operators on the same answer if there are any. Returns whether that is possible.
fn merge(members: &mut Object, (key, value): (String, Value)) -> bool {
    match (members.iter_mut().find(|(known, _)| *known == key), value) {
        (None, value) => members.push((key, value)),
        (Some((_, Value::Object(known))), Value::Object(more)) if key != "not" => {
            if more.iter().any(|(name, _)| known.iter().any(|(other, _)| other == name)) {
                return false;
            }
            known.extend(more);
        }
        _ => return false,
    }
    true
}
