//! One connection: hyper speaks HTTP on it, and time is kept around it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, TRANSFER_ENCODING};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::Peer;
use super::pace::{Pace, Paced, Wait};
use super::refusal::head_timeout;
use super::serve::{Answering, Stage};
use crate::config::HttpLimits;

/// What hyper may hold of one connection, in bytes, if our own limits are not higher.
const BUFFER: usize = 128 << 10;

/// Header lines that hyper takes without being told; a number of one's own makes each request slower.
const HEADERS: usize = 100;

/// How long to let the client read the last answer, and to throw away what it still sends: closing while bytes
/// are unread would take the answer from it.
const LINGER: Duration = Duration::from_secs(2);

/// Serves `stream` until either side has had enough.
pub(super) async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    answering: impl Answering,
    limits: Arc<HttpLimits>,
    mut stage: watch::Receiver<Stage>,
) {
    // Without this, the second of two small writes waits for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let pace = Arc::new(Pace::new(Arc::clone(&limits)));
    let told = Arc::clone(&pace);
    let service = service_fn(move |request| answer(request, peer, answering.clone(), Arc::clone(&told)));
    let stream = TokioIo::new(Paced::new(stream, Arc::clone(&pace)));
    let mut connection = hyper(&limits).serve_connection(stream, service);
    let mut overdue = pin!(overdue(&pace));
    let mut draining = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => break,
            wait = &mut overdue => return give_up(wait, connection.into_parts().io.into_inner()).await,
            changed = stage.changed() => match *stage.borrow_and_update() {
                Stage::Over => return,
                Stage::Draining | Stage::Serving if changed.is_err() => return,
                // Nobody is owed anything, and whoever sends now is as late as one who connects now.
                Stage::Draining if !pace.owes() => return,
                Stage::Draining if !draining => {
                    draining = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
                Stage::Draining | Stage::Serving => {}
            },
        }
    }
    linger(connection.into_parts().io.into_inner()).await;
}

/// hyper, whose own limits lie above ours, so that it is ours that answer, with a problem document.
fn hyper(limits: &HttpLimits) -> Builder {
    let mut builder = Builder::new();
    builder.max_buf_size(BUFFER.max(2 * (limits.max_head + limits.max_uri)));
    if limits.max_headers >= HEADERS {
        builder.max_headers(limits.max_headers + HEADERS);
    }
    builder
}

/// Hands one request on, and tells `pace` when it begins and when it is answered.
async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    mut answering: impl Answering,
    pace: Arc<Pace>,
) -> Result<Response, Infallible> {
    pace.begin();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer.ip()));
    // hyper drops a `Content-Length` beside it without a word. Whoever counted that length before us sees another
    // request where the chunks end, so there must be none (RFC 9112 §6.1).
    let is_last = request.headers().contains_key(TRANSFER_ENCODING);
    let mut response = answering.call(request).await?;
    if is_last {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    pace.answered();
    Ok(response)
}

/// Ends when the client has kept the connection waiting for too long, and says for what.
async fn overdue(pace: &Pace) -> Wait {
    let mut timer = pin!(sleep_until(pace.look_again()));
    std::future::poll_fn(|context| {
        loop {
            // The deadline nearly always moves away, so the timer is set anew only when it has run out or is late.
            let deadline = pace.look_again();
            if deadline < timer.deadline() {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if let Some(wait) = pace.overdue(Instant::now()) {
                return Poll::Ready(wait);
            }
            timer.as_mut().reset(pace.look_again());
        }
    })
    .await
}

/// Closes a connection that is overdue; a client that has begun a request is told why.
async fn give_up(wait: Wait, stream: Paced) {
    if wait != Wait::Head {
        return;
    }
    // What does not fit into the system's buffer at once is not worth waiting for.
    stream.inner().try_write(&head_timeout()).ok();
    linger(stream).await;
}

/// Reads until the client closes too, for a little while.
async fn linger(stream: Paced) {
    if stream.has_ended() {
        return;
    }
    let mut stream = stream.into_inner();
    let discard = async {
        tokio::io::AsyncWriteExt::shutdown(&mut stream).await.ok();
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    };
    timeout(LINGER, discard).await.ok();
}
