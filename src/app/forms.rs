//! Creating, reading, changing and deleting forms.

use std::sync::Arc;

use super::integrations::log_changes;
use super::{ApiError, Current, IdempotentRequest, ListPage, MAX_TRIES, Result, Session, into_result};
use crate::api::{Code, FormCreated, FormDetail, FormEntry, VersionView};
use crate::clock::Timestamp;
use crate::domain::form::admission::{AcceptingReason, Refusal};
use crate::domain::form::definition::{Definition, FormPatch};
use crate::domain::form::filter::FormFilter;
use crate::domain::form::{Form, RetiredQuestions, StoredVersion, Version};
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

/// A form as a caller sees it, and its revision.
type ShownForm = (FormDetail, u64);

/// Versions read at a time to find the types of removed questions.
const VERSIONS_READ: usize = 100;

impl Session {
    /// Reads `body` on the pool: a form may have hundreds of patterns to compile.
    async fn read_definition<T: Send + 'static>(
        &self,
        body: &str,
        read: impl FnOnce(&Value, &Limits) -> Result<T, Vec<Violation>> + Send + 'static,
    ) -> Result<T> {
        let (body, limits) = (body.to_owned(), self.limits);
        let work = move || Ok(read(&json::parse(&body)?, &limits).map_err(Refusal::InvalidDefinition)?);
        self.run_job(work).await
    }

    /// Creates a draft from the definition in the body. Returns it with its revision, and true if that was replayed.
    pub async fn create_form(&self, request: IdempotentRequest<'_>) -> Result<(FormCreated, u64, bool)> {
        self.require_unlimited_scope(Scope::Write)?;
        let (mut form, version, generated) = self.draft(request.body).await?;
        let idempotency_key = request.idempotency_key(&self.caller, IdempotentOperation::CreateForm);
        let new = NewForm { form: form.clone(), version: version.clone(), idempotency_key };
        // If the id is taken, one chance in a billion billion, this fails: another attempt draws another id.
        let step = self.store.insert_form(new).await?;
        if matches!(step, StepResult::Missing) {
            // The caller's workspace was deleted.
            return Err(ApiError::new(Code::Unauthorized));
        }
        let ((id, created_at), replayed) = into_result(step, Code::WorkspaceNotFound, "")?;
        // The same body makes the same form, so a replay needs only the first one's id and time. Its secrets are others.
        (form.id, form.created_at, form.updated_at) = (id, created_at, created_at);
        if !replayed {
            log_changes(&self.caller, &[], &form);
        }
        let secrets = if replayed { &[] } else { &*generated };
        Ok((FormCreated::new(&form, version.questions, secrets), form.revision, replayed))
    }

    /// Parses the definition in the body, on the pool, without storing it. Returns the secrets made for integrations, too.
    async fn draft(&self, body: &str) -> Result<(Form, StoredVersion, Vec<GeneratedSecret>)> {
        let (id, workspace, now) = (FormId::draw(&*self.random), self.caller.workspace, self.now());
        let app = Arc::clone(&self.app);
        let read = move |value: &Value, limits: &Limits| {
            let context = app.definition_context(workspace, now);
            let mut definition = Definition::read_on_server(value, limits, context)?;
            let generated = std::mem::take(&mut definition.generated);
            let (form, version) = Form::create(id, workspace, definition, now);
            Ok((form, version.to_stored(), generated))
        };
        self.read_definition(body, read).await
    }

    /// Dry run of [`create_form`](Self::create_form): returns the form that would be created, with an id of zeros.
    pub async fn try_form(&self, body: &str) -> Result<FormCreated> {
        self.require_unlimited_scope(Scope::Write)?;
        let (form, version, _) = self.draft(body).await?;
        self.refuse_taken_slug(form.slug.as_deref()).await?;
        Ok(FormCreated { id: FormId::ZERO, ..FormCreated::new(&form, version.questions, &[]) })
    }

    /// Requires `submit` or `read`: a key that may submit answers may read the questions.
    fn require_form_access(&self) -> Result<()> {
        if self.caller.has_scope(Scope::Submit) { Ok(()) } else { self.require_scope(Scope::Read) }
    }

    /// Returns the form with its questions and its number of submissions.
    pub async fn get_form(&self, form: &str) -> Result<ShownForm> {
        self.require_form_access()?;
        let found = self.form(form).await?;
        let version = self.stored_version(&found).await?;
        self.show_form(&found, version, &[]).await
    }

    async fn show_form(
        &self,
        form: &Form,
        version: StoredVersion,
        secrets: &[GeneratedSecret],
    ) -> Result<ShownForm> {
        let responses = self.store.count_submissions(form.reference()).await?;
        Ok(show_form_at(&self.caller, form, FormDetail::new(form, version, responses, self.now()), secrets))
    }

    /// Returns the current version of a form outside the trash, as it is stored.
    async fn stored_version(&self, form: &Form) -> Result<StoredVersion> {
        let found = self.store.find_version(form.reference(), form.version).await?;
        found.ok_or_else(|| ApiError::not_found(Code::FormNotFound, &form.id.to_string()))
    }

    /// Returns the text of the JSON Schema of the form's answers.
    pub async fn get_schema(&self, form: &str) -> Result<String> {
        self.require_form_access()?;
        let Current { form, version } = self.current(form).await?;
        let write = move || Ok(version.schema(&form.title, form.settings.unknown_answers()).to_string());
        self.run_job(write).await
    }

    /// Lists the workspace's forms with their numbers of submissions, newest first.
    pub async fn list_forms(&self, request: FormListRequest) -> Result<ListPage<FormEntry>> {
        self.require_scope(Scope::Read)?;
        let FormListRequest { mut filter, accepting_reason, cursor, limit, count } = request;
        filter.forms = self.caller.forms.clone();
        let list = format!("forms {} {filter:?} {accepting_reason:?}", self.caller.workspace);
        filter.accepting_reason = accepting_reason.map(|reason| (reason, self.now()));
        let cursors = self.cursors(list).await?;
        let after = cursors.read(cursor.as_deref())?.map(form_position);
        let _permit = match filter.matches_all() && !count {
            true => None,
            false => Some(self.job_permit().await?),
        };
        let page = self.store.list_forms(self.caller.workspace, &filter, after, limit).await?;
        let next = page
            .next
            .map(|(time, id)| cursors.write(&[&time.millis().to_be_bytes()[..], &id.to_bytes()].concat()));
        let total = match count {
            true => self.store.count_forms(self.caller.workspace, &filter).await?,
            false => None,
        };
        let now = self.now();
        let items = page.rows.iter().map(|(form, count)| FormEntry::new(form, *count, now)).collect();
        Ok(ListPage { items, next, total })
    }

    /// Applies the merge patch in the body to the form, if it is at the `expected` revision. A dry run stores nothing, and
    /// returns the form as it would be.
    pub async fn update_form(
        &self,
        form: &str,
        body: &str,
        expected: ExpectedRevision,
        dry_run: bool,
    ) -> Result<ShownForm> {
        self.require_scope(Scope::Write)?;
        let id = self.form(form).await?.id;
        let change = Arc::new(self.read_definition(body, FormPatch::read).await?);
        let _permit = self.form_edits.acquire(id).await;
        for _ in 0..MAX_TRIES {
            let current = self.current(form).await?;
            expected.check(current.form.revision)?;
            let (update, generated) = self.edit_form(&current, Arc::clone(&change)).await?;
            // Read before anything is stored: an edit that was made is reported, whatever happens to the form meanwhile.
            let version = match update.as_ref().and_then(|update| update.version.clone()) {
                Some(new) => new,
                None => self.stored_version(&current.form).await?,
            };
            let Some(update) = update else { return self.show_form(&current.form, version, &[]).await };
            let edited = update.form.clone();
            if dry_run {
                if edited.slug != current.form.slug {
                    self.refuse_taken_slug(edited.slug.as_deref()).await?;
                }
                return self.show_form(&edited, version, &[]).await;
            }
            let step = self.store.replace_form(self.caller.workspace, update).await?;
            if !matches!(step, StepResult::Recheck) {
                into_result(conceal_holder(&self.caller, step), Code::FormNotFound, form)?;
                log_changes(&self.caller, &current.form.integrations, &edited);
                return self.show_form(&edited, version, &generated).await;
            }
        }
        Err(ApiError::overloaded())
    }

    /// Applies `change` to a form, on the pool; `None` if that changes nothing. Returns the secrets made for integrations, too.
    async fn edit_form(
        &self,
        current: &Current,
        change: Arc<FormPatch>,
    ) -> Result<(Option<FormUpdate>, Vec<GeneratedSecret>)> {
        let retired = self.retired_questions(&current.form, &change).await?;
        let (Current { form, version }, app, now) = (current.clone(), Arc::clone(&self.app), self.now());
        let work = move || {
            let context = app.definition_context(form.workspace, now);
            let edited = form.change(&version, &retired, &change, context)?;
            let Some(edited) = edited else { return Ok((None, Vec::new())) };
            let update = FormUpdate {
                seen_revision: form.revision,
                now,
                resumed: edited.form.resumed_integrations(&form.integrations),
                form: edited.form,
                version: edited.version.as_ref().map(Version::to_stored),
                retired: edited.retired,
                response: None,
            };
            Ok((Some(update), edited.generated))
        };
        self.run_job(work).await
    }

    /// Returns the removed questions, with the types of those that `change` brings back. Each version of the questions is
    /// kept, so the newest one with the id has its type.
    async fn retired_questions(&self, form: &Form, change: &FormPatch) -> Result<RetiredQuestions> {
        if change.questions.is_none() {
            return Ok(RetiredQuestions::default());
        }
        let mut retired = RetiredQuestions::new(self.store.find_retired(form.reference()).await?);
        let mut before = Some(form.version);
        while before.is_some() && retired.untyped(change).next().is_some() {
            let page = self.store.list_versions(form.reference(), before, VERSIONS_READ).await?;
            let Some(page) = page else { break };
            page.rows.iter().for_each(|version| retired.learn_types(change, version));
            before = page.next;
        }
        Ok(retired)
    }

    async fn refuse_taken_slug(&self, slug: Option<&str>) -> Result<()> {
        let Some(slug) = slug else { return Ok(()) };
        match self.store.find_slug(self.caller.workspace, slug).await? {
            Some(holder) => {
                let holder = Some(holder).filter(|holder| self.caller.may_use(*holder));
                Err(Refusal::SlugTaken { slug: slug.to_owned(), holder }.into())
            }
            None => Ok(()),
        }
    }

    /// Moves the form to the trash if it is at the `expected` revision. With `purge` it is erased, also from the trash;
    /// that needs the scope `admin`.
    pub async fn delete_form(&self, form: &str, purge: bool, expected: ExpectedRevision) -> Result<()> {
        self.require_scope(if purge { Scope::Admin } else { Scope::Write })?;
        let id = self.form_id(form).await?;
        let step = if purge {
            self.store.purge_form(self.caller.workspace.form(id), expected).await?
        } else {
            self.store.trash_form(self.caller.workspace.form(id), expected, self.now()).await?
        };
        into_result(step, Code::FormNotFound, form)?;
        if purge {
            self.deliveries.remove_erased_files().await;
        }
        Ok(())
    }

    /// Restores the form from the trash. Returns it as it was then, and true if that was replayed.
    pub async fn restore_form(
        &self,
        form: &str,
        request: IdempotentRequest<'_>,
    ) -> Result<(ShownForm, bool)> {
        self.require_scope(Scope::Write)?;
        let id = self.form_id(form).await?;
        let idempotency_key = request.idempotency_key(&self.caller, IdempotentOperation::RestoreForm(id));
        let step =
            self.store.restore_form(self.caller.workspace.form(id), idempotency_key, self.now()).await?;
        let (restored, replayed) = into_result(conceal_holder(&self.caller, step), Code::FormNotFound, form)?;
        let Restored { form, version, responses, at } = restored;
        let detail = FormDetail::new(&form, version, responses, at);
        Ok((show_form_at(&self.caller, &form, detail, &[]), replayed))
    }

    /// Lists the form's versions, newest first: at most `limit`, from `cursor` on.
    pub async fn list_versions(
        &self,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<VersionView>> {
        self.require_scope(Scope::Read)?;
        let id = self.form_id(form).await?;
        let cursors = self.cursors(format!("versions {} {id}", self.caller.workspace)).await?;
        let before = cursors.read(cursor)?.map(u32::from_be_bytes);
        let page = self.store.list_versions(self.caller.workspace.form(id), before, limit).await?;
        let page = page.ok_or_else(|| ApiError::not_found(Code::FormNotFound, form))?;
        let next = page.next.map(|last| cursors.write(&last.to_be_bytes()));
        let items = page.rows.into_iter().map(VersionView::from).collect();
        Ok(ListPage { items, next, total: None })
    }

    /// Returns one version of the form's questions.
    pub async fn get_version(&self, form: &str, number: &str) -> Result<VersionView> {
        self.require_scope(Scope::Read)?;
        let id = self.form_id(form).await?;
        // Only the canonical form: `+1` and `01` are not valid.
        let parsed = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number);
        let above = parsed.and_then(|number| number.checked_add(1));
        let found = self.store.list_versions(self.caller.workspace.form(id), above, 1).await?;
        let newest = found.ok_or_else(|| ApiError::not_found(Code::FormNotFound, form))?.rows.pop();
        let version = newest.filter(|version| Some(version.number) == parsed);
        version.map(VersionView::from).ok_or_else(|| ApiError::not_found(Code::VersionNotFound, number))
    }
}

/// Adds the integrations of `form` to `detail` if the caller may read them, with the `secrets` made for this request.
fn show_form_at(caller: &Caller, form: &Form, detail: FormDetail, secrets: &[GeneratedSecret]) -> ShownForm {
    let detail = if caller.has_scope(Scope::Read) { detail.with_integrations(form, secrets) } else { detail };
    (detail, form.revision)
}

/// Leaves out of a refusal which form has a slug, if the caller's key may not be used for that form.
fn conceal_holder<T>(caller: &Caller, step: StepResult<T>) -> StepResult<T> {
    match step {
        StepResult::Refused(Refusal::SlugTaken { slug, holder }) => {
            let holder = holder.filter(|holder| caller.may_use(*holder));
            StepResult::Refused(Refusal::SlugTaken { slug, holder })
        }
        other => other,
    }
}

/// Returns the time and the id in the cursor of a form.
fn form_position(position: [u8; 16]) -> (Timestamp, FormId) {
    let position = u128::from_be_bytes(position);
    let [time, id] = [position >> 64, position].map(|half| half as u64);
    (Timestamp::from_millis(time.cast_signed()), FormId::from_bytes(id.to_be_bytes()))
}
