//! Integrations of a form: listing, creating, changing, deleting and testing them.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{ApiError, Current, IdempotentRequest, MAX_TRIES, ReplayableBody, Result, Session, into_result};
use crate::api::{Code, IntegrationDetail, IntegrationHealth, IntegrationList, SecretRotated};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::domain::integration::Integration;
use crate::domain::integration::definition::DefinitionContext;
use crate::domain::json::Value;
use crate::domain::revision::ExpectedRevision;
use crate::domain::workspace::{Caller, Scope, read_grace};
use crate::id::IntegrationId;
use crate::secret::Secret;
use crate::store::{FormUpdate, IdempotencyKey, IdempotentOperation, QueueTotals, StepResult};

/// The JSON of an integration, and the revision of its form.
type ShownIntegration = (Box<RawValue>, u64);

/// A change of integrations: those after it, and the secret that the server has made for it.
type Change = (Vec<Integration>, Option<Secret<String>>);

/// The outcome of a change of integrations.
struct Edited {
    /// The form after it.
    form: Arc<Form>,
    /// The secret that the server has made for this request.
    secret: Option<Secret<String>>,
    /// The response, with the secret, or that to an earlier request.
    body: ReplayableBody,
}

const ANY: ExpectedRevision = ExpectedRevision::Any;

impl Session {
    /// Lists the integrations of a form. Returns its revision, too.
    pub async fn list_integrations(&self, form: &str) -> Result<(IntegrationList, u64)> {
        self.require_scope(Scope::Read)?;
        let form = self.form(form).await?;
        let totals = self.store.queue_totals(form.reference()).await?;
        let shown = form.integrations.iter().zip(&totals).map(|(one, totals)| show(one, totals, None));
        Ok((IntegrationList { integrations: shown.collect() }, form.revision))
    }

    /// Returns the integration with the name or id `name`.
    pub async fn get_integration(&self, form: &str, name: &str) -> Result<ShownIntegration> {
        self.require_scope(Scope::Read)?;
        let form = self.form(form).await?;
        self.show_integration(&form, find(&form, name)?, None).await
    }

    async fn show_integration(
        &self,
        form: &Form,
        integration: &Integration,
        secret: Option<&Secret<String>>,
    ) -> Result<ShownIntegration> {
        let totals = self.store.queue_totals(form.reference()).await?;
        let place = form.integrations.iter().position(|one| one.id == integration.id);
        let totals = place.and_then(|place| totals.into_iter().nth(place)).unwrap_or_default();
        Ok((show(integration, &totals, secret), form.revision))
    }

