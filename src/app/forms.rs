//! Creating, reading, changing and deleting forms.

use std::sync::Arc;

use super::{App, AppError, Attempt, Current, Cursors, What, require, settled};
use crate::clock::Timestamp;
use crate::domain::admission::Refusal;
use crate::domain::definition::{Change, Definition};
use crate::domain::filter::FormFilter;
use crate::domain::form::{Edit, EditedForm, Form, Retired, Version, WrittenVersion};
use crate::domain::json::{self, Value};
use crate::domain::limits::Limits;
use crate::domain::revision::Expected;
use crate::domain::violation::Violation;
use crate::domain::workspace::{Caller, Scope};
use crate::id::{FormId, WorkspaceId};
use crate::store::{FormUpdate, ITEM_OVERHEAD, NewForm, Operation, PAGE_BYTES, Restored, Step};

/// A page of forms with their numbers of submissions, newest first.
#[derive(Debug, Clone)]
pub struct FormPage {
    pub forms: Vec<(Arc<Form>, u64)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// How many forms all pages have together, if that was asked for.
    pub total: Option<u64>,
}

/// Which part of which list of forms.
#[derive(Debug, Clone)]
pub struct FormsWanted {
    pub filter: FormFilter,
    pub cursor: Option<String>,
    /// How many at most.
    pub limit: usize,
    /// Whether to count all of the list.
    pub count: bool,
}

/// A page of a form's versions, newest first.
#[derive(Debug, Clone)]
pub struct VersionPage {
    pub versions: Vec<WrittenVersion>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// A form that was taken out of the trash.
#[derive(Debug, Clone)]
pub struct RestoredForm {
    pub current: Current,
    /// How many submissions it had then.
    pub responses: u64,
    /// When that was.
    pub at: Timestamp,
}

/// How often an edit is computed. Edits of one form wait for each other, but one whose caller has left may still be
/// written, and the form may go to the trash and come back.
const TRIES: usize = 3;

/// How a definition or a change of one is read.
type Read<T> = fn(&Value, &Limits) -> Result<T, Vec<Violation>>;

impl App {
    /// Reads `body` on the pool: a form may have hundreds of patterns to compile.
    async fn read_definition<T: Send + 'static>(&self, body: &str, read: Read<T>) -> Result<T, AppError> {
        let (body, limits) = (body.to_owned(), self.limits);
        let work = move || {
            let value = json::parse(&body).map_err(AppError::Malformed)?;
            read(&value, &limits)
                .map_err(|violations| AppError::Refused(Refusal::InvalidDefinition(violations)))
        };
        self.pool.run(work).await?
    }

    /// Makes a draft from the definition in the body. True if an earlier attempt had made it.
    pub async fn create_form(
        &self,
        caller: &Caller,
        attempt: Attempt<'_>,
    ) -> Result<(Form, Arc<Version>, bool), AppError> {
        require(caller, Scope::Write)?;
        let definition = self.read_definition(attempt.body, Definition::read).await?;
        let retry = attempt.retry(caller, Operation::CreateForm);
        for _ in 0..3 {
            let id = FormId::draw(self.random());
            let new = NewForm { id, definition: definition.clone(), retry };
            let step = self.store.insert_form(caller.workspace, new, self.now()).await?;
            if matches!(step, Step::Recheck) {
                // The id is taken, one chance in a billion billion: draw another.
                continue;
            }
            let (made, replayed) = settled(step, What::Form(id.to_string()))?;
            // The same body makes the same form, so a replay needs no more than what was given to it.
            let (form, version) = Form::create(made.0, caller.workspace, definition, made.1);
            let version = Arc::new(version);
            if !replayed {
                self.cache_version(form.id, Arc::clone(&version), attempt.body.len());
            }
            return Ok((form, version, replayed));
        }
        Err(AppError::Contended)
    }

    /// Checks the definition in the body as creating a form would, and makes nothing: the form as it would be.
    pub async fn try_form(&self, caller: &Caller, body: &str) -> Result<(Form, Version), AppError> {
        require(caller, Scope::Write)?;
        let definition = self.read_definition(body, Definition::read).await?;
        self.refuse_taken_slug(caller.workspace, definition.slug.as_deref()).await?;
        Ok(Form::create(FormId::draw(self.random()), caller.workspace, definition, self.now()))
    }

    /// The form with its number of submissions.
    pub async fn get_form(&self, caller: &Caller, form: &str) -> Result<(Current, u64), AppError> {
        require_sight(caller)?;
        let current = self.current(caller, form).await?;
        let count = self.store.count_submissions(caller.workspace, current.form.id).await?;
        Ok((current, count))
    }

