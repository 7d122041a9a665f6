//! Simulated server that responds to one request at a time, in random order. While fewer requests
//! wait than should be in flight, it does not respond.

use std::sync::{Arc, Mutex};

use opkit_random::Random;
use tokio::sync::oneshot;

/// Requests that wait for a response.
#[derive(Default)]
pub(crate) struct Answers {
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Answers {
    /// Waits for a response.
    pub(crate) async fn ask(&self) {
        let (sender, response) = oneshot::channel();
        self.lock().push(sender);
        // The sender is dropped when the measurement ends.
        let _ = response.await;
    }

    /// Sends responses until it is dropped; `expected` returns the number of requests that should
    /// be waiting.
    pub(crate) async fn serve(self: Arc<Self>, expected: impl Fn() -> usize) {
        let mut random = Random::new(1);
        loop {
            let answered = {
                let mut waiting = self.lock();
                let count = waiting.len();
                let enough = count > 0 && count >= expected();
                enough.then(|| waiting.swap_remove(random.below(count as u64) as usize))
            };
            if let Some(waiter) = answered {
                let _ = waiter.send(());
            }
            tokio::task::yield_now().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<oneshot::Sender<()>>> {
        self.waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
