//! Help for ids and names that do not exist: a similar one, the way out of the trash, or the command that lists those that do.

use std::time::Duration;

use crate::api::{Code, IntegrationDetail, Problem, SubmissionDetail};
use crate::cli::connection::session::Session;
use crate::client::{FormQuery, MAX_PAGE, SubmissionQuery};
use crate::domain::form::slug::is_slug;
use crate::domain::validation::similar::similar;

/// Maximum time spent on a suggestion after a failure.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Returns what to do if the problem is that something does not exist. This costs requests, which may fail and are limited in
/// time.
pub(super) async fn suggest(session: &Session, problem: &Problem) -> Option<String> {
    let (code, prefix) = (problem.code.known()?, session.command_prefix());
    let path = problem.instance.as_deref().unwrap_or_default();
    let mut steps = path.strip_prefix("/api/v1/forms/").unwrap_or_default().split(['/', '?']);
    let form = steps.next().filter(|form| !form.is_empty()).unwrap_or("FORM");
    let name = steps.nth(1).unwrap_or_default();
    let list = match code {
        Code::FormNotFound => "list".to_owned(),
        Code::SubmissionNotFound => format!("responses {form}"),
        Code::IntegrationNotFound => format!("integrations list {form}"),
        Code::DeliveryNotFound => "deliveries list".to_owned(),
        Code::KeyNotFound => "keys list".to_owned(),
        Code::WorkspaceNotFound => "workspaces list".to_owned(),
        _ => return None,
    };
    let near = tokio::time::timeout(TIMEOUT, find(session, code, form, name)).await.ok().flatten();
    Some(near.unwrap_or_else(|| format!("{prefix} {list}")))
}

/// Finds what was probably meant.
async fn find(session: &Session, code: Code, form: &str, name: &str) -> Option<String> {
    let client = session.connect().await.ok()?;
    let restore = |words: &str| format!("it is in the trash; {} {words}", session.command_prefix());
    match code {
        Code::FormNotFound if is_slug(form) => {
            let forms = client.list_forms(&FormQuery::default(), MAX_PAGE).next().await.ok()??;
            let near = similar(form, forms.iter().filter_map(|form| form.slug.as_deref()))?;
            Some(format!("a form with a similar slug exists: {near}"))
        }
        Code::FormNotFound => {
            let query = FormQuery { trashed: true, ..FormQuery::default() };
            let pages = client.list_forms(&query, MAX_PAGE);
            pages.find(|trashed| trashed.id.to_string() == form).await.ok()??;
            Some(restore(&format!("restore {form}")))
        }
        Code::SubmissionNotFound => {
            let query = SubmissionQuery { trashed: true, ..SubmissionQuery::default() };
            let pages = client.list_submissions(form, &query, MAX_PAGE).ok()?;
            if pages.find(|trashed| trashed.id.to_string() == name).await.ok()?.is_some() {
                return Some(restore(&format!("responses restore {form} {name}")));
            }
            // What is found, but cannot be changed, is quarantined.
            client.get::<SubmissionDetail>(&["forms", form, "submissions", name]).await.ok()?;
            Some(format!("it is quarantined; {} spam release {form} {name}", session.command_prefix()))
        }
        Code::IntegrationNotFound => {
            let path = ["forms", form, "integrations"];
            let integrations = client.list::<IntegrationDetail>(&path, "integrations").await.ok()?;
            let near = similar(name, integrations.iter().map(|one| one.name.as_str()))?;
            Some(format!("an integration with a similar name exists: {near}"))
        }
        _ => None,
    }
}
