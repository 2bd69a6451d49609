//! What a form asked before: a filter of its submissions may be meant of that, as the answers are still stored.
//!
//! Each value of each test is read by the present question where it fits that, else by the newest earlier one that it
//! fits. Earlier questions are shown newest first, as they were written, and read only where they are wanted: one with a
//! pattern takes long to read.

use std::collections::{BTreeMap, BTreeSet};

use super::condition::{Wanted, search_too_often};
use super::filter::{Asking, Reading, SubmissionFilter, SubmissionQuery};
use super::form::Retired;
use super::json::Value;
use super::question::Question;

/// The questions by which a query is read: the present ones, and earlier ones for what does not fit those.
#[derive(Debug, Clone)]
pub struct Past {
    /// What a test asks for, of answers that are read alike: those of very many versions may be.
    read: BTreeMap<Wanted, BTreeMap<Reading, Vec<Value>>>,
    /// Values that fit none of the questions that were shown.
    unfit: BTreeMap<Wanted, Vec<String>>,
    /// Tests that no question could read, so that none is looked for.
    hopeless: BTreeSet<Wanted>,
    /// The present questions, and the newest earlier ones with other ids.
    questions: Vec<Question>,
    /// The question that was shown last, by the ids of those that were ever asked. Most versions have the same as those
    /// before.
    shown: BTreeMap<String, Option<Value>>,
}

impl Past {
    /// The past of the form that asks `present` now, and has `removed` other questions, as far as `query` needs it.
    pub fn new(query: &SubmissionQuery, present: &[Question], removed: &Retired) -> Self {
        let was_asked = |id: &String| {
            removed.contains(id) || present.iter().any(|question| question.id.as_ref() == Some(id))
        };
        // Each by itself would not be too many.
        let are_too_many = search_too_often(&query.answers);
        let is_hopeless = |wanted: &Wanted, text: &String| are_too_many || !wanted.may_fit(text);
        let hopeless = query.answers.iter().filter(|(wanted, text)| is_hopeless(wanted, text));
        let ids = query.answers.keys().map(|wanted| &wanted.question).filter(|id| was_asked(id));
        let mut past = Self {
            read: BTreeMap::new(),
            unfit: query.answers.iter().map(|(wanted, text)| (wanted.clone(), wanted.values(text))).collect(),
            hopeless: hopeless.map(|(wanted, _)| wanted.clone()).collect(),
            questions: Vec::new(),
            shown: ids.map(|id| (id.clone(), None)).collect(),
        };
        present.iter().for_each(|question| past.show(question.clone()));
        past
    }

    /// Whether there is nothing left to look for.
    pub fn is_found(&self) -> bool {
        !self.shown.keys().any(|id| self.seeks(id))
    }

    fn seeks(&self, id: &str) -> bool {
        self.unfit.keys().any(|wanted| wanted.question == id && !self.hopeless.contains(wanted))
    }

    /// Whether the question of an earlier version that is `written` so is to be read and shown.
    pub fn wants(&mut self, written: &Value) -> bool {
        let Value::Object(members) = written else { return false };
        let id = members.iter().find(|(name, _)| name == "id");
        let Some((_, Value::String(id))) = id else { return false };
        let is_sought = self.seeks(id);
        let Some(shown) = self.shown.get_mut(id).filter(|_| is_sought) else { return false };
        let is_new = shown.as_ref() != Some(written);
        if is_new {
            *shown = Some(written.clone());
        }
        is_new
    }

    /// Takes in what `question` can read of what none did that was shown before.
    pub fn show(&mut self, question: Question) {
        let is_same = |known: &Question| known.id == question.id && known.kind.rules().takes_answer();
        let reading = Reading::of(&question.kind);
        for (wanted, texts) in &mut self.unfit {
            if question.id.as_ref() == Some(&wanted.question) && !self.hopeless.contains(wanted) {
                let values = take(wanted, texts, &question);
                if !values.is_empty() {
                    let read = self.read.entry(wanted.clone()).or_default();
                    read.entry(reading).or_default().extend(values);
                }
            }
        }
        self.unfit.retain(|_, values| !values.is_empty());
        if !self.questions.iter().any(is_same) {
            self.questions.retain(|known| known.id.is_none() || known.id != question.id);
            self.questions.push(question);
        }
    }

