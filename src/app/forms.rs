//! Creating, reading, changing and deleting forms.

use std::sync::Arc;

use super::integrations::log_changes;
use super::{
    App, AppError, Current, IdempotentRequest, ListPage, MAX_TRIES, Resource, conceal_holder, into_result,
    no_form, require_scope, require_unlimited,
};
use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, Refusal};
use crate::domain::form::definition::{Definition, FormPatch};
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredIds, StoredVersion, Version};
use crate::domain::integration::definition::GeneratedSecret;
use crate::domain::json::{self, Value};
use crate::domain::revision::ExpectedRevision;
use crate::domain::validation::limits::Limits;
use crate::domain::validation::violation::Violation;
use crate::domain::workspace::{Caller, Scope};
use crate::id::FormId;
use crate::store::{FormUpdate, IdempotentOperation, NewForm, Restored, StepResult};

/// A request for a page of the list of forms.
#[derive(Debug, Clone)]
pub struct FormListRequest {
    pub filter: FormFilter,
    /// Lists only forms that do not accept answers for this reason.
    pub accepting_reason: Option<AcceptingReason>,
    pub cursor: Option<String>,
    /// Maximum number of items.
    pub limit: usize,
    /// Whether to count all items.
    pub count: bool,
}

/// A form for output, with its questions as JSON, which need not be compiled.
#[derive(Debug, Clone)]
pub struct FormView {
    pub form: Arc<Form>,
    pub version: StoredVersion,
    /// Number of submissions.
    pub responses: u64,
    /// Secrets that the server has made for this request.
    pub generated: Vec<GeneratedSecret>,
}

/// A form that was created, or would be in a dry run.
#[derive(Debug, Clone)]
pub struct CreatedForm {
    pub form: Form,
    pub version: Version,
    /// Secrets that were made for its integrations; those of a replay are others than the stored ones.
    pub generated: Vec<GeneratedSecret>,
    /// Whether an earlier request created it.
    pub replayed: bool,
}

