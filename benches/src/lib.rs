//! Figures, ours and the peers', in one run: `cargo bench -p opkit-benches`, and for the cache
//! `cargo xtask bench cache`, for the controller `cargo xtask bench controller`.
//!
//! Each file in `benches/` measures one room. A figure is the median of several runs, with its
//! spread. Peers that are not built with the rooms live in `peers/`.

use std::time::Duration;

pub mod data;
pub mod process;
pub mod rows;
pub mod runs;
pub mod stand_in;

/// Several measurements of one thing.
#[derive(Clone, Debug, Default)]
pub struct Measurements(Vec<Duration>);

impl Measurements {
    /// Adds one.
    pub fn push(&mut self, duration: Duration) {
        self.0.push(duration);
        self.0.sort();
    }

    /// The middle one.
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// The least and the most.
    pub fn spread(&self) -> (Duration, Duration) {
        let end = |duration: Option<&Duration>| duration.copied().unwrap_or_default();
        (end(self.0.first()), end(self.0.last()))
    }
}
