//! Quantities, such as `500m` or `1Gi`.

use opkit_apimachinery::quantity::Quantity;

use super::{Function, no_overload, semver};
use crate::value::{Fault, Object, Outcome, Value};

/// A quantity, with the representation on which Kubernetes' `isInteger` depends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    pub(crate) quantity: Quantity,
    /// The quantity is `mantissa` times ten to the power of `scale`.
    mantissa: i128,
    scale: i32,
    /// Whether Kubernetes represents the quantity by a decimal of any size, which is never an
    /// integer for `isInteger`.
    is_big: bool,
}

/// Number of decimal digits that always fit into 64 bits, as in Kubernetes.
const DIGITS_MAX: i32 = 18;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |args| match args {
            [Value::String(text)] => parse(text).map(value).map_err(Fault::new),
            _ => Err(no_overload("quantity", args)),
        },
        "isQuantity" => |args| match args {
            [Value::String(text)] => Ok(Value::Bool(parse(text).is_ok())),
            _ => Err(no_overload("isQuantity", args)),
        },
        "sign" => |args| match args {
            [Value::Object(Object::Quantity(amount))] => {
                Ok(Value::Int(i64::from(amount.mantissa.signum() as i8)))
            }
            _ => Err(no_overload("sign", args)),
        },
        "isGreaterThan" => |args| Ok(Value::Bool(compare(args, "isGreaterThan")?.is_gt())),
        "isLessThan" => |args| Ok(Value::Bool(compare(args, "isLessThan")?.is_lt())),
        "compareTo" => |args| Ok(Value::Int(compare(args, "compareTo")? as i64)),
        "asApproximateFloat" => |args| match args {
            [Value::Object(Object::Quantity(amount))] => Ok(Value::Double(amount.to_double())),
            _ => Err(no_overload("asApproximateFloat", args)),
        },
        "asInteger" => |args| match args {
            [Value::Object(Object::Quantity(amount))] => match amount.to_int() {
                Some(number) => Ok(Value::Int(number)),
                None => Err(Fault::new("cannot convert value to integer")),
            },
            _ => Err(no_overload("asInteger", args)),
        },
        "isInteger" => |args| match args {
            [Value::Object(Object::Quantity(amount))] => Ok(Value::Bool(amount.to_int().is_some())),
            _ => Err(no_overload("isInteger", args)),
        },
        "add" => |args| combine(args, "add", false),
        "sub" => |args| combine(args, "sub", true),
        "semver" | "isSemver" | "major" | "minor" | "patch" => return semver::find(name),
        _ => return None,
    })
}

fn value<'a>(amount: Amount) -> Value<'a> {
    Value::Object(Object::Quantity(amount))
}

fn compare(args: &[Value<'_>], name: &str) -> Result<std::cmp::Ordering, Fault> {
    match args {
        [
            Value::Object(Object::Quantity(a)),
            Value::Object(Object::Quantity(b)),
        ] => Ok(a.quantity.cmp(&b.quantity)),
        [
            Value::Object(Object::Semver(a)),
            Value::Object(Object::Semver(b)),
        ] => Ok(a.compare(b)),
        _ => Err(no_overload(name, args)),
    }
}

fn combine<'a>(args: &[Value<'a>], name: &str, is_difference: bool) -> Outcome<'a> {
    let (first, second) = match args {
        [
            Value::Object(Object::Quantity(a)),
            Value::Object(Object::Quantity(b)),
        ] => (*a, *b),
        [Value::Object(Object::Quantity(a)), Value::Int(number)] => (*a, Amount::from_int(*number)),
        _ => return Err(no_overload(name, args)),
    };
    let overflow = || Fault::new("quantity overflow");
    let quantity = match is_difference {
        true => first.quantity.checked_sub(second.quantity),
        false => first.quantity.checked_add(second.quantity),
    };
    let scale = match (first.mantissa, second.mantissa) {
        (_, 0) => first.scale,
        (0, _) => second.scale,
        _ => first.scale.min(second.scale),
    };
    let (a, b) = (first.at_scale(scale), second.at_scale(scale));
    let mantissa = a.zip(b).and_then(|(a, b)| match is_difference {
        true => a.checked_sub(b),
        false => a.checked_add(b),
    });
    let mantissa = mantissa.ok_or_else(overflow)?;
    Ok(value(Amount {
        quantity: quantity.ok_or_else(overflow)?,
        mantissa,
        scale,
        is_big: first.is_big || second.is_big || i64::try_from(mantissa).is_err(),
    }))
}

impl Amount {
    fn from_int(number: i64) -> Self {
        Self {
            quantity: Quantity::from(number),
            mantissa: i128::from(number),
            scale: 0,
            is_big: false,
        }
    }

    /// Returns the mantissa for a scale that is not greater than the own scale.
    fn at_scale(self, scale: i32) -> Option<i128> {
        if self.mantissa == 0 {
            return Some(0);
        }
        let power = u32::try_from(self.scale - scale).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(power)?)
    }

    fn to_int(self) -> Option<i64> {
        if self.is_big || self.scale < 0 {
            return None;
        }
        i64::try_from(self.at_scale(0)?).ok()
    }

    fn to_double(self) -> f64 {
        match self.scale {
            0 => self.mantissa as f64,
            scale => self.mantissa as f64 * 10_f64.powi(scale),
        }
    }
}

fn parse(text: &str) -> Result<Amount, &'static str> {
    const WRONG: &str = "quantities must match the regular expression \
        '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    const SUFFIX: &str = "unable to parse quantity's suffix";
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end).ok_or(WRONG)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let tail = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
    let is_shaped =
        !number.is_empty() && !fraction.contains('.') && tail.bytes().all(|b| b.is_ascii_digit());
    if !is_shaped {
        return Err(WRONG);
    }
    let quantity = Quantity::parse(text).ok_or(SUFFIX)?;
    let whole = whole.trim_start_matches('0');
    let digits = i32::try_from(whole.len() + fraction.len()).unwrap_or(i32::MAX);
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let mantissa: i128 = match format!("{whole}{fraction}").as_str() {
        "" => 0,
        digits => digits.parse().map_err(|_| SUFFIX)?,
    };
    let mantissa = if text.starts_with('-') {
        -mantissa
    } else {
        mantissa
    };
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let power = binary.iter().position(|known| *known == suffix);
    let (mantissa, scale, is_big) = match power {
        Some(power) => {
            let shift = (i32::try_from(power).unwrap_or_default() + 1) * 10;
            let factor = 1_i128 << shift;
            let precision = 15 - digits - shift * 3 / 10 - 1;
            let is_big = places > 0 || precision < 0;
            (mantissa.checked_mul(factor).ok_or(SUFFIX)?, -places, is_big)
        }
        None => {
            let exponent = match suffix {
                "n" => -9,
                "u" => -6,
                "m" => -3,
                "" => 0,
                "k" => 3,
                "M" => 6,
                "G" => 9,
                "T" => 12,
                "P" => 15,
                "E" => 18,
                other => other.get(1..).and_then(|e| e.parse().ok()).ok_or(SUFFIX)?,
            };
            let scale = exponent - places;
            (mantissa, scale, digits > DIGITS_MAX || scale < -9)
        }
    };
    Ok(Amount {
        quantity,
        mantissa,
        scale,
        is_big,
    })
}
