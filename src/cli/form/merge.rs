//! A form that two have changed at once: what the author has made of what they began with is kept, and what they left
//! alone is as others have made it meanwhile.

use crate::domain::json::{Object, Value};

/// A value as it was in the beginning, as the author has it, and as others have made it meanwhile.
type Three<'a> = [Option<&'a Value>; 3];

/// The form `base` with what has become of it as `mine` and, where that is as it was, as `theirs`.
///
/// Objects are merged member by member, and questions one by one: they are known by their ids, those without one by
/// all that they hold. What both have changed is mine.
pub(super) fn merge(base: &Value, mine: &Value, theirs: &Value) -> Value {
    members([base, mine, theirs].map(Some), |name, three| match name {
        "questions" => Some(questions(three)),
        "settings" => settings(three),
        _ => value(three),
    })
}

fn value(three: Three<'_>) -> Option<Value> {
    let [_, mine, theirs] = three;
    // As they are written: to their author `1.10` and `1.1` differ.
    let [was, is_mine, is_theirs] = three.map(|value| value.map(Value::to_string));
    match (mine, theirs) {
        _ if is_mine == was => theirs.cloned(),
        _ if is_theirs == was => mine.cloned(),
        (Some(Value::Object(_)), Some(Value::Object(_))) => Some(members(three, |_, three| value(three))),
        _ => mine.cloned(),
    }
}

/// An object of what `merge` makes of each member, in my order.
fn members(three: Three<'_>, merge: impl Fn(&str, Three<'_>) -> Option<Value>) -> Value {
    let [_, mine, theirs] = three.map(|object| match object {
        Some(Value::Object(members)) => &members[..],
        _ => &[],
    });
    let added = theirs.iter().filter(|(name, _)| !mine.iter().any(|(other, _)| other == name));
    let member = |(name, _): &(String, Value)| {
        let value = merge(name, three.map(|object| object?.get(name)))?;
        Some((name.clone(), value))
    };
    Value::Object(mine.iter().chain(added).filter_map(member).collect())
}

/// The settings: who has taken them all out has left alone those that others have added.
fn settings(three: Three<'_>) -> Option<Value> {
    let none = Value::Object(Object::new());
    let given = three.map(|settings| settings.filter(|settings| **settings != Value::Null).or(Some(&none)));
    value(given).filter(|settings| *settings != none)
}

fn questions(three: Three<'_>) -> Value {
    let [base, mine, theirs] = three.map(Questions::of);
    let is_moved = mine.common(&base) != base.common(&mine);
    let order = if is_moved { mine.with(&theirs) } else { theirs.with(&mine) };
    let question = |key: &&str| match [&base, &mine, &theirs].map(|questions| questions.get(key)) {
        // Two questions that happen to have the same id.
        [None, Some(mine), Some(_)] => Some(mine.clone()),
        three => value(three),
    };
    Value::Array(order.iter().filter_map(question).collect())
}

/// The questions of a form, each with what it is known by.
struct Questions<'a>(Vec<(String, &'a Value)>);

