//! What a command works with: the flags, the output, and the connection, which is made when it is first needed.

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::api::Code;
use crate::cli::connection::global_flags::Global;
use crate::cli::connection::local_store;
use crate::cli::connection::running_servers::{self, Live};
use crate::cli::connection::target::{self, Key, Source, Sourced, Surroundings, Target};
use crate::cli::environment::Environment;
use crate::cli::input::prompt::{self, Confirmation};
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::quoted;
use crate::client::{Client, ClientError, FormQuery, MAX_PAGE, RetryPolicy, Transport, Url};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::domain::form::slug::is_slug;
use crate::domain::validation::similar::similar;
use crate::secret::{Secret, SystemRandomness};
use crate::server::{self, Local};

/// How long a server that was started a moment ago may take until it is known.
const STARTING: Duration = Duration::from_secs(2);

/// How often to look for it.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How long a failure waits for what was meant.
const SUGGESTING: Duration = Duration::from_secs(1);

/// One run of the command line.
pub struct Session {
    pub global: Global,
    pub environment: Environment,
    pub output: Rc<Output>,
    target: OnceCell<Target>,
    /// The store, if this process has opened it.
    local: RefCell<Option<Local>>,
    /// Whether another program has the terminal: its Ctrl-C is not ours.
    lent: Cell<bool>,
}

