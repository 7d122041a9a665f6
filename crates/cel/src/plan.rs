//! Plans the evaluation of a checked expression.
//!
//! The plan has the structure of cel-go's planner, because the cost at run time depends on it: a
//! chain of selections is one attribute with qualifiers, literals of constants are computed once,
//! and `x in [constants]` is a lookup.

mod optimize;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::regex::Regex;
use opkit_syntax::cel::{Comprehension, Expr, ExprKind, Literal};

use crate::checker::{Checked, Reference};
use crate::library::{self, Function};
use crate::value::{Key, Value};

/// A node of the plan.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(Value<'static>),
    Attribute {
        attribute: Attribute,
        /// Whether the attribute is the argument of `has`.
        is_test: bool,
    },
    Call(Arc<Call>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    Equal {
        operands: Box<[Self; 2]>,
        is_negated: bool,
    },
    /// A lookup in a list of constants.
    Member {
        value: Box<Self>,
        set: Arc<BTreeSet<Key>>,
    },
    /// `a.or(b)` or `a.orValue(b)`.
    OptionalOr {
        operands: Box<[Self; 2]>,
        is_value: bool,
    },
    /// Elements, and whether each is optional.
    List(Arc<[(Self, bool)]>),
    /// Keys, values, and whether each entry is optional.
    Map(Arc<[(Self, Self, bool)]>),
    /// The type of an object literal, and the name, the value and the optionality of each field.
    Struct(Arc<str>, Arc<[(Arc<str>, Self, bool)]>),
    Fold(Arc<Fold>),
}

/// A variable or another value, with the selections that follow it.
#[derive(Debug, Clone)]
pub(crate) enum Attribute {
    /// A variable of the environment.
    Variable {
        name: Arc<str>,
        qualifiers: Vec<Arc<Qualifier>>,
    },
    /// A variable of a comprehension.
    Local {
        local: Local,
        qualifiers: Vec<Arc<Qualifier>>,
    },
    /// The value of another node.
    Relative {
        operand: Box<Node>,
        qualifiers: Vec<Arc<Qualifier>>,
    },
    Conditional {
        condition: Box<Node>,
        truthy: Box<Self>,
        falsy: Box<Self>,
    },
}

/// A variable of a comprehension, by the number of comprehensions around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) frame: usize,
    pub(crate) slot: Slot,
}

/// Which variable of a comprehension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Accumulator,
    First,
    Second,
}

/// A selection of a field or an index.
#[derive(Debug, Clone)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    pub(crate) is_optional: bool,
    /// Whether the selection is the argument of `has`.
    pub(crate) is_test: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum QualifierKey {
    Constant(Value<'static>),
    Attribute(Attribute),
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: String,
    /// The overload, or an empty text if it depends on the types at run time.
    pub(crate) overload: &'static str,
    pub(crate) implementation: Function,
    pub(crate) args: Vec<Node>,
    /// Whether an error in an argument skips the arguments behind it, and the cost of the call.
    pub(crate) stops_early: bool,
    /// Compiled form of a constant regular expression.
    pub(crate) regex: Option<Regex>,
    /// The accumulator that is the first argument and that the result replaces, so that it can be
    /// changed in place.
    pub(crate) accumulator: Option<usize>,
}

/// A comprehension.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) has_second: bool,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// Plans an expression.
///
/// # Errors
/// Returns the error of a constant expression, such as `int('a')`.
pub(crate) fn plan(checked: &Checked) -> Result<Node, String> {
    let mut planner = Planner {
        checked,
        scopes: Vec::new(),
    };
    planner.plan(&checked.expr)
}

/// Names of the variables of one comprehension.
struct Scope {
    accumulator: String,
    /// Variables of the loop, which the result cannot see.
    variables: Option<(String, Option<String>)>,
}

struct Planner<'a> {
    checked: &'a Checked,
    scopes: Vec<Scope>,
}

