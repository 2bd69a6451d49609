//! Signing secrets, as Standard Webhooks 1.0 writes them: `whsec_` and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::id::Random;
use crate::secret::Secret;

/// Begins every signing secret; base64 follows.
pub const PREFIX: &str = "whsec_";

/// Maximum secrets that sign at the same time.
pub const MAX_LIVE_SECRETS: usize = 5;

/// Random bytes of a generated signing secret.
const GENERATED_BYTES: usize = 32;

pub(in crate::domain::integration) fn generate(random: &dyn Random) -> Secret<String> {
    let mut bytes = [0; GENERATED_BYTES];
    random.fill(&mut bytes);
    Secret::new(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// Explains what is wrong with `secret`, without quoting it.
pub(in crate::domain::integration) fn check(secret: &str) -> Result<(), String> {
    const EXPECTED: &str = "must be `whsec_` and 24 to 64 random bytes in base64";
    let bytes = secret.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
    match bytes {
        Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(()),
        Some(bytes) => Err(format!("{EXPECTED}, not {} bytes", bytes.len())),
        None => Err(EXPECTED.to_owned()),
    }
}
