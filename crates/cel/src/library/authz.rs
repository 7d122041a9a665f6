//! The variable `authorizer`: expressions that ask for permissions.
//!
//! The caller implements [`Authorizer`]; this crate sends no requests.

use std::fmt;
use std::sync::Arc;

use opkit_apimachinery::names::{check_dns_label, check_dns_subdomain};

use super::{Function, no_overload};
use crate::value::{Fault, Object, Outcome, Value};

/// Decides on requests for the functions of the variable `authorizer`.
///
/// # Examples
/// ```
/// use opkit_cel::{Authorizer, Bindings, Budget, Check, Decision, Environment, Type};
///
/// #[derive(Debug)]
/// struct ReadersOnly;
///
/// impl Authorizer for ReadersOnly {
///     fn authorize(&self, check: &Check<'_>) -> Decision {
///         match check.verb {
///             "get" | "list" => Decision::allow(),
///             _ => Decision::no_opinion("read only"),
///         }
///     }
/// }
///
/// let program = Environment::new()
///     .variable("authorizer", Type::authorizer())
///     .compile("authorizer.group('apps').resource('deployments').check('get').allowed()")?;
/// let bindings = Bindings::new().authorizer("authorizer", &ReadersOnly);
/// let value = program.evaluate(&bindings, &mut Budget::new(1_000_000))?;
/// assert_eq!(value.as_bool(), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Authorizer: fmt::Debug + Sync {
    /// Decides on one request.
    fn authorize(&self, check: &Check<'_>) -> Decision;
}

/// A request on which an [`Authorizer`] decides.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Check<'c> {
    /// Namespace and name of the service account, or `None` for the user of the request.
    pub service_account: Option<(&'c str, &'c str)>,
    /// Verb, such as `get`.
    pub verb: &'c str,
    /// What the request concerns.
    pub target: CheckTarget<'c>,
}

/// What a [`Check`] concerns.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CheckTarget<'c> {
    /// A path that is not a resource, such as `/healthz`.
    Path(&'c str),
    /// A resource.
    Resource(&'c ResourceCheck),
}

/// The resource of a [`Check`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceCheck {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource, or an empty text.
    pub subresource: String,
    /// Namespace, or an empty text for all namespaces.
    pub namespace: String,
    /// Name of the object, or an empty text for all objects.
    pub name: String,
    /// Field selector, or an empty text.
    pub field_selector: String,
    /// Label selector, or an empty text.
    pub label_selector: String,
}

/// The decision of an [`Authorizer`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// Reason of the decision.
    pub reason: String,
    /// Why the authorizer could not decide.
    pub error: Option<String>,
}

impl Decision {
    /// Returns the decision that allows a request.
    pub fn allow() -> Self {
        Self {
            is_allowed: true,
            ..Self::default()
        }
    }

    /// Returns the decision that does not allow a request.
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// Returns the decision that failed.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// An authorizer and the user for whom it decides.
#[derive(Debug, Clone)]
pub struct Authorized<'a> {
    authorizer: &'a dyn Authorizer,
    service_account: Option<Arc<(String, String)>>,
}

impl<'a> Authorized<'a> {
    pub(crate) fn new(authorizer: &'a dyn Authorizer) -> Self {
        Self {
            authorizer,
            service_account: None,
        }
    }

