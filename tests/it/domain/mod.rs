//! The rules of definitions, edits and answers: what is accepted, and the code and pointer of each violation.

mod addresses; // which addresses may be called
mod chats; // messages to chats
mod deliveries; // attempts, schedules, health
mod integrations; // definitions of integrations
mod languages; // the texts that respondents read
mod operator_settings; // the mail server, the sender, the address of Google
mod parsing; // JSON: order, number text, duplicates, decimals, merge patches
mod payloads; // bodies, headers and signatures, rows
mod summary; // counts of answers
mod templates; // templates of messages
mod values; // ids, keys, times, slugs, similar names, descriptions

use forms::clock::Timestamp;
use forms::domain::form::admission::{AcceptingReason, Admission, Refusal, admit};
use forms::domain::form::definition::{Definition, FormPatch};
use forms::domain::form::{EditedForm, Form, RetiredQuestions, Version};
use forms::domain::integration::Integration;
use forms::domain::integration::event::{Event, EventType, Subject};
use forms::domain::integration::plan::PlannedAttempt;
use forms::domain::json;
use forms::domain::submission::{Submission, SubmissionStatus};
use forms::domain::validation::limits::{Limits, MAX_RETIRED_IDS};
use forms::domain::validation::violation::Violation;
use forms::id::{DeliveryId, EventId, FormId, SubmissionId, WorkspaceId};

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

/// A form on the server with the first of its integrations.
fn integrated(definition: &str) -> (Form, Version, Integration) {
    let context = definition_context(at(0));
    let definition =
        Definition::read_on_server(&json::parse(definition).unwrap(), &Limits::default(), context);
    let id = FormId::from_bytes(7_u64.to_be_bytes());
    let (form, version) = Form::create(id, context.workspace, definition.unwrap(), at(0));
    let integration = form.integrations[0].clone();
    (form, version, integration)
}

/// The time of every event.
const EVENT_AT: i64 = 1_763_654_400_123;

fn submission(answers: &str) -> Submission {
    Submission {
        id: SubmissionId::first_of(EVENT_AT),
        form: FormId::from_bytes(7_u64.to_be_bytes()),
        form_version: 1,
        status: SubmissionStatus::Completed,
        answers: answers.into(),
        metadata: None,
        edited: None,
        deleted_at: None,
    }
}

fn event(event_type: EventType, subject: Subject) -> Event {
    let id = EventId::of_completed(SubmissionId::first_of(EVENT_AT));
    let form = FormId::from_bytes(7_u64.to_be_bytes());
    Event { id, event_type, at: at(EVENT_AT), sequence: 42, form, subject }
}

fn completed(answers: &str) -> Event {
    event(EventType::SubmissionCompleted, Subject::Submission(Box::new(submission(answers))))
}

/// The attempt of the delivery of [`completed`] to the first address.
fn attempt<'a>(
    integration: &'a Integration,
    number: u32,
    body: &'a [u8],
    now: Timestamp,
) -> PlannedAttempt<'a> {
    let event = EventId::of_completed(SubmissionId::first_of(EVENT_AT));
    let delivery = DeliveryId::of(event, integration.id.into());
    PlannedAttempt { event, delivery, number, redelivery: 0, to: integration.address_of(0), body, now }
}

fn pointers(violations: &[Violation]) -> Vec<(&str, &str)> {
    violations.iter().map(|found| (found.code.known().unwrap().name(), found.pointer.as_str())).collect()
}

