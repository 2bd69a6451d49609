//! The types `url`, `phone` and `email`.

use super::{check_answers, check_canonical, check_settings};

#[test]
fn url_accepts_absolute_web_addresses() {
    check_answers(
        r#""type":"url""#,
        &[
            ("\"https://example.com\"", &[]),
            ("\"HTTP://Example.com:8080/a%20b?c=d#e\"", &[]),
            ("\"http://localhost/\"", &[]),
            ("\"https://bücher.example/straße\"", &[]),
            (&format!("\"https://{}.example/{}\"", "x".repeat(245), "é".repeat(10_000)), &[]),
            (&format!("\"https://{}.example/\"", "x".repeat(246)), &["invalid_url"]),
            (&format!("\"HTTPS://{}?\"", "新".repeat(254)), &["invalid_url"]),
            ("\"http://[::1]/\"", &[]),
            ("\"example.com\"", &["invalid_url"]),
            ("\"//example.com\"", &["invalid_url"]),
            ("\"/page\"", &["invalid_url"]),
            ("\"https:example.com\"", &["invalid_url"]),
            ("\"https:///example.com\"", &["invalid_url"]),
            ("\"https://\"", &["invalid_url"]),
            ("\"https:\\\\\\\\example.com\"", &["invalid_url"]),
            ("\"https://exa mple.com\"", &["invalid_url"]),
            ("\" https://example.com\"", &["invalid_url"]),
            ("\"https://example.com/a b\"", &["invalid_url"]),
            ("\"https://example.com:99999\"", &["invalid_url"]),
            ("\"ftp://example.com\"", &["invalid_url"]),
            ("\"javascript:alert(1)\"", &["invalid_url"]),
            ("\"https://example.com\\n\"", &["invalid_character"]),
            ("\"https://exa\\tmple.com\"", &["invalid_url"]),
            ("5", &["type_mismatch"]),
        ],
    );
    check_answers(
        r#""type":"url","schemes":["https","MAILTO"]"#,
        &[
            ("\"https://example.com\"", &[]),
            ("\"mailto:ann@example.com\"", &[]),
            (&format!("\"mailto:{}@example.com\"", "x".repeat(300)), &[]),
            ("\"http://example.com\"", &["scheme_not_allowed"]),
            ("\"example.com\"", &["invalid_url"]),
        ],
    );
}

#[test]
fn phone_accepts_possible_numbers() {
    check_answers(
        r#""type":"phone""#,
        &[
            ("\"+49 30 901820\"", &[]),
            ("\"+493090182-0\"", &[]),
            ("\"+1 (202) 555-0173\"", &[]),
            ("\"+44 20 7946 0958 ext. 12\"", &[]),
            ("\"tel:+49-30-901820\"", &[]),
            ("\"TEL:+1-202-555-0173;ext=12\"", &[]),
            ("\"tel:555-0173;phone-context=+1-202\"", &[]),
            ("\"tel:5550173;ext=3;phone-context=+1202;isub=1\"", &[]),
            ("\"tel:030901820\"", &["invalid_phone"]),
            ("\"tel:5550173;phone-context=example.com\"", &["invalid_phone"]),
            ("\"tel:\"", &["invalid_phone"]),
            // The length is right; the area code is not checked.
            ("\"+1 211 555 0173\"", &[]),
            ("\"030 901820\"", &["invalid_phone"]),
            ("\"2025550173\"", &["invalid_phone"]),
            ("\"+1 202 555 017\"", &["invalid_phone"]),
            ("\"+1 202 555 01733\"", &["invalid_phone"]),
            ("\"+999 1234567\"", &["invalid_phone"]),
            ("\"+\"", &["invalid_phone"]),
            ("\"call me\"", &["invalid_phone"]),
            ("\"+49 30\\n901820\"", &["invalid_character"]),
            ("4930901820", &["type_mismatch"]),
        ],
    );
    check_answers(
        r#""type":"phone","default_country":"DE""#,
        &[
            ("\"030 901820\"", &[]),
            ("\"tel:030-901820\"", &[]),
            ("\"tel:+44-20-7946-0958\"", &[]),
            ("\"+44 20 7946 0958\"", &[]),
            ("\"0\"", &["invalid_phone"]),
            ("\"030 9018201234567890\"", &["invalid_phone"]),
        ],
    );
}

