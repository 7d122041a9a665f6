//! Output of the commands on a project.

use anyhow::Result;
use opkit_scaffold::{Change, Imported, Outcome};
use serde_json::json;

use super::Output;
use crate::output::write;

/// Files that are not counted among the files of a new project.
const NOT_COUNTED: [&str; 2] = ["Cargo.lock", "LICENSE"];

/// Prints the files of a new project.
pub(super) fn created(
    name: &str,
    outcome: &Outcome,
    library: &str,
    next: &str,
    output: Output,
) -> Result<()> {
    if output == Output::Json {
        return json(outcome, Some(next), None);
    }
    write(&format!(
        "{}   next    {next}\n",
        summary("created", name, outcome, library)
    ));
    Ok(())
}

/// Prints the files of an imported project, and what is left to port.
pub(super) fn imported(
    name: &str,
    imported: &Imported,
    library: &str,
    next: &str,
    output: Output,
) -> Result<()> {
    if output == Output::Json {
        return json(&imported.outcome, Some(next), Some(&imported.unported));
    }
    let mut text = summary("imported", name, &imported.outcome, library);
    for unported in &imported.unported {
        text += &format!("   port    {unported}\n");
    }
    write(&format!("{text}   next    {next}\n"));
    Ok(())
}

/// Returns lines about the files of a new project.
fn summary(what: &str, name: &str, outcome: &Outcome, library: &str) -> String {
    let files = outcome.changes.iter();
    let counted: Vec<&Change> = files
        .filter(|it| !NOT_COUNTED.contains(&it.path.as_str()))
        .collect();
    let lines: usize = counted.iter().map(|it| lines(it)).sum();
    format!(
        "{what} {name}: {} files, {lines} lines\n   opkit   {library}\n",
        counted.len()
    )
}

/// Prints the changes of a project.
pub(super) fn changed(outcome: &Outcome, output: Output) -> Result<()> {
    if output == Output::Json {
        return json(outcome, outcome.next.as_deref(), None);
    }
    let mut text = String::new();
    match (outcome.changes.is_empty(), &outcome.next) {
        (false, _) => {}
        (true, None) => text += "nothing to do\n",
        (true, Some(_)) => text += "no file changes\n",
    }
    for change in outcome.changes.iter() {
        match (&change.before, &change.after) {
            (None, _) => text += &format!("+ {} ({} lines)\n", change.path, lines(change)),
            (_, None) => text += &format!("- {}\n", change.path),
            _ => {
                text += &format!("  {}\n", change.path);
                for line in change.changed_lines() {
                    text += &format!("{line}\n");
                }
            }
        }
    }
    for task in &outcome.by_hand {
        text += &format!("  by hand: {task}\n");
    }
    if let Some(next) = &outcome.next {
        text += &format!("  next: {next}\n");
    }
    write(&text);
    Ok(())
}

fn lines(change: &Change) -> usize {
    let text = change.after.as_deref().unwrap_or_default();
    text.lines().count()
}

fn json(outcome: &Outcome, next: Option<&str>, unported: Option<&[String]>) -> Result<()> {
    let paths = |is_meant: fn(&Change) -> bool| -> Vec<&str> {
        let changes = outcome.changes.iter().filter(|it| is_meant(it));
        changes.map(|it| it.path.as_str()).collect()
    };
    let mut object = json!({
        "created": paths(|it| it.before.is_none()),
        "changed": paths(|it| it.before.is_some() && it.after.is_some()),
        "deleted": paths(|it| it.after.is_none()),
        "next": next,
    });
    if let (false, Some(fields)) = (outcome.by_hand.is_empty(), object.as_object_mut()) {
        fields.insert("byHand".to_owned(), json!(outcome.by_hand));
    }
    if let (Some(unported), Some(fields)) = (unported, object.as_object_mut()) {
        fields.insert("port".to_owned(), json!(unported));
    }
    write(&format!("{}\n", serde_json::to_string_pretty(&object)?));
    Ok(())
}
