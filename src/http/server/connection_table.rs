//! The open connections: their limits, in total and per network, and which one is evicted for the next.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{HttpSettings, KEPT_CONNECTIONS};
use crate::http::server::client_address::client_network;
use crate::http::server::connection_state::Connection;

/// The open connections of one accept loop.
pub(crate) struct ConnectionTable {
    settings: Arc<HttpSettings>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

/// A slot in the table, released when dropped.
pub(crate) struct ConnectionSlot {
    pub(crate) connection: Arc<Connection>,
    id: u64,
    table: Arc<ConnectionTable>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().connections.remove(&self.id);
    }
}

impl ConnectionTable {
    pub(crate) fn new(settings: Arc<HttpSettings>) -> Self {
        Self { settings, open: Mutex::default() }
    }

    /// Returns a slot for a new connection from `address`. If all are taken, evicts the connection that has waited longest for
    /// its client; if none does, the slot is one of the few that serve only health checks; `None` if those are taken too.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let mut open = self.lock();
        let network = open.make_room(address, &self.settings)?;
        let connection = Arc::new(Connection::new(network, Arc::clone(&self.settings)));
        let id = open.next_id;
        open.next_id += 1;
        open.connections.insert(id, Arc::clone(&connection));
        Some(ConnectionSlot { connection, id, table: Arc::clone(self) })
    }

    /// Closes every connection, those with a request in progress after its response.
    pub(crate) fn close_all(&self) {
        for connection in self.lock().connections.values() {
            connection.close.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Makes room for one more connection from `address`, by evicting one if necessary. Returns the network that it counts
    /// against, `Some(None)` if it serves only health checks.
    fn make_room(&mut self, address: IpAddr, settings: &HttpSettings) -> Option<Option<IpAddr>> {
        let network = Some(client_network(address));
        let count = |network| self.connections.values().filter(|open| open.network == network).count();
        let (from_network, health_only) = (count(network), count(None));
        let ordinary = self.connections.len() - health_only;
        let has_room = if from_network >= settings.connections_from(address) {
            self.evict(|candidate| candidate == network)
        } else {
            ordinary < settings.max_connections || self.evict(|candidate| candidate.is_some())
        };
        if has_room {
            return Some(network);
        }
        let has_room = health_only < KEPT_CONNECTIONS || self.evict(|candidate| candidate.is_none());
        has_room.then_some(None)
    }

    /// Closes the first connection in [`Connection::eviction_order`] of the networks that `is_candidate` accepts. Returns
    /// false if none waits for its client.
    fn evict(&mut self, is_candidate: impl Fn(Option<IpAddr>) -> bool) -> bool {
        loop {
            let candidates = self.connections.iter().filter(|(_, open)| is_candidate(open.network));
            let waiting = candidates.filter_map(|(id, open)| Some((open.eviction_order()?, *id)));
            let Some((_, id)) = waiting.min() else { return false };
            // By now its client may have sent a request, or the rest of it.
            if self.connections[&id].evict() {
                self.connections.remove(&id).inspect(|evicted| evicted.close.notify_one());
                return true;
            }
        }
    }
}
