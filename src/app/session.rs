//! The use cases as one caller carries them out.

use std::ops::Deref;
use std::sync::Arc;

use super::{ApiError, App, Current, Result};
use crate::api::Code;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{Form, Version};
use crate::domain::json::{self, Value};
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, WorkspaceId};
use crate::keyed_semaphore::FairPermit;

/// The use cases with the caller who carries them out.
pub struct Session {
    pub app: Arc<App>,
    pub caller: Caller,
}

impl Deref for Session {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl Session {
    pub(super) fn require_scope(&self, scope: Scope) -> Result<()> {
        if self.caller.has_scope(scope) {
            return Ok(());
        }
        let detail = format!("this operation needs an API key with the scope `{scope}`");
        Err(ApiError::with_detail(Code::InsufficientScope, detail))
    }

    /// Requires a key with `scope` that is not limited to some forms.
    pub(super) fn require_unlimited_scope(&self, scope: Scope) -> Result<()> {
        self.require_scope(scope)?;
        if self.caller.forms.is_none() {
            return Ok(());
        }
        let detail = "this operation needs an API key that is not limited to some forms";
        Err(ApiError::with_detail(Code::InsufficientScope, detail))
    }

    /// Runs `work` on the pool as one of the caller's jobs.
    pub(super) async fn run_job<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _permit = self.job_permit().await?;
        self.pool.run(work).await?
    }

    /// Runs `work` here, or on the pool if it `is_costly`.
    pub(super) async fn run_here_or_job<T: Send + 'static>(
        &self,
        is_costly: bool,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if is_costly { self.run_job(work).await } else { work() }
    }

    /// Parses the JSON in `body`, on the pool if it is large.
    pub(super) async fn parse(&self, body: &str) -> Result<Value> {
        const LARGE: usize = 64 << 10;
        let text = body.to_owned();
        let work = move || Ok(json::parse(&text)?);
        self.run_here_or_job(body.len() > LARGE, work).await
    }

    /// Waits for a permit for one more job of the caller.
    pub(super) async fn job_permit(&self) -> Result<FairPermit> {
        self.jobs.acquire(self.caller.id).await.ok_or_else(ApiError::overloaded)
    }

    /// Finds the form with the id or slug `text`, outside the trash, with its questions.
    pub(super) async fn current(&self, text: &str) -> Result<Current> {
        let form = self.form(text).await?;
        let version = self.version(form.id, form.version).await?;
        Ok(Current { form, version })
    }

    /// Returns a version of a form outside the trash, compiled.
    pub(super) async fn version(&self, form: FormId, number: u32) -> Result<Arc<Version>> {
        let version = self.versions.find(self.caller.workspace.form(form), number).await?;
        version.ok_or_else(|| ApiError::not_found(Code::FormNotFound, &form.to_string()))
    }

    /// Finds the form with the id or slug `text`, outside the trash.
    pub(super) async fn form(&self, text: &str) -> Result<Arc<Form>> {
        let id = self.form_id(text).await?;
        let found = self.store.find_form(self.caller.workspace.form(id)).await?;
        found.ok_or_else(|| ApiError::not_found(Code::FormNotFound, text))
    }

    /// Parses `text` as an id, or finds the form with the slug `text`; a form that the caller's key may not be used for does
    /// not exist.
    pub(super) async fn form_id(&self, text: &str) -> Result<FormId> {
        let found = self.find_form_id(self.caller.workspace, text).await?;
        let visible = found.filter(|id| self.caller.may_use(*id));
        visible.ok_or_else(|| ApiError::not_found(Code::FormNotFound, text))
    }

    /// Parses `text` as an id, which need not exist, or finds the form with the slug `text`.
    pub(super) async fn find_form_id(&self, workspace: WorkspaceId, text: &str) -> Result<Option<FormId>> {
        Ok(match text.parse() {
            Ok(id) => Some(id),
            Err(_) if is_slug(text) => self.store.find_slug(workspace, text).await?,
            Err(_) => None,
        })
    }
}
