//! Watches with types.

use std::pin::Pin;

use futures::Stream;
use kube::core::{Status, WatchEvent};
use serde::de::DeserializeOwned;

use crate::codec;
use crate::{Call, Encoding, Kind, RequestError, Verb, WatchFrames};

/// The events of a watch, read. An event that cannot be read is an error of its own; the stream
/// goes on.
pub(crate) fn events<K: DeserializeOwned + Send + 'static>(
    kind: Kind,
    namespace: Option<String>,
    frames: WatchFrames,
) -> Pin<Box<dyn Stream<Item = Result<WatchEvent<K>, RequestError>> + Send>> {
    let call = Call::collection(Verb::Watch, &kind, namespace.as_deref());
    let start = Some((Box::new(call), frames));
    Box::pin(futures::stream::unfold(start, |state| async {
        let (call, mut frames) = state?;
        let encoding = frames.encoding();
        match frames.next().await? {
            Ok(frame) => match read::<K>(&call, &frame, encoding) {
                // The server ends the watch after this one.
                Err(error @ RequestError::Refused { .. }) => Some((Err(error), None)),
                event => Some((event, Some((call, frames)))),
            },
            Err(error) => Some((Err(error), None)),
        }
    }))
}

fn read<K: DeserializeOwned>(
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
