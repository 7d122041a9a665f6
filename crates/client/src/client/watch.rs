//! Decoding of the events of a watch into Rust types.

use std::pin::Pin;

use futures::Stream;
use kube::core::{Status, WatchEvent};
use serde::de::DeserializeOwned;

use crate::{Call, Encoding, RequestError, WatchFrames, codec};

/// Decodes the events of a watch. An event that cannot be decoded is an error in the stream, which
/// then continues.
pub(crate) fn events<K: DeserializeOwned + Send + 'static>(
    frames: WatchFrames,
) -> Pin<Box<dyn Stream<Item = Result<WatchEvent<K>, RequestError>> + Send>> {
    Box::pin(futures::stream::unfold(Some(frames), |frames| async {
        let mut frames = frames?;
        let encoding = frames.encoding();
        match frames.next().await? {
            Ok(frame) => match decode::<K>(frames.call(), &frame, encoding) {
                // The server ends the watch after an event of type ERROR.
                Err(error @ RequestError::Refused { .. }) => Some((Err(error), None)),
                event => Some((event, Some(frames))),
            },
            Err(error) => Some((Err(error), None)),
        }
    }))
}

fn decode<K: DeserializeOwned>(
    call: &Call,
    frame: &[u8],
    encoding: Encoding,
) -> Result<WatchEvent<K>, RequestError> {
    let event = codec::event(frame, encoding).map_err(|cause| RequestError::Decode {
        call: Box::new(call.clone()),
        cause,
    })?;
    match event {
        WatchEvent::Error(status) => Err(refused(call, status)),
        event => Ok(event),
    }
}

fn refused(call: &Call, status: Box<Status>) -> RequestError {
    RequestError::Refused {
        call: Box::new(call.clone()),
        status,
    }
}