    fn check(&self, target: CheckTarget<'_>, verb: &str) -> Decision {
        let account = self.service_account.as_deref();
        self.authorizer.authorize(&Check {
            service_account: account.map(|(namespace, name)| (&**namespace, &**name)),
            verb,
            target,
        })
    }
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "path" => |args| match args {
            [
                Value::Object(Object::Authorizer(authorized)),
                Value::String(path),
            ] => {
                if path.trim().is_empty() {
                    return Err(Fault::new("path must not be empty"));
                }
                let check = Object::PathCheck(authorized.clone(), Arc::from(&**path));
                Ok(Value::Object(check))
            }
            _ => Err(no_overload("path", args)),
        },
        "group" => |args| match args {
            [
                Value::Object(Object::Authorizer(authorized)),
                Value::String(group),
            ] => {
                let check = Object::GroupCheck(authorized.clone(), Arc::from(&**group));
                Ok(Value::Object(check))
            }
            _ => Err(no_overload("group", args)),
        },
        "serviceAccount" => service_account,
        "resource" => resource,
        "subresource" => |args| with(args, "subresource", |check| &mut check.subresource),
        "namespace" => |args| with(args, "namespace", |check| &mut check.namespace),
        "name" => |args| with(args, "name", |check| &mut check.name),
        "fieldSelector" => |args| with(args, "fieldSelector", |check| &mut check.field_selector),
        "labelSelector" => |args| with(args, "labelSelector", |check| &mut check.label_selector),
        "check" => check,
        "errored" => |args| decision(args, "errored", |d| Value::Bool(d.error.is_some())),
        "error" => |args| {
            let text = |d: &Decision| Value::text(d.error.clone().unwrap_or_default());
            decision(args, "error", text)
        },
        "allowed" => |args| decision(args, "allowed", |d| Value::Bool(d.is_allowed)),
        "reason" => |args| decision(args, "reason", |d| Value::text(d.reason.clone())),
        _ => return None,
    })
}

fn service_account<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [
        Value::Object(Object::Authorizer(authorized)),
        Value::String(namespace),
        Value::String(name),
    ] = args
    else {
        return Err(no_overload("serviceAccount", args));
    };
    if check_dns_subdomain(name).is_err() {
        return Err(Fault::new("Invalid service account name"));
    }
    if check_dns_label(namespace).is_err() {
        return Err(Fault::new("Invalid service account namespace"));
    }
    let account = Arc::new((namespace.to_string(), name.to_string()));
    Ok(Value::Object(Object::Authorizer(Authorized {
        authorizer: authorized.authorizer,
        service_account: Some(account),
    })))
}

fn resource<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [
        Value::Object(Object::GroupCheck(authorized, group)),
        Value::String(resource),
    ] = args
    else {
        return Err(no_overload("resource", args));
    };
    if resource.trim().is_empty() {
        return Err(Fault::new("resource must not be empty"));
    }
    let check = ResourceCheck {
        group: group.to_string(),
        resource: resource.to_string(),
        ..ResourceCheck::default()
    };
    Ok(Value::Object(Object::ResourceCheck(
        authorized.clone(),
        Arc::new(check),
    )))
}

fn with<'a>(
    args: &[Value<'a>],
    name: &str,
    field: fn(&mut ResourceCheck) -> &mut String,
) -> Outcome<'a> {
    let [
        Value::Object(Object::ResourceCheck(authorized, check)),
        Value::String(text),
    ] = args
    else {
        return Err(no_overload(name, args));
    };
    let mut check = (**check).clone();
    *field(&mut check) = text.to_string();
    Ok(Value::Object(Object::ResourceCheck(
        authorized.clone(),
        Arc::new(check),
    )))
}

fn check<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let decision = match args {
        [
            Value::Object(Object::PathCheck(authorized, path)),
            Value::String(verb),
        ] => authorized.check(CheckTarget::Path(path), verb),
        [
            Value::Object(Object::ResourceCheck(authorized, check)),
            Value::String(verb),
        ] => authorized.check(CheckTarget::Resource(check), verb),
        _ => return Err(no_overload("check", args)),
    };
    Ok(Value::Object(Object::Decision(Arc::new(decision))))
}

fn decision<'a>(args: &[Value<'a>], name: &str, of: fn(&Decision) -> Value<'a>) -> Outcome<'a> {
    match args {
        [Value::Object(Object::Decision(decision))] => Ok(of(decision)),
        _ => Err(no_overload(name, args)),
    }
}
