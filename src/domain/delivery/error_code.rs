//! The codes of failed attempts.

/// The values of [`DeliveryError::code`](super::DeliveryError::code), each with what happened and what to do.
pub const ERROR_CODES: [(&str, &str); 33] = [
    (
        "http_error",
        "The receiver answered with a status other than 2xx. Its log has the cause; `forms deliveries show ID` has its answer.",
    ),
    ("redirect", "The receiver redirected the request, which is not followed. Set its final URL."),
    (
        "rate_limited",
        "The receiver asked to be called later, with status 429, or 503 and `Retry-After`. No action is needed.",
    ),
    (
        "gone",
        "The receiver no longer exists: a webhook answered 410, or a chat service reported a deleted chat, a deleted webhook or a revoked token. The integration is paused. Correct its settings, then run `forms integrations enable`.",
    ),
    (
        "refused",
        "The chat service, or Google, refused the request and would refuse it again. The message quotes its answer: correct the settings, then redeliver.",
    ),
    (
        "timeout",
        "The exchange took longer than 15 seconds, or 30 for mail. A receiver should answer first and do its work afterwards.",
    ),
    ("dns_error", "The host name cannot be resolved. Correct it, or check the server's DNS."),
    (
        "connection_failed",
        "No connection was made, or it was closed before the answer. Check that the receiver is running and that firewalls allow the connection.",
    ),
    (
        "invalid_response",
        "The answer is not valid HTTP or SMTP, or is not one of the Google Sheets API. Check host and port.",
    ),
    (
        "tls_error",
        "The certificate is not trusted, or the TLS handshake failed. Renew the certificate, or add its authority to the file that `SSL_CERT_FILE` names.",
    ),
    (
        "blocked_address",
        "The address is not allowed. The operator can allow its network with `--allow-net`; then redeliver.",
    ),
    ("invalid_request", "A header of the request is not valid. Correct the headers, then redeliver."),
    (
        "secret_unreadable",
        "The master key does not open the stored secrets. Restore the key from its backup, or set the secrets again.",
    ),
    (
        "mail_not_configured",
        "The server has no mail settings. The operator must set `--smtp-url` or `--mail-dir`.",
    ),
    (
        "tls_required",
        "The mail server does not offer STARTTLS, so nothing was sent. Enable it there, or use `smtps://` in `--smtp-url`.",
    ),
    (
        "smtp_auth_failed",
        "The mail server refused the user name or the password. Correct `--smtp-username` and `--smtp-password-file`.",
    ),
    (
        "smtp_deferred",
        "The mail server asked to send to a recipient, or the message, later. No action is needed unless it persists.",
    ),
    (
        "smtp_rejected",
        "The mail server refused the greeting, the sender, a recipient or the message. The message quotes its answer: correct the address or `--mail-from`, then redeliver.",
    ),
    ("invalid_recipient", "A recipient is not a valid address. Correct it, then redeliver."),
    (
        "throttled",
        "The form has sent 500 confirmations within the hour. This one is sent later; no action is needed.",
    ),
    (
        "access_denied",
        "The service account may not edit the spreadsheet. Share the spreadsheet with its address as an editor, and enable the Google Sheets API in its project; then redeliver.",
    ),
    ("spreadsheet_not_found", "No spreadsheet has this `spreadsheet_id`. Correct the id, then redeliver."),
    (
        "not_a_header",
        "The first row of the tab was not written by forms: cell A1 must be `id`. Use an empty tab or correct it, then redeliver.",
    ),
    (
        "spreadsheet_too_large",
        "Column A is too large to be searched for an id, at some 500,000 rows. Begin another tab, with `sheet`.",
    ),
    (
        "key_refused",
        "Google refused the key of the service account. Create another and set it as `service_account`, or correct the server's clock.",
    ),
    (
        "unauthorized",
        "Google did not accept the access token. The next attempt gets a new one; no action is needed unless it persists.",
    ),
    ("batch_time", "The rows before it took too long. This one follows at once; no action is needed."),
    (
        "file_error",
        "The CSV file, or a file of `--mail-dir`, cannot be written. Check the disk space and the permissions of the data directory.",
    ),
    ("interrupted", "The server stopped during the attempt. The next one follows; no action is needed."),
    ("store_unavailable", "Only of a test: the form could not be read. Test again."),
    (
        "skipped",
        "Only of a test: there was nothing to send, because the integration does not send this event.",
    ),
    (
        "internal_panic",
        "A defect of the server ended the attempt. Report it; the cause is in the server's log.",
    ),
    (
        "damaged",
        "The stored delivery or its integration is damaged. Set the integration's settings again; if others are damaged too, restore the store from a backup.",
    ),
];
