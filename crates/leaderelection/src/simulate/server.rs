//! The simulated server: one Lease with optimistic locking.

use std::time::Duration;

use crate::engine::{LeaseRecord, LeaseRequest, LeaseResponse, StoredRecord};

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
    pub(crate) fn handle(&mut self, now: Duration, request: LeaseRequest) -> LeaseResponse {
        let present = self.lease.as_ref().map(|lease| &lease.version);
        match request {
            LeaseRequest::Get => LeaseResponse::Read(self.lease.clone()),
            LeaseRequest::Create(record) if present.is_none() => self.store(now, record),
            LeaseRequest::Update(record, version) if present == Some(&version) => {
                self.store(now, record)
            }
            _ => LeaseResponse::Conflict,
        }
    }

    fn store(&mut self, now: Duration, record: LeaseRecord) -> LeaseResponse {
        self.version += 1;
        self.written = now;
        let version = self.version.to_string();
        let stored = StoredRecord { record, version };
        self.lease = Some(stored.clone());
        LeaseResponse::Written(stored)
    }

    /// Changes the `resourceVersion` of the Lease, as if another client had changed a label.
    pub(crate) fn touch(&mut self, now: Duration) {
        self.version += 1;
        self.written = now;
        if let Some(lease) = &mut self.lease {
            lease.version = self.version.to_string();
        }
    }
}
