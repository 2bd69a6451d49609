//! Settings of a server: derived values, and refused ones.

use forms::config::{Config, HttpSettings, Rate, TlsFiles};

#[test]
fn the_connection_limit_leaves_files_for_the_store() {
    let fitted = |files, max_connections| {
        let mut settings = HttpSettings { max_connections, ..HttpSettings::default() };
        let is_lowered = settings.fit_open_files(files);
        (settings.max_connections, is_lowered)
    };
    for (files, connections) in [(0, 1), (20, 1), (64, 16), (256, 112), (1_024, 880), (4_096, 3_952)] {
        assert_eq!(fitted(files, 100_000), (connections, true), "{files}");
        assert_eq!(fitted(files, connections), (connections, false), "{files}");
    }
}

#[test]
fn an_address_may_use_a_quarter_of_the_connections_by_default() {
    let share = |max_connections, max_connections_per_address| {
        HttpSettings { max_connections, max_connections_per_address, ..HttpSettings::default() }
            .connections_per_address()
    };
    assert_eq!([share(1_024, None), share(3, None), share(8, Some(5)), share(8, Some(50))], [256, 1, 5, 8]);
}

#[test]
fn a_proxy_may_use_all_connections_unless_a_limit_is_set() {
    for (address, by_default) in [
        ("192.0.2.1", 2),
        ("2001:db8::1", 2),
        ("127.0.0.2", 8),
        ("::1", 8),
        ("::ffff:127.0.0.1", 8),
        ("10.1.2.3", 8),
        ("::ffff:10.1.2.3", 8),
        ("10.2.0.1", 2),
    ] {
        let settings = |max_connections_per_address| HttpSettings {
            max_connections: 8,
            max_connections_per_address,
            trusted_proxies: vec!["10.1.0.0/16".parse().unwrap()],
            ..HttpSettings::default()
        };
        let share = |limit| settings(limit).connections_from(address.parse().unwrap());
        assert_eq!([share(None), share(Some(3))], [by_default, 3], "{address}");
    }
}

#[test]
fn a_rate_parses_its_own_text() {
    for text in ["10/min", "1/s", "4000000000/h"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in ["", "10", "0/min", "-1/min", "10/day", "min/10", "10/min "] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

#[test]
fn events_are_spaced_by_their_rate() {
    let offset = |rate: &str, number| rate.parse::<Rate>().unwrap().offset_millis(number);
    assert_eq!([0, 1, 3, 10].map(|number| offset("10/s", number)), [0, 100, 300, 1_000]);
    assert_eq!([1, 7].map(|number| offset("7/min", number)), [8_571, 60_000]);
    assert_eq!(offset("1/h", u64::MAX), i64::MAX);
}

#[test]
fn an_address_reachable_by_others_needs_tls_a_proxy_or_insecure_http() {
    let cases = [
        ("127.0.0.1:80", true),
        ("127.9.9.9:80", true),
        ("[::1]:80", true),
        ("[::ffff:127.0.0.1]:80", true),
        ("0.0.0.0:80", false),
        ("[::]:80", false),
        ("10.0.0.1:80", false),
    ];
    for (listen, safe) in cases {
        let config = Config { listen: listen.parse().unwrap(), ..Config::new("data") };
        assert_eq!(config.check().is_ok(), safe, "{listen}");
        let tls = Some(TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into() });
        assert_eq!(Config { tls, ..config.clone() }.check(), Ok(()), "{listen}");
        assert_eq!(Config { insecure_http: true, ..config.clone() }.check(), Ok(()), "{listen}");
        let http =
            HttpSettings { trusted_proxies: vec!["10.0.0.1/32".parse().unwrap()], ..HttpSettings::default() };
        assert_eq!(Config { http, ..config }.check(), Ok(()), "{listen}");
    }
}
