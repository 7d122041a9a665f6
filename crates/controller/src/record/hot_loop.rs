//! Detects loops: an object that is reconciled repeatedly because of the writes of its own
//! reconciles, or because another client reverts these writes. [`turns`] detects children that are
//! created and pruned alternately. [`pace`] detects objects that are reconciled without a pause for
//! any other reason.
//!
//! Frequent but healthy reconciles are not reported. For example, a rollout of many steps is caused
//! by the changes of other clients, and no field gets an earlier value again.

mod pace;
mod turns;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use opkit_apimachinery::managedfields::FieldSetRef;

pub(super) use self::pace::Pace;
use self::turns::Turns;
use super::ReconcileRecord;
use crate::record::trace::Write;

/// Number of reconciles in a row that count as a loop, each caused only by the writes of the
/// reconcile before.
const CHAIN: u32 = 10;
/// Number of times that the same value of a field must come back and be overwritten to count as a
/// loop.
const FIGHT: usize = 5;
/// Time within which [`CHAIN`] reconciles or [`FIGHT`] overwritten values count as a loop.
const WINDOW: Duration = Duration::from_secs(60);
/// Largest number of overwritten values, and of children, that are remembered per object. Bounds
/// the memory of a tracker.
const MAX_TRACKED: usize = 32;

/// A detected loop: reconciles of an object that cause further reconciles of the same object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotLoop {
    /// The object whose change causes the next reconcile, such as `Deployment robot-one`.
    pub object: String,
    /// Path of the field that keeps changing; empty if the field is not known.
    pub field: String,
    /// The field manager that keeps changing the field; `None` if the manager is not known.
    pub manager: Option<String>,
    /// The cause of the last reconcile, such as a requeue after 1 ms. Set if the object is
    /// reconciled without a pause and no changing field is known.
    pub because: Option<String>,
    /// Whether the object is a child that one reconcile creates and the next one prunes.
    pub is_created_and_pruned: bool,
    /// Number of reconciles that the loop has caused so far.
    pub count: u32,
}

impl fmt::Display for HotLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            field,
            manager,
            because,
            is_created_and_pruned,
            count,
        } = self;
        if *is_created_and_pruned {
            return write!(
                f,
                "loop: {object} is created and pruned alternately, {count} reconciles so far: a child that a reconcile does not apply is pruned; apply it in every reconcile, or create it with cx.create_once"
            );
        }
        if let Some(because) = because {
            return write!(
                f,
                "loop: {object} is reconciled without a pause, because {because}, {count} reconciles so far"
            );
        }
        let manager = manager.as_deref().unwrap_or("another client");
        write!(
            f,
            "loop: {manager} keeps changing {field} of {object}, {count} reconciles so far"
        )
    }
}

/// A field that another client set and this reconcile overwrote.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Correction {
    kind: String,
    name: String,
    field: String,
    /// Fingerprint of the value that the other client set.
    value: u64,
}

/// A field that a reconcile writes and another client seems to change back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContestedField {
    /// Kind of the object that has the field.
    pub(crate) kind: String,
    /// Name of the object that has the field.
    pub(crate) name: String,
    /// Path of the field.
    pub(crate) field: String,
}

/// State of the loop detection for one object.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// Number of reconciles in a row that were caused only by the writes of the reconcile before.
    chain: u32,
    since: Duration,
    wrote: Vec<Write>,
    corrections: VecDeque<(Duration, Correction)>,
    turns: Turns,
    /// The other client's field manager, which keeps changing the field; `None` until it is looked
    /// up.
    pub(super) other_manager: Option<String>,
}

impl Tracker {
    /// Records a finished reconcile. Returns the loop that the reconcile is part of, if any.
    pub(super) fn observe(
        &mut self,
        now: Duration,
        record: &ReconcileRecord,
        field_manager: &str,
    ) -> Option<HotLoop> {
        let own = self.own_loop(now, record, field_manager);
        let fight = self.fight(now, record);
        let turns = self.turns.observe(now, record);
        self.wrote.clone_from(&record.writes);
        turns.or(own).or(fight)
    }