type Planned<T = Node> = Result<T, String>;

impl Planner<'_> {
    fn plan(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select {
                operand,
                field,
                is_test,
            } => {
                let operand = self.plan(operand)?;
                let qualifier = Qualifier {
                    key: QualifierKey::Constant(Value::text(field.as_str())),
                    is_optional: false,
                    is_test: *is_test,
                };
                Ok(qualified(operand, qualifier))
            }
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::List(elements) => {
                let mut planned = Vec::with_capacity(elements.len());
                for element in elements {
                    planned.push((self.plan(&element.value)?, element.is_optional));
                }
                Ok(optimize::list(planned))
            }
            ExprKind::Map(entries) => {
                let mut planned = Vec::with_capacity(entries.len());
                for entry in entries {
                    let key = self.plan(&entry.key)?;
                    planned.push((key, self.plan(&entry.value)?, entry.is_optional));
                }
                optimize::map(planned)
            }
            ExprKind::Comprehension(fold) => self.fold(fold),
            ExprKind::Struct { type_name, fields } => {
                let mut planned = Vec::with_capacity(fields.len());
                for field in fields {
                    let name = Arc::from(field.name.as_str());
                    planned.push((name, self.plan(&field.value)?, field.is_optional));
                }
                let type_name = type_name.strip_prefix('.').unwrap_or(type_name);
                Ok(Node::Struct(Arc::from(type_name), planned.into()))
            }
            ExprKind::Unspecified => Err("unsupported expr".to_owned()),
        }
    }

    fn ident(&self, expr: &Expr, name: &str) -> Planned {
        if let Some(Reference::Type(found)) = self.checked.references.get(&expr.id) {
            return Ok(Node::Constant(Value::Type(found.clone())));
        }
        if let Some(Reference::UndefinedType(name)) = self.checked.references.get(&expr.id) {
            return Err(format!("reference to undefined type: {name}"));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let attribute = match self.local(name) {
            Some(local) => Attribute::Local {
                local,
                qualifiers: Vec::new(),
            },
            None => Attribute::Variable {
                name: Arc::from(name),
                qualifiers: Vec::new(),
            },
        };
        Ok(Node::Attribute {
            attribute,
            is_test: false,
        })
    }

    fn local(&self, name: &str) -> Option<Local> {
        for (frame, scope) in self.scopes.iter().enumerate().rev() {
            let slot = match &scope.variables {
                _ if scope.accumulator == name => Slot::Accumulator,
                Some((first, _)) if first == name => Slot::First,
                Some((_, Some(second))) if second == name => Slot::Second,
                _ => continue,
            };
            return Some(Local { frame, slot });
        }
        None
    }

    fn call(&mut self, expr: &Expr) -> Planned {
        let ExprKind::Call {
            target,
            function,
            args,
        } = &expr.kind
        else {
            return Err("unsupported expr".to_owned());
        };
        let mut planned = Vec::with_capacity(args.len() + 1);
        for arg in target.as_deref().into_iter().chain(args) {
            planned.push(self.plan(arg)?);
        }
        let overload = match self.checked.overloads(expr.id) {
            [overload] => overload,
            _ => "",
        };
        let planned = match <[Node; 2]>::try_from(planned) {
            Ok(operands) => match self.binary(function, overload, Box::new(operands)) {
                Ok(node) => return Ok(node),
                Err(operands) => Vec::from(*operands),
            },
            Err(planned) => planned,
        };
        if function == "_?_:_" {
            return conditional(planned);
        }
        let accumulator = match (function.as_str(), planned.first()) {
            (
                "_+_" | "cel.@mapInsert",
                Some(Node::Attribute {
                    attribute: Attribute::Local { local, qualifiers },
                    ..
                }),
            ) if local.slot == Slot::Accumulator && qualifiers.is_empty() => Some(local.frame),
            _ => None,
        };
        optimize::call(function, overload, planned, accumulator)
    }

    /// Plans the calls with two operands that are not ordinary functions.
    fn binary(
        &self,
        function: &str,
        overload: &str,
        operands: Box<[Node; 2]>,
    ) -> Result<Node, Box<[Node; 2]>> {
        let is_optional = function.contains('?');
        match function {
            "_&&_" => Ok(Node::And(operands)),
            "_||_" => Ok(Node::Or(operands)),
            "_==_" | "_!=_" => Ok(Node::Equal {
                operands,
                is_negated: function == "_!=_",
            }),
            "_[_]" | "_[?_]" | "_?._" => {
                let [operand, index] = *operands;
                let key = match index {
                    Node::Constant(value) => QualifierKey::Constant(value),
                    other => QualifierKey::Attribute(as_attribute(other)),
                };
                let qualifier = Qualifier {
                    key,
                    is_optional,
                    is_test: false,
                };
                Ok(qualified(operand, qualifier))
            }
            "or" | "orValue" => Ok(Node::OptionalOr {
                operands,
                is_value: function == "orValue",
            }),
            "@in" if overload == "in_list" => optimize::membership(operands),
            _ => Err(operands),
        }
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let init = self.plan(&fold.init)?;
        let range = self.plan(&fold.range)?;
        self.scopes.push(Scope {
            accumulator: fold.accumulator.clone(),
            variables: Some((fold.variable.clone(), fold.second.clone())),
        });
        let condition = self.plan(&fold.condition);
        let step = self.plan(&fold.step);
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables = None;
        }
        let result = self.plan(&fold.result);
        self.scopes.pop();
        Ok(Node::Fold(Arc::new(Fold {
            range,
            has_second: fold.second.is_some(),
            init,
            condition: condition?,
            step: step?,
            result: result?,
        })))
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::text(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(Arc::from(bytes.as_slice())),
    }
}