impl App {
    /// Reads `body` on the pool: a form may have hundreds of patterns to compile.
    async fn read_definition<T: Send + 'static>(
        &self,
        caller: &Caller,
        body: &str,
        read: impl FnOnce(&Value, &Limits) -> Result<T, Vec<Violation>> + Send + 'static,
    ) -> Result<T, AppError> {
        let (body, limits) = (body.to_owned(), self.limits);
        let work = move || {
            let value = json::parse(&body).map_err(AppError::Malformed)?;
            read(&value, &limits)
                .map_err(|violations| AppError::Refused(Refusal::InvalidDefinition(violations)))
        };
        self.run_job(caller, work).await
    }

    /// Creates a draft from the definition in the body.
    pub async fn create_form(
        &self,
        caller: &Caller,
        request: IdempotentRequest<'_>,
    ) -> Result<CreatedForm, AppError> {
        require_scope(caller, Scope::Write)?;
        require_unlimited(caller)?;
        let (mut draft, stored) = self.draft(caller, request.body).await?;
        let idempotency_key = request.idempotency_key(caller, IdempotentOperation::CreateForm);
        let new = NewForm { form: draft.form.clone(), version: stored, idempotency_key };
        let step = self.store.insert_form(new).await?;
        // It is missing if the caller's workspace was deleted. If the id is taken, one chance in a billion billion, this fails: another attempt draws another id.
        let ((id, created_at), replayed) = into_result(step, AppError::Unauthenticated)?;
        // The same body makes the same form, so a replay needs only the first one's id and time.
        let form = &mut draft.form;
        (form.id, form.created_at, form.updated_at) = (id, created_at, created_at);
        (draft.version.created_at, draft.replayed) = (created_at, replayed);
        if !replayed {
            log_changes(caller, &[], &draft.form);
        }
        Ok(draft)
    }

    /// Parses the definition in the body, on the pool, without storing it.
    async fn draft(&self, caller: &Caller, body: &str) -> Result<(CreatedForm, StoredVersion), AppError> {
        let (id, sealing) = (FormId::draw(&*self.random), self.sealing(caller));
        let read = move |value: &Value, limits: &Limits| {
            let context = sealing.context();
            let mut definition = Definition::read_on_server(value, limits, context)?;
            let generated = std::mem::take(&mut definition.generated);
            let (form, version) = Form::create(id, context.workspace, definition, context.now);
            let stored = version.to_stored();
            Ok((CreatedForm { form, version, generated, replayed: false }, stored))
        };
        self.read_definition(caller, body, read).await
    }

    /// Dry run of [`create_form`](Self::create_form): returns the form that would be created.
    pub async fn try_form(&self, caller: &Caller, body: &str) -> Result<CreatedForm, AppError> {
        require_scope(caller, Scope::Write)?;
        require_unlimited(caller)?;
        let (draft, _) = self.draft(caller, body).await?;
        self.refuse_taken_slug(caller, draft.form.slug.as_deref()).await?;
        Ok(draft)
    }

    /// Returns the form with its questions and its number of submissions.
    pub async fn get_form(&self, caller: &Caller, form: &str) -> Result<FormView, AppError> {
        require_form_access(caller)?;
        let found = self.form(caller, form).await?;
        let version = self.stored_version(&found).await?;
        self.view(found, version).await
    }

    async fn view(&self, form: Arc<Form>, version: StoredVersion) -> Result<FormView, AppError> {
        let responses = self.store.count_submissions(form.workspace, form.id).await?;
        Ok(FormView { form, version, responses, generated: Vec::new() })
    }

    /// Returns the current version of a form outside the trash, as it is stored.
    async fn stored_version(&self, form: &Form) -> Result<StoredVersion, AppError> {
        let found = self.store.find_version(form.workspace, form.id, form.version).await?;
        found.ok_or_else(|| no_form(&form.id.to_string()))
    }

    /// Returns the text of the JSON Schema of the form's answers.
    pub async fn get_schema(&self, caller: &Caller, form: &str) -> Result<String, AppError> {
        require_form_access(caller)?;
        let Current { form, version } = self.current(caller, form).await?;
        let write = move || Ok(version.schema(&form.title, form.settings.unknown_answers()).to_string());
        self.run_job(caller, write).await
    }

    /// Lists the workspace's forms with their numbers of submissions, newest first.
    pub async fn list_forms(
        &self,
        caller: &Caller,
        request: FormListRequest,
    ) -> Result<ListPage<(Arc<Form>, u64)>, AppError> {
        require_scope(caller, Scope::Read)?;
        let FormListRequest { mut filter, accepting_reason, cursor, limit, count } = request;
        filter.forms = caller.forms.clone();
        let list = format!("forms {} {filter:?} {accepting_reason:?}", caller.workspace);
        filter.accepting_reason = accepting_reason.map(|reason| (reason, self.now()));
        let cursors = self.cursors(list).await?;
        let after = cursors.read(cursor.as_deref())?.map(form_position);
        let _permit = match filter.matches_all() && !count {
            true => None,
            false => Some(self.job_permit(caller).await?),
        };
        let page = self.store.list_forms(caller.workspace, &filter, after, limit).await?;
        let next = page
            .next
            .map(|(time, id)| cursors.write(&[&time.millis().to_be_bytes()[..], &id.to_bytes()].concat()));
        let total = match count {
            true => self.store.count_forms(caller.workspace, &filter).await?,
            false => None,
        };
        Ok(ListPage { items: page.rows, next, total })
    }

    /// Applies the merge patch in the body to the form, if it is at the `expected` revision. A dry run stores nothing, and
    /// returns the form as it would be.
    pub async fn update_form(
        &self,
        caller: &Caller,
        form: &str,
        body: &str,
        expected: ExpectedRevision,
        dry_run: bool,
    ) -> Result<FormView, AppError> {
        require_scope(caller, Scope::Write)?;
        let id = self.form(caller, form).await?.id;
        let change = Arc::new(self.read_definition(caller, body, FormPatch::read).await?);
        let _permit = self.form_edits.acquire(id).await;
        for _ in 0..MAX_TRIES {
            let current = self.current(caller, form).await?;
            expected.check(current.form.revision).map_err(AppError::Refused)?;
            let (update, generated) = self.edit_form(caller, &current, Arc::clone(&change)).await?;
            // Read before anything is stored: an edit that was made is reported, whatever happens to the form meanwhile.
            let version = match update.as_ref().and_then(|update| update.version.clone()) {
                Some(new) => new,
                None => self.stored_version(&current.form).await?,
            };
            let step = match update {
                None => StepResult::Done(Arc::clone(&current.form)),
                Some(FormUpdate { form: edited, .. }) if dry_run => {
                    if edited.slug != current.form.slug {
                        self.refuse_taken_slug(caller, edited.slug.as_deref()).await?;
                    }
                    StepResult::Done(Arc::new(edited))
                }
                Some(update) => {
                    let edited = Arc::new(update.form.clone());
                    self.store.replace_form(caller.workspace, update).await?.map(|()| edited)
                }
            };
            if !matches!(step, StepResult::Recheck) {
                let step = into_result(step, no_form(form));
                let (edited, _) = step.map_err(|error| conceal_holder(caller, error))?;
                if !dry_run {
                    log_changes(caller, &current.form.integrations, &edited);
                }
                return Ok(FormView { generated, ..self.view(edited, version).await? });
            }
        }
        Err(AppError::Overloaded)
    }

    /// Applies `change` to a form, on the pool; `None` if that changes nothing. Returns the secrets made for integrations, too.
    async fn edit_form(
        &self,
        caller: &Caller,
        current: &Current,
        change: Arc<FormPatch>,
    ) -> Result<(Option<FormUpdate>, Vec<GeneratedSecret>), AppError> {
        let retired = match change.questions {
            Some(_) => self.store.find_retired(current.form.workspace, current.form.id).await?,
            None => RetiredIds::new(),
        };
        let (Current { form, version }, sealing) = (current.clone(), self.sealing(caller));
        let work = move || {
            let edited = form.change(&version, &retired, &change, sealing.context());
            let edited = edited.map_err(AppError::Refused)?;
            let Some(edited) = edited else { return Ok((None, Vec::new())) };
            let update = FormUpdate {
                seen_revision: form.revision,
                resumed: edited.form.resumed_integrations(&form.integrations),
                form: edited.form,
                version: edited.version.as_ref().map(Version::to_stored),
                retired: edited.retired,
                response: None,
            };
            Ok((Some(update), edited.generated))
        };
        self.run_job(caller, work).await
    }

    async fn refuse_taken_slug(&self, caller: &Caller, slug: Option<&str>) -> Result<(), AppError> {
        let Some(slug) = slug else { return Ok(()) };
        match self.store.find_slug(caller.workspace, slug).await? {
            Some(holder) => {
                let taken = AppError::Refused(Refusal::slug_taken(slug, holder));
                Err(conceal_holder(caller, taken))
            }
            None => Ok(()),
        }
    }

    /// Moves the form to the trash if it is at the `expected` revision. With `purge` it is erased, also from the trash;
    /// that needs the scope `admin`.
    pub async fn delete_form(
        &self,
        caller: &Caller,
        form: &str,
        purge: bool,
        expected: ExpectedRevision,
    ) -> Result<(), AppError> {
        require_scope(caller, if purge { Scope::Admin } else { Scope::Write })?;
        let id = self.form_id(caller, form).await?;
        let step = if purge {
            self.store.purge_form(caller.workspace, id, expected).await?
        } else {
            self.store.trash_form(caller.workspace, id, expected, self.now()).await?
        };
        into_result(step, no_form(form))?;
        if purge {
            self.deliveries.remove_erased_files().await;
        }
        Ok(())
    }

    /// Restores the form from the trash. Returns it with the time, and true if that was replayed.
    pub async fn restore_form(
        &self,
        caller: &Caller,
        form: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<(FormView, Timestamp, bool), AppError> {
        require_scope(caller, Scope::Write)?;
        let id = self.form_id(caller, form).await?;
        let idempotency_key = request.idempotency_key(caller, IdempotentOperation::RestoreForm(id));
        let step = self.store.restore_form(caller.workspace, id, idempotency_key, self.now()).await?;
        let step = into_result(step, no_form(form));
        let (restored, replayed) = step.map_err(|error| conceal_holder(caller, error))?;
        let Restored { form, version, responses, at } = restored;
        Ok((FormView { form, version, responses, generated: Vec::new() }, at, replayed))
    }

    /// Lists the form's versions, newest first: at most `limit`, from `cursor` on.
    pub async fn list_versions(
        &self,
        caller: &Caller,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<StoredVersion>, AppError> {
        require_scope(caller, Scope::Read)?;
        let id = self.form_id(caller, form).await?;
        let cursors = self.cursors(format!("versions {} {id}", caller.workspace)).await?;
        let before = cursors.read(cursor)?.map(u32::from_be_bytes);
        let page = self.store.list_versions(caller.workspace, id, before, limit).await?;
        let page = page.ok_or_else(|| no_form(form))?;
        let next = page.next.map(|last| cursors.write(&last.to_be_bytes()));
        Ok(ListPage { items: page.rows, next, total: None })
    }

    /// Returns one version of the form's questions.
    pub async fn get_version(
        &self,
        caller: &Caller,
        form: &str,
        number: &str,
    ) -> Result<StoredVersion, AppError> {
        require_scope(caller, Scope::Read)?;
        let id = self.form_id(caller, form).await?;
        // Only the canonical form: `+1` and `01` are not valid.
        let parsed = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number);
        let above = parsed.and_then(|number| number.checked_add(1));
        let found = self.store.list_versions(caller.workspace, id, above, 1).await?;
        let newest = found.ok_or_else(|| no_form(form))?.rows.pop();
        let version = newest.filter(|version| Some(version.number) == parsed);
        version.ok_or_else(|| AppError::NotFound(Resource::Version, number.to_owned()))
    }
}

/// Requires `submit` or `read`: a key that may submit answers may read the questions.
fn require_form_access(caller: &Caller) -> Result<(), AppError> {
    if caller.has_scope(Scope::Submit) { Ok(()) } else { require_scope(caller, Scope::Read) }
}

/// Returns the time and the id in the cursor of a form.
fn form_position(position: [u8; 16]) -> (Timestamp, FormId) {
    let position = u128::from_be_bytes(position);
    let [time, id] = [position >> 64, position].map(|half| half as u64);
    (Timestamp::from_millis(time.cast_signed()), FormId::from_bytes(id.to_be_bytes()))
}
