//! Why a request to another server failed, in words: for the commands' client and for deliveries.

use std::error::Error;

use rustls::CertificateError;

/// Returns why the server's certificate is not trusted, if that is what failed.
pub fn certificate_fault(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let rustls::Error::InvalidCertificate(fault) = find_cause(error)? else { return None };
    Some(match fault {
        // Another authority may have the name of a trusted one.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => "it is from an unknown authority",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host"
        }
        CertificateError::Revoked => "it was revoked",
        // The library has no code of its own for the certificate of an authority.
        other if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority (CA:TRUE), not of a server"
        }
        _ => "it is not valid for a server",
    })
}

/// Returns `error` or the first of its causes that is a `T`.
pub fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut causes = std::iter::successors(Some(error), |cause| cause_of(*cause));
    causes.find_map(|cause| cause.downcast_ref())
}

/// Returns the cause of `error`. `source` of an I/O error would skip the error that it wraps.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>() {
        Some(error) => error.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

/// Returns the innermost cause: the outer ones only report that sending failed.
pub fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    if let Some(io) = cause.downcast_ref::<std::io::Error>()
        && io.kind() == std::io::ErrorKind::ConnectionRefused
    {
        return "connection refused".to_owned();
    }
    describe_cause(&cause.to_string())
}

/// Descriptions of library errors, found by a part of the library's text.
const CAUSES: [(&str, &str); 7] = [
    ("received corrupt message", "it does not answer in TLS"),
    ("failed to lookup address", "the host name is not known"),
    ("connection closed before message completed", "it closed the connection without an answer"),
    ("end of file before message length reached", "its answer broke off"),
    ("unexpected EOF", "its answer broke off"),
    ("invalid HTTP", "its answer is not HTTP"),
    ("Invalid chunk", "its answer is not HTTP"),
];

/// Describes `text` for users, or returns it without the operating system's error number.
fn describe_cause(text: &str) -> String {
    match CAUSES.iter().find(|(part, _)| text.contains(part)) {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => text.split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}
