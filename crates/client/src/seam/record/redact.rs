//! Removal of secrets from recorded bodies.

use bytes::Bytes;
use opkit_apimachinery::redact::{LAST_APPLIED_CONFIGURATION, redact, replace};
use serde_json::Value;

use super::RecordedBody;
use crate::RequestInfo;

/// Returns the beginning of a body without secrets. The result is empty if the body may contain
/// secrets and cannot be parsed.
pub(super) fn recorded(info: &RequestInfo, body: &[u8], length: u64, max: usize) -> RecordedBody {
    let kept = body.get(..max.min(body.len())).unwrap_or_default();
    let whole = u64::try_from(kept.len()).is_ok_and(|kept| kept == length);
    let is_sensitive = is_sensitive(info, kept);
    if !is_sensitive && !contains(kept, LAST_APPLIED_CONFIGURATION.as_bytes()) {
        return RecordedBody {
            bytes: Bytes::copy_from_slice(kept),
            length,
            redacted: false,
        };
    }
    let value = serde_json::from_slice::<Value>(kept).ok();
    let value = value.filter(|_| whole).map(|mut value| {
        match is_sensitive {
            true => redact_secrets(&mut value),
            false => redact("", &mut value),
        }
        value
    });
    let bytes = value.and_then(|value| serde_json::to_vec(&value).ok());
    RecordedBody {
        bytes: bytes.unwrap_or_default().into(),
        length,
        redacted: length > 0,
    }
}

fn is_sensitive(info: &RequestInfo, body: &[u8]) -> bool {
    let token = info.subresource.as_deref() == Some("token");
    let resource = matches!(
        info.plural.as_str(),
        "secrets" | "tokenreviews" | "tokenrequests"
    );
    // A List of mixed kinds, or a response for another resource that contains a Secret.
    token || resource || contains(body, b"\"Secret\"") || contains(body, b"\"TokenRe")
}

fn contains(body: &[u8], needle: &[u8]) -> bool {
    body.windows(needle.len()).any(|window| window == needle)
}

fn redact_secrets(value: &mut Value) {
    match value {
        // A list of operations is a JSON patch, whose values may be secret data.
        Value::Array(items) => {
            for item in items {
                if item.get("op").is_some() {
                    item.get_mut("value").into_iter().for_each(replace);
                }
                redact_secrets(item);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "data" | "stringData" | "token" | LAST_APPLIED_CONFIGURATION => replace(field),
                    _ => redact_secrets(field),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