impl Session {
    /// A run with these flags in this environment.
    pub fn new(global: Global, environment: Environment, output: Output) -> Self {
        let (target, local, lent) = (OnceCell::new(), RefCell::new(None), Cell::new(false));
        Self { global, environment, output: Rc::new(output), target, local, lent }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Where the command works.
    pub fn target(&self) -> Result<&Target, CliError> {
        if let Some(target) = self.target.get() {
            return Ok(target);
        }
        let target = self.look_around()?;
        Ok(self.target.get_or_init(|| target))
    }

    fn look_around(&self) -> Result<Target, CliError> {
        let surroundings = Surroundings {
            environment: &self.environment,
            live: &|| self.live(),
            warn: &|text| self.output.warn(text),
        };
        target::resolve(&self.global, &surroundings)
    }

    /// The same; waits a little for a server of this user, where nothing says which server and none is known: one
    /// that was started a moment ago, as in `forms serve & forms list`, is still opening its store.
    async fn awaited_target(&self) -> Result<&Target, CliError> {
        let begun = Instant::now();
        while self.target.get().is_none() {
            let target = self.look_around()?;
            let is_nowhere =
                matches!(&target, Target::Server { url, key: None } if url.source == Source::Default);
            if is_nowhere && self.global.retries > 0 && begun.elapsed() < STARTING {
                tokio::time::sleep(LOOK_AGAIN).await;
            } else {
                drop(self.target.set(target));
            }
        }
        self.target()
    }

    /// How a command begins that is to work where this one does: with the flags that say so.
    pub fn again(&self) -> String {
        let Global { url, key_file, data, insecure_http, .. } = &self.global;
        let path = |path: &PathBuf| path.display().to_string();
        let flags = [
            ("--url", url.clone()),
            ("--key-file", key_file.as_ref().map(path)),
            ("--data", data.as_ref().map(path)),
        ];
        let flag = |(name, value): (&str, Option<String>)| Some(format!(" {name} {}", quoted(&value?)));
        let insecure = if *insecure_http { " --insecure-http" } else { "" };
        format!("forms{}{insecure}", flags.into_iter().filter_map(flag).collect::<String>())
    }

    /// The running servers of this user.
    pub fn live(&self) -> Vec<Live> {
        running_servers::live_in(&running_servers::folders(&self.environment))
    }

    /// A client for where the command works. A data directory must have a store.
    pub async fn client(&self) -> Result<Client, CliError> {
        if let Target::Data(data) = self.awaited_target().await? {
            local_store::expect_store(&data.value)?;
        }
        self.connect().await
    }

    /// The same; in a data directory without a store it makes one.
    pub async fn connect(&self) -> Result<Client, CliError> {
        let (transport, key) = match self.awaited_target().await? {
            Target::Server { url, key } => {
                target::refuse_in_the_clear(&url.value, self.global.insecure_http)?;
                let transport = Transport::http(url.value.clone(), target::is_loopback(&url.value))?;
                (transport, key.as_ref().map(|key| key.text.clone()))
            }
            Target::Data(data) => self.open(data).await?,
        };
        let retry_policy = RetryPolicy { timeout: self.global.timeout, retries: self.global.retries };
        let client = Client::new(transport, key, retry_policy, Box::new(SystemRandomness::new()));
        let output = Rc::clone(&self.output);
        Ok(client.with_observer(Box::new(move |text, is_body| output.trace(text, is_body))))
    }

    /// Fails if the server does not answer, or the store cannot be used. A data directory without a store is fine, and
    /// stays without.
    pub async fn probe(&self) -> Result<(), CliError> {
        if let Target::Data(data) = self.awaited_target().await?
            && !data.value.exists()
        {
            return Ok(());
        }
        self.connect().await?.whoami().await?;
        self.close().await
    }

    /// Fails at once if a server of this user is known to hold the store: waiting for it would be in vain.
    pub fn refuse_if_served(&self, data: &Path, help: &'static str) -> Result<(), CliError> {
        match self.live().into_iter().find(|server| server.holds(data)) {
            Some(server) => {
                let holder = Some((server.pid, Some(server.url)));
                Err(CliError::InUse { data: data.to_owned(), holder, help })
            }
            None => Ok(()),
        }
    }

    async fn open(&self, data: &Sourced<PathBuf>) -> Result<(Transport, Option<Secret<String>>), CliError> {
        let (data, help) = (&data.value, if_in_use(data.source));
        let opened = match self.local.take() {
            Some(opened) => opened,
            None => {
                self.refuse_if_served(data, help)?;
                server::open_local(data).await.map_err(|error| local_store::failed(data, error, help))?
            }
        };
        let router = opened.api.clone().into_router();
        let key = opened.key.as_ref().map(|key| Secret::new(key.reveal().to_owned()));
        *self.local.borrow_mut() = Some(opened);
        Ok((Transport::InProcess(router), key))
    }

    /// The failure, with the slug that was meant where a form's is misspelt: one more request, which may fail but not
    /// keep anybody waiting.
    pub async fn suggest(&self, error: CliError) -> CliError {
        let CliError::Client { error: ClientError::Problem(problem), notes, help: None } = error else {
            return error;
        };
        let path = problem.instance.as_deref().filter(|_| problem.code == Code::FormNotFound);
        let word = path.and_then(form_of_path).filter(|word| is_slug(word));
        let near = match word {
            Some(word) => tokio::time::timeout(SUGGESTING, self.similar_slug(word)).await.ok().flatten(),
            None => None,
        };
        let help = match near {
            Some(slug) => Some(format!("a form with a similar slug exists: {slug}")),
            None => (problem.code == Code::FormNotFound).then(|| format!("{} list", self.again())),
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
        local.close().await.map_err(|error| local_store::failed(&data.value, error, if_in_use(data.source)))
    }

    /// Where the command works, for a person.
    pub fn target_name(&self) -> Result<String, CliError> {
        Ok(match self.target()? {
            Target::Server { url, .. } => url.value.as_str().trim_end_matches('/').to_owned(),
            Target::Data(data) => data.value.display().to_string(),
        })
    }

    /// Says that the command waits for the person, if `path` is `-` and stdin a terminal.
    pub fn warn_of_terminal(&self, path: &Path) {
        if path == Path::new("-") && io::stdin().is_terminal() {
            self.output.say("reading from the terminal, end with Ctrl-D");
        }
    }

    /// Whether a question may be asked.
    pub fn may_ask(&self) -> bool {
        prompt::may_ask(self.global.no_input, &self.environment)
    }

    /// Waits for a program that has the terminal meanwhile.
    pub async fn lend_terminal<T>(&self, program: impl Future<Output = T>) -> T {
        self.lent.set(true);
        let ended = program.await;
        // A Ctrl-C that was meant for the program may have come, and not been seen yet.
        tokio::task::yield_now().await;
        self.lent.set(false);
        ended
    }

    /// Whether a program has the terminal.
    pub fn has_lent_terminal(&self) -> bool {
        self.lent.get()
    }

    /// Asks for a yes. Where nobody can be asked: says that `what` needs one.
    pub async fn confirm(&self, what: &str, question: String, how: Confirmation) -> Result<(), CliError> {
        if let Some(obstacle) = prompt::obstacle(self.global.no_input, &self.environment) {
            let message = format!("{what} needs a confirmation, and {obstacle}");
            return Err(CliError::usage_with_help(message, "add --yes"));
        }
        prompt::dialogue(&self.output, "cancelled, nothing was done", prompt::confirm(question, how)).await
    }

    /// Adds to a failure what only this run knows: who named the server and the key.
    pub fn annotate(&self, error: CliError) -> CliError {
        let CliError::Client { mut error, mut notes, mut help } = error else { return error };
        let target = self.target.get();
        match (&mut error, target) {
            (ClientError::Unreachable { was_sent, .. }, Some(Target::Server { url, .. })) => {
                notes.push(format!("address from: {}", origin(url.source)));
                let way_out = if *was_sent { IF_UNANSWERED.to_owned() } else { if_unreachable(url) };
                help = help.or(Some(way_out));
            }
            (ClientError::Problem(problem), Some(Target::Server { url, key }))
                if problem.code == Code::Unauthorized =>
            {
                let shown = url.value.as_str().trim_end_matches('/');
                let (what, note, way_out) = match key {
                    Some(key) => (
                        format!("{shown} refused the API key {}", key.redacted()),
                        format!("key from: {}", key.origin),
                        another_key(key),
                    ),
                    None => (
                        format!("{shown} asks for an API key"),
                        self.why_no_key(&url.value),
                        "set FORMS_API_KEY, or add --key-file PATH".to_owned(),
                    ),
                };
                problem.detail = Some(what);
                notes.push(note);
                help = help.or(Some(way_out));
            }
            (ClientError::MaybeApplied { path, .. }, _) => {
                help = help.or_else(|| Some(inspection(&self.again(), path)));
            }
            _ => {}
        }
        CliError::Client { error, notes, help }
    }

    /// A server's key goes to the very address it told of: under another name, another server may answer.
    fn why_no_key(&self, url: &Url) -> String {
        match self.live().iter().find(|server| server.may_be_at(url)) {
            Some(server) => {
                format!("no key was sent: none is set, and a server of yours is at --url {}", server.url)
            }
            None => {
                "no key was sent: none is set, and no running server of this user was found there".to_owned()
            }
        }
    }
}

/// The command that shows what a request to `path` would have changed.
fn inspection(again: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let mut names = path.trim_start_matches("/api/v1/forms").split('/').skip(1);
    match (names.next(), names.next(), names.next()) {
        (None, ..) => format!("{again} list"),
        (Some(form), Some("submissions"), None) => format!("{again} responses {form}"),
        (Some(form), Some("submissions"), Some(id)) => format!("{again} responses show {form} {id}"),
        (Some(form), ..) => format!("{again} show {form}"),
    }
}

/// What the form is called that a request to `path` asked for.
fn form_of_path(path: &str) -> Option<&str> {
    path.strip_prefix("/api/v1/forms/")?.split(['/', '?']).next()
}

/// What can be done where a request was sent and no answer came.
const IF_UNANSWERED: &str = "try again later, or check the address; -v shows each request";

/// What can be done where nothing answers at `url`: a server is started on this machine alone.
fn if_unreachable(Sourced { value: url, source, .. }: &Sourced<Url>) -> String {
    if !target::is_loopback(url) {
        return "check the address, and whether that host can be reached from here; -v shows each request"
            .to_owned();
    }
    let host = url.host_str().unwrap_or_default();
    let listen = match (source, url.port_or_known_default()) {
        (Source::Flag | Source::Env, Some(port)) => format!(" --listen {host}:{port}"),
        _ => String::new(),
    };
    format!("start one: forms serve --data ./store{listen}, or work without one: forms --data ./store …")
}

/// What a command can do about a data directory that another process holds.
fn if_in_use(named_by: Source) -> &'static str {
    match named_by {
        Source::Env => "unset FORMS_DATA, or stop it",
        Source::Flag | Source::Runtime | Source::Default => "drop --data, or stop it",
    }
}

/// What can be done about a key that was refused.
fn another_key(key: &Key) -> String {
    match key.source {
        Source::Env => {
            let variable = key.origin.split(',').next().unwrap_or_default();
            format!("put a key of this server into {variable}, or unset it")
        }
        Source::Flag => "name a file with a key of this server".to_owned(),
        Source::Runtime | Source::Default => "forms explain unauthorized".to_owned(),
    }
}

fn origin(source: Source) -> &'static str {
    match source {
        Source::Flag => "--url",
        Source::Env => "FORMS_URL",
        Source::Runtime => "a running server's file",
        Source::Default => "default (no --url, no FORMS_URL, no running server of this user was found)",
    }
}
