//! Forms on the wire.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::domain::admission::{Shut, accepting};
use crate::domain::form::{Form, Status, Version, WrittenVersion};
use crate::domain::open_enum::OpenEnum;
use crate::domain::settings::Settings;
use crate::id::FormId;

/// A form as creating it answers: exactly these fields; `description`, `slug` and `settings` only if they were
/// sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormCreated {
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub id: FormId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = String, example = "draft")]
    pub status: OpenEnum<Status>,
    /// Questions in canonical form: `id`, `type`, `title`, `required`, then the settings that were set.
    #[schema(value_type = Vec<Object>)]
    pub questions: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Settings::is_empty", deserialize_with = "known_settings")]
    #[schema(value_type = Option<Object>)]
    pub settings: Settings,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What a dry run of creating a form answers: the form as it would be, without an id.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormTried {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = String, example = "draft")]
    pub status: OpenEnum<Status>,
    /// Questions in canonical form: `id`, `type`, `title`, `required`, then the settings that were set.
    #[schema(value_type = Vec<Object>)]
    pub questions: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Settings::is_empty", deserialize_with = "known_settings")]
    #[schema(value_type = Option<Object>)]
    pub settings: Settings,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A form in the list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormEntry {
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub id: FormId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = String, example = "published")]
    pub status: OpenEnum<Status>,
    /// Why a published form takes no answers now; only where it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "closed")]
    pub accepting_reason: Option<OpenEnum<Shut>>,
    pub response_count: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// When it went to the trash, of one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
}

/// A page of forms, newest first. Where the next begins stands in the header `Link`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormList {
    pub forms: Vec<FormEntry>,
}

/// The questions of a form as they were at one time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    /// Counts from 1.
    pub version: u32,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Questions in canonical form: `id`, `type`, `title`, `required`, then the settings that were set.
    #[schema(value_type = Vec<Object>)]
    pub questions: Box<RawValue>,
}

/// A page of versions, newest first. Where the next begins stands in the header `Link`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VersionList {
    pub versions: Vec<VersionView>,
}

/// A form, whole.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FormDetail {
    #[schema(value_type = String, example = "frm_7k2m9q4x1abz")]
    pub id: FormId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[schema(value_type = String, example = "published")]
    pub status: OpenEnum<Status>,
    /// The number of the questions' version, from 1.
    pub version: u32,
    /// Whether the form takes answers now.
    pub accepting: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "closed")]
    pub accepting_reason: Option<OpenEnum<Shut>>,
    /// Questions in canonical form: `id`, `type`, `title`, `required`, then the settings that were set.
    #[schema(value_type = Vec<Object>)]
    pub questions: Box<RawValue>,
    /// Those that were set.
    #[serde(deserialize_with = "known_settings")]
    #[schema(value_type = Object)]
    pub settings: Settings,
    pub response_count: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub published_at: Option<Timestamp>,
}

/// Reads those settings that this version knows.
fn known_settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
    let mut sent = serde_json::Map::deserialize(deserializer)?;
    sent.retain(|name, value| {
        let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        Settings::deserialize(serde_json::Value::Object(alone)).is_ok()
    });
    Settings::deserialize(serde_json::Value::Object(sent)).map_err(serde::de::Error::custom)
}

impl FormCreated {
    /// The answer to having created `form`.
    pub fn new(form: &Form, version: &Version) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: form.id,
            title: form.title.clone(),
            description: form.description.clone(),
            slug: form.slug.clone(),
            status: form.status.into(),
            questions: serde_json::value::to_raw_value(&version.questions)?,
            settings: form.settings.clone(),
            created_at: form.created_at,
        })
    }
}

impl FormTried {
    /// The answer to having tried to create `form`.
    pub fn new(form: &Form, version: &Version) -> Result<Self, serde_json::Error> {
        let FormCreated { id: _, title, description, slug, status, questions, settings, created_at } =
            FormCreated::new(form, version)?;
        Ok(Self { title, description, slug, status, questions, settings, created_at })
    }
}

impl FormEntry {
    /// `form` with its number of submissions, at the time `now`.
    pub fn new(form: &Form, response_count: u64, now: Timestamp) -> Self {
        // That a draft takes no answers is what its status says.
        let reason = accepting(form, response_count, now).err().filter(|why| *why != Shut::Draft);
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

impl From<WrittenVersion> for VersionView {
    fn from(WrittenVersion { number, created_at, questions }: WrittenVersion) -> Self {
        Self { version: number, created_at, questions }
    }
}

impl FormDetail {
    /// `form` with its questions and its number of submissions, at the time `now`.
    pub fn new(form: &Form, version: WrittenVersion, response_count: u64, now: Timestamp) -> Self {
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
            response_count,
            created_at: form.created_at,
            updated_at: form.updated_at,
            published_at: form.published_at,
        }
    }
}
