//! Random numbers from a seed, for jitter and for model tests. The generator is splitmix64, so the
//! same seed returns the same numbers again. Do not use these numbers for secrets.

use std::hash::{BuildHasher, RandomState};

/// A generator that returns the same random numbers for the same seed.
///
/// # Examples
/// ```
/// use opkit_random::Random;
/// let mut random = Random::new(7);
/// assert_eq!(random.bits(), Random::new(7).bits());
/// assert!(random.unit() < 1.0 && random.below(6) < 6);
/// ```
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random seed, made from the random keys of the standard library's `RandomState`.
    pub fn seed() -> u64 {
        RandomState::new().hash_one(0u8)
    }

    /// Returns a random number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a random number from 0 (included) to `bound` (excluded), or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// Returns a random item of `items`, or `None` if `items` is empty.
    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = self.below(items.len() as u64);
        items.get(usize::try_from(index).ok()?)
    }

    /// Returns a random UUID of version 4.
    pub fn uuid(&mut self) -> String {
        uuid_of(self.bits(), self.bits())
    }

    /// Returns `true` with a probability of `of_hundred` percent.
    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}

/// Returns a random UUID of version 4. Do not use the UUID as a secret.
///
/// # Examples
/// ```
/// let uuid = opkit_random::uuid();
/// assert_eq!((uuid.len(), uuid.chars().nth(14)), (36, Some('4')));
/// ```
pub fn uuid() -> String {
    // Two seeds, because one seed has only half of the bits of a UUID.
    uuid_of(
        Random::new(Random::seed()).bits(),
        Random::new(Random::seed()).bits(),
    )
}

/// Formats 128 bits as a UUID, with the bits of the version and of the variant set.
fn uuid_of(high: u64, low: u64) -> String {
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 1 << 63;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
