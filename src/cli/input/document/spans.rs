//! Source positions of the values in a YAML or JSON file, by JSON pointer.
//!
//! `read` parses the values; this walk of the same text only finds positions. If the two ever disagree, a message loses
//! its caret and nothing else.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span};

use crate::domain::json::MAX_DEPTH;

/// A range of bytes in the source.
pub(super) type Place = Range<usize>;

/// The position of one value and of its children.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Range of the value; of an alias, of the alias itself.
    pub(super) place: Place,
    /// Whether it is a plain (unquoted) scalar.
    pub(super) plain: bool,
    /// Shared with the aliases of the value.
    shape: Rc<Shape>,
}

#[derive(Debug)]
enum Shape {
    Scalar,
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// One member of a mapping.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_place: Place,
    /// Whether the key was reported: a duplicate, or a merge key.
    pub(super) is_refused: bool,
    pub(super) value: Node,
}

/// YAML that form files do not allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum YamlIssue {
    /// A key that its mapping already has, and the first occurrence.
    Duplicate { key: String, place: Place, first: Place },
    /// A merge key.
    Merge { place: Place },
    /// A tag outside the core schema.
    Tag { place: Place },
    /// A list or mapping nested deeper than the limit.
    Deep { place: Place },
}

/// The documents of one file.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) roots: Vec<Node>,
    pub(super) issues: Vec<YamlIssue>,
    /// Whether the walk ended at a [`YamlIssue::Deep`]: parsers take more than linear time for deeper nesting.
    pub(super) is_too_deep: bool,
}

impl Node {
    /// Returns the item at index `place` of a list.
    pub(super) fn item(&self, place: usize) -> Option<&Self> {
        match &*self.shape {
            Shape::List(items) => items.get(place),
            Shape::Scalar | Shape::Map(_) => None,
        }
    }

    /// Returns the member at index `place` of a mapping.
    pub(super) fn member(&self, place: usize) -> Option<&Member> {
        match &*self.shape {
            Shape::Map(members) => members.get(place),
            Shape::Scalar | Shape::List(_) => None,
        }
    }

    /// Returns the member or item that one step of a JSON pointer names, and the range of its key.
    fn step(&self, name: &str) -> Option<(&Self, Option<&Place>)> {
        match &*self.shape {
            Shape::Scalar => None,
            Shape::List(items) => Some((items.get(name.parse::<usize>().ok()?)?, None)),
            Shape::Map(members) => {
                let member = members.iter().find(|member| member.key == name)?;
                Some((&member.value, Some(&member.key_place)))
            }
        }
    }

    /// Returns the value at `pointer` and the range of its key. If there is none, the nearest enclosing value.
    pub(super) fn find(&self, pointer: &str) -> (&Self, Option<&Place>) {
        let mut found = (self, None);
        for name in pointer.split('/').skip(1) {
            let name = name.replace("~1", "/").replace("~0", "~");
            match found.0.step(&name) {
                Some(next) => found = next,
                None => return (found.0, None),
            }
        }
        found
    }
}

/// Finds the positions of all values in `source`, up to a syntax error or the nesting limit.
pub(super) fn walk(source: &str) -> Documents {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // The parser scans for the end of brackets before it emits the first event.
    options.flow_nesting_limit = MAX_DEPTH;
    let mut walk = Walk::default();
    for event in Parser::new_from_str_with_options(source, options) {
        match event {
            Ok((event, span)) => walk.take(event, &span),
            Err(error) if *error.kind() == ErrorKind::RecursionLimitExceeded => {
                walk.end_at(error.marker().byte_offset().unwrap_or_default());
            }
            Err(_) => break,
        }
        if walk.documents.is_too_deep {
            break;
        }
    }
    walk.documents
}

/// A list or mapping that has not ended yet.
struct Open {
    start: usize,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Map),
}

#[derive(Default)]
struct Map {
    members: Vec<Member>,
    /// Range of each key's first occurrence.
    keys: HashMap<String, Place>,
    /// A key whose value follows.
    key: Option<Key>,
}

struct Key {
    text: String,
    place: Place,
    is_refused: bool,
}

#[derive(Default)]
struct Walk {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: Documents,
}

