//! Names and uids from a seed, so that a run can be repeated.

use std::hash::{BuildHasher, Hasher, RandomState};

use parking_lot::Mutex;

/// Kubernetes leaves out vowels and look-alikes, so that no suffix spells a word.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of random names and uids.
#[derive(Debug)]
pub(crate) struct Random {
    state: Mutex<u64>,
}

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self {
            state: Mutex::new(seed),
        }
    }

    pub(crate) fn from_entropy() -> Self {
        Self::from_seed(RandomState::new().build_hasher().finish())
    }

    /// One step of SplitMix64.
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn uid(&self) -> String {
        let bytes = (u128::from(self.next()) << 64 | u128::from(self.next())).to_be_bytes();
        uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .to_string()
    }

    /// Five letters, as `generateName` appends them.
    pub(crate) fn suffix(&self) -> String {
        encode(self.next(), 5)
    }
}

/// Writes `number` in `length` letters of Kubernetes' safe alphabet.
pub(crate) fn encode(mut number: u64, length: usize) -> String {
    let base = ALPHABET.len() as u64;
    (0..length)
        .map(|_| {
            let letter = ALPHABET
                .get((number % base) as usize)
                .copied()
                .unwrap_or(b'b');
            number /= base;
            char::from(letter)
        })
        .collect()
}
