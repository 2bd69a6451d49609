//! The limit server: how fast this machine is if a submission is only bytes that are made durable.
//!
//! A separate process with our accept loop and a handler that reads the body, sends it to one thread and responds with
//! 201. The thread writes all waiting bodies to one file, syncs once, and confirms them: no keys, no validation, no
//! index. The file is filled with zeros beforehand, as the journal's segments are, because overwriting is faster than
//! appending; at its end, writing continues at the start.

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
use forms::config::HttpSettings;
use tokio::net::TcpListener;

use self::log::Log;

/// First argument of a limit server process.
const ROLE: &str = "limit-server";

/// The command that starts this executable as the limit server, with its file in `folder`.
pub(crate) fn command(folder: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ROLE).arg(folder.join("log"));
    Ok(command)
}

/// Serves until killed if this process was started as the limit server; otherwise returns false.
pub(crate) fn serve_if_requested() -> io::Result<bool> {
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
        &HttpSettings::default(),
        None,
        std::future::pending(),
    )
    .await;
    Ok(())
}

/// Responds with 201 once the body is durable, with a body like that of the API.
async fn store(State(log): State<Arc<Log>>, body: Bytes) -> impl IntoResponse {
    match log.append(body).await {
        Some(position) => (StatusCode::CREATED, format!(r#"{{"id":"{position:020}","status":"completed"}}"#)),
        None => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
    }
}
