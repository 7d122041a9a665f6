//! Copying of a tape (the stored binary form) without the fields that a Rust type does not read.

use crate::object::Ignored;

/// Copies `tape` into `out` without the entries in `ignored`, which
/// [`decode`](super::deserialize::decode) has recorded in order.
pub(crate) fn without(tape: &[u8], ignored: &Ignored, out: &mut Vec<u8>) {
    out.clear();
    let mut from = 0;
    for range in ignored.borrow().iter() {
        out.extend_from_slice(tape.get(from..range.start).unwrap_or_default());
        from = range.end;
    }
    out.extend_from_slice(tape.get(from..).unwrap_or_default());
}
