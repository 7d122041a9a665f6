//! The server: one lease with optimistic locking.

use std::time::Duration;

use crate::engine::{Answer, Record, Request, Stored};

#[derive(Debug, Default)]
pub(crate) struct Server {
    lease: Option<Stored>,
    version: u64,
    /// When the lease was last written, in true time.
    pub(crate) written: Duration,
}

impl Server {
    pub(crate) fn lease(&self) -> Option<&Stored> {
        self.lease.as_ref()
    }

    /// Acts on a request.
    pub(crate) fn act(&mut self, now: Duration, request: Request) -> Answer {
        let present = self.lease.as_ref().map(|lease| &lease.version);
        match request {
            Request::Get => Answer::Read(self.lease.clone()),
            Request::Create(record) if present.is_none() => self.store(now, record),
            Request::Update(record, version) if present == Some(&version) => {
                self.store(now, record)
            }
            _ => Answer::Conflict,
        }
    }

    fn store(&mut self, now: Duration, record: Record) -> Answer {
        self.version += 1;
        self.written = now;
        let version = self.version.to_string();
        let stored = Stored { record, version };
        self.lease = Some(stored.clone());
        Answer::Written(stored)
    }

    /// Somebody changes a label of the lease.
    pub(crate) fn touch(&mut self, now: Duration) {
        self.version += 1;
        self.written = now;
        if let Some(lease) = &mut self.lease {
            lease.version = self.version.to_string();
        }
    }
}
