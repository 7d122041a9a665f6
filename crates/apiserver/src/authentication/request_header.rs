//! Users in the headers of a front proxy, which has a client certificate of an authority of its
//! own.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;

use super::Identity;
use super::certificate::ClientCertificates;
use crate::error::StartError;

/// The options of front proxies (`--requestheader-*`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestHeaderOptions {
    /// Certificates, as PEM, of the authorities that sign the certificates of front proxies.
    pub client_ca: String,
    /// The common names that the certificate of a front proxy may have. If there are none, every
    /// name is allowed.
    pub allowed_names: Vec<String>,
    /// Headers with the name of the user. The first that is present is used.
    pub username_headers: Vec<String>,
    /// Headers with the UID of the user. The first that is present is used.
    pub uid_headers: Vec<String>,
    /// Headers with the groups of the user.
    pub group_headers: Vec<String>,
    /// Prefixes of headers with extra fields of the user.
    pub extra_headers_prefixes: Vec<String>,
}

impl RequestHeaderOptions {
    /// Returns the options for front proxies with certificates of these authorities. The headers
    /// are those that Kubernetes' own front proxy sets, such as `X-Remote-User`.
    #[must_use]
    pub fn new(client_ca: impl Into<String>) -> Self {
        let header = |name: &str| vec![name.to_owned()];
        Self {
            client_ca: client_ca.into(),
            allowed_names: Vec::new(),
            username_headers: header("X-Remote-User"),
            uid_headers: header("X-Remote-Uid"),
            group_headers: header("X-Remote-Group"),
            extra_headers_prefixes: header("X-Remote-Extra-"),
        }
    }
}

/// The authenticator of requests that a front proxy sends.
#[derive(Debug)]
pub(crate) struct RequestHeaders {
    options: RequestHeaderOptions,
    certificates: ClientCertificates,
}

impl RequestHeaders {
    pub(super) fn new(options: &RequestHeaderOptions) -> Result<Self, StartError> {
        let certificates =
            ClientCertificates::of_authorities("request header client CA", &options.client_ca)?;
        Ok(Self {
            options: options.clone(),
            certificates,
        })
    }

    /// Reports whether the certificates of a connection are those of a front proxy. The error is
    /// the reason why a certificate of the right authority is refused.
    pub(super) fn is_front_proxy(
        &self,
        certificates: Option<&[CertificateDer<'_>]>,
    ) -> Result<bool, Arc<str>> {
        let Some(name) = self.certificates.common_name(certificates) else {
            return Ok(false);
        };
        let allowed = &self.options.allowed_names;
        match allowed.is_empty() || allowed.contains(&name) {
            true => Ok(true),
            false => Err(format!("x509: subject with cn={name} is not in the allowed list").into()),
        }
    }

    /// Returns the user in the headers of a front proxy, or `None` if the headers name no user.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<Identity> {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |names: &[String]| {
            let values = names.iter().filter_map(|name| headers.get(name));
            values.map(text).find(|value| !value.is_empty())
        };
        let user = first(&self.options.username_headers)?;
        let groups = self.options.group_headers.iter();
        let groups = groups.flat_map(|name| headers.get_all(name)).map(text);
        let mut identity = Identity::authenticated(user, groups.collect());
        identity.uid = first(&self.options.uid_headers).unwrap_or_default();
        identity.extra = self.extra(headers);
        Some(identity)
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            for prefix in &self.options.extra_headers_prefixes {
                let Some(key) = name.as_str().strip_prefix(&prefix.to_lowercase()) else {
                    continue;
                };
                let key = percent_decode_str(key).decode_utf8();
                let Ok(key) = key.map(|key| key.to_lowercase()) else {
                    continue;
                };
                let values = extra.entry(key).or_default();
                values.push(String::from_utf8_lossy(value.as_bytes()).into_owned());
            }
        }
        extra
    }
}
