//! Random names and UIDs, generated from a seed so that a run can be repeated.

use opkit_random::Random;
use parking_lot::Mutex;

/// Letters and digits of a generated name. Kubernetes leaves out vowels and look-alikes, so that no
/// suffix spells a word.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Source of random names and UIDs.
#[derive(Debug)]
pub(crate) struct RandomNames {
    random: Mutex<Random>,
}

impl RandomNames {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self {
            random: Mutex::new(Random::new(seed)),
        }
    }

    pub(crate) fn from_entropy() -> Self {
        Self::from_seed(Random::seed())
    }

    /// Returns the next 64 random bits.
    pub(crate) fn next(&self) -> u64 {
        self.random.lock().bits()
    }

    /// Returns a new UID.
    pub(crate) fn uid(&self) -> String {
        self.random.lock().uuid()
    }

    /// Returns five random letters, which the server appends to `generateName`.
    pub(crate) fn suffix(&self) -> String {
        encode(self.next(), 5)
    }
}

/// Returns `number` as `length` letters of [`ALPHABET`].
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
