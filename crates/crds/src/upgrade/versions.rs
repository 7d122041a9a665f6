//! Changes of fields: of one version between the old and the new CRD, and between two served
//! versions of the new CRD.

use opkit_apimachinery::identity::compare_versions;

use super::crd::{Crd, Version};
use super::flatten::flatten;
use super::schema::Properties;
use super::{Change, Verdict, property_rules};

/// Returns the changes of each version that both CRDs have.
pub(super) fn same(old: &Crd, new: &Crd) -> Vec<Change> {
    let pairs = old.versions.iter().filter_map(|version| {
        let after = new.version(&version.name)?;
        Some((version.name.clone(), version, after))
    });
    pairs
        .flat_map(|(name, before, after)| changes(&name, &before.schema, &after.schema))
        .collect()
}

/// Returns the breaking differences between each two served versions of the new CRD that the old
/// CRD does not have. Without a conversion webhook, an object that is written in one version is
/// read in the other one as it is.
pub(super) fn served(old: &Crd, new: &Crd) -> Vec<Change> {
    if new.has_conversion_webhook {
        return Vec::new();
    }
    let known = differences(old);
    let mut found = differences(new);
    found.retain(|change| change.verdict != Verdict::Compatible && !known.contains(change));
    found
}

/// Returns the differences between each two served versions, from the older to the newer one.
fn differences(crd: &Crd) -> Vec<Change> {
    let served = crd.versions.iter().filter(|version| version.is_served);
    let mut served: Vec<&Version> = served.collect();
    served.sort_by(|left, right| compare_versions(&left.name, &right.name));
    let mut found = Vec::new();
    for (index, older) in served.iter().enumerate() {
        for newer in served.iter().skip(index.saturating_add(1)) {
            let name = format!("{} -> {}", older.name, newer.name);
            found.extend(changes(&name, &older.schema, &newer.schema));
        }
    }
    found
}

/// Returns the changes of each field of the old schema. A field that the new schema does not have
/// is compared with the empty schema.
fn changes(version: &str, old: &Properties, new: &Properties) -> Vec<Change> {
    let (old, new) = (flatten(old), flatten(new));
    let empty = Properties::new();
    let mut changes = Vec::new();
    for (field, before) in &old {
        let after = new.get(field).unwrap_or(&empty);
        if before == after && new.contains_key(field) {
            continue;
        }
        let judged = property_rules::judge(before.clone(), after.clone());
        changes.extend(judged.into_iter().map(|(rule, verdict, message)| Change {
            version: Some(version.to_owned()),
            field: field.clone(),
            verdict,
            rule,
            message,
        }));
    }
    changes
}
