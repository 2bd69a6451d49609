//! The checks of the receivers: the mail server and the hosts of webhooks.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Check;
use crate::cli::commands::{CliError, Session};
use crate::cli::output::humanize::count_noun;
use crate::cli::output::io_error::reason;
use crate::cli::output::render_error::to_diagnostic;
use crate::client::{FormQuery, MAX_PAGE, Url};
use crate::config::MailConfig;
use crate::server::check_mail as log_in;

/// Maximum number of hosts to connect to.
const MAX_HOSTS: usize = 50;

/// Time to connect to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Logs in to the mail server, if its settings are here.
pub(super) async fn check_mail(config: &MailConfig) -> Check {
    let Some(url) = &config.smtp_url else {
        return Check::skipped("mail", "no settings of a mail server here: --smtp-url or FORMS_SMTP_URL");
    };
    match log_in(config).await {
        Ok(None) => Check::ok("mail", format!("{}:{} accepts the login", url.host, url.port)),
        Ok(Some(why)) => Check::problem(
            "mail",
            format!("{}:{}: {why}", url.host, url.port),
            "correct --smtp-url, --smtp-username or --smtp-password-file, or the mail server",
        ),
        Err(error) => Check::problem("mail", error.to_string(), "forms help environment lists the settings"),
    }
}

/// Connects to the hosts of all webhooks that the key can see.
pub(super) async fn check_webhooks(session: &Session) -> Check {
    let hosts = match webhook_hosts(session).await {
        Ok(hosts) if hosts.is_empty() => return Check::skipped("webhooks", "there are none"),
        Ok(hosts) => hosts,
        Err(error) => return Check::skipped("webhooks", to_diagnostic(&error).message),
    };
    let failures = join_all(hosts.iter().map(connect)).await;
    let failures: Vec<_> = failures.into_iter().flatten().collect();
    match failures.is_empty() {
        true => Check::ok("webhooks", format!("{} can be reached", count_noun(hosts.len(), "host"))),
        false => Check::problem(
            "webhooks",
            failures.join("; "),
            "correct the URL by forms integrations update, or repair the receiver",
        ),
    }
}

/// Returns the hosts and ports of webhooks of the first page of forms, at most [`MAX_HOSTS`].
async fn webhook_hosts(session: &Session) -> Result<BTreeSet<(String, u16)>, CliError> {
    let (client, mut hosts) = (session.client().await?, BTreeSet::new());
    let mut pages = client.list_forms(&FormQuery::default(), MAX_PAGE);
    for form in pages.next().await?.unwrap_or_default() {
        let path = ["forms", &form.id.to_string(), "integrations"];
        let integrations = client.get_bytes(&path).await?;
        let integrations: Value = serde_json::from_slice(&integrations).unwrap_or_default();
        let urls = integrations["integrations"].as_array().into_iter().flatten();
        let urls = urls.filter_map(|integration| Url::parse(integration["url"].as_str()?).ok());
        hosts.extend(urls.filter_map(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?))));
        if hosts.len() >= MAX_HOSTS {
            break;
        }
    }
    Ok(hosts.into_iter().take(MAX_HOSTS).collect())
}

/// Connects to a host, and returns why that failed.
async fn connect((host, port): &(String, u16)) -> Option<String> {
    let address = host.trim_matches(['[', ']']);
    match timeout(CONNECT_TIMEOUT, TcpStream::connect((address, *port))).await {
        Ok(Ok(_connected)) => None,
        Ok(Err(error)) => Some(format!("{host}:{port}: {}", reason(&error))),
        Err(_elapsed) => Some(format!("{host}:{port}: no answer within 5 s")),
    }
}
