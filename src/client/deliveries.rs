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

    /// Changes a delivery: `redeliver` makes it due at once, `cancel` cancels one that waits.
    pub async fn change_delivery(&self, id: &str, action: &str) -> Result<ReceivedBody<DeliveryDetail>> {
        self.call(Request::post(format!("{}/{action}", delivery_path(id)?))).await
    }

    /// Changes all deliveries of a selection: `redeliver` by default those that failed for good, `cancel` those that wait,
    /// which has no `rate`.
    pub async fn change_deliveries(
        &self,
        selection: &DeliverySelection,
        action: &str,
    ) -> Result<ReceivedBody<DeliveryCount>> {
        self.call(Request::post(format!("{DELIVERIES}:{action}")).json(&members(selection))).await
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
