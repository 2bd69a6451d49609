//! Salvage of a damaged store: which of the rows that can be read make a sound store, and what is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{BufWriter, Write};
use std::ops::Bound;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::counters::Counters;
use super::engine::discover::io_error;
use super::engine::disk::{Disk, RealDisk};
use super::engine::options::{EngineOptions, OpenError};
use super::engine::rebuild::NEW;
use super::engine::salvage::{self, copy_index};
use super::engine::snapshot::other_files;
use super::engine::tx::{Direction, KeyRange, Tx};
use super::engine::{lock, open_folder};
use super::row_source::RowSource;
use super::submission_trash::{self, remove_from_trash};
use super::{BATCH_ROWS, block, delivery_layout, delivery_upkeep, layout, locate, submission_codec};
use crate::clock::Timestamp;
use crate::domain::form::Form;
use crate::domain::submission::Submission;
use crate::domain::workspace::Workspace;
use crate::id::{FormId, Random, WorkspaceId};
use crate::store::queue::StoredQueue;
use crate::store::{Damage, Result, StoreFile};

/// Name of a workspace whose own was lost.
const LOST_NAME: &str = "salvaged";

/// What a salvage has read, and what it knows to be lost.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Salvage {
    pub forms: SalvageCount,
    /// In the trash, quarantined or neither.
    pub submissions: SalvageCount,
    pub damage: Vec<Damage>,
    /// Whether everything is as it was after the last write. If not, what is lost may be more than was counted, and some things
    /// may be as they were earlier.
    #[serde(skip)]
    pub is_complete: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SalvageCount {
    pub read: u64,
    pub lost: u64,
}

/// Writes a new store to the folder `to` from all that can be read of the one in `from`.
///
/// The old store is not changed. The answers of lost forms go to files in the folder `lost` of the new one. Returns the files
/// beside the journal, too, which are still to be copied.
///
/// # Errors
/// If another process holds the old store, it has another format, or the new one cannot be written.
pub fn salvage(from: &Path, to: &Path, random: &dyn Random) -> Result<(Salvage, Vec<StoreFile>), OpenError> {
    let options = EngineOptions::default();
    let disk = RealDisk::new(from).map_err(io_error("open the data directory"))?;
    let _lock = lock::wait_for(&disk, options.lock_wait)?;
    let (new, indexes) = open_folder(to, &options, &(Arc::new(|_| ()) as _))?;
    copy_index(from, &to.join(NEW)).map_err(io_error("copy the index"))?;
    let mut repair = Repair { lost: &to.join("lost"), random, result: Salvage::default() };
    let (damage, is_complete) = salvage::salvage(&disk, (&*new, &*indexes), &options, |tx| repair.run(tx))?;
    let files = other_files(&disk as &dyn Disk, &["exports", "master-key"])?;
    Ok((Salvage { damage, is_complete, ..repair.result }, files))
}

struct Repair<'a> {
    /// Folder for the answers of lost forms.
    lost: &'a Path,
    random: &'a dyn Random,
    result: Salvage,
}

