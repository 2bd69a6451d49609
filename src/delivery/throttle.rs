//! How often mail goes to respondents, whose addresses anybody may have typed: so that nobody can flood a mailbox with the
//! help of a form.
//!
//! Kept in memory: a restart forgets it.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::clock::{DAY_MILLIS, Timestamp};
use crate::id::{DeliveryId, FormId};

/// Confirmations of a form within an hour.
const MAX_PER_HOUR: u32 = 500;

const HOUR_MILLIS: i64 = 3_600_000;

/// Respondents that are remembered, in all; beyond that, others get no confirmation.
const MAX_RESPONDENTS: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Which delivery went to a respondent, and when.
    respondents: HashMap<(FormId, u64), (DeliveryId, Timestamp)>,
    /// When the hour of a form began, and the confirmations since.
    hours: HashMap<FormId, (Timestamp, u32)>,
}

impl Throttle {
    /// Whether `delivery` may go to `address`: the only one of its form in a day. The same delivery may go again.
    pub(super) fn admits(&self, form: FormId, address: &str, delivery: DeliveryId, now: Timestamp) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let respondents = &mut state.respondents;
        if respondents.len() >= MAX_RESPONDENTS {
            respondents.retain(|_, (_, at)| now.millis() - at.millis() < DAY_MILLIS);
        }
        let is_full = respondents.len() >= MAX_RESPONDENTS;
        let mut hasher = DefaultHasher::new();
        address.to_lowercase().hash(&mut hasher);
        match respondents.entry((form, hasher.finish())) {
            Entry::Occupied(mut entry) => {
                let (earlier, at) = *entry.get();
                if earlier != delivery && now.millis() - at.millis() < DAY_MILLIS {
                    return false;
                }
                entry.insert((delivery, now));
                true
            }
            Entry::Vacant(_) if is_full => false,
            Entry::Vacant(entry) => {
                entry.insert((delivery, now));
                true
            }
        }
    }

    /// Counts a confirmation of `form`; returns the wait in milliseconds if it has sent as many as it may within the hour.
    pub(super) fn wait(&self, form: FormId, now: Timestamp) -> Option<i64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |since: Timestamp| now.millis() - since.millis();
        state.hours.retain(|_, (since, _)| age(*since) < HOUR_MILLIS);
        let (since, count) = state.hours.entry(form).or_insert((now, 0));
        if *count >= MAX_PER_HOUR {
            return Some(HOUR_MILLIS - age(*since));
        }
        *count += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{HOUR_MILLIS, MAX_PER_HOUR, Throttle};
    use crate::clock::{DAY_MILLIS, Timestamp};
    use crate::id::{DeliveryId, EventId, FormId, IntegrationId};

    fn delivery(number: u64) -> DeliveryId {
        DeliveryId::of(EventId::ZERO, IntegrationId::from_bytes(number.to_be_bytes()))
    }

    #[test]
    fn a_respondent_gets_one_confirmation_a_day() {
        let (throttle, form, at) = (Throttle::default(), FormId::ZERO, Timestamp::from_millis);
        assert!(throttle.admits(form, "ann@example.com", delivery(1), at(0)));
        assert!(throttle.admits(form, "ann@example.com", delivery(1), at(1)), "the same again");
        assert!(!throttle.admits(form, "Ann@Example.com", delivery(2), at(2)));
        assert!(throttle.admits(form, "bea@example.com", delivery(3), at(2)));
        assert!(throttle.admits(form, "ann@example.com", delivery(4), at(1 + DAY_MILLIS)));
    }

    #[test]
    fn a_form_sends_so_many_an_hour() {
        let (throttle, form, at) = (Throttle::default(), FormId::ZERO, Timestamp::from_millis);
        assert!((0..MAX_PER_HOUR).all(|_| throttle.wait(form, at(0)).is_none()));
        assert_eq!(throttle.wait(form, at(1_000)), Some(HOUR_MILLIS - 1_000));
        assert_eq!(throttle.wait(form, at(HOUR_MILLIS)), None);
    }
}
