//! State of one run: flags, output, and the connection, opened on first use.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::cli::connection::credentials::Credentials;
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::local_store::{self, StoreFlags};
use crate::cli::connection::running_servers::{self, RunningServer};
use crate::cli::connection::suggestion;
use crate::cli::connection::target::{self, Source, Sourced, Target};
use crate::cli::environment::Environment;
use crate::cli::input::prompt::{self, ConfirmBy};
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::cli::output::shell_quote::shell_quote;
use crate::client::{Client, RetryPolicy, Transport, Url, has_certificate};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::secret::{Secret, SystemRandomness};
use crate::server::{self, Local};

/// Maximum wait for a server that is starting.
const STARTUP_WAIT: Duration = Duration::from_secs(2);

/// Maximum wait for the process of one.
const PROCESS_WAIT: Duration = Duration::from_millis(100);

/// Interval at which to look for it.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// One run of the command line.
pub struct Session {
    pub global: Global,
    pub environment: Environment,
    pub output: Rc<Output>,
    target: OnceCell<Target>,
    credentials: OnceCell<Credentials>,
    /// The store, if this process has opened it.
    local: RefCell<Option<Local>>,
    /// Whether another program has the terminal, so that Ctrl-C is meant for it.
    lent: Cell<bool>,
}

impl Session {
    /// Creates a session with these flags and this environment.
    pub fn new(global: Global, environment: Environment, output: Output) -> Self {
        let (target, credentials) = (OnceCell::new(), OnceCell::new());
        let (local, lent) = (RefCell::new(None), Cell::new(false));
        Self { global, environment, output: Rc::new(output), target, credentials, local, lent }
    }

    /// Creates a session for the context `name`, which must exist, with the same output.
    pub fn in_context(&self, name: &str) -> Result<Self, CliError> {
        let global = Global {
            context: Some(name.to_owned()),
            url: None,
            data: None,
            key_file: None,
            ..self.global.clone()
        };
        let (target, credentials, local, lent) = Default::default();
        let (environment, output) = (self.environment.clone(), Rc::clone(&self.output));
        let session = Self { global, environment, output, target, credentials, local, lent };
        session.target()?;
        Ok(session)
    }

    pub fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Returns the server or data directory to use.
    pub fn target(&self) -> Result<&Target, CliError> {
        match self.target.get() {
            Some(target) => Ok(target),
            None => target::resolve(self).map(|target| self.target.get_or_init(|| target)),
        }
    }

    /// Uses `target` instead of the one that flags and environment select. Call it before the first request.
    pub fn use_target(&self, target: Target) {
        let _already_resolved = self.target.set(target);
    }

    /// Returns the contexts as they were when they were first needed.
    pub fn credentials(&self) -> Result<&Credentials, CliError> {
        match self.credentials.get() {
            Some(credentials) => Ok(credentials),
            None => Credentials::load(&self.environment, &self.output)
                .map(|read| self.credentials.get_or_init(|| read)),
        }
    }

    /// Returns the target. If it is the default and no server is known, waits for one that was just started: in
    /// `forms serve & forms list`, it may still be opening its store.
    async fn wait_for_target(&self) -> Result<&Target, CliError> {
        let begun = Instant::now();
        while self.target.get().is_none() {
            let target = target::resolve(self)?;
            let is_nowhere =
                matches!(&target, Target::Server { url, key: None, .. } if url.source == Source::Default);
            let wait = || if running_servers::is_starting() { STARTUP_WAIT } else { PROCESS_WAIT };
            if is_nowhere && begun.elapsed() < wait() {
                tokio::time::sleep(POLL_INTERVAL).await;
            } else {
                drop(self.target.set(target));
            }
        }
        self.target()
    }

