//! Parsing of what authors send: integrations, patches of them, and lists that replace all of a form's.

mod list;
mod notifications;
mod parse;
mod references;
mod show;

use self::parse::name_of;
use super::address::AddressPolicy;
use super::sealer::Sealer;
use super::settings::signing_secret::{self, MAX_LIVE_SECRETS};
use super::settings::{PATH, PreviousSecret, SIGNING_SECRET, SecretField};
use super::{Integration, IntegrationKind, MAX_INTEGRATIONS};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::json::{self, Value, join};
use crate::domain::question::Question;
use crate::domain::validation::violation::{Rule, Violation, collect_violations, shortened};
use crate::id::{Random, WorkspaceId};
use crate::secret::Secret;
use crate::vault::Vault;

pub use list::IntegrationLists;
pub use references::lint_references;
pub(in crate::domain::integration) use references::{lint_email_question, lint_template};

/// Members that only the server sets.
const READ_ONLY: [&str; 4] = ["id", "health", "created_at", "updated_at"];

/// Maximum time for which a replaced signing secret signs too, in milliseconds.
const MAX_GRACE: i64 = 30 * DAY_MILLIS;

/// Context of parsing: whose integrations they are, and the rules of the server.
#[derive(Clone, Copy)]
pub struct DefinitionContext<'a> {
    pub workspace: WorkspaceId,
    pub vault: &'a Vault,
    pub random: &'a dyn Random,
    pub policy: &'a AddressPolicy,
    pub now: Timestamp,
}

/// An integration to parse.
#[derive(Clone, Copy)]
pub(super) struct DefinitionInput<'a> {
    pub pointer: &'a str,
    /// The stored integration of the same type that this replaces.
    pub current: Option<&'a Integration>,
    /// The questions of the form; references are not checked without them.
    pub questions: Option<&'a [Question]>,
    pub context: DefinitionContext<'a>,
    /// Whether neither addresses are checked nor whether a secret is missing: only the server knows.
    pub is_lint: bool,
}

/// An integration, and the signing secret that was made for it.
type Parsed = (Integration, Option<GeneratedSecret>);

/// A secret that the server has made. It is shown once, in the response to the request that made it.
#[derive(Debug, Clone)]
pub struct GeneratedSecret {
    pub integration: String,
    pub secret: Secret<String>,
}

impl Integration {
    /// Parses a new integration of a form that has `others` and asks `questions`. Pointers begin at the body's root.
    pub fn create(
        body: &Value,
        others: &[Self],
        questions: &[Question],
        context: DefinitionContext<'_>,
    ) -> Result<Parsed, Vec<Violation>> {
        collect_violations(|violations| {
            if others.len() >= MAX_INTEGRATIONS {
                violations.push(too_many("", others.len() + 1));
            }
            Self::read_one(body, None, others, questions, context, violations)
        })
    }

    /// Applies a merge patch; `others` are the form's other integrations. Returns this integration, unchanged, if the patch
    /// changes nothing.
    pub fn update(
        &self,
        patch: &Value,
        others: &[Self],
        questions: &[Question],
        context: DefinitionContext<'_>,
    ) -> Result<Parsed, Vec<Violation>> {
        let merged = merged(self, patch);
        let (updated, generated) = collect_violations(|violations| {
            Self::read_one(&merged, Some(self), others, questions, context, violations)
        })?;
        Ok((updated.with_valid_style(), generated))
    }

    fn read_one(
        body: &Value,
        current: Option<&Self>,
        others: &[Self],
        questions: &[Question],
        context: DefinitionContext<'_>,
        violations: &mut Vec<Violation>,
    ) -> Option<Parsed> {
        let taken = |name: &str| others.iter().any(|other| other.name == name);
        let input =
            DefinitionInput { pointer: "", current, questions: Some(questions), context, is_lint: false };
        let parsed = Self::parse(body, name_of(body, taken), input, violations);
        if let Some(name) = body.get("name").and_then(Value::as_str).filter(|name| taken(name)) {
            violations.push(duplicate_name("", name));
        }
        // Some file systems ignore case.
        let path = parsed.as_ref().and_then(|(parsed, _)| parsed.kind.settings.text(PATH));
        let mut paths = others.iter().filter_map(|other| other.kind.settings.text(PATH));
        if let Some(path) = path.filter(|path| paths.any(|other| other.eq_ignore_ascii_case(path))) {
            violations.push(duplicate_path("", path));
        }
        parsed
    }