impl Walk {
    fn take(&mut self, event: Event<'_>, span: &Span) {
        let place = span.byte_range().unwrap_or_default();
        if event.tag().is_some_and(|tag| !tag.is_yaml_core_schema()) {
            let place = span.tag_span().and_then(|tag| tag.byte_range()).unwrap_or_else(|| place.clone());
            self.documents.issues.push(YamlIssue::Tag { place });
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let node = Node { place, plain, shape: Rc::new(Shape::Scalar) };
                self.put(node, anchor, Some(&text));
            }
            Event::SequenceStart(_, anchor, _) => self.open(place, anchor, Content::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => self.open(place, anchor, Content::Map(Map::default())),
            Event::SequenceEnd | Event::MappingEnd => self.close(place.end),
            Event::Alias(anchor) => {
                if let Some(target) = self.anchors.get(&anchor) {
                    let node = Node { place, plain: target.plain, shape: Rc::clone(&target.shape) };
                    self.put(node, 0, None);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, place: Place, anchor: usize, content: Content) {
        if self.open.len() == MAX_DEPTH {
            self.end_at(place.start);
        }
        self.open.push(Open { start: place.start, anchor, content });
    }

    /// Records that the value at `start` is nested too deep, and ends the walk.
    fn end_at(&mut self, start: usize) {
        self.documents.is_too_deep = true;
        self.documents.issues.push(YamlIssue::Deep { place: start..start });
    }

    fn close(&mut self, end: usize) {
        let Some(Open { start, anchor, content }) = self.open.pop() else { return };
        let shape = match content {
            Content::List(items) => Shape::List(items),
            Content::Map(map) => Shape::Map(map.members),
        };
        let node = Node { place: start..end.max(start), plain: false, shape: Rc::new(shape) };
        self.put(node, anchor, None);
    }

    /// Adds a finished value to its parent; `text` is the text of a scalar.
    fn put(&mut self, node: Node, anchor: usize, text: Option<&str>) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.roots.push(node);
            return;
        };
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(map) => match map.key.take() {
                Some(Key { text: key, place: key_place, is_refused }) => {
                    map.members.push(Member { key, key_place, is_refused, value: node });
                }
                None => {
                    let issue = map.expect_value_of(text.unwrap_or_default(), &node);
                    self.documents.issues.extend(issue);
                }
            },
        }
    }
}

impl Map {
    /// Takes a key; returns its issue, if it has one.
    fn expect_value_of(&mut self, key: &str, node: &Node) -> Option<YamlIssue> {
        let place = node.place.clone();
        let issue = if key == "<<" && node.plain {
            Some(YamlIssue::Merge { place: place.clone() })
        } else {
            let first = self.keys.get(key).cloned();
            first.map(|first| YamlIssue::Duplicate { key: key.to_owned(), place: place.clone(), first })
        };
        self.keys.entry(key.to_owned()).or_insert_with(|| place.clone());
        self.key = Some(Key { text: key.to_owned(), place, is_refused: issue.is_some() });
        issue
    }
}

#[cfg(test)]
mod tests {
    use super::{YamlIssue, walk};

    #[test]
    fn every_value_is_found_by_its_pointer() {
        let source = "title: Lunch\nquestions:\n  - {id: a, title: \"A\"}\n  - type: x # why\n    max: 5\n";
        let documents = walk(source);
        let root = &documents.roots[0];
        for (pointer, value, key) in [
            ("/title", "Lunch", Some("title")),
            ("/questions/0", "{id: a, title: \"A\"}", None),
            ("/questions/0/title", "\"A\"", Some("title")),
            ("/questions/1/type", "x", Some("type")),
            ("/questions/1/max", "5", Some("max")),
        ] {
            let (node, key_place) = root.find(pointer);
            assert_eq!(&source[node.place.clone()], value, "{pointer}");
            assert_eq!(key_place.map(|place| &source[place.clone()]), key, "{pointer}");
        }
        assert!(source[root.find("/questions/1/missing").0.place.clone()].starts_with("type: x"));
    }

    #[test]
    fn aliases_stand_where_they_are_written_and_hold_what_they_name() {
        let source = "a: &x {b: 1}\nc: *x\n";
        let root = walk(source).roots.remove(0);
        assert_eq!(&source[root.find("/c").0.place.clone()], "*x");
        assert_eq!(&source[root.find("/c/b").0.place.clone()], "1");
    }

    #[test]
    fn what_a_form_file_may_not_have_is_found() {
        let source = "a: 1\n<<: {b: 2}\nc: !secret x\na: 3\nd: !!str 5\n";
        let issues = walk(source).issues;
        assert_eq!(
            issues,
            [
                YamlIssue::Merge { place: 5..7 },
                YamlIssue::Tag { place: 19..26 },
                YamlIssue::Duplicate { key: "a".to_owned(), place: 29..30, first: 0..1 },
            ]
        );
    }
}
