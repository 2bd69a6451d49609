//! Google spreadsheets, to which each submission is appended.

mod cell;
pub mod service_account;

use std::str::FromStr;

use url::Url;

use self::cell::{cell, raw_cell, time_cell};
use self::service_account::ServiceAccount;
use crate::clock::Timestamp;
use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::{Kind, Rendering};
use crate::domain::integration::outbound::{Outbound, SheetRow, SheetTarget};
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Sealer};
use crate::domain::integration::row::{RowBody, SCHEDULE, VALUES, is_raw, render_row};
use crate::domain::integration::settings::Settings;
use crate::domain::integration::spec::{
    HTTP_LIMIT_MS, IntegrationSpec, Member, MemberValue, Need, Pace, WriteMode, ensure,
};
use crate::domain::json::Value;
use crate::domain::question::Question;
use crate::id::IntegrationId;
use crate::secret::Secret;

/// Rows that are appended together.
const MAX_ROWS: usize = 100;

/// Milliseconds from one batch to the next. A batch reads twice and writes twice at most; Google takes 60 of either a minute from
/// an account.
pub const INTERVAL_MS: i64 = 2_400;

/// Maximum characters of the id of a spreadsheet; Google's have 44.
const MAX_ID: usize = 100;

/// Maximum characters of the name of a tab.
const MAX_SHEET: usize = 100;

const SPREADSHEET_ID: &str = "spreadsheet_id";
const SHEET: &str = "sheet";
const SERVICE_ACCOUNT: &str = "service_account";

static SPEC: IntegrationSpec = IntegrationSpec {
    about: "A row of a Google spreadsheet for each submission.",
    events: &[EventType::SubmissionCompleted],
    members: &[
        Member {
            name: SPREADSHEET_ID,
            need: Need::Required,
            value: MemberValue::Text { max: MAX_ID, check: check_id },
            about: "The id of the spreadsheet: in its URL, the part between `/d/` and the next `/`.",
            example: r#""1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789""#,
        },
        Member {
            name: SHEET,
            need: Need::Optional,
            value: MemberValue::Text { max: MAX_SHEET, check: check_sheet },
            about: "The name of the tab. Without it, the first one.",
            example: r#""Answers""#,
        },
        Member::secret(
            SERVICE_ACCOUNT,
            Need::Required,
            check_service_account,
            "The key of a service account: the content of its JSON file.",
        ),
        VALUES,
    ],
    pace: Pace {
        mode: WriteMode::Append,
        concurrency: 1,
        batch: MAX_ROWS,
        interval_ms: INTERVAL_MS,
        longest_ms: 8 * HTTP_LIMIT_MS,
        schedule: &SCHEDULE,
    },
    set_up: "In the Google Cloud console, enable the *Google Sheets API* and create a service account with a key in JSON format. Share the spreadsheet with the account's address, as an editor. Use an empty tab: its first row is written by the server. `--set-secret service_account=@key.json` takes the key from its file.",
    limits: "100 rows at a time, one batch in 2.4 seconds. Spreadsheets with the same service account share its 60 requests a minute, a limit of Google. The first row names the columns by the ids of questions, and a new question gets a column at the right, of which a tab has 26 or as many as the form had questions at first: do not rename these. A cell has 50,000 characters; longer answers are cut. Options appear by their labels, lists joined with \"; \", times as dates in UTC. Texts stay texts: none is run as a formula.",
    repeats: "Once: before a row is appended again, column A is searched for its id; keep the ids there. A row could only appear twice if Google appended it after it had cut the connection.",
    source: "https://developers.google.com/workspace/sheets/api/limits",
};

pub(super) struct GoogleSheets;

impl Kind for GoogleSheets {
    fn spec(&self) -> &IntegrationSpec {
        &SPEC
    }

    fn target(&self, settings: &Settings) -> String {
        settings.text(SPREADSHEET_ID).unwrap_or_default().to_owned()
    }

    /// The digest of the id, for the log: whoever knows the id may be able to read the spreadsheet.
    fn destination(&self, settings: &Settings, _: IntegrationId) -> String {
        format!("sheets.googleapis.com/{}", Secret::new(self.target(settings)).digest())
    }

    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>> {
        render_row(
            rendering,
            if is_raw(settings) { |_: &Question, answer: &Value| raw_cell(answer) } else { cell },
        )
    }

    fn plan(
        &self,
        settings: &Settings,
        attempt: PlannedAttempt<'_>,
        sealer: Sealer<'_>,
    ) -> Result<Outbound, PlanError> {
        let row = serde_json::from_slice(attempt.body).map_err(|_unreadable| PlanError::Damaged)?;
        let RowBody { id, submitted_at, cells } = row;
        let submitted = Timestamp::parse(&submitted_at).filter(|_| !is_raw(settings));
        let submitted_at = submitted.map_or_else(|| submitted_at.into(), time_cell);
        let target = SheetTarget {
            spreadsheet_id: self.target(settings),
            sheet: settings.text(SHEET).map(str::to_owned),
            service_account: settings.open(SERVICE_ACCOUNT, sealer)?.ok_or(PlanError::Damaged)?,
        };
        Ok(Outbound::Sheet(SheetRow { target, id, submitted_at, cells }))
    }
}

fn check_id(text: &str) -> Result<(), String> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let part = "must be the id alone: in the URL, the part between `/d/` and the next `/`";
    ensure(!text.contains("/d/"), part)?;
    ensure(text.bytes().all(is_valid), "must be the id of a spreadsheet: letters, digits, `-` and `_`")
}

fn check_sheet(text: &str) -> Result<(), String> {
    ensure(!text.contains(char::is_control), "must not contain control characters")
}

fn check_service_account(text: &str) -> Result<(), String> {
    ServiceAccount::parse(text).map(drop)
}

/// The URLs of the services that are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleEndpoints {
    /// Where access tokens are requested.
    pub token: Url,
    /// The spreadsheets of the Sheets API v4, without a slash at the end.
    pub spreadsheets: Url,
}

impl Default for GoogleEndpoints {
    fn default() -> Self {
        let url = |text| Url::parse(text).expect("a constant URL");
        Self {
            token: url("https://oauth2.googleapis.com/token"),
            spreadsheets: url("https://sheets.googleapis.com/v4/spreadsheets"),
        }
    }
}

/// A text is not a URL that can replace Google's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an http or https URL without user, query and fragment, such as https://google.example.com")]
pub struct InvalidGoogleUrl;

/// Parses the URL that replaces the host of both services.
impl FromStr for GoogleEndpoints {
    type Err = InvalidGoogleUrl;

    fn from_str(text: &str) -> Result<Self, InvalidGoogleUrl> {
        let base = Url::parse(text).map_err(|_error| InvalidGoogleUrl)?;
        let is_plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !is_plain || !matches!(base.scheme(), "https" | "http") {
            return Err(InvalidGoogleUrl);
        }
        let base = base.as_str().trim_end_matches('/');
        let url = |path| Url::parse(&format!("{base}/{path}")).map_err(|_error| InvalidGoogleUrl);
        Ok(Self { token: url("token")?, spreadsheets: url("v4/spreadsheets")? })
    }
}
