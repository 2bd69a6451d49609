//! Layout of keys and values: all rows of the business in the one tree.
//!
//! ```text
//! D form(8) version(4) a form's questions at one time, JSON
//! F workspace(8) form(8) a form's head, JSON
//! Q form(8) ids of questions removed from it, JSON
//! w form(8) the form's workspace(8)
//! f workspace(8) created(8) form(8) list order of live forms, empty
//! t workspace(8) deleted(8) form(8) list order of trashed forms, empty
//! u workspace(8) slug the live form(8) that has the slug
//! C form(8) responses(8), then three submissions(16), then two numbers(8) if it has events: see `Counters`
//! S form(8) submission(16) a block of submissions, see `block`
//! E form(8) submission(16) overflow of one of them, see `submission_codec`
//! H form(8) submission(16) edit(4) when an edit replaced it(8), the replaced state as in E
//! T form(8) submission(16) when it was deleted or quarantined(8), and a submission in the trash, or quarantined, as in E
//! y deleted(8) form(8) submission(16) sweeps T, empty
//! I key(8) operation(9 or 25) hash(16) body hash(16), what was made(16), when(8); a key, workspace or response, JSON
//! G form(8) hash(16) key(8) as I, for a form's restore, then the restored form, JSON
//! G form(8) integration(0 or 8) hash(16) key(8) operation(1) as I, then the response, JSON
//! i expiry(8), then as I sweeps I and G, empty
//! K key(8) an API key, JSON
//! k workspace(8) created(8) key(8) list order of keys, empty
//! l key(8) when the key was last used(8)
//! W workspace(8) a workspace, JSON
//! Z workspace(8) a workspace that was deleted, empty; its remaining rows are purged
//! X 0(8) form(8) a purge of a form that is under way: the form's workspace(8), or empty
//! x form(8) submission(16) a purge of a submission's H and deliveries that is under way: when it was
//!    deleted(8), or empty
//! J n v q B e a r c queues and deliveries: see `delivery_layout`
//! Mb s the signing key(32)
//! Mb d deliveries have rows of their own, empty: see `delivery_upgrade`
//! Mb i a time(8) up to which submissions may have ids
//! Mb u when maintenance ran last(8), how long the trash must wait(8)
//! ```
//!
//! The changes of a group become visible in the order of their keys, counters, `G` and `I` last: a reader that sees a
//! form's head finds its questions, and one that sees a `G` or an `I` finds the object it names.
//!
//! Numbers are big-endian, so that pages are read in key order. Times are milliseconds with the sign bit inverted, so
//! that earlier ones sort first. Only `M` and `P` are reserved for the engine.

use std::ops::Bound;

use super::engine::tx::KeyRange;
pub(super) use crate::store::json::{from_json, to_json};

use crate::clock::Timestamp;
use crate::domain::form::admission::{IDEMPOTENCY_RECORD_MILLIS, IdempotencyRecord};
use crate::domain::form::{Form, StoredVersion};
use crate::domain::trash::ClockRecord;
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::{FormId, FormRef, SubmissionId, WorkspaceId};
use crate::secret::KeyId;
use crate::store::step::{CREATE_INTEGRATION, RESTORE_FORM, ROTATE_SECRET, TEST_INTEGRATION};
use crate::store::{IdempotencyKey, Result, StoreError};

