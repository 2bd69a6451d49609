//! Sealing of secrets at rest.

use forms::id::{IntegrationId, WorkspaceId};
use forms::secret::{Secret, SystemRandomness};
use forms::vault::{DecryptError, Sealed, SecretContext, Vault};

#[test]
fn a_secret_opens_only_in_its_place_and_with_its_key() {
    let (vault, random) = (Vault::new(&Secret::new([7; 32])), SystemRandomness);
    let workspace = WorkspaceId::draw(&random);
    let place = SecretContext { workspace, integration: IntegrationId::draw(&random), field: "secret" };
    let sealed = vault.seal(place, "whsec_x", &random);
    assert_eq!(vault.unseal(place, &sealed).unwrap().reveal(), "whsec_x");
    for elsewhere in [
        SecretContext { field: "bearer_token", ..place },
        SecretContext { integration: IntegrationId::draw(&random), ..place },
        SecretContext { workspace: WorkspaceId::draw(&random), ..place },
    ] {
        assert_eq!(vault.unseal(elsewhere, &sealed).unwrap_err(), DecryptError::Damaged);
    }
    let other = Vault::new(&Secret::new([8; 32]));
    assert_eq!(other.unseal(place, &sealed).unwrap_err(), DecryptError::OtherKey);
    let stored = serde_json::to_value(&sealed).unwrap();
    let text = stored.as_str().unwrap();
    assert!(!format!("{sealed:?}").contains(text));
    // As earlier versions stored it: without the id of the key.
    let without_id: Sealed = serde_json::from_value(text.split_once(':').unwrap().1.into()).unwrap();
    assert_eq!(vault.unseal(place, &without_id).unwrap().reveal(), "whsec_x");
    assert_eq!(other.unseal(place, &without_id).unwrap_err(), DecryptError::OtherKey);
}
