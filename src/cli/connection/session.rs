//! State of one run: flags, output, and the connection, opened on first use.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::api::Code;
use crate::cli::connection::credentials::Credentials;
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::hints;
use crate::cli::connection::local_store;
use crate::cli::connection::running_servers::{self, RunningServer};
use crate::cli::connection::target::{self, Key, Source, Sourced, Target, TargetSources};
use crate::cli::environment::Environment;
use crate::cli::input::prompt::{self, ConfirmBy};
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;
use crate::cli::output::shell_quote::shell_quote;
use crate::client::{Client, ClientError, FormQuery, MAX_PAGE, RetryPolicy, Transport, Url};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::domain::form::slug::is_slug;
use crate::domain::validation::similar::similar;
use crate::secret::{Secret, SystemRandomness};
use crate::server::{self, Local};

/// Maximum wait for a server that was just started.
const STARTUP_WAIT: Duration = Duration::from_secs(2);

/// Interval at which to look for it.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Maximum time spent on a suggestion after a failure.
const SUGGEST_TIMEOUT: Duration = Duration::from_secs(1);

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

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Returns the server or data directory to use.
    pub fn target(&self) -> Result<&Target, CliError> {
        match self.target.get() {
            Some(target) => Ok(target),
            None => self.resolve_target().map(|target| self.target.get_or_init(|| target)),
        }
    }

    fn resolve_target(&self) -> Result<Target, CliError> {
        self.with_sources(target::resolve)
    }

    /// Calls `resolve` with the flags, the environment, the contexts and the running servers.
    pub fn with_sources<T>(
        &self,
        resolve: impl FnOnce(&TargetSources<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        resolve(&TargetSources {
            global: &self.global,
            environment: &self.environment,
            credentials: &|| self.credentials(),
            running: &self.running_servers(),
            output: &self.output,
        })
    }

    /// Uses `target` instead of the one that flags and environment select. Call it before the first request.
    pub fn use_target(&self, target: Target) {
        let _already_resolved = self.target.set(target);
    }

    /// Returns the contexts as they were when they were first needed.
    ///
    /// # Errors
    /// If their file is broken.
    pub fn credentials(&self) -> Result<&Credentials, CliError> {
        match self.credentials.get() {
            Some(credentials) => Ok(credentials),
            None => {
                let read = Credentials::load(&self.environment, &self.output)?;
                Ok(self.credentials.get_or_init(|| read))
            }
        }
    }

    /// Returns the target. If it is the default and no server is known, waits briefly: one that was just started, as in
    /// `forms serve & forms list`, may still be opening its store.
    async fn wait_for_target(&self) -> Result<&Target, CliError> {
        let begun = Instant::now();
        while self.target.get().is_none() {
            let target = self.resolve_target()?;
            let is_nowhere =
                matches!(&target, Target::Server { url, key: None, .. } if url.source == Source::Default);
            if is_nowhere && self.global.retries > 0 && begun.elapsed() < STARTUP_WAIT {
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
        let (transport, key) = match self.wait_for_target().await? {
            Target::Server { url, key, .. } => {
                self.require_encryption(&url.value)?;
                self.check_authorities(&url.value)?;
                let transport = Transport::http(url.value.clone(), target::is_loopback(&url.value))?;
                (transport, key.as_ref().map(|key| key.text.clone()))
            }
            Target::Data(data) => self.open(data).await?,
        };
        let retry_policy = RetryPolicy { timeout: self.global.timeout, retries: self.global.retries };
        let client = Client::new(transport, key, retry_policy, Box::new(SystemRandomness));
        let output = Rc::clone(&self.output);
        Ok(client.with_observer(Box::new(move |text, is_body| output.trace(text, is_body))))
    }

    /// Fails if the file of trusted authorities cannot be read: the TLS library would trust none, and not say why.
    fn check_authorities(&self, url: &Url) -> Result<(), CliError> {
        let path = self.environment.get("SSL_CERT_FILE").filter(|_| url.scheme() == "https");
        let Some((path, Err(error))) = path.map(|path| (path, File::open(path))) else { return Ok(()) };
        Err(CliError::usage(format!("cannot read SSL_CERT_FILE, {path}: {}", reason(&error))))
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
        let chosen = target::chosen_context(&self.global, &self.environment, credentials)?;
        Some(chosen.name)
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

    async fn open(&self, data: &Sourced<PathBuf>) -> Result<(Transport, Option<Secret<String>>), CliError> {
        let (data, help) = (&data.value, hints::in_use(data.source));
        let opened = match self.local.take() {
            Some(opened) => opened,
            None => {
                self.refuse_if_served(data, help)?;
                let config = local_store::config(data, &self.environment)?;
                let opened = server::open_local_with(&config).await;
                opened.map_err(|error| local_store::open_error(data, error, help))?
            }
        };
        let router = opened.router();
        let key = opened.key.as_ref().map(|key| Secret::new(key.reveal().to_owned()));
        *self.local.borrow_mut() = Some(opened);
        Ok((Transport::InProcess(router), key))
    }

    /// Adds a similar slug to a `form_not_found` error. This costs one request, which may fail and is limited in time.
    pub async fn suggest(&self, error: CliError) -> CliError {
        let CliError::Client { error: ClientError::Problem(problem), notes, help: None } = error else {
            return error;
        };
        let path = problem.instance.as_deref().filter(|_| problem.code == Code::FormNotFound);
        let word = path.and_then(form_of_path).filter(|word| is_slug(word));
        let near = match word {
            Some(word) => tokio::time::timeout(SUGGEST_TIMEOUT, self.similar_slug(word)).await.ok().flatten(),
            None => None,
        };
        let help = match near {
            Some(slug) => Some(format!("a form with a similar slug exists: {slug}")),
            None => (problem.code == Code::FormNotFound).then(|| format!("{} list", self.command_prefix())),
        };
        CliError::Client { error: ClientError::Problem(problem), notes, help }
    }

    async fn similar_slug(&self, word: &str) -> Option<String> {
        let client = self.connect().await.ok()?;
        let forms = client.list_forms(&FormQuery::default(), MAX_PAGE).next().await.ok()??;
        similar(word, forms.iter().filter_map(|form| form.slug.as_deref())).map(str::to_owned)
    }

    /// Closes the store, if the command opened one.
    pub async fn close(&self) -> Result<(), CliError> {
        let Some(local) = self.local.take() else { return Ok(()) };
        let Target::Data(data) = self.target()? else { return Ok(()) };
        let closed = local.close().await;
        closed.map_err(|error| local_store::open_error(&data.value, error, hints::in_use(data.source)))
    }

    /// Returns the target as text.
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

    /// Whether the user can be prompted.
    pub fn can_prompt(&self) -> bool {
        prompt::prompt_obstacle(self.global.no_input, &self.environment).is_none()
    }

    /// Runs a program that uses the terminal.
    pub async fn lend_terminal<T>(&self, program: impl Future<Output = T>) -> T {
        self.lent.set(true);
        let ended = program.await; // A Ctrl-C for the program may have arrived without being handled yet.
        tokio::task::yield_now().await;
        self.lent.set(false);
        ended
    }

    /// Whether another program has the terminal.
    pub fn has_lent_terminal(&self) -> bool {
        self.lent.get()
    }

    /// Asks for confirmation of `action`; fails if the user cannot be prompted.
    pub async fn confirm(&self, action: &str, question: String, how: ConfirmBy) -> Result<(), CliError> {
        if let Some(obstacle) = prompt::prompt_obstacle(self.global.no_input, &self.environment) {
            let message = format!("{action} needs a confirmation, and {obstacle}");
            return Err(CliError::usage_with_help(message, "add --yes"));
        }
        prompt::dialogue(&self.output, "canceled, nothing was done", prompt::confirm(question, how)).await
    }

    /// Adds to an error where the server's address and the key came from.
    pub fn annotate(&self, error: CliError) -> CliError {
        let error = match error {
            CliError::Rejected(mut report) => {
                if let Some(Target::Data(_)) = self.target.get() {
                    report.diagnostics.iter_mut().for_each(hints::name_allow_net);
                }
                return CliError::Rejected(report);
            }
            error => error,
        };
        let CliError::Client { mut error, mut notes, mut help } = error else { return error };
        let target = self.target.get();
        match (&mut error, target) {
            (ClientError::Untrusted { .. }, _) => {
                help = help.or_else(|| Some(hints::UNTRUSTED.to_owned()));
            }
            (ClientError::Unreachable { was_sent, .. }, Some(Target::Server { url, context, .. })) => {
                let overridden = self.chosen_context().filter(|_| url.source == Source::Env);
                let origin = hints::url_origin(url.source, context.as_ref());
                notes.push(format!("address from: {origin}{}", overrides(overridden.as_deref())));
                let way_out = if *was_sent { hints::UNANSWERED.to_owned() } else { hints::unreachable(url) };
                help = help.or(Some(way_out));
            }
            (ClientError::Problem(problem), Some(Target::Server { url, key: Some(key), .. }))
                if problem.code == Code::Unauthorized =>
            {
                let shown = target::display_url(&url.value);
                problem.detail = Some(format!("{shown} refused the API key {}", key.redacted()));
                let overridden = self.overridden_context(&url.value, key);
                notes.push(format!("key from: {}{}", key.origin, overrides(overridden.as_deref())));
                let way_out = || hints::refused_key(key, &url.value, overridden.is_some());
                help = help.or_else(|| Some(way_out()));
            }
            (ClientError::Problem(problem), Some(Target::Server { url, key: None, .. }))
                if problem.code == Code::Unauthorized =>
            {
                let shown = target::display_url(&url.value);
                problem.detail = Some(format!("{shown} asks for an API key"));
                notes.push(self.missing_key_note(&url.value));
                help = help.or_else(|| Some(hints::missing_key(&url.value)));
            }
            (ClientError::Problem(problem), Some(Target::Server { url, key: Some(key), .. }))
                if problem.code == Code::InsufficientScope =>
            {
                let overridden = self.overridden_context(&url.value, key);
                notes.push(format!("key from: {}{}", key.origin, overrides(overridden.as_deref())));
                help = help.or_else(|| Some(hints::LACKING_SCOPE.to_owned()));
            }
            (ClientError::MaybeApplied { path, .. }, _) => {
                help = help.or_else(|| Some(hints::inspection_command(&self.command_prefix(), path)));
            }
            _ => {}
        }
        CliError::Client { error, notes, help }
    }

    /// Returns the context of exactly this address if a variable overrides its key.
    fn overridden_context(&self, url: &Url, key: &Key) -> Option<String> {
        let chosen = self.chosen_context();
        let credentials = self.credentials().ok().filter(|_| key.origin.source() == Source::Env)?;
        credentials.find_by_url(url, chosen.as_deref()).map(|(name, _)| name.to_owned())
    }

    /// Explains why no key was sent. A server's key is only sent to the exact address it announced: under another name,
    /// another server may respond.
    fn missing_key_note(&self, url: &Url) -> String {
        match self.running_servers().iter().find(|server| server.may_be_at(url)) {
            Some(server) => {
                format!("no API key is set, so none was sent; your own server is at --url {}", server.url)
            }
            None => {
                "no API key is set, so none was sent; no running server of this user was found there".into()
            }
        }
    }
}

/// Returns the end of a note on a variable: the context that it overrides.
fn overrides(context: Option<&str>) -> String {
    context.map(|name| format!(", which overrides {}", target::context_origin(name))).unwrap_or_default()
}

/// Returns the form in the path of a request.
fn form_of_path(path: &str) -> Option<&str> {
    path.strip_prefix("/api/v1/forms/")?.split(['/', '?']).next()
}
