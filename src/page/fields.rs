//! The fields of a page, as they are posted, or written in its address.

use std::collections::HashMap;

/// Values by name, in the order sent. Line ends are line feeds, as answers have them.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    values: HashMap<String, Vec<String>>,
    /// Names in the order of their first value.
    names: Vec<String>,
}

impl Fields {
    /// Parses `application/x-www-form-urlencoded` text, or the query of an address.
    ///
    /// What is not UTF-8 is replaced; [`is_utf8`] tells whether anything is.
    pub fn parse(text: &[u8]) -> Self {
        let mut fields = Self::default();
        for (name, value) in form_urlencoded::parse(text) {
            fields.add(&name, &value);
        }
        fields
    }

    /// Adds a value. NUL, which no answer may have, is replaced.
    pub fn add(&mut self, name: &str, value: &str) {
        let value = value.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}");
        if !self.values.contains_key(name) {
            self.names.push(name.to_owned());
        }
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    /// Returns the last value of `name` that is not blank: a checkbox follows the hidden field for "no".
    pub fn value(&self, name: impl AsRef<str>) -> &str {
        self.all(name).iter().rfind(|value| !value.trim().is_empty()).map_or("", String::as_str)
    }

    /// Replaces the values of `name`.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.remove(name);
        self.names.retain(|known| known != name);
        self.add(name, value);
    }

    pub fn all(&self, name: impl AsRef<str>) -> &[String] {
        self.values.get(name.as_ref()).map_or(&[], Vec::as_slice)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub fn has(&self, name: impl AsRef<str>, value: impl AsRef<str>) -> bool {
        self.all(name).iter().any(|one| one == value.as_ref())
    }

    /// Whether the value of `name` at `place` is this one.
    pub(crate) fn is_at(&self, name: &str, place: usize, value: &str) -> bool {
        self.all(name).get(place).is_some_and(|one| one == value)
    }

    /// Bytes of all values.
    pub fn size(&self) -> usize {
        self.values.values().flatten().map(String::len).sum()
    }

    /// Returns each name with its values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.names.iter().map(|name| (name.as_str(), self.all(name)))
    }
}

/// Whether URL-encoded text has only UTF-8 in it.
pub fn is_utf8(text: &[u8]) -> bool {
    percent_encoding::percent_decode(text).decode_utf8().is_ok()
}
