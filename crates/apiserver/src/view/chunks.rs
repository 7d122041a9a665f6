//! The body of a list, which is written in chunks while it is sent.

use std::fmt;

use bytes::Bytes;

/// Minimum length in bytes of a chunk, except the last one. A chunk of this length is long compared
/// with a TLS record (16 KiB), and short compared with the memory of a connection.
const CHUNK: usize = 64 * 1024;

type Append = dyn FnMut(&mut Vec<u8>) -> bool + Send;

/// An iterator of the chunks of a body. A chunk is written when it is requested.
pub(crate) struct Chunks {
    /// The bytes before the items, until the first chunk is written.
    start: Vec<u8>,
    /// Appends the next item. Returns false if there is none.
    append: Box<Append>,
    /// The bytes after the items, until the last chunk is written.
    end: Option<&'static [u8]>,
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").finish_non_exhaustive()
    }
}

impl Chunks {
    pub(super) fn new(
        start: Vec<u8>,
        append: impl FnMut(&mut Vec<u8>) -> bool + Send + 'static,
        end: &'static [u8],
    ) -> Self {
        Self {
            start,
            append: Box::new(append),
            end: Some(end),
        }
    }

    /// Returns a body that is already written.
    pub(super) fn one(body: Bytes) -> Self {
        Self::new(body.into(), |_| false, b"")
    }
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let end = self.end?;
        let mut out = std::mem::take(&mut self.start);
        if out.is_empty() {
            // The last item usually exceeds the length of a chunk a little.
            out.reserve(CHUNK + CHUNK / 8);
        }
        while out.len() < CHUNK {
            if !(self.append)(&mut out) {
                out.extend_from_slice(end);
                self.end = None;
                break;
            }
        }
        Some(out.into())
    }
}
