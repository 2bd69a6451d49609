//! Operations on deliveries.

use super::query::{members, parameters};
use super::{Client, DeliverySelection, Pages, ReceivedBody, Request, Result, join};
use crate::api::{Attempt, Code, DeliveryCount, DeliveryDetail, DeliveryTypeStats};

const DELIVERIES: &str = "/api/v1/deliveries";

impl Client {
    /// Lists deliveries, newest event first, `page` at a time.
    pub fn list_deliveries(
        &self,
        query: &DeliverySelection,
        page: usize,
    ) -> Pages<'_, ReceivedBody<DeliveryDetail>> {
        Pages::new(self, DELIVERIES.to_owned(), parameters(query, page), "deliveries")
    }

    pub async fn get_delivery(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>> {
        self.call(Request::get(delivery_path(id)?)).await
    }

    /// Lists the attempts of a delivery, oldest first.
    pub async fn list_attempts(&self, id: &str) -> Result<Vec<ReceivedBody<Attempt>>> {
        self.list(delivery_path(id)? + "/attempts", "attempts").await
    }

    /// Returns the exact body that a delivery sends.
    pub async fn get_delivery_event(&self, id: &str) -> Result<Vec<u8>> {
        Ok(self.send(&Request::get(delivery_path(id)? + "/event")).await?.body)
    }

    /// Makes a delivery due at once.
    pub async fn redeliver(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>> {
        self.call(Request::post(delivery_path(id)? + "/redeliver")).await
    }

    /// Cancels a delivery that waits.
    pub async fn cancel_delivery(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>> {
        self.call(Request::post(delivery_path(id)? + "/cancel")).await
    }

    /// Makes all deliveries of a selection due: by default those that failed for good.
    pub async fn redeliver_all(&self, selection: &DeliverySelection) -> Result<ReceivedBody<DeliveryCount>> {
        self.call(Request::post(format!("{DELIVERIES}:redeliver")).json(&members(selection))).await
    }

    /// Cancels all deliveries of a selection that wait. It has no `rate`.
    pub async fn cancel_deliveries(
        &self,
        selection: &DeliverySelection,
    ) -> Result<ReceivedBody<DeliveryCount>> {
        self.call(Request::post(format!("{DELIVERIES}:cancel")).json(&members(selection))).await
    }

    /// Returns statistics of the workspace's deliveries, by type of integration.
    pub async fn delivery_stats(&self) -> Result<Vec<ReceivedBody<DeliveryTypeStats>>> {
        self.list(format!("{DELIVERIES}/stats"), "types").await
    }
}

fn delivery_path(id: &str) -> Result<String> {
    // `stats` is the path of another operation.
    join(DELIVERIES, Code::DeliveryNotFound, "delivery", if id == "stats" { "" } else { id })
}
