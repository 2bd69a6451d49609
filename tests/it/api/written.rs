//! The JSON of submissions that the server writes without a serializer.

use forms::api::{HistoryList, SubmissionBody, SubmissionDetail, SubmissionList};
use forms::clock::Timestamp;
use forms::domain::submission::{self, EditInfo, ReplacedState, Submission, SubmissionStatus};
use forms::domain::validation::limits::Limits;
use forms::id::{FormId, SubmissionId};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn assert_round_trip<T: Serialize + DeserializeOwned>(text: &str) {
    let read: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn handwritten_json_matches_the_declared_types() {
    let plain = Submission {
        id: SubmissionId::from_bytes([7; 16]),
        form: FormId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7]),
        form_version: 3,
        status: SubmissionStatus::Completed,
        answers: r#"{ "q1": 1.50 }"#.into(),
        metadata: None,
        edited: None,
        deleted_at: None,
    };
    let full = Submission {
        metadata: Some(r#"{ "source": "web" }"#.into()),
        edited: Some(EditInfo { at: Timestamp::from_millis(5), count: 1 }),
        deleted_at: Some(Timestamp::from_millis(6)),
        ..plain.clone()
    };
    for submission in [&plain, &full] {
        assert_round_trip::<SubmissionBody>(&SubmissionBody::json(submission));
        assert_round_trip::<SubmissionDetail>(&SubmissionDetail::json(submission));
    }
    let two = vec![plain.clone(), full.clone()];
    for (submissions, cursor, total) in [(vec![], None, None), (two, Some("c"), Some(7))] {
        assert_round_trip::<SubmissionList>(&SubmissionList::json(&submissions, cursor, total));
    }
    for body in [r#"{"answers":{"q1" : 1.0}}"#, r#"{"answers":{},"metadata":{ "a":"b"}}"#] {
        let sent = submission::read(body, &Limits::default()).unwrap();
        assert_round_trip::<SubmissionBody>(&SubmissionBody::dry_run_json(
            plain.form,
            &sent,
            Timestamp::from_millis(8),
        ));
    }
    let replaced = [plain, full].map(|submission| ReplacedState {
        number: 0,
        answers: submission.answers,
        metadata: submission.metadata,
        replaced_at: Timestamp::from_millis(7),
    });
    for count in 0..=2 {
        assert_round_trip::<HistoryList>(&HistoryList::json(&replaced[..count]));
    }
}
