//! The rules of definitions, edits and answers: what is accepted, and the code and pointer of each violation.

mod addresses; // which addresses may be called
mod chats; // messages to chats
mod deliveries; // attempts, schedules, health
mod integrations; // definitions of integrations
mod operator_settings; // the mail server, the sender, the address of Google
mod parsing; // JSON: order, number text, duplicates, decimals, merge patches
mod payloads; // bodies, headers and signatures, rows
mod templates; // templates of messages
mod values; // ids, keys, times, slugs, similar names, descriptions

use forms::clock::Timestamp;
use forms::domain::form::admission::{AcceptingReason, Admission, IdempotencyRecord, Refusal, admit};
use forms::domain::form::definition::{Definition, FormPatch};
use forms::domain::form::{EditedForm, Form, FormStatus, RetiredIds, Version};
use forms::domain::json::{self, Value};
use forms::domain::submission::{self, BodyError};
use forms::domain::validation::limits::{Limits, MAX_RETIRED_IDS};
use forms::domain::validation::violation::{Rule, Violation};
use forms::domain::workspace::{ApiKey, Scope};
use forms::id::{FormId, WorkspaceId};

use crate::harness::definition_context;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn read(text: &str) -> Result<Definition, Vec<Violation>> {
    Definition::read(&json::parse(text).unwrap(), &Limits::default())
}

fn form(text: &str) -> (Form, Version) {
    let id = FormId::from_bytes(7u64.to_be_bytes());
    Form::create(id, WorkspaceId::from_bytes(9u64.to_be_bytes()), read(text).unwrap(), at(1_000))
}

fn pointers(violations: &[Violation]) -> Vec<(&str, &str)> {
    violations.iter().map(|found| (found.code.known().unwrap().name(), found.pointer.as_str())).collect()
}

#[test]
fn a_required_question_needs_an_answer_and_all_problems_are_reported() {
    let version = form(
        r#"{"title":"F","questions":[
            {"type":"email","title":"Mail","required":true},{"type":"rating","title":"Stars"},{"type":"short_text","title":"Name","required":true}]}"#,
    )
    .1;
    let Value::Object(answers) = json::parse(r#"{"q1":" ","q2":9,"mial":"x","a/b~":1}"#).unwrap() else {
        unreachable!()
    };
    let violations = version.check(&answers, &Limits::default(), at(0)).unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("required", "/answers/q1"),
            ("out_of_range", "/answers/q2"),
            ("required", "/answers/q3"),
            ("unknown_question", "/answers/mial"),
            ("unknown_question", "/answers/a~1b~0"),
        ]
    );
    assert_eq!(violations[0].message, "\"Mail\" needs an answer");
    let many = (0..1_001).map(|number| (format!("k{number}"), Value::Null)).collect::<Vec<_>>();
    assert_eq!(
        pointers(&version.check(&many, &Limits::default(), at(0)).unwrap_err()),
        [("too_many", "/answers")]
    );
}

#[test]
fn unknown_settings_are_reported_for_an_unknown_question_type_too() {
    let violations = read(
        r#"{"title":"F","questions":[{"typ":"text","titel":"T","options":["a"],"max_length":0},
            {"type":"txt","titel":"T","labels":1,"requird":true}]}"#,
    )
    .unwrap_err();
    assert_eq!(
        pointers(&violations),
        [
            ("missing_field", "/questions/0/type"),
            ("missing_field", "/questions/0/title"),
            ("unknown_field", "/questions/0/typ"),
            ("unknown_field", "/questions/0/titel"),
            ("unknown_question_type", "/questions/1/type"),
            ("missing_field", "/questions/1/title"),
            ("unknown_field", "/questions/1/titel"),
            ("unknown_field", "/questions/1/requird"),
        ]
    );
}

