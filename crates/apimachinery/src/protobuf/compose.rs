//! Composes envelopes and lists from messages that are already encoded.

use super::MAGIC;
use super::wire::Writer;

/// Bytes of an envelope after the message: an empty content encoding and an empty content type.
pub const ENVELOPE_END: &[u8] = b"\x1a\0\x22\0";

/// Returns the bytes of an envelope before a message of `length` bytes.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{ENVELOPE_END, encode, encode_message, envelope_start};
/// use serde_json::json;
///
/// let object = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VjcmV0"}});
/// let message = encode_message(&object)?;
/// let start = envelope_start("v1", "Secret", message.len());
/// assert_eq!([&start, message.as_slice(), ENVELOPE_END].concat(), encode(&object)?);
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
pub fn envelope_start(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut out = Writer::default();
    out.varint(length as u64);
    out.tag(2, 2);
    let meta = out.position();
    out.bytes(kind.as_bytes());
    out.length_since(meta, 2);
    let group_version = out.position();
    out.bytes(api_version.as_bytes());
    out.length_since(group_version, 1);
    out.length_since(meta, 1);
    out.bytes(MAGIC);
    out.finish()
}

/// Appends an item to the message of a list. The message of a list without items, as
/// [`encode_message`](super::encode_message) returns it, is the start of every list.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{append_item, encode_message, item_length};
/// use serde_json::json;
///
/// let item = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
/// let list = |items| json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": items});
/// let message = encode_message(&item)?;
///
/// let mut composed = encode_message(&list(json!([])))?;
/// let length = composed.len() + item_length(message.len());
/// append_item(&mut composed, &message);
/// assert_eq!(composed.len(), length);
/// assert_eq!(composed, encode_message(&list(json!([item])))?);
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
pub fn append_item(list: &mut Vec<u8>, message: &[u8]) {
    // Field 2 with a length.
    list.push(2 << 3 | 2);
    let mut length = message.len();
    while length >= 0x80 {
        list.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    list.push(length as u8);
    list.extend_from_slice(message);
}

/// Returns the number of bytes that [`append_item`] appends for a message of `length` bytes.
pub fn item_length(length: usize) -> usize {
    let bits = usize::BITS - length.leading_zeros();
    let digits = bits.div_ceil(7).max(1) as usize;
    1 + digits + length
}