#[test]
fn a_definition_reports_every_problem_with_its_pointer() {
    let long = "x".repeat(301);
    // The pointers of each code.
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("[]", &[("type_mismatch", "")]),
        ("{}", &[("missing_field", "/title")]),
        (r#"{"title":null}"#, &[("missing_field", "/title")]),
        (r#"{"title":5}"#, &[("type_mismatch", "/title")]),
        (r#"{"title":"  "}"#, &[("empty", "/title")]),
        (&format!(r#"{{"title":"{long}"}}"#), &[("too_long", "/title")]),
        (
            r#"{"title":"F","status":"draft","id":"x","version":1,"slogan":"x","setting":{}}"#,
            &[("read_only_field", "/status /id /version"), ("unknown_field", "/slogan /setting")],
        ),
        (r#"{"title":"F","questions":{}}"#, &[("type_mismatch", "/questions")]),
        (
            r#"{"title":"F","questions":[5,{},{"type":"ratting","title":"T"},{"type":"rating"},{"type":7,"title":"T"}]}"#,
            &[
                ("type_mismatch", "/questions/0 /questions/4/type"),
                ("missing_field", "/questions/1/type /questions/1/title /questions/3/title"),
                ("unknown_question_type", "/questions/2/type"),
            ],
        ),
        // The settings of an unknown type are not known, but names that no type has are reported.
        (
            r#"{"title":"F","questions":[{"typ":"text","titel":"T","options":["a"],"max_length":0},
                {"type":"txt","titel":"T","labels":1,"requird":true}]}"#,
            &[
                ("missing_field", "/questions/0/type /questions/0/title /questions/1/title"),
                (
                    "unknown_field",
                    "/questions/0/typ /questions/0/titel /questions/1/titel /questions/1/requird",
                ),
                ("unknown_question_type", "/questions/1/type"),
            ],
        ),
        (
            r#"{"title":"F","questions":[{"id":"a","type":"email","title":"T"},{"id":"a","titel":"U","type":"rating"},
                {"id":"A","type":"email","title":"T"},{"id":"any","type":"email","title":"T"},{"id":"é","type":"email","title":"T"}]}"#,
            &[
                ("missing_field", "/questions/1/title"),
                ("unknown_field", "/questions/1/titel"),
                ("invalid_question_id", "/questions/2/id /questions/3/id /questions/4/id"),
                ("duplicate_question_id", "/questions/1/id"),
            ],
        ),
        (
            r#"{"title":"F","questions":[{"type":"short_text","title":"T","required":"yes","show_iff":{}},
                {"type":"rating","title":"T","max":1.5,"placeholder":"x"}]}"#,
            &[
                ("type_mismatch", "/questions/0/required"),
                ("unknown_field", "/questions/0/show_iff /questions/1/placeholder"),
                ("invalid_range", "/questions/1/max"),
            ],
        ),
    ];
    for (text, expected) in cases {
        let violations = read(text).unwrap_err();
        let mut found = pointers(&violations);
        let expected =
            expected.iter().flat_map(|(code, pointers)| pointers.split(' ').map(move |at| (*code, at)));
        let mut expected: Vec<_> = expected.collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
    let many = format!(r#"{{"title":"F","questions":[{}]}}"#, vec!["{}"; 501].join(","));
    assert_eq!(pointers(&read(&many).unwrap_err()), [("too_many", "/questions")]);
}

fn ids(version: &Version) -> Vec<&str> {
    version.questions.iter().map(|question| question.id.as_deref().unwrap_or("-")).collect()
}

pub(crate) fn change(form: &Form, version: &Version, text: &str) -> Result<Option<EditedForm>, Refusal> {
    change_with(form, version, &RetiredQuestions::default(), text)
}

fn change_with(
    form: &Form,
    version: &Version,
    retired: &RetiredQuestions,
    text: &str,
) -> Result<Option<EditedForm>, Refusal> {
    let change = FormPatch::read(&json::parse(text).unwrap(), &Limits::default()).unwrap();
    form.change(version, retired, &change, definition_context(at(2_000)))
}

pub(crate) fn violations(refusal: Refusal) -> Vec<Violation> {
    match refusal {
        Refusal::InvalidDefinition(violations) => violations,
        other => panic!("{other:?}"),
    }
}

fn changed(form: &Form, version: &Version, text: &str) -> (Form, Version) {
    match change(form, version, text).unwrap() {
        Some(edited) => (edited.form, edited.version.unwrap_or_else(|| version.clone())),
        None => panic!("{text} changes nothing"),
    }
}

#[test]
fn a_generated_id_is_never_reused_and_a_chosen_one_only_with_its_type() {
    let (form, version) = form(
        r#"{"title":"F","questions":[{"type":"email","title":"a"},{"id":"q1","type":"email","title":"b"},
            {"type":"email","title":"c"},{"id":"mail","type":"email","title":"d"}]}"#,
    );
    assert_eq!(ids(&version), ["q2", "q1", "q3", "mail"]);
    let removed = r#"{"questions":[{"id":"q1","type":"email","title":"b"},{"type":"rating","title":"new"}]}"#;
    let edited = change(&form, &version, removed).unwrap().unwrap();
    let (form, version, retired) = (edited.form, edited.version.unwrap(), edited.retired.unwrap());
    assert_eq!(ids(&version), ["q1", "q4"]);
    assert!(retired.iter().eq(["mail", "q2", "q3"]));
    assert_eq!((form.version, form.revision, version.number), (2, 2, 2));
    let mut retired = RetiredQuestions::new(retired);
    retired.types = [("mail", "email"), ("q3", "url")].map(|(id, kind)| (id.into(), kind.into())).into();
    let mail = r#"{"questions":[{"id":"mail","type":"email","title":"d"}]}"#;
    let edited = change_with(&form, &version, &retired, mail).unwrap().unwrap();
    assert!(edited.retired.unwrap().iter().eq(["q1", "q2", "q3", "q4"]));
    let back =
        r#"{"questions":[{"id":"q3","type":"email","title":"c"},{"id":"q2","type":"email","title":"d"}]}"#;
    let refused = violations(change_with(&form, &version, &retired, back).unwrap_err());
    assert_eq!(
        pointers(&refused),
        ["/questions/0/id", "/questions/1/id"].map(|at| ("retired_question_id", at))
    );
}

