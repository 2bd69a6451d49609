//! Which addresses integrations may call.

use forms::domain::integration::address::AddressPolicy;
use url::Url;

fn policy(allowed: &[&str]) -> AddressPolicy {
    AddressPolicy {
        allowed: allowed.iter().map(|network| network.parse().unwrap()).collect(),
        ..AddressPolicy::default()
    }
}

fn is_accepted(policy: &AddressPolicy, url: &str) -> bool {
    policy.check_url(&Url::parse(url).unwrap()).is_ok()
}

/// The first and last address of each refused network, and spellings that URL parsers fold to one.
const REFUSED: &str = "\
    0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 \
    169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.1 192.88.99.1 \
    192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.0 \
    239.255.255.255 240.0.0.0 255.255.255.255 0x7f000001 2130706433 017700000001 127.1 0x7f.1 ①②⑦.⓪.⓪.① \
    １２７.０.０.１ 127.0.0.1. [::] [::1] [::7f00:1] [::ffff:127.0.0.1] [::ffff:10.0.0.1] [::ffff:0:127.0.0.1] \
    [64:ff9b::7f00:1] [64:ff9b:1::1] [100::1] [2001::1] [2001:1ff:ffff::1] [2001:db8::1] [2002:7f00:1::] \
    [2002::1] [3fff::1] [3fff:fff::1] [4000::1] [5f00::1] [fc00::1] [fdff::1] [fe80::1] [fec0::1] \
    [ff02::1] [1fff::1] localhost LOCALHOST localhost. a.localhost printer.local printer.local. \
    metadata.google.internal x.internal. intranet db. local internal";

const PUBLIC: &str = "\
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.0.0.1 128.0.0.1 169.253.0.1 \
    172.15.255.255 172.32.0.0 192.0.1.0 192.167.0.1 198.17.0.1 198.20.0.1 223.255.255.255 [2001:200::1] \
    [2606:4700::1111] [2003::1] [::ffff:1.1.1.1] example.com example.com. localhost.example.com";

#[test]
fn only_public_addresses_may_be_called() {
    let policy = policy(&[]);
    for host in REFUSED.split(' ') {
        assert!(!is_accepted(&policy, &format!("https://{host}/hook")), "{host}");
    }
    for host in PUBLIC.split(' ') {
        assert!(is_accepted(&policy, &format!("https://{host}/hook")), "{host}");
    }
}

#[test]
fn the_dialled_address_is_checked_like_one_in_a_url() {
    let policy = policy(&[]);
    for host in REFUSED.split(' ').chain(PUBLIC.split(' ')) {
        let Ok(address) = host.trim_matches(['[', ']']).parse() else { continue };
        let in_url = is_accepted(&policy, &format!("https://{host}/"));
        assert_eq!(policy.check_endpoint(address, 443, true).is_ok(), in_url, "{host}");
        assert!(policy.check_endpoint(address, 443, false).is_err(), "{host} over http");
    }
}

#[test]
fn urls_have_no_tricks() {
    let none = policy(&[]);
    let urls = "http://example.com/ http:127.0.0.1 ftp://example.com/ file:///etc/passwd https://user@example.com/ \
        https://:password@example.com/ https://example.com@127.0.0.1/ https://example.com\\@127.0.0.1/ \
        https://example.com/#fragment";
    let ports = [0, 22, 25, 1023].map(|port| format!("https://example.com:{port}/"));
    for url in urls.split(' ').chain(ports.iter().map(String::as_str)).chain(["https://1.1.1.1:22/"]) {
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
    // Names are decided where they are dialled.
    let accepted = "http://127.0.0.1:25/ https://127.9.9.9/ http://[::ffff:127.0.0.1]/ http://[fd00::1]:9/ \
        http://localhost:9000/ http://receiver/ https://example.com/";
    let refused = "http://10.0.0.1/ https://[::1]/ http://1.1.1.1/ http://u@127.0.0.1/ https://1.1.1.1:22/";
    for (urls, expected) in [(accepted, true), (refused, false)] {
        for url in urls.split(' ') {
            assert_eq!(is_accepted(&allowing, url), expected, "{url}");
        }
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
