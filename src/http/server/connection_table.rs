//! The open connections: their limits, in total and per network, and which one is evicted for the next.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::config::{HttpSettings, KEPT_CONNECTIONS};
use crate::http::server::client_address::client_network;
use crate::http::server::deadlines::ConnectionDeadlines;

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

/// An open connection, shared by the table and the connection's own task.
pub(crate) struct Connection {
    /// The network whose limit it counts against; `None` for one of the few connections that serve only health checks.
    network: Option<IpAddr>,
    pub(crate) deadlines: Arc<ConnectionDeadlines>,
    pub(crate) settings: Arc<HttpSettings>,
    /// Notified when the connection should close, after the request in progress.
    pub(crate) close: Notify,
}

impl Connection {
    /// Whether the connection serves only health checks, because all others are taken.
    pub(crate) fn is_health_only(&self) -> bool {
        self.network.is_none()
    }
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

    /// Returns a slot for a new connection from `address`. If all are taken, evicts the connection idle longest; if none is
    /// idle, the slot is one of the few that serve only health checks; `None` if those are taken too.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let mut open = self.lock();
        let network = open.make_room(address, &self.settings)?;
        let settings = Arc::clone(&self.settings);
        let deadlines = Arc::new(ConnectionDeadlines::new(Arc::clone(&settings)));
        let connection = Arc::new(Connection { network, deadlines, settings, close: Notify::new() });
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
        let has_room = if from_network >= share(address, settings) {
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

    /// Closes the connection idle longest in the networks that `is_candidate` accepts: one that sends no request or does not
    /// read its response. Returns false if none is idle.
    fn evict(&mut self, is_candidate: impl Fn(Option<IpAddr>) -> bool) -> bool {
        loop {
            let candidates = self.connections.iter().filter(|(_, open)| is_candidate(open.network));
            let idle = candidates.filter_map(|(id, open)| Some((open.deadlines.state().idle_since?, *id)));
            let Some((_, id)) = idle.min() else { return false };
            // By now it may have begun a request.
            if self.connections[&id].deadlines.evict() {
                self.connections.remove(&id).inspect(|evicted| evicted.close.notify_one());
                return true;
            }
        }
    }
}

/// Returns how many connections `address` may hold. Loopback and trusted proxies are exempt: a proxy connects for all
/// clients.
fn share(address: IpAddr, settings: &HttpSettings) -> usize {
    let is_proxy = address.to_canonical().is_loopback() || settings.is_trusted_proxy(address);
    if is_proxy && settings.max_connections_per_address.is_none() {
        usize::MAX
    } else {
        settings.connections_per_address()
    }
}

#[cfg(test)]
mod tests {
    use super::share;
    use crate::config::HttpSettings;

    #[test]
    fn an_address_has_a_quarter_and_a_proxy_all_unless_a_limit_is_set() {
        for (address, by_default) in [
            ("192.0.2.1", 2),
            ("2001:db8::1", 2),
            ("127.0.0.2", usize::MAX),
            ("::1", usize::MAX),
            ("::ffff:127.0.0.1", usize::MAX),
            ("10.1.2.3", usize::MAX),
            ("::ffff:10.1.2.3", usize::MAX),
            ("10.2.0.1", 2),
        ] {
            let settings = |max_connections_per_address| HttpSettings {
                max_connections: 8,
                max_connections_per_address,
                trusted_proxies: vec!["10.1.0.0/16".parse().unwrap()],
                ..HttpSettings::default()
            };
            let shares = [None, Some(3)].map(|limit| share(address.parse().unwrap(), &settings(limit)));
            assert_eq!(shares, [by_default, 3], "{address}");
        }
    }
}