impl Repair<'_> {
    /// Removes the rows that have lost what they belong to, and restores those that others show.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        let (forms, known) = (whole_forms(tx)?, known_forms(tx)?);
        for id in known {
            if tx.get(&layout::purge(id))?.is_some() {
                continue;
            }
            let SalvageCount { read, lost } = repair_submissions(tx, id)?;
            if forms.contains_key(&id) {
                self.result.forms.read += 1;
                self.result.submissions.read += read;
                self.result.submissions.lost += lost;
            } else {
                self.result.forms.lost += 1;
                self.result.submissions.lost += lost + read;
                self.keep_answers(tx, id, read)?;
                remove_form(tx, id)?;
            }
        }
        link_forms(tx, &forms)?;
        self.restore_owners(tx, &forms)?;
        for key in tx.first_keys(layout::all(delivery_layout::QUEUES), usize::MAX)? {
            delivery_upkeep::recount(tx, delivery_layout::indexed_queue(&key)?)?;
        }
        Ok(())
    }

    /// Writes the submissions of a lost form to a file, as JSON lines.
    fn keep_answers(&self, tx: &mut Tx<'_>, form: FormId, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(self.lost)?;
        let path = self.lost.join(format!("{form}.jsonl"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut file = BufWriter::new(file);
        for_each_row(tx, layout::blocks(form), |tx, _, body| {
            for item in block::read(body)? {
                let found = locate::read(tx, form, &item)?;
                found.map_or(Ok(()), |submission| write_line(&mut file, &submission))?;
            }
            Ok(())
        })?;
        for_each_row(tx, layout::trashed_submissions(form, None), |_, key, body| {
            write_line(&mut file, &submission_trash::decode(key, body)?)
        })?;
        Ok(file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?)
    }

    /// Restores the workspaces of forms and keys, the lists of keys, and the signing key.
    fn restore_owners(&self, tx: &mut Tx<'_>, forms: &BTreeMap<FormId, Form>) -> Result<()> {
        let mut owners: BTreeMap<WorkspaceId, Timestamp> =
            forms.values().map(|form| (form.workspace, form.created_at)).collect();
        for entry in tx.first_keys(layout::all(layout::KEY_ENTRIES), usize::MAX)? {
            tx.delete(entry);
        }
        for (_, body) in tx.scan_all(layout::all(layout::API_KEYS))? {
            let key = layout::decode_api_key(&body)?;
            tx.put(layout::key_entry(&key), Vec::new());
            owners.insert(key.workspace, key.created_at);
        }
        for (id, created_at) in owners {
            let is_known = tx.get(&layout::workspace(id))?.is_some();
            if !is_known && tx.get(&layout::deleted_workspace(id))?.is_none() {
                let restored = Workspace { id, name: LOST_NAME.to_owned(), created_at };
                tx.put(layout::workspace(id), layout::to_json(&restored)?);
            }
        }
        if tx.get(layout::SIGNING_KEY)?.is_none() {
            let mut signing_key = [0; 32];
            self.random.fill(&mut signing_key);
            tx.put(layout::SIGNING_KEY.to_vec(), signing_key.to_vec());
        }
        Ok(())
    }
}

/// Returns the forms with head and current questions.
fn whole_forms(tx: &Tx<'_>) -> Result<BTreeMap<FormId, Form>> {
    let mut forms = BTreeMap::new();
    for (_, body) in tx.scan_all(layout::all(layout::FORMS))? {
        let form = layout::decode_form(&body)?;
        if tx.get(&layout::version(form.id, form.version))?.is_some() {
            forms.insert(form.id, form);
        }
    }
    Ok(forms)
}

/// Returns all forms that any row of theirs shows.
fn known_forms(tx: &Tx<'_>) -> Result<BTreeSet<FormId>> {
    let mut known = BTreeSet::new();
    for kind in layout::KINDS_BY_FORM {
        let mut range = layout::all(kind);
        while let Some(key) = tx.first_keys(range.clone(), 1)?.pop() {
            let prefix = key.get(..9).unwrap_or(&key).to_vec();
            known.insert(layout::last(&prefix, FormId::from_bytes)?);
            range.0 = match layout::with_prefix(prefix).1 {
                Bound::Excluded(end) => Bound::Included(end),
                bound => bound,
            };
        }
    }
    for kind in [layout::FORMS, layout::LIVE, layout::TRASHED] {
        for key in tx.first_keys(layout::all(kind), usize::MAX)? {
            known.insert(layout::last(&key, FormId::from_bytes)?);
        }
    }
    Ok(known)
}

/// Removes the submissions of a form whose content is lost, and counts the others, and those that the form's counter shows to be
/// lost.
fn repair_submissions(tx: &mut Tx<'_>, form: FormId) -> Result<SalvageCount> {
    restore_blocks(tx, form)?;
    let kept = Counters::of(tx, form)?;
    let mut found = Counters::default();
    let mut removed = 0;
    for_each_row(tx, layout::blocks(form), |tx, key, body| {
        let mut readable = Some(body.to_vec());
        for item in block::read(body)? {
            found.highest = found.highest.max(Some(item.id));
            if locate::read(tx, form, &item)?.is_some() {
                found.responses += 1;
            } else {
                removed += 1;
                readable = block::set(&readable.unwrap_or_default(), item.id, None)?;
            }
        }
        found.block = Some(layout::listed_submission(key)?.1);
        match readable {
            Some(readable) if readable != body => tx.put(key.to_vec(), readable),
            Some(_) => {}
            None => tx.delete(key.to_vec()),
        }
        Ok(())
    })?;
    let last = if kept.highest < found.highest { found.highest } else { kept.last };
    let (highest, block) = (kept.highest.max(found.highest), kept.block.max(found.block));
    Counters { responses: found.responses, last, highest, block, ..kept }.put(tx, form);
    let lost = kept.responses.saturating_sub(found.responses).max(removed);
    Ok(SalvageCount { read: found.responses + repair_trash(tx, form)?, lost })
}

/// Restores the places in blocks of edited submissions that have lost them.
fn restore_blocks(tx: &mut Tx<'_>, form: FormId) -> Result<()> {
    for_each_row(tx, layout::overflows(form), |tx, key, body| {
        let (_, id) = layout::listed_submission(key)?;
        if locate::read_live(tx, form, id)?.is_none() && submission_trash::read(tx, form, id)?.is_none() {
            locate::insert_restored(tx, &submission_codec::read(body)?.to_submission(form, id)?)?;
        }
        Ok(())
    })
}

/// Removes from the trash of a form what is live, since the write that moved it is lost. Returns the number of the others.
fn repair_trash(tx: &mut Tx<'_>, form: FormId) -> Result<u64> {
    let mut count = 0;
    for_each_row(tx, layout::trashed_submissions(form, None), |tx, key, body| {
        let found = submission_trash::decode(key, body)?;
        match (locate::read_live(tx, form, found.id)?, found.deleted_at) {
            (None, Some(deleted)) => {
                tx.put(layout::trash_sweep(deleted, form, found.id), Vec::new());
                count += 1;
            }
            _ => remove_from_trash(tx, &found),
        }
        Ok(())
    })?;
    Ok(count)
}

/// Removes the rows through which a lost form is found; the others are purged once the store is open.
fn remove_form(tx: &mut Tx<'_>, form: FormId) -> Result<()> {
    let workspace = tx.get(&layout::form_workspace(form))?.unwrap_or_default();
    tx.put(layout::purge(form), workspace);
    for key in [layout::form_workspace(form), layout::counters(form), layout::retired(form)] {
        tx.delete(key);
    }
    Ok(())
}

/// Restores the rows through which forms are found, and removes all others of their kind.
fn link_forms(tx: &mut Tx<'_>, forms: &BTreeMap<FormId, Form>) -> Result<()> {
    for kind in [layout::LIVE, layout::TRASHED, layout::SLUGS] {
        for key in tx.first_keys(layout::all(kind), usize::MAX)? {
            tx.delete(key);
        }
    }
    for key in tx.first_keys(layout::all(layout::FORMS), usize::MAX)? {
        if !forms.contains_key(&layout::last(&key, FormId::from_bytes)?) {
            tx.delete(key);
        }
    }
    for form in forms.values() {
        tx.put(layout::form_workspace(form.id), form.workspace.to_bytes().to_vec());
        tx.put(layout::list_entry(form), Vec::new());
        if let (Some(slug), None) = (&form.slug, form.deleted_at) {
            tx.put(layout::slug(form.workspace, slug), form.id.to_bytes().to_vec());
        }
        for integration in &form.integrations {
            let queue = (form.id, integration.id);
            if tx.get(&delivery_layout::queue(queue.0, queue.1))?.is_none() {
                StoredQueue::default().put(tx, queue)?;
            }
        }
    }
    Ok(())
}

fn for_each_row(
    tx: &mut Tx<'_>,
    mut range: KeyRange,
    mut visit: impl FnMut(&mut Tx<'_>, &[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    loop {
        let rows = tx.scan(range.clone(), Direction::Ascending, BATCH_ROWS)?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        range.0 = Bound::Excluded(last.clone());
        rows.iter().try_for_each(|(key, body)| visit(tx, key, body))?;
    }
}

/// Writes a submission whose form is lost, as a line of JSON.
fn write_line(out: &mut impl Write, submission: &Submission) -> Result<()> {
    let Submission { id, form_version, status, answers, metadata, .. } = submission;
    write!(out, r#"{{"id":"{id}","status":"{status}","submitted_at":"{}","#, submission.submitted_at())?;
    if let Some(deleted_at) = submission.trashed_at() {
        write!(out, r#""deleted_at":"{deleted_at}","#)?;
    }
    write!(out, r#""form_version":{form_version},"answers":{answers}"#)?;
    if let Some(metadata) = metadata {
        write!(out, r#","metadata":{metadata}"#)?;
    }
    Ok(writeln!(out, "}}")?)
}
