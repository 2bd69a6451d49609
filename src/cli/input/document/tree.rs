//! The values of a YAML file with their places in its text, from one walk over the parser's events.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Tag};

use crate::cli::input::document::mask;
use crate::cli::input::document::read::FileReader;
use crate::cli::output::diagnostics::Diagnostic;
use crate::domain::json::{self, MAX_DEPTH, Value, unescape};

/// A range of bytes in the source.
pub(super) type Span = Range<usize>;

/// Maximum size of all expanded aliases, in bytes.
const MAX_EXPANDED: usize = 4 << 20;

/// Message about a merge key.
pub(super) const MERGE: &str = "merge keys are not supported";

/// Tags of the core schema. All but `str` are what a plain scalar, a list or a mapping is anyway.
const TAGS: [&str; 7] = ["str", "int", "float", "bool", "null", "seq", "map"];

/// Members that are always text or patterns, whatever their value looks like.
const TEXTS: [&str; 9] = [
    "title",
    "description",
    "placeholder",
    "pattern",
    "pattern_message",
    "label",
    "text",
    "message",
    "closed_message",
];

/// Which plain scalars are text whatever they look like.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TextMode {
    /// Those of the members in [`TEXTS`], and all below `labels`.
    Named,
    Everywhere,
    /// None: in conditions and answers, whose members are question ids.
    Nowhere,
}

impl TextMode {
    fn within(self, name: &str) -> Self {
        match self {
            Self::Named if name == "labels" || TEXTS.contains(&name) => Self::Everywhere,
            Self::Named if ["show_if", "required_if", "when", "answers"].contains(&name) => Self::Nowhere,
            other => other,
        }
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Span of the value; of an alias, of the alias itself.
    pub(super) span: Span,
    /// Bytes of the texts in it, with aliases expanded.
    size: usize,
    /// Levels of nesting in it.
    height: usize,
    /// Shared with the aliases of the value.
    content: Arc<Content>,
}

#[derive(Debug)]
enum Content {
    Scalar { text: String, is_plain: bool },
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// A member of a mapping.
#[derive(Debug)]
struct Member {
    key: String,
    key_span: Span,
    value: Node,
}

/// The documents of a file, up to its first syntax error.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) roots: Vec<Node>,
    /// Problems of notation.
    pub(super) problems: Vec<Diagnostic>,
    /// Spans of values that are secrets, in order.
    pub(super) secrets: Vec<Span>,
    /// Where the walk ended, in bytes.
    pub(super) end: usize,
}

impl Node {
    fn new(span: Span, content: Content) -> Self {
        let (size, height) = match &content {
            Content::Scalar { text, .. } => (text.len() + 1, 0),
            Content::List(items) => measure(items.iter().map(|item| (0, item))),
            Content::Map(members) => measure(members.iter().map(|one| (one.key.len(), &one.value))),
        };
        Self { span, size, height, content: Arc::new(content) }
    }

    /// Returns the value as JSON.
    pub(super) fn value(&self, texts: TextMode) -> Value {
        match &*self.content {
            Content::Scalar { text, is_plain } => {
                let is_text = !is_plain || (texts == TextMode::Everywhere && !text.is_empty());
                if is_text { text.as_str().into() } else { resolve(text) }
            }
            Content::List(items) => items.iter().map(|item| item.value(texts)).collect(),
            Content::Map(members) => {
                let member = |one: &Member| (one.key.clone(), one.value.value(texts.within(&one.key)));
                Value::Object(members.iter().map(member).collect())
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

    /// Returns the member or item that one step of a JSON pointer names, and the span of its key.
    fn step(&self, name: &str) -> Option<(&Self, Option<&Span>)> {
        match &*self.content {
            Content::Scalar { .. } => None,
            Content::List(items) => Some((items.get(name.parse::<usize>().ok()?)?, None)),
            Content::Map(members) => {
                let member = members.iter().find(|member| member.key == name)?;
                Some((&member.value, Some(&member.key_span)))
            }
        }
    }
}

/// Returns size and height of a container of `children`, each with the length of its key.
fn measure<'a>(children: impl Iterator<Item = (usize, &'a Node)>) -> (usize, usize) {
    let add = |(size, height): (usize, usize), (key, node): (usize, &Node)| {
        (size.saturating_add(key).saturating_add(node.size), height.max(node.height + 1))
    };
    children.fold((1, 1), add)
}

/// Resolves a plain scalar by the core schema of YAML 1.2. A number keeps its text if that is JSON.
fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        text => number(text).unwrap_or_else(|| text.into()),
    }
}

