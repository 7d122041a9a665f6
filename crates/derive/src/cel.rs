//! Checks of CEL expressions: their syntax, and the fields of `self` that a rule of a struct uses.
//!
//! The types and the costs of expressions are not checked here, because the macro sees only one
//! struct. `opkit::testing::check` checks them.

mod guards;

use opkit_syntax::cel::{self as syntax, Expr, ExprKind, Parsed, Source, stack};
use syn::{Error, LitStr};

use crate::nearest::nearest;
use guards::Guards;

/// Field of a struct, as rules see it.
pub(crate) struct ScopeField {
    /// JSON name.
    pub(crate) json: String,
    /// Name in CEL expressions, in which special characters are escaped.
    pub(crate) cel: String,
    /// Whether the field can be absent.
    pub(crate) is_optional: bool,
}

/// Struct whose fields the variables `self` and `oldSelf` of a rule have.
pub(crate) struct Scope {
    /// Name of the struct.
    pub(crate) name: String,
    pub(crate) fields: Vec<ScopeField>,
}

/// Parses an expression. An error points at the whole literal and names the column.
pub(crate) fn parse(text: &LitStr) -> syn::Result<Parsed> {
    let value = text.value();
    let source = Source::new(&value);
    let parsed = stack::run(stack::is_deep(&value), || syntax::parse(&source));
    match parsed {
        Some(Ok(parsed)) => Ok(parsed),
        Some(Err(issues)) => {
            let issue = issues.into_iter().next();
            let (offset, message) = match issue {
                Some(issue) => (issue.offset, issue.message),
                None => (None, "the expression is not valid".to_owned()),
            };
            Err(error_at(text, &source, offset, &message))
        }
        None => Err(Error::new_spanned(text, "CEL: the expression is too deep")),
    }
}

/// Reports whether an expression uses the variable `oldSelf`.
pub(crate) fn uses_old_self(parsed: &Parsed) -> bool {
    let mut is_used = false;
    parsed.expr.walk(&mut |node| {
        is_used |= matches!(&node.kind, ExprKind::Ident(name) if name == "oldSelf");
    });
    is_used
}

/// Returns the paths of fields below `self` and `oldSelf` in an expression, such as `[node, size]`
/// of `self.node.size`. A path that is the start of another path is left out.
pub(crate) fn paths(parsed: &Parsed) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    parsed.expr.walk(&mut |node| {
        if let Some(path) = path_of(node)
            && !paths.iter().any(|known| known.starts_with(&path))
        {
            paths.push(path);
        }
    });
    paths
}

/// Returns the path of fields of a node that is a chain of selections. Names that are escaped in
/// CEL end the path.
fn path_of(node: &Expr) -> Option<Vec<String>> {
    let ExprKind::Select { operand, field, .. } = &node.kind else {
        return None;
    };
    let mut path = match &operand.kind {
        ExprKind::Ident(root) if root == "self" || root == "oldSelf" => Vec::new(),
        _ => path_of(operand)?,
    };
    if field.contains("__") {
        return None;
    }
    path.push(field.clone());
    Some(path)
}

/// Creates an error about a position in an expression. Stable Rust cannot point into a literal, so
/// the message contains the position.
fn error_at(text: &LitStr, source: &Source, offset: Option<usize>, message: &str) -> Error {
    let position = match offset.map(|offset| source.location(offset)) {
        Some((1, column)) => format!(", column {}", column.saturating_add(1)),
        Some((line, column)) => format!(", line {line}, column {}", column.saturating_add(1)),
        None => String::new(),
    };
    Error::new_spanned(text, format!("CEL{position}: {message}"))
}

