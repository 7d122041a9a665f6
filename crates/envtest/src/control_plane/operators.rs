//! ServiceAccounts that operators act as, with the roles of their manifests.

use opkit_client::{DeleteOptions, Kind, ObjectKey, Patch, WriteOptions};
use opkit_controller::{Permission, Result};
use opkit_operator::{Operator, RunOptions};
use serde_json::Value;

use super::{ControlPlane, MANAGER};
use crate::denials::DeniedRequest;
use crate::error::{TestError, refused};
use crate::roles;

/// Rights of the operators that a handle of a control plane starts.
#[derive(Clone, Debug, Default)]
pub(super) struct OperatorRights {
    /// Whether operators act as administrator.
    pub(super) is_admin: bool,
    /// Whether denied requests are expected, so that they do not fail the test.
    pub(super) expects_denials: bool,
    /// Permissions that operators lack although their manifests grant them.
    pub(super) withheld: Vec<Permission>,
}

impl ControlPlane {
    /// Returns another handle of the same control plane, whose operators act as administrator. By
    /// default an operator acts as a ServiceAccount with the roles that its command `manifests`
    /// prints. A true value of the environment variable `OPKIT_OPERATORS_AS_ADMIN` has the same
    /// effect on all tests.
    ///
    /// # Examples
    /// ```
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_operator::Operator;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// plane.operators_as_admin().start(Operator::new("map-operator")).await?;
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    #[must_use]
    pub fn operators_as_admin(&self) -> Self {
        let mut plane = self.clone();
        plane.rights.is_admin = true;
        plane
    }

    /// Returns another handle of the same control plane. Denied requests of the operators that this
    /// handle starts do not fail the test; [`denied`](ControlPlane::denied) returns them.
    #[must_use]
    pub fn expect_denials(&self) -> Self {
        let mut plane = self.clone();
        plane.rights.expects_denials = true;
        plane
    }

    /// Returns another handle of the same control plane, whose operators lack one verb on one
    /// resource, or `resource/subresource`, of an API group although their manifests grant it. Such
    /// operators do not check their permissions when they start.
    ///
    /// # Examples
    /// ```
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_operator::Operator;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// let without_events = plane.withhold("events.k8s.io", "events", "create").expect_denials();
    /// without_events.start(Operator::new("map-operator")).await?;
    /// assert_eq!(plane.denied(), []);
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    #[must_use]
    pub fn withhold(&self, group: &str, resource: &str, verb: &str) -> Self {
        let mut plane = self.clone();
        plane.rights.withheld.push(Permission {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            namespaced: true,
        });
        plane
    }

    /// Returns the requests of operators that were denied so far because of their roles, each
    /// request once.
    #[must_use]
    pub fn denied(&self) -> Vec<DeniedRequest> {
        self.inner.denials.requests()
    }

    /// Creates the ServiceAccount, roles and role bindings that the command `manifests` prints for
    /// an operator with these options, and returns a client that acts as this ServiceAccount. For a
    /// handle of [`operators_as_admin`](ControlPlane::operators_as_admin), returns the client of
    /// the administrator.
    ///
    /// [`start`](ControlPlane::start) calls this method. Call it for an operator that the test runs
    /// by itself, with [`Operator::run_with`].
    ///
    /// # Errors
    /// If the server refuses an object or a token, or the roles are not in force in time.
    pub async fn operator_client(
        &self,
        operator: &Operator,
        options: &RunOptions,
    ) -> Result<kube::Client> {
        if self.rights.is_admin {
            return Ok(self.client());
        }
        let namespace = self.namespace();
        let rbac = operator.rbac(options);
        let rbac = rbac.instance(self.new_prefix(operator.name()), namespace);
        let mut documents = rbac.documents();
        for permission in &self.rights.withheld {
            let each = documents.iter_mut();
            each.for_each(|document| roles::withhold(document, permission));
        }
        for document in &documents {
            self.create_permission(document).await?;
        }
        let account = rbac.service_account_name();
        let backend = &self.inner.backend;
        let client = backend.service_account_client(&self.inner.client, namespace, &account);
        let client = client.await?;
        if backend.is_shared() {
            for review in documents.iter().filter_map(roles::first_review) {
                self.wait_until_granted(&client, &review, &account).await?;
            }
        }
        let denials = &self.inner.denials;
        if self.rights.expects_denials {
            denials.expect(&format!("{namespace}/{account}"));
        }
        let subject = (namespace, account.as_str());
        Ok(denials.record(operator.name(), subject, client, self.client()))
    }

    /// Returns a prefix for the names of an operator's roles that no other operator of this test,
    /// nor of another test on a shared control plane, has.
    fn new_prefix(&self, operator: &str) -> String {
        let base = match self.inner.backend.is_shared() {
            true => format!("{operator}-{}", self.namespace()),
            false => operator.to_owned(),
        };
        let mut prefixes = self.inner.prefixes.lock();
        let mut prefix = base.clone();
        let mut number = 1_usize;
        while prefixes.contains(&prefix) {
            number = number.saturating_add(1);
            prefix = format!("{base}-{number}");
        }
        prefixes.push(prefix.clone());
        prefix
    }

    async fn create_permission(&self, document: &Value) -> Result<(), TestError> {
        let Some(kind) = roles::kind_of(document) else {
            return Ok(());
        };
        let text = |path: &str| document.pointer(path).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let key = ObjectKey::from(name).or_namespace(text("/metadata/namespace"));
        if !kind.namespaced && self.inner.backend.is_shared() {
            let object = (kind.clone(), name.to_owned());
            self.inner.cluster_roles.lock().push(object);
        }
        let options = WriteOptions::for_manager(MANAGER).force();
        let client = &self.inner.client;
        let applied = client
            .patch(&kind, &key, None, Patch::Apply(document), &options)
            .await;
        let applied = applied.map_err(|cause| refused(format!("apply {} {key}", kind.kind), cause));
        applied.map(drop)
    }

    /// Waits until the authorizer of a real server has seen the roles: it caches them.
    async fn wait_until_granted(
        &self,
        client: &kube::Client,
        review: &Value,
        account: &str,
    ) -> Result {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let granted = self
            .wait(async || {
                let request = http::Request::post(path)
                    .header("content-type", "application/json")
                    .body(serde_json::to_vec(review)?)?;
                let response = client.request::<Value>(request).await?;
                let is_allowed = response.pointer("/status/allowed");
                Ok((is_allowed == Some(&Value::Bool(true))).then_some(()))
            })
            .await?;
        match granted {
            Some(()) => Ok(()),
            None => Err(TestError::NotGranted {
                service_account: format!("{}/{account}", self.namespace()),
                timeout: self.timeout,
            }
            .into()),
        }
    }

    /// Deletes the cluster-scoped roles and bindings of the operators. The other objects are
    /// deleted with the namespace of the test.
    pub(super) async fn remove_cluster_roles(&self) -> Result<(), TestError> {
        let objects: Vec<(Kind, String)> = std::mem::take(&mut *self.inner.cluster_roles.lock());
        for (kind, name) in objects {
            let (key, options) = (ObjectKey::from(name.as_str()), DeleteOptions::background());
            match self.inner.client.delete(&kind, &key, &options).await {
                Err(error) if error.is_not_found() => {}
                deleted => {
                    let what = || format!("delete {} {name}", kind.kind);
                    deleted.map_err(|cause| refused(what(), cause))?;
                }
            }
        }
        Ok(())
    }
}
