//! Counts requests by route, for the metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};

use crate::metrics::Metrics;

/// Counts the requests to some routes.
pub(crate) struct RequestObserver {
    pub(crate) metrics: Arc<Metrics>,
    routes: matchit::Router<String>,
}

impl RequestObserver {
    /// Counts requests to routes with these templates, such as `/api/v1/forms/{form}`.
    pub(crate) fn new(metrics: Arc<Metrics>, templates: Vec<String>) -> Self {
        let mut routes = matchit::Router::new();
        for template in templates {
            // The series exist before the first response.
            metrics.request_duration.with_label_values(&[&template]);
            metrics.requests.with_label_values(&[&template, "GET", "200"]);
            routes.insert(template.clone(), template).expect("the API's router has the same routes");
        }
        Self { metrics, routes }
    }

    /// Counts a request. Its path only selects the route: what clients send is no label.
    pub(crate) fn count(&self, path: &str, method: &Method, status: StatusCode, took: Duration) {
        let route = self.routes.at(path).map_or("unmatched", |found| found.value);
        let method = match *method {
            Method::GET | Method::HEAD | Method::POST | Method::PATCH | Method::DELETE => method.as_str(),
            _ => "other",
        };
        self.metrics.requests.with_label_values(&[route, method, status.as_str()]).inc();
        self.metrics.request_duration.with_label_values(&[route]).observe(took.as_secs_f64());
    }
}
