//! Keys, from the bytes that a terminal sends.

/// A key of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// A character.
    Char(char),
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// Reads keys from bytes. The bytes of one key may arrive in several pieces.
#[derive(Debug, Default)]
pub struct KeyReader {
    pending: Vec<u8>,
}

/// Escape sequences of keys, with and without the cursor's application mode.
const SEQUENCES: [(&[u8], Key); 11] = [
    (b"\x1b[A", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1b[C", Key::Right),
    (b"\x1b[D", Key::Left),
    (b"\x1bOA", Key::Up),
    (b"\x1bOB", Key::Down),
    (b"\x1bOC", Key::Right),
    (b"\x1bOD", Key::Left),
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
    (b"\x1b[Z", Key::BackTab),
];

impl KeyReader {
    /// Returns the keys in `bytes` and in earlier bytes that were not complete. An escape sequence
    /// without a key is dropped.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((length, key)) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..length);
        }
        keys
    }

    /// Returns the key Escape if its byte was the last one and nothing has followed.
    pub fn timed_out(&mut self) -> Option<Key> {
        let is_escape = self.pending == [0x1b];
        self.pending.clear();
        is_escape.then_some(Key::Escape)
    }

    /// Reports whether bytes wait for the rest of a key.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// Returns the number of bytes of the first key and the key. Returns `None` if the key is not
/// complete.
fn first(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let key = match bytes.first()? {
        0x1b => return escape(bytes),
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        0x7f | 0x08 => Key::Backspace,
        0x03 => Key::Interrupt,
        byte if *byte < 0x20 => return Some((1, None)),
        _ => return character(bytes),
    };
    Some((1, Some(key)))
}

fn escape(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let sequence = SEQUENCES.iter().find(|(known, _)| bytes.starts_with(known));
    if let Some((known, key)) = sequence {
        return Some((known.len(), Some(*key)));
    }
    match bytes.get(1)? {
        b'[' => {
            let end = bytes
                .iter()
                .skip(2)
                .position(|byte| (0x40..0x7f).contains(byte))?;
            Some((end.saturating_add(3), None))
        }
        b'O' => bytes.get(2).map(|_| (3, None)),
        // Escape, and then another key.
        _ => Some((1, Some(Key::Escape))),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).unwrap_or_default()
        }
        // The first byte is not valid, or the character is not complete.
        Err(error) => return error.error_len().map(|length| (length, None)),
    };
    let char = text.chars().next()?;
    Some((char.len_utf8(), Some(Key::Char(char))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_bytes() {
        let mut reader = KeyReader::default();
        let keys = reader.read(b"q\r\t\x7f\x03\x1b[A\x1bOB\x1b[5~\x1b[Z\xc3\xa4");
        assert_eq!(
            keys,
            [
                Key::Char('q'),
                Key::Enter,
                Key::Tab,
                Key::Backspace,
                Key::Interrupt,
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::BackTab,
                Key::Char('ä'),
            ]
        );
    }

    #[test]
    fn a_key_may_arrive_in_pieces() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.is_pending());
        assert_eq!(reader.read(b"[B"), [Key::Down]);
        assert_eq!(reader.read(b"\x1b"), []);
        assert_eq!(reader.timed_out(), Some(Key::Escape));
        assert_eq!(reader.timed_out(), None);
        assert_eq!(reader.read(b"\xc3"), []);
        assert_eq!(reader.read(b"\xa4"), [Key::Char('ä')]);
    }

    #[test]
    fn unknown_sequences_are_dropped() {
        let mut reader = KeyReader::default();
        assert_eq!(
            reader.read(b"\x1b[200~a\x1bx\x00\xffb"),
            [Key::Char('a'), Key::Escape, Key::Char('x'), Key::Char('b'),]
        );
    }
}
