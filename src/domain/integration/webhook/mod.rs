//! Webhooks, as specified by Standard Webhooks 1.0.

mod kind;
mod payload;
pub mod signature;

use super::definition::draft_input::DraftInput;
use super::definition::secret_input::{SecretInput, check_bearer_token};
use super::event::EventType;
use super::kind::{HasSpec, kind};
use super::settings::{SIGNING_SECRET, SettingsDraft};
use super::spec::{IntegrationSpec, Member, MemberValue, Need};
use crate::domain::open_enum::named_enum;
use crate::domain::validation::fields::Fields;
use crate::domain::validation::violation::Rule;

kind! {
    /// A request to an address for each event.
    Webhook
}

named_enum! {
    /// How much of a submission the body has.
    Payload {
        Full = "full",
        /// Ids only.
        Thin = "thin",
    }
}

const URL: &str = "url";
const PAYLOAD: &str = "payload";
const HEADERS: &str = "headers";
const BEARER_TOKEN: &str = "bearer_token";

impl HasSpec for Webhook {
    const SPEC: IntegrationSpec = IntegrationSpec {
        about: "A request to an address for each event, signed as Standard Webhooks 1.0 specifies.",
        events: &EventType::SUBSCRIBABLE,
        members: &[
            Member {
                name: URL,
                need: Need::Required,
                value: MemberValue::Url,
                about: "The address, `https` unless the server allows its network; public, without user, password and fragment. Another host needs all secrets again.",
                example: r#""https://crm.example/hook""#,
            },
            Member {
                name: SIGNING_SECRET,
                need: Need::Optional,
                value: MemberValue::SigningSecret,
                about: "The signing secret: `whsec_` and 24 to 64 bytes in base64. One that is left out is made by the server and shown once.",
                example: "",
            },
            Member {
                name: PAYLOAD,
                need: Need::Default(r#""full""#),
                value: MemberValue::Choice(&["full", "thin"]),
                about: "What the body has of a submission: all of it, or ids only.",
                example: "",
            },
            Member {
                name: HEADERS,
                need: Need::Optional,
                value: MemberValue::Headers,
                about: "Additional headers, by name.",
                example: r#"{"X-Source":"forms"}"#,
            },
            Member {
                name: BEARER_TOKEN,
                need: Need::Optional,
                value: MemberValue::Secret(check_bearer_token),
                about: "Sent as `Authorization: Bearer`.",
                example: "",
            },
        ],
        set_up: "Give the address of your receiver as `url`. The answer shows the signing secret once; `forms listen` and any Standard Webhooks library verify requests with it.",
        limits: "16 requests at a time to a host; 15 seconds for each. A body over 256 KiB is replaced by a thin one, with `truncated: true`.",
        repeats: "At least once. Every attempt has the same `webhook-id` and the same body: remember the ids.",
        source: "https://www.standardwebhooks.com",
    };

    fn check(draft: &SettingsDraft, fields: &mut Fields<'_, '_>, input: DraftInput<'_>) {
        let is_authorized =
            draft.plain.headers(HEADERS).iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let has_token = match draft.secret(BEARER_TOKEN) {
            Some(SecretInput::Set { .. }) => true,
            Some(SecretInput::Keep) => {
                input.stored().is_some_and(|stored| stored.secret(BEARER_TOKEN).is_some())
            }
            Some(SecretInput::Remove) | None => false,
        };
        if is_authorized && has_token {
            let message = "`bearer_token` and the header `Authorization` exclude each other";
            fields.refuse(BEARER_TOKEN, Rule::InvalidRange, message);
        }
    }
}
