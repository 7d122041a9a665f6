//! Plural names of resources, as kubebuilder chooses them.
//!
//! kubebuilder takes the plural of the lower-cased kind from the Go library flect: endings such as
//! `y` to `ies`, and a table of irregular words, which may also end a longer word (`shopchild`).
//! opkit's macro has only regular plurals, so a project has a plural that is not regular in
//! writing.

#[cfg(test)]
mod tests;

/// Irregular words, the last in the order of flect's priority first: singular, plural, and a second
/// plural. `=` marks a word that is not an ending of longer words, `>` a plural that is not known
/// as a plural by itself.
const WORDS: &str = include_str!("plural/words.txt");

/// Endings and what they become, in the order of priority.
const ENDINGS: &str = include_str!("plural/endings.txt");

/// Row of [`WORDS`].
struct Word {
    singular: &'static str,
    plural: &'static str,
    second: Option<&'static str>,
    is_ending: bool,
    is_known_plural: bool,
}

fn words() -> impl Iterator<Item = Word> {
    WORDS.lines().filter_map(|line| {
        let mut parts = line.split(' ');
        let (singular, plural) = (parts.next()?, parts.next()?);
        Some(Word {
            singular: singular.trim_start_matches('='),
            plural: plural.trim_start_matches('>'),
            second: parts.next(),
            is_ending: !singular.starts_with('='),
            is_known_plural: !plural.starts_with('>'),
        })
    })
}

/// Returns the plural that kubebuilder chooses for a kind: `demoes` for `Demo`.
///
/// # Examples
/// ```
/// assert_eq!(opkit_scaffold::plural("Demo"), "demoes");
/// assert_eq!(opkit_scaffold::plural("Policy"), "policies");
/// ```
pub fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if let Some(found) = words().find(|it| it.singular == word) {
        return found.plural.to_owned();
    }
    let is_plural =
        |it: &Word| it.is_known_plural && it.plural == word || it.second == Some(word.as_str());
    if words().any(|it| is_plural(&it)) {
        return word;
    }
    let irregular = words().filter(|it| it.is_ending);
    let irregular = irregular.map(|it| (it.singular, it.plural));
    let endings = ENDINGS.lines().filter_map(|line| line.split_once(' '));
    for (singular, plural) in irregular.chain(endings) {
        // A word with the ending of a plural is a plural.
        if word.ends_with(plural) {
            return word;
        }
        if let Some(stem) = word.strip_suffix(singular) {
            return format!("{stem}{plural}");
        }
    }
    match word.ends_with('s') {
        true => word,
        false => format!("{word}s"),
    }
}

/// Returns the plural that the attribute `#[opkit::kind]` chooses if none is written.
pub(crate) fn regular(kind: &str) -> String {
    let word = kind.to_lowercase();
    let ends = ["s", "x", "z", "ch", "sh"];
    if ends.iter().any(|end| word.ends_with(end)) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}
