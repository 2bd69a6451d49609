//! `forms dev`: a form as it is written, on a server of its own whose store is discarded.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::api::{DeliveryDetail, SubmissionDetail};
use crate::cli::commands::block_on::Signals;
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::connection::local_store::open_error;
use crate::cli::connection::target::is_loopback;
use crate::cli::input::document::{self, Document, FormState};
use crate::cli::output::humanize::humanize;
use crate::cli::plan::render::lines;
use crate::cli::plan::{Action, Base, FormPlan};
use crate::client::{Client, RetryPolicy, SubmissionQuery, Transport, Url};
use crate::config::Config;
use crate::domain::json::{self, Value};
use crate::id::SubmissionId;
use crate::secret::{Secret, SystemRandomness};
use crate::server::{self, Serving};

/// Time between two looks at the file and at what was stored.
const INTERVAL: Duration = Duration::from_millis(250);

/// Submissions and deliveries that are shown after one look.
const MAX_SHOWN: usize = 50;

/// Try a form while you write it
#[derive(Debug, Args)]
#[command(after_long_help = "\
Starts a server with a store of its own, publishes the form of FILE on it, and
prints the address of its page. Each time you save the file, the form is changed
accordingly, and reload shows it; problems are shown here with their places in
the file, and the form stays as it was. Answers are shown as they arrive. Ctrl-C
stops the server and discards its store.

Integrations send nothing unless --deliver is given. Then deliveries and their
results are shown too, and addresses of this machine are allowed, such as that
of `forms listen`. Variables that secrets come from must be set.

Examples:
  forms dev survey.yaml
  forms dev survey.yaml --deliver")]
pub struct Dev {
    /// Form file in YAML or JSON
    file: PathBuf,
    /// Send what the integrations of the form would send
    #[arg(long)]
    deliver: bool,
    /// Address and port; port 0 for any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8788")]
    listen: SocketAddr,
}

impl Run for Dev {
    const COLUMNS: Columns = Columns::Fixed(&["url", "form_id"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let mut signals = Signals::new(true)?;
        let first = self.read().await?;
        let store =
            tempfile::tempdir().map_err(|error| CliError::io("cannot make a folder for the store", error))?;
        let mut config = Config::new(store.path());
        config.listen = self.listen;
        if self.deliver {
            let own = ["127.0.0.0/8", "::1/128"].map(|network| network.parse().expect("both are networks"));
            config.delivery.policy.allowed = own.to_vec();
        }
        let (started, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let ready = |serving: &Serving<'_>| {
            let key = serving.key.map(|key| key.reveal().to_owned());
            let _over_already = started.send((serving.local_url.clone(), key));
        };
        let stopped = async { drop(stopped.await) };
        let serving = server::run(config, stopped, std::future::pending, ready);
        let author = async {
            let Ok((url, key)) = address.await else { return std::future::pending().await };
            let client = client(session, &url, key)?;
            Preview::new(session, &self, client, url).run(first).await
        };
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => return ended.map_err(|error| open_error(store.path(), error, "choose another --listen")),
            ended = author => ended,
            _is_ctrl_c = signals.next() => Ok(()),
        };
        let _over_already = stop.send(());
        let closed = serving.await.map_err(|error| open_error(store.path(), error, "it is discarded"));
        ended.and(closed)
    }
}

impl Dev {
    /// Reads the form, which must be the only one of the file.
    async fn read(&self) -> Result<Document, CliError> {
        let path = self.file.clone();
        let mut documents = read_input(move || document::read(&path)).await?;
        match (documents.pop(), documents.len()) {
            (Some(document), 0) => Ok(document),
            (_, others) => Err(CliError::usage(format!(
                "expected one form in {}, found {}",
                self.file.display(),
                others + 1
            ))),
        }
    }
}

fn client(session: &Session, url: &str, key: Option<String>) -> Result<Client, CliError> {
    let url =
        Url::parse(url).map_err(|error| CliError::usage(format!("{url} is not a valid address: {error}")))?;
    let retry_policy = RetryPolicy { timeout: session.global.timeout, retries: 0 };
    let transport = Transport::http(url.clone(), is_loopback(&url))?;
    Ok(Client::new(transport, key.map(Secret::new), retry_policy, Box::new(SystemRandomness)))
}

/// The form on the server, and what was shown of it.
struct Preview<'a> {
    session: &'a Session,
    command: &'a Dev,
    client: Client,
    url: String,
    /// The form's id, once it was created.
    form: Option<String>,
    last: Option<SubmissionId>,
    /// The deliveries that were shown, with their state.
    deliveries: HashMap<String, String>,
}