    /// Returns `forms` with the flags that select the same target, for commands shown in help texts.
    pub fn command_prefix(&self) -> String {
        let Global { url, context, key_file, data, insecure_http, .. } = &self.global;
        let path = |path: &PathBuf| path.display().to_string();
        let flags = [
            ("--url", url.clone()),
            ("--context", context.clone()),
            ("--key-file", key_file.as_ref().map(path)),
            ("--data", data.as_ref().map(path)),
        ];
        let flag = |(name, value): (&str, Option<String>)| Some(format!(" {name} {}", shell_quote(&value?)));
        let insecure = if *insecure_http { " --insecure-http" } else { "" };
        format!("forms{}{insecure}", flags.into_iter().filter_map(flag).collect::<String>())
    }

    /// Returns the running servers of this user.
    pub fn running_servers(&self) -> Vec<RunningServer> {
        running_servers::running_in(&running_servers::folders(&self.environment))
    }

    /// Returns the key that requests are sent with.
    pub fn key(&self) -> Option<Secret<String>> {
        match self.target.get()? {
            Target::Server { key, .. } => key.as_ref().map(|key| key.text.clone()),
            Target::Data(_) => {
                let local = self.local.borrow();
                local.as_ref()?.key.as_ref().map(|key| Secret::new(key.reveal().to_owned()))
            }
        }
    }

    /// Returns a client for the target. A data directory must have a store.
    pub async fn client(&self) -> Result<Client, CliError> {
        if let Target::Data(data) = self.wait_for_target().await? {
            local_store::expect_store(&data.value)?;
        }
        self.connect().await
    }

    /// Returns a client for the target; creates the store if a data directory has none.
    pub async fn connect(&self) -> Result<Client, CliError> {
        let transport = match self.wait_for_target().await? {
            Target::Server { url, .. } => {
                self.require_encryption(&url.value)?;
                check_authorities(&self.environment, &url.value)?;
                Transport::http(url.value.clone(), target::is_loopback(&url.value))?
            }
            Target::Data(data) => self.open(data).await?,
        };
        let retry_policy = RetryPolicy { timeout: self.global.timeout, retries: self.global.retries };
        let client = Client::new(transport, self.key(), retry_policy, Box::new(SystemRandomness));
        if self.output.verbose == 0 {
            return Ok(client);
        }
        let output = Rc::clone(&self.output);
        Ok(client.with_observer(Box::new(move |text, is_body| output.trace(text, is_body))))
    }

    /// Refuses to send a key unencrypted beyond this machine, unless the flag or a context of this address allows it.
    pub fn require_encryption(&self, url: &Url) -> Result<(), CliError> {
        let Err(refused) = target::require_encryption(url, self.global.insecure_http) else { return Ok(()) };
        let chosen = self.chosen_context();
        let context = self.credentials()?.find_by_url(url, chosen.as_deref());
        if context.is_some_and(|(_, context)| context.insecure_http) { Ok(()) } else { Err(refused) }
    }

    /// Returns the name of the context selected by flag, by environment or as the current one; `None` also if their file
    /// is broken.
    pub fn chosen_context(&self) -> Option<String> {
        let credentials = self.credentials().ok()?;
        target::chosen_context(&self.global, &self.environment, credentials).map(str::to_owned)
    }

    /// Fails if the server does not respond, or the store cannot be used. A data directory without a store is accepted,
    /// and none is created.
    pub async fn probe(&self) -> Result<(), CliError> {
        if let Target::Data(data) = self.wait_for_target().await?
            && !data.value.exists()
        {
            return Ok(());
        }
        self.connect().await?.whoami().await?;
        self.close().await
    }

    /// Fails if a known server of this user holds the store, instead of waiting for its lock.
    pub fn refuse_if_served(&self, data: &Path, help: &'static str) -> Result<(), CliError> {
        let server = self.running_servers().into_iter().find(|server| server.holds(data));
        server.map_or(Ok(()), |server| {
            let holder = Some((server.pid, Some(server.url)));
            Err(CliError::InUse { data: data.to_owned(), holder, help })
        })
    }

