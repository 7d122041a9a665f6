//! A plan as text.

use std::fmt::Write;

use opkit_crds::Verdict;
use opkit_debug::{OperatorPlan, PlannedEffect, PlannedObject};
use opkit_deploy::{Change, ObjectChange, Permissions, Plan};

use crate::output::plain;

/// Number of changed fields of one object that the text lists; the JSON output has all of them.
const FIELDS_MAX: usize = 12;

/// Width of the column of the objects, from which on a longer name moves the rest of its line.
const OBJECT_MAX: usize = 56;

/// One object of a plan.
#[derive(Debug, Default)]
struct Row {
    sign: char,
    object: String,
    /// Changed fields; each has a line of its own.
    fields: Vec<String>,
    /// Text after the first line.
    note: String,
    /// Lines after the fields.
    details: Vec<String>,
}

/// Returns the changes in the cluster.
pub(super) fn cluster(plan: &Plan) -> String {
    let rows = plan.changes.iter();
    let rows: Vec<_> = rows.map(|change| row(change, &plan.namespace)).collect();
    format!("cluster   {}\n{}", count(rows.len()), lines(&rows))
}

/// Returns the changes by the operator.
pub(super) fn operator(plan: &OperatorPlan) -> String {
    if let Some(reason) = &plan.refused {
        return format!("operator  not run: {}\n", plain(reason));
    }
    let mut rows: Vec<_> = plan.changes.iter().map(written).collect();
    let number = count(rows.len());
    rows.extend(plan.failures.iter().map(|failure| Row {
        sign: '!',
        object: qualified(
            None,
            failure.object.namespace.as_deref(),
            &failure.object.to_string(),
        ),
        fields: vec![failure.error.clone()],
        ..Row::default()
    }));
    let reconciled = plan.reconciled.iter().filter(|it| it.objects > 0);
    let reconciled: Vec<String> = reconciled
        .map(|it| match it.objects {
            1 => format!("1 {}", it.kind.to_lowercase()),
            number => format!("{number} {}", it.plural),
        })
        .collect();
    let reconciled = match reconciled.is_empty() {
        true => ": there are no objects to reconcile".to_owned(),
        false => format!(
            ", after reconciling {} here with every write held back",
            reconciled.join(", ")
        ),
    };
    let mut text = format!("operator  {number}{}\n{}", plain(&reconciled), lines(&rows));
    if plan.is_unfinished {
        text.push_str(
            "   the reconciles still change something each time: there may be more changes\n",
        );
    }
    text
}

/// Returns the notes, one on each line.
pub(super) fn notes(notes: &[String]) -> String {
    let lines = notes.iter();
    lines
        .map(|it| format!("   note: {}\n", plain(it)))
        .collect()
}

fn written(change: &PlannedObject) -> Row {
    let reconciled: Vec<String> = change.reconciled.iter().map(ToString::to_string).collect();
    let mut notes = Vec::new();
    if !reconciled.is_empty() {
        notes.push(format!("for {}", reconciled.join(", ")));
    }
    if let Some(reason) = &change.unchecked {
        notes.push(format!("not validated: {reason}"));
    }
    Row {
        sign: match change.change {
            PlannedEffect::Created => '+',
            PlannedEffect::Changed => '~',
            PlannedEffect::Deleted => '-',
        },
        object: qualified(
            change.cluster.as_deref(),
            change.namespace.as_deref(),
            &format!("{}/{}", change.kind.to_lowercase(), change.name),
        ),
        fields: change.fields.iter().map(ToString::to_string).collect(),
        note: plain(&notes.join("   ")),
        details: Vec::new(),
    }
}

/// Returns the name of an object, with its cluster and its namespace if it has them.
fn qualified(cluster: Option<&str>, namespace: Option<&str>, name: &str) -> String {
    let cluster = cluster.map(|cluster| format!("{cluster}://"));
    let namespace = namespace.map(|namespace| format!("{namespace} "));
    format!(
        "{}{}{name}",
        cluster.unwrap_or_default(),
        namespace.unwrap_or_default()
    )
}

fn row(change: &ObjectChange, own_namespace: &str) -> Row {
    let object = &change.object;
    let kind = match object.kind.as_str() {
        "CustomResourceDefinition" => "crd".to_owned(),
        kind => kind.to_lowercase(),
    };
    let namespace = object.namespace.as_deref();
    let namespace = namespace.filter(|namespace| *namespace != own_namespace);
    let mut row = Row {
        sign: sign(change.change),
        object: qualified(None, namespace, &format!("{kind}/{}", object.name)),
        fields: change.fields.iter().map(ToString::to_string).collect(),
        ..Row::default()
    };
    row.note = match change.permissions {
        Some(Permissions::Wider) => "wider".to_owned(),
        Some(Permissions::Narrower) => "narrower".to_owned(),
        Some(_) => "wider and narrower".to_owned(),
        None => String::new(),
    };
    if let Some(crd) = &change.crd {
        row.note = match crd.verdict {
            Verdict::Compatible => "compatible".to_owned(),
            verdict => verdict.to_string(),
        };
        row.details = (crd.problems.iter())
            .map(|problem| {
                let version = problem.version.as_deref().unwrap_or("-");
                let (field, rule) = (&problem.field, problem.rule);
                let field = if field.is_empty() { "." } else { field };
                let (verdict, message) = (problem.verdict, &problem.message);
                format!("{verdict:<7} {version}  {field}  {rule}  {message}")
            })
            .collect();
    }
    row
}

fn sign(change: Change) -> char {
    match change {
        Change::Created => '+',
        Change::Deleted => '-',
        _ => '~',
    }
}

/// Returns the number of changes in words.
fn count(number: usize) -> String {
    match number {
        0 => "no changes".to_owned(),
        1 => "1 change".to_owned(),
        number => format!("{number} changes"),
    }
}

/// Returns the rows with aligned columns.
fn lines(rows: &[Row]) -> String {
    let widths = rows.iter().map(|row| row.object.chars().count());
    let width = widths.filter(|width| *width <= OBJECT_MAX).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let (sign, object) = (row.sign, plain(&row.object));
        let first = row.fields.first().map(|field| plain(field));
        let parts = [first.as_deref().unwrap_or_default(), row.note.as_str()];
        let rest: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let line = format!("   {sign} {object:<width$}   {}", rest.join("   "));
        let _ = writeln!(text, "{}", line.trim_end());
        let mut below = |part: &str| {
            let _ = writeln!(text, "     {:<width$}   {}", "", plain(part));
        };
        for field in row.fields.iter().take(FIELDS_MAX).skip(1) {
            below(field);
        }
        if let more @ 1.. = row.fields.len().saturating_sub(FIELDS_MAX) {
            below(&format!("and {more} more"));
        }
        for detail in row.details.iter().take(FIELDS_MAX) {
            below(detail);
        }
        if let more @ 1.. = row.details.len().saturating_sub(FIELDS_MAX) {
            below(&format!("and {more} more"));
        }
    }
    text
}

#[cfg(test)]
mod tests;
