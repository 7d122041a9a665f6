//! Long answers, compressed for who asks for it.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Kubernetes compresses nothing that is shorter: the time is worth more than the bytes.
const THRESHOLD: usize = 128 * 1024;

/// The body, compressed if the client accepts that and it is long enough. The names of the header
/// are taken as they stand, as Kubernetes takes them: one with a quality is not `gzip`.
pub(crate) fn gzip(accept_encoding: &str, body: &Bytes) -> Option<Bytes> {
    let is_accepted = accept_encoding.split(',').any(|name| name.trim() == "gzip");
    if !is_accepted || body.len() <= THRESHOLD {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
