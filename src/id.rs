//! Identifiers: how each is drawn, written and read. None of them is a secret.

use std::fmt;
use std::str::FromStr;

/// Lower-case Crockford base32: no `i`, `l`, `o`, `u`.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Where randomness comes from.
pub trait Random: Send + Sync {
    /// Fills `bytes` with bytes nobody can predict.
    fn fill(&self, bytes: &mut [u8]);
}

/// A text that is not a valid identifier of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind} id")]
pub struct ParseIdError {
    kind: &'static str,
    text: String,
}

fn write_base32(f: &mut fmt::Formatter<'_>, value: u128, length: u32) -> fmt::Result {
    let mut text = [0u8; 26];
    for (place, byte) in (0..length).zip(text.iter_mut()) {
        *byte = BASE32[((value >> (5 * (length - 1 - place))) & 31) as usize];
    }
    f.write_str(std::str::from_utf8(&text[..length as usize]).expect("base32 is ASCII"))
}

fn read_base32(text: &str, length: usize) -> Option<u128> {
    if text.len() != length {
        return None;
    }
    text.bytes().try_fold(0u128, |value, byte| {
        let digit = BASE32.iter().position(|known| *known == byte)?;
        value.checked_mul(32)?.checked_add(digit as u128)
    })
}

/// `Debug` and JSON of a type with `Display` and `FromStr`: its text.
macro_rules! text_form {
    ($name:ty) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <std::borrow::Cow<'_, str>>::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use text_form;

/// Text, JSON and parsing for one kind of id: a prefix and `$length` base32 characters.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $bytes:literal, $prefix:literal, $length:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// The id of zeros, which no object has.
            pub const ZERO: Self = Self(0);

            /// The binary form; its order is the order of the ids.
            pub fn to_bytes(self) -> [u8; $bytes] {
                self.0.to_be_bytes()
            }

            pub fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(<$inner>::from_be_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_base32(f, u128::from(self.0), $length)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .and_then(|digits| read_base32(digits, $length))
                    .and_then(|value| <$inner>::try_from(value).ok())
                    .map(Self)
                    .ok_or_else(|| ParseIdError { kind: $kind, text: text.to_owned() })
            }
        }

        text_form!($name);
    };
}

id!(
    /// `frm_` and 12 characters: short enough to type.
    FormId, u64, 8, "frm_", 12, "form"
);
id!(
    /// `ws_` and 12 characters.
    WorkspaceId, u64, 8, "ws_", 12, "workspace"
);
id!(
    /// `sub_` and a ULID of 26 characters: 48 bits of time in milliseconds, then 80 random bits. Ids are handed
    /// out in rising order, so their order is the order of submission.
    SubmissionId, u128, 16, "sub_", 26, "submission"
);

id!(
    /// `int_` and 12 characters.
    IntegrationId, u64, 8, "int_", 12, "integration"
);
id!(
    /// `evt_` and a ULID of 26 characters. The event of a new submission has the ULID of the submission.
    EventId, u128, 16, "evt_", 26, "event"
);
id!(
    /// `dlv_` and a ULID of 26 characters, derived from the event and the target.
    DeliveryId, u128, 16, "dlv_", 26, "delivery"
);

/// A form with its workspace, outside of which it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FormRef {
    pub workspace: WorkspaceId,
    pub id: FormId,
}

/// A submission with its form, outside of which it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubmissionRef {
    pub form: FormRef,
    pub id: SubmissionId,
}

impl WorkspaceId {
    pub fn form(self, id: FormId) -> FormRef {
        FormRef { workspace: self, id }
    }
}

impl FormRef {
    pub fn submission(self, id: SubmissionId) -> SubmissionRef {
        SubmissionRef { form: self, id }
    }
}

/// Where a delivery goes: an integration, and which of its addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryTarget {
    pub integration: IntegrationId,
    /// Index of the address among those of the integration, below 16; 0 if it has only one.
    pub recipient: u8,
}

impl DeliveryTarget {
    pub fn to_bytes(self) -> [u8; 8] {
        (self.integration.0 | u64::from(self.recipient) << 60).to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let bits = u64::from_be_bytes(bytes);
        Self { integration: IntegrationId(bits & (u64::MAX >> 4)), recipient: (bits >> 60) as u8 }
    }
}

impl From<IntegrationId> for DeliveryTarget {
    fn from(integration: IntegrationId) -> Self {
        Self { integration, recipient: 0 }
    }
}

impl FormId {
    pub fn draw(random: &dyn Random) -> Self {
        Self(sixty_bits(random))
    }
}

impl WorkspaceId {
    pub fn draw(random: &dyn Random) -> Self {
        Self(sixty_bits(random))
    }
}

impl IntegrationId {
    pub fn draw(random: &dyn Random) -> Self {
        Self(sixty_bits(random))
    }
}

impl EventId {
    /// Draws the id of an event at the moment `millis`.
    pub fn draw(millis: i64, random: &dyn Random) -> Self {
        Self(SubmissionId::after(None, millis, random).0)
    }

    /// The id of the event that `submission` was completed.
    pub fn of_completed(submission: SubmissionId) -> Self {
        Self(submission.0)
    }

    /// The submission whose completion has this id.
    pub fn completed_submission(self) -> SubmissionId {
        SubmissionId(self.0)
    }

    /// The id's millisecond, counted from the Unix epoch.
    pub fn millis(self) -> i64 {
        (self.0 >> 80) as i64
    }
}

impl DeliveryId {
    /// The id of what `event` owes to `target`.
    pub fn of(event: EventId, target: DeliveryTarget) -> Self {
        Self(event.0 ^ u128::from(u64::from_be_bytes(target.to_bytes())))
    }

    /// The range of the ids of all events that a delivery with this id may have: they differ in the lowest 64 bits.
    pub fn events(self) -> std::ops::RangeInclusive<EventId> {
        const LOW: u128 = u64::MAX as u128;
        EventId(self.0 & !LOW)..=EventId(self.0 | LOW)
    }
}

fn sixty_bits(random: &dyn Random) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_be_bytes(bytes) >> 4
}

impl SubmissionId {
    /// The id for a submission of the moment `millis`, above `last`: in the same millisecond (or an earlier one)
    /// it is the next after `last`, else 80 fresh random bits follow the time.
    pub fn after(last: Option<Self>, millis: i64, random: &dyn Random) -> Self {
        let millis = u128::from(u64::try_from(millis).unwrap_or(0) & 0xffff_ffff_ffff);
        match last {
            Some(last) if last.0 >> 80 >= millis => Self(last.0 + 1),
            _ => {
                let mut bytes = [0; 16];
                random.fill(&mut bytes[6..]);
                // The top random bit stays free, so that counting up within a millisecond does not run over.
                bytes[6] &= 0x7f;
                Self(millis << 80 | u128::from_be_bytes(bytes))
            }
        }
    }

    /// The least that an id of the moment `millis` or later can be.
    pub fn first_of(millis: i64) -> Self {
        Self(u128::from(u64::try_from(millis).unwrap_or(0) & 0xffff_ffff_ffff) << 80)
    }

    /// A new id soon after this one. Those that follow at once may have been given, even if nothing has them now; this one
    /// was not.
    pub fn beyond(self, random: &dyn Random) -> Self {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        Self(self.0 + 1 + u128::from(u64::from_be_bytes(bytes)))
    }

    /// The id's millisecond, counted from the Unix epoch.
    pub fn millis(self) -> i64 {
        (self.0 >> 80) as i64
    }
}
