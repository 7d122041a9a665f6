//! Workers: from a request in the queue to the user's function, and back into the queue.

mod contested;
mod controller;
mod dispatch;
pub(crate) mod metrics;
mod objects;
mod requeue;
mod turn;

pub(crate) use self::controller::{Functions, RunningController};
