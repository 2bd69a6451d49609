//! Integrations of a form: listing, creating, changing, deleting and testing them.

use std::sync::Arc;

use super::keys::invalid;
use super::{
    App, AppError, Current, IdempotentRequest, MAX_TRIES, ReplayableBody, Resource, into_result, no_form,
    require_scope,
};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::delivery::attempt::Attempt;
use crate::domain::form::Form;
use crate::domain::form::admission::Refusal;
use crate::domain::integration::Integration;
use crate::domain::integration::definition::DefinitionContext;
use crate::domain::json::Value;
use crate::domain::revision::ExpectedRevision;
use crate::domain::workspace::{Caller, Scope, read_grace};
use crate::id::IntegrationId;
use crate::secret::Secret;
use crate::store::{
    FormUpdate, IdempotencyKey, IdempotentOperation, QueueTotals, RecordedResponse, StepResult,
};

/// An integration for output.
#[derive(Debug, Clone)]
pub struct IntegrationView {
    /// Its form.
    pub form: Arc<Form>,
    pub integration: Integration,
    pub totals: QueueTotals,
    /// The secret that the server has made for this request.
    pub secret: Option<Secret<String>>,
}

/// A change of one integration: the integration after it, or none if it is deleted, and a value to return.
type Changed<T> = (Option<Integration>, T);

/// The form after a change of its integrations with what the change returned, or the body of an earlier response.
enum Edited<T> {
    Done(Arc<Form>, T),
    Replayed(String),
}

const ANY: ExpectedRevision = ExpectedRevision::Any;

impl App {
    /// Lists the integrations of a form, with the form.
    pub async fn list_integrations(
        &self,
        caller: &Caller,
        form: &str,
    ) -> Result<(Arc<Form>, Vec<IntegrationView>), AppError> {
        require_scope(caller, Scope::Read)?;
        let form = self.form(caller, form).await?;
        let totals = self.store.queue_totals(form.workspace, form.id).await?;
        let view = |(integration, totals): (&Integration, QueueTotals)| IntegrationView {
            form: Arc::clone(&form),
            integration: integration.clone(),
            totals,
            secret: None,
        };
        let views = form.integrations.iter().zip(totals).map(view).collect();
        Ok((form, views))
    }

    /// Returns the integration with the name or id `name`.
    pub async fn get_integration(
        &self,
        caller: &Caller,
        form: &str,
        name: &str,
    ) -> Result<IntegrationView, AppError> {
        require_scope(caller, Scope::Read)?;
        let form = self.form(caller, form).await?;
        let integration = find(&form, name)?.clone();
        self.integration_view(form, integration, None).await
    }

    async fn integration_view(
        &self,
        form: Arc<Form>,
        integration: Integration,
        secret: Option<Secret<String>>,
    ) -> Result<IntegrationView, AppError> {
        let totals = self.store.queue_totals(form.workspace, form.id).await?;
        let place = form.integrations.iter().position(|one| one.id == integration.id);
        let totals = place.and_then(|place| totals.into_iter().nth(place)).unwrap_or_default();
        Ok(IntegrationView { form, integration, totals, secret })
    }

