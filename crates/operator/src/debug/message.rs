//! Conversion of reconcile records into messages of the debug endpoint.

use opkit_controller::{HotLoop, Outcome, QueuedRequest, ReconcileRecord, Write};
use opkit_debug as message;

/// Returns the message about one reconcile.
pub(super) fn reconcile(record: &ReconcileRecord) -> message::Reconcile {
    message::Reconcile {
        controller: record.controller.to_string(),
        kind: record.kind.to_string(),
        cluster: record.request.cluster().map(str::to_owned),
        namespace: record.request.namespace.clone(),
        name: record.request.name.clone(),
        number: record.number,
        causes: record.causes(),
        cache_reads: record.cache_reads,
        live_reads: record.live_reads,
        writes: record.writes.iter().map(write).collect(),
        started: record.started,
        duration_seconds: record.duration.as_secs_f64(),
        result: outcome(&record.result),
        hot_loop: record.hot_loop.as_ref().map(hot_loop),
    }
}

/// Returns the message about a request in a queue.
pub(super) fn queued(queued: &QueuedRequest) -> message::QueuedRequest {
    message::QueuedRequest {
        controller: queued.controller.to_string(),
        namespace: queued.request.namespace.clone(),
        name: queued.request.name.clone(),
        in_work: queued.is_in_work,
        age_seconds: queued.age.as_secs_f64(),
        due_seconds: queued.due_in.map(|due| due.as_secs_f64()),
        failures: queued.failures,
    }
}

fn write(write: &Write) -> message::Write {
    message::Write {
        verb: write.verb.to_owned(),
        kind: write.kind.clone(),
        namespace: write.key.namespace.clone(),
        name: write.key.name.clone(),
        subresource: write.subresource.clone(),
    }
}

fn outcome(outcome: &Outcome) -> message::Outcome {
    match outcome {
        Outcome::Requeue { after } => message::Outcome::Requeue {
            after_seconds: after.as_secs_f64(),
        },
        Outcome::Error {
            message,
            retry_after,
        } => message::Outcome::Error {
            message: message.clone(),
            retry_seconds: retry_after.map(|delay| delay.as_secs_f64()),
        },
        _ => message::Outcome::Ok,
    }
}

fn hot_loop(found: &HotLoop) -> message::HotLoop {
    message::HotLoop {
        object: found.object.clone(),
        field: found.field.clone(),
        manager: found.manager.clone(),
        because: found.because.clone(),
        is_created_and_pruned: found.is_created_and_pruned,
        count: found.count,
    }
}
