//! Decides which certificate is created, renewed or removed next.

use crate::CertificateError;
use crate::content::{Authority, AuthorityDates, Content, Serving, ServingDates};
use crate::issue::{self, BACKDATED};
use crate::periods::{Periods, seconds};
use crate::replicas;

#[cfg(test)]
mod tests;

/// What the certificates are for.
#[derive(Clone, Debug)]
pub(crate) struct Purpose {
    /// Name of the operator, which is part of the names of authorities.
    pub(crate) operator: String,
    /// DNS names and IP addresses of the webhook server.
    pub(crate) names: Vec<String>,
    pub(crate) periods: Periods,
}

/// A change of the certificates, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new authority and a serving certificate, because there was no usable one.
    Created,
    AuthorityAdded,
    ServingRenewed,
    AuthorityRemoved,
}

impl Change {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Created => "created the certificate authority of the webhooks",
            Self::AuthorityAdded => "added a new certificate authority to the webhooks' bundle",
            Self::ServingRenewed => "renewed the serving certificate of the webhooks",
            Self::AuthorityRemoved => "removed the old certificate authority from the bundle",
        }
    }
}

/// Makes at most one change to `content`. `now` is in seconds since 1970. `confirmed` is the time
/// since which all webhook configurations have had the current bundle, or `None` if one of them
/// does not have it.
///
/// # Errors
/// If a certificate cannot be created.
pub(crate) fn rotate(
    content: &mut Content,
    purpose: &Purpose,
    confirmed: Option<i64>,
    now: i64,
) -> Result<Option<Change>, CertificateError> {
    content
        .authorities
        .retain(|authority| is_valid(authority.dates.added, authority.dates.expires, now));
    let propagation = seconds(purpose.periods.propagation);
    let is_propagated = |since: Option<i64>| since.is_some_and(|since| now - since >= propagation);
    let (Some(newest), Some(serving)) = (content.authorities.first(), &content.serving) else {
        return create(content, purpose, now);
    };
    let oldest = content.authorities.last().unwrap_or(newest);
    let lacks = |name: &&String| !serving.dates.names.contains(name);
    if purpose.names.iter().any(|name| lacks(&name)) {
        // During an update of the operator, replicas may have different names. A certificate with
        // the names of all of them suits each, so that they do not replace it in turn.
        let mut names = serving.dates.names.clone();
        names.extend(purpose.names.iter().filter(lacks).cloned());
        content.serving = Some(sign(oldest, purpose, &names, now)?);
        return Ok(Some(Change::ServingRenewed));
    }
    if !is_valid(serving.dates.issued, serving.dates.expires, now)
        || !content
            .authorities
            .iter()
            .any(|authority| authority.dates.name == serving.dates.authority)
    {
        // The certificate is of no use, so that there is nothing to wait for: the oldest authority
        // is the one that most API servers have.
        content.serving = Some(sign(oldest, purpose, &purpose.names, now)?);
        return Ok(Some(Change::ServingRenewed));
    }
    let is_rotating = content.authorities.len() > 1;
    let is_signed_by_newest = serving.dates.authority == newest.dates.name;
    if is_rotating && is_signed_by_newest {
        let since = replicas::all_serve_since(content, &serving.fingerprint());
        let since = since.map(|since| since.max(serving.dates.issued));
        if is_propagated(since) {
            content.authorities.truncate(1);
            return Ok(Some(Change::AuthorityRemoved));
        }
    } else if is_rotating {
        let since = confirmed.map(|since| since.max(newest.dates.added));
        if is_propagated(since) {
            content.serving = Some(sign(newest, purpose, &purpose.names, now)?);
            return Ok(Some(Change::ServingRenewed));
        }
    } else if is_due(newest.dates.added, newest.dates.expires, now) {
        let authority = new_authority(purpose, now)?;
        content.authorities.insert(0, authority);
        return Ok(Some(Change::AuthorityAdded));
    }
    if is_due(serving.dates.issued, serving.dates.expires, now) {
        let signer = content
            .authorities
            .iter()
            .find(|authority| authority.dates.name == serving.dates.authority)
            .unwrap_or(oldest);
        let renewed = sign(signer, purpose, &purpose.names, now)?;
        // Near its end an authority signs certificates that are due at once.
        if renewed.dates.expires > serving.dates.expires {
            content.serving = Some(renewed);
            return Ok(Some(Change::ServingRenewed));
        }
    }
    Ok(None)
}

/// Creates an authority and a serving certificate.
fn create(
    content: &mut Content,
    purpose: &Purpose,
    now: i64,
) -> Result<Option<Change>, CertificateError> {
    let authority = new_authority(purpose, now)?;
    content.serving = Some(sign(&authority, purpose, &purpose.names, now)?);
    content.authorities = vec![authority];
    Ok(Some(Change::Created))
}

fn new_authority(purpose: &Purpose, now: i64) -> Result<Authority, CertificateError> {
    let expires = now + seconds(purpose.periods.authority);
    let mut name = format!("{} webhook CA {now}", purpose.operator);
    // A common name has at most 64 bytes; the end makes the name unique.
    if name.len() > 64 {
        name = format!("webhook CA {now}");
    }
    Ok(Authority {
        pair: issue::authority(&name, now, expires)?,
        dates: AuthorityDates {
            name,
            added: now,
            expires,
        },
    })
}

fn sign(
    authority: &Authority,
    purpose: &Purpose,
    names: &[String],
    now: i64,
) -> Result<Serving, CertificateError> {
    let expires = (now + seconds(purpose.periods.serving)).min(authority.dates.expires);
    let (name, key) = (&authority.dates.name, &authority.pair.key);
    Ok(Serving {
        pair: issue::serving(name, key, names, now, expires)?,
        dates: ServingDates {
            authority: name.clone(),
            names: names.to_vec(),
            issued: now,
            expires,
        },
    })
}

/// Returns whether a certificate is valid. One from the future is not: it was issued before the
/// clock of the API server was set back.
fn is_valid(from: i64, until: i64, now: i64) -> bool {
    from - BACKDATED <= now && now < until
}

/// Returns whether two thirds of a lifetime are over.
fn is_due(from: i64, until: i64, now: i64) -> bool {
    now - from >= (until - from) / 3 * 2
}