pub(super) fn key(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(kind);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

pub(super) fn sortable(time: Timestamp) -> [u8; 8] {
    (time.millis() ^ i64::MIN).to_be_bytes()
}

pub(super) fn unsortable(time: [u8; 8]) -> Timestamp {
    Timestamp::from_millis(i64::from_be_bytes(time) ^ i64::MIN)
}

pub(super) fn form(form: FormRef) -> Vec<u8> {
    key(FORMS, &[&form.workspace.to_bytes(), &form.id.to_bytes()])
}

pub(super) fn form_workspace(form: FormId) -> Vec<u8> {
    key(FORM_WORKSPACES, &[&form.to_bytes()])
}

/// Key of the list entry of a form: among the live ones by creation, or among the trashed ones by deletion.
pub(super) fn list_entry(form: &Form) -> Vec<u8> {
    let (kind, time) = form.deleted_at.map_or((LIVE, form.created_at), |deleted| (TRASHED, deleted));
    key(kind, &[&form.workspace.to_bytes(), &sortable(time), &form.id.to_bytes()])
}

pub(super) const LIVE: u8 = b'f';
pub(super) const TRASHED: u8 = b't';
pub(super) const SLUGS: u8 = b'u';

pub(super) fn slug(workspace: WorkspaceId, slug: &str) -> Vec<u8> {
    key(SLUGS, &[&workspace.to_bytes(), slug.as_bytes()])
}

/// Decodes the id, or the number, at the end of a key, or of a body that is one.
pub(super) fn last<const N: usize, T>(key: &[u8], from_bytes: impl Fn([u8; N]) -> T) -> Result<T> {
    key.last_chunk().map(|bytes| from_bytes(*bytes)).ok_or_else(|| undecodable("a list entry"))
}

/// Decodes the time and the form id in a [`list_entry`].
pub(super) fn list_position(key: &[u8]) -> Result<(Timestamp, FormId)> {
    let form = last(key, FormId::from_bytes)?;
    let moment = key.get(9..).and_then(<[u8]>::first_chunk).ok_or_else(|| undecodable("a list entry"))?;
    Ok((unsortable(*moment), form))
}

pub(super) fn version(form: FormId, number: u32) -> Vec<u8> {
    key(b'D', &[&form.to_bytes(), &number.to_be_bytes()])
}

pub(super) fn retired(form: FormId) -> Vec<u8> {
    key(b'Q', &[&form.to_bytes()])
}

pub(super) fn counters(form: FormId) -> Vec<u8> {
    key(COUNTERS, &[&form.to_bytes()])
}

pub(super) fn block(form: FormId, submission: SubmissionId) -> Vec<u8> {
    key(b'S', &[&form.to_bytes(), &submission.to_bytes()])
}

pub(super) fn overflow(form: FormId, submission: SubmissionId) -> Vec<u8> {
    key(b'E', &[&form.to_bytes(), &submission.to_bytes()])
}

pub(super) fn replaced_state(form: FormId, submission: SubmissionId, edit: u32) -> Vec<u8> {
    key(b'H', &[&form.to_bytes(), &submission.to_bytes(), &edit.to_be_bytes()])
}

pub(super) fn trashed_submission(form: FormId, submission: SubmissionId) -> Vec<u8> {
    key(b'T', &[&form.to_bytes(), &submission.to_bytes()])
}

pub(super) fn trash_sweep(deleted: Timestamp, form: FormId, submission: SubmissionId) -> Vec<u8> {
    key(TRASH_SWEEPS, &[&sortable(deleted), &form.to_bytes(), &submission.to_bytes()])
}

pub(super) fn history_purge(form: FormId, submission: SubmissionId) -> Vec<u8> {
    key(HISTORY_PURGES, &[&form.to_bytes(), &submission.to_bytes()])
}

/// Decodes the form and the submission at the end of a key.
pub(super) fn listed_submission(key: &[u8]) -> Result<(FormId, SubmissionId)> {
    let unknown = || undecodable("a list entry");
    let (rest, submission) = key.split_last_chunk().ok_or_else(unknown)?;
    let form = rest.last_chunk().ok_or_else(unknown)?;
    Ok((FormId::from_bytes(*form), SubmissionId::from_bytes(*submission)))
}

pub(super) fn api_key(id: KeyId) -> Vec<u8> {
    key(API_KEYS, &[&id.to_bytes()])
}

pub(super) fn key_entry(api_key: &ApiKey) -> Vec<u8> {
    let ApiKey { id, workspace, created_at, .. } = api_key;
    key(KEY_ENTRIES, &[&workspace.to_bytes(), &sortable(*created_at), &id.to_bytes()])
}

/// Range of the [list entries](key_entry) of the keys of `workspace`.
pub(super) fn key_entries(workspace: WorkspaceId) -> KeyRange {
    with_prefix(key(KEY_ENTRIES, &[&workspace.to_bytes()]))
}

pub(super) fn listed_key(key: &[u8]) -> Result<KeyId> {
    last(key, KeyId::from_bytes)?.ok_or_else(|| undecodable("a list entry"))
}

pub(super) fn key_use(id: KeyId) -> Vec<u8> {
    key(b'l', &[&id.to_bytes()])
}

pub(super) fn encode_time(time: Timestamp) -> Vec<u8> {
    time.millis().to_be_bytes().to_vec()
}

pub(super) fn decode_time(body: &[u8]) -> Result<Timestamp> {
    let millis = body.try_into().map_err(|_length| undecodable("a time"))?;
    Ok(Timestamp::from_millis(i64::from_be_bytes(millis)))
}

pub(super) fn workspace(id: WorkspaceId) -> Vec<u8> {
    key(WORKSPACES, &[&id.to_bytes()])
}

pub(super) fn deleted_workspace(id: WorkspaceId) -> Vec<u8> {
    key(DELETED_WORKSPACES, &[&id.to_bytes()])
}

pub(super) fn slugs(workspace: WorkspaceId) -> KeyRange {
    with_prefix(key(SLUGS, &[&workspace.to_bytes()]))
}

pub(super) fn purge(form: FormId) -> Vec<u8> {
    key(FORM_PURGES, &[&[0; 8], &form.to_bytes()])
}

pub(super) const SIGNING_KEY: &[u8] = b"Mbs";

pub(super) const CLOCK: &[u8] = b"Mbu";

pub(super) const DELIVERY_ROWS: &[u8] = b"Mbd";

pub(super) const LATEST_ID: &[u8] = b"Mbi";

pub(super) fn encode_clock(record: ClockRecord) -> Vec<u8> {
    [record.last.millis().to_be_bytes(), record.wait_millis.to_be_bytes()].concat()
}

pub(super) fn decode_clock(body: &[u8]) -> Result<ClockRecord> {
    let ([last, wait], []) = body.as_chunks() else { return Err(undecodable("the record of the clock")) };
    let last = Timestamp::from_millis(i64::from_be_bytes(*last));
    Ok(ClockRecord { last, wait_millis: i64::from_be_bytes(*wait) })
}

pub(super) fn idempotency_record(idempotency_key: &IdempotencyKey) -> Vec<u8> {
    record_key(&idempotency_key.to_bytes())
}

/// Key of the idempotency record with this suffix. A record that holds a form, or an integration of one, is purged with the
/// form.
fn record_key(tail: &[u8]) -> Vec<u8> {
    match tail.split_at_checked(8) {
        Some((caller, [RESTORE_FORM, form_and_hash @ ..])) => key(b'G', &[form_and_hash, caller]),
        Some((
            caller,
            [operation @ (CREATE_INTEGRATION | TEST_INTEGRATION | ROTATE_SECRET), form_and_rest @ ..],
        )) => key(b'G', &[form_and_rest, caller, &[*operation]]),
        Some(_) | None => key(b'I', &[tail]),
    }
}

/// Key of the expiry entry of a record made at `at`.
pub(super) fn expiry(idempotency_key: &IdempotencyKey, at: Timestamp) -> Vec<u8> {
    key(EXPIRIES, &[&sortable(expires_at(at)), &idempotency_key.to_bytes()])
}

/// Decodes an expiry entry: the key of its record, and the expiry that the record must have to be deleted.
pub(super) fn expired_record(expiry: &[u8]) -> Result<(Vec<u8>, Timestamp)> {
    let (time, tail) =
        expiry.get(1..).and_then(<[u8]>::split_first_chunk).ok_or_else(|| undecodable("an expiry"))?;
    Ok((record_key(tail), unsortable(*time)))
}

/// Returns the expiry of a record made at `at`.
pub(super) fn expires_at(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis() + IDEMPOTENCY_RECORD_MILLIS)
}

