//! What a form asked before: a filter of its submissions may be meant of that, as the answers are still stored.
//!
//! Earlier questions are shown newest first, as they were written, and read only where they are wanted: one with a pattern
//! takes long to read.

use std::collections::BTreeMap;

use super::condition::{Condition, Wanted};
use super::filter::SubmissionQuery;
use super::form::Retired;
use super::json::Value;
use super::question::Question;

/// The tests of one question, which fit none of those that were shown.
#[derive(Debug, Clone)]
struct Unfit {
    tests: BTreeMap<Wanted, String>,
    /// The question that was shown last. Most versions have the same as those before.
    shown: Option<Value>,
}

/// The questions by which a query is read: the present ones, or earlier ones where its tests do not fit those.
#[derive(Debug, Clone)]
pub struct Past {
    questions: Vec<Question>,
    unfit: BTreeMap<String, Unfit>,
}

impl Past {
    /// The past of the form that asks `present` now, and has `removed` other questions, as far as `query` needs it.
    pub fn new(query: &SubmissionQuery, present: &[Question], removed: &Retired) -> Self {
        let mut tests = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (wanted, text) in &query.answers {
            tests.entry(wanted.question.clone()).or_default().insert(wanted.clone(), text.clone());
        }
        let was_asked = |id: &String| {
            removed.contains(id) || present.iter().any(|question| question.id.as_ref() == Some(id))
        };
        tests.retain(|id, tests| was_asked(id) && !fit(tests, present));
        let unfit = tests.into_iter().map(|(id, tests)| (id, Unfit { tests, shown: None })).collect();
        Self { questions: present.to_vec(), unfit }
    }

    /// Whether there is nothing left to look for.
    pub fn is_found(&self) -> bool {
        self.unfit.is_empty()
    }

    /// Whether the question of an earlier version that is `written` so is to be read and shown.
    pub fn wants(&mut self, written: &Value) -> bool {
        let Value::Object(members) = written else { return false };
        let id = members.iter().find(|(name, _)| name == "id");
        let Some((_, Value::String(id))) = id else { return false };
        let Some(unfit) = self.unfit.get_mut(id) else { return false };
        let is_new = unfit.shown.as_ref() != Some(written);
        if is_new {
            unfit.shown = Some(written.clone());
        }
        is_new
    }

    /// Takes an earlier question that the tests fit; or that is the newest with its id, to say what is wrong with them.
    pub fn show(&mut self, old: Question) {
        let Some(id) = &old.id else { return };
        let fits = self.unfit.get(id).is_some_and(|unfit| fit(&unfit.tests, std::slice::from_ref(&old)));
        let is_same = |question: &Question| question.id == old.id && question.kind.rules().takes_answer();
        if fits {
            self.unfit.remove(id);
        } else if self.questions.iter().any(is_same) {
            return;
        }
        self.questions.retain(|question| question.id != old.id);
        self.questions.push(old);
    }

    /// The questions to read the query by.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }
}

fn fit(tests: &BTreeMap<Wanted, String>, questions: &[Question]) -> bool {
    Condition::wanted(tests, questions).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json;
    use crate::domain::limits::Limits;
    use crate::domain::question::QuestionDraft;

    fn written(id: &str, kind: &str) -> Value {
        json::parse(&format!(r#"{{"id":"{id}","type":"{kind}","title":"T"}}"#)).unwrap()
    }

    fn read(written: &Value) -> Question {
        let draft = QuestionDraft::read(written, "", 0, &Limits::default(), &mut Vec::new());
        draft.unwrap().kept().unwrap()
    }

    fn past(tests: &[(&str, &str)]) -> Past {
        let wanted = |id: &str| Wanted { question: id.to_owned(), operator: "eq".to_owned() };
        let answers = tests.iter().map(|(id, text)| (wanted(id), (*text).to_owned())).collect();
        let query = SubmissionQuery { answers, ..SubmissionQuery::default() };
        Past::new(&query, &[read(&written("now", "rating"))], &["gone".to_owned()].into())
    }

    #[test]
    fn only_what_was_asked_and_may_fit_is_looked_for() {
        for (tests, is_found) in [
            (&[][..], true),
            (&[("now", "5")], true),
            (&[("now", "nine")], false),
            (&[("gone", "5")], false),
            (&[("never", "5")], true),
            (&[("never", "5"), ("gone", "5")], false),
        ] {
            assert_eq!(past(tests).is_found(), is_found, "{tests:?}");
        }
    }

    #[test]
    fn a_question_is_read_once_however_many_versions_have_it() {
        let mut past = past(&[("gone", "nine"), ("never", "5")]);
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
    fn the_newest_that_fits_is_taken_else_the_newest() {
        for (value, kinds, expected) in [
            ("5", &["short_text", "rating"][..], "short_text"),
            ("nine", &["rating", "short_text", "long_text"], "short_text"),
            ("nine", &["rating", "number"], "rating"),
            ("nine", &["statement", "number"], "number"),
        ] {
            let mut past = past(&[("gone", value)]);
            for kind in kinds {
                let old = written("gone", kind);
                if past.wants(&old) {
                    past.show(read(&old));
                }
            }
            let names: Vec<_> = past.questions().iter().map(|question| question.kind.name()).collect();
            assert_eq!(names, ["rating", expected], "{value} {kinds:?}");
        }
    }
}
