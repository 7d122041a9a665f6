//! Counters of a queue, and the values of its metrics.

use std::time::Duration;

/// Upper bounds of the histogram buckets in nanoseconds, as in client-go: powers of ten from 10 ns
/// to 1000 s.
const BOUNDS: [u64; 12] = [
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
];

/// Counters since the start of the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Number of keys that became ready, or were added while in work.
    pub(crate) adds: u64,
    /// Number of keys that were added with a delay.
    pub(crate) retries: u64,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
}

/// Counters of a queue since its start, and its current values.
#[derive(Debug, Clone)]
pub(crate) struct Stats {
    pub(crate) counts: Counts,
    pub(crate) depths: Vec<(i32, usize)>,
    pub(crate) unfinished: Duration,
    pub(crate) longest_running: Duration,
    pub(crate) oldest_key: Duration,
    /// Number of keys whose last work failed.
    pub(crate) failing: usize,
    /// Largest number of failures in a row of a key.
    pub(crate) most_failures: u32,
}

/// Histogram of durations by decimal order of magnitude.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// One bucket for each bound, and one for longer durations.
    buckets: [u64; BOUNDS.len() + 1],
    sum: u128,
}

impl Histogram {
    pub(super) fn observe(&mut self, nanos: u64) {
        // The bounds are powers of ten and belong to their buckets.
        let bucket = nanos.saturating_sub(1).checked_ilog10().unwrap_or(0);
        let bucket = (bucket as usize).min(BOUNDS.len());
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket = bucket.wrapping_add(1);
        }
        self.sum = self.sum.saturating_add(u128::from(nanos));
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Returns each bound in seconds, with the count of its bucket (not cumulative).
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9);
        bounds
            .chain([f64::INFINITY])
            .zip(self.buckets.iter().copied())
            .collect()
    }
}

#[cfg(test)]
mod tests;
