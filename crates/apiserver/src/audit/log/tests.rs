use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::*;

/// An output in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_full_queue_are_lost_and_counted() {
    let output = Memory::default();
    let (log, writer) = Log::to_output(Box::new(output.clone()));
    for number in 0..QUEUE + 3 {
        log.write(format!("{number}\n"));
    }
    assert_eq!(log.lost.load(Ordering::Relaxed), 3);
    let stop = CancellationToken::new();
    stop.cancel();
    writer.run(stop).await;
    let text = String::from_utf8(output.0.lock().clone()).unwrap();
    let expected: String = (0..QUEUE).map(|number| format!("{number}\n")).collect();
    assert!(text == expected, "{} bytes are written", text.len());
    assert_eq!(log.lost.load(Ordering::Relaxed), 0, "the loss is logged");
}

#[tokio::test(start_paused = true)]
async fn the_log_ends_when_the_server_stops() {
    let output = Memory::default();
    let (log, writer) = Log::to_output(Box::new(output.clone()));
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();
    let running = tasks.spawn(writer.run(stop.clone()));
    log.write("first\n".to_owned());
    tokio::task::yield_now().await;
    stop.cancel();
    log.write("last\n".to_owned());
    running.await.unwrap();
    assert_eq!(*output.0.lock(), b"first\nlast\n");
}
