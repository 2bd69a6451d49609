//! The settings of a kind as sent, before its secrets are sealed.

use super::secret_input::Sealer;
use crate::domain::integration::address::AddressPolicy;
use crate::domain::integration::{Integration, IntegrationKind};
use crate::domain::question::Question;
use crate::secret::Secret;

/// Context of parsing one integration.
#[derive(Clone, Copy)]
pub(in crate::domain::integration) struct DraftInput<'a> {
    pub pointer: &'a str,
    /// The stored integration that this replaces.
    pub current: Option<&'a Integration>,
    /// The questions of the form; references are not checked without them.
    pub questions: Option<&'a [Question]>,
    /// The rules of the server. Without them neither addresses are checked nor whether a secret is missing.
    pub policy: Option<&'a AddressPolicy>,
}

/// Seals the secrets, given the stored integration. Returns the signing secret, too, if that was generated.
pub(in crate::domain::integration) type BuildKind =
    Box<dyn FnOnce(Option<&Integration>, Sealer<'_>) -> (IntegrationKind, Option<Secret<String>>)>;

/// The settings of a kind as sent.
pub(in crate::domain::integration) struct KindDraft {
    /// The file that it writes, which no other integration of the form may write.
    pub path: Option<String>,
    pub build: BuildKind,
}
