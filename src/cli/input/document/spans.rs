//! Source positions of the values in a YAML or JSON file, by JSON pointer.
//!
//! `read` parses the values; this walk of the same text only finds positions. If the two ever disagree, a message loses
//! its caret and nothing else.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle};

use crate::cli::input::document::mask;
use crate::domain::json::MAX_DEPTH;
use crate::domain::validation::violation::unescape;

/// A range of bytes in the source.
pub(super) type Span = Range<usize>;

/// The position of one value and of its children.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Span of the value; of an alias, of the alias itself.
    pub(super) span: Span,
    /// Whether it is a plain (unquoted) scalar.
    pub(super) is_plain: bool,
    /// Bytes of the texts in it, with aliases expanded.
    size: usize,
    /// Shared with the aliases of the value.
    children: Arc<Children>,
}

#[derive(Debug)]
enum Children {
    None,
    Items(Vec<Node>),
    Members(Vec<Member>),
}

/// One member of a mapping.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: Key,
    pub(super) value: Node,
}

#[derive(Debug)]
pub(super) struct Key {
    text: String,
    span: Span,
    /// Whether the key was reported: a duplicate, or a merge key.
    pub(super) is_refused: bool,
}

/// YAML that form files do not allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum YamlIssue {
    /// A key that its mapping already has, and the first occurrence.
    Duplicate {
        key: String,
        span: Span,
        first: Span,
    },
    Merge {
        span: Span,
    },
    /// A tag outside the core schema.
    Tag {
        span: Span,
    },
    /// A list or mapping nested deeper than the limit.
    Deep {
        span: Span,
    },
    /// The alias with which all expanded aliases exceed [`MAX_EXPANDED`].
    Expanded {
        span: Span,
    },
}

/// The documents of one file.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) roots: Vec<Node>,
    pub(super) issues: Vec<YamlIssue>,
    /// Spans of values that are secrets, in order.
    pub(super) secrets: Vec<Span>,
    /// Where the walk ended, in bytes.
    pub(super) end: usize,
    /// Whether the walk ended at a [`YamlIssue::Deep`], for which parsers take more than linear time, or at a
    /// [`YamlIssue::Expanded`], for which they take as much memory.
    pub(super) is_too_costly: bool,
}

impl Children {
    fn size(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Items(items) => items.iter().map(|item| item.size).fold(1, usize::saturating_add),
            Self::Members(members) => {
                let sizes =
                    members.iter().map(|member| member.key.text.len().saturating_add(member.value.size));
                sizes.fold(1, usize::saturating_add)
            }
        }
    }
}

impl Node {
    /// Returns the item of a list.
    pub(super) fn item(&self, index: usize) -> Option<&Self> {
        match &*self.children {
            Children::Items(items) => items.get(index),
            Children::None | Children::Members(_) => None,
        }
    }

    /// Returns the member of a mapping, in source order.
    pub(super) fn member(&self, index: usize) -> Option<&Member> {
        match &*self.children {
            Children::Members(members) => members.get(index),
            Children::None | Children::Items(_) => None,
        }
    }

    /// Returns the member or item that one step of a JSON pointer names, and the span of its key.
    fn step(&self, name: &str) -> Option<(&Self, Option<&Span>)> {
        match &*self.children {
            Children::None => None,
            Children::Items(items) => Some((items.get(name.parse::<usize>().ok()?)?, None)),
            Children::Members(members) => {
                let member = members.iter().find(|member| member.key.text == name)?;
                Some((&member.value, Some(&member.key.span)))
            }
        }
    }