    /// Detects a loop of reconciles that write again, and that are caused only by the writes of the
    /// reconcile before.
    fn own_loop(
        &mut self,
        now: Duration,
        record: &ReconcileRecord,
        field_manager: &str,
    ) -> Option<HotLoop> {
        let is_own = |kind: Option<&str>, name: &str| {
            let kind = kind.unwrap_or(&record.kind);
            let mut wrote = self.wrote.iter();
            wrote.any(|write| write.kind == kind && write.key.name == name)
        };
        let mut causes = record.causes.iter();
        let all_own = causes.all(|cause| {
            cause
                .change()
                .is_some_and(|(kind, name, fields)| !fields.is_empty() && is_own(kind, name))
        });
        if !all_own || record.writes.is_empty() || record.causes.more() > 0 {
            self.chain = 0;
            return None;
        }
        if self.chain == 0 {
            self.since = now;
        }
        self.chain = self.chain.saturating_add(1);
        if self.chain < CHAIN || now.saturating_sub(self.since) > WINDOW * self.chain / CHAIN {
            return None;
        }
        let (kind, name, fields) = record.causes.iter().find_map(|cause| cause.change())?;
        Some(HotLoop {
            object: format!("{} {name}", kind.unwrap_or(&record.kind)),
            field: fields
                .first()
                .map(|field| field.path.clone())
                .unwrap_or_default(),
            manager: Some(field_manager.to_owned()),
            because: None,
            is_created_and_pruned: false,
            count: self.chain,
        })
    }

    /// Detects a field that gets the same value back repeatedly, while each reconcile writes the
    /// object.
    fn fight(&mut self, now: Duration, record: &ReconcileRecord) -> Option<HotLoop> {
        while let Some((at, _)) = self.corrections.front()
            && (now.saturating_sub(*at) > WINDOW || self.corrections.len() >= MAX_TRACKED)
        {
            self.corrections.pop_front();
        }
        let mut found = None;
        for cause in record.causes.iter() {
            let Some((kind, name, fields)) = cause.change() else {
                continue;
            };
            let kind = kind.unwrap_or(&record.kind);
            let mut writes = record.writes.iter();
            if !writes.any(|write| write.kind == kind && write.key.name == name) {
                continue;
            }
            for field in fields {
                let correction = Correction {
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                    field: field.path.clone(),
                    value: field.fingerprint,
                };
                self.corrections.push_back((now, correction.clone()));
                let alike = self
                    .corrections
                    .iter()
                    .filter(|(_, one)| *one == correction);
                let count = alike.count();
                if count >= FIGHT {
                    found = Some(HotLoop {
                        object: format!("{kind} {name}"),
                        field: correction.field,
                        manager: self.other_manager.clone(),
                        because: None,
                        is_created_and_pruned: false,
                        count: u32::try_from(count).unwrap_or(u32::MAX),
                    });
                }
            }
        }
        found
    }

    /// Returns the field that another client seems to change back. Returns `None` if there is no
    /// such field, or the other client's field manager is known already.
    pub(super) fn contested(&self) -> Option<ContestedField> {
        let (_, last) = self.corrections.back()?;
        let alike = self.corrections.iter().filter(|(_, one)| one == last);
        let is_contested = self.other_manager.is_none() && alike.count() + 1 >= FIGHT;
        is_contested.then(|| ContestedField {
            kind: last.kind.clone(),
            name: last.name.clone(),
            field: last.field.clone(),
        })
    }
}

/// Returns the field manager, other than `not`, that owns the field at `path` of an object with
/// these managed fields. The path is in the form of `FieldChange::path`.
pub(crate) fn manager_of(entries: &[ManagedFieldsEntry], path: &str, not: &str) -> Option<String> {
    let owners = entries.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        let fields = fields.and_then(|fields| FieldSetRef::new(&fields.0));
        fields.is_some_and(|fields| fields.contains(path))
    });
    let mut managers = owners.filter_map(|entry| entry.manager.as_deref());
    managers.find(|manager| *manager != not).map(str::to_owned)
}

#[cfg(test)]
mod tests;
