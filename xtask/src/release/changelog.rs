//! The section of the changelog about a release.

use anyhow::{Context, Result, ensure};

/// Returns the section `Unreleased` with the version as its heading, or the version's own section
/// if there is one.
pub(super) fn section(changelog: &str, version: &str) -> Result<String> {
    let own = format!("## {version}");
    let body = find(changelog, &own).or_else(|| find(changelog, "## Unreleased"));
    let body = body
        .context("CHANGELOG.md has no section Unreleased")?
        .trim();
    ensure!(
        !body.is_empty(),
        "the section Unreleased of CHANGELOG.md is empty"
    );
    Ok(format!("{own}\n\n{body}\n"))
}

/// Returns the lines between a heading and the next one of its level. The heading may continue,
/// such as with a date.
fn find<'a>(changelog: &'a str, heading: &str) -> Option<&'a str> {
    let is_heading = |line: &str| {
        let rest = line.strip_prefix(heading);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let mut at = 0;
    let mut start = None;
    for line in changelog.split_inclusive('\n') {
        match start {
            None if is_heading(line.trim_end()) => start = Some(at + line.len()),
            Some(start) if line.starts_with("## ") => return changelog.get(start..at),
            _ => {}
        }
        at += line.len();
    }
    changelog.get(start?..)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n### Added\n\n- **cli**: plan.\n\n\
                             ## 0.1.0 (2026-11-01)\n\n- First.\n";

    #[test]
    fn the_section_of_what_is_not_released_gets_the_version() {
        let section = section(CHANGELOG, "0.2.0").unwrap();
        assert_eq!(section, "## 0.2.0\n\n### Added\n\n- **cli**: plan.\n");
    }

    #[test]
    fn a_version_with_a_section_has_that() {
        assert_eq!(
            section(CHANGELOG, "0.1.0").unwrap(),
            "## 0.1.0\n\n- First.\n"
        );
        assert!(section(CHANGELOG, "0.1").unwrap().contains("plan"));
    }

    #[test]
    fn an_empty_section_is_an_error() {
        let error = section("## Unreleased\n\n## 0.1.0\n\n- First.\n", "0.2.0").unwrap_err();
        assert!(error.to_string().contains("is empty"));
    }
}