impl Scope {
    /// Checks that each field of `self` in a rule exists, and that each optional field is guarded
    /// with `has`. With an optional `oldSelf`, its fields are not checked.
    pub(crate) fn check(&self, rule: &LitStr, has_optional_old_self: bool) -> syn::Result<()> {
        let parsed = parse(rule)?;
        self.check_all_names(rule, &parsed)?;
        let optional = self.fields.iter().filter(|field| field.is_optional);
        let optional: Vec<&str> = optional.map(|field| field.cel.as_str()).collect();
        let roots: &[&str] = match has_optional_old_self {
            true => &["self"],
            false => &["self", "oldSelf"],
        };
        let guards = Guards::new(&optional, roots);
        let Some((node, root, field)) = guards.unguarded(&parsed.expr) else {
            return Ok(());
        };
        let offset = parsed.positions.get(node).copied();
        let source = Source::new(&rule.value());
        let message = format!("{field} is optional: guard it with has({root}.{field})");
        Err(error_at(
            rule,
            &source,
            offset.map(start_of(&source)),
            &message,
        ))
    }

    /// Checks that each field of `self` in an expression exists.
    pub(crate) fn check_names(&self, expression: &LitStr) -> syn::Result<()> {
        self.check_all_names(expression, &parse(expression)?)
    }

    fn check_all_names(&self, text: &LitStr, parsed: &Parsed) -> syn::Result<()> {
        let mut unknown = None;
        parsed.expr.walk(&mut |node| {
            if let Some((_, field)) = field_of(node)
                && unknown.is_none()
                && !self.fields.iter().any(|known| known.cel == field)
            {
                unknown = Some((node.id, field));
            }
        });
        let Some((node, field)) = unknown else {
            return Ok(());
        };
        let source = Source::new(&text.value());
        let offset = parsed.positions.get(node).copied();
        let message = self.unknown_field(field);
        Err(error_at(
            text,
            &source,
            offset.map(start_of(&source)),
            &message,
        ))
    }

    /// Checks that the first field of a path such as `.tools` exists.
    pub(crate) fn check_path(&self, path: &LitStr) -> syn::Result<()> {
        let fields = opkit_syntax::jsonpath::leading_fields(&path.value());
        match fields.first() {
            Some(first) if !self.fields.iter().any(|known| known.json == *first) => {
                Err(Error::new_spanned(path, self.unknown_field(first)))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the first of the fields of a JSON path exists. `what` names the path in the
    /// error.
    pub(crate) fn check_json(
        &self,
        what: &str,
        path: &LitStr,
        fields: &[String],
    ) -> syn::Result<()> {
        match fields.first() {
            Some(first) if !self.fields.iter().any(|known| known.json == *first) => {
                let message = format!("{what}: {}", self.unknown_field(first));
                Err(Error::new_spanned(path, message))
            }
            _ => Ok(()),
        }
    }

    fn unknown_field(&self, field: &str) -> String {
        let name = &self.name;
        let known = self.fields.iter().map(|field| field.cel.as_str());
        match nearest(field, known.clone()) {
            Some(known) => format!("{name} has no field `{field}`: did you mean `{known}`?"),
            None => {
                let known = known.collect::<Vec<_>>().join(", ");
                format!("{name} has no field `{field}`; it has {known}")
            }
        }
    }
}

/// Returns a function that moves an offset from the dot of a selection to the start of the operand.
/// The parser records the position of the dot.
fn start_of(source: &Source) -> impl Fn(usize) -> usize {
    let chars = source.chars().to_vec();
    move |dot| {
        let before = chars.get(..dot).unwrap_or_default();
        let is_name = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        let length = before.iter().rev().take_while(|it| is_name(it)).count();
        dot.saturating_sub(length)
    }
}

/// Returns the variable and the field if a node is `self.field`, `has(self.field)`, or the same of
/// `oldSelf`.
fn field_of(node: &Expr) -> Option<(&str, &str)> {
    let (operand, field) = match &node.kind {
        ExprKind::Select { operand, field, .. } => (&**operand, field.as_str()),
        // `self.?field`
        ExprKind::Call { function, args, .. } if function == "_?._" => match args.as_slice() {
            [operand, field] => (operand, field.as_string()?),
            _ => return None,
        },
        _ => return None,
    };
    match &operand.kind {
        ExprKind::Ident(root) if root == "self" || root == "oldSelf" => Some((root, field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