    /// Creates an integration of the form.
    pub async fn create_integration(
        &self,
        form: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Write)?;
        let body = Arc::new(self.parse(request.body).await?);
        let operation = IdempotentOperation::CreateIntegration(self.form(form).await?.id);
        let key = request.idempotency_key(&self.caller, operation);
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let (others, questions) = (&current.form.integrations, &current.version.questions);
            let (new, secret) =
                Integration::create(&body, others, questions, context).map_err(Refusal::InvalidDefinition)?;
            Ok((others.iter().cloned().chain([new]).collect(), secret.map(|generated| generated.secret)))
        };
        let render = |form: &Form, secret: Option<&Secret<String>>| {
            let new = form.integrations.last().expect("it was just added");
            Ok(show(new, &QueueTotals::default(), secret).get().to_owned())
        };
        Ok(self.edit_integrations((form, None), &ANY, change, key, render).await?.body)
    }

    /// Applies the merge patch in the body to an integration, if its form is at the `expected` revision. `enabled: true` also
    /// ends a pause by the server.
    pub async fn update_integration(
        &self,
        form: &str,
        name: &str,
        body: &str,
        expected: &ExpectedRevision,
    ) -> Result<ShownIntegration> {
        self.require_scope(Scope::Write)?;
        let patch = Arc::new(self.parse(body).await?);
        let enables = patch.get("enabled") == Some(&Value::Bool(true));
        let id = find(&*self.form(form).await?, name)?.id;
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let others = replaced(&current.form, id, None);
            let (edited, secret) = find_id(&current.form, id)?
                .update(&patch, &others, &current.version.questions, context)
                .map_err(Refusal::InvalidDefinition)?;
            Ok((replaced(&current.form, id, Some(edited)), secret.map(|generated| generated.secret)))
        };
        let resumed = (form, enables.then_some(id));
        let edited = self.edit_integrations(resumed, expected, change, None, unrecorded).await?;
        self.show_integration(&edited.form, find_id(&edited.form, id)?, edited.secret.as_ref()).await
    }

    /// Deletes an integration, if its form is at the `expected` revision. What waits is canceled.
    pub async fn delete_integration(
        &self,
        form: &str,
        name: &str,
        expected: &ExpectedRevision,
    ) -> Result<()> {
        self.require_scope(Scope::Write)?;
        let id = find(&*self.form(form).await?, name)?.id;
        let change = move |current: &Current, _: DefinitionContext<'_>| {
            find_id(&current.form, id)?;
            Ok((replaced(&current.form, id, None), None))
        };
        self.edit_integrations((form, None), expected, change, None, unrecorded).await.map(drop)
    }

    pub async fn rotate_secret(
        &self,
        form: &str,
        name: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Write)?;
        let grace_millis = match request.body {
            "" => DAY_MILLIS,
            body => read_grace(&self.parse(body).await?, DAY_MILLIS).map_err(Refusal::InvalidBody)?,
        };
        let found = self.form(form).await?;
        let id = find(&found, name)?.id;
        let key = request.idempotency_key(&self.caller, IdempotentOperation::RotateSecret(found.id, id));
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let old = find_id(&current.form, id)?;
            let (integration, secret) =
                old.rotate_secret(grace_millis, context).map_err(Refusal::InvalidBody)?;
            Ok((replaced(&current.form, id, Some(integration)), Some(secret)))
        };
        let render = |form: &Form, secret: Option<&Secret<String>>| {
            let previous_valid_until = Timestamp::from_millis(form.updated_at.millis() + grace_millis);
            Ok(serde_json::to_string(&SecretRotated { secret: secret.cloned(), previous_valid_until })?)
        };
        Ok(self.edit_integrations((form, None), &ANY, change, key, render).await?.body)
    }

    /// Sends a test event to an integration at once.
    pub async fn test_integration(
        &self,
        form: &str,
        name: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Write)?;
        let form = self.form(form).await?;
        let integration = find(&form, name)?;
        let operation = IdempotentOperation::TestIntegration(form.id, integration.id);
        let idempotency_key = request.idempotency_key(&self.caller, operation);
        self.run_once(idempotency_key, async { Ok(self.deliveries.send_test(&form, integration).await) })
            .await
    }

    /// Applies `change` to the integrations of a form, and ends a pause of `resumed`. Writes nothing if that changes nothing.
    /// `render`s the response, and records it without the secret under the idempotency key.
    async fn edit_integrations(
        &self,
        (form, resumed): (&str, Option<IntegrationId>),
        expected: &ExpectedRevision,
        change: impl Fn(&Current, DefinitionContext<'_>) -> Result<Change> + Send + Sync + 'static,
        idempotency_key: Option<IdempotencyKey>,
        render: impl Fn(&Form, Option<&Secret<String>>) -> Result<String>,
    ) -> Result<Edited> {
        let (id, change) = (self.form(form).await?.id, Arc::new(change));
        let edited = |form: Arc<Form>, secret: Option<Secret<String>>| {
            let body = (render(&form, secret.as_ref())?, false);
            Ok(Edited { form, secret, body })
        };
        let _permit = self.form_edits.acquire(id).await;
        for _ in 0..MAX_TRIES {
            let current = self.current(form).await?;
            // After the form was read: a response that is recorded later moves the form's revision.
            if let Some(body) = self.find_response(idempotency_key.as_ref()).await? {
                return Ok(Edited { form: current.form, secret: None, body: (body, true) });
            }
            expected.check(current.form.revision)?;
            let (app, seen, change, now) =
                (Arc::clone(&self.app), current.clone(), Arc::clone(&change), self.now());
            // On the pool: conditions have patterns to compile.
            let work = move || change(&seen, app.definition_context(seen.form.workspace, now));
            let (integrations, secret) = self.run_job(work).await?;
            let is_same = integrations == current.form.integrations;
            if is_same && resumed.is_none() {
                return edited(current.form, secret);
            }
            let new = match is_same {
                true => Arc::clone(&current.form),
                false => Arc::new(Form {
                    integrations,
                    revision: current.form.revision + 1,
                    updated_at: now,
                    ..Form::clone(&current.form)
                }),
            };
            let mut resumed_ids = new.resumed_integrations(&current.form.integrations);
            resumed_ids.extend(resumed);
            let response = match idempotency_key {
                Some(idempotency_key) => Some((idempotency_key, render(&new, None)?)),
                None => None,
            };
            let update = FormUpdate {
                seen_revision: current.form.revision,
                now,
                form: Form::clone(&new),
                version: None,
                retired: None,
                resumed: resumed_ids,
                response,
            };
            let step = self.store.replace_form(self.caller.workspace, update).await?;
            if !matches!(step, StepResult::Recheck) {
                into_result(step, Code::FormNotFound, form)?;
                log_changes(&self.caller, &current.form.integrations, &new);
                return edited(new, secret);
            }
        }
        Err(ApiError::overloaded())
    }
}

