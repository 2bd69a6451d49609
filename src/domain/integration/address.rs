//! What integrations may reach: public addresses, the networks that the operator allows, and files of an embedded store.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks that may be called although they are not public, over plain HTTP too, and on any port.
    pub allowed: Vec<IpNet>,
    /// Whether no files may be written: several servers use one database, and each has a disk of its own.
    pub forbids_files: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressRefusal {
    pub message: String,
    pub help: Option<String>,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: u16, second: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix)
}

/// Networks that are not public (IANA IPv4 Special-Purpose Address Registry), multicast and reserved ones.
const PRIVATE_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// The only range of public IPv6 addresses.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Networks within it that are not public, or carry IPv4 addresses: Teredo and its neighbours, documentation, 6to4.
const PRIVATE_V6: [Ipv6Net; 4] =
    [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// Endings of names that resolve only within a network.
const LOCAL_NAMES: [&str; 3] = ["localhost", "local", "internal"];

const HELP: &str =
    "the operator of the server can allow a network with `serve --allow-net CIDR` or FORMS_ALLOW_NET";

impl AddressPolicy {
    /// Checks a URL when it is saved, and before it is called. Names are not resolved: with allowed networks, any name may
    /// lead there, and only [the address that is dialled](Self::check_endpoint) decides.
    pub fn check_url(&self, url: &Url) -> Result<(), AddressRefusal> {
        let is_encrypted = match url.scheme() {
            "https" => true,
            "http" => false,
            scheme => return refuse(format!("a URL must begin with https://, not {scheme}:"), None),
        };
        if !url.username().is_empty() || url.password().is_some() {
            let help = "send them in a header, or as `bearer_token`";
            return refuse("a URL must not contain a user name or password", Some(help));
        }
        if url.fragment().is_some() {
            return refuse(
                "a URL must not have a fragment: it is never sent",
                Some("remove `#` and the rest"),
            );
        }
        let port = url.port_or_known_default().unwrap_or(0);
        if port == 0 {
            return refuse("port 0 cannot be called", None);
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_endpoint(address.into(), port, is_encrypted),
            Some(Host::Ipv6(address)) => self.check_endpoint(address.into(), port, is_encrypted),
            Some(Host::Domain(name)) => self.check_name(name, port, is_encrypted),
            None => refuse("a URL must have a host", None),
        }
    }

    /// Checks an address and port that are about to be dialled: outside allowed networks, with TLS only, and on ports of the
    /// web and those that need no privilege.
    pub fn check_endpoint(
        &self,
        address: IpAddr,
        port: u16,
        is_encrypted: bool,
    ) -> Result<(), AddressRefusal> {
        let address = address.to_canonical();
        if self.allowed.iter().any(|network| network.contains(&address)) {
            return Ok(());
        }
        if !is_public(address) {
            return refuse(format!("{address} is not a public address"), Some(HELP));
        }
        check_public(port, is_encrypted)
    }

    fn check_name(&self, name: &str, port: u16, is_encrypted: bool) -> Result<(), AddressRefusal> {
        if !self.allowed.is_empty() {
            return Ok(());
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let (parent, last) = name.rsplit_once('.').unwrap_or(("", name));
        if parent.is_empty() || LOCAL_NAMES.contains(&last) {
            return refuse(format!("`{name}` is a name within a private network"), Some(HELP));
        }
        check_public(port, is_encrypted)
    }
}

/// Whether public addresses may be called at this port.
pub fn is_common_port(port: u16) -> bool {
    matches!(port, 80 | 443 | 1024..)
}

fn check_public(port: u16, is_encrypted: bool) -> Result<(), AddressRefusal> {
    if !is_encrypted {
        return refuse("plain http is only possible within allowed networks", Some("write https://"));
    }
    if !is_common_port(port) {
        return refuse(format!("port {port} is not allowed: use 443, 80, or one from 1024"), Some(HELP));
    }
    Ok(())
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !PRIVATE_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !PRIVATE_V6.iter().any(|network| network.contains(&address))
        }
    }
}

fn refuse(message: impl Into<String>, help: Option<&str>) -> Result<(), AddressRefusal> {
    Err(AddressRefusal { message: message.into(), help: help.map(str::to_owned) })
}
