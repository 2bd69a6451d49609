//! Definitions of integrations: members, names, secrets, addresses and references.

use forms::domain::integration::address::AddressPolicy;
use forms::domain::integration::definition::{DefinitionContext, IntegrationLists};
use forms::domain::integration::settings::PreviousSecret;
use forms::domain::integration::settings::signing_secret::MAX_LIVE_SECRETS;
use forms::domain::json::Value;
use forms::secret::Secret;
use forms::vault::{SecretContext, Vault};

use super::*;
use crate::harness::VAULT;

const QUESTIONS: &str = r#"[{"type":"rating","title":"Score"},{"type":"email","title":"Mail"}]"#;

/// 24 bytes, the fewest that are allowed.
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

const OTHER_SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn questions() -> Vec<forms::domain::question::Question> {
    let text = format!(r#"{{"title":"F","questions":{QUESTIONS}}}"#);
    Definition::read(&json::parse(&text).unwrap(), &Limits::default()).unwrap().questions
}

fn create(text: &str, others: &[Integration]) -> Result<(Integration, Option<String>), Vec<Violation>> {
    let body = json::parse(text).unwrap();
    let made = Integration::create(&body, others, &questions(), definition_context(at(1_000)));
    made.map(|(made, secret)| (made, secret.map(|secret| secret.secret.reveal().clone())))
}

fn webhook(members: &str) -> String {
    format!(r#"{{"type":"webhook","url":"https://example.com",{members}}}"#)
}

fn update(integration: &Integration, patch: &str) -> Result<(Integration, Option<String>), Vec<Violation>> {
    let patch = json::parse(patch).unwrap();
    let updated = integration.update(&patch, &[], &questions(), definition_context(at(2_000)));
    updated.map(|(updated, secret)| (updated, secret.map(|secret| secret.secret.reveal().clone())))
}

fn shown(integration: &Integration) -> String {
    Value::Object(integration.members()).to_string()
}

fn previous(integration: &Integration) -> &[PreviousSecret] {
    integration.kind.settings.previous()
}

fn unseal(integration: &Integration, field: &str) -> Option<String> {
    let workspace = WorkspaceId::from_bytes(9_u64.to_be_bytes());
    let place = SecretContext { workspace, integration: integration.id, field };
    let sealed = &integration.kind.settings.secret(field)?.sealed;
    Some(VAULT.unseal(place, sealed).unwrap().reveal().clone())
}

fn lists(integrations: &Value) -> IntegrationLists<'_> {
    IntegrationLists { integrations: Some(integrations), notifications: None }
}

#[test]
fn what_earlier_versions_stored_is_read() {
    let webhook = format!(
        r#"{{"type":"webhook","url":"https://example.com/","secret":"{SECRET}","payload":"thin",
            "headers":{{"X-Plain":"text","X-Key":{{"value":"0123456789abcdef"}}}},"bearer_token":"0123456789abcde"}}"#
    );
    let made = create(&webhook, &[]).unwrap().0;
    let (rotated, _) = made.rotate_secret(3_600_000, definition_context(at(1_000))).unwrap();
    let mut stored = serde_json::to_value(&rotated).unwrap();
    let kind = stored["kind"].clone();
    let secret = |place: usize| kind["secrets"][place][1].clone();
    stored["kind"] = serde_json::json!({
        "type": "webhook", "url": "https://example.com/", "payload": "thin", "secret": secret(0),
        "previous": kind["previous"], "headers": [["X-Plain", {"text": "text"}], ["X-Key", {"secret": secret(1)}]],
        "bearer_token": secret(2),
    });
    assert_eq!(serde_json::from_value::<Integration>(stored.clone()).unwrap(), rotated);
    stored["kind"] = serde_json::json!({"type": "csv_file", "path": "a.csv", "delimiter": ";"});
    let file: Integration = serde_json::from_value(stored).unwrap();
    let shown = shown(&file);
    assert!(shown.ends_with(r#""path":"a.csv","delimiter":";","values":"labels"}"#), "{shown}");
}

#[test]
fn secrets_are_kept_replaced_and_removed() {
    let text = format!(
        r#"{{"type":"webhook","url":"https://example.com/","secret":"{SECRET}","bearer_token":{{"value":"token","env":"TOKEN"}},"headers":{{"X-Key":{{"value":"key"}}}}}}"#
    );
    let made = create(&text, &[]).unwrap().0;
    let open = |integration: &Integration| {
        let field = |name| unseal(integration, name);
        (field("secret").unwrap(), field("bearer_token"), field("headers/x-key"))
    };
    let stored = (SECRET.to_owned(), Some("token".to_owned()), Some("key".to_owned()));
    for patch in [
        r#"{"name":"other"}"#,
        r#"{"bearer_token":{"set":true},"secret":{"set":true}}"#,
        r#"{"bearer_token":{"env":"TOKEN"}}"#,
        r#"{"headers":{"X-Key":{"set":true}}}"#,
        r#"{"headers":{"X-Key":null,"x-key":{"set":true}}}"#,
        r#"{"url":"https://example.com/other"}"#,
    ] {
        assert_eq!(open(&update(&made, patch).unwrap().0), stored, "{patch}");
    }
    let removed = update(&made, r#"{"bearer_token":null,"headers":{"X-Key":null}}"#).unwrap().0;
    assert_eq!(open(&removed), (SECRET.to_owned(), None, None));
    let (renewed, generated) = update(&made, r#"{"secret":null}"#).unwrap();
    assert_eq!(open(&renewed).0, generated.unwrap());
    assert_ne!(open(&renewed).0, SECRET);
    let (replaced, generated) = update(&made, &format!(r#"{{"secret":"{OTHER_SECRET}"}}"#)).unwrap();
    assert_eq!((open(&replaced).0.as_str(), generated), (OTHER_SECRET, None));
    assert_eq!(replaced.updated_at, at(2_000));

    for (patch, pointer) in [
        (r#"{"bearer_token":{"env":"ELSEWHERE"}}"#, "/bearer_token"),
        (r#"{"headers":{"X-New":{"env":"TOKEN"}}}"#, "/headers/X-New"),
        (r#"{"headers":{"X-New":{"set":true}}}"#, "/headers/X-New"),
    ] {
        let violations = update(&made, patch).unwrap_err();
        assert_eq!(pointers(&violations), [("secret_required", pointer)], "{patch}");
        assert!(violations[0].help.is_some());
    }
}

#[test]
fn another_host_needs_every_secret_again() {
    let text = format!(
        r#"{{"type":"webhook","url":"https://example.com/","secret":"{SECRET}","bearer_token":"token","headers":{{"X-Key":{{"value":"key"}},"X-Plain":"text"}}}}"#
    );
    let made = create(&text, &[]).unwrap().0;
    let all = [
        ("secret_required", "/secret"),
        ("secret_required", "/headers/X-Key"),
        ("secret_required", "/bearer_token"),
    ];
    for url in ["https://example.org/", "https://example.com:8443/", "https://sub.example.com/"] {
        let violations = update(&made, &format!(r#"{{"url":"{url}"}}"#)).unwrap_err();
        assert_eq!(pointers(&violations), all, "{url}");
        let shown_again = shown(&made).replace("https://example.com/", url);
        let violations = update(&made, &shown_again).unwrap_err();
        assert_eq!(pointers(&violations), all, "{url}");
    }
    assert!(update(&made, r#"{"url":"https://EXAMPLE.com:443/x"}"#).is_ok());
    let sent = r#"{"url":"https://example.org/","secret":null,"bearer_token":null,"headers":{"X-Key":{"value":"key"}}}"#;
    let (moved, generated) = update(&made, sent).unwrap();
    assert!(generated.is_some() && unseal(&moved, "bearer_token").is_none());

    let list = json::parse(r#"[{"type":"webhook","url":"https://example.org/"}]"#).unwrap();
    let mut violations = Vec::new();
    let context = definition_context(at(2_000));
    Integration::replace_all(&[made], lists(&list), &questions(), context, &mut violations);
    // The header is no longer there, so nothing can leak through it.
    assert_eq!(
        pointers(&violations),
        [("secret_required", "/integrations/0/secret"), ("secret_required", "/integrations/0/bearer_token")]
    );
}

#[test]
fn a_rotated_secret_signs_until_its_grace_ends() {
    let text = format!(r#"{{"type":"webhook","url":"https://example.com/","secret":"{SECRET}"}}"#);
    let mut made = create(&text, &[]).unwrap().0;
    let hour = 3_600_000;
    for number in 1..=6 {
        let (rotated, secret) = made.rotate_secret(24 * hour, definition_context(at(number * hour))).unwrap();
        let previous = previous(&rotated);
        assert_eq!(unseal(&rotated, "secret").as_ref(), Some(secret.reveal()));
        assert_eq!(Some(&previous[0].secret), made.kind.settings.secret("secret"));
        assert_eq!(previous[0].valid_until, at((number + 24) * hour));
        let count = usize::try_from(number).unwrap().min(MAX_LIVE_SECRETS - 1);
        assert_eq!(previous.len(), count, "rotation {number}");
        made = rotated;
    }
    let (short, _) = made.rotate_secret(hour, definition_context(at(7 * hour))).unwrap();
    assert!(previous(&short).iter().all(|old| old.valid_until == at(8 * hour)), "a longer grace remains");
    let (rotated, _) = made.rotate_secret(0, definition_context(at(7 * hour))).unwrap();
    assert_eq!(previous(&rotated), [], "replaced secrets remain");
    let vault = Vault::new(&Secret::new([9; 32]));
    let lost = DefinitionContext { vault: &vault, ..definition_context(at(7 * hour)) };
    let (rotated, _) = made.rotate_secret(hour, lost).unwrap();
    assert_eq!(previous(&rotated), [], "secrets of a lost master key remain");
    let set = update(&made, &format!(r#"{{"secret":"{SECRET}"}}"#)).unwrap().0;
    assert_eq!(previous(&set), [], "a secret that was set leaves others valid");
    assert!(made.rotate_secret(-1, definition_context(at(0))).is_err());
}

/// Bodies, each with the codes and pointers of its violations.
const INVALID: &[(&str, &[(&str, &str)])] = &[
    ("[]", &[("type_mismatch", "")]),
    ("{}", &[("missing_field", "/type")]),
    (r#"{"type":5}"#, &[("type_mismatch", "/type")]),
    (
        r#"{"type":"slak","url":"x","colour":"T"}"#,
        &[("unknown_integration_type", "/type"), ("unknown_field", "/colour")],
    ),
    (r#"{"type":"webhook"}"#, &[("missing_field", "/url")]),
    (r#"{"type":"webhook","url":"nonsense"}"#, &[("invalid_url", "/url")]),
    (r#"{"type":"webhook","url":"ftp://example.com"}"#, &[("invalid_url", "/url")]),
    (r#"{"type":"webhook","url":"https://exa mple.com"}"#, &[("invalid_url", "/url")]),
    (r#"{"type":"webhook","url":"http://example.com"}"#, &[("address_not_allowed", "/url")]),
    (r#"{"type":"webhook","url":"https://localhost"}"#, &[("address_not_allowed", "/url")]),
    (r#"{"type":"webhook","url":"https://127.1"}"#, &[("address_not_allowed", "/url")]),
    (r#"{"type":"csv_file","path":"../a.csv"}"#, &[("invalid_range", "/path")]),
    (r#"{"type":"csv_file","path":"a.csv","delimiter":"x"}"#, &[("not_an_option", "/delimiter")]),
    (
        r#"{"type":"csv_file","path":"a.csv","events":["submission.updated"],"url":"https://example.com"}"#,
        &[("not_an_option", "/events/0"), ("unknown_field", "/url")],
    ),
];

/// Members of webhooks, each with the codes and pointers of its violations.
const INVALID_MEMBERS: &[(&str, &[(&str, &str)])] = &[
    (
        r#""path":"a.csv","id":"int_1","health":{}"#,
        &[("unknown_field", "/path"), ("read_only_field", "/id"), ("read_only_field", "/health")],
    ),
    (r#""name":"a__b""#, &[("invalid_slug", "/name")]),
    (r#""name":"int_000000000000""#, &[("invalid_slug", "/name")]),
    (r#""events":[]"#, &[("empty", "/events")]),
    (
        r#""events":["integration.test","form.deleted","form.deleted",5]"#,
        &[("not_an_option", "/events/0"), ("duplicate_option", "/events/2"), ("type_mismatch", "/events/3")],
    ),
    (r#""when":{"q1":9,"q7":1}"#, &[("impossible_condition", "/when/q1"), ("unknown_reference", "/when/q7")]),
    (r#""when":{"q1":5},"events":["form.published"]"#, &[("invalid_range", "/when")]),
    (
        r#""fields":{"only":["q1","q1","q9"]}"#,
        &[("duplicate_option", "/fields/only/1"), ("unknown_reference", "/fields/only/2")],
    ),
    (r#""fields":{"only":["q1"],"except":["q2"]}"#, &[("invalid_range", "/fields/except")]),
    (r#""fields":{}"#, &[("missing_field", "/fields/only")]),
    (
        r#""retry":["0s","x",5]"#,
        &[("invalid_range", "/retry/0"), ("invalid_range", "/retry/1"), ("invalid_range", "/retry/2")],
    ),
    (r#""retry":["4d","4d"]"#, &[("invalid_range", "/retry")]),
    (r#""secret":"short""#, &[("invalid_range", "/secret")]),
    (r#""secret":"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==""#, &[("invalid_range", "/secret")]),
    (r#""secret":5"#, &[("type_mismatch", "/secret")]),
    (
        r#""bearer_token":{"value":" ","colour":"red"}"#,
        &[("unknown_field", "/bearer_token/colour"), ("empty", "/bearer_token/value")],
    ),
    (r#""bearer_token":{}"#, &[("missing_field", "/bearer_token/value")]),
    (r#""bearer_token":{"value":"x","env":"A-B"}"#, &[("invalid_range", "/bearer_token/env")]),
    (r#""bearer_token":"x","headers":{"Authorization":"y"}"#, &[("invalid_range", "/bearer_token")]),
    (
        r#""headers":{"a b":"x","Host":"x","Content-Type":"x","WEBHOOK-ID":"x","X-A":"x\r\nX-B: y","x-c":"x","X-C":"y"}"#,
        &[
            ("invalid_range", "/headers/a b"),
            ("read_only_field", "/headers/Host"),
            ("read_only_field", "/headers/Content-Type"),
            ("read_only_field", "/headers/WEBHOOK-ID"),
            ("invalid_character", "/headers/X-A"),
            ("duplicate_name", "/headers/X-C"),
        ],
    ),
];

#[test]
fn every_violation_is_reported_at_its_place() {
    for (text, expected) in INVALID {
        let violations = create(text, &[]).expect_err(text);
        assert_eq!(pointers(&violations), *expected, "{text}");
    }
    for (members, expected) in INVALID_MEMBERS {
        let violations = create(&webhook(members), &[]).expect_err(members);
        assert_eq!(pointers(&violations), *expected, "{members}");
    }
    let many: Vec<_> = (0..21).map(|number| format!(r#""X-{number}":"a""#)).collect();
    let text = webhook(&format!(r#""headers":{{{}}}"#, many.join(",")));
    assert_eq!(pointers(&create(&text, &[]).unwrap_err()), [("too_many", "/headers")]);
}

#[test]
fn the_path_of_a_csv_file_stays_below_the_folder_of_exports() {
    let create = |path: &str| {
        create(&serde_json::json!({"type": "csv_file", "path": path}).to_string(), &[]).map(drop)
    };
    for path in
        ["a.csv", "team/2026/answers.csv", "Rückmeldungen.csv", "a b.csv", "leads-2026.csv", "v1.2b.csv"]
    {
        assert_eq!(create(path), Ok(()), "{path}");
    }
    let long = format!("{}.csv", "é".repeat(120));
    let invalid = "/etc/a.csv|../a.csv|a/../b.csv|a/./b.csv|a//b.csv|..|.csv|a/.csv|~\\a.csv|c:a.csv|a.txt|a.csv/| a.csv|a /b.csv|a.CSV|a\n.csv";
    for path in invalid.split('|').chain([long.as_str()]) {
        assert_eq!(pointers(&create(path).unwrap_err()), [("invalid_range", "/path")], "{path}");
    }
}

#[test]
fn the_errors_of_a_spreadsheet_say_what_is_wrong_and_quote_no_key() {
    let key = |members: &str| format!(r#"{{"client_email":"canary@example.com","private_key":{members}}}"#);
    let pem = key(r#""-----BEGIN PRIVATE KEY-----\nQ0FOQVJZ\n-----END PRIVATE KEY-----\n""#);
    for (id, account, pointer, expected) in [
        ("https://docs.google.com/spreadsheets/d/1AbC/edit#gid=0", "", "/spreadsheet_id", "between `/d/`"),
        ("1AbC/edit", "", "/spreadsheet_id", "letters, digits"),
        ("My sheet", "", "/spreadsheet_id", "letters, digits"),
        ("é", "", "/spreadsheet_id", "letters, digits"),
        ("1AbC-dEf_9", "CANARY", "/service_account", "must be the content of the JSON file"),
        ("1", r#"["CANARY"]"#, "/service_account", "must be the content of the JSON file"),
        ("1", r#"{"type":"authorized_user","a":"CANARY"}"#, "/service_account", "a key of another type"),
        ("1", r#"{"installed":{"a":"CANARY"}}"#, "/service_account", "`client_email` is missing"),
        ("1", r#"{"client_email":"CANARY"}"#, "/service_account", "`client_email` is missing or invalid"),
        ("1", r#"{"client_email":"a@example.com"}"#, "/service_account", "`private_key` is missing"),
        ("1", &key(r#""CANARY""#), "/service_account", "not a valid RSA key"),
        ("1", &pem, "/service_account", "not a valid RSA key"),
    ] {
        let text =
            serde_json::json!({"type": "google_sheets", "spreadsheet_id": id, "service_account": account});
        let found = create(&text.to_string(), &[]).unwrap_err().remove(0);
        assert_eq!(found.pointer, pointer, "{text}");
        assert!(found.message.contains(expected), "{text}: {}", found.message);
        assert!(!serde_json::to_string(&found).unwrap().to_lowercase().contains("canary"), "{text}");
    }
}

#[test]
fn paths_are_unique_and_a_type_is_kept() {
    let file = create(r#"{"type":"csv_file","path":"a/b.csv"}"#, &[]).unwrap().0;
    let same = create(r#"{"type":"csv_file","path":"a/B.csv"}"#, &[file]).unwrap_err();
    assert_eq!(pointers(&same), [("duplicate_name", "/path")]);
    let other = create(&webhook(r#""enabled":true"#), &[]).unwrap().0;
    let retyped = update(&other, r#"{"type":"csv_file","path":"a.csv"}"#).unwrap_err();
    assert_eq!(retyped[0].pointer, "/type");
}

#[test]
fn a_stored_url_that_is_no_longer_allowed_is_not_in_the_way() {
    let allowing =
        AddressPolicy { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..AddressPolicy::default() };
    let context = DefinitionContext { policy: &allowing, ..definition_context(at(1_000)) };
    let body = json::parse(r#"{"type":"webhook","url":"http://127.0.0.1:9000/"}"#).unwrap();
    let made = Integration::create(&body, &[], &questions(), context).unwrap().0;
    assert!(!update(&made, r#"{"enabled":false}"#).unwrap().0.enabled);
    let violations = update(&made, r#"{"url":"http://127.0.0.1:9000/x"}"#).unwrap_err();
    assert_eq!(pointers(&violations), [("address_not_allowed", "/url")]);
}

#[test]
fn the_cost_of_a_condition_is_limited() {
    let when = |condition: &str| create(&webhook(&format!(r#""when":{condition}"#)), &[]);
    let values = vec!["5"; 6_000].join(",");
    let violations = when(&format!(r#"{{"q1":[{values}]}}"#)).unwrap_err();
    assert_eq!(pointers(&violations), [("too_long", "/when")]);
    let pattern = |length: usize| format!(r#"{{"q2":{{"matches":"{}"}}}}"#, "x".repeat(length));
    assert!(when(&pattern(200)).is_ok());
    assert_eq!(pointers(&when(&pattern(201)).unwrap_err()), [("invalid_pattern", "/when/q2/matches")]);
}

fn form_with(integrations: &str) -> Result<(Form, Version), Vec<Violation>> {
    let text = format!(r#"{{"title":"F","questions":{QUESTIONS},"integrations":{integrations}}}"#);
    let context = definition_context(at(1_000));
    let definition = Definition::read_on_server(&json::parse(&text).unwrap(), &Limits::default(), context)?;
    let id = FormId::from_bytes(7_u64.to_be_bytes());
    Ok(Form::create(id, context.workspace, definition, at(1_000)))
}

/// Changes a form, and returns the violations.
fn change((form, version): &(Form, Version), patch: &str) -> Result<Option<EditedForm>, Vec<Violation>> {
    super::change(form, version, patch).map_err(violations)
}

#[test]
fn violations_of_integrations_come_with_all_others() {
    let text = r#"{"title":"","questions":[{"type":"rating","title":"A"}],"integrations":[{"type":"webhook","url":"https://10.0.0.1"},{"type":"webhook","url":"https://example.com","name":"webhook"},{"type":"csv_file","path":"a.csv"},{"type":"csv_file","path":"a.csv","when":{"q2":1}}]}"#;
    let body = json::parse(text).unwrap();
    let context = definition_context(at(1_000));
    let violations = Definition::read_on_server(&body, &Limits::default(), context).unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("empty", "/title"),
            ("address_not_allowed", "/integrations/0/url"),
            ("unknown_reference", "/integrations/3/when/q2"),
            ("duplicate_name", "/integrations/3/path"),
        ]
    );
    // A client knows neither the addresses that are allowed nor the secrets that are stored.
    let file = r#"{"title":"F","questions":[],"integrations":[{"type":"webhook","url":"http://localhost:9000","secret":{"env":"HOOK"}},{"type":"webhook","url":"https://example.com","name":"webhook-2"},{"type":"webhook","name":"webhook-2","url":"x"}]}"#;
    let violations = Definition::read(&json::parse(file).unwrap(), &Limits::default()).unwrap_err();
    assert_eq!(pointers(&violations), [("invalid_url", "/integrations/2/url")]);
    let many = vec![r#"{"type":"csv_file","path":"a.csv"}"#; 21].join(",");
    assert_eq!(pointers(&form_with(&format!("[{many}]")).unwrap_err()), [("too_many", "/integrations")]);
    assert_eq!(pointers(&form_with("5").unwrap_err()), [("type_mismatch", "/integrations")]);
}

#[test]
fn a_question_that_an_integration_refers_to_cannot_be_removed() {
    let form = form_with(
        r#"[{"type":"csv_file","path":"a.csv"},{"type":"webhook","name":"crm","url":"https://example.com","when":{"any":[{"q1":5},{"q2":{"answered":true}}]},"fields":{"except":["q2"]}}]"#,
    )
    .unwrap();
    let removed = r#"{"questions":[{"id":"q1","type":"rating","title":"Score"}]}"#;
    let violations = change(&form, removed).unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("unknown_reference", "/integrations/1/when/any/1/q2"),
            ("unknown_reference", "/integrations/1/fields/except/0")
        ]
    );
    let help = violations[0].help.as_deref().unwrap();
    assert_eq!(help, "change the integration `crm` first, or in the same request");
    let retitled = r#"{"questions":[{"id":"q1","type":"rating","title":"S"},{"id":"q2","type":"email","title":"M"},{"type":"url","title":"New"}]}"#;
    assert!(change(&form, retitled).unwrap().is_some());
    let both = r#"{"questions":[{"id":"q1","type":"rating","title":"Score"},{"type":"url","title":"New"}],"integrations":[{"type":"csv_file","path":"a.csv","when":{"q3":{"answered":true}}}]}"#;
    assert!(change(&form, both).unwrap().is_some());
}