fn as_attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute {
            attribute,
            is_test: false,
        } => attribute,
        other => Attribute::Relative {
            operand: Box::new(other),
            qualifiers: Vec::new(),
        },
    }
}

fn conditional(planned: Vec<Node>) -> Planned {
    let [condition, truthy, falsy] =
        <[Node; 3]>::try_from(planned).map_err(|_| "no such overload: _?_:_(...)".to_owned())?;
    Ok(Node::Attribute {
        attribute: Attribute::Conditional {
            condition: Box::new(condition),
            truthy: Box::new(as_attribute(truthy)),
            falsy: Box::new(as_attribute(falsy)),
        },
        is_test: false,
    })
}

/// Adds a selection to an operand.
fn qualified(operand: Node, qualifier: Qualifier) -> Node {
    let is_test = qualifier.is_test;
    let mut attribute = as_attribute(operand);
    add_qualifier(&mut attribute, &Arc::new(qualifier));
    Node::Attribute { attribute, is_test }
}

fn add_qualifier(attribute: &mut Attribute, qualifier: &Arc<Qualifier>) {
    match attribute {
        Attribute::Variable { qualifiers, .. }
        | Attribute::Local { qualifiers, .. }
        | Attribute::Relative { qualifiers, .. } => qualifiers.push(qualifier.clone()),
        Attribute::Conditional { truthy, falsy, .. } => {
            add_qualifier(truthy, qualifier);
            add_qualifier(falsy, qualifier);
        }
    }
}

/// Returns the implementation of a function and of an overload.
pub(crate) fn implementation(function: &str, overload: &str) -> Option<Function> {
    match overload {
        // The sum of an empty list has the type of its items.
        "list_double_sum_double" => Some(|args| library::lists::sum(args, Value::Double(0.0))),
        "list_uint_sum_uint" => Some(|args| library::lists::sum(args, Value::Uint(0))),
        "list_duration_sum_duration" => Some(|args| library::lists::sum(args, Value::Duration(0))),
        _ => library::find(function),
    }
}
