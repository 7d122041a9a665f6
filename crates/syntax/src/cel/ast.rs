//! Syntax tree of an expression.
//!
//! Each node has an id. The parser records the position of each id, and the checker records its
//! type and the overloads to which it resolves.

/// Id of a node, unique within one expression.
pub type ExprId = usize;

/// A node of the syntax tree.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Id of the node.
    pub id: ExprId,
    /// Kind of the node, with its children.
    pub kind: ExprKind,
}

/// Kind of a node.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// An identifier. The checker replaces a select chain by an identifier if the whole chain is
    /// the name of a variable or type.
    Ident(String),
    /// A field selection, or the macro `has` if `is_test` is set.
    Select {
        /// Value whose field is selected.
        operand: Box<Expr>,
        /// Name of the field.
        field: String,
        /// Whether the node is the macro `has`.
        is_test: bool,
    },
    /// A function call or an operator.
    Call {
        /// Value before the dot of a method call.
        target: Option<Box<Expr>>,
        /// Name of the function, or of the operator, such as `_==_`.
        function: String,
        /// Arguments or operands.
        args: Vec<Expr>,
    },
    /// A list literal.
    List(Vec<Element>),
    /// A map literal.
    Map(Vec<Entry>),
    /// A message literal, such as `pkg.Type{field: 1}`.
    Struct {
        /// Name of the message type.
        type_name: String,
        /// Fields of the message.
        fields: Vec<StructField>,
    },
    /// A comprehension, which macros create.
    Comprehension(Box<Comprehension>),
    /// The result of a syntax error.
    Unspecified,
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// The value `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, such as `1u`.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    String(String),
    /// Bytes, such as `b'abc'`.
    Bytes(Vec<u8>),
}

/// An element of a list literal.
#[derive(Debug, Clone)]
pub struct Element {
    /// Value of the element.
    pub value: Expr,
    /// Whether the element is written as `?value`.
    pub is_optional: bool,
}

/// An entry of a map literal.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Key of the entry.
    pub key: Expr,
    /// Value of the entry.
    pub value: Expr,
    /// Whether the entry is written as `?key: value`.
    pub is_optional: bool,
}

/// A field of a message literal.
#[derive(Debug, Clone)]
pub struct StructField {
    /// Name of the field.
    pub name: String,
    /// Value of the field.
    pub value: Expr,
    /// Whether the field is written as `?name: value`.
    pub is_optional: bool,
}

/// A loop over a list or a map, with an accumulator.
#[derive(Debug, Clone)]
pub struct Comprehension {
    /// List or map to iterate over.
    pub range: Expr,
    /// Variable for the item of a list, or for the key of a map. With a second variable: the index
    /// of the item, or the key.
    pub variable: String,
    /// Variable for the value, in the comprehensions with two variables.
    pub second: Option<String>,
    /// Name of the accumulator.
    pub accumulator: String,
    /// First value of the accumulator.
    pub init: Expr,
    /// Condition under which the loop continues.
    pub condition: Expr,
    /// Next value of the accumulator.
    pub step: Expr,
    /// Result of the loop.
    pub result: Expr,
}

/// Name of the accumulator of the macros. An expression cannot contain this name.
pub const ACCUMULATOR: &str = "@result";
/// Name of the accumulator in old versions of CEL, which is still reserved.
pub const OLD_ACCUMULATOR: &str = "__result__";

impl Expr {
    /// Returns the name that a chain of selections spells, such as `a.b.c`.
    pub fn qualified_name(&self) -> Option<String> {
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
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.for_each_child(&mut |child| child.walk(visit));
    }

    /// Calls `visit` for the direct children in the order of the source text.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
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
    pub fn as_string(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer if the node is an integer literal.
    pub fn as_int(&self) -> Option<i64> {
        match &self.kind {
            ExprKind::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        }
    }
}
