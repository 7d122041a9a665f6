//! Compression of long responses.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Minimum length in bytes of a body that is compressed, as in Kubernetes. Shorter bodies are not
/// worth the time.
const THRESHOLD: usize = 128 * 1024;

/// Returns the compressed body, or `None` if the body is too short or the client does not accept
/// gzip. As in Kubernetes, `gzip` with a quality (`gzip;q=1`) in `accept_encoding` does not count
/// as accepted.
pub(crate) fn gzip(accept_encoding: &str, body: &Bytes) -> Option<Bytes> {
    let is_accepted = accept_encoding.split(',').any(|name| name.trim() == "gzip");
    if !is_accepted || body.len() <= THRESHOLD {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
