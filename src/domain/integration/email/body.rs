//! The body of a delivery by mail: what is kept from the first attempt on.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::domain::integration::outbound::MailMessage;
use crate::id::DeliveryId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MailBody {
    /// The respondent's address, of a confirmation; other addresses are those of the settings at each attempt.
    #[serde(default)]
    pub to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub date: Timestamp,
    /// The form, of a mail to its owners.
    #[serde(default)]
    pub list: Option<String>,
    /// Whether it goes to the respondent.
    pub is_confirmation: bool,
}

impl MailBody {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a mail is JSON")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn into_message(self, to: String, delivery: DeliveryId) -> MailMessage {
        let Self { to: _, reply_to, subject, text, html, date, list, is_confirmation } = self;
        MailMessage {
            id: delivery.to_string(),
            to,
            reply_to,
            subject,
            text,
            html,
            date,
            list,
            is_confirmation,
        }
    }
}
