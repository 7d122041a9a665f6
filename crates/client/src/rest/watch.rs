//! The response to a watch, split into events: lines of JSON, or frames of protobuf.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;

use super::send::unreachable;
use crate::{Call, Encoding, RequestError};

/// Maximum length of an event in bytes. etcd stores objects up to 1.5 MB; aggregated API servers
/// may have larger objects.
const EVENT_MAX: usize = 64 << 20;
/// Number of bytes of the big-endian length before each protobuf event.
const LENGTH: usize = 4;

/// Events of a watch, not decoded: each is a JSON document, or a protobuf message.
#[derive(Debug)]
pub struct WatchFrames {
    call: Box<Call>,
    body: kube::client::Body,
    splitter: Splitter,
}

impl WatchFrames {
    pub(super) fn new(call: Box<Call>, body: kube::client::Body, encoding: Encoding) -> Self {
        Self {
            call,
            body,
            splitter: Splitter::new(encoding),
        }
    }

    /// Returns the encoding of the events.
    pub fn encoding(&self) -> Encoding {
        self.splitter.encoding
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Waits for the next event. Returns `None` if the server has ended the watch. An event cut off
    /// by the end of the connection is dropped: the next watch delivers it again.
    ///
    /// # Errors
    /// If the connection breaks, or an event is longer than 64 MiB.
    ///
    /// # Cancel safety
    /// Received bytes stay in the buffer, so that no event is lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, RequestError>> {
        loop {
            if let Some(event) = self.buffered() {
                return Some(event);
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.splitter.push(data);
                    }
                }
                Err(cause) => return Some(Err(unreachable(&self.call, cause))),
            }
        }
    }

    /// Returns the next event if it was received completely. Does not wait.
    ///
    /// # Errors
    /// If an event is longer than 64 MiB.
    pub fn buffered(&mut self) -> Option<Result<Bytes, RequestError>> {
        match self.splitter.split() {
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

/// Splits a stream of bytes into events. An event that lies within one chunk is not copied.
#[derive(Debug)]
pub(super) struct Splitter {
    encoding: Encoding,
    /// Start of an event whose end was not received yet. In JSON, contains no line end.
    partial: BytesMut,
    /// Bytes received after `partial`.
    rest: Bytes,
}

#[derive(Debug)]
pub(super) struct TooLong;

impl Splitter {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            partial: BytesMut::new(),
            rest: Bytes::new(),
        }
    }

    /// Adds the next chunk of the response. The caller has already split off all complete events of
    /// earlier chunks.
    pub(super) fn push(&mut self, chunk: Bytes) {
        if self.rest.is_empty() {
            self.rest = chunk;
        } else {
            self.partial.extend_from_slice(&self.rest);
            self.rest = chunk;
        }
    }

    pub(super) fn split(&mut self) -> Result<Option<Bytes>, TooLong> {
        let event = match self.encoding {
            Encoding::Json => self.line(),
            Encoding::Protobuf => self.message()?,
        };
        match event {
            None if self.partial.len() > EVENT_MAX => Err(TooLong),
            event => Ok(event),
        }
    }

    fn line(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.rest) else {
                self.partial.extend_from_slice(&self.rest);
                self.rest.clear();
                return None;
            };
            let mut line = self.rest.split_to(end);
            // The line end itself.
            self.rest.advance(1);
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(&line);
                line = self.partial.split().freeze();
            }
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    fn message(&mut self) -> Result<Option<Bytes>, TooLong> {
        // The length may be spread over chunks; it is then joined first.
        while !self.partial.is_empty() && self.partial.len() < LENGTH && self.rest.has_remaining() {
            self.partial.extend_from_slice(&[self.rest.get_u8()]);
        }
        let head = match self.partial.is_empty() {
            true => self.rest.first_chunk::<LENGTH>(),
            false => self.partial.first_chunk::<LENGTH>(),
        };
        let Some(head) = head else {
            self.partial.extend_from_slice(&self.rest);
            self.rest.clear();
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length > EVENT_MAX {
            return Err(TooLong);
        }
        let whole = LENGTH.saturating_add(length);
        let missing = whole.saturating_sub(self.partial.len());
        if self.rest.len() < missing {
            self.partial.extend_from_slice(&self.rest);
            self.rest.clear();
            return Ok(None);
        }
        let mut message = self.rest.split_to(missing);
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(&message);
            message = self.partial.split().freeze();
        }
        message.advance(LENGTH);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
