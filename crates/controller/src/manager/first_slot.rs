//! Runnables that need leadership, in a sharded operator: they run where the first slot is served.

use std::future::pending;
use std::sync::Arc;

use super::runnable::{AnyRunnable, RunContext};
use crate::error::Result;
use crate::worker::slots::Slots;

/// Hash of the first slot, whatever the number of slots is.
const FIRST: u64 = 0;

/// Runs a runnable whenever this replica serves the first slot. The slot is given to another
/// replica after the runnable has stopped.
pub(super) async fn run(runnable: AnyRunnable, cx: RunContext, slots: Arc<Slots>) -> Result<()> {
    let (mut served, mut assigned) = (slots.served(), slots.owned.subscribe());
    while !cx.stop.is_cancelled() {
        served.borrow_and_update();
        let Some(permit) = slots.begin(FIRST) else {
            let changed = cx.stop.run_until_cancelled(served.changed());
            if !matches!(changed.await, Some(Ok(()))) {
                break;
            }
            continue;
        };
        let stop = cx.stop.child_token();
        let mut context = RunContext {
            stop: stop.clone(),
            ..cx.clone()
        };
        context.home.client = permit.fence().layer(cx.client());
        let running = runnable.start(context);
        let stopping = async {
            // An error means that the replica has left the ring; `cx.stop` is then cancelled.
            let _ = assigned.wait_for(|it| !it.owned.contains(&0)).await;
            stop.cancel();
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = permit.lost().cancelled() => {}
            ended = running => ended?,
            () = stopping => {}
        }
        drop(permit);
        // A runnable that has ended is not started again while the slot stays here.
        let gone = assigned.wait_for(|it| !it.owned.contains(&0));
        let gone = cx.stop.run_until_cancelled(async { gone.await.is_ok() });
        if gone.await != Some(true) {
            break;
        }
    }
    Ok(())
}
