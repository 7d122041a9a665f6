//! The same requests to a real API server and to the embedded one, and where the answers differ.
//!
//! A [`Script`] is a list of requests, kept as data in `scripts/`. [`run`] sends them to whatever
//! answers HTTP and gives back normalised [`Answer`]s. Those of the real server are kept in
//! `recordings/`, written by `cargo xtask diff --record`; the test of this crate compares the
//! embedded server with them.
//!
//! Every difference is either a failure or listed, with its reason, in `known-differences.yaml`. A
//! listed difference that is gone fails too, so the list only gets shorter.

mod answer;
mod compare;
mod files;
mod known;
mod normalize;
mod run;
mod script;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Recording};
pub use compare::{Difference, compare};
pub use files::{Suite, read_recording, write_recording};
pub use known::{Known, Unexplained};
pub use normalize::Normalizer;
pub use run::{Reply, Server, run};
pub use script::{Ignore, Script, Step, Wait};
