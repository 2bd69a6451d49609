//! A receiver of webhooks on the developer's machine: verifies signatures, reports each event, and forwards it to the program
//! under development.

mod forward;
mod signature;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::clock::{Clock, Timestamp};

pub use forward::{Forward, InvalidTarget};
pub use signature::{InvalidSecret, Signature, SigningSecret};

/// Maximum size of all bodies that are being received or reported, in bytes.
pub const MAX_BODY: usize = 1 << 20;

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
    /// The body's share of [`MAX_BODY`].
    _share: OwnedSemaphorePermit,
}

impl ReceivedEvent {
    /// Returns the value of the header `name` if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

struct Receiver {
    settings: Settings,
    memory: Arc<Semaphore>,
    events: mpsc::Sender<ReceivedEvent>,
}

/// A receiver that has its address, and runs once `run` is called.
pub struct BoundReceiver {
    listener: TcpListener,
    router: Router,
    pub address: SocketAddr,
}

/// Binds `address`. Each event is sent to `events` with its answer, which follows.
///
/// # Errors
/// If the address cannot be used.
pub async fn bind(
    address: SocketAddr,
    settings: Settings,
    events: mpsc::Sender<ReceivedEvent>,
) -> std::io::Result<BoundReceiver> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let receiver = Receiver { settings, memory: Arc::new(Semaphore::new(MAX_BODY)), events };
    let router = Router::new().fallback(receive).with_state(Arc::new(receiver));
    Ok(BoundReceiver { listener, router, address })
}

impl BoundReceiver {
    /// Receives events until dropped.
    ///
    /// # Errors
    /// If the system does not accept connections.
    pub async fn run(self) -> std::io::Result<()> {
        axum::serve(self.listener, self.router).await
    }
}

/// A refusal of a request that is not an event.
fn refuse(status: StatusCode, why: &'static str) -> Response {
    (status, format!("{why}\n")).into_response()
}

async fn receive(State(receiver): State<Arc<Receiver>>, request: Request) -> Response {
    if request.method() != Method::POST {
        let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent with POST");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    // Browsers name the page that sends; whoever sends webhooks does not.
    if request.headers().contains_key(header::ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, "a web page sent this: webhooks have no Origin header");
    }
    let (parts, body) = request.into_parts();
    let (body, share) = match receiver.read(&parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let settings = &receiver.settings;
    let received_at = settings.clock.now();
    let signature = signature::verify(&settings.secrets, &parts.headers, &body, received_at);
    let (response, forward_error) = match (&signature, &settings.forward) {
        (Signature::Invalid(why), _) => (refuse(StatusCode::UNAUTHORIZED, why), None),
        (_, None) => (settings.status.into_response(), None),
        (_, Some(forward)) => match forward.send(&parts.headers, &body).await {
            Ok(response) => (response, None),
            Err(why) => (refuse(StatusCode::BAD_GATEWAY, "the program does not answer"), Some(why)),
        },
    };
    let answered = response.status();
    let headers = parts.headers;
    let event =
        ReceivedEvent { received_at, headers, body, signature, answered, forward_error, _share: share };
    // Nobody reads the events once the command ends.
    let _ended = receiver.events.send(event).await;
    response
}

impl Receiver {
    /// Reads `body`, once there is memory for it.
    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Response> {
        let declared =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let length: usize = declared.unwrap_or(MAX_BODY);
        if length > MAX_BODY {
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body has more than 1 MiB"));
        }
        let share = u32::try_from(length).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.memory).acquire_many_owned(share).await;
        let Ok(memory) = memory else {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "the receiver stops"));
        };
        match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, length)).await {
            Ok(Ok(body)) => Ok((body, memory)),
            Ok(Err(_)) => {
                Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body broke off, or has more than 1 MiB"))
            }
            Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }
}