#[test]
fn a_definition_reports_every_problem_with_its_pointer() {
    let long = "x".repeat(301);
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("[]", &[("type_mismatch", "")]),
        ("{}", &[("missing_field", "/title")]),
        (r#"{"title":null}"#, &[("missing_field", "/title")]),
        (r#"{"title":5}"#, &[("type_mismatch", "/title")]),
        (r#"{"title":"  "}"#, &[("empty", "/title")]),
        (&format!(r#"{{"title":"{long}"}}"#), &[("too_long", "/title")]),
        (
            r#"{"title":"F","status":"draft","id":"x","version":1,"slogan":"x","setting":{}}"#,
            &[
                ("read_only_field", "/status"),
                ("read_only_field", "/id"),
                ("read_only_field", "/version"),
                ("unknown_field", "/slogan"),
                ("unknown_field", "/setting"),
            ],
        ),
        (r#"{"title":"F","questions":{}}"#, &[("type_mismatch", "/questions")]),
        (
            r#"{"title":"F","questions":[5,{},{"type":"ratting","title":"T"},{"type":"rating"},{"type":7,"title":"T"}]}"#,
            &[
                ("type_mismatch", "/questions/0"),
                ("missing_field", "/questions/1/type"),
                ("missing_field", "/questions/1/title"),
                ("unknown_question_type", "/questions/2/type"),
                ("missing_field", "/questions/3/title"),
                ("type_mismatch", "/questions/4/type"),
            ],
        ),
        (
            r#"{"title":"F","questions":[{"id":"a","type":"email","title":"T"},{"id":"a","titel":"U","type":"rating"},
                {"id":"A","type":"email","title":"T"},{"id":"any","type":"email","title":"T"},{"id":"é","type":"email","title":"T"}]}"#,
            &[
                ("missing_field", "/questions/1/title"),
                ("unknown_field", "/questions/1/titel"),
                ("invalid_question_id", "/questions/2/id"),
                ("invalid_question_id", "/questions/3/id"),
                ("invalid_question_id", "/questions/4/id"),
                ("duplicate_question_id", "/questions/1/id"),
            ],
        ),
        (
            r#"{"title":"F","questions":[
                {"type":"short_text","title":"T","min_length":5,"max_length":4,"pattern":"(","required":"yes","show_iff":{}},
                {"type":"rating","title":"T","max":11,"labels":{"1":"a","6":"b","2":3}},
                {"type":"rating","title":"T","max":1.5,"placeholder":"x"},
                {"type":"email","title":"T","allow_domains":["ok.example","nope",""],"deny_domains":[]},
                {"type":"short_text","title":"T","pattern":"a)|(b"},
                {"type":"short_text","title":"T","pattern":"(a{1000}){1000}"}]}"#,
            &[
                ("type_mismatch", "/questions/0/required"),
                ("invalid_range", "/questions/0/min_length"),
                ("invalid_pattern", "/questions/0/pattern"),
                ("unknown_field", "/questions/0/show_iff"),
                ("invalid_range", "/questions/1/max"),
                ("invalid_range", "/questions/1/labels/6"),
                ("type_mismatch", "/questions/1/labels/2"),
                ("invalid_range", "/questions/2/max"),
                ("unknown_field", "/questions/2/placeholder"),
                ("empty", "/questions/3/allow_domains/2"),
                ("empty", "/questions/3/deny_domains"),
                ("invalid_pattern", "/questions/4/pattern"),
                ("invalid_pattern", "/questions/5/pattern"),
            ],
        ),
    ];
    for (text, expected) in cases {
        let violations = read(text).unwrap_err();
        let mut found = pointers(&violations);
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
    let many = format!(r#"{{"title":"F","questions":[{}]}}"#, vec!["{}"; 501].join(","));
    assert_eq!(pointers(&read(&many).unwrap_err()), [("too_many", "/questions")]);
}

#[test]
fn questions_are_stored_in_canonical_form() {
    let (_, version) = form(
        r#"{"title":"F","questions":[
            {"placeholder":"p","max_length":5,"type":"short_text","required":true,"title":"T","min_length":1.0,"description":"d","pattern":"a+","pattern_message":"only a"},
            {"type":"email","title":"E","deny_domains":["x.example"]},
            {"type":"rating","title":"R","labels":{"5":"good","1":"bad"},"max":5,"description":null}]}"#,
    );
    assert_eq!(
        serde_json::to_string(&version.questions).unwrap(),
        concat!(
            r#"[{"id":"q1","type":"short_text","title":"T","required":true,"description":"d","min_length":1,"max_length":5,"pattern":"a+","pattern_message":"only a","placeholder":"p"},"#,
            r#"{"id":"q2","type":"email","title":"E","required":false,"deny_domains":["x.example"]},"#,
            r#"{"id":"q3","type":"rating","title":"R","required":false,"max":5,"labels":{"5":"good","1":"bad"}}]"#
        )
    );
}

fn ids(version: &Version) -> Vec<&str> {
    version.questions.iter().map(|question| question.id.as_deref().unwrap_or("-")).collect()
}

fn change(form: &Form, version: &Version, text: &str) -> Result<Option<EditedForm>, Refusal> {
    let change = FormPatch::read(&json::parse(text).unwrap(), &Limits::default()).unwrap();
    form.change(version, &RetiredIds::new(), &change, definition_context(at(2_000)))
}

fn changed(form: &Form, version: &Version, text: &str) -> (Form, Version) {
    match change(form, version, text).unwrap() {
        Some(edited) => (edited.form, edited.version.unwrap_or_else(|| version.clone())),
        None => panic!("{text} changes nothing"),
    }
}

#[test]
fn a_question_without_an_id_gets_the_next_free_one_and_ids_are_never_reused() {
    let (form, version) = form(
        r#"{"title":"F","questions":[{"type":"email","title":"a"},{"id":"q1","type":"email","title":"b"},
            {"type":"email","title":"c"},{"id":"mail","type":"email","title":"d"}]}"#,
    );
    assert_eq!(ids(&version), ["q2", "q1", "q3", "mail"]);
    let removed = r#"{"questions":[{"id":"q1","type":"email","title":"b"},{"type":"rating","title":"new"}]}"#;
    let Some(edited) = change(&form, &version, removed).unwrap() else {
        panic!("the removal of two questions changed nothing")
    };
    let (form, version, retired) = (edited.form, edited.version.unwrap(), edited.retired.unwrap());
    assert_eq!(ids(&version), ["q1", "q4"]);
    assert!(retired.iter().eq(["mail", "q2", "q3"]));
    assert_eq!((form.version, form.revision, version.number), (2, 2, 2));
    let back =
        r#"{"questions":[{"id":"q3","type":"email","title":"c"},{"id":"mail","type":"email","title":"d"}]}"#;
    let back = FormPatch::read(&json::parse(back).unwrap(), &Limits::default()).unwrap();
    let Err(Refusal::InvalidDefinition(violations)) =
        form.change(&version, &retired, &back, definition_context(at(2_000)))
    else {
        panic!("the ids were reused")
    };
    assert_eq!(
        pointers(&violations),
        [("retired_question_id", "/questions/0/id"), ("retired_question_id", "/questions/1/id")]
    );
}