    /// Returns the value at `pointer` and the span of its key. If there is none, the nearest enclosing value.
    pub(super) fn find(&self, pointer: &str) -> (&Self, Option<&Span>) {
        let mut found = (self, None);
        for name in pointer.split('/').skip(1) {
            match found.0.step(&unescape(name)) {
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
            Ok((event, span)) => {
                walk.documents.end = span.byte_range().map_or(walk.documents.end, |span| span.end);
                walk.take(event, &span);
            }
            Err(error) if *error.kind() == ErrorKind::RecursionLimitExceeded => {
                walk.end_at(error.marker().byte_offset().unwrap_or_default());
            }
            Err(_) => break,
        }
        if walk.documents.is_too_costly {
            break;
        }
    }
    walk.documents
}

/// A list or mapping that has not ended yet.
struct Open {
    start: usize,
    anchor: usize,
    children: Children,
    /// Span of each key's first occurrence.
    keys: HashMap<String, Span>,
    /// A key whose value follows.
    key: Option<Key>,
}

/// Maximum size of all expanded aliases, in bytes.
pub(super) const MAX_EXPANDED: usize = 4 << 20;

#[derive(Default)]
struct Walk {
    open: Vec<Open>,
    /// Bytes of all aliases so far, expanded.
    expanded: usize,
    anchors: HashMap<usize, Node>,
    documents: Documents,
}

impl Walk {
    fn take(&mut self, event: Event<'_>, position: &granit_parser::Span) {
        let span = position.byte_range().unwrap_or_default();
        if event.tag().is_some_and(|tag| !tag.is_yaml_core_schema()) {
            let tag = position.tag_span().and_then(|tag| tag.byte_range());
            self.documents.issues.push(YamlIssue::Tag { span: tag.unwrap_or_else(|| span.clone()) });
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_plain = style == ScalarStyle::Plain;
                let node = Node { span, is_plain, size: text.len() + 1, children: Arc::new(Children::None) };
                self.add(node, anchor, &text);
            }
            Event::SequenceStart(_, anchor, _) => self.open(span, anchor, Children::Items(Vec::new())),
            Event::MappingStart(_, anchor, _) => self.open(span, anchor, Children::Members(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end),
            Event::Alias(anchor) => {
                if let Some(target) = self.anchors.get(&anchor) {
                    let node = Node { span, ..target.clone() };
                    self.expanded = self.expanded.saturating_add(node.size);
                    if self.expanded > MAX_EXPANDED {
                        self.documents.is_too_costly = true;
                        self.documents.issues.push(YamlIssue::Expanded { span: node.span.clone() });
                    }
                    self.add(node, 0, "");
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, span: Span, anchor: usize, children: Children) {
        if self.open.len() == MAX_DEPTH {
            self.end_at(span.start);
        }
        self.open.push(Open { start: span.start, anchor, children, keys: HashMap::new(), key: None });
    }

    /// Records that the value at `start` is nested too deep, and ends the walk.
    fn end_at(&mut self, start: usize) {
        self.documents.is_too_costly = true;
        self.documents.issues.push(YamlIssue::Deep { span: start..start });
    }

    fn close(&mut self, end: usize) {
        let Some(Open { start, anchor, children, .. }) = self.open.pop() else { return };
        let span = start..end.max(start);
        let node = Node { span, is_plain: false, size: children.size(), children: Arc::new(children) };
        self.add(node, anchor, "");
    }

    /// Adds a finished value to its parent; `text` is the text of a scalar.
    fn add(&mut self, node: Node, anchor: usize, text: &str) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let is_value = self.open.last().is_some_and(|parent| parent.key.is_some());
        if is_value
            && matches!(*node.children, Children::None)
            && mask::is_masked(self.open.iter().filter_map(Open::key))
        {
            self.documents.secrets.push(node.span.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.documents.roots.push(node);
            return;
        };
        match (&mut parent.children, parent.key.take()) {
            (Children::Members(members), Some(key)) => members.push(Member { key, value: node }),
            (Children::Members(_), None) => self.documents.issues.extend(parent.begin_member(text, node)),
            (Children::Items(items), _) => items.push(node),
            (Children::None, _) => {}
        }
    }
}

impl Open {
    /// Returns the key whose value follows.
    fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| &*key.text)
    }

    /// Takes the key of the next member; returns its issue, if it has one.
    fn begin_member(&mut self, key: &str, node: Node) -> Option<YamlIssue> {
        let span = node.span;
        let issue = if key == "<<" && node.is_plain {
            Some(YamlIssue::Merge { span: span.clone() })
        } else {
            let first = self.keys.get(key).cloned();
            first.map(|first| YamlIssue::Duplicate { key: key.to_owned(), span: span.clone(), first })
        };
        self.keys.entry(key.to_owned()).or_insert_with(|| span.clone());
        self.key = Some(Key { text: key.to_owned(), span, is_refused: issue.is_some() });
        issue
    }
}
