//! Benchmarks of opkit and its peers: `cargo bench -p opkit-benches`, `cargo xtask bench cache` for
//! the cache, `cargo xtask bench controller` for the controller, and `cargo xtask bench server` for
//! the API server.
//!
//! Each file in `benches/` measures one crate. A figure is the median of several runs, with its
//! spread. Peers that are not part of the workspace are in `peers/`.

use std::time::Duration;

pub mod data;
pub mod https;
pub mod process;
pub mod rows;
pub mod runs;
pub mod stand_in;

/// Several measurements of one duration.
#[derive(Clone, Debug, Default)]
pub struct Measurements(Vec<Duration>);

impl Measurements {
    /// Adds a measurement.
    pub fn push(&mut self, duration: Duration) {
        self.0.push(duration);
        self.0.sort();
    }

    /// Returns the median.
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// Returns the minimum and the maximum.
    pub fn spread(&self) -> (Duration, Duration) {
        let end = |duration: Option<&Duration>| duration.copied().unwrap_or_default();
        (end(self.0.first()), end(self.0.last()))
    }
}