#[test]
fn a_form_keeps_the_ids_of_at_most_5000_removed_questions() {
    let (form, version) = form(r#"{"title":"F","questions":[{"type":"email","title":"a"}]}"#);
    let other = r#"{"questions":[{"id":"other","type":"email","title":"a"}]}"#;
    let other = FormPatch::read(&json::parse(other).unwrap(), &Limits::default()).unwrap();
    let some = |count: usize| (0..count).map(|number| format!("x{number}")).collect::<RetiredIds>();
    let Some(edited) =
        form.change(&version, &some(MAX_RETIRED_IDS - 1), &other, definition_context(at(2_000))).unwrap()
    else {
        panic!("the removal of a question changed nothing")
    };
    assert_eq!(edited.retired.unwrap().len(), MAX_RETIRED_IDS);
    let full = some(MAX_RETIRED_IDS);
    let Err(Refusal::InvalidDefinition(violations)) =
        form.change(&version, &full, &other, definition_context(at(2_000)))
    else {
        panic!("a removal beyond the limit was accepted")
    };
    assert_eq!(pointers(&violations), [("too_many", "/questions")]);
    assert_eq!(violations[0].message, "5001 questions were removed from this form, 5000 are allowed");
    assert_eq!(violations[0].help.as_deref(), Some("create a new form"));
    let more = r#"{"questions":[{"id":"q1","type":"email","title":"a"},{"type":"email","title":"b"}]}"#;
    let more = FormPatch::read(&json::parse(more).unwrap(), &Limits::default()).unwrap();
    assert!(
        form.change(&version, &full, &more, definition_context(at(2_000))).is_ok(),
        "an added question was refused"
    );
}

#[test]
fn a_change_updates_only_the_fields_it_names() {
    let (draft, version) =
        form(r#"{"title":"F","description":"d","questions":[{"type":"email","title":"a"}]}"#);
    for same in [
        "{}",
        r#"{"title":"F"}"#,
        r#"{"status":"draft"}"#,
        r#"{"description":"d"}"#,
        r#"{"questions":[{"id":"q1","type":"email","title":"a","required":false}]}"#,
    ] {
        assert!(matches!(change(&draft, &version, same), Ok(None)), "{same}");
    }
    let (published, _) = changed(&draft, &version, r#"{"status":"published","description":null}"#);
    assert_eq!((published.status, published.revision, published.version), (FormStatus::Published, 2, 1));
    assert_eq!((published.published_at, published.updated_at), (Some(at(2_000)), at(2_000)));
    assert_eq!((published.created_at, published.description.as_deref()), (at(1_000), None));
    let (back, _) = changed(&published, &version, r#"{"status":"draft"}"#);
    assert_eq!((back.status, back.published_at), (FormStatus::Draft, Some(at(2_000))));
}

#[test]
fn a_form_without_questions_can_be_a_draft_but_not_published() {
    let (draft, version) = form(r#"{"title":"F"}"#);
    assert_eq!(change(&draft, &version, r#"{"status":"published"}"#).unwrap_err(), Refusal::NoQuestions);
    let both = r#"{"status":"published","questions":[{"type":"email","title":"a"}]}"#;
    let (published, version) = changed(&draft, &version, both);
    assert_eq!(change(&published, &version, r#"{"questions":[]}"#).unwrap_err(), Refusal::NoQuestions);
}

#[test]
fn a_change_reports_every_problem_with_its_pointer() {
    let body = r#"{"title":null,"status":"open","questions":[{"type":"x","title":"T"}],"created_at":"x","nope":1,"description":7}"#;
    let violations = FormPatch::read(&json::parse(body).unwrap(), &Limits::default()).unwrap_err();
    let mut found = pointers(&violations);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("read_only_field", "/created_at"),
            ("type_mismatch", "/description"),
            ("type_mismatch", "/status"),
            ("type_mismatch", "/title"),
            ("unknown_field", "/nope"),
            ("unknown_question_type", "/questions/0/type"),
        ]
    );
}

#[test]
fn a_submission_keeps_its_answers_byte_for_byte() {
    let body = "{ \"answers\" : { \"q1\" : 1.10, \"q2\":\"\\u00e9\" } }";
    let answers = submission::read(body, &Limits::default()).unwrap().answers;
    assert_eq!(answers.text(), "{ \"q1\" : 1.10, \"q2\":\"\\u00e9\" }");
    assert_eq!(answers.values()[1], ("q2".to_owned(), Value::String("é".to_owned())));
    let many: String = (0..20).map(|number| format!("\"k{number}\":\"\",")).collect();
    for (body, expected) in [
        ("[]", &[("type_mismatch", "")][..]),
        (
            &format!(r#"{{"answers":{{}},"metadata":{{{many}"k":5}}}}"#),
            &[("too_many", "/metadata"), ("type_mismatch", "/metadata/k")],
        ),
        ("{}", &[("missing_field", "/answers")]),
        (r#"{"answers":[]}"#, &[("type_mismatch", "/answers")]),
        (
            r#"{"answers":{},"metadatas":{},"a/b":1}"#,
            &[("unknown_field", "/metadatas"), ("unknown_field", "/a~1b")],
        ),
        (r#"{"answer":{}}"#, &[("unknown_field", "/answer"), ("missing_field", "/answers")]),
    ] {
        let violations = match submission::read(body, &Limits::default()) {
            Ok(sent) => sent.violations,
            Err(BodyError::Shape(violations)) => violations,
            Err(BodyError::Syntax(error)) => panic!("{body}: {error}"),
        };
        assert_eq!(pointers(&violations), expected, "{body}");
    }
    assert!(matches!(submission::read("{\"answers\":{}", &Limits::default()), Err(BodyError::Syntax(_))));
}

#[test]
fn admission_checks_idempotency_first_then_the_revision_then_the_state_of_the_form() {
    let (draft, version) = form(r#"{"title":"F","questions":[{"type":"email","title":"a"}]}"#);
    let (open, _) = changed(&draft, &version, r#"{"status":"published"}"#);
    let earlier = IdempotencyRecord { body: 5, result: 42, at: at(0), extra: Vec::new() };
    let day = 24 * 60 * 60 * 1_000;
    assert_eq!(admit(&open, 0, 2, None, at(0)), Ok(Admission::Store));
    assert_eq!(admit(&open, 0, 1, None, at(0)), Ok(Admission::Recheck));
    assert_eq!(
        admit(&draft, 0, 1, None, at(0)),
        Err(Refusal::NotAccepting { reason: AcceptingReason::Draft, message: None })
    );
    let replay = |body, millis| earlier.clone().replay(body, at(millis));
    assert_eq!(admit(&draft, 0, 9, replay(5, day - 1), at(day - 1)), Ok(Admission::Replay(earlier.clone())));
    assert_eq!(admit(&open, 0, 2, replay(6, day - 1), at(day - 1)), Err(Refusal::KeyReused));
    assert_eq!(admit(&open, 0, 2, replay(6, day), at(day)), Ok(Admission::Store));
}

#[test]
fn a_scope_includes_the_scopes_below_it() {
    use Scope::{Admin, Operator, Read, Submit, Write};
    let table: [(Scope, &[Scope]); 5] = [
        (Read, &[Read]),
        (Submit, &[Submit]),
        (Write, &[Read, Submit, Write]),
        (Admin, &[Read, Submit, Write, Admin]),
        (Operator, &[Operator]),
    ];
    for (scope, allowed) in table {
        let caller = ApiKey {
            id: "key_00000000".parse().unwrap(),
            workspace: WorkspaceId::from_bytes([0; 8]),
            name: String::new(),
            hash: [0; 32],
            scopes: vec![scope],
            forms: None,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            ends_at: None,
        };
        for needed in [Read, Submit, Write, Admin, Operator] {
            assert_eq!(caller.has_scope(needed), allowed.contains(&needed), "{scope} for {needed}");
        }
    }
}

#[test]
fn every_rule_has_a_unique_name_and_a_meaning() {
    let names: std::collections::HashSet<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for rule in &Rule::ALL {
        assert_eq!(serde_json::to_string(rule).unwrap(), format!("\"{}\"", rule.name()));
        assert!(rule.meaning().ends_with('.'), "{}", rule.name());
    }
}
