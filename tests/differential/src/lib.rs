//! Tests that send the same requests to a real API server and to the embedded one, and compare the
//! responses.
//!
//! A [`Script`] is a list of requests, stored as data in `scripts/`. [`run`] sends them to a server
//! and returns normalized [`RecordedResponse`]s. The responses of the real server are stored in
//! `recordings/`, written by `cargo xtask diff --record`; the test of this crate compares the
//! embedded server with them.
//!
//! Every difference is either a failure or listed, with its reason, in `known-differences.yaml`. A
//! listed difference that no longer occurs fails too, so the list only gets shorter.

mod compare;
mod files;
mod known;
mod normalize;
mod recording;
mod run;
mod script;
#[cfg(test)]
mod tests;

pub use compare::{Difference, compare};
pub use files::{Suite, read_recording, write_recording};
pub use known::{Known, Unexplained};
pub use normalize::Normalizer;
pub use recording::{RecordedResponse, Recording};
pub use run::{Reply, Server, run};
pub use script::{Ignore, Script, Step, Wait};
