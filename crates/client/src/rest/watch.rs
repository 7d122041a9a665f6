//! The body of a watch, event by event: lines of JSON, or frames of protobuf.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;

use super::unreachable;
use crate::{Call, Encoding, RequestError};

/// The longest event of a watch: etcd keeps objects below 1.5 MB, aggregated servers are generous.
const EVENT_MAX: usize = 64 << 20;
/// Before a protobuf event stands its length, most significant byte first.
const LENGTH: usize = 4;

/// The events of a watch, each as it came: a JSON document, or a protobuf message.
#[derive(Debug)]
pub struct WatchFrames {
    call: Box<Call>,
    body: kube::client::Body,
    cutter: Cutter,
}

impl WatchFrames {
    pub(super) fn new(call: Box<Call>, body: kube::client::Body, encoding: Encoding) -> Self {
        Self {
            call,
            body,
            cutter: Cutter::new(encoding),
        }
    }

    /// How the events are written.
    pub fn encoding(&self) -> Encoding {
        self.cutter.encoding
    }

    /// The next event, or `None` when the server has ended the watch. An event cut off by the end
    /// of the connection is dropped: it comes again with the next watch.
    ///
    /// # Errors
    /// When the connection breaks, or an event is unreasonably long.
    ///
    /// # Cancel safety
    /// What was received stays in the buffer; call again.
    pub async fn next(&mut self) -> Option<Result<Bytes, RequestError>> {
        loop {
            if let Some(event) = self.buffered() {
                return Some(event);
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.cutter.push(data);
                    }
                }
                Err(cause) => return Some(Err(unreachable(&self.call, cause))),
            }
        }
    }

    /// The next event, if all of it was received already. Does not wait.
    ///
    /// # Errors
    /// When an event is unreasonably long.
    pub fn buffered(&mut self) -> Option<Result<Bytes, RequestError>> {
        match self.cutter.cut() {
            Ok(event) => event.map(Ok),
            Err(TooLong) => {
                let cause = format!("a watch event is longer than {EVENT_MAX} bytes");
                Some(Err(RequestError::Unreachable {
                    call: self.call.clone(),
                    cause: cause.into(),
                }))
            }
        }
    }
}

/// Cuts a stream of bytes into events. One that lies within a piece of the stream is not copied.
#[derive(Debug)]
pub(super) struct Cutter {
    encoding: Encoding,
    /// The begin of an event whose end has not come yet. Holds no line end.
    begun: BytesMut,
    /// What came after it.
    rest: Bytes,
}

#[derive(Debug)]
pub(super) struct TooLong;

impl Cutter {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            begun: BytesMut::new(),
            rest: Bytes::new(),
        }
    }

    /// Takes in the next piece. All events before it have been cut.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.rest.is_empty() {
            self.rest = piece;
        } else {
            self.begun.extend_from_slice(&self.rest);
            self.rest = piece;
        }
    }

    pub(super) fn cut(&mut self) -> Result<Option<Bytes>, TooLong> {
        let event = match self.encoding {
            Encoding::Json => self.line(),
            Encoding::Protobuf => self.message()?,
        };
        match event {
            None if self.begun.len() > EVENT_MAX => Err(TooLong),
            event => Ok(event),
        }
    }

    fn line(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.rest) else {
                self.begun.extend_from_slice(&self.rest);
                self.rest.clear();
                return None;
            };
            let mut line = self.rest.split_to(end);
            // The line end itself.
            self.rest.advance(1);
            if !self.begun.is_empty() {
                self.begun.extend_from_slice(&line);
                line = self.begun.split().freeze();
            }
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    fn message(&mut self) -> Result<Option<Bytes>, TooLong> {
        // The length may lie across pieces; it is then put together first.
        while !self.begun.is_empty() && self.begun.len() < LENGTH && self.rest.has_remaining() {
            self.begun.extend_from_slice(&[self.rest.get_u8()]);
        }
        let head = match self.begun.is_empty() {
            true => self.rest.first_chunk::<LENGTH>(),
            false => self.begun.first_chunk::<LENGTH>(),
        };
        let Some(head) = head else {
            self.begun.extend_from_slice(&self.rest);
            self.rest.clear();
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length > EVENT_MAX {
            return Err(TooLong);
        }
        let whole = LENGTH.saturating_add(length);
        let missing = whole.saturating_sub(self.begun.len());
        if self.rest.len() < missing {
            self.begun.extend_from_slice(&self.rest);
            self.rest.clear();
            return Ok(None);
        }
        let mut message = self.rest.split_to(missing);
        if !self.begun.is_empty() {
            self.begun.extend_from_slice(&message);
            message = self.begun.split().freeze();
        }
        message.advance(LENGTH);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
