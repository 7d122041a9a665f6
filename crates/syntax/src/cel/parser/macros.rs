//! Macros: calls that are replaced by other expressions at parse time.

use std::borrow::Cow;

use super::{Parse, Parser, call};
use crate::cel::ast::{
    ACCUMULATOR, Comprehension, Element, Entry, Expr, ExprId, ExprKind, Literal, OLD_ACCUMULATOR,
};

/// Name of the loop variable of a comprehension that only binds a variable.
const UNUSED: &str = "#unused";
/// Variable that holds the list during `sortBy`.
const SORT_INPUT: &str = "@__sortBy_input__";

/// Node at which a macro cannot be expanded, and the reason.
type Wrong = (ExprId, Cow<'static, str>);

type Expansion = Result<Expr, Wrong>;

/// Variables of a comprehension.
type Variables = (String, Option<String>);

impl Parser<'_> {
    /// Creates a call of a global function, or expands a macro.
    pub(super) fn global_call(&mut self, id: ExprId, name: String, mut args: Vec<Expr>) -> Parse {
        if name == "has" && args.len() == 1 {
            let argument = args.pop().ok_or(super::Stop)?;
            let expansion = match argument.kind {
                ExprKind::Select { operand, field, .. } => Ok(Expr {
                    id: self.macro_id(id),
                    kind: ExprKind::Select {
                        operand,
                        field,
                        is_test: true,
                    },
                }),
                _ => Err((argument.id, "invalid argument to has() macro".into())),
            };
            return Ok(self.expanded(id, expansion));
        }
        let height = args.iter().map(|arg| self.height(arg)).max();
        self.set_height(id, height.unwrap_or_default());
        Ok(call(id, &name, args))
    }

    /// Creates a call of a function with a receiver, or expands a macro.
    pub(super) fn member_call(
        &mut self,
        id: ExprId,
        name: String,
        target: Expr,
        args: Vec<Expr>,
    ) -> Parse {
        let height = args.iter().map(|arg| self.height(arg)).max();
        let height = height.unwrap_or_default().max(self.height(&target)) + 1;
        let expansion = match (name.as_str(), args.len()) {
            ("all" | "exists" | "exists_one", 2 | 3) | ("existsOne", 3) => {
                self.quantifier(id, &name, target, args)
            }
            ("map", 2 | 3) | ("filter", 2) => self.list_macro(id, &name, target, args),
            ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                self.transform(id, &name, target, args)
            }
            ("optMap" | "optFlatMap", 2) => self.optional_macro(id, &name, target, args),
            ("sortBy", 2) => self.sort_by(id, target, args),
            _ => {
                self.set_limited_height(id, height)?;
                return Ok(Expr {
                    id,
                    kind: ExprKind::Call {
                        target: Some(Box::new(target)),
                        function: name,
                        args,
                    },
                });
            }
        };
        let expr = self.expanded(id, expansion);
        self.set_limited_height(expr.id, height)?;
        Ok(expr)
    }

    fn expanded(&mut self, id: ExprId, expansion: Expansion) -> Expr {
        expansion.unwrap_or_else(|(wrong, message)| {
            let position = self.position(wrong);
            self.report(Some(position), message.into_owned());
            Expr {
                id: self.macro_id(id),
                kind: ExprKind::Unspecified,
            }
        })
    }

    fn quantifier(&mut self, id: ExprId, name: &str, range: Expr, args: Vec<Expr>) -> Expansion {
        let (variables, mut rest) = split(args, "argument must be a simple name", 1)?;
        let predicate = rest
            .pop()
            .ok_or((id, "argument must be a simple name".into()))?;
        let (init, condition, step, result) = match name {
            "all" => {
                let init = self.new_literal(id, Literal::Bool(true));
                let accumulator = self.accumulator(id);
                let condition = self.new_call(id, "@not_strictly_false", vec![accumulator]);
                let accumulator = self.accumulator(id);
                let step = self.new_call(id, "_&&_", vec![accumulator, predicate]);
                (init, condition, step, self.accumulator(id))
            }
            "exists" => {
                let init = self.new_literal(id, Literal::Bool(false));
                let accumulator = self.accumulator(id);
                let negated = self.new_call(id, "!_", vec![accumulator]);
                let condition = self.new_call(id, "@not_strictly_false", vec![negated]);
                let accumulator = self.accumulator(id);
                let step = self.new_call(id, "_||_", vec![accumulator, predicate]);
                (init, condition, step, self.accumulator(id))
            }
            _ => {
                let init = self.new_literal(id, Literal::Int(0));
                let condition = self.new_literal(id, Literal::Bool(true));
                let (accumulator, one) = (self.accumulator(id), Literal::Int(1));
                let one_more = self.new_literal(id, one.clone());
                let sum = self.new_call(id, "_+_", vec![accumulator, one_more]);
                let accumulator = self.accumulator(id);
                let step = self.new_call(id, "_?_:_", vec![predicate, sum, accumulator]);
                let (accumulator, one) = (self.accumulator(id), self.new_literal(id, one));
                let result = self.new_call(id, "_==_", vec![accumulator, one]);
                (init, condition, step, result)
            }
        };
        Ok(self.comprehension(id, range, variables, [init, condition, step, result]))
    }

    fn list_macro(&mut self, id: ExprId, name: &str, range: Expr, args: Vec<Expr>) -> Expansion {
        const NAME: &str = "argument is not an identifier";
        let item = args.first().cloned().ok_or((id, NAME.into()))?;
        let variable = simple_name(&item, NAME)?;
        let mut rest = args.into_iter().skip(1);
        let first = rest.next().ok_or((id, NAME.into()))?;
        let (filter, value) = match (name, rest.next()) {
            ("filter", _) => (Some(first), item),
            (_, Some(second)) => (Some(first), second),
            (_, None) => (None, first),
        };
        Ok(self.build_list(id, range, (variable, None), filter, value))
    }

    /// Creates the comprehension that collects values in a list.
    fn build_list(
        &mut self,
        id: ExprId,
        range: Expr,
        variables: Variables,
        filter: Option<Expr>,
        value: Expr,
    ) -> Expr {
        let init = self.new_list(id, Vec::new());
        let condition = self.new_literal(id, Literal::Bool(true));
        let accumulator = self.accumulator(id);
        let list = self.new_list(id, vec![value]);
        let step = self.new_call(id, "_+_", vec![accumulator, list]);
        let step = self.filtered(id, filter, step);
        let result = self.accumulator(id);
        self.comprehension(id, range, variables, [init, condition, step, result])
    }

    fn transform(&mut self, id: ExprId, name: &str, range: Expr, args: Vec<Expr>) -> Expansion {
        const NAME: &str = "argument must be a simple name";
        let has_filter = args.len() == 4;
        let (variables, rest) = split(args, NAME, if has_filter { 2 } else { 1 })?;
        let mut rest = rest.into_iter();
        let filter = if has_filter { rest.next() } else { None };
        let value = rest.next().ok_or((id, NAME.into()))?;
        if name == "transformList" {
            return Ok(self.build_list(id, range, variables, filter, value));
        }
        let init = Expr {
            id: self.macro_id(id),
            kind: ExprKind::Map(Vec::<Entry>::new()),
        };
        let condition = self.new_literal(id, Literal::Bool(true));
        let mut inserted = vec![self.accumulator(id)];
        if name == "transformMap" {
            inserted.push(Expr {
                id: self.macro_id(id),
                kind: ExprKind::Ident(variables.0.clone()),
            });
        }
        inserted.push(value);
        let step = self.new_call(id, "cel.@mapInsert", inserted);
        let step = self.filtered(id, filter, step);
        let result = self.accumulator(id);
        Ok(self.comprehension(id, range, variables, [init, condition, step, result]))
    }

    fn optional_macro(
        &mut self,
        id: ExprId,
        name: &str,
        target: Expr,
        args: Vec<Expr>,
    ) -> Expansion {
        let mut args = args.into_iter();
        let message = match name {
            "optMap" => "optMap() variable name must be a simple identifier",
            _ => "optFlatMap() variable name must be a simple identifier",
        };
        let (Some(variable), Some(value)) = (args.next(), args.next()) else {
            return Err((id, message.into()));
        };
        let ExprKind::Ident(variable_name) = &variable.kind else {
            return Err((variable.id, message.into()));
        };
        let copy = self.copy(&target);
        let bound = self.new_member_call(id, "value", copy, Vec::new());
        let body = self.bind(id, variable_name.clone(), bound, value);
        let some = match name {
            "optMap" => self.new_call(id, "optional.of", vec![body]),
            _ => body,
        };
        let has_value = self.new_member_call(id, "hasValue", target, Vec::new());
        let none = self.new_call(id, "optional.none", Vec::new());
        Ok(self.new_call(id, "_?_:_", vec![has_value, some, none]))
    }

    fn sort_by(&mut self, id: ExprId, target: Expr, args: Vec<Expr>) -> Expansion {
        if matches!(
            target.kind,
            ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }
        ) {
            return Err((
                target.id,
                "sortBy can only be applied to a list, identifier, comprehension, call or select \
                 expression"
                    .into(),
            ));
        }
        let input = |parser: &mut Self| Expr {
            id: parser.macro_id(id),
            kind: ExprKind::Ident(SORT_INPUT.to_owned()),
        };
        let range = input(self);
        let keys = self.list_macro(id, "map", range, args)?;
        let receiver = input(self);
        let sorted = self.new_member_call(id, "@sortByAssociatedKeys", receiver, vec![keys]);
        Ok(self.bind(id, SORT_INPUT.to_owned(), target, sorted))
    }

    /// Creates the comprehension that binds a variable: a loop over an empty list.
    fn bind(&mut self, id: ExprId, variable: String, value: Expr, result: Expr) -> Expr {
        let range = self.new_list(id, Vec::new());
        let condition = self.new_literal(id, Literal::Bool(false));
        let step = Expr {
            id: self.macro_id(id),
            kind: ExprKind::Ident(variable.clone()),
        };
        Expr {
            id: self.macro_id(id),
            kind: ExprKind::Comprehension(Box::new(Comprehension {
                range,
                variable: UNUSED.to_owned(),
                second: None,
                accumulator: variable,
                init: value,
                condition,
                step,
                result,
            })),
        }
    }

    fn filtered(&mut self, id: ExprId, filter: Option<Expr>, step: Expr) -> Expr {
        match filter {
            Some(filter) => {
                let accumulator = self.accumulator(id);
                self.new_call(id, "_?_:_", vec![filter, step, accumulator])
            }
            None => step,
        }
    }

    fn comprehension(
        &mut self,
        id: ExprId,
        range: Expr,
        (variable, second): Variables,
        [init, condition, step, result]: [Expr; 4],
    ) -> Expr {
        Expr {
            id: self.macro_id(id),
            kind: ExprKind::Comprehension(Box::new(Comprehension {
                range,
                variable,
                second,
                accumulator: ACCUMULATOR.to_owned(),
                init,
                condition,
                step,
                result,
            })),
        }
    }

    /// Copies a node with new ids, because an id occurs once in a tree.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let mut copied = expr.clone();
        self.renumber(&mut copied);
        copied
    }

    fn renumber(&mut self, expr: &mut Expr) {
        let (position, height) = (self.position(expr.id), self.height(expr));
        expr.id = self.id(position);
        self.set_height(expr.id, height);
        match &mut expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Unspecified => {}
            ExprKind::Select { operand, .. } => self.renumber(operand),
            ExprKind::Call { target, args, .. } => {
                target.iter_mut().for_each(|target| self.renumber(target));
                args.iter_mut().for_each(|arg| self.renumber(arg));
            }
            ExprKind::List(elements) => {
                elements
                    .iter_mut()
                    .for_each(|e| self.renumber(&mut e.value));
            }
            ExprKind::Map(entries) => {
                for entry in entries {
                    self.renumber(&mut entry.key);
                    self.renumber(&mut entry.value);
                }
            }
            ExprKind::Struct { fields, .. } => {
                fields.iter_mut().for_each(|f| self.renumber(&mut f.value));
            }
            ExprKind::Comprehension(fold) => {
                for part in [
                    &mut fold.range,
                    &mut fold.init,
                    &mut fold.condition,
                    &mut fold.step,
                    &mut fold.result,
                ] {
                    self.renumber(part);
                }
            }
        }
    }

    /// Returns a new id at the position of the call of the macro.
    fn macro_id(&mut self, id: ExprId) -> ExprId {
        let position = self.position(id);
        self.id(position)
    }

    fn new_literal(&mut self, id: ExprId, literal: Literal) -> Expr {
        let position = self.position(id);
        self.literal(position, literal)
    }

    fn new_list(&mut self, id: ExprId, values: Vec<Expr>) -> Expr {
        let elements = values.into_iter().map(|value| Element {
            value,
            is_optional: false,
        });
        Expr {
            id: self.macro_id(id),
            kind: ExprKind::List(elements.collect()),
        }
    }

    fn new_call(&mut self, id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
        call(self.macro_id(id), function, args)
    }

    fn new_member_call(
        &mut self,
        id: ExprId,
        function: &str,
        target: Expr,
        args: Vec<Expr>,
    ) -> Expr {
        Expr {
            id: self.macro_id(id),
            kind: ExprKind::Call {
                target: Some(Box::new(target)),
                function: function.to_owned(),
                args,
            },
        }
    }

    fn accumulator(&mut self, id: ExprId) -> Expr {
        Expr {
            id: self.macro_id(id),
            kind: ExprKind::Ident(ACCUMULATOR.to_owned()),
        }
    }
}

/// Splits the arguments of a macro into its one or two variables, and `count` other arguments.
fn split(
    mut args: Vec<Expr>,
    message: &'static str,
    count: usize,
) -> Result<(Variables, Vec<Expr>), Wrong> {
    let rest = args.split_off(args.len().saturating_sub(count));
    let mut variables = args.iter();
    let first = variables.next().ok_or((0, message.into()))?;
    let name = simple_name(first, message)?;
    let second = match variables.next() {
        Some(second) => {
            let other = simple_name(second, message)?;
            if other == name {
                return Err((second.id, format!("duplicate variable name: {name}").into()));
            }
            Some(other)
        }
        None => None,
    };
    Ok(((name, second), rest))
}

fn simple_name(expr: &Expr, message: &'static str) -> Result<String, Wrong> {
    match &expr.kind {
        ExprKind::Ident(name) if name == ACCUMULATOR || name == OLD_ACCUMULATOR => Err((
            expr.id,
            "iteration variable overwrites accumulator variable".into(),
        )),
        ExprKind::Ident(name) => Ok(name.clone()),
        _ => Err((expr.id, message.into())),
    }
}
