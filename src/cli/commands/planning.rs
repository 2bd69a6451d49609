//! Reading form files, planning what they change, and carrying the plan out: shared by `diff`, `apply`, `promote` and `dev`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::json;

use crate::api::{Code, FormEntry, Problem};
use crate::cli::commands::batch::Batch;
use crate::cli::commands::create::report_generated_secrets;
use crate::cli::commands::{CliError, Columns, Session, read_input};
use crate::cli::input::document::{self, Document, FormState};
use crate::cli::input::prompt::ConfirmBy;
use crate::cli::output::diagnostics::{Diagnostic, Report};
use crate::cli::output::exit::Exit;
use crate::cli::output::visible;
use crate::cli::plan::{Action, Base, FormPlan, Plan};
use crate::client::{Client, FormQuery, MAX_PAGE};

/// Reads the forms of all files, and reports all problems of all of them. Each needs a slug, and no two have the same.
pub(super) async fn read_forms(session: &Session, paths: &[PathBuf]) -> Result<Vec<Document>, CliError> {
    let named = paths.to_vec();
    let files = read_input(move || document::files(&named)).await?;
    let (mut batch, mut forms) = (Batch::of_failures(session, files.len()), Vec::new());
    for file in files {
        let read = async {
            session.announce_stdin(&file);
            let path = file.clone();
            let read = read_input(move || document::read(&path)).await?;
            document::refuse_shared_slugs(&forms, &read)?;
            require_slugs(&file, &read)?;
            forms.extend(read);
            Ok(())
        };
        let read = read.await;
        batch.record(&file.display().to_string(), read)?;
    }
    batch.finish_with_worst()?;
    Ok(forms)
}

/// Fails if one of the forms in `file` has no slug, by which the form is found again.
fn require_slugs(file: &Path, forms: &[Document]) -> Result<(), CliError> {
    let nameless: Vec<_> = forms.iter().filter_map(|form| form.missing_slug(file)).collect();
    match forms.first() {
        Some(form) if !nameless.is_empty() => Err(Report::of_file(&form.file, nameless).into()),
        _ => Ok(()),
    }
}

/// Plans to make the forms of the server those of the files.
pub(super) async fn plan_forms(
    session: &Session,
    client: &Client,
    documents: Vec<Document>,
    state: Option<FormState>,
) -> Result<Plan, CliError> {
    let mut batch = Batch::of_failures(session, documents.len());
    let mut forms = Vec::new();
    for document in documents {
        let file = document.file.clone();
        let planned = plan_form(client, document, state).await;
        // The others would fail, too.
        match planned {
            Err(error) if matches!(error.exit(), Exit::Unavailable | Exit::NotAllowed) => return Err(error),
            planned => batch.record(&file, planned.map(|plan| forms.push(plan)))?,
        }
    }
    batch.finish_with_worst()?;
    let unmanaged = unmanaged_forms(client, &forms).await?;
    Ok(Plan { forms, unmanaged, target: session.target_name()? })
}

/// Plans to make the form with the slug of `document` what that says.
pub(super) async fn plan_form(
    client: &Client,
    document: Document,
    state: Option<FormState>,
) -> Result<FormPlan, CliError> {
    let base = Base::find(client, document.slug().unwrap_or_default()).await?;
    let mut plan = FormPlan::of_document(document, base.map(Rc::new), state)?;
    plan.count_answers(client).await;
    Ok(plan)
}

/// Lists the forms of the server that none of the `planned` ones is.
async fn unmanaged_forms(client: &Client, planned: &[FormPlan]) -> Result<Vec<serde_json::Value>, CliError> {
    let mut unmanaged = Vec::new();
    let mut pages = client.list_forms(&FormQuery::default(), MAX_PAGE);
    while let Some(page) = pages.next().await? {
        let is_planned = |form: &FormEntry| planned.iter().any(|plan| plan.slug() == form.slug.as_deref());
        for form in page.iter().filter(|form| form.slug.is_none() || !is_planned(form)) {
            unmanaged.push(match &form.slug {
                Some(slug) => json!({"id": form.id, "slug": slug, "title": form.title}),
                None => json!({"id": form.id, "title": form.title}),
            });
        }
    }
    Ok(unmanaged)
}

/// The members of what [`apply_plan`] prints.
pub(super) const RESULTS: Columns = Columns::Fixed(&["id", "slug", "action"]);

/// How a plan is carried out.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApplyOptions {
    /// Whether questions that have answers may get another type.
    pub(super) allow_breaking: bool,
    /// Whether the server only checks it.
    pub(super) dry_run: bool,
}

/// Carries out the plan, and prints for each form its id, slug and what was done. Nothing is sent before the server has accepted
/// all of it.
pub(super) async fn apply_plan(
    session: &Session,
    plan: &Plan,
    options: ApplyOptions,
) -> Result<(), CliError> {
    confirm_breaking(session, plan, options).await?;
    let client = session.client().await?;
    let changed: Vec<_> = plan.forms.iter().filter(|form| form.action() != Action::Unchanged).collect();
    if changed.len() > 1 || options.dry_run {
        let mut batch = Batch::of_failures(session, changed.len());
        for form in &changed {
            batch.record(form.name(), form.send(session, &client, true).await.map(drop))?;
        }
        batch.finish_with_worst().inspect_err(|_| session.output.status("nothing was stored"))?;
    }
    let mut batch = Batch::begin(session, plan.forms.len());
    for form in &plan.forms {
        let done = match options.dry_run {
            true => Ok(form.base.as_ref().map_or("(dry run)".to_owned(), |base| base.id())),
            false => apply_form(session, &client, form).await,
        };
        let reported = done.and_then(|id| {
            let (name, action) = (visible(form.name()), done_word(form.action()));
            let result = json!({"id": id, "slug": form.slug(), "action": action});
            session.output.object(&result, || format!("{id}\t{name}\t{action}\n"))
        });
        batch.record(form.name(), reported)?;
    }
    if options.dry_run {
        session.output.status("the server would accept it; nothing was stored");
    }
    batch.finish()
}

fn done_word(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "updated",
        Action::Unchanged => "unchanged",
    }
}

/// Creates or updates a form; returns its id.
async fn apply_form(session: &Session, client: &Client, plan: &FormPlan) -> Result<String, CliError> {
    if let (Some(base), Action::Unchanged) = (&plan.base, plan.action()) {
        return Ok(base.id());
    }
    let sent = plan.send(session, client, false).await?;
    let (id, integrations) = sent.parts();
    report_generated_secrets(session, &id, integrations);
    Ok(id)
}

/// Fails, or asks, if a question that has answers gets another type and that is not allowed.
async fn confirm_breaking(session: &Session, plan: &Plan, options: ApplyOptions) -> Result<(), CliError> {
    let breaking: Vec<_> = plan.forms.iter().filter(|form| form.retypes()).map(FormPlan::name).collect();
    if breaking.is_empty() || options.allow_breaking {
        return Ok(());
    }
    let forms = visible(&breaking.join(", "));
    if session.can_prompt() && !options.dry_run {
        return session
            .confirm(&format!("change the type of answered questions of {forms}"), ConfirmBy::Yes)
            .await;
    }
    let message = format!("an answered question of {forms} gets another type");
    let diagnostic = Diagnostic::new("breaking_change", message)
        .help(Some("give the question another id, or add --allow-breaking".to_owned()));
    let problem = Problem::new(Code::ValidationFailed);
    let report = Report::with_outcome(vec![diagnostic], "nothing was stored", problem);
    Err(report.into())
}
