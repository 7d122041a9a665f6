//! A request as admission sees it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::authentication::{Identity, SYSTEM_MASTERS};
use crate::kinds::Kind;
use crate::object;
use crate::registry::Write;
use crate::status::ApiError;
use crate::target::Target;
use crate::workloads::pod::NODE;

/// The operation of a request, in the words of admission.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The parts of a request that admission does not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    /// Kind, namespace and subresource.
    pub(crate) target: &'a Target,
    /// The name of the object. Empty for a new object whose name is generated, and for the objects
    /// of a collection that is deleted.
    pub(crate) name: &'a str,
    /// The name in errors: the name of the object, or its `generateName` if the client has set no
    /// name.
    pub(crate) name_in_errors: &'a str,
    /// The object before an update or delete, in the version of the request.
    pub(crate) old: Option<&'a Value>,
    /// User, dry run and notes.
    pub(crate) write: &'a Write,
}

impl<'a> Attributes<'a> {
    pub(crate) fn kind(&self) -> &'a Arc<Kind> {
        &self.target.kind
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.write.dry_run
    }

    /// Returns the namespace of the request. As in Kubernetes, the namespace of a Namespace is
    /// itself.
    pub(crate) fn namespace(&self) -> &'a str {
        let kind = &self.target.kind;
        match kind.group.is_empty() && kind.plural == "namespaces" {
            true => self.name,
            false => &self.target.namespace,
        }
    }

    /// Returns the user of the request. The control plane's own writes have the users of the
    /// components of a cluster.
    pub(crate) fn user(&self) -> Arc<Identity> {
        if let Some(user) = &self.write.user {
            return user.clone();
        }
        Arc::new(match self.write.manager.as_str() {
            "kubelet" => {
                let groups = vec!["system:nodes".to_owned()];
                Identity::authenticated(format!("system:node:{NODE}"), groups)
            }
            "kube-apiserver" => {
                Identity::authenticated("system:apiserver", vec![SYSTEM_MASTERS.to_owned()])
            }
            _ => Identity::authenticated("system:kube-controller-manager", Vec::new()),
        })
    }

    /// Returns the error of a plugin that refuses the request.
    pub(crate) fn forbid(&self, why: impl AsRef<str>) -> ApiError {
        let name = match self.name_in_errors {
            "" => "Unknown",
            name => name,
        };
        ApiError::forbidden(&self.target.kind, name, why.as_ref())
    }

    /// Returns the options of the request, such as `CreateOptions`, in the form in which webhooks
    /// and policies get them. A patch has the options of the create or update that it causes.
    pub(crate) fn options(&self) -> Value {
        let write = self.write;
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => return Value::Null,
        };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        let mut set = |field: &str, value: Value| object::set_field(&mut options, field, value);
        if write.dry_run {
            set("dryRun", json!(["All"]));
        }
        if self.operation == Operation::Delete {
            for (field, value) in write.delete_options.as_object().into_iter().flatten() {
                set(field, value.clone());
            }
            return options;
        }
        if let Some(manager) = &write.given_manager {
            set("fieldManager", json!(manager));
        }
        if let Some(validation) = &write.given_field_validation {
            set("fieldValidation", json!(validation));
        }
        options
    }
}
