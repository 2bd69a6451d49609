//! Operations on integrations.

use reqwest::Method;
use serde::Deserialize;

use super::{Client, ClientError, ReceivedBody, Request, Revision, check_name, form_path, to_json};
use crate::api::{Attempt, Code, IntegrationDetail, Rotate, SecretRotated};

impl Client {
    /// Lists the integrations of a form, in its order.
    pub async fn list_integrations(
        &self,
        form: &str,
    ) -> Result<Vec<ReceivedBody<IntegrationDetail>>, ClientError> {
        let path = form_path(form)? + "/integrations";
        Ok(self.call::<IntegrationPage>(Request::get(path)).await?.integrations)
    }

    /// Returns the integration with this name or id.
    pub async fn get_integration(
        &self,
        form: &str,
        name: &str,
    ) -> Result<ReceivedBody<IntegrationDetail>, ClientError> {
        self.call(Request::get(integration_path(form, name)?)).await
    }

    /// Creates an integration from its definition in JSON. If an earlier attempt created it and its response was lost, the
    /// secret that the server made is lost, too.
    pub async fn create_integration(
        &self,
        form: &str,
        definition: &str,
    ) -> Result<ReceivedBody<IntegrationDetail>, ClientError> {
        self.call(Request::post(form_path(form)? + "/integrations").body(definition)).await
    }

    /// Updates an integration by a JSON merge patch; with a revision of its form, only if it is still the current one.
    pub async fn update_integration(
        &self,
        form: &str,
        name: &str,
        patch: &str,
        at: Option<&Revision>,
    ) -> Result<ReceivedBody<IntegrationDetail>, ClientError> {
        self.call(Request::new(Method::PATCH, integration_path(form, name)?).body(patch).at(at)).await
    }

    /// Deletes an integration. After a lost response, 404 counts as success.
    pub async fn delete_integration(&self, form: &str, name: &str) -> Result<(), ClientError> {
        self.send(&Request::new(Method::DELETE, integration_path(form, name)?)).await.map(drop)
    }

    /// Sends a test event to an integration, and returns the attempt.
    pub async fn test_integration(
        &self,
        form: &str,
        name: &str,
    ) -> Result<ReceivedBody<Attempt>, ClientError> {
        self.call(Request::post(integration_path(form, name)? + "/test")).await
    }

    /// Replaces the signing secret of an integration. If an earlier attempt did it and its response was lost, the new secret
    /// is lost, too.
    pub async fn rotate_secret(
        &self,
        form: &str,
        name: &str,
        rotation: &Rotate,
    ) -> Result<ReceivedBody<SecretRotated>, ClientError> {
        let path = integration_path(form, name)? + "/rotate-secret";
        self.call(Request::post(path).body(&to_json(rotation))).await
    }
}

#[derive(Deserialize)]
struct IntegrationPage {
    integrations: Vec<ReceivedBody<IntegrationDetail>>,
}

fn integration_path(form: &str, name: &str) -> Result<String, ClientError> {
    let form = form_path(form)?;
    check_name(name, Code::IntegrationNotFound, "integration")?;
    Ok(format!("{form}/integrations/{name}"))
}
