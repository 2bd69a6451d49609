//! Verification: what the rows of several tables say about each other, and whether each can be read.

use serde::de::DeserializeOwned;

use super::Database;
use super::transaction::Tx;
use crate::domain::delivery::Delivery;
use crate::domain::delivery::attempt::Attempt;
use crate::domain::form::{Form, RetiredIds, StoredVersion};
use crate::domain::integration::event::Event;
use crate::domain::json;
use crate::domain::workspace::{ApiKey, Workspace};
use crate::id::FormId;
use crate::store::queue::StoredQueue;
use crate::store::{Damage, JournalCheck, Result};

/// A column with JSON: its table, what identifies a row, and whether a text can be read.
type Column = (&'static str, &'static str, &'static str, fn(&str) -> bool);

const ID: &str = "encode(id, 'hex')";
const FORM_ID: &str = "encode(form, 'hex') || '/' || encode(id, 'hex')";
const DELIVERY_ID: &str = "encode(event, 'hex') || '/' || encode(target, 'hex')";

const COLUMNS: [Column; 11] = [
    ("workspaces", ID, "data", is::<Workspace>),
    ("api_keys", "id", "data", is::<ApiKey>),
    ("forms", ID, "data", is::<Form>),
    ("forms", ID, "retired", is::<RetiredIds>),
    ("form_versions", "encode(form, 'hex') || '/' || number::TEXT", "data", is::<StoredVersion>),
    ("submissions", FORM_ID, "answers", is_object),
    ("submissions", FORM_ID, "metadata", is_object),
    ("queues", "encode(form, 'hex') || '/' || encode(integration, 'hex')", "data", is::<StoredQueue>),
    ("events", FORM_ID, "data", is::<Event>),
    ("deliveries", DELIVERY_ID, "data", is::<Delivery>),
    ("attempts", DELIVERY_ID, "data", is::<Attempt>),
];

fn is<T: DeserializeOwned>(text: &str) -> bool {
    serde_json::from_str::<T>(text).is_ok()
}

fn is_object(text: &str) -> bool {
    matches!(json::parse(text), Ok(json::Value::Object(_)))
}

/// Forms that are there with all their rows: not those that are being erased.
const IS_WHOLE: &str = "NOT EXISTS (SELECT 1 FROM purges WHERE purges.form = whole.form)";

impl Database {
    /// Reads all that this store keeps as JSON, and compares counters and references with what they are about.
    pub(super) async fn check(&self) -> Result<JournalCheck> {
        self.scan(|session| async move {
            let mut check = JournalCheck::default();
            for column in COLUMNS {
                check_column(&session, column, &mut check).await?;
            }
            check_counters(&session, &mut check).await?;
            check_deliveries(&session, &mut check).await?;
            Ok(check)
        })
        .await
    }
}

async fn check_column(session: &Tx, column: Column, check: &mut JournalCheck) -> Result<()> {
    let (table, key, name, can_read) = column;
    let sql = format!("SELECT {name}, {key} FROM {table} WHERE {name} IS NOT NULL");
    session
        .for_each(&sql, |row| {
            check.rows += 1;
            if !can_read(row.get(0)) {
                report(check, table, format!("`{name}` of row {} cannot be read", row.get::<_, &str>(1)));
            }
        })
        .await
}

async fn check_counters(session: &Tx, check: &mut JournalCheck) -> Result<()> {
    let sql = format!(
        "SELECT whole.form, coalesce(counted.number, 0), coalesce(stored.number, 0)
         FROM (SELECT id AS form FROM forms) AS whole
         LEFT JOIN (SELECT form, sum(responses)::BIGINT AS number FROM counters GROUP BY form) AS counted
            ON counted.form = whole.form
         LEFT JOIN (SELECT form, count(*) AS number FROM submissions WHERE deleted_at IS NULL GROUP BY form) AS stored
            ON stored.form = whole.form
         WHERE coalesce(counted.number, 0) <> coalesce(stored.number, 0) AND {IS_WHOLE}"
    );
    session
        .for_each(&sql, |row| {
            let (form, counted, stored): (FormId, i64, i64) = (row.get(0), row.get(1), row.get(2));
            report(check, "counters", format!("{form} has {stored} submissions, and {counted} are counted"));
        })
        .await
}

/// The event of a completed submission is made from the submission, whose id it has.
async fn check_deliveries(session: &Tx, check: &mut JournalCheck) -> Result<()> {
    let sql = format!(
        "SELECT whole.form, count(*) FROM deliveries AS whole WHERE whole.class <= 2 AND {IS_WHOLE}
            AND NOT EXISTS (SELECT 1 FROM events WHERE events.form = whole.form AND events.id = whole.event)
            AND NOT EXISTS (SELECT 1 FROM submissions
                WHERE submissions.form = whole.form AND submissions.id = whole.event)
         GROUP BY whole.form"
    );
    session
        .for_each(&sql, |row| {
            let (form, lost): (FormId, i64) = (row.get(0), row.get(1));
            report(check, "deliveries", format!("{lost} of {form} wait, and their events are missing"));
        })
        .await
}

fn report(check: &mut JournalCheck, table: &str, what: String) {
    check.damage.push(Damage { file: table.to_owned(), offset: 0, bytes: 0, what });
}
