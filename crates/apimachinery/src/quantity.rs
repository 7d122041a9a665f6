//! Quantities: `resource.Quantity`, such as `500m` of a CPU or `1Gi` of memory.
//!
//! The server stores the quantities of built-in kinds in canonical form, so the text of a quantity
//! in a response may differ from the request: `1000m` becomes `1`, `0.5Gi` becomes `512Mi`.

mod arithmetic;
mod wire;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A Kubernetes quantity: a whole number of billionths, and the notation in which it is written.
///
/// Two quantities are equal if their numbers are equal, whatever their notations. Quantities are
/// ordered. Addition, subtraction and multiplication are exact: there are no floating-point
/// numbers. A field of this type in a custom kind accepts the same texts as in a built-in kind, and
/// is written in canonical form.
///
/// # Examples
/// ```
/// use opkit_apimachinery::quantity::Quantity;
///
/// let (asked, present): (Quantity, Quantity) = ("10Gi".parse()?, "8Gi".parse()?);
/// assert!(asked > present);
/// assert_eq!((asked - present).to_string(), "2Gi");
/// assert_eq!(("100m".parse::<Quantity>()? * 3).to_string(), "300m");
/// # Ok::<(), opkit_apimachinery::quantity::QuantityError>(())
/// ```
///
/// ```
/// use opkit_apimachinery::quantity::Quantity;
///
/// let cpu = Quantity::parse("1000m").unwrap();
/// assert_eq!(cpu.to_string(), "1");
/// assert_eq!(Some(cpu), Quantity::parse("1.0"));
/// assert_eq!(Quantity::parse("one"), None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

/// Notation of a quantity. A parsed quantity is printed in the notation of the parsed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The suffixes `k`, `M`, `G`.
    Decimal,
    /// The suffixes `Ki`, `Mi`, `Gi`.
    Binary,
    /// The exponents `e3`, `e6`, `e9`.
    Exponent,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

/// The default quantity is zero.
impl Default for Quantity {
    fn default() -> Self {
        Self::from(0)
    }
}

/// A text that is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity, such as 500m, 1.5 or 10Gi")]
#[non_exhaustive]
pub struct QuantityError {
    /// The text that was parsed.
    pub text: String,
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text).ok_or_else(|| QuantityError {
            text: text.to_owned(),
        })
    }
}

/// Number of decimal places of a billionth, the smallest unit of a quantity.
const PLACES: i32 = 9;
const ONE: i128 = 1_000_000_000;
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Parses a quantity. Returns `None` if `text` is not a quantity, or is larger than Kubernetes
    /// can represent. A fraction of a billionth is rounded away from zero, as in Kubernetes.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.as_bytes().first()? {
            b'-' => (-1, text.get(1..)?),
            b'+' => (1, text.get(1..)?),
            _ => (1, text),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(end)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let mantissa: i128 = match digits {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        let (form, power, exponent) = suffix_of(suffix)?;
        let exponent = exponent
            .checked_add(PLACES)?
            .checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let mut nanos = mantissa.checked_mul(1_i128.checked_shl(power)?)?;
        if mantissa != 0 {
            for _ in 0..exponent.max(0) {
                nanos = nanos.checked_mul(10)?;
            }
            for _ in exponent.min(0)..0 {
                nanos = nanos / 10 + i128::from(nanos % 10 != 0);
            }
        }
        let nanos = nanos.checked_mul(sign)?;
        Some(Self { nanos, form })
    }
}

/// Parses a suffix of a quantity into its notation, its power of two and its power of ten.
fn suffix_of(suffix: &str) -> Option<(Form, u32, i32)> {
    if let Some(n) = DECIMAL.iter().position(|known| *known == suffix) {
        let exponent = i32::try_from(n).ok()? * 3 - PLACES;
        return Some((Form::Decimal, 0, exponent));
    }
    if let Some(n) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Form::Binary, u32::try_from(n).ok()? * 10, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Form::Exponent, 0, exponent.parse().ok()?))
}

impl fmt::Display for Quantity {
    /// Writes the canonical form: an integer without loss of precision, with the largest possible
    /// suffix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_small = self.nanos.abs() < 1024 * ONE;
        if self.nanos == 0 {
            f.write_str("0")
        } else if self.form == Form::Binary && !is_small && self.nanos % ONE == 0 {
            let (number, n) = reduce(self.nanos / ONE, 1024, BINARY.len());
            write!(f, "{number}{}", BINARY.get(n).unwrap_or(&""))
        } else {
            let (number, n) = reduce(self.nanos, 1000, DECIMAL.len());
            match (self.form, n) {
                (Form::Exponent, 3) => write!(f, "{number}"),
                (Form::Exponent, n) => {
                    let exponent = i32::try_from(n).unwrap_or(0) * 3 - PLACES;
                    write!(f, "{number}e{exponent}")
                }
                _ => write!(f, "{number}{}", DECIMAL.get(n).unwrap_or(&"")),
            }
        }
    }
}

/// Divides `number` by `base` as long as there is no remainder, but less than `limit` times.
/// Returns the quotient and the number of divisions.
fn reduce(mut number: i128, base: i128, limit: usize) -> (i128, usize) {
    let mut times = 0;
    while times + 1 < limit && number % base == 0 {
        number /= base;
        times += 1;
    }
    (number, times)
}

#[cfg(test)]
mod tests;