    /// The JSON Schema of the form's answers.
    pub async fn get_schema(&self, caller: &Caller, form: &str) -> Result<Value, AppError> {
        require_sight(caller)?;
        let Current { form, version } = self.current(caller, form).await?;
        Ok(version.schema(&form.title, form.settings.unknown_answers()))
    }

    /// A page of the workspace's forms.
    pub async fn list_forms(&self, caller: &Caller, wanted: FormsWanted) -> Result<FormPage, AppError> {
        require(caller, Scope::Read)?;
        let FormsWanted { filter, cursor, limit, count } = wanted;
        let list = format!("forms {} {filter:?}", caller.workspace);
        let cursors = self.cursors().await?;
        let after = cursor.map(|text| form_position(&cursors, &list, &text)).transpose()?;
        let mut forms = self.store.list_forms(caller.workspace, &filter, after, limit + 1).await?;
        let length = page_length(&forms, limit);
        let more = forms.len() > length;
        forms.truncate(length);
        let next = forms.last().filter(|_| more).map(|(last, _)| {
            let moment = filter.moment(last).millis().to_be_bytes();
            cursors.write(&list, &[&moment[..], &last.id.to_bytes()].concat())
        });
        let total = match count {
            true => Some(self.store.count_forms(caller.workspace, &filter).await?),
            false => None,
        };
        Ok(FormPage { forms, next, total })
    }

    /// Changes the form by the merge patch in the body, if it is at the revision expected. A `dry_run` changes nothing:
    /// the form as it would be.
    pub async fn update_form(
        &self,
        caller: &Caller,
        form: &str,
        body: &str,
        expected: Expected,
        dry_run: bool,
    ) -> Result<(Current, u64), AppError> {
        require(caller, Scope::Write)?;
        let id = self.form(caller, form).await?.id;
        let change = Arc::new(self.read_definition(body, Change::read).await?);
        let _lock = self.form_edits.lock(id).await;
        for _ in 0..TRIES {
            let current = self.current(caller, form).await?;
            expected.check(current.form.revision).map_err(AppError::Refused)?;
            let edit = self.edit_form(&current, Arc::clone(&change)).await?;
            let step = match edit {
                Edit::Unchanged => Step::Done(current),
                Edit::Changed(edited) if dry_run => Step::Done(self.try_edit(current, *edited).await?),
                Edit::Changed(edited) => self.replace_form(current, *edited).await?,
            };
            if !matches!(step, Step::Recheck) {
                let (current, _) = settled(step, What::Form(form.to_owned()))?;
                let count = self.store.count_submissions(caller.workspace, id).await?;
                return Ok((current, count));
            }
        }
        Err(AppError::Contended)
    }

    /// Computes on the pool what `change` makes of a form.
    async fn edit_form(&self, current: &Current, change: Arc<Change>) -> Result<Edit, AppError> {
        let retired = match change.questions {
            Some(_) => self.store.find_retired(current.form.workspace, current.form.id).await?,
            None => Retired::new(),
        };
        let (Current { form, version }, now) = (current.clone(), self.now());
        let edit = self.pool.run(move || form.change(&version, &retired, &change, now)).await?;
        edit.map_err(AppError::Refused)
    }

    /// Returns the form as an edit would make it.
    async fn try_edit(&self, current: Current, edited: EditedForm) -> Result<Current, AppError> {
        let EditedForm { form, version, .. } = edited;
        if form.slug != current.form.slug {
            self.refuse_taken_slug(form.workspace, form.slug.as_deref()).await?;
        }
        Ok(Current { form: Arc::new(form), version: version.map_or(current.version, Arc::new) })
    }

    /// Stores what an edit makes of a form, unless the form has changed since.
    async fn replace_form(&self, current: Current, edited: EditedForm) -> Result<Step<Current>, AppError> {
        let EditedForm { form, version, retired } = edited;
        let written = version.as_ref().map(Version::written);
        let text_bytes = written.as_ref().map_or(0, |written| written.questions.get().len());
        let seen_revision = current.form.revision;
        let update = FormUpdate { seen_revision, form: form.clone(), version: written, retired };
        let step = self.store.replace_form(form.workspace, update).await?;
        let version = match version.map(Arc::new) {
            Some(version) if matches!(step, Step::Done(())) => {
                self.cache_version(form.id, Arc::clone(&version), text_bytes);
                version
            }
            version => version.unwrap_or(current.version),
        };
        Ok(step.map(|()| Current { form: Arc::new(form), version }))
    }

