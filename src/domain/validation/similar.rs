//! Suggestions for misspelt names.

/// Maximum characters of a text that is compared with names: comparing takes quadratic time.
const MAX_CHARACTERS: usize = 40;

/// Maximum names that are suggested.
pub const MAX_ALLOWED: usize = 20;

/// Returns the name most similar to `written`: at an edit distance of at most 1, plus 1 for every four characters, and
/// less than half of its length.
pub fn similar<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    let distances = names.into_iter().filter_map(|name| Some((distance(written, length, name)?, name)));
    distances.min().map(|(_, name)| name)
}

/// Returns at most [`MAX_ALLOWED`] of `names`: those [`similar`] to `written`, most similar first, then the others in
/// order.
pub fn nearest_first<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let length = written.chars().count();
    let distances =
        names.into_iter().map(|name| (distance(written, length, name).unwrap_or(usize::MAX), name));
    let mut names: Vec<_> = distances.collect();
    names.sort_by_key(|(distance, _)| *distance);
    names.into_iter().take(MAX_ALLOWED).map(|(_, name)| name.to_owned()).collect()
}

/// Returns the edit distance between `written`, which has `length` characters, and `name`; `None` if they are not similar.
fn distance(written: &str, length: usize, name: &str) -> Option<usize> {
    let is_near = |distance: usize| distance <= 1 + length / 4 && distance * 2 < length;
    // The difference in length is cheap to compute, and a lower bound of the distance.
    if length > MAX_CHARACTERS || !is_near(name.chars().count().abs_diff(length)) {
        return None;
    }
    Some(strsim::osa_distance(written, name)).filter(|distance| is_near(*distance))
}