    /// Replaces the signing secret by a new one. The old ones sign too for `grace_millis` at most, unless they were sealed with
    /// another master key.
    pub fn rotate_secret(
        &self,
        grace_millis: i64,
        context: DefinitionContext<'_>,
    ) -> Result<(Self, Secret<String>), Vec<Violation>> {
        let refused = |pointer, message| Err(vec![Violation::new(pointer, Rule::InvalidRange, message)]);
        if !(0..=MAX_GRACE).contains(&grace_millis) {
            return refused("/grace", format!("`grace` is at most {} days", MAX_GRACE / DAY_MILLIS));
        }
        let settings = &self.kind.settings;
        let Some(replaced) = settings.secret(SIGNING_SECRET) else {
            let message = format!("an integration of type `{}` has no signing secret", self.type_name());
            return refused("", message);
        };
        let secret = signing_secret::generate(context.random);
        let sealer = Sealer { workspace: context.workspace, integration: self.id, vault: context.vault };
        let new = SecretField { sealed: sealer.seal(SIGNING_SECRET, &secret, context.random), env: None };
        let valid_until = Timestamp::from_millis(context.now.millis() + grace_millis);
        let replaced = PreviousSecret { secret: replaced.clone(), valid_until };
        let earlier = settings
            .previous()
            .iter()
            .map(|old| PreviousSecret { valid_until: old.valid_until.min(valid_until), ..old.clone() });
        let mut previous: Vec<_> = std::iter::once(replaced).chain(earlier).collect();
        previous.retain(|old| {
            old.valid_until > context.now && sealer.open(SIGNING_SECRET, &old.secret.sealed).is_ok()
        });
        previous.truncate(MAX_LIVE_SECRETS - 1);
        let settings = settings.with_signing_secret(new, previous);
        let kind = IntegrationKind { settings, ..self.kind };
        Ok((Self { kind, updated_at: context.now, ..self.clone() }, secret))
    }
}

/// Applies a merge patch (RFC 7396) to the members of `target`. A secret that `patch` removes stays as `null`, which removes it:
/// one that is left out is kept.
fn merged(target: &Integration, patch: &Value) -> Value {
    let members = Value::Object(target.members());
    let merged = json::merge(&members.to_string(), &patch.to_string());
    let merged = merged.map_or(Ok(members), |text| json::parse(&text));
    let Ok(Value::Object(mut members)) = merged else { return patch.clone() };
    let secrets = target.kind.integration_type.spec().members.iter().filter(|member| member.is_secret());
    let removed = secrets.filter(|member| patch.get(member.name) == Some(&Value::Null));
    members.extend(removed.map(|member| (member.name.to_owned(), Value::Null)));
    Value::Object(members)
}

fn duplicate_name(pointer: &str, name: &str) -> Violation {
    let message = format!("another integration of this form is called `{}`", shortened(name));
    Violation::new(join(pointer, "name"), Rule::DuplicateName, message).help("choose another name")
}

fn duplicate_path(pointer: &str, path: &str) -> Violation {
    let message = format!("another integration of this form writes to `{}`", shortened(path));
    Violation::new(join(pointer, "path"), Rule::DuplicateName, message).help("choose another file")
}

fn too_many(pointer: &str, found: usize) -> Violation {
    let message = format!("{found} integrations are too many, {MAX_INTEGRATIONS} are allowed");
    Violation::new(pointer, Rule::TooMany, message)
}