#[test]
fn the_settings_of_urls_and_phone_numbers_are_checked() {
    check_canonical(r#""type":"url","schemes":["https"]"#);
    check_canonical(r#""type":"phone","default_country":"DE""#);
    check_settings(&[
        (r#""type":"url","schemes":[]"#, &["empty/schemes"]),
        (r#""type":"url","schemes":["https:","9p",5]"#, &["type_mismatch/schemes/2"]),
        (
            r#""type":"url","schemes":["https","ftp:","9p"]"#,
            &["invalid_range/schemes/1", "invalid_range/schemes/2"],
        ),
        (r#""type":"phone","default_country":"XX""#, &["invalid_range/default_country"]),
        (r#""type":"phone","default_country":"DEU""#, &["invalid_range/default_country"]),
        (r#""type":"phone","default_country":49"#, &["type_mismatch/default_country"]),
    ]);
}

/// Differences from other validators: Python's `email-validator` refuses reserved top-level domains, `--` as third and
/// fourth character and a digit at the end of the last label, and accepts non-ASCII letters before the `@`. HTML accepts
/// a single label, an all-numeric last label and dots anywhere before the `@`, and refuses internationalized names.
#[test]
fn email_domains_are_host_names() {
    let label = "x".repeat(63);
    for domain in [
        "example.com",
        "EXAMPLE.CO.UK",
        "exam-ple.com",
        "r3---sn.example.com",
        "1a.2b",
        "123.com",
        "a.b.c.d.e.f.g",
        "example.c1",
        "example.local",
        "xn--bcher-kva.example",
        "bücher.de",
        "BÜCHER.de",
        "straße.de",
        "例え.テスト",
        "日本語。jp",
        "उदाहरण.परीक्षा",
        "пример.рф",
        "مثال.إختبار",
        &format!("{label}.com"),
    ] {
        check_answers(r#""type":"email""#, &[(&format!("\"a@{domain}\""), &[])]);
        check_canonical(&format!(r#""type":"email","deny_domains":["{domain}"]"#));
    }
    for domain in [
        "example",
        "exa_mple.com",
        "_dmarc.example.com",
        "example.com/path",
        "ex!ample.com",
        "exam~ple.com",
        "exam+ple.com",
        "exam*ple.com",
        "127.0.0.1",
        "1.2.3",
        "example.123",
        "[127.0.0.1]",
        "[IPv6:::1]",
        "-example.com",
        "example-.com",
        "example.-com",
        "example.com-",
        ".example.com",
        "example.com.",
        "example..com",
        "example,com",
        "example.com:25",
        "example.com?x",
        "example.com#x",
        "exam(c)ple.com",
        "exam<ple.com",
        "exam'ple.com",
        "exam ple.com",
        "exam@ple.com",
        "xn--.com",
        "xn--a.com",
        "exam\u{ad}ple.com",
        "exam\u{200b}ple.com",
        "exam\u{200d}ple.com",
        "\u{301}a.com",
        "אa.com",
        &format!("{label}x.com"),
    ] {
        check_answers(r#""type":"email""#, &[(&format!("\"a@{domain}\""), &["invalid_email"])]);
        check_settings(&[(
            &format!(r#""type":"email","allow_domains":["{domain}"]"#),
            &["invalid_range/allow_domains/0"],
        )]);
    }
}

#[test]
fn email_local_parts_are_dot_strings() {
    let case = |local: &str| format!("\"{local}@example.com\"");
    for local in
        ["a", "a.b", "a+b", "_", "-a-", "0", "o'neil", "a/b", "a=b", "!#$%&'*+-/=?^_`{|}~", &"x".repeat(64)]
    {
        check_answers(r#""type":"email""#, &[(&case(local), &[])]);
    }
    for local in [
        ".a",
        "a.",
        "a..b",
        "a b",
        "a,b",
        "a;b",
        "a:b",
        "<a>",
        "a@b",
        "a(c)",
        "[a]",
        "ä",
        "名前",
        &"x".repeat(65),
    ] {
        check_answers(r#""type":"email""#, &[(&case(local), &["invalid_email"])]);
    }
}

#[test]
fn email_accepts_common_addresses() {
    let local = "a".repeat(64);
    let domain = format!("{}.{}.{}.example", "b".repeat(60), "c".repeat(60), "d".repeat(60));
    let longest = format!("\"{local}@{}\"", &domain[domain.len() - 189..]);
    let too_long = format!("\"{local}@{domain}.{}\"", "e".repeat(10));
    check_answers(
        r#""type":"email""#,
        &[
            ("\"ann@example.com\"", &[]),
            ("\"ann.b+tag@sub.example.co\"", &[]),
            ("\"ann@bücher.example\"", &[]),
            (&longest, &[]),
            (&too_long, &["invalid_email"]),
            ("\"ann\"", &["invalid_email"]),
            ("\"ann@localhost\"", &["invalid_email"]),
            ("\"ann@[127.0.0.1]\"", &["invalid_email"]),
            ("\"\\\"ann b\\\"@example.com\"", &["invalid_email"]),
            ("\"änn@example.com\"", &["invalid_email"]),
            ("\"Ann <ann@example.com>\"", &["invalid_email"]),
            ("\"ann@example..com\"", &["invalid_email"]),
            ("\".ann@example.com\"", &["invalid_email"]),
            ("\"ann(c)@example.com\"", &["invalid_email"]),
            ("\" ann@example.com\"", &["invalid_email"]),
            ("\"ann@exa mple.com\"", &["invalid_email"]),
            ("\"a@b@example.com\"", &["invalid_email"]),
            ("\"ann@example.com\\n\"", &["invalid_character"]),
            ("7", &["type_mismatch"]),
        ],
    );
    check_answers(
        r#""type":"email","allow_domains":["example.com"],"deny_domains":["spam.example.com"]"#,
        &[
            ("\"a@EXAMPLE.com\"", &[]),
            ("\"a@sub.example.com\"", &[]),
            ("\"a@notexample.com\"", &["domain_not_allowed"]),
            ("\"a@x.spam.example.com\"", &["domain_not_allowed"]),
        ],
    );
    // The Unicode and the ASCII form of one name.
    check_answers(
        r#""type":"email","deny_domains":["bücher.example","xn--strae-oqa.de"]"#,
        &[
            ("\"a@xn--bcher-kva.example\"", &["domain_not_allowed"]),
            ("\"a@shop.BÜCHER.example\"", &["domain_not_allowed"]),
            ("\"a@straße.de\"", &["domain_not_allowed"]),
        ],
    );
}