impl<'a> Questions<'a> {
    fn of(list: Option<&'a Value>) -> Self {
        let Some(Value::Array(list)) = list else { return Self(Vec::new()) };
        let mut known = Self(Vec::new());
        for question in list {
            let mut key = question.get("id").unwrap_or(question).to_string();
            // The second of two equal pages.
            while known.get(&key).is_some() {
                key.push('+');
            }
            known.0.push((key, question));
        }
        known
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, question)| *question)
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Those that `other` has, too.
    fn common(&self, other: &Questions<'_>) -> Vec<&str> {
        self.keys().filter(|key| other.get(key).is_some()).collect()
    }

    /// These, with those that only `other` has, each behind the one that it stands behind there.
    fn with<'k>(&'k self, other: &'k Questions<'_>) -> Vec<&'k str> {
        let mut order: Vec<_> = self.keys().collect();
        let mut next = 0;
        for key in other.keys() {
            next = match order.iter().position(|known| *known == key) {
                Some(place) => place + 1,
                None => {
                    order.insert(next, key);
                    next + 1
                }
            };
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use crate::cli::form::change::patch;
    use crate::domain::json::{Value, parse};

    /// Questions by the letters that stand for them: those in lower case have an id.
    fn questions(letters: &str) -> String {
        let question = |letter: char| match letter {
            'a'..='z' => format!(r#"{{"id":"{letter}","type":"rating","max":5}}"#),
            letter => format!(r#"{{"type":"page","title":"{letter}"}}"#),
        };
        letters.chars().map(question).collect::<Vec<_>>().join(",")
    }

    fn form(questions: &str, others: &str) -> Value {
        parse(&format!(r#"{{"title":"T","questions":[{questions}]{others}}}"#)).unwrap()
    }

    #[test]
    fn questions_stand_where_who_moved_them_wants_them() {
        for (base, mine, theirs, expected) in [
            ("ab", "ab", "a", "a"),
            ("ab", "a", "ab", "a"),
            ("abc", "bc", "ab", "b"),
            ("ab", "ab", "aSb", "aSb"),
            ("aSb", "aSb", "aTb", "aTb"),
            ("aSb", "aTb", "aSb", "aTb"),
            ("aSb", "aTb", "aUb", "aTUb"),
            ("aPb", "aPb", "acPb", "acPb"),
            ("abc", "abc", "cab", "cab"),
            ("abc", "abcd", "cab", "cdab"),
            ("abc", "xabcd", "cba", "xcdba"),
            ("abc", "cab", "abdc", "cabd"),
            ("abc", "cab", "acb", "cab"),
            ("abc", "cba", "ab", "ba"),
            ("abc", "abdc", "ac", "adc"),
            ("aPbQc", "abQc", "aPbQdc", "abQdc"),
            ("ab", "", "abc", "c"),
        ] {
            let [base, mine, theirs, expected] =
                [base, mine, theirs, expected].map(|letters| form(&questions(letters), ""));
            let merged = merge(&base, &mine, &theirs);
            assert_eq!(merged.to_string(), expected.to_string(), "{base} {mine} {theirs}");
        }
    }

    /// Makes a form of a part of its text.
    type Make = fn(&str) -> Value;

    #[test]
    fn a_member_is_mine_where_i_have_changed_it() {
        let rating: Make = |members| form(&format!(r#"{{"id":"a"{members}}}"#), "");
        let list: Make = |questions| form(questions, "");
        let other: Make = |members| form("", members);
        let cases: &[(Make, &str, &str, &str, &str)] = &[
            (rating, r#","max":5"#, r#","max":5,"m":1"#, r#","max":9"#, r#","max":9,"m":1"#),
            (rating, r#","max":5"#, r#","max":6"#, r#","max":9"#, r#","max":6"#),
            (rating, r#","max":5"#, "", r#","max":9"#, ""),
            (
                rating,
                r#","x":{"a":1,"b":1}"#,
                r#","x":{"a":2,"b":1}"#,
                r#","x":{"b":3}"#,
                r#","x":{"a":2,"b":3}"#,
            ),
            (rating, r#","x":[1,2]"#, r#","x":[1,2,3]"#, r#","x":[0,1,2]"#, r#","x":[1,2,3]"#),
            // They have deleted what I have changed; we have both added a question with the same id.
            (list, r#"{"id":"a"}"#, r#"{"id":"a","m":1}"#, "", r#"{"id":"a","m":1}"#),
            (list, "", r#"{"id":"a","m":1}"#, r#"{"id":"a","t":1}"#, r#"{"id":"a","m":1}"#),
            (other, "", r#","slug":"m""#, r#","description":"t""#, r#","slug":"m","description":"t""#),
            (other, r#","slug":"b""#, "", r#","slug":"b","description":"t""#, r#","description":"t""#),
            (
                other,
                "",
                r#","settings":{"m":1}"#,
                r#","settings":{"t":1.10}"#,
                r#","settings":{"m":1,"t":1.10}"#,
            ),
            (other, r#","settings":{"b":1}"#, "", r#","settings":{"b":1,"t":1}"#, r#","settings":{"t":1}"#),
            (other, r#","settings":{"b":1}"#, r#","settings":null"#, r#","settings":{"b":2}"#, ""),
        ];
        for (form, base, mine, theirs, expected) in cases {
            let merged = merge(&form(base), &form(mine), &form(theirs));
            assert_eq!(merged.to_string(), form(expected).to_string(), "{base} {mine} {theirs}");
        }
    }

    #[test]
    fn where_only_one_has_changed_something_it_is_as_they_have_it() {
        let others = ["", r#","slug":"s""#, r#","settings":{"closed":true,"confirmation":{"message":"M"}}"#];
        let letters = ["", "ab", "ba", "aPbPc", "PcaPb", "aSb", "dabe", "Sabc", "cSPPa"];
        let forms = letters.iter().flat_map(|letters| others.map(|others| form(&questions(letters), others)));
        let forms: Vec<_> = forms.collect();
        for (base, other) in forms.iter().flat_map(|base| forms.iter().map(move |other| (base, other))) {
            for merged in [merge(base, other, base), merge(base, base, other), merge(base, other, other)] {
                assert_eq!(patch(other, &merged), None, "{base} {other}");
            }
        }
    }
}
