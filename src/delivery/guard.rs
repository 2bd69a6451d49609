//! Checks every address that is about to be dialled against the operator's rules.
//!
//! The addresses checked are the ones dialled: a name is resolved once for each connection, by this resolver. So a name that
//! resolves to another address later (DNS rebinding) is checked again.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::integration::address::{AddressPolicy, AddressRefusal};

#[async_trait]
pub trait Lookup: Send + Sync {
    /// Returns all addresses of `name`.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("{0}")]
    Refused(AddressRefusal),
    #[error("the host name cannot be resolved")]
    Failed(#[source] io::Error),
    #[error("the host name has no address")]
    NoAddress,
}

/// A resolver that refuses a name if any of its addresses is refused: which one is dialled is not for the name's owner to
/// choose.
pub(super) struct GuardedResolver {
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) lookup: Arc<dyn Lookup>,
    /// The port to which connections are made, or any common one if it is one of these.
    pub(super) port: u16,
    /// Whether connections use TLS.
    pub(super) is_encrypted: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, lookup) = (Arc::clone(&self.policy), Arc::clone(&self.lookup));
        let (port, is_encrypted) = (self.port, self.is_encrypted);
        Box::pin(async move {
            let addresses = lookup.lookup(name.as_str()).await.map_err(ResolveError::Failed)?;
            if addresses.is_empty() {
                return Err(ResolveError::NoAddress.into());
            }
            for address in &addresses {
                policy.check_endpoint(*address, port, is_encrypted).map_err(ResolveError::Refused)?;
            }
            // With port 0, the one in the URL is dialled.
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
