use std::convert::Infallible;
use std::pin::pin;

use futures::channel::mpsc;
use futures::poll;
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::*;

type Piece = Result<Frame<Bytes>, Infallible>;

/// Returns the sender of the pieces of a body, and the body.
fn pieces() -> (
    mpsc::UnboundedSender<Piece>,
    StreamBody<mpsc::UnboundedReceiver<Piece>>,
) {
    let (sender, receiver) = mpsc::unbounded();
    (sender, StreamBody::new(receiver))
}

fn kib(count: usize) -> Piece {
    Ok(Frame::data(vec![b'x'; count * 1024].into()))
}

#[tokio::test(start_paused = true)]
async fn memory_is_reserved_for_what_has_arrived() {
    let memory = BodyMemory::of_kib(100);
    let (sender, body) = pieces();
    let mut reserved = memory.reserve();
    {
        let mut read = pin!(reserved.read(body, Some(90 * 1024), 90 * 1024));
        assert!(poll!(&mut read).is_pending());
        assert_eq!(
            memory.shared.available_permits(),
            100,
            "nothing has arrived"
        );
        sender.unbounded_send(kib(10)).unwrap();
        assert!(poll!(&mut read).is_pending());
        assert_eq!(memory.shared.available_permits(), 90);
        sender.unbounded_send(kib(5)).unwrap();
        drop(sender);
        assert_eq!(read.await.unwrap().len(), 15 * 1024);
    }
    assert_eq!(memory.shared.available_permits(), 85);
    drop(reserved);
    assert_eq!(memory.shared.available_permits(), 100);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_need_all_memory_do_not_wait_for_each_other() {
    let memory = BodyMemory::of_kib(100);
    let (mut reads, mut senders) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (sender, body) = pieces();
        sender.unbounded_send(kib(30)).unwrap();
        senders.push(sender);
        let memory = &memory;
        reads.push(Box::pin(async move {
            let mut reserved = memory.reserve();
            let read = reserved.read(body, None, 90 * 1024).await;
            (read.map(|it| it.len()), reserved)
        }));
    }
    for read in &mut reads {
        assert!(poll!(read).is_pending());
    }
    for sender in senders {
        sender.unbounded_send(kib(60)).unwrap();
    }
    // One of them overflows. The others wait for it, without a time limit.
    let mut held = None;
    for (at, mut read) in reads.into_iter().enumerate() {
        if at > 0 {
            assert!(poll!(&mut read).is_pending());
            tokio::time::advance(READ_TIMEOUT * 2).await;
        }
        drop(held.take());
        let (read, reserved) = read.await;
        assert_eq!(read, Ok(90 * 1024));
        held = Some(reserved);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_arriving_is_an_error() {
    let memory = BodyMemory::default();
    let (sender, body) = pieces();
    sender.unbounded_send(kib(1)).unwrap();
    let read = memory.reserve().read(body, Some(2048), 4096).await;
    assert_eq!(read, Err(BodyError::TimedOut));
    drop(sender);
    let (_, body) = pieces();
    let read = memory.reserve().read(body, Some(5000), 4096).await;
    assert_eq!(read, Err(BodyError::TooLarge { limit: 4096 }));
}

#[test]
fn the_buffer_grows_with_what_has_arrived() {
    let mut buffer = BytesMut::new();
    grow(&mut buffer, 1024, 64 << 20);
    assert!((GROWTH_MIN..2 * GROWTH_MIN).contains(&buffer.capacity()));
    let mut buffer = BytesMut::from(&vec![0; 1 << 20][..]);
    grow(&mut buffer, 1, 64 << 20);
    assert!(buffer.capacity() < 5 << 20);
    let mut buffer = BytesMut::new();
    grow(&mut buffer, 1024, 2000);
    assert!(buffer.capacity() < 4096);
}
