//! Workers: take requests from the queue, call the user's function, and queue requests again.

mod contested;
mod controller;
mod dispatch;
pub(crate) mod metrics;
mod objects;
pub(crate) mod owners;
mod requeue;
mod retries;
pub(crate) mod slots;
mod turn;

pub(crate) use self::controller::{Functions, RunningController};
