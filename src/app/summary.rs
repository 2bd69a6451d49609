//! Summaries: one pass over the submissions that match, page by page.

use super::{ApiError, Current, Result, Session};
use crate::api::{Code, FormSummary, SummaryFilter};
use crate::domain::submission::filter::{Order, SubmissionQuery};
use crate::domain::summary::Summarizer;
use crate::domain::workspace::Scope;

/// Submissions read at once.
const PAGE: usize = 1_000;

impl Session {
    /// Summarizes the submissions of a form that match `query`. Those that arrive meanwhile are not counted.
    ///
    /// # Errors
    /// Also if too many exports and summaries are in progress.
    pub async fn summarize(&self, form: &str, query: SubmissionQuery) -> Result<FormSummary> {
        self.require_scope(Scope::Read)?;
        let Current { form, version } = self.current(form).await?;
        let _permit = self.exports.acquire(self.caller.id).await.ok_or_else(ApiError::overloaded)?;
        let (sent, generated_at) = (SummaryFilter::from(&query), self.now());
        let filter = self.filter(&form, query).await?;
        let (mut summarizer, mut after) = (Summarizer::new(&version.questions), None);
        loop {
            let page = self
                .store
                .list_submissions(form.reference(), &filter, Order::NewestFirst, after, PAGE)
                .await?;
            let page = page.ok_or_else(|| ApiError::not_found(Code::FormNotFound, &form.id.to_string()))?;
            let (rows, next) = (page.rows, page.next);
            let add = move || {
                rows.iter().for_each(|submission| summarizer.add(submission));
                Ok(summarizer)
            };
            summarizer = self.run_job(add).await?;
            after = next;
            if after.is_none() {
                break;
            }
        }
        let (title, status) = (form.title.clone(), form.status.into());
        let summary = summarizer.finish(&version.questions);
        Ok(FormSummary { form_id: form.id, title, status, generated_at, filter: sent, summary })
    }
}