fn number(text: &str) -> Option<Value> {
    let read = |text: &str| json::parse(text).ok().filter(|value| matches!(value, Value::Number(_)));
    let digits = text.trim_start_matches(['+', '-']);
    // `007` is text: a postal code, a telephone number.
    let is_padded =
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let of_yaml = || read(&text.parse::<serde_yaml::Number>().ok()?.to_string());
    read(text).or_else(of_yaml).filter(|_| !is_padded)
}

fn too_deep(reader: &FileReader<'_>, at: usize) -> Diagnostic {
    reader.problem("malformed_file", format!("more than {MAX_DEPTH} levels of nesting"), at..at)
}

/// Explains a syntax error.
fn syntax_error(reader: &FileReader<'_>, error: &ScanError) -> Diagnostic {
    let at = error.marker().byte_offset().unwrap_or_default();
    let (message, help) = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return too_deep(reader, at),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            ("a tab is not allowed here: YAML is indented with spaces".to_owned(), None)
        }
        ErrorKind::UnexpectedCharacter { character } => {
            (format!("text cannot begin with `{character}`"), Some("put the text in quotes"))
        }
        ErrorKind::UnclosedFlowCollection { open } => (format!("`{open}` is not closed"), None),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            ("a quoted text is not closed, or continued without indentation".to_owned(), None)
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "`:` is not expected here".to_owned(),
            Some("put text that has a `:` in quotes, and fields on lines of their own"),
        ),
        ErrorKind::UnknownAnchor => {
            ("unknown anchor".to_owned(), Some("put text that begins with `*` in quotes"))
        }
        ErrorKind::ExpectedBlockMappingKey => (
            "expected a field, `name: value`, at the indentation of those around it".to_owned(),
            Some("align it with the other fields; quote the whole text if it contains quotes"),
        ),
        kind => (format!("not valid YAML: {kind}"), None),
    };
    reader.problem("malformed_file", message, at..at).help(help.map(str::to_owned))
}

/// Parses the file, up to a syntax error or a limit.
pub(super) fn parse(reader: &FileReader<'_>) -> Parsed {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // The parser scans for the end of brackets before it emits the first event.
    options.flow_nesting_limit = MAX_DEPTH;
    let parsed = Parsed::default();
    let mut walk = Walk { reader, open: Vec::new(), expanded: 0, anchors: HashMap::new(), parsed };
    for event in Parser::new_from_str_with_options(&reader.source, options) {
        match event {
            Ok((event, span)) => {
                walk.parsed.end = span.byte_range().map_or(walk.parsed.end, |span| span.end);
                if walk.take(event, &span).is_none() {
                    break;
                }
            }
            Err(error) => {
                walk.parsed.problems.push(syntax_error(reader, &error));
                break;
            }
        }
    }
    walk.parsed
}

/// A list or mapping that has not ended yet.
struct Open {
    start: usize,
    anchor: usize,
    content: Content,
    /// Span of each key's first occurrence.
    keys: HashMap<String, Span>,
    /// A key whose value follows.
    key: Option<Key>,
}

struct Key {
    text: String,
    span: Span,
    /// Whether the key was reported, and its member is left out.
    is_refused: bool,
}

struct Walk<'a> {
    reader: &'a FileReader<'a>,
    open: Vec<Open>,
    /// Bytes of all aliases so far, expanded.
    expanded: usize,
    anchors: HashMap<usize, Node>,
    parsed: Parsed,
}

