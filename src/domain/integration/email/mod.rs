//! Mail: to the owner of a form, or a confirmation to the respondent.

mod compose;

use serde::{Deserialize, Serialize};

use crate::domain::integration::event::EventType;
use crate::domain::integration::kind::{Kind, Rendering};
use crate::domain::integration::outbound::{MailMessage, Outbound};
use crate::domain::integration::plan::{PlanError, PlannedAttempt, Sealer};
use crate::domain::integration::settings::Settings;
use crate::domain::integration::spec::{IntegrationSpec, Member, MemberValue, Need, Pace, WriteMode, ensure};
use crate::domain::integration::template;
use crate::domain::question::email_domain;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;
use crate::id::IntegrationId;

pub(super) struct Email;

/// The body of a delivery: what is kept from the first attempt on.
#[derive(Serialize, Deserialize)]
struct MailBody {
    /// The respondent's address, of a confirmation; other addresses are those of the settings at each attempt.
    #[serde(default)]
    to: Vec<String>,
    #[serde(flatten)]
    message: MailMessage,
}

/// Maximum characters of an address (RFC 5321 §4.5.3.1.3, less the brackets).
const MAX_ADDRESS: usize = 254;

/// Maximum addresses of an integration.
const MAX_ADDRESSES: usize = 10;

/// Maximum characters of a template of a subject.
const MAX_SUBJECT: usize = 500;

/// Maximum characters of a template of a body.
const MAX_BODY: usize = 20_000;

/// A server has 30 seconds until it takes a message, and 10 minutes to accept it, in milliseconds.
const LONGEST_MS: i64 = 30_000 + 10 * 60_000 + 10_000;

/// The waits between attempts in milliseconds, 32.6 hours: a server that defers mail, as some do with every unknown sender,
/// takes it within an hour, mostly.
const SCHEDULE: [i64; 6] = [60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 6 * 3_600_000, 24 * 3_600_000];

pub(super) const TO: &str = "to";
pub(super) const TO_QUESTION: &str = "to_question";
pub(super) const SUBJECT: &str = "subject";
pub(super) const BODY: &str = "body";
pub(super) const REPLY_TO_QUESTION: &str = "reply_to_question";

static SPEC: IntegrationSpec = IntegrationSpec {
    about: "Mail to your team with the answers, or a confirmation to the respondent.",
    events: &EventType::SUBSCRIBABLE,
    members: &[
        Member {
            name: TO,
            need: Need::Optional,
            value: MemberValue::Texts { max_items: MAX_ADDRESSES, max: MAX_ADDRESS, check: check_address },
            about: "Who gets it: 1 to 10 addresses.",
            example: r#"["team@example.com"]"#,
        },
        Member {
            name: TO_QUESTION,
            need: Need::Optional,
            value: MemberValue::EmailQuestion,
            about: "Instead of `to`: the `email` question whose answer is the address of a confirmation, which has no answers in it.",
            example: r#""email""#,
        },
        Member {
            name: SUBJECT,
            need: Need::Optional,
            value: MemberValue::Template(MAX_SUBJECT),
            about: "The subject, a template.",
            example: r#""{{ form.title }}: {{ answers.score }} stars""#,
        },
        Member {
            name: BODY,
            need: Need::Optional,
            value: MemberValue::Template(MAX_BODY),
            about: "The text, a template. Without it, all answers; in a confirmation, which cannot show answers, thanks.",
            example: "",
        },
        Member {
            name: REPLY_TO_QUESTION,
            need: Need::Optional,
            value: MemberValue::EmailQuestion,
            about: "The `email` question whose answer gets the replies. Without it, the first one.",
            example: r#""email""#,
        },
    ],
    pace: Pace {
        mode: WriteMode::Message,
        concurrency: 4,
        batch: 1,
        interval_ms: 0,
        longest_ms: LONGEST_MS,
        schedule: &SCHEDULE,
    },
    set_up: "The operator starts the server with `--smtp-url`, `--smtp-username`, `--smtp-password-file` and `--mail-from`, or with `--mail-dir` for files instead. Then give `to`, or in a form file `notifications: [team@example.com]`.",
    limits: "10 addresses; 4 mails at a time. A respondent gets one confirmation a day from a form: others that day are `skipped`. A form sends 500 confirmations an hour: others wait. A mail has at most 256 KiB of answers.",
    repeats: "At least once. A repeat has the same `Message-ID`, by which most mail programs show one.",
    source: "",
};

impl Kind for Email {
    fn spec(&self) -> &IntegrationSpec {
        &SPEC
    }

    fn check(&self, settings: &Settings, fields: &mut Fields<'_, '_>) {
        let is_confirmation = settings.text(TO_QUESTION).is_some();
        match (!settings.texts(TO).is_empty(), is_confirmation) {
            (true, true) => {
                fields.refuse(TO_QUESTION, Rule::InvalidRange, "`to` and `to_question` exclude each other");
            }
            (false, false) if fields.value(TO).is_none() && fields.value(TO_QUESTION).is_none() => {
                fields.refuse(TO, Rule::MissingField, "`to` or `to_question` is missing");
            }
            _ => {}
        }
        for name in [SUBJECT, BODY].into_iter().filter(|_| is_confirmation) {
            if settings.text(name).is_some_and(uses_answers) {
                let message = format!(
                    "`{name}` of a confirmation must not use `answers` or `fields`: anybody may have typed its address"
                );
                fields.refuse(name, Rule::InvalidTemplate, message);
            }
        }
    }

    fn target(&self, settings: &Settings) -> String {
        match settings.text(TO_QUESTION) {
            Some(question) => format!("the answer to {question}"),
            None => settings.texts(TO).join(", "),
        }
    }

    /// All mail leaves by the operator's server.
    fn destination(&self, _: &Settings, _: IntegrationId) -> String {
        "mail".to_owned()
    }

    fn render(&self, settings: &Settings, rendering: Rendering<'_>) -> Option<Vec<u8>> {
        let body = compose::compose(settings, rendering)?;
        Some(serde_json::to_vec(&body).expect("a mail is JSON"))
    }

    fn plan(&self, _: &Settings, attempt: PlannedAttempt<'_>, _: Sealer<'_>) -> Result<Outbound, PlanError> {
        let body = serde_json::from_slice(attempt.body).map_err(|_unreadable| PlanError::Damaged)?;
        let MailBody { to, message } = body;
        let to = if message.is_confirmation { to.first() } else { attempt.to };
        let to = to.cloned().ok_or(PlanError::NoRecipient)?;
        Ok(Outbound::Mail(MailMessage { id: attempt.delivery.to_string(), to, ..message }))
    }
}

/// Returns an address without what can be written in several ways for one mailbox: case, `+tag`, and a domain in Unicode.
pub fn mailbox(address: &str) -> String {
    let (local, _) = address.rsplit_once('@').unwrap_or((address, ""));
    let local = local.split('+').next().unwrap_or_default().to_lowercase();
    format!("{local}@{}", email_domain(address).unwrap_or_default())
}

fn uses_answers(source: &str) -> bool {
    template::names(source).iter().any(|name| name == "fields" || name.starts_with("answers"))
}

fn check_address(text: &str) -> Result<(), String> {
    ensure(email_domain(text).is_some(), "must be an address such as team@example.com")
}
