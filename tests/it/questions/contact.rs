//! The types `url`, `phone` and `email`.

use super::*;

#[test]
fn url_accepts_absolute_web_addresses() {
    question(r#""type":"url""#).check(&[
        (r#"["https://example.com", "HTTP://Example.com:8080/a%20b?c=d#e", "http://localhost/"]"#, &[]),
        (r#"["https://bücher.example/straße"]"#, &[]),
        (&format!("[\"https://{}.example/{}\"]", "x".repeat(245), "é".repeat(10_000)), &[]),
        (r#"["http://[::1]/"]"#, &[]),
        (&format!("[\"https://{}.example/\"]", "x".repeat(246)), &["invalid_url"]),
        (&format!("[\"HTTPS://{}?\"]", "新".repeat(254)), &["invalid_url"]),
        (r#"["example.com", "//example.com", "/page", "https:example.com"]"#, &["invalid_url"]),
        (r#"["https:///example.com", "https://", "https:\\\\example.com"]"#, &["invalid_url"]),
        (r#"["https://exa mple.com", " https://example.com"]"#, &["invalid_url"]),
        (r#"["https://example.com/a b", "https://example.com:99999"]"#, &["invalid_url"]),
        (r#"["ftp://example.com", "javascript:alert(1)", "https://exa\tmple.com"]"#, &["invalid_url"]),
        (r#"["https://example.com\n"]"#, &["invalid_character"]),
        ("[5]", &["type_mismatch"]),
    ]);
    question(r#""type":"url","schemes":["https","MAILTO"]"#).check(&[
        (r#"["https://example.com", "mailto:ann@example.com"]"#, &[]),
        (&format!("[\"mailto:{}@example.com\"]", "x".repeat(300)), &[]),
        (r#"["http://example.com"]"#, &["scheme_not_allowed"]),
        (r#"["example.com"]"#, &["invalid_url"]),
    ]);
}

#[test]
fn phone_accepts_possible_numbers() {
    question(r#""type":"phone""#).check(&[
        (r#"["+49 30 901820", "+493090182-0", "+1 (202) 555-0173", "+44 20 7946 0958 ext. 12"]"#, &[]),
        (r#"["tel:+49-30-901820", "TEL:+1-202-555-0173;ext=12"]"#, &[]),
        (r#"["tel:555-0173;phone-context=+1-202"]"#, &[]),
        (r#"["tel:5550173;ext=3;phone-context=+1202;isub=1"]"#, &[]),
        // The length is right; the area code is not checked.
        (r#"["+1 211 555 0173"]"#, &[]),
        (r#"["tel:030901820", "tel:5550173;phone-context=example.com", "tel:"]"#, &["invalid_phone"]),
        (r#"["030 901820", "2025550173", "+1 202 555 017", "+1 202 555 01733"]"#, &["invalid_phone"]),
        (r#"["+999 1234567", "+", "call me"]"#, &["invalid_phone"]),
        (r#"["+49 30\n901820"]"#, &["invalid_character"]),
        ("[4930901820]", &["type_mismatch"]),
    ]);
    question(r#""type":"phone","default_country":"DE""#).check(&[
        (r#"["030 901820", "tel:030-901820", "tel:+44-20-7946-0958", "+44 20 7946 0958"]"#, &[]),
        (r#"["0", "030 9018201234567890"]"#, &["invalid_phone"]),
    ]);
}

#[test]
fn the_settings_of_addresses_and_phone_numbers_are_checked() {
    check_canonical(r#""type":"url","schemes":["https"]"#);
    check_canonical(r#""type":"phone","default_country":"DE""#);
    check_settings(&[
        (r#""type":"url","schemes":[]"#, &["empty/schemes"]),
        (r#""type":"url","schemes":["https:","9p",5]"#, &["type_mismatch/schemes/2"]),
        (
            r#""type":"url","schemes":["https","ftp:","9p"]"#,
            &["invalid_range/schemes/1", "invalid_range/schemes/2"],
        ),
        (r#""type":"email","allow_domains":["ok.example","nope.example",""]"#, &["empty/allow_domains/2"]),
        (r#""type":"email","deny_domains":[]"#, &["empty/deny_domains"]),
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
    let valid = "example.com|EXAMPLE.CO.UK|exam-ple.com|r3---sn.example.com|1a.2b|123.com|a.b.c.d.e.f.g|example.c1|\
        example.local|xn--bcher-kva.example|bücher.de|BÜCHER.de|straße.de|例え.テスト|日本語。jp|उदाहरण.परीक्षा|пример.рф|\
        مثال.إختبار";
    for domain in valid.split('|').chain([&*format!("{label}.com")]) {
        question(r#""type":"email""#).check(&[(&format!("[\"a@{domain}\"]"), &[])]);
        check_canonical(&format!(r#""type":"email","deny_domains":["{domain}"]"#));
    }
    let invalid = "example|exa_mple.com|_dmarc.example.com|example.com/path|ex!ample.com|exam~ple.com|exam+ple.com|\
        exam*ple.com|127.0.0.1|1.2.3|example.123|[127.0.0.1]|[IPv6:::1]|-example.com|example-.com|example.-com|\
        example.com-|.example.com|example.com.|example..com|example,com|example.com:25|example.com?x|example.com#x|\
        exam(c)ple.com|exam<ple.com|exam'ple.com|exam ple.com|exam@ple.com|xn--.com|xn--a.com|exam\u{ad}ple.com|\
        exam\u{200b}ple.com|exam\u{200d}ple.com|\u{301}a.com|אa.com";
    for domain in invalid.split('|').chain([&*format!("{label}x.com")]) {
        question(r#""type":"email""#).check(&[(&format!("[\"a@{domain}\"]"), &["invalid_email"])]);
        let settings = format!(r#""type":"email","allow_domains":["{domain}"]"#);
        check_settings(&[(&settings, &["invalid_range/allow_domains/0"])]);
    }
}

#[test]
fn email_local_parts_are_dot_strings() {
    let case = |local: &str| format!("[\"{local}@example.com\"]");
    for local in "a a.b a+b _ -a- 0 o'neil a/b a=b !#$%&'*+-/=?^_`{|}~".split(' ').chain([&*"x".repeat(64)]) {
        question(r#""type":"email""#).check(&[(&case(local), &[])]);
    }
    let invalid = r#".a|a.|a..b|a b|a,b|a;b|a:b|<a>|a@b|a(c)|[a]|ä|名前|\"a b\"|Ann <ann"#;
    for local in invalid.split('|').chain([&*"x".repeat(65)]) {
        question(r#""type":"email""#).check(&[(&case(local), &["invalid_email"])]);
    }
}

#[test]
fn email_has_a_longest_address_and_lists_of_domains() {
    let local = "a".repeat(64);
    let domain = format!("{}.{}.{}.example", "b".repeat(60), "c".repeat(60), "d".repeat(60));
    let longest = format!("[\"{local}@{}\"]", &domain[domain.len() - 189..]);
    let too_long = format!("[\"{local}@{domain}.{}\"]", "e".repeat(10));
    question(r#""type":"email""#).check(&[
        (&longest, &[]),
        (&too_long, &["invalid_email"]),
        (r#"["ann", " ann@example.com"]"#, &["invalid_email"]),
        (r#"["ann@example.com\n"]"#, &["invalid_character"]),
        ("[7]", &["type_mismatch"]),
    ]);
    question(r#""type":"email","allow_domains":["example.com"],"deny_domains":["spam.example.com"]"#).check(
        &[
            (r#"["a@EXAMPLE.com", "a@sub.example.com"]"#, &[]),
            (r#"["a@notexample.com", "a@x.spam.example.com"]"#, &["domain_not_allowed"]),
        ],
    );
    // The Unicode and the ASCII form of one name.
    question(r#""type":"email","deny_domains":["bücher.example","xn--strae-oqa.de"]"#).check(&[
        (r#"["a@xn--bcher-kva.example", "a@shop.BÜCHER.example"]"#, &["domain_not_allowed"]),
        (r#"["a@straße.de"]"#, &["domain_not_allowed"]),
    ]);
}