#[test]
fn a_form_keeps_the_ids_of_at_most_5000_removed_questions() {
    let (form, version) = form(r#"{"title":"F","questions":[{"type":"email","title":"a"}]}"#);
    let change = |count: usize, text: &str| {
        let retired = RetiredQuestions::new((0..count).map(|number| format!("x{number}")).collect());
        change_with(&form, &version, &retired, text)
    };
    let other = r#"{"questions":[{"id":"other","type":"email","title":"a"}]}"#;
    let edited = change(MAX_RETIRED_IDS - 1, other).unwrap().unwrap();
    assert_eq!(edited.retired.unwrap().len(), MAX_RETIRED_IDS);
    let refused = violations(change(MAX_RETIRED_IDS, other).unwrap_err());
    assert_eq!(pointers(&refused), [("too_many", "/questions")]);
    assert_eq!(refused[0].message, "5001 questions were removed from this form, 5000 are allowed");
    assert_eq!(refused[0].help.as_deref(), Some("create a new form"));
    let more = r#"{"questions":[{"id":"q1","type":"email","title":"a"},{"type":"email","title":"b"}]}"#;
    assert!(change(MAX_RETIRED_IDS, more).is_ok(), "an added question was refused");
}

#[test]
fn a_form_without_questions_can_be_a_draft_but_not_published() {
    let none = r#"[{"type":"page","title":"P"},{"type":"statement","title":"S"}]"#;
    let publish = r#"{"status":"published"}"#;
    let (draft, version) = form(&format!(r#"{{"title":"F","questions":{none}}}"#));
    assert_eq!(change(&draft, &version, publish).unwrap_err(), Refusal::NoQuestions);
    let (hidden, version) = form(r#"{"title":"F","questions":[{"type":"hidden"}]}"#);
    assert!(change(&hidden, &version, publish).is_ok());
    let (draft, version) = form(r#"{"title":"F"}"#);
    assert_eq!(change(&draft, &version, publish).unwrap_err(), Refusal::NoQuestions);
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
fn a_submission_checked_against_an_old_revision_is_checked_again() {
    let (draft, version) = form(r#"{"title":"F","questions":[{"type":"email","title":"a"}]}"#);
    let (open, _) = changed(&draft, &version, r#"{"status":"published"}"#);
    assert_eq!(admit(&open, 0, 2, None, at(0)), Ok(Admission::Store));
    assert_eq!(admit(&open, 0, 1, None, at(0)), Ok(Admission::Recheck));
    let not_accepting = Refusal::NotAccepting { reason: AcceptingReason::Draft, message: None };
    assert_eq!(admit(&draft, 0, 1, None, at(0)), Err(not_accepting));
}
