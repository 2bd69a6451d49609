//! Ids and times as values of the database.

use bytes::BytesMut;
use std::error::Error;

use serde::Deserialize;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::clock::Timestamp;
use crate::id::{DeliveryId, DeliveryTarget, EventId, FormId, IntegrationId, SubmissionId, WorkspaceId};
use crate::secret::KeyId;
use crate::store::json::from_json;

type BoxError = Box<dyn Error + Sync + Send>;

macro_rules! as_bytes {
    ($($id:ty)*) => { $(
        impl ToSql for $id {
            fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
                (&self.to_bytes()[..]).to_sql(kind, out)
            }

            accepts!(BYTEA);
            to_sql_checked!();
        }

        impl<'a> FromSql<'a> for $id {
            fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
                Ok(Self::from_bytes(raw.try_into()?))
            }

            accepts!(BYTEA);
        }
    )* };
}

as_bytes!(FormId WorkspaceId SubmissionId IntegrationId EventId DeliveryId DeliveryTarget);

impl ToSql for Timestamp {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.millis().to_sql(kind, out)
    }

    accepts!(INT8);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Timestamp {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        i64::from_sql(kind, raw).map(Self::from_millis)
    }

    accepts!(INT8);
}

impl ToSql for KeyId {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.to_string().to_sql(kind, out)
    }

    accepts!(TEXT);
    to_sql_checked!();
}

/// Decodes the JSON in a column, which is `what` it is called in an error.
pub(super) fn json<'a, T: Deserialize<'a>>(
    what: &str,
    row: &'a Row,
    column: usize,
) -> crate::store::Result<T> {
    from_json(what, row.get::<_, &str>(column).as_bytes())
}

/// Reads a number of 32 bits, which is a BIGINT because the database knows none without a sign.
pub(super) fn number(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX)
}
