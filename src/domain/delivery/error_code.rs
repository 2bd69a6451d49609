//! The codes of failed attempts.

use super::DeliveryError;
use crate::domain::open_enum::named_enum;

/// Declares the codes. Their documentation is what users read about them.
macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $value:ident = $name:literal,)*) => {
        named_enum! {
            /// The values of [`DeliveryError::code`].
            ErrorCode { $($(#[doc = $doc])+ $value = $name,)* }
        }

        impl ErrorCode {
            /// Explanation and remedy, in Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$value => concat!($($doc),+).trim_start(),)* }
            }
        }
    };
}

impl ErrorCode {
    pub fn error(self, message: impl Into<String>) -> DeliveryError {
        DeliveryError { code: self.into(), message: message.into(), http_status: None }
    }
}

error_codes! {
    /// The receiver answered with a status other than 2xx. Its log has the cause; `forms deliveries show ID` has its
    /// answer.
    HttpError = "http_error",
    /// The receiver redirected the request, which is not followed. Set its final URL.
    Redirect = "redirect",
    /// The receiver asked to be called later, with status 429, or 503 and `Retry-After`. No action is needed.
    RateLimited = "rate_limited",
    /// The receiver no longer exists: a webhook answered 410, or a chat service reported a deleted chat, a deleted
    /// webhook or a revoked token. The integration is paused. Correct its settings, then run `forms integrations
    /// enable`.
    Gone = "gone",
    /// The chat service, or Google, refused the request and would refuse it again. The message quotes its answer:
    /// correct the settings, then redeliver.
    Refused = "refused",
    /// The exchange took longer than 15 seconds; for mail 30 seconds, and 10 minutes for the answer to the message. A
    /// receiver should answer first and do its work afterwards.
    Timeout = "timeout",
    /// The host name cannot be resolved. Correct it, or check the server's DNS.
    DnsError = "dns_error",
    /// No connection was made, or it was closed before the answer. Check that the receiver is running and that
    /// firewalls allow the connection.
    ConnectionFailed = "connection_failed",
    /// The answer is not valid HTTP or SMTP, or is not one of the Google Sheets API. Check host and port.
    InvalidResponse = "invalid_response",
    /// The certificate is not trusted, or the TLS handshake failed. Renew the certificate, or add its authority to
    /// the file that `SSL_CERT_FILE` names.
    TlsError = "tls_error",
    /// The address is not allowed. The operator can allow its network with `--allow-net`; then redeliver.
    BlockedAddress = "blocked_address",
    /// A header of the request is not valid. Correct the headers, then redeliver.
    InvalidRequest = "invalid_request",
    /// The master key does not open the stored secrets. Restore the key from its backup, or set the secrets again.
    SecretUnreadable = "secret_unreadable",
    /// The server has no mail settings. The operator must set `--smtp-url` or `--mail-dir`.
    MailNotConfigured = "mail_not_configured",
    /// The mail server does not offer STARTTLS, so nothing was sent. Enable it there, or use `smtps://` in
    /// `--smtp-url`.
    TlsRequired = "tls_required",
    /// The mail server refused the user name or the password. Correct `--smtp-username` and `--smtp-password-file`.
    SmtpAuthFailed = "smtp_auth_failed",
    /// The mail server asked to send to the recipient, or the message, later. No action is needed unless it persists.
    SmtpDeferred = "smtp_deferred",
    /// The mail server refused the greeting, the sender, the recipient or the message. The message quotes its answer:
    /// correct the address or `--mail-from`, then redeliver.
    SmtpRejected = "smtp_rejected",
    /// The recipient is not a valid address. Correct it, then redeliver.
    InvalidRecipient = "invalid_recipient",
    /// The form has sent 500 confirmations within the hour. This one is sent later; no action is needed.
    Throttled = "throttled",
    /// The service account may not edit the spreadsheet. Share the spreadsheet with its address as an editor, and
    /// enable the Google Sheets API in its project; then redeliver.
    AccessDenied = "access_denied",
    /// No spreadsheet has this `spreadsheet_id`. Correct the id, then redeliver.
    SpreadsheetNotFound = "spreadsheet_not_found",
    /// The first row of the tab was not written by forms: cell A1 must be `id`. Use an empty tab or correct it, then
    /// redeliver.
    NotAHeader = "not_a_header",
    /// Column A is too large to be searched for an id, at some 500,000 rows. Begin another tab, with `sheet`.
    SpreadsheetTooLarge = "spreadsheet_too_large",
    /// The tab has too few columns for a new question. Add columns at its right; the next attempt follows by itself.
    TooFewColumns = "too_few_columns",
    /// Google refused the key of the service account. Create another and set it as `service_account`, or correct the
    /// server's clock.
    KeyRefused = "key_refused",
    /// Google did not accept the access token. The next attempt gets a new one; no action is needed unless it
    /// persists.
    Unauthorized = "unauthorized",
    /// The CSV file, or a file of `--mail-dir`, cannot be written. Check the disk space and the permissions of the
    /// data directory. Where the store is a database, no CSV files are written, and the integration is paused.
    FileError = "file_error",
    /// Only of a test: the form could not be read. Test again.
    StoreUnavailable = "store_unavailable",
    /// Only of a test: there was nothing to send, because the integration does not send this event.
    Skipped = "skipped",
    /// A defect of the server ended the attempt. Report it; the cause is in the server's log.
    InternalPanic = "internal_panic",
    /// The stored delivery or its integration is damaged. Set the integration's settings again; if others are damaged
    /// too, restore the store from a backup.
    Damaged = "damaged",
}
