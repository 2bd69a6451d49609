//! Operations on deliveries.

use serde::Deserialize;

use super::{Client, ClientError, DeliverySelection, Pages, ReceivedBody, Request, check_name, to_json};
use crate::api::{Attempt, Code, DeliveryCount, DeliveryDetail, DeliveryTypeStats};

const DELIVERIES: &str = "/api/v1/deliveries";

impl Client {
    /// Lists deliveries, newest event first, `page` at a time.
    pub fn list_deliveries(
        &self,
        query: &DeliverySelection,
        page: usize,
    ) -> Pages<'_, ReceivedBody<DeliveryDetail>> {
        let read = |client: &Self, body: &[u8]| Ok(client.decode::<DeliveryPage>(body)?.deliveries);
        Pages::new(self, &format!("{DELIVERIES}?{}", query.parameters(page)), read)
    }

    pub async fn get_delivery(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>, ClientError> {
        self.call(Request::get(delivery_path(id)?)).await
    }

    /// Lists the attempts of a delivery, oldest first.
    pub async fn list_attempts(&self, id: &str) -> Result<Vec<ReceivedBody<Attempt>>, ClientError> {
        Ok(self.call::<AttemptPage>(Request::get(delivery_path(id)? + "/attempts")).await?.attempts)
    }

    /// Returns the exact body that a delivery sends.
    pub async fn get_delivery_event(&self, id: &str) -> Result<Vec<u8>, ClientError> {
        Ok(self.send(&Request::get(delivery_path(id)? + "/event")).await?.body)
    }

    /// Makes a delivery due at once.
    pub async fn redeliver(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>, ClientError> {
        self.call(Request::post(delivery_path(id)? + "/redeliver")).await
    }

    /// Cancels a delivery that waits.
    pub async fn cancel_delivery(&self, id: &str) -> Result<ReceivedBody<DeliveryDetail>, ClientError> {
        self.call(Request::post(delivery_path(id)? + "/cancel")).await
    }

    /// Makes all deliveries of a selection due: by default those that failed for good.
    pub async fn redeliver_all(
        &self,
        selection: &DeliverySelection,
    ) -> Result<ReceivedBody<DeliveryCount>, ClientError> {
        self.call(Request::post(format!("{DELIVERIES}:redeliver")).body(&to_json(selection))).await
    }

    /// Cancels all deliveries of a selection that wait. It has no `rate`.
    pub async fn cancel_deliveries(
        &self,
        selection: &DeliverySelection,
    ) -> Result<ReceivedBody<DeliveryCount>, ClientError> {
        self.call(Request::post(format!("{DELIVERIES}:cancel")).body(&to_json(selection))).await
    }

    /// Returns statistics of the workspace's deliveries, by type of integration.
    pub async fn delivery_stats(&self) -> Result<Vec<ReceivedBody<DeliveryTypeStats>>, ClientError> {
        Ok(self.call::<StatsPage>(Request::get(format!("{DELIVERIES}/stats"))).await?.types)
    }
}

#[derive(Deserialize)]
struct DeliveryPage {
    deliveries: Vec<ReceivedBody<DeliveryDetail>>,
}

#[derive(Deserialize)]
struct AttemptPage {
    attempts: Vec<ReceivedBody<Attempt>>,
}

#[derive(Deserialize)]
struct StatsPage {
    types: Vec<ReceivedBody<DeliveryTypeStats>>,
}

fn delivery_path(id: &str) -> Result<String, ClientError> {
    // `stats` is the path of another operation.
    let name = if id == "stats" { "" } else { id };
    check_name(name, Code::DeliveryNotFound, "delivery")?;
    Ok(format!("{DELIVERIES}/{id}"))
}
