//! Type checker: resolves identifiers, fields and overloads, and determines the type of each node.
//!
//! The rules and the texts of errors are those of cel-go with Kubernetes' options: literals of
//! lists and maps are homogeneous, and numbers of different types can be compared.

mod unify;
mod validators;

use std::collections::HashMap;
use std::sync::Arc;

use opkit_syntax::cel::{
    Comprehension, Element, Entry, Expr, ExprId, ExprKind, Issue, Literal, Parsed, StructField,
};

use crate::declarations::{FUNCTIONS, Functions, Overload, type_value};
use crate::types::Type;
use unify::{Mapping, most_general};

/// The type of the object of a mutating policy. The types of its fields are `Object.spec` and so
/// on.
pub(crate) const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub(crate) const JSON_PATCH: &str = "JSONPatch";

/// Fields of the object types, and the variables, against which an expression is checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Types of the variables by name.
    pub(crate) variables: HashMap<String, Type>,
    /// Types of the fields, by the name of the object type and the name of the field.
    pub(crate) objects: HashMap<Arc<str>, HashMap<String, Type>>,
    /// Functions beyond those of every environment.
    pub(crate) extra: Option<&'static Functions>,
    /// Whether the object literals of mutating policies are known: `Object{..}` and
    /// `JSONPatch{..}`.
    pub(crate) has_object_literals: bool,
    /// Whether the environment is that of a schema, in which the names of more types are known.
    pub(crate) has_schema: bool,
}

/// A checked expression.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) expr: Expr,
    /// Type of each node, by id.
    pub(crate) types: Vec<Type>,
    /// What each identifier and call refers to, by id.
    pub(crate) references: HashMap<ExprId, Reference>,
}

/// What an identifier or a call refers to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reference {
    Variable(String),
    Type(Type),
    /// The name of a type that has no value at run time, as in Kubernetes.
    UndefinedType(&'static str),
    Overloads(Vec<&'static str>),
}

impl Checked {
    pub(crate) fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id).unwrap_or(&Type::Error)
    }

    /// Returns the overloads to which a call may resolve.
    pub(crate) fn overloads(&self, id: ExprId) -> &[&'static str] {
        match self.references.get(&id) {
            Some(Reference::Overloads(ids)) => ids,
            _ => &[],
        }
    }

    /// Reports whether the expression refers to a variable.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.references
            .values()
            .any(|found| matches!(found, Reference::Variable(name) if name == variable))
    }
}

/// Checks an expression.
///
/// # Errors
/// Returns the type errors.
pub(crate) fn check(parsed: Parsed, scope: &Scope) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker {
        scope,
        positions: &parsed.positions,
        locals: Vec::new(),
        types: vec![None; parsed.positions.len()],
        references: HashMap::new(),
        mapping: Mapping::default(),
        variables: 0,
        issues: Vec::new(),
    };
    let mut expr = parsed.expr;
    checker.check(&mut expr);
    let mapping = std::mem::take(&mut checker.mapping);
    let types = checker.types.iter().map(|found| match found {
        Some(found) => mapping.substitute(found, true),
        None => Type::Error,
    });
    let types: Vec<Type> = types.collect();
    let (references, mut issues) = (checker.references, checker.issues);
    let checked = Checked {
        expr,
        types,
        references,
    };
    if issues.is_empty() {
        issues = validators::validate(&checked, &parsed.positions);
    }
    match issues.is_empty() {
        true => Ok(checked),
        false => Err(issues),
    }
}

