//! The differences that are known and explained.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::Difference;

/// A reason, and every place that it explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Why the embedded server answers differently.
    pub reason: String,
    /// `script / step / pointer`; what lies below the pointer is meant as well, and a part `*` is
    /// any field or item.
    pub places: Vec<String>,
}

/// What remains of a comparison once the known differences are taken out.
#[derive(Clone, Debug, Default)]
pub struct Unexplained {
    /// Differences that no entry explains.
    pub differences: Vec<Difference>,
    /// Places where nothing differs any more.
    pub gone: Vec<String>,
}

impl Known {
    /// Sorts out `differences`.
    ///
    /// # Errors
    /// If an entry gives no reason or a place is not of the form `script / step / pointer`.
    pub fn explain(known: &[Self], differences: Vec<Difference>) -> Result<Unexplained> {
        let mut places = Vec::new();
        for entry in known {
            ensure!(
                !entry.reason.trim().is_empty(),
                "a known difference without a reason"
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
        let gone = places.into_iter().filter(|(_, used)| !used);
        unexplained.gone = gone.map(|(place, _)| place.clone()).collect();
        Ok(unexplained)
    }
}

/// Whether a difference lies at or below a place; a part `*` of the place is any one part.
fn covers(place: &str, at: &str) -> bool {
    let mut found = at.split('/');
    place.split('/').all(|part| {
        found
            .next()
            .is_some_and(|found| part == "*" || part == found)
    })
}
