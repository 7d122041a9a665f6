//! Random numbers from a seed: splitmix64, so that a run can be reproduced.

use std::hash::{BuildHasher, RandomState};

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a seed from the operating system, through the hash keys of the standard library.
    pub(crate) fn seed() -> u64 {
        RandomState::new().hash_one(0u8)
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`.
    #[cfg(test)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// Returns true in this many of a hundred cases.
    #[cfg(test)]
    pub(crate) fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}