impl Walk<'_> {
    /// Takes the next event; `None` if a problem ends the walk.
    fn take(&mut self, event: Event<'_>, position: &granit_parser::Span) -> Option<()> {
        let span = position.byte_range().unwrap_or_default();
        let is_known = |tag: &Tag| tag.core_suffix().is_some_and(|suffix| TAGS.contains(&suffix));
        if let Some(tag) = event.tag().filter(|tag| !is_known(tag)) {
            let message = format!("unknown tag `{}`", tag.original());
            let span = position.tag_span().and_then(|tag| tag.byte_range()).unwrap_or_else(|| span.clone());
            self.parsed.problems.push(self.reader.problem("unsupported_yaml", message, span));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = match tag.as_deref().and_then(Tag::core_suffix) {
                    Some(suffix) => suffix != "str",
                    None => style == ScalarStyle::Plain,
                };
                // The parser writes `~` for a value that is not there.
                let text = if span.is_empty() { String::new() } else { text.into_owned() };
                self.add(Node::new(span, Content::Scalar { text, is_plain }), anchor);
            }
            Event::SequenceStart(_, anchor, _) => self.open(span, anchor, Content::List(Vec::new()))?,
            Event::MappingStart(_, anchor, _) => self.open(span, anchor, Content::Map(Vec::new()))?,
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end),
            Event::Alias(anchor) => {
                let node = self.alias(span, anchor)?;
                self.add(node, 0);
            }
            _ => {}
        }
        Some(())
    }

    fn open(&mut self, span: Span, anchor: usize, content: Content) -> Option<()> {
        if self.open.len() == MAX_DEPTH {
            return self.stop(too_deep(self.reader, span.start));
        }
        self.open.push(Open { start: span.start, anchor, content, keys: HashMap::new(), key: None });
        Some(())
    }

    fn close(&mut self, end: usize) {
        let Some(Open { start, anchor, content, .. }) = self.open.pop() else { return };
        self.add(Node::new(start..end.max(start), content), anchor);
    }

    /// Returns the value of an alias, which is at `span`.
    fn alias(&mut self, span: Span, anchor: usize) -> Option<Node> {
        let Some(target) = self.anchors.get(&anchor).cloned() else {
            return self.stop(self.reader.problem("malformed_file", "an alias within its own anchor", span));
        };
        if self.open.len() + target.height > MAX_DEPTH {
            return self.stop(too_deep(self.reader, span.start));
        }
        self.expanded = self.expanded.saturating_add(target.size);
        if self.expanded > MAX_EXPANDED {
            let message = format!("aliases expand to more than {} MiB", MAX_EXPANDED >> 20);
            return self.stop(self.reader.problem("file_too_large", message, span));
        }
        Some(Node { span, ..target })
    }

    fn stop<T>(&mut self, problem: Diagnostic) -> Option<T> {
        self.parsed.problems.push(problem);
        None
    }

    /// Adds a finished value to its parent.
    fn add(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        if matches!(&*node.content, Content::Scalar { .. })
            && self.open.last().is_some_and(|parent| parent.key.is_some())
            && mask::is_masked(self.open.iter().filter_map(Open::key))
        {
            self.parsed.secrets.push(node.span.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.parsed.roots.push(node);
            return;
        };
        match (&mut parent.content, parent.key.take()) {
            (Content::Map(members), Some(Key { text, span, is_refused: false })) => {
                members.push(Member { key: text, key_span: span, value: node });
            }
            (Content::Map(_), None) => self.parsed.problems.extend(parent.begin_member(node, self.reader)),
            (Content::List(items), _) => items.push(node),
            (Content::Map(_) | Content::Scalar { .. }, _) => {}
        }
    }
}

impl Open {
    /// Returns the key whose value follows.
    fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| &*key.text)
    }

    /// Takes `node` as the key of the next member; returns its problem, if it has one.
    fn begin_member(&mut self, node: Node, reader: &FileReader<'_>) -> Option<Diagnostic> {
        let span = node.span;
        let unsupported = |message| reader.problem("unsupported_yaml", message, span.clone());
        let (text, problem) = match &*node.content {
            Content::Scalar { text, is_plain: true } if text == "<<" => {
                (&**text, Some(unsupported(MERGE).help(Some("write out the merged fields".to_owned()))))
            }
            Content::Scalar { text, .. } => (
                &**text,
                self.keys.get(text).map(|first| reader.duplicate(text, span.clone(), first.clone())),
            ),
            Content::List(_) | Content::Map(_) => ("", Some(unsupported("a key must be text"))),
        };
        self.keys.entry(text.to_owned()).or_insert_with(|| span.clone());
        self.key = Some(Key { text: text.to_owned(), span, is_refused: problem.is_some() });
        problem
    }
}
