//! The store's web hook.

use opkit::{Trigger, prelude::*};

use crate::App;

/// Has a bucket reconciled as soon as the store tells that somebody changed it.
///
/// Here the store calls a channel. With a real one, this would be a web server: `run` listens until
/// it shall stop, and its handler calls the trigger.
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
                // If too many wait, this one is found by the look that each bucket gets now and
                // then.
                let _ = self.trigger.try_send((namespace, name));
            }
        }
    }
}
