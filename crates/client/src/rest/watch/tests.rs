use super::*;

/// Splits `stream` in chunks of `size` bytes and returns the events.
fn events(encoding: Encoding, stream: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(encoding);
    let mut events = Vec::new();
    for chunk in stream.chunks(size) {
        splitter.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = splitter.split().unwrap() {
            events.push(event.to_vec());
        }
    }
    events
}

#[test]
fn lines_are_the_same_however_they_arrive() {
    let stream = b"{\"a\":1}\n\n{\"b\":2}\n\n\n{\"c\":3}\n{\"cut off";
    for size in 1..=stream.len() {
        let events = events(Encoding::Json, stream, size);
        assert_eq!(events, [b"{\"a\":1}", b"{\"b\":2}", b"{\"c\":3}"], "{size}");
    }
}

#[test]
fn messages_are_the_same_however_they_arrive() {
    let stream = b"\0\0\0\x03abc\0\0\0\0\0\0\0\x01d\0\0\0\x09cut off";
    for size in 1..=stream.len() {
        let events = events(Encoding::Protobuf, stream, size);
        assert_eq!(events, [&b"abc"[..], b"", b"d"], "{size}");
    }
}

#[test]
fn an_event_within_a_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n");
    let mut splitter = Splitter::new(Encoding::Json);
    splitter.push(chunk.clone());
    assert_eq!(splitter.split().unwrap().unwrap().as_ptr(), chunk.as_ptr());
    assert_eq!(
        splitter.split().unwrap().unwrap().as_ptr(),
        chunk.slice(8..).as_ptr()
    );
}

#[test]
fn an_unreasonable_length_is_refused() {
    let mut splitter = Splitter::new(Encoding::Protobuf);
    splitter.push(Bytes::from_static(b"\xff\xff\xff\xff"));
    assert!(splitter.split().is_err());
    let mut splitter = Splitter::new(Encoding::Json);
    for _ in 0..=64 {
        splitter.push(Bytes::from(vec![b' '; 1 << 20]));
        match splitter.split() {
            Ok(None) => {}
            cut => {
                assert!(cut.is_err());
                return;
            }
        }
    }
    splitter.push(Bytes::from_static(b" "));
    assert!(splitter.split().is_err());
}
