use super::*;

/// Cuts `stream` in pieces of `size` bytes and says what events come out.
fn events(encoding: Encoding, stream: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut cutter = Cutter::new(encoding);
    let mut events = Vec::new();
    for piece in stream.chunks(size) {
        cutter.push(Bytes::copy_from_slice(piece));
        while let Some(event) = cutter.cut().unwrap() {
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
fn an_event_within_a_piece_is_not_copied() {
    let piece = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n");
    let mut cutter = Cutter::new(Encoding::Json);
    cutter.push(piece.clone());
    assert_eq!(cutter.cut().unwrap().unwrap().as_ptr(), piece.as_ptr());
    assert_eq!(
        cutter.cut().unwrap().unwrap().as_ptr(),
        piece.slice(8..).as_ptr()
    );
}

#[test]
fn an_unreasonable_length_is_refused() {
    let mut cutter = Cutter::new(Encoding::Protobuf);
    cutter.push(Bytes::from_static(b"\xff\xff\xff\xff"));
    assert!(cutter.cut().is_err());
    let mut cutter = Cutter::new(Encoding::Json);
    for _ in 0..=64 {
        cutter.push(Bytes::from(vec![b' '; 1 << 20]));
        match cutter.cut() {
            Ok(None) => {}
            cut => {
                assert!(cut.is_err());
                return;
            }
        }
    }
    cutter.push(Bytes::from_static(b" "));
    assert!(cutter.cut().is_err());
}
