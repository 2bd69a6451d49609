//! Addresses of pages and phone numbers.

use super::{holds, keeps, refuses};

#[test]
fn url_takes_absolute_addresses_of_the_web() {
    holds(
        r#""type":"url""#,
        &[
            ("\"https://example.com\"", &[]),
            ("\"HTTP://Example.com:8080/a%20b?c=d#e\"", &[]),
            ("\"http://localhost/\"", &[]),
            ("\"https://bücher.example/straße\"", &[]),
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
    holds(
        r#""type":"url","schemes":["https","MAILTO"]"#,
        &[
            ("\"https://example.com\"", &[]),
            ("\"mailto:ann@example.com\"", &[]),
            ("\"http://example.com\"", &["scheme_not_allowed"]),
            ("\"example.com\"", &["invalid_url"]),
        ],
    );
}

#[test]
fn phone_takes_possible_numbers() {
    holds(
        r#""type":"phone""#,
        &[
            ("\"+49 30 901820\"", &[]),
            ("\"+493090182-0\"", &[]),
            ("\"+1 (202) 555-0173\"", &[]),
            ("\"+44 20 7946 0958 ext. 12\"", &[]),
            // Of the right length, whatever the area.
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
    holds(
        r#""type":"phone","default_country":"DE""#,
        &[
            ("\"030 901820\"", &[]),
            ("\"+44 20 7946 0958\"", &[]),
            ("\"0\"", &["invalid_phone"]),
            ("\"030 9018201234567890\"", &["invalid_phone"]),
        ],
    );
}

#[test]
fn the_settings_of_addresses_and_numbers_are_checked() {
    keeps(r#""type":"url","schemes":["https"]"#);
    keeps(r#""type":"phone","default_country":"DE""#);
    refuses(&[
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

#[test]
fn email_takes_addresses_as_people_have_them() {
    let local = "a".repeat(64);
    let domain = format!("{}.{}.{}.example", "b".repeat(60), "c".repeat(60), "d".repeat(60));
    let longest = format!("\"{local}@{}\"", &domain[domain.len() - 189..]);
    let too_long = format!("\"{local}@{domain}.{}\"", "e".repeat(10));
    holds(
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
    holds(
        r#""type":"email","allow_domains":["example.com"],"deny_domains":["spam.example.com"]"#,
        &[
            ("\"a@EXAMPLE.com\"", &[]),
            ("\"a@sub.example.com\"", &[]),
            ("\"a@notexample.com\"", &["domain_not_allowed"]),
            ("\"a@x.spam.example.com\"", &["domain_not_allowed"]),
        ],
    );
}
