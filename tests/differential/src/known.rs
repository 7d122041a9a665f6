//! Known differences with their reasons.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::Difference;

/// Reason, and all places that it explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Reason why the embedded server responds differently.
    pub reason: String,
    /// Places as `script / step / pointer`. A place includes everything below its pointer; a part
    /// `*` matches any field or item.
    pub places: Vec<String>,
}

/// Result of a comparison without the known differences.
#[derive(Clone, Debug, Default)]
pub struct Unexplained {
    /// Differences without an entry.
    pub differences: Vec<Difference>,
    /// Known places where nothing differs any more.
    pub obsolete: Vec<String>,
}

impl Known {
    /// Removes the known differences from `differences`.
    ///
    /// # Errors
    /// If an entry has no reason or a place does not have the form `script / step / pointer`.
    pub fn explain(known: &[Self], differences: Vec<Difference>) -> Result<Unexplained> {
        let mut places = Vec::new();
        for entry in known {
            ensure!(
                !entry.reason.trim().is_empty(),
                "a known difference has no reason"
            );
            for place in &entry.places {
                let parts: Vec<&str> = place.split(" / ").collect();
                ensure!(parts.len() == 3, "not `script / step / pointer`: {place}");
                places.push((place, false));
            }
        }
        let mut unexplained = Unexplained::default();
        for difference in differences {
            let at = format!(
                "{} / {} / {}",
                difference.script, difference.step, difference.pointer
            );
            let mut explained = false;
            for (place, used) in &mut places {
                if covers(place, &at) {
                    (*used, explained) = (true, true);
                }
            }
            if !explained {
                unexplained.differences.push(difference);
            }
        }
        let obsolete = places.into_iter().filter(|(_, used)| !used);
        unexplained.obsolete = obsolete.map(|(place, _)| place.clone()).collect();
        Ok(unexplained)
    }
}

/// Reports whether a difference is at or below a place; a part `*` of the place matches any one
/// part.
fn covers(place: &str, at: &str) -> bool {
    let mut found = at.split('/');
    place.split('/').all(|part| {
        found
            .next()
            .is_some_and(|found| part == "*" || part == found)
    })
}
