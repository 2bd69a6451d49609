//! The open connections: their limits, in total and per network, and which one is evicted for the next.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{HttpSettings, KEPT_CONNECTIONS};
use crate::http::server::client_address::client_network;
use crate::http::server::connection_state::Connection;

/// The open connections of one accept loop, oldest first.
pub(crate) struct ConnectionTable {
    settings: Arc<HttpSettings>,
    open: Mutex<Vec<Arc<Connection>>>,
}

/// A slot in the table, released when dropped.
pub(crate) struct ConnectionSlot {
    pub(crate) connection: Arc<Connection>,
    /// The address of the peer.
    pub(crate) address: IpAddr,
    table: Arc<ConnectionTable>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().retain(|open| !Arc::ptr_eq(open, &self.connection));
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
        let network = make_room(&mut open, address, &self.settings)?;
        let connection = Arc::new(Connection::new(network, Arc::clone(&self.settings)));
        open.push(Arc::clone(&connection));
        Some(ConnectionSlot { connection, address, table: Arc::clone(self) })
    }

    /// Closes every connection, those with a request in progress after its response.
    pub(crate) fn close_all(&self) {
        for connection in self.lock().iter() {
            connection.close.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for one more connection from `address`, by evicting one if necessary. Returns the network that it counts
/// against, `Some(None)` if it serves only health checks.
fn make_room(
    open: &mut Vec<Arc<Connection>>,
    address: IpAddr,
    settings: &HttpSettings,
) -> Option<Option<IpAddr>> {
    let network = Some(client_network(address));
    let count = |network| open.iter().filter(|connection| connection.network == network).count();
    let (from_network, health_only) = (count(network), count(None));
    let ordinary = open.len() - health_only;
    let has_room = if from_network >= settings.connections_from(address) {
        evict(open, |candidate| candidate == network)
    } else {
        ordinary < settings.max_connections || evict(open, |candidate| candidate.is_some())
    };
    if has_room {
        return Some(network);
    }
    let has_room = health_only < KEPT_CONNECTIONS || evict(open, |candidate| candidate.is_none());
    has_room.then_some(None)
}

/// Closes the first connection in [`Connection::eviction_order`] of the networks that `is_candidate` accepts. Returns
/// false if none waits for its client.
fn evict(open: &mut Vec<Arc<Connection>>, is_candidate: impl Fn(Option<IpAddr>) -> bool) -> bool {
    loop {
        let candidates = open.iter().enumerate().filter(|(_, connection)| is_candidate(connection.network));
        let waiting =
            candidates.filter_map(|(place, connection)| Some((connection.eviction_order()?, place)));
        let Some((_, place)) = waiting.min() else { return false };
        // By now its client may have sent a request, or the rest of it.
        if open[place].evict() {
            open.remove(place).close.notify_one();
            return true;
        }
    }
}
