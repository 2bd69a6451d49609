//! Which question of one definition is which of another, and which of them have moved.

use crate::domain::json::Value;

/// Returns for each question of `after` the place in `before` of the one that it is: that with its id; with an id that it
/// `was`; of those without an id, one with the same type and title, or else the next one of its type.
pub(super) fn match_questions(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut matches = vec![None; after.len()];
    let is_in = |id: &Value, list: &[Value]| list.iter().any(|question| question.get("id") == Some(id));
    let find = |matches: &[Option<usize>], is_match: &dyn Fn(&Value) -> bool| {
        let free = |place: &usize| !matches.contains(&Some(*place));
        (0..before.len()).find(|place| free(place) && is_match(&before[*place]))
    };
    for (place, new) in after.iter().enumerate() {
        let Some(id) = new.get("id") else { continue };
        matches[place] = find(&matches, &|old| old.get("id") == Some(id));
        // An earlier id is that of a rename only if no question has it any more.
        for was in earlier_ids(new).iter().filter(|was| !is_in(was, after)) {
            matches[place] = matches[place].or_else(|| find(&matches, &|old| old.get("id") == Some(was)));
        }
    }
    for members in [&["type", "title"][..], &["type"]] {
        for (place, new) in after.iter().enumerate() {
            let is_same = |old: &Value| members.iter().all(|name| old.get(name) == new.get(name));
            if matches[place].is_none() && new.get("id").is_none() {
                matches[place] = find(&matches, &|old| old.get("id").is_none() && is_same(old));
            }
        }
    }
    matches
}

/// Returns the ids that a question had before.
pub(super) fn earlier_ids(question: &Value) -> Vec<Value> {
    match question.get("was") {
        Some(Value::Array(ids)) => ids.clone(),
        id => id.cloned().into_iter().collect(),
    }
}

/// Returns for each item whether it has moved, given the earlier places of all: the fewest that explain the new order.
pub(super) fn moved(matches: &[Option<usize>]) -> Vec<bool> {
    let kept: Vec<usize> = matches.iter().copied().flatten().collect();
    let stayed = longest_increasing(&kept);
    matches.iter().map(|place| place.is_some_and(|place| !stayed.contains(&place))).collect()
}

/// Returns a longest increasing subsequence of `places`, whose items are distinct.
fn longest_increasing(places: &[usize]) -> Vec<usize> {
    // For each length, the index of the smallest last item of such a subsequence; and the item before each.
    let (mut ends, mut previous): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (index, place) in places.iter().enumerate() {
        let length = ends.partition_point(|end| places[*end] < *place);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    std::iter::successors(ends.last().copied(), |end| previous[*end]).map(|end| places[end]).collect()
}

/// Gives the questions of `after` that have no id that of the one in `before` with the same type and title, so that a file
/// without ids can be applied again. Returns the places of those that may be changed ones: there is nothing to tell which.
pub(super) fn adopt_ids(before: &[Value], after: &mut [Value]) -> Vec<usize> {
    let takes_answer = |question: &Value| !is_display_only(question);
    let named: Vec<_> = after.iter().filter_map(|question| question.get("id").cloned()).collect();
    let earlier: Vec<_> = after.iter().flat_map(earlier_ids).collect();
    let is_claimed = |id: &Value| named.contains(id) || earlier.contains(id);
    let mut free: Vec<_> =
        before.iter().filter(|old| old.get("id").is_some_and(|id| !is_claimed(id))).collect();
    let mut unnamed = Vec::new();
    for (place, new) in after.iter_mut().enumerate() {
        if new.get("id").is_some() || !takes_answer(new) {
            continue;
        }
        let is_same = |old: &&Value| ["type", "title"].iter().all(|name| old.get(name) == new.get(name));
        match free.iter().position(is_same) {
            Some(found) => {
                let id = free.remove(found).get("id").cloned().unwrap_or(Value::Null);
                new.set(&["id"], id);
            }
            None => unnamed.push(place),
        }
    }
    // One with another type and another title is a new one.
    unnamed.retain(|place| {
        let is_near =
            |old: &&Value| ["type", "title"].iter().any(|name| old.get(name) == after[*place].get(name));
        free.iter().any(is_near)
    });
    unnamed
}

fn is_display_only(question: &Value) -> bool {
    matches!(question.get("type").and_then(Value::as_str), Some("page" | "statement"))
}
