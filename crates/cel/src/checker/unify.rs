//! Unification of types with type variables, by cel-go's rules.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;

/// Types to which type variables are bound.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    bound: HashMap<Arc<str>, Type>,
}

impl Mapping {
    /// Reports whether `found` is assignable to `wanted`, and binds the type variables if so.
    pub(super) fn assign(&mut self, found: &Type, wanted: &Type) -> bool {
        let mut attempt = self.clone();
        let holds = attempt.unify(found, wanted);
        if holds {
            *self = attempt;
        }
        holds
    }

    /// Reports whether each of the found types is assignable to the wanted type in its place.
    pub(super) fn assign_all(&mut self, found: &[Type], wanted: &[Type]) -> bool {
        if found.len() != wanted.len() {
            return false;
        }
        let mut attempt = self.clone();
        let holds = found
            .iter()
            .zip(wanted)
            .all(|(found, wanted)| attempt.unify(found, wanted));
        if holds {
            *self = attempt;
        }
        holds
    }

    /// Replaces type variables by the types to which they are bound. With `to_dyn`, variables
    /// without a type become `dyn`.
    pub(super) fn substitute(&self, found: &Type, to_dyn: bool) -> Type {
        match found {
            Type::Param(name) => match self.bound.get(name) {
                Some(bound) => self.substitute(bound, to_dyn),
                None if to_dyn => Type::Dyn,
                None => found.clone(),
            },
            Type::List(inner) => Type::list(self.substitute(inner, to_dyn)),
            Type::Optional(inner) => Type::optional(self.substitute(inner, to_dyn)),
            Type::Type(inner) => Type::Type(Arc::new(self.substitute(inner, to_dyn))),
            Type::Map(key, value) => {
                Type::map(self.substitute(key, to_dyn), self.substitute(value, to_dyn))
            }
            other => other.clone(),
        }
    }

    fn unify(&mut self, first: &Type, second: &Type) -> bool {
        if let Type::Param(_) = second {
            let (is_valid, is_bound) = self.bind(first, second);
            if is_valid {
                return true;
            }
            if is_bound {
                return false;
            }
        }
        if let Type::Param(_) = first {
            return self.bind(second, first).0;
        }
        if first.is_dyn_or_error() || second.is_dyn_or_error() {
            return true;
        }
        match (first, second) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.unify(a, b)
            }
            (Type::Map(ak, av), Type::Map(bk, bv)) => self.unify(ak, bk) && self.unify(av, bv),
            (Type::Type(_), Type::Type(_)) => true,
            _ => first == second,
        }
    }

    /// Binds a type variable to a type. Returns whether the binding is valid, and whether the
    /// variable was bound before.
    fn bind(&mut self, to: &Type, variable: &Type) -> (bool, bool) {
        if to == variable {
            return (true, true);
        }
        let Type::Param(name) = variable else {
            return (false, false);
        };
        if let Some(bound) = self.bound.get(name).cloned() {
            if *to == bound {
                return (true, true);
            }
            if self.unify(to, &bound) {
                let general = most_general(to.clone(), bound);
                if self.is_free_of(variable, &general) {
                    self.bound.insert(name.clone(), general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.is_free_of(variable, to) {
            self.bound.insert(name.clone(), to.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Reports whether a type does not contain a type variable.
    fn is_free_of(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return false;
        }
        match within {
            Type::Param(name) => match self.bound.get(name) {
                Some(bound) => self.is_free_of(variable, bound),
                None => true,
            },
            other => other
                .parameters()
                .into_iter()
                .all(|inner| self.is_free_of(variable, inner)),
        }
    }
}

fn is_nullable(found: &Type) -> bool {
    matches!(
        found,
        Type::Null
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Optional(_)
            | Type::Timestamp
            | Type::Duration
    )
}

/// Returns the more general of two types that unify.
pub(super) fn most_general(first: Type, second: Type) -> Type {
    match is_equal_or_less_specific(&first, &second) {
        true => first,
        false => second,
    }
}

fn is_equal_or_less_specific(first: &Type, second: &Type) -> bool {
    match (first, second) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            is_equal_or_less_specific(a, b)
        }
        (Type::Map(ak, av), Type::Map(bk, bv)) => {
            is_equal_or_less_specific(ak, bk) && is_equal_or_less_specific(av, bv)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => first == second,
    }
}
