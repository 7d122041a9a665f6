//! Rules for texts and numbers in fields. Each function returns the violated rules in the words of
//! Kubernetes, and an empty list if the value is valid.

use opkit_apimachinery::names;
use opkit_apimachinery::selector;

use super::field::{Errors, Field};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SUBDOMAIN_WITH_UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric \
    character (e.g. 'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const RFC_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters \
    or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid \
    DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end \
    with an alphanumeric character (e.g. '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' \
    (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
    'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII \
    characters other than '='";
const PATH: &str = "Invalid path (regex used for validation is \
    '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
/// Maximum number of a user, group or timeout.
const INT_32_MAX: i64 = i32::MAX as i64;

fn too_long(text: &str, max: usize) -> Option<String> {
    (text.len() > max).then(|| format!("must be no more than {max} characters"))
}

fn checked(text: &str, max: usize, is_valid: bool, rule: &str) -> Vec<String> {
    let broken = (!is_valid).then(|| rule.to_owned());
    too_long(text, max).into_iter().chain(broken).collect()
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(names::is_dns_label)
}

pub(super) fn dns_label(text: &str) -> Vec<String> {
    let rule = match is_subdomain(text) {
        true => "must not contain dots",
        false => LABEL,
    };
    checked(text, names::DNS_LABEL_MAX, names::is_dns_label(text), rule)
}

pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    let is_valid = is_subdomain(text);
    checked(text, names::DNS_SUBDOMAIN_MAX, is_valid, SUBDOMAIN)
}

/// The rule for domains in the search list of a resolver, which may have underscores.
pub(super) fn search_domain(text: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        label.starts_with(is_edge)
            && label.ends_with(is_edge)
            && label.chars().all(|c| is_edge(c) || matches!(c, '-' | '_'))
    };
    let is_valid = text.split('.').all(is_label);
    let max = names::DNS_SUBDOMAIN_MAX;
    checked(text, max, is_valid, SUBDOMAIN_WITH_UNDERSCORE)
}

pub(super) fn rfc_1035_label(text: &str) -> Vec<String> {
    let is_valid = names::is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    checked(text, names::DNS_LABEL_MAX, is_valid, RFC_1035_LABEL)
}

pub(super) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let is_valid = text.strip_prefix("*.").is_some_and(is_subdomain);
    checked(text, names::DNS_SUBDOMAIN_MAX, is_valid, WILDCARD)
}

pub(super) fn qualified_name(text: &str) -> Vec<String> {
    selector::label_key_errors(text)
}

pub(super) fn label_value(text: &str) -> Vec<String> {
    selector::label_value_errors(text)
}

/// The rule for a name that is a segment of a URL.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let contained = ["/", "%"].into_iter().filter(|part| text.contains(part));
    contained
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// The rule for keys of ConfigMaps and Secrets.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_valid = !text.is_empty() && text.chars().all(is_part);
    let mut rules = checked(text, names::DNS_SUBDOMAIN_MAX, is_valid, CONFIG_KEY);
    match text {
        "." | ".." => rules.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => rules.push("must not start with '..'".to_owned()),
        _ => {}
    }
    rules
}

pub(super) fn variable_name(text: &str) -> Vec<String> {
    let is_printable = |c: char| (' '..='~').contains(&c) && c != '=';
    match text {
        "" => vec!["environment variable name must be non-empty".to_owned()],
        _ if !text.chars().all(is_printable) => vec![VARIABLE.to_owned()],
        _ => Vec::new(),
    }
}

pub(super) fn header_name(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match !text.is_empty() && text.chars().all(is_part) {
        true => Vec::new(),
        false => vec![HEADER.to_owned()],
    }
}

pub(super) fn port_number(number: i64) -> Vec<String> {
    in_range(number, 1, 65_535)
}

/// The rule for the number of a user or group.
pub(super) fn user_id(number: i64) -> Vec<String> {
    in_range(number, 0, INT_32_MAX)
}

pub(super) fn in_range(number: i64, min: i64, max: i64) -> Vec<String> {
    match (min..=max).contains(&number) {
        true => Vec::new(),
        false => vec![format!("must be between {min} and {max}, inclusive")],
    }
}

pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut rules: Vec<String> = too_long(text, 15).into_iter().collect();
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut broken = |is_broken: bool, rule: &str| {
        if is_broken {
            rules.push(rule.to_owned());
        }
    };
    broken(
        text.is_empty() || !text.chars().all(is_part),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    broken(
        !text.contains(|c: char| c.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    broken(text.contains("--"), "must not contain consecutive hyphens");
    broken(
        text.starts_with('-') || text.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    rules
}

/// Returns the number of a percentage such as `25%`.
pub(super) fn percentage(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

pub(super) fn percent(text: &str) -> Vec<String> {
    match percentage(text) {
        Some(_) => Vec::new(),
        None => vec![PERCENT.to_owned()],
    }
}

/// Adds the errors in a port, which is a number or the name of a port of a container.
pub(super) fn port(field: &Field<'_>, errors: &mut Errors) {
    match field.value.as_str() {
        Some(name) => errors.rules(field, port_name(name)),
        None => {
            for rule in port_number(field.int()) {
                errors.invalid_int(field, &rule);
            }
        }
    }
}

/// Adds the errors in a number that must be in a range.
pub(super) fn range(field: &Field<'_>, rules: Vec<String>, errors: &mut Errors) {
    for rule in rules {
        errors.invalid_int(field, &rule);
    }
}

/// Adds the errors in a domain with a path, such as `example.com/controller`.
pub(super) fn domain_prefixed_path(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    if text.is_empty() {
        return errors.required(field, "");
    }
    let (host, path) = text.split_once('/').unwrap_or_default();
    if host.is_empty() || path.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return errors.invalid(field, detail);
    }
    for rule in dns_subdomain(host) {
        errors.invalid_value(&field.path, host.into(), &rule);
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !path.chars().all(is_part) {
        errors.invalid_value(&field.path, path.into(), PATH);
    }
}

/// Adds the errors in a domain of at least three segments, such as the name of a webhook.
pub(super) fn fully_qualified_name(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    let rules = dns_subdomain(text);
    if text.is_empty() {
        errors.required(field, "");
    } else if !rules.is_empty() {
        errors.invalid(field, &rules.join(","));
    } else if text.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.invalid(field, detail);
    }
}

/// Adds an error if a path has a step `..`.
pub(super) fn no_backsteps(field: &Field<'_>, errors: &mut Errors) {
    if has_backsteps(field.text()) {
        errors.invalid_text(field, "must not contain '..'");
    }
}

pub(super) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

/// Adds the errors in a path that must stay below another path.
pub(super) fn descending_path(field: &Field<'_>, errors: &mut Errors) {
    if field.text().starts_with('/') {
        errors.invalid_text(field, "must be a relative path");
    }
    no_backsteps(field, errors);
}

/// Adds the errors in the path of a file in a volume. Names that start with `..` are reserved.
pub(super) fn local_path(field: &Field<'_>, errors: &mut Errors) {
    descending_path(field, errors);
    let text = field.text();
    if text.starts_with("..") && !text.starts_with("../") {
        errors.invalid_text(field, "must not start with '..'");
    }
}

#[cfg(test)]
mod tests;