    /// Makes `query` ready, the same that this is the past for; what is wrong with values that fit no question.
    pub fn filter(self, query: &SubmissionQuery) -> Result<SubmissionFilter, String> {
        let mut all = Vec::new();
        for (wanted, read) in self.read {
            let asked = |(reading, values)| {
                Asking::of_values(&wanted, reading, values).expect("each value fits by itself")
            };
            all.push(read.into_iter().map(asked).collect());
        }
        let unfit: BTreeMap<_, _> =
            self.unfit.into_iter().map(|(wanted, values)| (wanted, values.join(","))).collect();
        if !unfit.is_empty() {
            all.push(vec![Asking::new(&unfit, &self.questions)?]);
        }
        SubmissionFilter::asking(query, all)
    }
}

/// Takes the texts out that fit `question`: what they stand for among its answers.
fn take(wanted: &Wanted, texts: &mut Vec<String>, question: &Question) -> Vec<Value> {
    let mut values = Vec::new();
    texts.retain(|text| {
        let value = wanted.read(text, question);
        let is_unfit = value.is_none();
        values.extend(value);
        is_unfit
    });
    values
}

#[cfg(test)]
mod tests {
    use super::{Past, SubmissionQuery};
    use crate::domain::condition::Wanted;
    use crate::domain::json::{self, Value};
    use crate::domain::limits::Limits;
    use crate::domain::question::{Question, QuestionDraft};

