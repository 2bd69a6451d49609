//! Lists of deliveries, newest event first: those with rows of their own, merged with the entries of the outboxes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::delivery_manage::row_before;
use super::delivery_rows::DeliveryRow;
use super::engine::tx::Direction;
use super::outbox::{self, OutboxRow};
use super::queue_state::StoredQueue;
use super::{SledStore, delivery_layout as keys, layout};
use crate::domain::delivery::Delivery;
use crate::domain::delivery::lifecycle::EventHead;
use crate::domain::form::Form;
use crate::id::{EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::store::{DeliveryFilter, DeliveryRows, Result};

/// List entries read at once.
const BATCH: usize = 64;

/// Where a delivery is in a list: lists are in descending order of it.
type Position = (EventId, IntegrationId);

/// A search in the deliveries of a workspace, with its progress.
pub(super) struct DeliverySearch {
    workspace: WorkspaceId,
    filter: DeliveryFilter,
    limit: usize,
    /// The last delivery that was examined.
    after: Option<Position>,
    /// `None` before the first step.
    sources: Option<Sources>,
    queues: BTreeMap<(FormId, IntegrationId), StoredQueue>,
    rows: Vec<Delivery>,
    is_done: bool,
    is_end: bool,
}

/// The sorted lists that are merged into one.
struct Sources {
    outboxes: Vec<OutboxCursor>,
    /// The next list entries, newest first.
    listed: VecDeque<(Position, FormId)>,
    is_list_end: bool,
}

/// The entries of one outbox.
struct OutboxCursor {
    form: Arc<Form>,
    /// The row that the entries are from.
    row: Option<OutboxRow>,
    /// The next entries with the numbers of their events, newest first.
    entries: VecDeque<(Position, u64)>,
}

impl SledStore {
    /// Runs the search until its page is full, it is complete, or out of time.
    pub(super) async fn search_deliveries(&self, mut search: DeliverySearch) -> Result<DeliveryRows> {
        let job = self.pool.admit()?;
        loop {
            let store = self.clone();
            let step = move |until| search.run(&store, until).map(|()| search);
            search = job.run(step).await??;
            if search.is_done || job.is_overdue() && search.after.is_some() {
                return Ok(search.into_page());
            }
        }
    }
}

impl DeliverySearch {
    /// Creates a search after the `next` of an earlier page. A position of another search begins wherever it points.
    pub(super) fn new(
        workspace: WorkspaceId,
        filter: &DeliveryFilter,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Self {
        Self {
            workspace,
            filter: filter.clone(),
            limit,
            after: after.and_then(decode_position),
            sources: None,
            queues: BTreeMap::new(),
            rows: Vec::new(),
            is_done: false,
            is_end: false,
        }
    }

    fn into_page(self) -> DeliveryRows {
        let next = self.after.filter(|_| !self.is_end).map(encode_position);
        DeliveryRows { rows: self.rows, next }
    }

    fn run(&mut self, store: &SledStore, until: Instant) -> Result<()> {
        let mut sources = match self.sources.take() {
            Some(sources) => sources,
            None => self.open(store)?,
        };
        loop {
            let Some((position, form, sequence)) = self.next(store, &mut sources)? else {
                (self.is_done, self.is_end) = (true, true);
                break;
            };
            if let Some(found) = self.examine(store, position, form, sequence)? {
                if self.rows.len() == self.limit {
                    self.is_done = true;
                    break;
                }
                self.rows.push(found);
            }
            self.after = Some(position);
            if Instant::now() >= until {
                break;
            }
        }
        self.sources = Some(sources);
        Ok(())
    }

    fn open(&self, store: &SledStore) -> Result<Sources> {
        let mut outboxes = Vec::new();
        let forms = match self.filter.form {
            Some(form) => store.form(self.workspace, form)?.into_iter().collect(),
            None => store.outbox_forms(self.workspace)?,
        };
        for form in forms {
            if self.includes_form(form.id) {
                let row = match self.upper_bound() {
                    Some((event, _)) => outbox::seek(&store.reader, form.id, event.completed_submission())?,
                    None => outbox::last_row(&store.reader, form.id)?,
                };
                let mut cursor = OutboxCursor { form, row: None, entries: VecDeque::new() };
                cursor.set_row(row, self.upper_bound());
                outboxes.push(cursor);
            }
        }
        Ok(Sources { outboxes, listed: VecDeque::new(), is_list_end: false })
    }

    /// The position before which the search goes on.
    fn upper_bound(&self) -> Option<Position> {
        let until = self.filter.until.map(|until| (first_event(until.millis()), IntegrationId::ZERO));
        self.after.into_iter().chain(until).min()
    }

    /// Takes the next delivery from the sources, with the number of its event if it is from an outbox.
    fn next(
        &self,
        store: &SledStore,
        sources: &mut Sources,
    ) -> Result<Option<(Position, FormId, Option<u64>)>> {
        for cursor in &mut sources.outboxes {
            if cursor.fill(store, self.upper_bound())? {
                // An entry that left the outbox meanwhile is in the list, which must be read after it.
                (sources.listed, sources.is_list_end) = (VecDeque::new(), false);
            }
        }
        if sources.listed.is_empty() && !sources.is_list_end {
            self.fill_list(store, sources)?;
        }
        let heads = sources
            .outboxes
            .iter()
            .filter_map(|cursor| cursor.entries.front())
            .map(|(position, _)| *position);
        let Some(next) = heads.chain(sources.listed.front().map(|(position, _)| *position)).max() else {
            return Ok(None);
        };
        if self.filter.since.is_some_and(|since| next.0 < first_event(since.millis())) {
            return Ok(None);
        }
        let mut found = None;
        if let Some((_, form)) = sources.listed.pop_front_if_at(next) {
            found = Some((next, form, None));
        }
        for cursor in &mut sources.outboxes {
            if let Some((_, sequence)) = cursor.entries.pop_front_if_at(next) {
                found = found.or(Some((next, cursor.form.id, Some(sequence))));
            }
        }
        Ok(found)
    }

    fn fill_list(&self, store: &SledStore, sources: &mut Sources) -> Result<()> {
        let mut range = keys::list(self.workspace);
        if let Some((event, integration)) = self.upper_bound() {
            range.1 = Bound::Excluded(keys::list_entry(self.workspace, event, integration));
        }
        for (key, form) in store.reader.scan(range, Direction::Descending, BATCH)? {
            sources.listed.push_back((keys::listed_delivery(&key)?, layout::listed_form(&form)?));
        }
        sources.is_list_end = sources.listed.is_empty();
        Ok(())
    }

    /// Returns a delivery as readers are shown it, if it exists and matches the filter.
    fn examine(
        &mut self,
        store: &SledStore,
        (event, integration): Position,
        form: FormId,
        sequence: Option<u64>,
    ) -> Result<Option<Delivery>> {
        if !self.includes_form(form) || self.filter.integration.is_some_and(|wanted| wanted != integration) {
            return Ok(None);
        }
        let Some(form) = store.form(self.workspace, form)? else { return Ok(None) };
        let queue = match self.queues.entry((form.id, integration)) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(unknown) => {
                unknown.insert(StoredQueue::read(&store.reader, form.id, integration)?)
            }
        };
        let delivery = match DeliveryRow::read(&store.reader, form.id, event, integration)? {
            Some(row) => row.delivery,
            None if sequence.is_some_and(|sequence| sequence > queue.position) => {
                Delivery::new(EventHead::of_completed(form.id, event.completed_submission()), integration)
            }
            None => return Ok(None),
        };
        let shown = delivery.shown(&form, &queue.health);
        let filter = &self.filter;
        let is_status = filter.status.is_empty() || filter.status.contains(&shown.status);
        let is_submission = filter.submission.is_none_or(|wanted| shown.submission == Some(wanted));
        Ok(Some(shown).filter(|_| is_status && is_submission))
    }

    fn includes_form(&self, form: FormId) -> bool {
        let is_visible = self.filter.forms.as_ref().is_none_or(|forms| forms.contains(&form));
        is_visible && self.filter.form.is_none_or(|wanted| wanted == form)
    }
}

impl OutboxCursor {
    /// Reads rows until there is an entry or the outbox ends. Returns whether it has read any.
    fn fill(&mut self, store: &SledStore, before: Option<Position>) -> Result<bool> {
        let mut has_read = false;
        while self.entries.is_empty() {
            let Some(row) = &self.row else { break };
            let row = row_before(&store.reader, self.form.id, row.first())?;
            self.set_row(row, before);
            has_read = true;
        }
        Ok(has_read)
    }

    fn set_row(&mut self, row: Option<OutboxRow>, before: Option<Position>) {
        self.entries.clear();
        if let Some(row) = &row {
            let mut integrations = row.integrations.clone();
            integrations.sort_unstable();
            for entry in row.entries().rev() {
                let event = EventId::of_completed(entry.submission);
                let owed = integrations.iter().rev().map(|id| ((event, *id), entry.sequence));
                self.entries
                    .extend(owed.filter(|(position, _)| before.is_none_or(|before| *position < before)));
            }
        }
        self.row = row;
    }
}

/// A queue of positions with something.
trait PopAt<T> {
    /// Takes the first item if it is at `position`.
    fn pop_front_if_at(&mut self, position: Position) -> Option<(Position, T)>;
}

impl<T> PopAt<T> for VecDeque<(Position, T)> {
    fn pop_front_if_at(&mut self, position: Position) -> Option<(Position, T)> {
        match self.front() {
            Some((first, _)) if *first == position => self.pop_front(),
            Some(_) | None => None,
        }
    }
}

/// The least id of an event at `millis` or later.
fn first_event(millis: i64) -> EventId {
    EventId::of_completed(SubmissionId::first_of(millis))
}

fn encode_position((event, integration): Position) -> Vec<u8> {
    [&event.to_bytes()[..], &integration.to_bytes()].concat()
}

fn decode_position(bytes: &[u8]) -> Option<Position> {
    let (event, integration) = bytes.split_first_chunk()?;
    let integration = integration.try_into().ok()?;
    Some((EventId::from_bytes(*event), IntegrationId::from_bytes(integration)))
}
