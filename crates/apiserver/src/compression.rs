//! Compression of long responses.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Maximum length in bytes of a body that is not compressed, as in Kubernetes. Shorter bodies are
/// not worth the time.
pub(crate) const THRESHOLD: usize = 128 * 1024;

/// Reports whether a client with this header `Accept-Encoding` accepts gzip. As in Kubernetes,
/// `gzip` with a quality (`gzip;q=1`) does not count as accepted.
pub(crate) fn is_accepted(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|name| name.trim() == "gzip")
}

/// Returns the compressed form of a body, chunk by chunk. A chunk of the body is compressed when
/// the next compressed chunk is requested.
pub(crate) fn gzip(chunks: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Bytes> {
    let mut chunks = chunks;
    let mut encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    std::iter::from_fn(move || {
        loop {
            let mut open = encoder.take()?;
            // Writing to memory does not fail.
            let Some(chunk) = chunks.next() else {
                return open.finish().ok().map(Bytes::from);
            };
            open.write_all(&chunk).ok()?;
            let written = std::mem::take(open.get_mut());
            encoder = Some(open);
            if !written.is_empty() {
                return Some(written.into());
            }
        }
    })
}
