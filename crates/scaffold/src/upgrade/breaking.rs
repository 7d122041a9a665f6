//! Breaking changes between two versions, from the changelog of opkit.

/// Changelog of the version of this command.
pub(super) const CHANGELOG: &str = include_str!("../../CHANGELOG.md");

/// Heading of the section about the version that is not released yet, which is that of the command
/// until its release.
const UNRELEASED: &str = "Unreleased";

/// Returns the breaking changes after the version `old` up to the version `new`, newest version
/// first, each on one line. Empty if one of them is not a version.
pub(super) fn between(changelog: &str, old: &str, new: &str) -> Vec<String> {
    let (Some(old), Some(new)) = (numbers(old), numbers(new)) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    let (mut is_between, mut is_breaking) = (false, false);
    for line in changelog.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            // A date may follow.
            let version = heading.split_whitespace().next().unwrap_or_default();
            let version = match version {
                UNRELEASED => Some(new),
                version => numbers(version),
            };
            is_between = version.is_some_and(|version| old < version && version <= new);
            is_breaking = false;
        } else if let Some(heading) = line.strip_prefix("### ") {
            is_breaking = heading.trim() == "Breaking";
        } else if is_between && is_breaking {
            match (line.strip_prefix("- "), found.last_mut()) {
                (Some(item), _) => found.push(item.trim().to_owned()),
                (None, Some(last)) if !line.trim().is_empty() => {
                    last.push(' ');
                    last.push_str(line.trim());
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the numbers of a version or of a requirement such as `0.1`, whose missing numbers are 0.
/// The label of a pre-release is left out.
pub(super) fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.trim().trim_start_matches(['^', '=', '~', 'v']);
    let plain = plain.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = [0; 3];
    let mut parts = plain.trim().split('.');
    for number in &mut numbers {
        match parts.next() {
            Some(part) => *number = part.parse().ok()?,
            None => break,
        }
    }
    parts.next().is_none().then_some(numbers)
}