/// Range of all keys that begin with `prefix`.
pub(super) fn with_prefix(prefix: Vec<u8>) -> KeyRange {
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return (Bound::Included(prefix), Bound::Excluded(end));
        }
    }
    (Bound::Included(prefix), Bound::Unbounded)
}

/// Range of the keys that begin with `prefix`, up to `end` if given.
fn with_prefix_below(prefix: Vec<u8>, end: Option<Vec<u8>>) -> KeyRange {
    let (start, all) = with_prefix(prefix);
    (start, end.map_or(all, Bound::Excluded))
}

pub(super) fn blocks(form: FormId) -> KeyRange {
    with_prefix(key(b'S', &[&form.to_bytes()]))
}

/// Range of the overflow rows of `form`.
pub(super) fn overflows(form: FormId) -> KeyRange {
    with_prefix(key(b'E', &[&form.to_bytes()]))
}

/// Range of the blocks of `form` whose first id is within `ids`.
pub(super) fn blocks_within(form: FormId, ids: (Bound<SubmissionId>, Bound<SubmissionId>)) -> KeyRange {
    let (start, end) = blocks(form);
    let within = |bound: Bound<SubmissionId>, whole| match bound {
        Bound::Unbounded => whole,
        bound => bound.map(|id| block(form, id)),
    };
    (within(ids.0, start), within(ids.1, end))
}

/// Range of the blocks of `form` whose first id is at most `last`.
pub(super) fn blocks_up_to(form: FormId, last: SubmissionId) -> KeyRange {
    (blocks(form).0, Bound::Included(block(form, last)))
}

