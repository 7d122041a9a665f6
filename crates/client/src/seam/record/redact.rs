//! Blacking out secrets.

use bytes::Bytes;
use serde_json::Value;

use super::RecordedBody;
use crate::RequestInfo;

const REDACTED: &str = "REDACTED";
/// kubectl keeps the whole of what was applied here, the data of a Secret included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The body as it may be kept: its beginning, or nothing if it might hold secrets and cannot be read.
pub(super) fn recorded(info: &RequestInfo, body: &[u8], length: u64, max: usize) -> RecordedBody {
    let kept = body.get(..max.min(body.len())).unwrap_or_default();
    let whole = u64::try_from(kept.len()).is_ok_and(|kept| kept == length);
    if !is_sensitive(info, kept) {
        return RecordedBody {
            bytes: Bytes::copy_from_slice(kept),
            length,
            redacted: false,
        };
    }
    let value = serde_json::from_slice::<Value>(kept).ok();
    let value = value.filter(|_| whole).map(|mut value| {
        black_out(&mut value);
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
    // A List of mixed kinds, or an answer of another resource that quotes one.
    let quoted = |needle: &[u8]| body.windows(needle.len()).any(|window| window == needle);
    token || resource || quoted(b"\"Secret\"") || quoted(b"\"TokenRe")
}

fn black_out(value: &mut Value) {
    match value {
        // A list of operations is a JSON patch; its values may be data.
        Value::Array(items) => {
            for item in items {
                if item.get("op").is_some() {
                    replace(item.get_mut("value"));
                }
                black_out(item);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "data" | "stringData" | "token" | LAST_APPLIED => replace(Some(field)),
                    _ => black_out(field),
                }
            }
        }
        _ => {}
    }
}

/// Replaces every leaf, so that the names of the keys still show.
fn replace(value: Option<&mut Value>) {
    match value {
        Some(Value::Object(fields)) => fields.values_mut().for_each(|it| replace(Some(it))),
        Some(Value::Array(items)) => items.iter_mut().for_each(|it| replace(Some(it))),
        Some(Value::Null) | None => {}
        Some(other) => *other = REDACTED.into(),
    }
}

#[cfg(test)]
mod tests;
