//! Counts requests by route, for the metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};

use crate::metrics::Metrics;

/// The route of a request that none matches.
const UNMATCHED: &str = "unmatched";

/// The route at which the metrics are: its series exist before its first response.
const METRICS: &str = "/metrics";

/// Counts the requests to some routes.
pub(crate) struct RequestObserver {
    metrics: Arc<Metrics>,
    routes: matchit::Router<String>,
}

impl RequestObserver {
    /// Counts requests to routes with these templates, such as `/api/v1/forms/{form}`.
    pub(crate) fn new(metrics: Arc<Metrics>, templates: impl Iterator<Item = String>) -> Self {
        let mut routes = matchit::Router::new();
        for template in templates {
            routes.insert(template.clone(), template).expect("the API's router has the same routes");
        }
        metrics.add_route(METRICS);
        Self { metrics, routes }
    }

    pub(crate) fn set_connections(&self, open: usize) {
        self.metrics.set_connections(open);
    }

    /// Counts a request. Its path only selects the route: what clients send is no label.
    pub(crate) fn count(&self, path: &str, method: &Method, status: StatusCode, took: Duration) {
        let route = self.routes.at(path).map_or(UNMATCHED, |found| found.value);
        self.metrics.count_request(route, method_label(method), status.as_str(), took);
    }
}

/// Returns the method; one name for all that clients may invent.
fn method_label(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PATCH => method.as_str(),
        Method::PUT | Method::DELETE | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}