/// Range of the trashed submissions of `form`, below `before` if given.
pub(super) fn trashed_submissions(form: FormId, before: Option<SubmissionId>) -> KeyRange {
    with_prefix_below(key(b'T', &[&form.to_bytes()]), before.map(|before| trashed_submission(form, before)))
}

/// Range of the replaced states of a submission, below the edit `before` if given.
pub(super) fn history(form: FormId, submission: SubmissionId, before: Option<u32>) -> KeyRange {
    with_prefix_below(
        key(b'H', &[&form.to_bytes(), &submission.to_bytes()]),
        before.map(|before| replaced_state(form, submission, before)),
    )
}

/// Range of the replaced states of all submissions of `form`.
pub(super) fn replaced_states(form: FormId) -> KeyRange {
    with_prefix(key(b'H', &[&form.to_bytes()]))
}

/// Ranges of all rows of `form` whose number is not bounded.
pub(super) fn bulk_rows(form: FormId) -> [KeyRange; 13] {
    b"SETHDGJBaenrc".map(|kind| with_prefix(key(kind, &[&form.to_bytes()])))
}

/// Range of the versions of `form`, below `before` if given.
pub(super) fn versions(form: FormId, before: Option<u32>) -> KeyRange {
    with_prefix_below(key(b'D', &[&form.to_bytes()]), before.map(|before| version(form, before)))
}

/// Range of the [list entries](list_entry) of `workspace`, below `after` if given.
pub(super) fn list(workspace: WorkspaceId, is_trashed: bool, after: Option<(Timestamp, FormId)>) -> KeyRange {
    let (kind, workspace) = (if is_trashed { TRASHED } else { LIVE }, workspace.to_bytes());
    let after = after.map(|(time, form)| key(kind, &[&workspace, &sortable(time), &form.to_bytes()]));
    with_prefix_below(key(kind, &[&workspace]), after)
}

/// Kinds of rows of a form and its submissions; their keys begin with the form.
pub(super) const KINDS_BY_FORM: [u8; 8] = *b"DQwCSEHT";

/// Range of all rows of a kind.
pub(super) fn all(kind: u8) -> KeyRange {
    with_prefix(vec![kind])
}

pub(super) const COUNTERS: u8 = b'C';
pub(super) const FORMS: u8 = b'F';
pub(super) const WORKSPACES: u8 = b'W';
pub(super) const DELETED_WORKSPACES: u8 = b'Z';
pub(super) const API_KEYS: u8 = b'K';
pub(super) const KEY_ENTRIES: u8 = b'k';
pub(super) const FORM_WORKSPACES: u8 = b'w';
pub(super) const FORM_PURGES: u8 = b'X';
pub(super) const HISTORY_PURGES: u8 = b'x';
pub(super) const TRASH_SWEEPS: u8 = b'y';
pub(super) const EXPIRIES: u8 = b'i';

/// Range of the rows of a kind that begin with a time before `end`.
pub(super) fn before(kind: u8, end: Timestamp) -> KeyRange {
    with_prefix_below(vec![kind], Some(key(kind, &[&sortable(end)])))
}

pub(super) fn undecodable(what: &str) -> StoreError {
    StoreError::Undecodable(format!("{what} has a format this version does not know"))
}

pub(super) fn encode_idempotency_record(record: &IdempotencyRecord) -> Vec<u8> {
    let IdempotencyRecord { body, result, at, extra } = record;
    [&body.to_be_bytes()[..], &result.to_be_bytes(), &at.millis().to_be_bytes(), extra].concat()
}

pub(super) fn decode_idempotency_record(body: &[u8]) -> Result<IdempotencyRecord> {
    let unknown = || undecodable("an idempotency record");
    let (hash, rest) = body.split_first_chunk().ok_or_else(unknown)?;
    let (made, rest) = rest.split_first_chunk().ok_or_else(unknown)?;
    let (at, extra) = rest.split_first_chunk().ok_or_else(unknown)?;
    Ok(IdempotencyRecord {
        body: u128::from_be_bytes(*hash),
        result: u128::from_be_bytes(*made),
        at: Timestamp::from_millis(i64::from_be_bytes(*at)),
        extra: extra.to_vec(),
    })
}

pub(super) fn decode_form(body: &[u8]) -> Result<Form> {
    from_json("a form", body)
}

pub(super) fn decode_version(body: &[u8]) -> Result<StoredVersion> {
    from_json("a version of a form", body)
}

pub(super) fn decode_api_key(body: &[u8]) -> Result<ApiKey> {
    from_json("an API key", body)
}

pub(super) fn decode_workspace(body: &[u8]) -> Result<Workspace> {
    from_json("a workspace", body)
}