    async fn refuse_taken_slug(&self, workspace: WorkspaceId, slug: Option<&str>) -> Result<(), AppError> {
        let Some(slug) = slug else { return Ok(()) };
        match self.store.find_slug(workspace, slug).await? {
            Some(holder) => Err(AppError::Refused(Refusal::slug_taken(slug, holder))),
            None => Ok(()),
        }
    }

    /// Moves the form to the trash, or erases it (which needs `admin`, and takes one from the trash too), if it is at
    /// the revision expected.
    pub async fn delete_form(
        &self,
        caller: &Caller,
        form: &str,
        purge: bool,
        expected: Expected,
    ) -> Result<(), AppError> {
        require(caller, if purge { Scope::Admin } else { Scope::Write })?;
        let id = self.form_id(caller, form).await?;
        let step = if purge {
            self.store.purge_form(caller.workspace, id, expected).await?
        } else {
            self.store.trash_form(caller.workspace, id, expected, self.now()).await?
        };
        settled(step, What::Form(form.to_owned())).map(drop)
    }

    /// Takes the form out of the trash again. True if an earlier attempt had done it.
    pub async fn restore_form(
        &self,
        caller: &Caller,
        form: &str,
        attempt: Attempt<'_>,
    ) -> Result<(RestoredForm, bool), AppError> {
        require(caller, Scope::Write)?;
        let id = self.form_id(caller, form).await?;
        let retry = attempt.retry(caller, Operation::RestoreForm(id));
        let step = self.store.restore_form(caller.workspace, id, retry, self.now()).await?;
        let (Restored { form, responses, at }, replayed) = settled(step, What::Form(form.to_owned()))?;
        let version = self.present_version(&form).await?;
        Ok((RestoredForm { current: Current { form, version }, responses, at }, replayed))
    }

    /// A page of the form's versions, `limit` at most, from `cursor` on.
    pub async fn list_versions(
        &self,
        caller: &Caller,
        form: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<VersionPage, AppError> {
        require(caller, Scope::Read)?;
        let missing = || AppError::NotFound(What::Form(form.to_owned()));
        let id = self.form_id(caller, form).await?;
        let list = format!("versions {} {id}", caller.workspace);
        let cursors = self.cursors().await?;
        let before =
            cursor.map(|text| cursors.read_number(&list, text).ok_or(AppError::InvalidCursor)).transpose()?;
        let page =
            self.store.list_versions(caller.workspace, id, before, limit).await?.ok_or_else(missing)?;
        let last = page.rows.last().filter(|_| page.more);
        let next = last.map(|last| cursors.write(&list, &last.number.to_be_bytes()));
        Ok(VersionPage { versions: page.rows, next })
    }

    /// One version of the form's questions.
    pub async fn get_version(
        &self,
        caller: &Caller,
        form: &str,
        number: &str,
    ) -> Result<WrittenVersion, AppError> {
        require(caller, Scope::Read)?;
        let id = self.form_id(caller, form).await?;
        // In one spelling only: `+1` and `01` name nothing.
        let parsed = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number);
        let above = parsed.and_then(|number| number.checked_add(1));
        let found = self.store.list_versions(caller.workspace, id, above, 1).await?;
        let newest = found.ok_or_else(|| AppError::NotFound(What::Form(form.to_owned())))?.rows.pop();
        let version = newest.filter(|version| Some(version.number) == parsed);
        version.ok_or_else(|| AppError::NotFound(What::Version(number.to_owned())))
    }
}

/// How many of `forms` are a page: `limit` at most, and at least one if there is any.
fn page_length(forms: &[(Arc<Form>, u64)], limit: usize) -> usize {
    let size = |form: &Form| form.title.len() + form.slug.as_ref().map_or(0, String::len) + ITEM_OVERHEAD;
    let mut bytes = 0;
    let fits = |(form, _): &&(Arc<Form>, u64)| {
        bytes += size(form);
        bytes <= PAGE_BYTES
    };
    forms.iter().take_while(fits).count().clamp(1, limit).min(forms.len())
}

/// Whoever may answer a form may see what it asks.
fn require_sight(caller: &Caller) -> Result<(), AppError> {
    if caller.may(Scope::Submit) { Ok(()) } else { require(caller, Scope::Read) }
}

fn form_position(cursors: &Cursors, list: &str, text: &str) -> Result<(Timestamp, FormId), AppError> {
    let position = cursors.read(list, text).ok_or(AppError::InvalidCursor)?;
    let (created, id) = position.split_at_checked(8).ok_or(AppError::InvalidCursor)?;
    match (created.try_into(), id.try_into()) {
        (Ok(created), Ok(id)) => {
            Ok((Timestamp::from_millis(i64::from_be_bytes(created)), FormId::from_bytes(id)))
        }
        _ => Err(AppError::InvalidCursor),
    }
}
