//! Estimates the cost of an expression before it runs, as cel-go does.
//!
//! The estimate is a range. Sizes come from a [`SizeEstimator`], which is the schema of a custom
//! resource.

mod calls;
mod kubernetes;
mod range;
pub(crate) mod runtime;

use std::collections::HashMap;

use opkit_syntax::cel::{
    ACCUMULATOR, Comprehension, Expr, ExprId, ExprKind, Literal, OLD_ACCUMULATOR,
};

use crate::checker::Checked;
use crate::types::Type;
pub(crate) use range::Range;

/// Source of the sizes of variables.
pub(crate) trait SizeEstimator: Sync {
    /// Returns the size of a part of a variable. The path starts with the name of the variable.
    /// The parts `@items`, `@values`, `@keys` and `@indices` are those of lists and maps.
    fn size(&self, path: &[String]) -> Option<Range>;
}

/// An estimator that knows no sizes.
pub(crate) struct Unknown;

impl SizeEstimator for Unknown {
    fn size(&self, _path: &[String]) -> Option<Range> {
        None
    }
}

/// Returns the estimated cost of an expression.
pub(crate) fn estimate(checked: &Checked, sizes: &dyn SizeEstimator) -> Range {
    let mut coster = Coster {
        checked,
        sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        computed: HashMap::new(),
        entries: HashMap::new(),
    };
    coster.cost(&checked.expr)
}

/// Sizes of the keys and values of a list or map.
#[derive(Debug, Clone, Copy)]
struct EntrySize {
    is_list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn union(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let (first, second) = (first?, second?);
        Some(Self {
            is_list: first.is_list,
            key: first.key.union(second.key),
            value: first.value.union(second.value),
        })
    }
}

/// A variable of a comprehension.
struct LocalSize {
    name: String,
    path: Vec<String>,
    size: Option<Range>,
    entry: Option<EntrySize>,
}

/// An argument of a call.
struct Argument<'e> {
    path: Vec<String>,
    found: Type,
    /// `None` for the items of a list, which are not a node of their own.
    expr: Option<&'e Expr>,
    size: Option<Range>,
}

/// Estimate of a call.
struct CallEstimate {
    cost: Range,
    size: Option<Range>,
}

struct Coster<'a> {
    checked: &'a Checked,
    sizes: &'a dyn SizeEstimator,
    paths: HashMap<ExprId, Vec<String>>,
    locals: Vec<LocalSize>,
    computed: HashMap<ExprId, Range>,
    entries: HashMap<ExprId, EntrySize>,
}

const SELECT: Range = Range::fixed(1);
const LIST: Range = Range::fixed(10);
const MAP: Range = Range::fixed(30);
const STRUCT: Range = Range::fixed(40);

