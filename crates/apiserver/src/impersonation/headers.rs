//! The headers that name the user to impersonate.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue};
use opkit_apimachinery::names;
use percent_encoding::percent_decode_str;

use crate::authentication::Identity;
use crate::status::{ApiError, ApiResult};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// Returns the user whom the headers name, exactly as in the headers, or `None` if no header names
/// a user.
pub(super) fn wanted_user(headers: &HeaderMap) -> ApiResult<Option<Identity>> {
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = Identity {
        user: first(USER),
        uid: first(UID),
        ..Identity::default()
    };
    wanted
        .groups
        .extend(headers.get_all(GROUP).iter().map(text));
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else {
            continue;
        };
        let values = wanted.extra.entry(decode(key)).or_default();
        values.push(text(value));
    }
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    let message = format!(
        "requested {} without impersonating a user name",
        go_text(&wanted)
    );
    Err(ApiError::bad_request(message))
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Decodes the key of an extra value. A key that is not escaped correctly is returned as it is.
fn decode(key: &str) -> String {
    let mut rest = key;
    while let Some((_, after)) = rest.split_once('%') {
        let digits = after.get(..2).unwrap_or_default();
        if digits.len() < 2 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return key.to_owned();
        }
        rest = after;
    }
    percent_decode_str(key).decode_utf8_lossy().into_owned()
}

/// Formats a user as Go does with `%#v`, for the error of Kubernetes.
fn go_text(user: &Identity) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let entries = user.extra.iter();
            let entries: Vec<String> = entries
                .map(|(key, values)| format!("{key:?}:{}", list(values)))
                .collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
        user.user, user.uid
    )
}

/// Returns the reason why extra values cannot be impersonated in a constrained mode, or `None` if
/// they can.
pub(super) fn extra_flaw(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let invalid = |flaw: String| {
        Some(format!(
            "impersonating an invalid key in extra is not allowed: {flaw}"
        ))
    };
    for (key, values) in extra {
        if key.is_empty() {
            let flaw = "impersonating the empty string key in extra is not allowed";
            return Some(flaw.to_owned());
        }
        let (domain, path) = match key.split_once('/') {
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => (domain, path),
            _ => {
                return invalid(format!(
                    "extra.key: Invalid value: {key:?}: must be a domain-prefixed path (such as \
                     \"acme.io/foo\")"
                ));
            }
        };
        if let Err(flaw) = names::check_dns_subdomain(domain) {
            return invalid(format!("extra.key: Invalid value: {domain:?}: {flaw}"));
        }
        let is_segment_char =
            |char: char| char.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:/%".contains(char);
        if !path.chars().all(is_segment_char) {
            return invalid(format!(
                "extra.key: Invalid value: {path:?}: Invalid path (regex used for validation is \
                 '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
            ));
        }
        if *key != key.to_lowercase() {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key:?}"
            ));
        }
        if values.iter().any(String::is_empty) {
            let flaw = "impersonating the empty string value in extra is not allowed";
            return Some(flaw.to_owned());
        }
    }
    None
}
