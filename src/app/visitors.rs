//! Visitors: people who answer a form on its page, without a key. They may read that form and submit to it, nothing else.

use std::sync::Arc;

use super::submissions::{Accepted, is_costly};
use super::{ApiError, App, Current, IdempotentRequest, Result, Session, oldest_workspace};
use crate::api::{Code, PageLinks};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::admission::{AcceptingReason, IDEMPOTENCY_RECORD_MILLIS};
use crate::domain::form::settings::check_page_size;
use crate::domain::form::slug::is_slug;
use crate::domain::form::{Form, FormStatus};
use crate::domain::submission::{SubmissionStatus, SubmittedAnswers};
use crate::domain::validation::violation::Violation;
use crate::domain::workspace::{ApiKey, Scope};
use crate::id::{FormId, FormRef};

/// How long answers may be sent from a page after it was opened: as long as a repeated request is recognized.
const TOKEN_MILLIS: i64 = IDEMPOTENCY_RECORD_MILLIS;

/// How long a link to the preview of a draft works.
const PREVIEW_MILLIS: i64 = DAY_MILLIS;

/// One visitor of one form.
pub struct Visitor {
    session: Session,
    /// The form, with the questions that are asked now.
    pub current: Current,
    /// Whether the form is only shown: answers are checked, and not stored.
    pub is_preview: bool,
}

/// The content of the signed token that a page sends back with its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageToken {
    pub opened_at: Timestamp,
    /// Different for each opened page: answers sent twice from one page are stored once.
    nonce: [u8; 12],
}

impl App {
    /// Finds the form with the id or slug `text` for a visitor: one that is public and published, or any with a valid token
    /// `preview`. Slugs are those of the oldest workspace. A form that a visitor may not see does not exist.
    pub async fn visitor(self: &Arc<Self>, text: &str, preview: Option<&str>) -> Result<Option<Visitor>> {
        let Some(form) = self.find_visited(text).await? else { return Ok(None) };
        let is_preview = match preview {
            Some(token) => self.is_preview(form.id, token).await?,
            None => false,
        };
        let is_visible = form.settings.is_public() && form.status == FormStatus::Published;
        if !is_visible && !is_preview {
            return Ok(None);
        }
        let caller = Arc::new(ApiKey::visitor(form.reference()));
        let session = Session { app: Arc::clone(self), caller };
        let version = session.version(form.id, form.version).await?;
        let too_large = check_page_size(&version.questions).filter(|_| !is_visible);
        if let Some(Violation { message, help, .. }) = too_large {
            let detail = format!("{message}; {}", help.unwrap_or_default());
            return Err(ApiError::with_detail(Code::ValidationFailed, detail));
        }
        Ok(Some(Visitor { session, current: Current { form, version }, is_preview: !is_visible }))
    }

    async fn find_visited(&self, text: &str) -> Result<Option<Arc<Form>>> {
        let reference = match text.parse::<FormId>() {
            Ok(id) => self.store.find_form_workspace(id).await?.map(|workspace| workspace.form(id)),
            Err(_) if is_slug(text) => self.find_public_slug(text).await?,
            Err(_) => None,
        };
        let Some(reference) = reference else { return Ok(None) };
        Ok(self.store.find_form(reference).await?)
    }

    async fn find_public_slug(&self, slug: &str) -> Result<Option<FormRef>> {
        let Some(workspace) = oldest_workspace(&*self.store).await? else { return Ok(None) };
        Ok(self.store.find_slug(workspace, slug).await?.map(|id| workspace.form(id)))
    }

    async fn is_preview(&self, form: FormId, token: &str) -> Result<bool> {
        let content = self.signer(format!("preview {form}")).await?.read(token);
        let expires_at = content.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
        Ok(expires_at.is_some_and(|end| self.now().millis() < end))
    }
}

impl Session {
    /// Returns the addresses of the form's page, which begin with `base`.
    pub async fn page_links(&self, form: &str, base: &str) -> Result<PageLinks> {
        self.require_scope(Scope::Read)?;
        let form = self.form(form).await?;
        let oldest = oldest_workspace(&*self.store).await?;
        let slug = form.slug.clone().filter(|_| oldest == Some(form.workspace));
        let name = slug.unwrap_or_else(|| form.id.to_string());
        let expires_at = self.now().millis() + PREVIEW_MILLIS;
        let token = self.signer(format!("preview {}", form.id)).await?.write(&expires_at.to_be_bytes());
        Ok(PageLinks {
            url: format!("{base}/f/{name}"),
            public: form.settings.is_public(),
            preview_url: format!("{base}/f/{}?_preview={token}", form.id),
            preview_expires_at: Timestamp::from_millis(expires_at),
        })
    }
}

impl Visitor {
    pub fn now(&self) -> Timestamp {
        self.session.now()
    }

    /// Whether the form accepts answers now.
    pub async fn accepting(&self) -> Result<Result<(), AcceptingReason>> {
        if self.is_preview {
            return Ok(Ok(()));
        }
        self.session.accepting(&self.current.form).await
    }

    /// Returns a token for a page that is opened now.
    pub async fn new_token(&self) -> Result<String> {
        let mut nonce = [0; 12];
        self.session.random.fill(&mut nonce);
        let content = [&self.now().millis().to_be_bytes()[..], &nonce].concat();
        Ok(self.session.signer(self.token_purpose()).await?.write(&content))
    }

    /// Reads the token of a page of this form; `None` if it is not genuine, too old, or of other questions than now.
    pub async fn read_token(&self, text: &str) -> Result<Option<PageToken>> {
        let content = self.session.signer(self.token_purpose()).await?.read(text);
        let token = content.as_deref().and_then(|bytes| {
            let (opened_at, nonce) = bytes.split_first_chunk()?;
            let opened_at = Timestamp::from_millis(i64::from_be_bytes(*opened_at));
            Some(PageToken { opened_at, nonce: nonce.try_into().ok()? })
        });
        Ok(token.filter(|token| self.now().millis() - token.opened_at.millis() < TOKEN_MILLIS))
    }

    fn token_purpose(&self) -> String {
        format!("page {} {}", self.current.form.id, self.current.form.version)
    }

    /// Runs `work` on `bytes` bytes of answers: on the pool if evaluating conditions on them may take long.
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let is_costly = is_costly(&self.current.version, bytes);
        self.session.run_here_or_job(is_costly, || Ok(work())).await
    }

    /// Stores the submission in `body` with this `status`, as the API does. Sent again with the same `token`, it is stored once.
    pub async fn submit(
        &self,
        body: &str,
        token: Option<PageToken>,
        status: SubmissionStatus,
    ) -> Result<Accepted> {
        let nonce = token.map(|token| token.nonce.map(|byte| format!("{byte:02x}")).concat());
        let request = IdempotentRequest { idempotency_key: nonce.as_deref(), query: "", body };
        self.session.create_submission(&self.current.form.id.to_string(), request, status, true).await
    }

    /// Checks the submission in `body` as [`submit`](Self::submit) does, and stores nothing.
    pub async fn check(&self, body: &str) -> Result<SubmittedAnswers, ApiError> {
        Ok(self.session.validate(&self.current, body, Ok(())).await?.0)
    }
}
