//! The simulated server: one Lease with optimistic locking.

use std::time::Duration;

use crate::engine::{LeaseRecord, Request, Response, StoredRecord};

/// Server that stores one Lease.
#[derive(Debug, Default)]
pub(crate) struct Server {
    lease: Option<StoredRecord>,
    version: u64,
    /// True time of the last write of the Lease.
    pub(crate) written: Duration,
}

impl Server {
    pub(crate) fn lease(&self) -> Option<&StoredRecord> {
        self.lease.as_ref()
    }

    /// Executes a request and returns the response.
    pub(crate) fn handle(&mut self, now: Duration, request: Request) -> Response {
        let present = self.lease.as_ref().map(|lease| &lease.version);
        match request {
            Request::Get => Response::Read(self.lease.clone()),
            Request::Create(record) if present.is_none() => self.store(now, record),
            Request::Update(record, version) if present == Some(&version) => {
                self.store(now, record)
            }
            _ => Response::Conflict,
        }
    }

    fn store(&mut self, now: Duration, record: LeaseRecord) -> Response {
        self.version += 1;
        self.written = now;
        let version = self.version.to_string();
        let stored = StoredRecord { record, version };
        self.lease = Some(stored.clone());
        Response::Written(stored)
    }

    /// Changes a label of the Lease as another client.
    pub(crate) fn touch(&mut self, now: Duration) {
        self.version += 1;
        self.written = now;
        if let Some(lease) = &mut self.lease {
            lease.version = self.version.to_string();
        }
    }
}