    async fn open(&self, data: &Sourced<PathBuf>) -> Result<Transport, CliError> {
        let (data, help) = (&data.value, if_in_use(data.source));
        let opened = match self.local.take() {
            Some(opened) => opened,
            None => {
                self.refuse_if_served(data, help)?;
                let config = StoreFlags::of_environment(data)?;
                let opened = server::open_local_with(&config).await;
                opened.map_err(|error| local_store::open_error(data, error, help))?
            }
        };
        let router = opened.router();
        *self.local.borrow_mut() = Some(opened);
        Ok(Transport::InProcess(router))
    }

    /// Adds to an error about something that does not exist what was probably meant.
    pub async fn suggest(&self, error: CliError) -> CliError {
        let CliError::Client { error, notes, help: None } = error else { return error };
        let help = match error.problem() {
            Some(problem) => suggestion::suggest(self, problem).await,
            None => None,
        };
        CliError::Client { error, notes, help }
    }

    /// Closes the store, if the command opened one.
    pub async fn close(&self) -> Result<(), CliError> {
        let Some(local) = self.local.take() else { return Ok(()) };
        let Target::Data(data) = self.target()? else { return Ok(()) };
        let closed = local.close().await;
        closed.map_err(|error| local_store::open_error(&data.value, error, if_in_use(data.source)))
    }

    pub fn target_name(&self) -> Result<String, CliError> {
        Ok(match self.target()? {
            Target::Server { url, .. } => target::display_url(&url.value),
            Target::Data(data) => data.value.display().to_string(),
        })
    }

    /// Tells the user that the command reads from the terminal, if `path` is `-`.
    pub fn announce_stdin(&self, path: &Path) {
        if path == Path::new("-") && io::stdin().is_terminal() {
            self.output.status("reading from the terminal, end with Ctrl-D");
        }
    }

    pub fn can_prompt(&self) -> bool {
        self.prompt_obstacle().is_none()
    }

    /// Returns why the user cannot be prompted; `None` if they can.
    pub fn prompt_obstacle(&self) -> Option<&'static str> {
        prompt::prompt_obstacle(self.global.no_input, &self.environment)
    }

    /// Runs a program that uses the terminal.
    pub async fn lend_terminal<T>(&self, program: impl Future<Output = T>) -> T {
        self.lent.set(true);
        let ended = program.await; // A Ctrl-C for the program may have arrived without being handled yet.
        tokio::task::yield_now().await;
        self.lent.set(false);
        ended
    }

    pub fn has_lent_terminal(&self) -> bool {
        self.lent.get()
    }

    /// Asks whether to do `what`, such as `delete "Lunch"`; fails if the user cannot be prompted. The store is closed
    /// meanwhile, so that other commands can use it: the next request needs a new client.
    pub async fn confirm(&self, what: &str, how: ConfirmBy) -> Result<(), CliError> {
        if let Some(obstacle) = self.prompt_obstacle() {
            let message = format!("cannot {what} without a confirmation, and {obstacle}");
            return Err(CliError::usage_with_help(message, "add --yes"));
        }
        self.close().await?;
        let (first, rest) = what.split_at(1);
        let question = format!("{}{rest} on {}?", first.to_uppercase(), self.target_name()?);
        let canceled = match self.output.is_batch() {
            true => "canceled, the others are unchanged",
            false => "canceled, nothing was done",
        };
        prompt::dialogue(&self.output, canceled, prompt::confirm(question, how)).await
    }
}

/// Help if another process holds the data directory.
fn if_in_use(named_by: Source) -> &'static str {
    if named_by == Source::Env { "unset FORMS_DATA, or stop it" } else { "drop --data, or stop it" }
}

/// Fails if the file of trusted authorities has none.
fn check_authorities(environment: &Environment, url: &Url) -> Result<(), CliError> {
    let Some(path) = environment.get("SSL_CERT_FILE").filter(|_| url.scheme() == "https") else {
        return Ok(());
    };
    let unreadable =
        |error| CliError::usage(format!("cannot read SSL_CERT_FILE, {path}: {}", reason(&error)));
    if has_certificate(&fs::read(path).map_err(unreadable)?) {
        return Ok(());
    }
    Err(CliError::usage(format!("SSL_CERT_FILE, {path}, has no certificate in PEM format")))
}
