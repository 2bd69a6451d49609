//! Erasing all that a form has of someone.

use std::collections::BTreeMap;

use super::{ApiError, IdempotentRequest, ReplayableBody, Result, Session};
use crate::api::{Code, ErasedSubmission, Erasure};
use crate::domain::form::admission::Refusal;
use crate::domain::open_enum::OpenEnum;
use crate::domain::submission::FoundIn;
use crate::domain::submission::filter::SubmissionQuery;
use crate::domain::validation::violation::{Rule, Violation};
use crate::domain::workspace::Scope;
use crate::id::{FormRef, SubmissionId};
use crate::store::{DEFAULT_PAGE, DeliveryFilter, IdempotentOperation};

/// Maximum submissions that one request erases: nobody has answered more often.
const MAX_ERASED: usize = 1_000;

/// A request to erase all submissions of a form that match `query`.
#[derive(Debug, Clone)]
pub struct ErasureRequest {
    pub query: SubmissionQuery,
    /// Whether to find them only.
    pub dry_run: bool,
}

impl Session {
    /// Erases the submissions of a form, in the trash or not, that match now, in the trash, or matched before an edit.
    pub async fn erase_submissions(
        &self,
        form: &str,
        erasure: ErasureRequest,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayableBody> {
        self.require_scope(Scope::Admin)?;
        let ErasureRequest { query, dry_run } = erasure;
        if query.text.as_deref().unwrap_or_default().is_empty() && query.answers.is_empty() {
            let message = "`q` or `where` must say what to erase";
            return Err(ApiError::invalid_query(vec![Violation::new("/q", Rule::MissingField, message)]));
        }
        let found = self.caller.workspace.form(self.form_id(form).await?);
        let operation = IdempotentOperation::EraseSubmissions(found.id);
        let key = request.idempotency_key(&self.caller, operation).filter(|_| !dry_run);
        self.run_once(key, async {
            let traces = self.find_traces(form, found, query).await?;
            let deliveries = self.count_deliveries(traces.keys().copied()).await?;
            if !dry_run {
                for page in Vec::from_iter(traces.keys().copied()).chunks(DEFAULT_PAGE) {
                    self.purge_all(found, page.iter().copied()).await?;
                }
            }
            let submissions = traces.into_iter().map(|(id, places)| ErasedSubmission {
                id,
                found_in: places.into_iter().map(OpenEnum::from).collect(),
            });
            Ok(Erasure { submissions: submissions.collect(), deliveries })
        })
        .await
    }

    /// Finds the submissions with the places where each is.
    async fn find_traces(
        &self,
        form: &str,
        found: FormRef,
        query: SubmissionQuery,
    ) -> Result<BTreeMap<SubmissionId, Vec<FoundIn>>> {
        let _permit = self.job_permit().await?;
        let traces = self.store.find_traces(found, query, MAX_ERASED).await?;
        let traces = match traces.ok_or_else(|| ApiError::not_found(Code::FormNotFound, form))? {
            Ok(traces) => traces,
            Err(violations) => return Err(ApiError::invalid_query(violations)),
        };
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for (id, place) in traces {
            let places = places.entry(id).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if places.len() > MAX_ERASED {
            let message = format!("more than {MAX_ERASED} submissions match");
            let violation = Violation::new("/q", Rule::TooMany, message);
            let help = "search for a longer text, or delete them by `forms responses delete --where`";
            return Err(Refusal::InvalidBody(vec![violation.help(help)]).into());
        }
        Ok(places)
    }

    async fn count_deliveries(&self, submissions: impl Iterator<Item = SubmissionId>) -> Result<u64> {
        let mut count = 0;
        for submission in submissions {
            let filter = DeliveryFilter { submission: Some(submission), ..DeliveryFilter::default() };
            let page = self.store.list_deliveries(self.caller.workspace, &filter, None, DEFAULT_PAGE).await?;
            count += page.rows.len() as u64;
        }
        Ok(count)
    }
}
