//! What an integration is parsed with.

use crate::domain::integration::Integration;
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::settings::Settings;
use crate::domain::question::Question;

/// Context of parsing one integration.
#[derive(Clone, Copy)]
pub(in crate::domain::integration) struct DraftInput<'a> {
    pub pointer: &'a str,
    /// The stored integration of the same type that this replaces.
    pub current: Option<&'a Integration>,
    /// The questions of the form; references are not checked without them.
    pub questions: Option<&'a [Question]>,
    /// The rules of the server. Without them neither addresses are checked nor whether a secret is missing.
    pub policy: Option<&'a AddressPolicy>,
}

impl<'a> DraftInput<'a> {
    /// The settings that these replace.
    pub(in crate::domain::integration) fn stored(&self) -> Option<&'a Settings> {
        self.current.map(|current| current.kind.settings())
    }
}
