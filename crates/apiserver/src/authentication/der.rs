//! A reader and a writer of DER, the encoding of certificates and keys.

/// Tags of the values that certificates and keys consist of.
pub(super) mod tag {
    pub(in super::super) const INTEGER: u8 = 0x02;
    pub(in super::super) const BIT_STRING: u8 = 0x03;
    pub(in super::super) const OCTET_STRING: u8 = 0x04;
    pub(in super::super) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(in super::super) const SEQUENCE: u8 = 0x30;
    pub(in super::super) const SET: u8 = 0x31;
    /// An optional value with number 0, such as the version of a certificate.
    pub(in super::super) const CONTEXT_0: u8 = 0xa0;
    /// An optional value with number 1.
    pub(in super::super) const CONTEXT_1: u8 = 0xa1;
}

/// A reader of the values in a DER text, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Returns the tag and the contents of the next value, or `None` at the end or if the text is
    /// not valid.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if bytes.is_empty() || bytes.len() > 4 {
                return None;
            }
            length = bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            rest = after;
        }
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, contents))
    }

    /// Returns the contents of the next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, contents)| contents)
    }

    /// Skips the next value if it has this tag.
    pub(super) fn skip(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

/// Returns the encoding of a value with this tag and these contents.
pub(super) fn value(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let mut encoded = vec![tag];
    match u8::try_from(length) {
        Ok(length) if length < 0x80 => encoded.push(length),
        _ => {
            let bytes = length.to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            encoded.push(0x80 | bytes.len() as u8);
            encoded.extend(bytes);
        }
    }
    encoded.extend(contents);
    encoded
}
