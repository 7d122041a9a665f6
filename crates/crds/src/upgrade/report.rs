//! The changes as text.

use std::fmt::Write;

use super::{Change, StoredObjects, Upgrade, Verdict};

/// Number of invalid objects that the text lists; the data has all of them.
const OBJECTS_MAX: usize = 10;

/// Returns the changes of all CRDs as lines of text, and a summary. A field inside of a removed
/// field is not mentioned, and changes that only repeat the removal are left out.
///
/// # Examples
/// ```
/// let text = opkit_crds::render(&[]);
/// assert_eq!(text, "no CRDs\n");
/// ```
pub fn render(upgrades: &[Upgrade]) -> String {
    let mut text = String::new();
    for upgrade in upgrades {
        let _ = writeln!(text, "{}", upgrade.name);
        let shown: Vec<&Change> = shown(&upgrade.changes);
        if shown.is_empty() {
            let _ = writeln!(text, "   no changes");
        }
        let width = |of: fn(&Change) -> usize| shown.iter().map(|it| of(it)).max().unwrap_or(0);
        let version = width(|it| it.version.as_deref().unwrap_or("-").chars().count());
        let field = width(|it| field(it).chars().count());
        let rule = width(|it| it.rule.len());
        for change in &shown {
            let _ = writeln!(
                text,
                "   {:<7} {:<version$}  {:<field$}  {:<rule$}  {}",
                change.verdict,
                change.version.as_deref().unwrap_or("-"),
                self::field(change),
                change.rule,
                change.message
            );
        }
        if let Some(objects) = &upgrade.objects {
            text.push_str(&stored(objects));
        }
        for note in &upgrade.notes {
            let _ = writeln!(text, "   note: {note}");
        }
    }
    text + &summary(upgrades)
}

/// Returns the objects that would no longer validate.
fn stored(objects: &StoredObjects) -> String {
    let (total, version) = (objects.total, &objects.version);
    let plural = if total == 1 { "" } else { "s" };
    let invalid = objects.invalid.len();
    let mut text = format!(
        "   of {total} stored object{plural}, read as {version}, {invalid} would no longer validate\n"
    );
    for object in objects.invalid.iter().take(OBJECTS_MAX) {
        let namespace = object.namespace.as_deref().map(|it| format!("{it}/"));
        let _ = writeln!(
            text,
            "      {}{}: {}",
            namespace.unwrap_or_default(),
            object.name,
            object.errors.join("; ")
        );
    }
    if let more @ 1.. = invalid.saturating_sub(OBJECTS_MAX) {
        let _ = writeln!(text, "      and {more} more");
    }
    text
}

fn summary(upgrades: &[Upgrade]) -> String {
    if upgrades.is_empty() {
        return "no CRDs\n".to_owned();
    }
    let changes = upgrades.iter().flat_map(|upgrade| shown(&upgrade.changes));
    let changes: Vec<&Change> = changes.collect();
    let count = |verdict: Verdict| changes.iter().filter(|it| it.verdict == verdict).count();
    let (breaking, unhandled) = (count(Verdict::Breaking), count(Verdict::Unhandled));
    let unknown = match unhandled {
        0 => String::new(),
        number => format!(", {number} that no rule judges"),
    };
    let plural = if breaking == 1 { "" } else { "s" };
    format!("{breaking} breaking change{plural}{unknown} (rules and names as in OLM v1)\n")
}

fn field(change: &Change) -> &str {
    match (change.field.as_str(), &change.version) {
        ("", Some(_)) => ".",
        ("", None) => "-",
        (field, _) => field,
    }
}

/// Returns the changes without repetitions.
fn shown(changes: &[Change]) -> Vec<&Change> {
    let roots = |rule: &str| -> Vec<(&Option<String>, &str)> {
        let changes = changes.iter().filter(|change| change.rule == rule);
        let fields = changes.map(|change| (&change.version, change.field.as_str()));
        fields.collect()
    };
    let (removed, added) = (roots("existingFieldRemoval"), roots("field"));
    let is_below = |change: &Change, fields: &[(&Option<String>, &str)]| {
        fields
            .iter()
            .any(|(version, field)| *version == &change.version && is_inside(&change.field, field))
    };
    let is_repeated = |change: &Change| {
        let is_removed = removed.contains(&(&change.version, change.field.as_str()));
        let repeats_removal = is_removed && change.rule != "existingFieldRemoval";
        repeats_removal || is_below(change, &removed) || is_below(change, &added)
    };
    changes.iter().filter(|it| !is_repeated(it)).collect()
}

/// Reports whether a path leads into a field.
fn is_inside(path: &str, field: &str) -> bool {
    let rest = path.strip_prefix(field);
    rest.is_some_and(|rest| rest.starts_with(['.', '[']) && !field.is_empty())
}
