//! Errors of HTTP connections in the words of Go's HTTP client.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::CertificateError;

/// Returns the error of a request that got no response from `address`.
pub(super) fn connect(error: &hyper_util::client::legacy::Error, address: &str) -> String {
    if let Some(tls) = find::<rustls::Error>(error) {
        return tls_error(tls);
    }
    if let Some(cause) = find::<io::Error>(error) {
        match cause.kind() {
            io::ErrorKind::ConnectionRefused => {
                return format!("dial tcp {address}: connect: connection refused");
            }
            io::ErrorKind::ConnectionReset => {
                return format!("read tcp {address}: connection reset by peer");
            }
            io::ErrorKind::UnexpectedEof => return "EOF".to_owned(),
            _ => {}
        }
    }
    if let Some(cause) = find::<hyper::Error>(error)
        && (cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed())
    {
        return "EOF".to_owned();
    }
    super::chain(error)
}

/// Returns the error of a response whose body ended early.
pub(super) fn read(error: &hyper::Error) -> String {
    match error.is_incomplete_message() || error.is_body_write_aborted() {
        true => "unexpected EOF".to_owned(),
        false => match find::<io::Error>(error).map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) => "unexpected EOF".to_owned(),
            _ => super::chain(error),
        },
    }
}

fn tls_error(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(why) = error else {
        return match error {
            rustls::Error::InvalidMessage(_) => {
                "http: server gave HTTP response to HTTPS client".to_owned()
            }
            error => format!("tls: {error}"),
        };
    };
    let why = match why {
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::InvalidPurpose => "certificate signed by unknown authority".to_owned(),
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let presented: Vec<&str> = presented.iter().map(|name| san(name)).collect();
            let expected = expected.to_str();
            match presented.is_empty() {
                true => format!(
                    "certificate is not valid for any names, but wanted to match {expected}"
                ),
                false => format!(
                    "certificate is valid for {}, not {expected}",
                    presented.join(", ")
                ),
            }
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// Returns the name in the form of rustls, such as `DnsName("localhost")`, without the form.
fn san(name: &str) -> &str {
    match (name.find('"'), name.rfind('"')) {
        (Some(start), Some(end)) if start < end => name.get(start + 1..end).unwrap_or(name),
        _ => name,
    }
}

/// Returns the first cause of the type `E`.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    if let Some(found) = error.downcast_ref::<E>() {
        return Some(found);
    }
    // The source of an I/O error is that of the error which it wraps, and not that error itself.
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match (wrapped, error.source()) {
        (Some(wrapped), _) => find(wrapped),
        (None, Some(source)) => find(source),
        (None, None) => None,
    }
}

/// Formats a duration as Go does, in whole seconds: `10s`, `1m30s`.
pub(crate) fn duration(duration: Duration) -> String {
    let rounds_up = duration.subsec_nanos() > 0;
    let seconds = duration.as_secs() + u64::from(rounds_up);
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}
