//! Kubernetes' rules for names of objects, finalizers and field managers.

use crate::selector::label_key_errors;

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const RFC_1035_LABEL_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric \
    characters or '-', start with an alphabetic character, and end with an alphanumeric character \
    (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Maximum length of a DNS label, such as the name of a namespace, in bytes.
pub const DNS_LABEL_MAX: usize = 63;
/// Maximum length of a DNS subdomain, such as the name of most objects, in bytes.
pub const DNS_SUBDOMAIN_MAX: usize = 253;
/// Maximum length of the name of a field manager, in bytes.
const FIELD_MANAGER_MAX: usize = 128;

/// Reports whether `text` is a DNS label: lowercase letters, digits and inner dashes. The length is
/// not checked.
pub fn is_dns_label(text: &str) -> bool {
    let is_edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(|b| is_edge(b) || *b == b'-')
}

/// Reports whether `text` is a DNS subdomain: DNS labels joined by dots. The length is not checked.
fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Checks the name of an object of a kind whose names are DNS labels, such as Namespace.
///
/// # Errors
/// Returns the violated rule in Kubernetes' words.
///
/// # Examples
/// ```
/// use opkit_apimachinery::names::check_dns_label;
/// assert_eq!(check_dns_label("kube-system"), Ok(()));
/// assert!(check_dns_label("kube-system/secrets").is_err());
/// ```
pub fn check_dns_label(text: &str) -> Result<(), String> {
    check(text, DNS_LABEL_MAX, is_dns_label, LABEL_RULE)
}

/// Checks the name of an object of a kind whose names are DNS subdomains, such as Lease.
///
/// # Errors
/// Returns the violated rule in Kubernetes' words.
pub fn check_dns_subdomain(text: &str) -> Result<(), String> {
    check(text, DNS_SUBDOMAIN_MAX, is_dns_subdomain, SUBDOMAIN_RULE)
}

/// Checks a DNS label that starts with a letter, such as the version of a group.
///
/// # Errors
/// Returns the violated rule in Kubernetes' words.
pub fn check_rfc_1035_label(text: &str) -> Result<(), String> {
    let holds =
        |text: &str| is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    if text.len() > DNS_LABEL_MAX {
        return Err(format!("must be no more than {DNS_LABEL_MAX} characters"));
    }
    check(text, DNS_LABEL_MAX, holds, RFC_1035_LABEL_RULE)
}

fn check(text: &str, max: usize, holds: fn(&str) -> bool, rule: &str) -> Result<(), String> {
    match text {
        _ if text.len() > max => Err(format!("must be no more than {max} bytes")),
        _ if holds(text) => Ok(()),
        _ => Err(rule.to_owned()),
    }
}

/// Checks a finalizer of an operator, which must be a domain, a slash and a name. Kubernetes
/// rejects finalizers without a domain, except those that it defines itself.
///
/// # Errors
/// Returns the violated rule.
///
/// # Examples
/// ```
/// use opkit_apimachinery::names::check_finalizer;
/// assert_eq!(check_finalizer("shop.opkit.dev/cleanup"), Ok(()));
/// assert!(check_finalizer("cleanup").unwrap_err().contains("domain"));
/// ```
pub fn check_finalizer(finalizer: &str) -> Result<(), String> {
    match label_key_errors(finalizer).as_slice() {
        [] if finalizer.contains('/') => Ok(()),
        [] => Err("it must have a domain before its name, such as example.com/cleanup".to_owned()),
        wrong => Err(wrong.join("; ")),
    }
}

/// Checks the name of a field manager.
///
/// # Errors
/// Returns the violated rule in Kubernetes' words.
pub fn check_field_manager(manager: &str) -> Result<(), String> {
    match manager {
        "" => Err("must not be empty".to_owned()),
        _ if manager.len() > FIELD_MANAGER_MAX => {
            Err(format!("must be no more than {FIELD_MANAGER_MAX} bytes"))
        }
        _ if manager.contains(char::is_control) => {
            Err("should only contain printable characters".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
