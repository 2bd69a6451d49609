//! Edits of forms like the use case: computed from the stored form, retried if it has changed meanwhile.

use std::sync::Arc;

use forms::clock::Timestamp;
use forms::domain::form::definition::FormPatch;
use forms::domain::form::{Form, RetiredQuestions, Version};
use forms::domain::revision::ExpectedRevision;
use forms::id::{FormId, WorkspaceId};
use forms::store::{FormUpdate, StepResult, Store};

use crate::harness::definition_context;

/// A form with its current questions.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) form: Arc<Form>,
    pub(crate) version: Version,
}

/// Returns a form outside the trash with its current questions.
pub(crate) async fn current(store: &dyn Store, workspace: WorkspaceId, form: FormId) -> Option<Current> {
    let form = store.find_form(workspace.form(form)).await.unwrap()?;
    let version = store.find_version(workspace.form(form.id), form.version).await.unwrap()?;
    Some(Current { form, version: version.read().unwrap() })
}

/// Applies `change` to the form if it has the expected revision.
pub(crate) async fn update_form(
    store: &dyn Store,
    workspace: WorkspaceId,
    id: FormId,
    change: FormPatch,
    expected: ExpectedRevision,
    now: Timestamp,
) -> StepResult<Current> {
    loop {
        let Some(Current { form, version }) = current(store, workspace, id).await else {
            return StepResult::Missing;
        };
        if let Err(why) = expected.check(form.revision) {
            return StepResult::Refused(why);
        }
        let mut retired = RetiredQuestions::new(store.find_retired(workspace.form(id)).await.unwrap());
        let versions = store.list_versions(workspace.form(id), None, 100).await.unwrap().unwrap();
        versions.rows.iter().for_each(|version| retired.learn_types(&change, version));
        let edited = match form.change(&version, &retired, &change, definition_context(now)) {
            Ok(None) => return StepResult::Done(Current { form, version }),
            Ok(Some(edited)) => edited,
            Err(why) => return StepResult::Refused(why),
        };
        let update = FormUpdate {
            seen_revision: form.revision,
            now,
            resumed: edited.form.resumed_integrations(&form.integrations),
            form: edited.form.clone(),
            version: edited.version.as_ref().map(Version::to_stored),
            retired: edited.retired,
            response: None,
        };
        let step = store.replace_form(workspace, update).await.unwrap();
        if !matches!(step, StepResult::Recheck) {
            let updated = Current { form: Arc::new(edited.form), version: edited.version.unwrap_or(version) };
            return step.map(|()| updated);
        }
    }
}
