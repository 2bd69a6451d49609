//! Operations on integrations.

use super::{Client, ReceivedBody, Request, Result, Revision, form_path, join};
use crate::api::{Attempt, Code, IntegrationDetail, Rotate, SecretRotated};

impl Client {
    /// Lists the integrations of a form, in its order.
    pub async fn list_integrations(&self, form: &str) -> Result<Vec<ReceivedBody<IntegrationDetail>>> {
        self.list(form_path(form)? + "/integrations", "integrations").await
    }

    /// Returns the integration with this name or id.
    pub async fn get_integration(&self, form: &str, name: &str) -> Result<ReceivedBody<IntegrationDetail>> {
        self.call(Request::get(integration_path(form, name)?)).await
    }

    /// Creates an integration from its definition in JSON.
    pub async fn create_integration(
        &self,
        form: &str,
        definition: &str,
    ) -> Result<ReceivedBody<IntegrationDetail>> {
        self.call(Request::post(form_path(form)? + "/integrations").body(definition)).await
    }

    /// Updates an integration by a JSON merge patch; with a revision of its form, only if it is still the current one.
    pub async fn update_integration(
        &self,
        form: &str,
        name: &str,
        patch: &str,
        at: Option<&Revision>,
    ) -> Result<ReceivedBody<IntegrationDetail>> {
        self.call(Request::patch(integration_path(form, name)?).body(patch).at(at)).await
    }

    /// Deletes an integration.
    pub async fn delete_integration(&self, form: &str, name: &str) -> Result<()> {
        self.send(&Request::delete(integration_path(form, name)?)).await.map(drop)
    }

    /// Sends a test event to an integration, and returns the attempt.
    pub async fn test_integration(&self, form: &str, name: &str) -> Result<ReceivedBody<Attempt>> {
        self.call(Request::post(integration_path(form, name)? + "/test")).await
    }

    /// Replaces the signing secret of an integration.
    pub async fn rotate_secret(
        &self,
        form: &str,
        name: &str,
        rotation: &Rotate,
    ) -> Result<ReceivedBody<SecretRotated>> {
        self.call(Request::post(integration_path(form, name)? + "/rotate-secret").json(rotation)).await
    }
}

fn integration_path(form: &str, name: &str) -> Result<String> {
    join(&(form_path(form)? + "/integrations"), Code::IntegrationNotFound, "integration", name)
}