    fn written(id: &str, kind: &str) -> Value {
        json::parse(&format!(r#"{{"id":"{id}","type":"{kind}","title":"T"}}"#)).unwrap()
    }

    fn read(written: &Value) -> Question {
        let draft = QuestionDraft::read(written, "", 0, &Limits::default(), &mut Vec::new());
        draft.unwrap().kept().unwrap()
    }

    fn query(tests: &[(&str, &str, &str)]) -> SubmissionQuery {
        let wanted =
            |id: &str, operator: &str| Wanted { question: id.to_owned(), operator: operator.to_owned() };
        let test = |(id, operator, text): &(&str, &str, &str)| (wanted(id, operator), (*text).to_owned());
        SubmissionQuery { answers: tests.iter().map(test).collect(), ..SubmissionQuery::default() }
    }

    fn past(query: &SubmissionQuery) -> Past {
        Past::new(query, &[read(&written("now", "rating"))], &["gone".to_owned()].into())
    }

    #[test]
    fn only_what_was_asked_and_may_fit_is_looked_for() {
        for (tests, is_found) in [
            (&[][..], true),
            (&[("now", "eq", "5")], true),
            (&[("now", "in", "5,4")], true),
            (&[("now", "in", "5,nine")], false),
            (&[("now", "eq", "nine")], false),
            (&[("gone", "eq", "5")], false),
            (&[("never", "eq", "5")], true),
            (&[("never", "eq", "5"), ("gone", "eq", "5")], false),
            (&[("gone", "answered", "true"), ("gone", "matches", "^a")], false),
            (&[("gone", "answered", "maybe")], true),
            (&[("gone", "matches", "(")], true),
            (&[("gone", "more", "5"), ("gone", "eq", ""), ("gone", "in", "5,")], true),
            (&[("gone", "more", "5"), ("gone", "in", "5,6")], false),
        ] {
            assert_eq!(past(&query(tests)).is_found(), is_found, "{tests:?}");
        }
    }

    #[test]
    fn for_more_searches_than_one_condition_may_ask_for_nothing_is_looked_up() {
        for (count, are_too_many) in [(10, false), (11, true)] {
            let ids: Vec<_> = (0..count).map(|place| format!("gone{place}")).collect();
            let tests: Vec<_> = ids.iter().map(|id| (id.as_str(), "matches", "a")).collect();
            let query = query(&tests);
            let mut past = Past::new(&query, &[], &ids.iter().cloned().collect());
            assert_eq!(past.is_found(), are_too_many);
            ids.iter().for_each(|id| past.show(read(&written(id, "short_text"))));
            let told = past.filter(&query).err().unwrap_or_default();
            assert_eq!(told.contains("too many `matches`"), are_too_many, "{told}");
        }
    }

    #[test]
    fn a_question_is_read_once_however_many_versions_have_it() {
        let mut past = past(&query(&[("gone", "in", "5,nine"), ("never", "eq", "5")]));
        let rating = written("gone", "rating");
        assert!(past.wants(&rating));
        past.show(read(&rating));
        for unwanted in [&rating, &written("now", "number"), &written("never", "number"), &Value::Null] {
            assert!(!past.wants(unwanted), "{unwanted}");
        }
        let text = written("gone", "short_text");
        assert!(past.wants(&text) && !past.is_found());
        past.show(read(&text));
        assert!(past.is_found() && !past.wants(&rating));
    }

    #[test]
    fn a_filter_weighs_as_little_however_many_versions_its_values_are_read_by() {
        let options: Vec<_> = (0..300).map(|version| format!("option {version}")).collect();
        let query = query(&[("gone", "in", &options.join(","))]);
        let mut past = past(&query);
        for option in &options {
            let choice = r#"{"id":"gone","type":"single_choice","title":"T","options":["OPTION"]}"#;
            let old = json::parse(&choice.replace("OPTION", option)).unwrap();
            assert!(past.wants(&old));
            past.show(read(&old));
        }
        let filter = past.filter(&query).unwrap();
        assert_eq!(filter.weight(), 1);
        for (answer, is_taken) in [("option 0", true), ("option 299", true), ("option 300", false)] {
            assert_eq!(filter.takes(&format!(r#"{{"gone":"{answer}"}}"#)), is_taken, "{answer}");
        }
    }

    #[test]
    fn each_value_is_read_by_the_newest_that_it_fits() {
        for (values, kinds, expected) in [
            ("5", &["short_text", "rating"][..], Ok(&[r#""5""#][..])),
            ("5", &["rating", "short_text"], Ok(&["5"])),
            ("nine", &["rating", "short_text", "long_text"], Ok(&[r#""nine""#])),
            ("nine,5", &["rating", "short_text"], Ok(&[r#""nine""#, "5"])),
            (
                "09:00,2026-01-01,7",
                &["time", "date", "number"],
                Ok(&[r#""09:00:00""#, r#""2026-01-01""#, "7"]),
            ),
            ("5,nine", &["rating", "number"], Err("Enter a whole number from 1 to 5")),
            ("nine", &["statement", "number"], Err("Enter a number")),
            (
                "nine",
                &["statement"],
                Err("names no question of this form that takes an answer; there are now"),
            ),
        ] {
            let query = query(&[("gone", "in", values)]);
            let mut past = past(&query);
            for kind in kinds {
                let old = written("gone", kind);
                if past.wants(&old) {
                    past.show(read(&old));
                }
            }
            match (past.filter(&query), expected) {
                (Ok(filter), Ok(expected)) => {
                    for value in [r#""5""#, "5", r#""nine""#, r#""09:00:00""#, r#""2026-01-01""#, "7"] {
                        let takes = filter.takes(&format!("{{\"gone\":{value}}}"));
                        assert_eq!(takes, expected.contains(&value), "{values} {kinds:?} {value}");
                    }
                }
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{values} {kinds:?}: {why}"),
                (found, _) => panic!("{values} {kinds:?}: {found:?}"),
            }
        }
    }
}