    /// Creates an integration of the form. `render` makes the body of the response, also without the secret to record it.
    pub async fn create_integration(
        &self,
        caller: &Caller,
        form: &str,
        request: IdempotentRequest<'_>,
        render: impl Fn(&IntegrationView) -> String,
    ) -> Result<ReplayableBody, AppError> {
        require_scope(caller, Scope::Write)?;
        let body = Arc::new(self.parse(caller, request.body).await?);
        let operation = IdempotentOperation::CreateIntegration(self.form(caller, form).await?.id);
        let key = request.idempotency_key(caller, operation);
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let (others, questions) = (&current.form.integrations, &current.version.questions);
            let (new, secret) = Integration::create(&body, others, questions, context)
                .map_err(|violations| AppError::Refused(Refusal::InvalidDefinition(violations)))?;
            Ok((others.iter().cloned().chain([new]).collect(), secret.map(|generated| generated.secret)))
        };
        let render = |form: &Arc<Form>, secret: Option<Secret<String>>| {
            let integration = form.integrations.last().expect("it was just added").clone();
            let (form, totals) = (Arc::clone(form), QueueTotals::default());
            render(&IntegrationView { form, integration, totals, secret })
        };
        let record = |form: &Arc<Form>, _: &_| render(form, None);
        Ok(match self.edit_integrations(caller, (form, None), &ANY, change, key, record).await? {
            Edited::Done(form, secret) => (render(&form, secret), false),
            Edited::Replayed(body) => (body, true),
        })
    }

    /// Applies the merge patch in the body to an integration, if its form is at the `expected` revision. `enabled: true` also
    /// ends a pause by the server.
    pub async fn update_integration(
        &self,
        caller: &Caller,
        form: &str,
        name: &str,
        body: &str,
        expected: &ExpectedRevision,
    ) -> Result<IntegrationView, AppError> {
        require_scope(caller, Scope::Write)?;
        let patch = Arc::new(self.parse(caller, body).await?);
        let enables = patch.get("enabled") == Some(&Value::Bool(true));
        let change = move |one: &Integration, current: &Current, context: DefinitionContext<'_>| {
            let others = replaced(&current.form, one.id, None);
            let (edited, secret) = one
                .update(&patch, &others, &current.version.questions, context)
                .map_err(|violations| AppError::Refused(Refusal::InvalidDefinition(violations)))?;
            Ok((Some(edited.clone()), (edited, secret.map(|generated| generated.secret))))
        };
        let (form, (integration, secret)) =
            self.edit_integration(caller, (form, name), expected, enables, change).await?;
        self.integration_view(form, integration, secret).await
    }

    /// Deletes an integration, if its form is at the `expected` revision. What waits is canceled.
    pub async fn delete_integration(
        &self,
        caller: &Caller,
        form: &str,
        name: &str,
        expected: &ExpectedRevision,
    ) -> Result<(), AppError> {
        require_scope(caller, Scope::Write)?;
        let change = |_: &Integration, _: &Current, _: DefinitionContext<'_>| Ok((None, ()));
        self.edit_integration(caller, (form, name), expected, false, change).await.map(drop)
    }

    /// Replaces the signing secret of an integration. `render` makes the body of the response, with the new secret or
    /// without, and the time until which the old one is valid.
    pub async fn rotate_secret(
        &self,
        caller: &Caller,
        form: &str,
        name: &str,
        request: IdempotentRequest<'_>,
        render: impl Fn(Option<Secret<String>>, Timestamp) -> String,
    ) -> Result<ReplayableBody, AppError> {
        require_scope(caller, Scope::Write)?;
        let grace_millis = match request.body {
            "" => DAY_MILLIS,
            body => read_grace(&self.parse(caller, body).await?, DAY_MILLIS).map_err(invalid)?,
        };
        let found = self.form(caller, form).await?;
        let id = find(&found, name)?.id;
        let key = request.idempotency_key(caller, IdempotentOperation::RotateSecret(found.id, id));
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let old = find_id(&current.form, id)?;
            let (integration, secret) = old.rotate_secret(grace_millis, context).map_err(invalid)?;
            let until = Timestamp::from_millis(context.now.millis() + grace_millis);
            Ok((replaced(&current.form, id, Some(integration)), (secret, until)))
        };
        let record = |_: &_, (_, until): &(_, Timestamp)| render(None, *until);
        Ok(match self.edit_integrations(caller, (form, None), &ANY, change, key, record).await? {
            Edited::Done(_, (secret, until)) => (render(Some(secret), until), false),
            Edited::Replayed(body) => (body, true),
        })
    }

    /// Sends a test event to an integration at once. `render` makes the body of the response.
    pub async fn test_integration(
        &self,
        caller: &Caller,
        form: &str,
        name: &str,
        request: IdempotentRequest<'_>,
        render: impl Fn(&Attempt) -> String,
    ) -> Result<ReplayableBody, AppError> {
        require_scope(caller, Scope::Write)?;
        let form = self.form(caller, form).await?;
        let integration = find(&form, name)?;
        let operation = IdempotentOperation::TestIntegration(form.id, integration.id);
        let idempotency_key = request.idempotency_key(caller, operation);
        let send = async { Ok(render(&self.deliveries.send_test(&form, integration).await)) };
        self.run_once(idempotency_key, send).await
    }

    /// Changes one integration of a form, and ends a pause by the server if `resumes`. Returns the form after it.
    async fn edit_integration<T: Send + 'static>(
        &self,
        caller: &Caller,
        (form, name): (&str, &str),
        expected: &ExpectedRevision,
        resumes: bool,
        change: impl Fn(&Integration, &Current, DefinitionContext<'_>) -> Result<Changed<T>, AppError>
        + Send
        + Sync
        + 'static,
    ) -> Result<(Arc<Form>, T), AppError> {
        let id = find(&*self.form(caller, form).await?, name)?.id;
        let change = move |current: &Current, context: DefinitionContext<'_>| {
            let (edited, value) = change(find_id(&current.form, id)?, current, context)?;
            Ok((replaced(&current.form, id, edited), value))
        };
        let resumed = (form, resumes.then_some(id));
        match self.edit_integrations(caller, resumed, expected, change, None, |_, _| String::new()).await? {
            Edited::Done(form, value) => Ok((form, value)),
            Edited::Replayed(_) => unreachable!("the request has no idempotency key"),
        }
    }

    /// Replaces the integrations of a form by those that `change` returns, with a value, and ends a pause of `resumed`.
    /// Writes nothing if that changes nothing. Returns the form after it.
    async fn edit_integrations<T: Send + 'static>(
        &self,
        caller: &Caller,
        (form, resumed): (&str, Option<IntegrationId>),
        expected: &ExpectedRevision,
        change: impl Fn(&Current, DefinitionContext<'_>) -> Result<(Vec<Integration>, T), AppError>
        + Send
        + Sync
        + 'static,
        idempotency_key: Option<IdempotencyKey>,
        render: impl Fn(&Arc<Form>, &T) -> String,
    ) -> Result<Edited<T>, AppError> {
        let (id, change) = (self.form(caller, form).await?.id, Arc::new(change));
        let _permit = self.form_edits.acquire(id).await;
        for _ in 0..MAX_TRIES {
            let current = self.current(caller, form).await?;
            // After the form was read: a response that is recorded later moves the form's revision.
            if let Some(body) = self.find_response(idempotency_key.as_ref()).await? {
                return Ok(Edited::Replayed(body));
            }
            expected.check(current.form.revision).map_err(AppError::Refused)?;
            let (seen, change, sealing) = (current.clone(), Arc::clone(&change), self.sealing(caller));
            // On the pool: conditions have patterns to compile.
            let work = move || change(&seen, sealing.context());
            let (integrations, value) = self.run_job(caller, work).await?;
            let is_same = integrations == current.form.integrations;
            if is_same && resumed.is_none() {
                return Ok(Edited::Done(current.form, value));
            }
            let edited = match is_same {
                true => Arc::clone(&current.form),
                false => Arc::new(Form {
                    integrations,
                    revision: current.form.revision + 1,
                    updated_at: self.now(),
                    ..Form::clone(&current.form)
                }),
            };
            let mut resumed_ids = edited.resumed_integrations(&current.form.integrations);
            resumed_ids.extend(resumed);
            let response = idempotency_key
                .map(|idempotency_key| RecordedResponse { idempotency_key, body: render(&edited, &value) });
            let update = FormUpdate {
                seen_revision: current.form.revision,
                form: Form::clone(&edited),
                version: None,
                retired: None,
                resumed: resumed_ids,
                response,
            };
            let step = self.store.replace_form(caller.workspace, update).await?;
            if !matches!(step, StepResult::Recheck) {
                into_result(step, no_form(form))?;
                log_changes(caller, &current.form.integrations, &edited);
                return Ok(Edited::Done(edited, value));
            }
        }
        Err(AppError::Overloaded)
    }
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
pub(super) fn find<'a>(form: &'a Form, name: &str) -> Result<&'a Integration, AppError> {
    let id: Option<IntegrationId> = name.parse().ok();
    let found = form.integrations.iter().find(|one| Some(one.id) == id || one.name == name);
    found.ok_or_else(|| AppError::NotFound(Resource::Integration, name.to_owned()))
}

/// Finds the integration again after its form was read anew.
fn find_id(form: &Form, id: IntegrationId) -> Result<&Integration, AppError> {
    form.integration(id).ok_or_else(|| AppError::NotFound(Resource::Integration, id.to_string()))
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
