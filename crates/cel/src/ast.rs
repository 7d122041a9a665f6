//! Syntax tree of an expression.
//!
//! Each node has an id. The parser records the position of each id, and the checker records its
//! type and the overloads to which it resolves.

/// Id of a node, unique within one expression.
pub(crate) type ExprId = usize;

/// A node of the syntax tree.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    /// Id of the node.
    pub(crate) id: ExprId,
    /// Kind of the node, with its children.
    pub(crate) kind: ExprKind,
}

/// Kind of a node.
#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// An identifier. The checker replaces a select chain by an identifier if the whole chain is
    /// the name of a variable or type.
    Ident(String),
    /// A field selection, or the macro `has` if `is_test` is set.
    Select {
        operand: Box<Expr>,
        field: String,
        is_test: bool,
    },
    /// A function call or an operator.
    Call {
        target: Option<Box<Expr>>,
        function: String,
        args: Vec<Expr>,
    },
    /// A list literal.
    List(Vec<Element>),
    /// A map literal.
    Map(Vec<Entry>),
    /// A message literal, such as `pkg.Type{field: 1}`.
    Struct {
        type_name: String,
        fields: Vec<StructField>,
    },
    /// A comprehension, which macros create.
    Comprehension(Box<Comprehension>),
    /// The result of a syntax error.
    Unspecified,
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// An element of a list literal.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    /// Whether the element is written as `?value`.
    pub(crate) is_optional: bool,
}

/// An entry of a map literal.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    /// Whether the entry is written as `?key: value`.
    pub(crate) is_optional: bool,
}

/// A field of a message literal.
#[derive(Debug, Clone)]
pub(crate) struct StructField {
    pub(crate) name: String,
    pub(crate) value: Expr,
    /// Whether the field is written as `?name: value`.
    pub(crate) is_optional: bool,
}

/// A loop over a list or a map, with an accumulator.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    /// Variable for the item of a list, or for the key of a map. With a second variable: the index
    /// of the item, or the key.
    pub(crate) variable: String,
    /// Variable for the value, in the comprehensions with two variables.
    pub(crate) second: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// Name of the accumulator of the macros. An expression cannot contain this name.
pub(crate) const ACCUMULATOR: &str = "@result";
/// Name of the accumulator in old versions of CEL, which is still reserved.
pub(crate) const OLD_ACCUMULATOR: &str = "__result__";

impl Expr {
    /// Returns the name that a chain of selections spells, such as `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.clone()),
            ExprKind::Select {
                operand,
                field,
                is_test: false,
            } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }

    /// Calls `visit` for this node and all nodes below it, parents first.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// Calls `visit` for the direct children in the order of the source text.
    pub(crate) fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Unspecified => {}
            ExprKind::Select { operand, .. } => visit(operand),
            ExprKind::Call { target, args, .. } => {
                target.iter().for_each(|target| visit(target));
                args.iter().for_each(visit);
            }
            ExprKind::List(elements) => elements.iter().for_each(|e| visit(&e.value)),
            ExprKind::Map(entries) => {
                for entry in entries {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
            ExprKind::Struct { fields, .. } => fields.iter().for_each(|f| visit(&f.value)),
            ExprKind::Comprehension(fold) => {
                for part in [
                    &fold.range,
                    &fold.init,
                    &fold.condition,
                    &fold.step,
                    &fold.result,
                ] {
                    visit(part);
                }
            }
        }
    }

    /// Returns the string if the node is a string literal.
    pub(crate) fn as_string(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer if the node is an integer literal.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match &self.kind {
            ExprKind::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        }
    }
}
