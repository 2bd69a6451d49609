//! The limit: what this machine could do if a submission were nothing but bytes to be made durable.
//!
//! A process of its own, with our accept loop and a handler that reads the body, hands it to one thread and answers
//! 201. The thread writes what waits into one file, syncs once, and answers all of it: no keys, no validation, no
//! index. The file is made of zeros beforehand, as the journal's segments are, because overwriting them is faster
//! than appending; at its end it begins anew.

mod log;

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use forms::config::HttpLimits;
use tokio::net::TcpListener;

use self::log::Log;

/// The first argument that makes a benchmark's process the limit server.
const ROLE: &str = "limit-server";

/// The command that starts this executable again as the limit server, its file in `folder`.
pub(crate) fn command(folder: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ROLE).arg(folder.join("log"));
    Ok(command)
}

/// Serves until killed, if this process was started for it; false if it was not.
pub(crate) fn serve_if_asked() -> io::Result<bool> {
    let mut arguments = std::env::args_os().skip(1);
    let file = match arguments.next() {
        Some(role) if role == ROLE => arguments.next().ok_or(io::ErrorKind::InvalidInput)?,
        _ => return Ok(false),
    };
    let log = Log::create(Path::new(&file))?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(log))?;
    Ok(true)
}

async fn serve(log: Log) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "http://{}", listener.local_addr()?)?;
    let router =
        Router::new().route("/api/v1/forms/{form}/submissions", post(store)).with_state(Arc::new(log));
    forms::http::server::accept_loop::serve(
        &listener,
        router,
        &HttpLimits::default(),
        std::future::pending(),
    )
    .await;
    Ok(())
}

/// Answers 201 once the body is durable, with a body like that of the API.
async fn store(State(log): State<Arc<Log>>, body: Bytes) -> impl IntoResponse {
    match log.append(body).await {
        Some(position) => (StatusCode::CREATED, format!(r#"{{"id":"{position:020}","status":"completed"}}"#)),
        None => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
    }
}
