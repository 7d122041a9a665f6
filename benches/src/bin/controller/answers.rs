//! Something outside that answers requests one at a time and in no order, as servers do: while
//! fewer wait than shall be in flight, nobody is answered.

use std::sync::{Arc, Mutex};

use opkit_random::Random;
use tokio::sync::oneshot;

/// Who waits for an answer.
#[derive(Default)]
pub(crate) struct Answers {
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Answers {
    /// Waits for an answer.
    pub(crate) async fn ask(&self) {
        let (sender, answer) = oneshot::channel();
        self.lock().push(sender);
        // Nobody answers any more when the measurement ends.
        let _ = answer.await;
    }

    /// Answers for ever. `wanted` says how many shall be waiting.
    pub(crate) async fn serve(self: Arc<Self>, wanted: impl Fn() -> usize) {
        let mut random = Random::new(1);
        loop {
            let answered = {
                let mut waiting = self.lock();
                let count = waiting.len();
                let enough = count > 0 && count >= wanted();
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
