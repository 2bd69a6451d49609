//! Which addresses integrations may call: public ones, and the networks that the operator allows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// The operator's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks that may be called although they are not public, over plain HTTP too, and on any port.
    pub allowed: Vec<IpNet>,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressRefusal {
    pub message: String,
    /// The remedy.
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

const HELP: &str = "the operator of the server can allow a network with `serve --allow-net CIDR`";

impl AddressPolicy {
    /// Checks a URL when it is saved, and before it is called. Names are not resolved: with allowed networks, any name may
    /// lead there, and only [the address that is dialled](Self::check_address) decides.
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

    /// Checks an address that is about to be dialled.
    pub fn check_address(&self, address: IpAddr, is_encrypted: bool) -> Result<(), AddressRefusal> {
        let address = address.to_canonical();
        if self.is_allowed(address) {
            return Ok(());
        }
        if !is_public(address) {
            return refuse(format!("{address} is not a public address"), Some(HELP));
        }
        if !is_encrypted {
            return refuse("plain http is only possible within allowed networks", Some("write https://"));
        }
        Ok(())
    }

    /// Checks an address with the `port` that is about to be dialled: outside allowed networks, only those of the web and
    /// those that need no privilege.
    pub fn check_endpoint(
        &self,
        address: IpAddr,
        port: u16,
        is_encrypted: bool,
    ) -> Result<(), AddressRefusal> {
        self.check_address(address, is_encrypted)?;
        if self.is_allowed(address.to_canonical()) { Ok(()) } else { check_port(port) }
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
        if !is_encrypted {
            return refuse("plain http is only possible within allowed networks", Some("write https://"));
        }
        check_port(port)
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(&address))
    }
}

fn check_port(port: u16) -> Result<(), AddressRefusal> {
    if matches!(port, 80 | 443 | 1024..) {
        return Ok(());
    }
    refuse(format!("port {port} is not allowed: use 443, 80, or one from 1024"), Some(HELP))
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

#[cfg(test)]
mod tests {
    use url::Url;

    use super::AddressPolicy;

    fn policy(allowed: &[&str]) -> AddressPolicy {
        AddressPolicy { allowed: allowed.iter().map(|network| network.parse().unwrap()).collect() }
    }

    fn is_accepted(policy: &AddressPolicy, url: &str) -> bool {
        policy.check_url(&Url::parse(url).unwrap()).is_ok()
    }

    /// The first and last address of each refused network, and spellings that URL parsers fold to one.
    const REFUSED: [&str; 70] = [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.255",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.1",
        "0x7f.1",
        "①②⑦.⓪.⓪.①",
        "１２７.０.０.１",
        "127.0.0.1.",
        "[::]",
        "[::1]",
        "[::7f00:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[2001::1]",
        "[2001:1ff:ffff::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[2002::1]",
        "[3fff::1]",
        "[3fff:fff::1]",
        "[4000::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fdff::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[1fff::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "printer.local",
        "printer.local.",
        "metadata.google.internal",
        "x.internal.",
        "intranet",
        "db.",
        "local",
        "internal",
    ];

    const PUBLIC: [&str; 22] = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.0.0.1",
        "128.0.0.1",
        "169.253.0.1",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.0.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "[2001:200::1]",
        "[2606:4700::1111]",
        "[2003::1]",
        "[::ffff:1.1.1.1]",
        "example.com",
        "example.com.",
        "localhost.example.com",
    ];

    #[test]
    fn only_public_addresses_may_be_called() {
        let policy = policy(&[]);
        for host in REFUSED {
            assert!(!is_accepted(&policy, &format!("https://{host}/hook")), "{host}");
        }
        for host in PUBLIC {
            assert!(is_accepted(&policy, &format!("https://{host}/hook")), "{host}");
        }
    }

    #[test]
    fn the_dialled_address_is_checked_like_one_in_a_url() {
        let policy = policy(&[]);
        for hosts in [&REFUSED[..], &PUBLIC] {
            for host in hosts {
                let Ok(address) = host.trim_matches(['[', ']']).parse() else { continue };
                let in_url = is_accepted(&policy, &format!("https://{host}/"));
                assert_eq!(policy.check_address(address, true).is_ok(), in_url, "{host}");
                assert!(policy.check_address(address, false).is_err(), "{host} over http");
            }
        }
    }

    #[test]
    fn urls_have_no_tricks() {
        let none = policy(&[]);
        for url in [
            "http://example.com/",
            "http:127.0.0.1",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://user@example.com/",
            "https://:password@example.com/",
            "https://example.com@127.0.0.1/",
            r"https://example.com\@127.0.0.1/",
            "https://example.com/#fragment",
            "https://example.com:0/",
            "https://example.com:22/",
            "https://example.com:25/",
            "https://example.com:1023/",
            "https://1.1.1.1:22/",
        ] {
            // The parser takes the backslash for a slash, so that one calls example.com.
            assert_eq!(is_accepted(&none, url), url.contains('\\'), "{url}");
        }
        for url in ["https://example.com:80/", "https://example.com:443/", "https://example.com:1024/?q=1"] {
            assert!(is_accepted(&none, url), "{url}");
        }
    }

    #[test]
    fn allowed_networks_may_be_called_over_http_and_on_any_port() {
        let allowing = policy(&["127.0.0.0/8", "fd00::/8"]);
        for url in [
            "http://127.0.0.1:25/",
            "https://127.9.9.9/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fd00::1]:9/",
            // Names are decided where they are dialled.
            "http://localhost:9000/",
            "http://receiver/",
            "https://example.com/",
        ] {
            assert!(is_accepted(&allowing, url), "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "https://[::1]/",
            "http://1.1.1.1/",
            "http://u@127.0.0.1/",
            "https://1.1.1.1:22/",
        ] {
            assert!(!is_accepted(&allowing, url), "{url}");
        }
        let address = |text: &str| text.parse().unwrap();
        for (text, port, is_encrypted, expected) in [
            ("127.0.0.1", 22, false, true),
            ("::ffff:127.0.0.1", 22, false, true),
            ("10.0.0.1", 443, true, false),
            ("1.1.1.1", 443, true, true),
            ("1.1.1.1", 22, true, false),
            ("1.1.1.1", 443, false, false),
        ] {
            let result = allowing.check_endpoint(address(text), port, is_encrypted);
            assert_eq!(result.is_ok(), expected, "{text}:{port}");
        }
    }
}
