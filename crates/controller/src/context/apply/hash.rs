//! Hashes of JSON values that are stable across processes and releases.

use serde_json::Value;

/// Start value of FNV-1a with 64 bits (draft-eastlake-fnv).
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Returns the hash of `value`. The order of an object's fields does not matter.
pub(crate) fn hash_of(value: &Value) -> u64 {
    add(OFFSET, value)
}

/// Returns the hash of the field names of `value` and of the lengths of its lists. The hash does
/// not depend on the values of fields, so it may be shown to users who may not see the values.
pub(crate) fn shape_of(value: &Value) -> u64 {
    add_shape(OFFSET, value)
}

fn add_shape(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Array(items) => {
            let hash = sized(hash, b"a", items.len());
            items.iter().fold(hash, add_shape)
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            let hash = sized(hash, b"o", sorted.len());
            sorted.into_iter().fold(hash, |hash, (name, value)| {
                add_shape(text(hash, b"k", name), value)
            })
        }
        _ => bytes(hash, b"v"),
    }
}

/// Adds `value` to the hash. The type and the length of `value` are added first, so that different
/// values are never encoded as the same bytes.
fn add(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Null => bytes(hash, b"0"),
        Value::Bool(false) => bytes(hash, b"f"),
        Value::Bool(true) => bytes(hash, b"t"),
        Value::Number(number) => text(hash, b"n", &number.to_string()),
        Value::String(string) => text(hash, b"s", string),
        Value::Array(items) => items.iter().fold(sized(hash, b"a", items.len()), add),
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            let hash = sized(hash, b"o", sorted.len());
            sorted.into_iter().fold(hash, |hash, (name, value)| {
                add(text(hash, b"k", name), value)
            })
        }
    }
}

fn text(hash: u64, tag: &[u8], text: &str) -> u64 {
    bytes(sized(hash, tag, text.len()), text.as_bytes())
}

fn sized(hash: u64, tag: &[u8], len: usize) -> u64 {
    bytes(bytes(hash, tag), &(len as u64).to_le_bytes())
}

fn bytes(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(hash, step)
}

#[cfg(test)]
mod tests;
