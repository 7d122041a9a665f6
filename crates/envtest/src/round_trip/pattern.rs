//! Random texts that match a regular expression.

use opkit_random::Random;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Number of repetitions above the minimum.
const MORE_MAX: u32 = 4;

/// Returns a random text that matches a regular expression, unless the expression has parts that
/// depend on their surroundings, such as word boundaries. The caller validates the text.
pub(super) fn random_match(pattern: &str, random: &mut Random) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = Vec::new();
    add(&hir, random, &mut text);
    String::from_utf8(text).ok()
}

fn add(hir: &Hir, random: &mut Random, text: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(class) => add_one_of(class, random, text),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            let most = most.min(repetition.min.saturating_add(MORE_MAX));
            let more = u64::from(most.saturating_sub(repetition.min)).saturating_add(1);
            let count = u64::from(repetition.min).saturating_add(random.below(more));
            for _ in 0..count {
                add(&repetition.sub, random, text);
            }
        }
        HirKind::Capture(capture) => add(&capture.sub, random, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| add(part, random, text)),
        HirKind::Alternation(parts) => {
            if let Some(part) = random.one_of(parts) {
                add(part, random, text);
            }
        }
    }
}

/// Adds a character of a class. ASCII letters and digits are preferred, because a class such as
/// `[^:]` contains mostly characters that no user writes.
fn add_one_of(class: &Class, random: &mut Random, text: &mut Vec<u8>) {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            let ranges = class.ranges().iter();
            ranges
                .map(|range| (range.start() as u32, range.end() as u32))
                .collect()
        }
        Class::Bytes(class) => {
            let ranges = class.ranges().iter();
            ranges
                .map(|range| (u32::from(range.start()), u32::from(range.end())))
                .collect()
        }
    };
    let ascii: Vec<char> = (' '..='~')
        .filter(|c| {
            ranges
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&(*c as u32)))
        })
        .collect();
    let chosen = match (ascii.is_empty(), random.percent(90)) {
        (false, true) => random.one_of(&ascii).copied(),
        _ => random.one_of(&ranges).copied().and_then(|(low, high)| {
            let more = u64::from(high.saturating_sub(low)).saturating_add(1);
            let at = u32::try_from(random.below(more)).ok()?;
            char::from_u32(low.saturating_add(at))
        }),
    };
    let chosen = chosen.or_else(|| ascii.first().copied());
    let mut buffer = [0; 4];
    text.extend(
        chosen
            .map(|chosen| chosen.encode_utf8(&mut buffer).as_bytes().to_vec())
            .unwrap_or_default(),
    );
}
