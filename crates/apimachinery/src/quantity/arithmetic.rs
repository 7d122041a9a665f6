//! Exact arithmetic with quantities.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use super::{Form, ONE, Quantity};

/// One thousandth, as a number of billionths.
const MILLI: i128 = ONE / 1000;

/// Returns the notation of a result by Kubernetes' rule: the notation of the first operand, or of
/// the second operand if the first is zero.
fn form_of(first: Quantity, second: Quantity) -> Form {
    match first.nanos {
        0 => second.form,
        _ => first.form,
    }
}

impl Quantity {
    /// Returns a quantity of `milli` thousandths, such as thousandths of a CPU.
    pub fn from_milli(milli: i64) -> Self {
        Self {
            nanos: i128::from(milli) * MILLI,
            form: Form::Decimal,
        }
    }

    /// Returns a quantity of bytes, which is written with the suffixes `Ki`, `Mi` and `Gi`.
    pub fn from_bytes(bytes: i64) -> Self {
        Self {
            nanos: i128::from(bytes) * ONE,
            form: Form::Binary,
        }
    }

    /// Returns the quantity as a whole number, rounded away from zero as Kubernetes' `Value()`
    /// does. Returns `None` if the number does not fit into an `i64`.
    pub fn value(self) -> Option<i64> {
        self.in_units(ONE)
    }

    /// Returns the quantity in thousandths, rounded away from zero as Kubernetes' `MilliValue()`
    /// does. Returns `None` if the number does not fit into an `i64`.
    pub fn milli_value(self) -> Option<i64> {
        self.in_units(MILLI)
    }

    /// Returns the quantity in multiples of `unit`, rounded away from zero as Kubernetes does.
    fn in_units(self, unit: i128) -> Option<i64> {
        let rest = (self.nanos % unit).signum();
        i64::try_from(self.nanos / unit + rest).ok()
    }

    /// Reports whether the quantity is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Returns the sum, or `None` if it overflows.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let nanos = self.nanos.checked_add(other.nanos)?;
        let form = form_of(self, other);
        Some(Self { nanos, form })
    }

    /// Returns the difference, or `None` if it overflows.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let nanos = self.nanos.checked_sub(other.nanos)?;
        let form = form_of(self, other);
        Some(Self { nanos, form })
    }

    /// Returns the product, or `None` if it overflows.
    pub fn checked_mul(self, times: i64) -> Option<Self> {
        let nanos = self.nanos.checked_mul(i128::from(times))?;
        Some(Self { nanos, ..self })
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self {
            nanos: i128::from(number) * ONE,
            form: Form::Decimal,
        }
    }
}

/// The sum is exact, and saturates at the limits of a quantity, about 1.7e29 and -1.7e29.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            form: form_of(self, other),
        }
    }
}

/// The difference is exact, and saturates at the limits of a quantity, about 1.7e29 and -1.7e29.
impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
            form: form_of(self, other),
        }
    }
}

/// The product is exact, and saturates at the limits of a quantity, about 1.7e29 and -1.7e29.
impl Mul<i64> for Quantity {
    type Output = Self;

    fn mul(self, times: i64) -> Self {
        let nanos = self.nanos.saturating_mul(i128::from(times));
        Self { nanos, ..self }
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        let nanos = self.nanos.saturating_neg();
        Self { nanos, ..self }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::default(), Add::add)
    }
}
