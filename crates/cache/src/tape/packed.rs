//! Packed strings: decimal numbers, UUIDs, times and digests in fewer bytes. A string is packed
//! only if unpacking returns exactly the same string.

/// String that can be packed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packed<'a> {
    Decimal(u64),
    Uuid([u8; 16]),
    /// Seconds since 1970.
    Time(u64),
    /// String that ends in hexadecimal digits: the digits, and the part before them.
    Digest {
        before: &'a str,
        digits: &'a str,
    },
}

/// Smallest number of hexadecimal digits for which a string is packed.
const DIGITS_MIN: usize = 16;

/// Returns the packed form of `text`; `None` if `text` cannot be packed.
pub(super) fn pack(text: &str) -> Option<Packed<'_>> {
    let bytes = text.as_bytes();
    match (bytes.len(), bytes.first()?) {
        (4..=19, b'1'..=b'9') if bytes.iter().all(u8::is_ascii_digit) => {
            text.parse().ok().map(Packed::Decimal)
        }
        (20, b'1' | b'2') if bytes.last() == Some(&b'Z') => time(bytes).map(Packed::Time),
        (36, _) if bytes.get(8) == Some(&b'-') => uuid(bytes).map(Packed::Uuid),
        (DIGITS_MIN.., _) => digest(text),
        _ => None,
    }
}

#[inline]
fn uuid(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut uuid = [0; 16];
    let mut digits = bytes.iter().enumerate().filter_map(|(n, byte)| {
        let dash = matches!(n, 8 | 13 | 18 | 23);
        match (dash, byte) {
            (true, b'-') => None,
            (true, _) => Some(None),
            (false, byte) => Some(digit(*byte)),
        }
    });
    for byte in &mut uuid {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    digits.next().is_none().then_some(uuid)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn digest(text: &str) -> Option<Packed<'_>> {
    let count = text
        .bytes()
        .rev()
        .take_while(|byte| digit(*byte).is_some())
        .count();
    let count = count & !1;
    if count < DIGITS_MIN {
        return None;
    }
    let (before, digits) = text.split_at_checked(text.len() - count)?;
    Some(Packed::Digest { before, digits })
}

/// Returns the bytes that the hexadecimal digits denote.
pub(super) fn digest_bytes(digits: &str) -> impl Iterator<Item = u8> {
    digits.as_bytes().chunks_exact(2).map(|pair| {
        let value = |n: usize| pair.get(n).and_then(|byte| digit(*byte)).unwrap_or(0);
        value(0) << 4 | value(1)
    })
}

/// Parses a time in the form `YYYY-MM-DDTHH:MM:SSZ` into seconds since 1970. Returns `None` if the
/// time is not valid or is before 1970.
#[inline]
fn time(bytes: &[u8]) -> Option<u64> {
    let shape = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = bytes.iter().zip(shape).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    });
    if !fits {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to).unwrap_or_default();
        digits
            .iter()
            .fold(0i64, |n, digit| n * 10 + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    if year < 1970 || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    // 31 February would be unpacked as a day in March.
    if day < 1 || civil_from_days(days) != (year, month, day) {
        return None;
    }
    u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()
}

/// Unpacked string that is stored in place, without an allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    bytes: [u8; 36],
    length: u8,
}

impl Short {
    #[inline]
    pub(super) fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length));
        // The bytes are ASCII digits, letters and signs only.
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn new() -> Self {
        Self {
            bytes: [0; 36],
            length: 0,
        }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.length)) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Appends the last `digits` decimal digits of `number`.
    #[inline]
    fn push_number(&mut self, number: u64, digits: u32) {
        for place in (0..digits).rev() {
            let digit = number / 10u64.pow(place) % 10;
            self.push(b'0' + digit as u8);
        }
    }

    #[inline]
    pub(super) fn decimal(number: u64) -> Self {
        let mut short = Self::new();
        short.push_number(number, number.checked_ilog10().unwrap_or(0) + 1);
        short
    }

    pub(super) fn time(seconds: u64) -> Self {
        let mut short = Self::new();
        let days = i64::try_from(seconds / 86_400).unwrap_or(0);
        let (year, month, day) = civil_from_days(days);
        let parts = [
            (year.unsigned_abs(), 4, b'-'),
            (month.unsigned_abs(), 2, b'-'),
            (day.unsigned_abs(), 2, b'T'),
            (seconds / 3_600 % 24, 2, b':'),
            (seconds / 60 % 60, 2, b':'),
            (seconds % 60, 2, b'Z'),
        ];
        for (number, digits, end) in parts {
            short.push_number(number, digits);
            short.push(end);
        }
        short
    }

    pub(super) fn uuid(bytes: &[u8]) -> Self {
        let mut short = Self::new();
        for (n, byte) in bytes.iter().enumerate() {
            if matches!(n, 4 | 6 | 8 | 10) {
                short.push(b'-');
            }
            short.push(letter(byte >> 4));
            short.push(letter(byte & 0x0f));
        }
        short
    }
}

pub(super) fn write_digits(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push(char::from(letter(byte >> 4)));
        out.push(char::from(letter(byte & 0x0f)));
    }
}

#[inline]
fn letter(digit: u8) -> u8 {
    if digit < 10 {
        b'0' + digit
    } else {
        b'a' + digit - 10
    }
}

/// Returns the number of days from 1970-01-01 to a date in the Gregorian calendar. Counts eras of
/// 400 years that start in March, so that the leap day is the last day of a year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[inline]
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let era = days / 146_097;
    let day_of_era = days - era * 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packable_strings_are_packed() {
        let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert!(matches!(pack(uuid), Some(Packed::Uuid(_))));
        assert_eq!(
            pack("2026-11-15T14:33:48Z"),
            Some(Packed::Time(1_794_753_228))
        );
        assert_eq!(pack("184467"), Some(Packed::Decimal(184_467)));
        let digest = "containerd://0123456789abcdef0123456789abcdef";
        let parts = Packed::Digest {
            before: "containerd://",
            digits: "0123456789abcdef0123456789abcdef",
        };
        assert_eq!(pack(digest), Some(parts));
        for text in [
            "0123",
            "12",
            "2026-02-30T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "0F8FAD5B-d9cb-469f-a165-70867728950e",
            "0f8fad5b-d9cb-469f-a165x70867728950e",
            "a name of some length",
            "",
        ] {
            assert_eq!(pack(text), None, "{text}");
        }
    }

    #[test]
    fn times_round_trip() {
        for seconds in (0..8_000_000_000u64).step_by(86_400 * 7 + 12_345) {
            let text = Short::time(seconds);
            assert_eq!(pack(text.as_str()), Some(Packed::Time(seconds)), "{text:?}");
        }
    }
}
