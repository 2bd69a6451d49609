//! Serialization of a secret in the one response that shows it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

pub(super) fn serialize<S: Serializer>(
    secret: &Option<Secret<String>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::reveal).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret<String>>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
}