impl Coster<'_> {
    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Unspecified => Range::fixed(0),
            ExprKind::Ident(name) => {
                let name = name.strip_prefix('.').unwrap_or(name);
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.to_owned()],
                };
                self.paths.insert(expr.id, path);
                SELECT
            }
            ExprKind::Select {
                operand,
                field,
                is_test,
            } => self.select(expr, operand, field, *is_test),
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List(elements) => {
                let mut sum = Range::fixed(0);
                let mut item = Range::none(elements.is_empty());
                for element in elements {
                    sum = sum.add(self.cost(&element.value));
                    item = item.union(self.size_or_unknown(&element.value));
                }
                let entry = EntrySize {
                    is_list: true,
                    key: Range::fixed(1),
                    value: item,
                };
                self.entries.insert(expr.id, entry);
                sum.add(LIST)
            }
            ExprKind::Map(entries) => {
                let mut sum = Range::fixed(0);
                let (mut key, mut value) = (
                    Range::none(entries.is_empty()),
                    Range::none(entries.is_empty()),
                );
                for entry in entries {
                    sum = sum.add(self.cost(&entry.key)).add(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                let entry = EntrySize {
                    is_list: false,
                    key,
                    value,
                };
                self.entries.insert(expr.id, entry);
                sum.add(MAP)
            }
            ExprKind::Struct { fields, .. } => {
                let sum = fields.iter().fold(Range::fixed(0), |sum, field| {
                    sum.add(self.cost(&field.value))
                });
                sum.add(STRUCT)
            }
            ExprKind::Comprehension(fold) => match is_bind(fold) {
                true => self.bind(expr, fold),
                false => self.comprehension(expr, fold),
            },
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, is_test: bool) -> Range {
        let mut sum = self.cost(operand);
        if is_test {
            return sum;
        }
        if matches!(
            self.checked.type_of(operand.id),
            Type::Map(..) | Type::Object(_) | Type::Param(_)
        ) {
            sum = sum.add(SELECT);
        }
        let mut path = self.path(operand);
        path.push(field.to_owned());
        self.paths.insert(expr.id, path);
        sum
    }

    fn comprehension(&mut self, expr: &Expr, fold: &Comprehension) -> Range {
        let mut sum = self.cost(&fold.range).add(self.cost(&fold.init));
        self.push_local(&fold.accumulator, &fold.init);
        match &fold.second {
            Some(second) => {
                self.push_entry(&fold.variable, second, &fold.range);
            }
            None => self.push_single(&fold.variable, &fold.range),
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.pop();
        if fold.second.is_some() {
            self.locals.pop();
        }
        sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(&fold.range);
        sum = sum.add(count.multiply(step.add(condition)));
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.init);
                self.set_size(expr.id, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(expr.id, Some(count));
                if let Some(entry) = self.entry_size(&fold.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn bind(&mut self, expr: &Expr, fold: &Comprehension) -> Range {
        let mut sum = self.cost(&fold.range).add(self.cost(&fold.init));
        self.push_local(&fold.accumulator, &fold.init);
        sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr.id, &fold.result);
        sum
    }

    fn copy_sizes(&mut self, to: ExprId, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(to, entry);
        }
    }

    fn push_local(&mut self, name: &str, expr: &Expr) {
        let local = LocalSize {
            name: name.to_owned(),
            path: self.path(expr),
            entry: self.entry_size(expr),
            size: self.size(expr),
        };
        self.locals.push(local);
    }

    fn push_entry(&mut self, first: &str, second: &str, range: &Expr) {
        let entry = self.entry_size(range);
        let (keys, values) = match self.is_list(entry, range) {
            true => ("@indices", "@items"),
            false => ("@keys", "@values"),
        };
        // In cel-go, the paths of both variables share memory unless the length of the path is a
        // power of two, so that the second path overwrites the first.
        let length = self.path(range).len();
        let is_shared = length > 0 && !length.is_power_of_two();
        let keys = if is_shared { values } else { keys };
        self.push_part(first, range, keys, entry.map(|entry| entry.key));
        self.push_part(second, range, values, entry.map(|entry| entry.value));
    }

    fn push_single(&mut self, name: &str, range: &Expr) {
        let entry = self.entry_size(range);
        match self.is_list(entry, range) {
            true => self.push_part(name, range, "@items", entry.map(|entry| entry.value)),
            false => self.push_part(name, range, "@keys", entry.map(|entry| entry.key)),
        }
    }

    fn push_part(&mut self, name: &str, range: &Expr, part: &str, size: Option<Range>) {
        let mut path = self.path(range);
        path.push(part.to_owned());
        self.locals.push(LocalSize {
            name: name.to_owned(),
            path,
            size,
            entry: None,
        });
    }

    fn is_list(&self, entry: Option<EntrySize>, range: &Expr) -> bool {
        match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.type_of(range.id), Type::List(_)),
        }
    }

    fn local(&self, name: &str) -> Option<&LocalSize> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Vec<String> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn argument<'e>(&mut self, expr: &'e Expr) -> Argument<'e> {
        let mut path = self.path(expr);
        let is_accumulator = |name: &String| name == ACCUMULATOR || name == OLD_ACCUMULATOR;
        if path.first().is_some_and(is_accumulator) {
            path = Vec::new();
        }
        Argument {
            path,
            found: self.checked.type_of(expr.id).clone(),
            expr: Some(expr),
            size: self.size(expr),
        }
    }

    fn set_size(&mut self, id: ExprId, size: Option<Range>) {
        if let Some(size) = size {
            self.computed.insert(id, size);
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.computed.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(size);
        }
        if let Some(size) = self.estimated(&self.path(expr)) {
            self.computed.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn estimated(&self, path: &[String]) -> Option<Range> {
        match path.is_empty() {
            true => None,
            false => self.sizes.size(path),
        }
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }
}

fn is_bind(fold: &Comprehension) -> bool {
    let is_empty = matches!(&fold.range.kind, ExprKind::List(elements) if elements.is_empty());
    let never = matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)));
    is_empty && never && fold.accumulator != OLD_ACCUMULATOR
}

fn literal_size(expr: &Expr) -> Option<Range> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List(elements) => elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::fixed(size as u64))
}

fn is_scalar(found: &Type) -> bool {
    match found {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
