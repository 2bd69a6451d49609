//! Totals and statistics of deliveries.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::delivery_layout::{self as keys, DUE_CLASSES, QueueClass, WAITING_CLASSES};
use super::delivery_rows::IndexValue;
use super::engine::tx::{Direction, KeyRange};
use super::outbox::OutboxRow;
use super::queue_state::StoredQueue;
use super::{SledStore, layout};
use crate::clock::{DAY_MILLIS, Timestamp};
use crate::domain::form::Form;
use crate::domain::integration::Integration;
use crate::id::{FormId, IntegrationId, WorkspaceId};
use crate::store::{QueueTotals, Result, TypeStats};

/// Rows read at once.
const BATCH: usize = 1_000;

/// Entries of an outbox that wait for one integration.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    count: u64,
    oldest: Option<Timestamp>,
}

/// Statistics by the name of the type of integration.
type ByType = BTreeMap<&'static str, Collected>;

/// Statistics of one type of integration, being collected.
#[derive(Default)]
struct Collected {
    stats: TypeStats,
    durations: Vec<u64>,
}

impl SledStore {
    /// Reads the totals of all queues of a form, in slices; takes time by the number of deliveries that wait.
    pub(super) async fn read_totals(&self, workspace: WorkspaceId, form: FormId) -> Result<Vec<QueueTotals>> {
        let Some(form) = self.form(workspace, form)? else { return Ok(Vec::new()) };
        if form.integrations.is_empty() {
            return Ok(Vec::new());
        }
        let job = self.pool.admit()?;
        let mut totals = TotalsRead::new(self, form)?;
        while !totals.remaining.is_empty() {
            let store = self.clone();
            let step = move |until| totals.run(&store, until).map(|()| totals);
            totals = job.run(step).await??;
        }
        Ok(totals.into_totals())
    }

    /// Reads the states of a form's queues, and counts the entries of the outbox that wait for each.
    fn read_outbox(&self, form: &Form) -> Result<(Vec<StoredQueue>, BTreeMap<IntegrationId, Waiting>)> {
        let queues = self.read_states(form)?;
        let mut waiting = BTreeMap::new();
        self.count(keys::outbox(form.id), |key, body| {
            add_waiting(form, &queues, &OutboxRow::decode(key, body)?, &mut waiting);
            Ok(())
        })?;
        for (integration, state) in form.integrations.iter().zip(&queues) {
            if let Some(of_queue) = waiting.get_mut(&integration.id) {
                of_queue.count = of_queue.count.saturating_sub(state.ahead);
            }
        }
        Ok((queues, waiting))
    }

    fn read_states(&self, form: &Form) -> Result<Vec<StoredQueue>> {
        form.integrations.iter().map(|one| StoredQueue::read(&self.reader, form.id, one.id)).collect()
    }