impl<'a> Preview<'a> {
    fn new(session: &'a Session, command: &'a Dev, client: Client, url: String) -> Self {
        Self { session, command, client, url, form: None, last: None, deliveries: HashMap::new() }
    }

    /// Publishes the form, then follows the file and what is stored. Ends if the form cannot be created, or the server fails.
    async fn run(&mut self, first: Document) -> Result<(), CliError> {
        let mut content = read_bytes(&self.command.file);
        self.apply(first).await?;
        let form = self.form.clone().unwrap_or_default();
        let page = format!("{}/f/{form}", self.url);
        self.session.output.object(&json!({"url": page, "form_id": form}), || format!("{page}\n"))?;
        self.session.output.status(&format!("watching {}, Ctrl-C stops", self.command.file.display()));
        loop {
            sleep(INTERVAL).await;
            let now = read_bytes(&self.command.file);
            // Some editors remove a file before they write it.
            if now != content && now.is_some() {
                content = now;
                let applied = match self.command.read().await {
                    Ok(document) => self.apply(document).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = applied {
                    self.session.output.report_error(&error);
                }
            }
            self.show_submissions().await?;
            self.show_deliveries().await?;
        }
    }

    /// Makes the form on the server that of the file, published and public.
    async fn apply(&mut self, mut document: Document) -> Result<(), CliError> {
        document.set_state(FormState::Published);
        document.value.set(&["settings", "public"], true.into());
        if !self.command.deliver && self.form.is_none() && document.value.get("integrations").is_some() {
            self.session.output.status("integrations send nothing without --deliver");
        }
        if !self.command.deliver {
            document.value.remove(&["integrations"]);
            document.value.remove(&["notifications"]);
        }
        let base = match &self.form {
            Some(id) => Some(Rc::new(Base::read(&self.client, id).await?)),
            None => None,
        };
        let mut plan = FormPlan::of_document(document, base, None)?;
        plan.count_answers(&self.client).await;
        let output = &self.session.output;
        match (&plan.base, plan.action()) {
            (None, _) => self.form = Some(plan.send(self.session, &self.client, false).await?.parts().0),
            (Some(_), Action::Unchanged | Action::Create) => output.status("saved: no change of the form"),
            (Some(_), Action::Update) => {
                plan.send(self.session, &self.client, false).await?;
                output.status("saved:");
                lines(&plan.changes, false).iter().for_each(|line| output.status(line));
            }
        }
        Ok(())
    }

    async fn show_submissions(&mut self) -> Result<(), CliError> {
        let Some(form) = &self.form else { return Ok(()) };
        let mut pages = self.client.list_submissions(form, &SubmissionQuery::default(), MAX_SHOWN)?;
        let page = pages.next().await?.unwrap_or_default();
        let new = page.iter().take_while(|one| self.last.is_none_or(|last| one.id > last));
        for submission in new.collect::<Vec<_>>().into_iter().rev() {
            self.session.output.status(&describe_submission(submission));
        }
        self.last = page.first().map(|one| one.id).or(self.last);
        Ok(())
    }

    async fn show_deliveries(&mut self) -> Result<(), CliError> {
        if !self.command.deliver {
            return Ok(());
        }
        let mut pages = self.client.list_deliveries(&json!({}), MAX_SHOWN);
        let page = pages.next().await?.unwrap_or_default();
        for delivery in page.iter().rev() {
            let state = describe_delivery(delivery);
            if self.deliveries.insert(delivery.id.to_string(), state.clone()).as_ref() != Some(&state) {
                self.session.output.status(&state);
            }
        }
        Ok(())
    }
}

/// Returns the content of the file; `None` if it cannot be read now, or is being written.
fn read_bytes(file: &Path) -> Option<Vec<u8>> {
    std::fs::read(file).ok().filter(|bytes| !bytes.is_empty())
}

/// Describes a submission: `received sub_…: name: Ann, score: 5`.
fn describe_submission(submission: &SubmissionDetail) -> String {
    let answers = match json::parse(submission.answers.get()) {
        Ok(Value::Object(answers)) => answers,
        _ => Vec::new(),
    };
    let answer = |(id, value): &(String, Value)| format!("{id}: {}", humanize(value));
    format!("received {}  {}", submission.id, answers.iter().map(answer).collect::<Vec<_>>().join(", "))
}

/// Describes the state of a delivery: `delivery dlv_… of submission.completed to crm: delivered`.
fn describe_delivery(delivery: &DeliveryDetail) -> String {
    let integration = &delivery.integration;
    let name = integration.name.as_deref().unwrap_or("a deleted integration");
    let error = delivery.last_error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    format!("delivery {} of {} to {name}: {}{error}", delivery.id, delivery.event.event_type, delivery.status)
}
