//! Finds optional fields that a rule uses without a guard. A rule that reads an absent field fails
//! with "no such key", and the API server then refuses the object.

use std::collections::BTreeSet;

use opkit_syntax::cel::{Expr, ExprId, ExprKind};

use super::field_of;

/// Variable and field that are known to be present.
type Present<'e> = BTreeSet<(&'e str, &'e str)>;

/// Search for optional fields without a guard.
pub(super) struct Guards<'a> {
    /// Optional fields, by their names in CEL.
    optional: &'a [&'a str],
    /// Variables whose fields are checked.
    roots: &'a [&'a str],
}

impl<'a> Guards<'a> {
    pub(super) fn new(optional: &'a [&'a str], roots: &'a [&'a str]) -> Self {
        Self { optional, roots }
    }

    /// Returns the first use of an optional field that is not guarded: the node, the variable and
    /// the field.
    pub(super) fn unguarded<'e>(&self, expr: &'e Expr) -> Option<(ExprId, &'e str, &'e str)> {
        self.search(expr, &Present::new())
    }

    fn search<'e>(
        &self,
        expr: &'e Expr,
        present: &Present<'e>,
    ) -> Option<(ExprId, &'e str, &'e str)> {
        if let ExprKind::Select { is_test: false, .. } = &expr.kind
            && let Some((root, field)) = field_of(expr)
        {
            let is_checked = self.roots.contains(&root) && self.optional.contains(&field);
            let is_absent = is_checked && !present.contains(&(root, field));
            return is_absent.then_some((expr.id, root, field));
        }
        if let ExprKind::Call { function, args, .. } = &expr.kind {
            match (function.as_str(), args.as_slice()) {
                // Both operators are commutative: an error of one operand does not count if the
                // other operand determines the result.
                ("_&&_", [left, right]) => {
                    return self
                        .search(left, &joined(present, if_true(right)))
                        .or_else(|| self.search(right, &joined(present, if_true(left))));
                }
                ("_||_", [left, right]) => {
                    return self
                        .search(left, &joined(present, if_false(right)))
                        .or_else(|| self.search(right, &joined(present, if_false(left))));
                }
                ("_?_:_", [condition, truthy, falsy]) => {
                    return self
                        .search(condition, present)
                        .or_else(|| self.search(truthy, &joined(present, if_true(condition))))
                        .or_else(|| self.search(falsy, &joined(present, if_false(condition))));
                }
                _ => {}
            }
        }
        let mut found = None;
        expr.for_each_child(&mut |child| {
            if found.is_none() {
                found = self.search(child, present);
            }
        });
        found
    }
}

fn joined<'e>(present: &Present<'e>, more: Present<'e>) -> Present<'e> {
    present.iter().copied().chain(more).collect()
}

/// Returns the fields that are present if an expression is true.
fn if_true(expr: &Expr) -> Present<'_> {
    match &expr.kind {
        ExprKind::Select { is_test: true, .. } => field_of(expr).into_iter().collect(),
        ExprKind::Call { function, args, .. } => match (function.as_str(), args.as_slice()) {
            ("!_", [operand]) => if_false(operand),
            ("_&&_", [left, right]) => joined(&if_true(left), if_true(right)),
            ("_||_", [left, right]) => common(if_true(left), &if_true(right)),
            _ => Present::new(),
        },
        _ => Present::new(),
    }
}

/// Returns the fields that are present if an expression is false.
fn if_false(expr: &Expr) -> Present<'_> {
    match &expr.kind {
        ExprKind::Call { function, args, .. } => match (function.as_str(), args.as_slice()) {
            ("!_", [operand]) => if_true(operand),
            ("_||_", [left, right]) => joined(&if_false(left), if_false(right)),
            ("_&&_", [left, right]) => common(if_false(left), &if_false(right)),
            _ => Present::new(),
        },
        _ => Present::new(),
    }
}

fn common<'e>(left: Present<'e>, right: &Present<'e>) -> Present<'e> {
    left.into_iter()
        .filter(|field| right.contains(field))
        .collect()
}
