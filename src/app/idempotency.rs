//! Requests with idempotency keys whose responses are recorded as a whole.

use serde::Serialize;

use super::{ApiError, App, Result};
use crate::domain::form::admission::IdempotencyRecord;
use crate::store::{IdempotencyKey, StoreError};

/// The body of a response, and whether an earlier request was carried out instead of this one. Then it is without secrets.
pub type ReplayableBody = (String, bool);

impl App {
    /// Finds the record of an earlier request with this idempotency key.
    pub(super) async fn find_record(
        &self,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<Option<IdempotencyRecord>> {
        let Some(idempotency_key) = idempotency_key else { return Ok(None) };
        let record = self.store.find_record(idempotency_key, self.now()).await?;
        Ok(record.transpose()?)
    }

    /// Finds the body of the response to an earlier request with this idempotency key.
    pub(super) async fn find_response(
        &self,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<Option<String>> {
        let Some(record) = self.find_record(idempotency_key).await? else { return Ok(None) };
        let undecodable = |_invalid| StoreError::Undecodable("a recorded response".to_owned());
        Ok(Some(String::from_utf8(record.extra).map_err(undecodable)?))
    }

    /// Carries out `work` unless an earlier request with this idempotency key did, and records the response that it returns.
    /// Requests with the same key wait for each other. If the process ends in between, a repeated request does the work again;
    /// so this is only for work that may be done twice.
    pub(super) async fn run_once<T: Serialize>(
        &self,
        idempotency_key: Option<IdempotencyKey>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<ReplayableBody> {
        let work = async { Ok::<_, ApiError>(serde_json::to_string(&work.await?)?) };
        let Some(idempotency_key) = idempotency_key else { return Ok((work.await?, false)) };
        let _permit = self.idempotent_requests.acquire((idempotency_key.caller, idempotency_key.key)).await;
        if let Some(body) = self.find_response(Some(&idempotency_key)).await? {
            return Ok((body, true));
        }
        let body = work.await?;
        self.store.put_response(idempotency_key, body.clone(), self.now()).await?;
        Ok((body, false))
    }
}
