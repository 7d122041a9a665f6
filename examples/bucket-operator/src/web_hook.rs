//! The web hook of the store.

use opkit::controller::Trigger;
use opkit::prelude::*;

use crate::App;

/// Triggers a reconcile of a bucket as soon as the store reports a change.
///
/// Here the store sends on a channel. With a real store, this would be a web server: `run` listens
/// until it is stopped, and its handler calls the trigger.
pub(crate) struct WebHook {
    pub(crate) trigger: Trigger,
}

impl Runnable for WebHook {
    async fn run(&self, cx: RunContext) -> Result {
        let Some(app) = cx.state::<App>() else {
            return Err(Error::msg("the web hook needs the store"));
        };
        loop {
            let owner = tokio::select! {
                () = cx.stopped() => return Ok(()),
                owner = app.store.changed() => owner?,
            };
            if let Some((namespace, name)) = owner.split_once('/') {
                // If the queue is full, the periodic check finds the change.
                let _ = self.trigger.try_send((namespace, name));
            }
        }
    }
}
