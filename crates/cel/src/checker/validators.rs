//! Checks of literals in a well-typed expression: durations, timestamps, regular expressions,
//! format strings, and the types of the elements of lists and maps.

use opkit_syntax::cel::{Expr, ExprId, ExprKind, Issue, Literal};

use super::Checked;
use crate::library::{format_string, regex, time};
use crate::types::Type;

/// Reports whether a literal is a valid argument of a function.
type Holds = fn(&Literal) -> bool;

/// Returns the errors of the literals, validator by validator.
pub(super) fn validate(checked: &Checked, positions: &[usize]) -> Vec<Issue> {
    let mut issues = Vec::new();
    let mut report = |id: ExprId, message: String| {
        let offset = positions.get(id).copied();
        issues.push(Issue { offset, message });
    };
    let checks: [(&str, Holds); 3] = [
        ("duration", is_duration),
        ("timestamp", is_timestamp),
        ("matches", is_regex),
    ];
    for (function, holds) in checks {
        checked.expr.walk(&mut |node| {
            if let ExprKind::Call {
                function: found,
                args,
                ..
            } = &node.kind
                && found == function
                && let Some(argument) = args.first()
                && let ExprKind::Literal(literal) = &argument.kind
                && !holds(literal)
            {
                report(argument.id, format!("invalid {function} argument"));
            }
        });
    }
    let mut mismatches = Vec::new();
    homogeneous(checked, &checked.expr, true, &mut mismatches);
    homogeneous(checked, &checked.expr, false, &mut mismatches);
    for (id, message) in mismatches {
        report(id, message);
    }
    checked.expr.walk(&mut |node| {
        for (id, message) in format_calls(checked, node) {
            report(id, message);
        }
    });
    issues
}

fn is_duration(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => time::parse_duration(text).is_some(),
        _ => false,
    }
}

fn is_timestamp(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => time::parse_timestamp(text).is_ok(),
        Literal::Int(seconds) => time::from_seconds(*seconds).is_ok(),
        _ => false,
    }
}

fn is_regex(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => regex::compile(text).is_ok(),
        _ => true,
    }
}

/// Collects the elements of lists, or of maps, whose types differ from the first element.
/// Arguments of `format` are exempt.
fn homogeneous(
    checked: &Checked,
    node: &Expr,
    is_list: bool,
    mismatches: &mut Vec<(ExprId, String)>,
) {
    if matches!(&node.kind, ExprKind::Call { function, .. } if function == "format") {
        return;
    }
    let mut compare = |first: &mut Option<Type>, value: &Expr, is_optional: bool| {
        let found = checked.type_of(value.id);
        let found = match found {
            Type::Optional(inner) if is_optional => inner,
            other => other,
        };
        match first {
            None => *first = Some(found.clone()),
            Some(first) if is_equivalent(first, found) => {}
            Some(first) => {
                let message = format!("expected type '{first}' but found '{found}'");
                mismatches.push((value.id, message));
                return false;
            }
        }
        true
    };
    match &node.kind {
        ExprKind::List(elements) if is_list => {
            let mut first = None;
            for element in elements {
                if !compare(&mut first, &element.value, element.is_optional) {
                    break;
                }
            }
        }
        ExprKind::Map(entries) if !is_list => {
            let (mut key, mut value) = (None, None);
            for entry in entries {
                compare(&mut key, &entry.key, false);
                compare(&mut value, &entry.value, entry.is_optional);
            }
        }
        _ => {}
    }
    node.for_each_child(&mut |child| homogeneous(checked, child, is_list, mismatches));
}

/// Reports whether two types are equal, where type parameters and `dyn` inside of them count.
fn is_equivalent(first: &Type, second: &Type) -> bool {
    first == second
}

/// Returns the errors of a call of `format` with a literal text and a literal list.
fn format_calls(checked: &Checked, node: &Expr) -> Vec<(ExprId, String)> {
    let ExprKind::Call {
        target: Some(target),
        function,
        args,
    } = &node.kind
    else {
        return Vec::new();
    };
    let (Some(text), Some(list)) = (target.as_string(), args.first()) else {
        return Vec::new();
    };
    let ExprKind::List(elements) = &list.kind else {
        return Vec::new();
    };
    if function != "format" {
        return Vec::new();
    }
    let values: Vec<&Expr> = elements.iter().map(|element| &element.value).collect();
    match format_string::check(text, &values, checked) {
        Ok(used) if used < values.len() => {
            let count = values.len();
            let message = format!(
                "too many arguments supplied to string.format (expected {used}, got {count})"
            );
            vec![(node.id, message)]
        }
        Ok(_) => Vec::new(),
        Err((id, message)) => vec![(id.unwrap_or(node.id), message)],
    }
}
