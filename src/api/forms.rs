//! Forms on the wire.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::integrations::{form_integrations, form_notifications};
use super::schema;
use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, accepting};
use crate::domain::form::settings::Settings;
use crate::domain::form::{Form, FormStatus, StoredVersion};
use crate::domain::integration::definition::GeneratedSecret;
use crate::domain::open_enum::OpenEnum;
use crate::id::FormId;

/// A form that was created, in canonical form. `description`, `slug`, `settings` and `integrations` are present only if they
/// were sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormCreated {
    pub id: FormId,
    /// The title.
    pub title: String,
    /// A description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A short name that is usable wherever the id is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = schema::FormStatusOrOther)]
    pub status: OpenEnum<FormStatus>,
    /// The questions in canonical form.
    #[schema(value_type = Vec<schema::Question>)]
    pub questions: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Settings::is_empty", deserialize_with = "known_settings")]
    #[schema(value_type = schema::FormSettings)]
    pub settings: Settings,
    /// Where the form sends its events; left out if nowhere, or if the key lacks the scope `read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Integration>)]
    pub integrations: Vec<Box<RawValue>>,
    /// Who gets mail with each response, as it was written; left out if nobody, or if the key lacks the scope `read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Notification>)]
    pub notifications: Vec<Box<RawValue>>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A form in the list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormEntry {
    pub id: FormId,
    /// The title.
    pub title: String,
    /// A short name that is usable wherever the id is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = schema::FormStatusOrOther)]
    pub status: OpenEnum<FormStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AcceptingReasonOrOther>)]
    pub accepting_reason: Option<OpenEnum<AcceptingReason>>,
    /// The number of submissions, without those in the trash.
    pub response_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the form was last changed.
    pub updated_at: Timestamp,
    /// When it was moved to the trash; left out if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// The addresses of a form's page, where people answer it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PageLinks {
    /// The page. Open to anybody once the form is public and published. Without a known address of the server, only the path.
    pub url: String,
    /// Whether the form is public.
    pub public: bool,
    /// The page of a form that need not be public or published. Answers are checked there, and not stored.
    pub preview_url: String,
    /// Until when `preview_url` works.
    pub preview_expires_at: Timestamp,
}

/// A page of forms, newest first. The header `Link` links to the next page.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormList {
    /// The forms, newest first.
    pub forms: Vec<FormEntry>,
}

/// A version of a form's questions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    /// The number of the version, from 1.
    pub version: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// The questions in canonical form.
    #[schema(value_type = Vec<schema::Question>)]
    pub questions: Box<RawValue>,
}

/// A page of versions, newest first. The header `Link` links to the next page.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VersionList {
    /// The versions, newest first.
    pub versions: Vec<VersionView>,
}

/// A form with its questions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormDetail {
    pub id: FormId,
    /// The title.
    pub title: String,
    /// A description, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A short name that is usable wherever the id is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = schema::FormStatusOrOther)]
    pub status: OpenEnum<FormStatus>,
    /// The number of the questions' version, from 1.
    pub version: u32,
    /// Whether the form accepts answers now.
    pub accepting: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AcceptingReasonOrOther>)]
    pub accepting_reason: Option<OpenEnum<AcceptingReason>>,
    /// The questions in canonical form.
    #[schema(value_type = Vec<schema::Question>)]
    pub questions: Box<RawValue>,
    #[serde(deserialize_with = "known_settings")]
    #[schema(value_type = schema::FormSettings)]
    pub settings: Settings,
    /// Where the form sends its events; left out if nowhere, or if the key lacks the scope `read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Integration>)]
    pub integrations: Vec<Box<RawValue>>,
    /// Who gets mail with each response, as it was written; left out if nobody, or if the key lacks the scope `read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Notification>)]
    pub notifications: Vec<Box<RawValue>>,
    /// The number of submissions, without those in the trash.
    pub response_count: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the form was last changed.
    pub updated_at: Timestamp,
    /// When it was last published; left out if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
}

/// Deserializes the settings that this version knows.
fn known_settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
    let mut sent = serde_json::Map::deserialize(deserializer)?;
    sent.retain(|name, value| {
        let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        Settings::deserialize(serde_json::Value::Object(alone)).is_ok()
    });
    Settings::deserialize(serde_json::Value::Object(sent)).map_err(serde::de::Error::custom)
}

impl FormCreated {
    /// The response to the creation of `form`, with the `secrets` that the server has made for it.
    pub fn new(form: &Form, questions: Box<RawValue>, secrets: &[GeneratedSecret]) -> Self {
        Self {
            id: form.id,
            title: form.title.clone(),
            description: form.description.clone(),
            slug: form.slug.clone(),
            status: form.status.into(),
            questions,
            settings: form.settings.clone(),
            integrations: form_integrations(&form.integrations, secrets),
            notifications: form_notifications(&form.integrations),
            created_at: form.created_at,
        }
    }
}

impl FormEntry {
    /// `form` with its number of submissions, at the time `now`.
    pub fn new(form: &Form, response_count: u64, now: Timestamp) -> Self {
        // `status` already shows that a draft accepts no answers.
        let reason = accepting(form, response_count, now).err().filter(|why| *why != AcceptingReason::Draft);
        Self {
            id: form.id,
            title: form.title.clone(),
            slug: form.slug.clone(),
            status: form.status.into(),
            accepting_reason: reason.map(OpenEnum::from),
            response_count,
            created_at: form.created_at,
            updated_at: form.updated_at,
            deleted_at: form.deleted_at,
        }
    }
}

impl From<StoredVersion> for VersionView {
    fn from(StoredVersion { number, created_at, questions }: StoredVersion) -> Self {
        Self { version: number, created_at, questions }
    }
}

impl FormDetail {
    /// `form` with its questions and its number of submissions, at the time `now`, without integrations.
    pub fn new(form: &Form, version: StoredVersion, response_count: u64, now: Timestamp) -> Self {
        let reason = accepting(form, response_count, now).err();
        Self {
            id: form.id,
            title: form.title.clone(),
            description: form.description.clone(),
            slug: form.slug.clone(),
            status: form.status.into(),
            version: form.version,
            accepting: reason.is_none(),
            accepting_reason: reason.map(OpenEnum::from),
            questions: version.questions,
            settings: form.settings.clone(),
            integrations: Vec::new(),
            notifications: Vec::new(),
            response_count,
            created_at: form.created_at,
            updated_at: form.updated_at,
            published_at: form.published_at,
        }
    }

    /// Adds the integrations of `form`, with the `secrets` that the server has made for this request.
    #[must_use]
    pub fn with_integrations(self, form: &Form, secrets: &[GeneratedSecret]) -> Self {
        let integrations = form_integrations(&form.integrations, secrets);
        Self { integrations, notifications: form_notifications(&form.integrations), ..self }
    }
}
