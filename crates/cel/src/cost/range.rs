//! Ranges of costs and sizes.

/// A range from a minimum to a maximum. Arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// Cost of reading one character of a text.
pub(crate) const STRING_FACTOR: f64 = 0.1;
/// Cost of one character of a regular expression.
pub(crate) const REGEX_FACTOR: f64 = 0.25;

impl Range {
    /// The range of all sizes.
    pub(crate) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(crate) const fn fixed(value: u64) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    /// Returns the range that a union replaces, or the range of an empty list.
    pub(crate) fn none(is_empty: bool) -> Self {
        Self {
            min: if is_empty { 0 } else { u64::MAX },
            max: 0,
        }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(crate) fn multiply(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Multiplies by a factor, and rounds up.
    pub(crate) fn scale(self, factor: f64) -> Self {
        Self {
            min: scale(self.min, factor),
            max: scale(self.max, factor),
        }
    }
}

fn scale(value: u64, factor: f64) -> u64 {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    let value = value as f64;
    if value > 0.0 && factor > 0.0 && value > LIMIT / factor {
        return u64::MAX;
    }
    let scaled = (value * factor).ceil();
    match scaled >= LIMIT {
        true => u64::MAX,
        false => scaled as u64,
    }
}