struct Checker<'a> {
    scope: &'a Scope,
    positions: &'a [usize],
    /// Variables of the comprehensions around the current node.
    locals: Vec<(String, Type)>,
    types: Vec<Option<Type>>,
    references: HashMap<ExprId, Reference>,
    mapping: Mapping,
    /// Number of type variables created so far.
    variables: usize,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let found = match &mut expr.kind {
            ExprKind::Literal(literal) => type_of_literal(literal),
            ExprKind::Ident(name) => self.ident(id, name),
            ExprKind::Select { .. } => return self.select(expr),
            ExprKind::Call { .. } => return self.call(expr),
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { type_name, fields } => self.structure(id, type_name, fields),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
            ExprKind::Unspecified => Type::Error,
        };
        self.set_type(id, found);
    }

    /// Returns the type of a variable or type name, and records the reference.
    fn lookup(&mut self, id: ExprId, name: &str) -> Option<Type> {
        let plain = name.strip_prefix('.').unwrap_or(name);
        let local = self.locals.iter().rev().find(|(local, _)| local == plain);
        let variable = local
            .map(|(_, found)| found)
            .or(self.scope.variables.get(plain));
        if let Some(found) = variable.cloned() {
            let reference = Reference::Variable(plain.to_owned());
            self.references.insert(id, reference);
            return Some(found);
        }
        let undefined = match plain {
            "duration" => Some(("duration", Type::Duration)),
            "timestamp" => Some(("timestamp", Type::Timestamp)),
            _ => None,
        };
        if let Some((name, found)) = undefined.filter(|_| self.scope.has_schema) {
            self.references.insert(id, Reference::UndefinedType(name));
            return Some(Type::Type(Arc::new(found)));
        }
        let found = type_value(plain)?;
        self.references.insert(id, Reference::Type(found.clone()));
        Some(Type::Type(Arc::new(found)))
    }

    fn ident(&mut self, id: ExprId, name: &str) -> Type {
        self.lookup(id, name).unwrap_or_else(|| {
            self.report(id, undeclared(name));
            Type::Error
        })
    }

    fn select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        if let Some(name) = expr.qualified_name()
            && let Some(found) = self.lookup(id, &name)
        {
            expr.kind = ExprKind::Ident(name);
            return self.set_type(id, found);
        }
        let ExprKind::Select {
            operand,
            field,
            is_test,
        } = &mut expr.kind
        else {
            return;
        };
        let field_type = self.field(id, operand, field, false);
        let found = match is_test {
            true => Type::Bool,
            false => self.mapping.substitute(&field_type, false),
        };
        self.set_type(id, found);
    }

    /// Returns the type of a field of an operand.
    fn field(&mut self, id: ExprId, operand: &mut Expr, field: &str, is_optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.mapping.substitute(&self.type_of(operand.id), false);
        let (target, was_optional) = operand_type.unwrap_optional();
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(name) => self.object_field(id, name, field),
            Type::Param(_) => {
                self.mapping.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.report(id, message);
                Type::Dyn
            }
        };
        match was_optional || is_optional {
            true => Type::optional(found),
            false => found,
        }
    }

    fn object_field(&mut self, id: ExprId, name: &str, field: &str) -> Type {
        if self.scope.has_object_literals && (name == OBJECT || name.starts_with("Object.")) {
            return Type::Dyn;
        }
        let message = match self.scope.objects.get(name) {
            Some(fields) => match fields.get(field) {
                Some(found) => return found.clone(),
                None => format!("undefined field '{field}'"),
            },
            None => format!("unexpected failed resolution of '{name}'"),
        };
        self.report(id, message);
        Type::Error
    }

    fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call {
            target,
            function,
            args,
        } = &mut expr.kind
        else {
            return;
        };
        if function == "_?._" {
            let [operand, field] = args.as_mut_slice() else {
                return;
            };
            let name = field.as_string().unwrap_or_default().to_owned();
            let found = self.field(id, operand, &name, true);
            let found = self.mapping.substitute(&found, false);
            self.set_type(field.id, Type::String);
            self.set_type(id, found);
            let reference = Reference::Overloads(vec!["select_optional_field"]);
            self.references.insert(id, reference);
            return;
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        let qualified = target.as_ref().and_then(|target| target.qualified_name());
        if let Some(prefix) = qualified {
            let name = format!("{prefix}.{function}");
            let name = name.strip_prefix('.').unwrap_or(&name).to_owned();
            if let Some(overloads) = self.functions(&name) {
                *target = None;
                *function = name;
                let found = self.resolve(id, function, overloads, None, args);
                return self.set_type(id, found);
            }
        }
        if let Some(target) = target {
            self.check(target);
        }
        let plain = function.strip_prefix('.').unwrap_or(function).to_owned();
        let found = match self.functions(&plain) {
            Some(overloads) => {
                let target = target.as_deref();
                let found = self.resolve(id, &plain, overloads, target, args);
                *function = plain;
                found
            }
            None => {
                let message = undeclared(function);
                self.report(id, message);
                Type::Error
            }
        };
        self.set_type(id, found);
    }

    /// Returns the type of an object literal. Only mutating policies have such types; the objects
    /// of schemas have types without names.
    fn structure(&mut self, id: ExprId, type_name: &str, fields: &mut [StructField]) -> Type {
        let plain = type_name.strip_prefix('.').unwrap_or(type_name);
        let is_object = plain == OBJECT || plain.starts_with("Object.");
        if !self.scope.has_object_literals || !(is_object || plain == JSON_PATCH) {
            self.report(id, undeclared(type_name));
            return Type::Error;
        }
        for field in fields.iter_mut() {
            self.check(&mut field.value);
            let wanted = match (is_object, field.name.as_str()) {
                (true, _) | (false, "value") => Type::Dyn,
                (false, "op" | "path" | "from") => Type::String,
                (false, name) => {
                    self.report(field.value.id, format!("undefined field '{name}'"));
                    continue;
                }
            };
            let wanted = match field.is_optional {
                true => Type::optional(wanted),
                false => wanted,
            };
            let found = self
                .mapping
                .substitute(&self.type_of(field.value.id), false);
            if !self.mapping.assign(&found, &wanted) {
                let name = &field.name;
                self.report(
                    field.value.id,
                    format!(
                        "expected type of field '{name}' is '{wanted}' but provided type is \
                         '{found}'"
                    ),
                );
            }
        }
        Type::object(plain)
    }

    fn functions(&self, name: &str) -> Option<&'static [Overload]> {
        let extra = self.scope.extra.and_then(|functions| functions.get(name));
        FUNCTIONS.get(name).or(extra).map(Vec::as_slice)
    }

    /// Determines the overloads that match the types of the arguments, and the type of the result.
    fn resolve(
        &mut self,
        id: ExprId,
        name: &str,
        overloads: &'static [Overload],
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        let nodes: Vec<ExprId> = target.into_iter().chain(args).map(|arg| arg.id).collect();
        let types: Vec<Type> = nodes.iter().map(|node| self.type_of(*node)).collect();
        if matches!(name, "_&&_" | "_||_") {
            return self.resolve_logic(id, overloads, &nodes, &types);
        }
        let mut result: Option<Type> = None;
        let mut matched = Vec::new();
        for overload in overloads
            .iter()
            .filter(|overload| overload.is_member == target.is_some())
        {
            let fresh: HashMap<&str, Type> = overload
                .params
                .iter()
                .map(|param| (*param, self.type_variable()))
                .collect();
            let candidates: Vec<Type> = overload
                .args
                .iter()
                .map(|arg| rename(arg, &fresh))
                .collect();
            if !self.mapping.assign_all(&types, &candidates) {
                continue;
            }
            matched.push(overload.id);
            let found = rename(&overload.result, &fresh);
            let found = self.mapping.substitute(&found, false);
            result = Some(match result {
                None => found,
                Some(Type::Dyn) => Type::Dyn,
                Some(before) if before == found => before,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let shown: Vec<String> = types
                .iter()
                .map(|found| self.mapping.substitute(found, true).to_string())
                .collect();
            let signature = match (target, shown.split_first()) {
                (Some(_), Some((first, rest))) => format!("{first}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            let message =
                format!("found no matching overload for '{name}' applied to '{signature}'");
            self.report(id, message);
            return Type::Error;
        };
        self.references.insert(id, Reference::Overloads(matched));
        result
    }

    fn resolve_logic(
        &mut self,
        id: ExprId,
        overloads: &'static [Overload],
        nodes: &[ExprId],
        types: &[Type],
    ) -> Type {
        let mut is_valid = true;
        for (node, found) in nodes.iter().zip(types) {
            if !self.mapping.assign(found, &Type::Bool) {
                self.mismatch(*node, &Type::Bool, found);
                is_valid = false;
            }
        }
        if !is_valid {
            return Type::Error;
        }
        let ids = overloads.iter().map(|overload| overload.id).collect();
        self.references.insert(id, Reference::Overloads(ids));
        Type::Bool
    }

    fn list(&mut self, elements: &mut [Element]) -> Type {
        let mut joined: Option<Type> = None;
        for element in elements {
            self.check(&mut element.value);
            let id = element.value.id;
            let found = self.optional_value(id, element.is_optional);
            joined = Some(self.join(joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.type_variable()))
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let mut joined: Option<(Type, Type)> = None;
        for entry in entries {
            self.check(&mut entry.key);
            let (key_before, value_before) = joined.unzip();
            let key = self.join(key_before, self.type_of(entry.key.id));
            self.check(&mut entry.value);
            let id = entry.value.id;
            let found = self.optional_value(id, entry.is_optional);
            joined = Some((key, self.join(value_before, found)));
        }
        let (key, value) = joined.unwrap_or_else(|| (self.type_variable(), self.type_variable()));
        Type::map(key, value)
    }

    /// Returns the type of an element. The type of an optional element is that of its value.
    fn optional_value(&mut self, id: ExprId, is_optional: bool) -> Type {
        let found = self.type_of(id);
        if !is_optional {
            return found;
        }
        let (inner, was_optional) = found.unwrap_optional();
        if !was_optional && *inner != Type::Dyn {
            self.mismatch(id, &Type::optional(inner.clone()), inner);
        }
        inner.clone()
    }

    /// Returns the type of elements of two types. A validator reports elements of different types.
    fn join(&mut self, before: Option<Type>, found: Type) -> Type {
        match before {
            None => found,
            Some(before) if self.mapping.assign(&before, &found) => most_general(before, found),
            Some(_) => Type::Dyn,
        }
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.mapping.substitute(&self.type_of(fold.range.id), false);
        let accumulator = self.type_of(fold.init.id);
        let has_second = fold.second.is_some();
        let (variable, second) = match &range {
            Type::List(item) if has_second => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outer = self.locals.len();
        self.locals
            .push((fold.accumulator.clone(), accumulator.clone()));
        let inner = self.locals.len();
        self.locals.push((fold.variable.clone(), variable));
        if let Some(name) = &fold.second {
            self.locals.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert_type(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert_type(fold.step.id, &accumulator);
        self.locals.truncate(inner);
        self.check(&mut fold.result);
        self.locals.truncate(outer);
        let found = self.type_of(fold.result.id);
        self.mapping.substitute(&found, false)
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let found = self.type_of(id);
        if !self.mapping.assign(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        let message = format!("expected type '{expected}' but found '{found}'");
        self.report(id, message);
    }

    fn type_variable(&mut self) -> Type {
        self.variables += 1;
        Type::param(&format!("_var{}", self.variables - 1))
    }

    fn type_of(&self, id: ExprId) -> Type {
        self.types.get(id).cloned().flatten().unwrap_or(Type::Error)
    }

    fn set_type(&mut self, id: ExprId, found: Type) {
        if let Some(entry) = self.types.get_mut(id) {
            *entry = Some(found);
        }
    }

    fn report(&mut self, id: ExprId, message: String) {
        let offset = self.positions.get(id).copied();
        self.issues.push(Issue { offset, message });
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Replaces the parameters of a declared type by new type variables.
fn rename(declared: &Type, fresh: &HashMap<&str, Type>) -> Type {
    match declared {
        Type::Param(name) => fresh.get(&**name).cloned().unwrap_or(Type::Dyn),
        Type::List(inner) => Type::list(rename(inner, fresh)),
        Type::Optional(inner) => Type::optional(rename(inner, fresh)),
        Type::Type(inner) => Type::Type(Arc::new(rename(inner, fresh))),
        Type::Map(key, value) => Type::map(rename(key, fresh), rename(value, fresh)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
