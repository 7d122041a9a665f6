//! Parser of shard selectors, which are a subset of CEL. The error messages are those of
//! Kubernetes.

use super::{END, ShardError, ShardKey, ShardRange, ShardSelector};

pub(super) fn parse(text: &str) -> Result<ShardSelector, ShardError> {
    if text.trim().is_empty() {
        return Err(ShardError::new(
            "empty shard selector is not allowed; omit the parameter for unfiltered lists",
        ));
    }
    let mut parser = Parser { rest: text };
    let mut found = Vec::new();
    parser.alternatives(&mut found, 0)?;
    parser.skip_space();
    if !parser.rest.is_empty() {
        return Err(parser.syntax());
    }
    let mut key = None;
    let mut ranges = Vec::with_capacity(found.len());
    for (found_key, range) in found {
        let first = *key.get_or_insert(found_key);
        if first != found_key {
            let (first, other) = (first.to_string(), found_key.to_string());
            return Err(ShardError::new(format!(
                "all shard ranges must use the same field, got {first:?} and {other:?}"
            )));
        }
        ranges.push(range);
    }
    Ok(ShardSelector::new(key.unwrap_or(ShardKey::Uid), ranges))
}

/// Maximum nesting depth of parentheses. The limit bounds the recursion of the parser.
const DEPTH_MAX: usize = 32;

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn alternatives(
        &mut self,
        found: &mut Vec<(ShardKey, ShardRange)>,
        depth: usize,
    ) -> Result<(), ShardError> {
        loop {
            if depth < DEPTH_MAX && self.take("(") {
                self.alternatives(found, depth + 1)?;
                self.expect(")")?;
            } else {
                found.push(self.call()?);
            }
            if !self.take("||") {
                return Ok(());
            }
        }
    }

    fn call(&mut self) -> Result<(ShardKey, ShardRange), ShardError> {
        let name = self.path();
        if name.is_empty() {
            return Err(self.syntax());
        }
        if !self.take("(") {
            return Err(ShardError::new(
                "unexpected expression kind 3; expected shardRange() call or || operator",
            ));
        }
        if name != "shardRange" {
            return Err(ShardError::new(format!(
                "unsupported function {name:?}; only shardRange() and || are allowed"
            )));
        }
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.argument()?);
        }
        let [field, start, end] = arguments.as_slice() else {
            return Err(ShardError::new(format!(
                "shardRange() requires exactly 3 arguments, got {}",
                arguments.len()
            )));
        };
        let key = match field {
            Argument::Path("object.metadata.uid") => ShardKey::Uid,
            Argument::Path("object.metadata.namespace") => ShardKey::Namespace,
            Argument::Path(path) => {
                return Err(ShardError::new(format!(
                    "unsupported field path {path:?}; supported: object.metadata.uid, \
                     object.metadata.namespace"
                )));
            }
            Argument::Text(_) => {
                return Err(ShardError::new(
                    "shardRange() first argument: expected field path (e.g. object.metadata.uid), \
                     got expression kind 5",
                ));
            }
        };
        let (start, end) = (bound(start, "hexStart")?, bound(end, "hexEnd")?);
        if start >= end {
            return Err(ShardError::new(format!(
                "shard range start 0x{start:016x} must be less than end 0x{end:016x}"
            )));
        }
        Ok((key, ShardRange { start, end }))
    }

    fn argument(&mut self) -> Result<Argument<'a>, ShardError> {
        for quote in ['\'', '"'] {
            self.skip_space();
            if let Some(inside) = self.rest.strip_prefix(quote) {
                let (text, rest) = inside.split_once(quote).ok_or_else(|| self.syntax())?;
                self.rest = rest;
                return Ok(Argument::Text(text));
            }
        }
        match self.path() {
            "" => Err(self.syntax()),
            path => Ok(Argument::Path(path)),
        }
    }

    fn path(&mut self) -> &'a str {
        self.skip_space();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
        let end = self.rest.find(|letter| !is_part(letter));
        let (path, rest) = self
            .rest
            .split_at_checked(end.unwrap_or(self.rest.len()))
            .unwrap_or_default();
        self.rest = rest;
        path
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), ShardError> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.syntax()),
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn syntax(&self) -> ShardError {
        let next = self.rest.chars().next();
        let next = next.map_or_else(|| "<EOF>".to_owned(), String::from);
        ShardError::new(format!(
            "CEL parse error: Syntax error: unexpected '{next}'"
        ))
    }
}

enum Argument<'a> {
    Path(&'a str),
    Text(&'a str),
}

/// Parses a bound of a range of hashes: `0x` and 16 hexadecimal digits, or 2^64.
fn bound(argument: &Argument<'_>, name: &str) -> Result<u128, ShardError> {
    let Argument::Text(text) = argument else {
        return Err(ShardError::new(format!(
            "{name} must be a string literal (e.g. '0xff'), got expression kind 4"
        )));
    };
    let Some(hex) = text.strip_prefix("0x") else {
        return Err(ShardError::new(format!(
            "{name} must have '0x' prefix, got {text:?}"
        )));
    };
    let length = hex.chars().count();
    let is_digit = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
    let defect = if hex.is_empty() {
        Some("hex value is required after '0x'".to_owned())
    } else if length > 17 {
        Some(format!(
            "hex value too long ({length} chars, max 17): {hex:?}"
        ))
    } else if let Some(letter) = hex.chars().find(|letter| !is_digit(*letter)) {
        let letter = letter.to_string();
        Some(format!("invalid hex character {letter:?} in {text:?}"))
    } else if length == 17 && *text != "0x10000000000000000" {
        Some(format!(
            "17-digit hex value must be '0x10000000000000000' (2^64), got {text:?}"
        ))
    } else {
        None
    };
    if let Some(defect) = defect {
        return Err(ShardError::new(format!("{name}: {defect}")));
    }
    if length < 16 {
        let padded = format!("0x{hex:0>16}");
        return Err(ShardError::new(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean {padded:?}?)"
        )));
    }
    let value = u128::from_str_radix(hex, 16).unwrap_or(END);
    Ok(value)
}
