//! Hash of a JSON value that is the same in every process and in every release: FNV-1a of 64 bits.

use serde_json::Value;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Returns the hash of a value as 16 hexadecimal digits. The order of the fields of an object does
/// not matter.
pub(super) fn hash(value: &Value) -> String {
    let mut state = OFFSET;
    add(&mut state, value);
    format!("{state:016x}")
}

fn add(state: &mut u64, value: &Value) {
    match value {
        Value::Null => bytes(state, b"n"),
        Value::Bool(value) => bytes(state, if *value { b"t" } else { b"f" }),
        Value::Number(number) => {
            bytes(state, b"#");
            text(state, &number.to_string());
        }
        Value::String(value) => {
            bytes(state, b"\"");
            text(state, value);
        }
        Value::Array(items) => {
            bytes(state, b"[");
            items.iter().for_each(|item| add(state, item));
            bytes(state, b"]");
        }
        Value::Object(fields) => {
            bytes(state, b"{");
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            for (name, value) in fields {
                text(state, name);
                add(state, value);
            }
            bytes(state, b"}");
        }
    }
}

/// Adds the length and the bytes of a text, so that two texts do not run together.
fn text(state: &mut u64, text: &str) {
    bytes(state, &(text.len() as u64).to_le_bytes());
    bytes(state, text.as_bytes());
}

fn bytes(state: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *state = (*state ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_never_changes() {
        // Stored annotations contain such hashes.
        assert_eq!(hash(&json!(null)), "af63e34c8601f871");
        assert_ne!(hash(&json!(["ab", "c"])), hash(&json!(["a", "bc"])));
        assert_ne!(hash(&json!(1)), hash(&json!("1")));
        assert_ne!(hash(&json!({})), hash(&json!([])));
        assert_ne!(hash(&json!([[], []])), hash(&json!([[[]]])));
        assert_eq!(
            hash(&json!({"a": 1, "b": 2})),
            hash(&json!({"b": 2, "a": 1}))
        );
    }
}