    /// Counts the rows of a range, each of which is given to `visit`.
    fn count(&self, mut range: KeyRange, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<u64> {
        let mut count = 0;
        loop {
            let rows = self.reader.scan(range.clone(), Direction::Ascending, BATCH)?;
            for (key, body) in &rows {
                visit(key, body)?;
            }
            count += rows.len() as u64;
            match rows.into_iter().next_back() {
                Some((last, _)) if count.is_multiple_of(BATCH as u64) => range.0 = Bound::Excluded(last),
                Some(_) | None => return Ok(count),
            }
        }
    }

    /// Collects the statistics of a workspace, form by form.
    pub(super) async fn collect_stats(
        &self,
        workspace: WorkspaceId,
        now: Timestamp,
    ) -> Result<Vec<(&'static str, TypeStats)>> {
        let job = self.pool.admit()?;
        let mut collected = ByType::new();
        for is_trashed in [false, true] {
            let mut range = layout::list(workspace, is_trashed, None);
            loop {
                let (store, from) = (self.clone(), range.clone());
                let step = move |_until| store.collect_forms(workspace, from, collected, now);
                let (progress, next) = job.run(step).await??;
                collected = progress;
                match next {
                    Some(last) => range.0 = Bound::Excluded(last),
                    None => break,
                }
            }
        }
        Ok(collected.into_iter().map(|(name, all)| (name, all.into_stats())).collect())
    }

    /// Adds the statistics of a batch of forms. Returns the last one's list entry, unless the list has ended.
    fn collect_forms(
        &self,
        workspace: WorkspaceId,
        range: KeyRange,
        mut collected: ByType,
        now: Timestamp,
    ) -> Result<(ByType, Option<Vec<u8>>)> {
        const FORMS: usize = 32;
        let entries = self.reader.scan(range, Direction::Ascending, FORMS)?;
        let has_more = entries.len() == FORMS;
        for (entry, _) in &entries {
            let Some(form) = self.form(workspace, layout::listed_form(entry)?)? else { continue };
            if form.integrations.is_empty() {
                continue;
            }
            let (queues, waiting) = self.read_outbox(&form)?;
            for (integration, state) in form.integrations.iter().zip(&queues) {
                let of_type = collected.entry(integration.kind.type_name()).or_default();
                let waiting = waiting.get(&integration.id).copied().unwrap_or_default();
                self.collect_queue(&form, integration, (state, waiting), of_type, now)?;
            }
        }
        Ok((collected, entries.into_iter().next_back().map(|(entry, _)| entry).filter(|_| has_more)))
    }

    fn collect_queue(
        &self,
        form: &Form,
        integration: &Integration,
        (state, waiting): (&StoredQueue, Waiting),
        collected: &mut Collected,
        now: Timestamp,
    ) -> Result<()> {
        let queue = (form.id, integration.id);
        let is_queue_paused = !integration.enabled || state.health.paused.is_some();
        let stats = &mut collected.stats;
        stats.paused += self.count(keys::index(queue, QueueClass::Paused), |_, _| Ok(()))?;
        stats.dead += self.count(keys::index(queue, QueueClass::Dead), |_, _| Ok(()))?;
        let is_paused = is_queue_paused || form.deleted_at.is_some();
        if is_paused {
            stats.paused += waiting.count;
        } else {
            stats.pending += waiting.count;
            stats.oldest_due_at = earliest(stats.oldest_due_at, waiting.oldest);
        }
        for class in DUE_CLASSES {
            let is_paused = if class == QueueClass::Deletion { is_queue_paused } else { is_paused };
            self.count(keys::index(queue, class), |key, value| {
                if IndexValue::decode(value)? == IndexValue::InFlight {
                    stats.in_flight += 1;
                } else if is_paused {
                    stats.paused += 1;
                } else {
                    stats.pending += 1;
                    stats.oldest_due_at = earliest(stats.oldest_due_at, Some(keys::index_position(key)?.0));
                }
                Ok(())
            })?;
        }
        let yesterday = Timestamp::from_millis(now.millis() - DAY_MILLIS);
        let durations = &mut collected.durations;
        self.count(keys::index_from(queue, QueueClass::Ended, yesterday), |_, value| {
            if let IndexValue::Delivered(millis) = IndexValue::decode(value)? {
                durations.push(millis);
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Totals of the queues of a form, being read.
struct TotalsRead {
    form: Arc<Form>,
    queues: Vec<StoredQueue>,
    waiting: BTreeMap<IntegrationId, Waiting>,
    totals: Vec<QueueTotals>,
    /// What is still to be read.
    remaining: VecDeque<(TotalsPart, KeyRange)>,
}

/// Rows that are counted for totals.
#[derive(Debug, Clone, Copy)]
enum TotalsPart {
    Outbox,
    /// A class of deliveries of the integration with this index.
    Class(usize, QueueClass),
}

impl TotalsRead {
    fn new(store: &SledStore, form: Arc<Form>) -> Result<Self> {
        let queues = store.read_states(&form)?;
        let mut remaining = VecDeque::from([(TotalsPart::Outbox, keys::outbox(form.id))]);
        let mut totals = Vec::new();
        for (index, (integration, state)) in form.integrations.iter().zip(&queues).enumerate() {
            for class in WAITING_CLASSES.into_iter().chain([QueueClass::Dead]) {
                let range = keys::index((form.id, integration.id), class);
                remaining.push_back((TotalsPart::Class(index, class), range));
            }
            let state = state.clone().into_state();
            totals.push(QueueTotals { integration: Some(integration.id), state, pending: 0, dead: 0 });
        }
        Ok(Self { form, queues, waiting: BTreeMap::new(), totals, remaining })
    }

    /// Counts until nothing remains, or until `until`.
    fn run(&mut self, store: &SledStore, until: Instant) -> Result<()> {
        while let Some((part, mut range)) = self.remaining.pop_front() {
            let rows = store.reader.scan(range.clone(), Direction::Ascending, BATCH)?;
            match part {
                TotalsPart::Outbox => {
                    for (key, body) in &rows {
                        add_waiting(
                            &self.form,
                            &self.queues,
                            &OutboxRow::decode(key, body)?,
                            &mut self.waiting,
                        );
                    }
                }
                TotalsPart::Class(index, class) => {
                    if let Some(totals) = self.totals.get_mut(index) {
                        let total =
                            if class == QueueClass::Dead { &mut totals.dead } else { &mut totals.pending };
                        *total += rows.len() as u64;
                    }
                }
            }
            if rows.len() == BATCH
                && let Some((last, _)) = rows.into_iter().next_back()
            {
                range.0 = Bound::Excluded(last);
                self.remaining.push_front((part, range));
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    fn into_totals(mut self) -> Vec<QueueTotals> {
        for ((integration, state), totals) in
            self.form.integrations.iter().zip(&self.queues).zip(&mut self.totals)
        {
            let waiting = self.waiting.get(&integration.id).map_or(0, |waiting| waiting.count);
            totals.pending += waiting.saturating_sub(state.ahead);
        }
        self.totals
    }
}

/// Adds the entries of an outbox row that wait for integrations of `form`, whose queues have the states `queues`.
fn add_waiting(
    form: &Form,
    queues: &[StoredQueue],
    row: &OutboxRow,
    waiting: &mut BTreeMap<IntegrationId, Waiting>,
) {
    let ids = form.integrations.iter().map(|one| one.id);
    for (id, state) in ids.zip(queues).filter(|(id, _)| row.names(*id)) {
        let of_queue = waiting.entry(id).or_default();
        for entry in row.entries().filter(|entry| entry.sequence > state.position) {
            of_queue.count += 1;
            of_queue.oldest.get_or_insert(Timestamp::from_millis(entry.submission.millis()));
        }
    }
}

impl Collected {
    fn into_stats(mut self) -> TypeStats {
        self.durations.sort_unstable();
        let count = self.durations.len();
        let percentile = |percent: usize| {
            self.durations.get((count * percent / 100).min(count.saturating_sub(1))).copied()
        };
        TypeStats { delivered: count as u64, p50_ms: percentile(50), p99_ms: percentile(99), ..self.stats }
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
