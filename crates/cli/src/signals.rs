//! Signals that stop this command.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Interrupted;

/// Handlers of the stop signals. The handlers are installed when this value is created; from then
/// on no signal ends the command without cleanup.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for Ctrl-C, SIGTERM, or the end of the terminal session.
    pub(crate) async fn requested(&mut self) {
        self.received().await;
    }

    /// Runs a command that has no end of its own for signals: a signal drops its future, which
    /// ends its processes and requests.
    ///
    /// # Errors
    /// [`Interrupted`] after a signal.
    pub(crate) async fn interrupt<T>(
        &mut self,
        command: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            result = command => result,
            signal = self.received() => Err(Interrupted(signal).into()),
        }
    }

    async fn received(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        }
    }
}