/// Returns the JSON of an integration, with the text of the `secret` that the server has made for this request.
fn show(integration: &Integration, totals: &QueueTotals, secret: Option<&Secret<String>>) -> Box<RawValue> {
    let health = IntegrationHealth::new(&totals.health, totals.pending, totals.dead);
    IntegrationDetail::json(integration, &health, secret)
}

/// Renders nothing, for a request without an idempotency key whose response is made from the form.
fn unrecorded(_: &Form, _: Option<&Secret<String>>) -> Result<String> {
    Ok(String::new())
}

/// Logs which integrations of `edited` were created, changed or deleted since they were those of `before`. Addresses may have
/// secrets, so they are not logged.
pub(super) fn log_changes(caller: &Caller, before: &[Integration], edited: &Form) {
    let log = |one: &Integration, change: &str| {
        let (id, name, kind) = (one.id, &one.name, one.type_name());
        tracing::info!(integration = %id, name, r#type = kind, form = %edited.id, by = %caller.id, "an integration was {change}");
    };
    for one in &edited.integrations {
        match before.iter().find(|earlier| earlier.id == one.id) {
            None => log(one, "created"),
            Some(earlier) if earlier != one => log(one, "changed"),
            Some(_) => {}
        }
    }
    let deleted = before.iter().filter(|one| edited.integration(one.id).is_none());
    deleted.for_each(|one| log(one, "deleted"));
}

/// Finds the integration with the name or id `name`.
pub(super) fn find<'a>(form: &'a Form, name: &str) -> Result<&'a Integration> {
    let id: Option<IntegrationId> = name.parse().ok();
    let found = form.integrations.iter().find(|one| Some(one.id) == id || one.name == name);
    found.ok_or_else(|| ApiError::not_found(Code::IntegrationNotFound, name))
}

/// Finds the integration again after its form was read anew.
fn find_id(form: &Form, id: IntegrationId) -> Result<&Integration> {
    form.integration(id).ok_or_else(|| ApiError::not_found(Code::IntegrationNotFound, &id.to_string()))
}

/// Returns the integrations of `form` with `edited` in the place of the one with this id, or without that one.
fn replaced(form: &Form, id: IntegrationId, edited: Option<Integration>) -> Vec<Integration> {
    let mut all = form.integrations.clone();
    match (all.iter_mut().find(|one| one.id == id), edited) {
        (Some(place), Some(edited)) => *place = edited,
        _ => all.retain(|one| one.id != id),
    }
    all
}
