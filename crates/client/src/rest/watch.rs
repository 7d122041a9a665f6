//! The body of a watch, line by line.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::unreachable;
use crate::{Call, RequestError};

/// The longest line of a watch: etcd keeps objects below 1.5 MB, aggregated servers are generous.
const LINE_MAX: usize = 64 << 20;

/// The events of a watch, one JSON document per line.
#[derive(Debug)]
pub struct WatchLines {
    call: Box<Call>,
    body: kube::client::Body,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
}

impl WatchLines {
    pub(super) fn new(call: Box<Call>, body: kube::client::Body) -> Self {
        WatchLines {
            call,
            body,
            buffer: BytesMut::new(),
            searched: 0,
        }
    }

    /// The next line, or `None` when the server has ended the watch. A line cut off by the end of
    /// the connection is dropped: its event comes again with the next watch.
    ///
    /// # Errors
    /// When the connection breaks, or a line is unreasonably long.
    ///
    /// # Cancel safety
    /// What was received stays in the buffer; call again.
    pub async fn next(&mut self) -> Option<Result<Bytes, RequestError>> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched.saturating_add(end));
                // The line end itself.
                let _ = self.buffer.split_to(1);
                self.searched = 0;
                if line.is_empty() {
                    continue;
                }
                return Some(Ok(line.freeze()));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_MAX {
                let cause = format!("a watch event is longer than {LINE_MAX} bytes");
                return Some(Err(RequestError::Unreachable {
                    call: self.call.clone(),
                    cause: cause.into(),
                }));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Err(cause) => return Some(Err(unreachable(&self.call, cause))),
            }
        }
    }
}
