//! A receiver of webhooks on the developer's machine: verifies signatures, reports each event, and forwards it to the program
//! under development.

mod forward;
mod signature;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use crate::clock::{Clock, Timestamp};

pub use forward::Forward;
pub use signature::{Signature, SigningSecret};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Maximum number of requests that are received and answered at the same time.
const MAX_REQUESTS: usize = 16;

/// Maximum time to receive a body. Senders give up after 15 seconds.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// How a receiver checks and answers requests.
pub struct Settings {
    /// Signatures by any of them are valid; if there are none, nothing is verified.
    pub secrets: Vec<SigningSecret>,
    /// The program that gets each event; without one, `status` is answered.
    pub forward: Option<Forward>,
    pub status: StatusCode,
    pub clock: Arc<dyn Clock>,
}

/// A request that was received, and its answer.
#[derive(Debug)]
pub struct ReceivedEvent {
    pub received_at: Timestamp,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub signature: Signature,
    /// The status of the answer.
    pub answered: StatusCode,
    /// Why the event could not be forwarded.
    pub forward_error: Option<String>,
}

impl ReceivedEvent {
    /// Returns the value of the header `name` if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

struct Receiver {
    settings: Settings,
    requests: Semaphore,
    events: mpsc::Sender<ReceivedEvent>,
}

/// Binds `address`. Returns the address in use, and the receiver: each event is sent to `events` with its answer, which
/// follows.
pub async fn bind(
    address: SocketAddr,
    settings: Settings,
    events: mpsc::Sender<ReceivedEvent>,
) -> std::io::Result<(SocketAddr, impl Future<Output = std::io::Result<()>>)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let receiver = Receiver { settings, requests: Semaphore::new(MAX_REQUESTS), events };
    let service = post(receive).layer(DefaultBodyLimit::max(MAX_BODY)).with_state(Arc::new(receiver));
    Ok((address, axum::serve(listener, service.into_make_service()).into_future()))
}

/// A refusal of a request that is not an event.
fn refuse(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    // Browsers name the page that sends; whoever sends webhooks does not.
    if request.headers().contains_key(header::ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, "a web page sent this: webhooks have no Origin header");
    }
    let Ok(_released_when_dropped) = receiver.requests.acquire().await else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the receiver stops");
    };
    let headers = request.headers().clone();
    let body = match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(rejection)) => return rejection.into_response(),
        Err(_elapsed) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
    };
    let settings = &receiver.settings;
    let received_at = settings.clock.now();
    let signature = signature::verify(&settings.secrets, &headers, &body, received_at);
    let (response, forward_error) = match (&signature, &settings.forward) {
        (Signature::Invalid(why), _) => (refuse(StatusCode::UNAUTHORIZED, why), None),
        (_, None) => (settings.status.into_response(), None),
        (_, Some(forward)) => match forward.send(&headers, &body).await {
            Ok(response) => (response, None),
            Err(why) => (refuse(StatusCode::BAD_GATEWAY, "the program does not answer"), Some(why)),
        },
    };
    let event =
        ReceivedEvent { received_at, headers, body, signature, answered: response.status(), forward_error };
    // Nobody reads the events once the command ends.
    let _ended = receiver.events.send(event).await;
    response
}
