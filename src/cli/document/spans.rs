//! Where each value of a YAML or JSON file stands, by JSON pointer.
//!
//! Values are read by `document`; this walk of the same text only knows places. Should the two ever disagree, a
//! message loses its caret and nothing else.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};

/// A place in the source, in bytes.
pub(super) type Place = Range<usize>;

/// One value: where it stands and what it holds.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where the value stands; for an alias, the alias itself.
    pub(super) place: Place,
    /// Whether it is a scalar without quotes.
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
    pub(super) value: Node,
}

/// Something in the file that YAML allows and a form file does not.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A key that its mapping has already, and where it stands first.
    Duplicate { key: String, place: Place, first: Place },
    /// A merge key.
    Merge { place: Place },
    /// A tag beyond those of the core schema.
    Tag { place: Place },
}

/// The documents of one file.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) roots: Vec<Node>,
    pub(super) oddities: Vec<Oddity>,
}

impl Node {
    /// The items of a list.
    pub(super) fn item(&self, place: usize) -> Option<&Self> {
        match &*self.shape {
            Shape::List(items) => items.get(place),
            Shape::Scalar | Shape::Map(_) => None,
        }
    }

    /// The `place`-th member of a mapping.
    pub(super) fn member(&self, place: usize) -> Option<&Member> {
        match &*self.shape {
            Shape::Map(members) => members.get(place),
            Shape::Scalar | Shape::List(_) => None,
        }
    }

    /// The member of a mapping, or the item of a list, that one step of a JSON pointer names; a member's key stands
    /// at the place that comes with it.
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

    /// What `pointer` names: the value, and the key it stands under. If it is not there, the nearest value around it.
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

/// Finds the places of all values in `source`.
pub(super) fn walk(source: &str) -> Result<Documents, ScanError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut walk = Walk::default();
    for event in Parser::new_from_str_with_options(source, options) {
        let (event, span) = event?;
        walk.take(event, &span);
    }
    Ok(walk.documents)
}

/// A list or mapping that has begun and not yet ended.
struct Open {
    start: usize,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map { members: Vec<Member>, key: Option<(String, Place)> },
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
            self.documents.oddities.push(Oddity::Tag { place });
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let node = Node { place, plain, shape: Rc::new(Shape::Scalar) };
                self.put(node, anchor, Some(&text));
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open { start: place.start, anchor, content: Content::List(Vec::new()) });
            }
            Event::MappingStart(_, anchor, _) => {
                let content = Content::Map { members: Vec::new(), key: None };
                self.open.push(Open { start: place.start, anchor, content });
            }
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

    fn close(&mut self, end: usize) {
        let Some(Open { start, anchor, content }) = self.open.pop() else { return };
        let shape = match content {
            Content::List(items) => Shape::List(items),
            Content::Map { members, .. } => Shape::Map(members),
        };
        let node = Node { place: start..end.max(start), plain: false, shape: Rc::new(shape) };
        self.put(node, anchor, None);
    }

    /// Puts a finished value where it belongs; `text` is what a scalar says.
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
            Content::Map { members, key: key @ None } => {
                let text = text.unwrap_or_default().to_owned();
                look_at_key(&text, &node, members, &mut self.documents.oddities);
                *key = Some((text, node.place));
            }
            Content::Map { members, key } => {
                if let Some((key, key_place)) = key.take() {
                    members.push(Member { key, key_place, value: node });
                }
            }
        }
    }
}

fn look_at_key(key: &str, node: &Node, members: &[Member], oddities: &mut Vec<Oddity>) {
    let place = node.place.clone();
    if key == "<<" && node.plain {
        oddities.push(Oddity::Merge { place });
    } else if let Some(first) = members.iter().find(|member| member.key == key) {
        oddities.push(Oddity::Duplicate { key: key.to_owned(), place, first: first.key_place.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Oddity, walk};

    #[test]
    fn every_value_is_found_by_its_pointer() {
        let source = "title: Lunch\nquestions:\n  - {id: a, title: \"A\"}\n  - type: x # why\n    max: 5\n";
        let documents = walk(source).unwrap();
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
        let root = walk(source).unwrap().roots.remove(0);
        assert_eq!(&source[root.find("/c").0.place.clone()], "*x");
        assert_eq!(&source[root.find("/c/b").0.place.clone()], "1");
    }

    #[test]
    fn what_a_form_file_may_not_have_is_found() {
        let source = "a: 1\n<<: {b: 2}\nc: !secret x\na: 3\nd: !!str 5\n";
        let oddities = walk(source).unwrap().oddities;
        assert_eq!(
            oddities,
            [
                Oddity::Merge { place: 5..7 },
                Oddity::Tag { place: 19..26 },
                Oddity::Duplicate { key: "a".to_owned(), place: 29..30, first: 0..1 },
            ]
        );
    }
}
