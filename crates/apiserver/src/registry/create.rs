//! Creation of objects.

use serde_json::{Value, json};

use super::prepare::{WrittenBy, drop_unset_on_create, enter_namespace};
use super::{Registry, Write, api_services, metadata, pods, rules, zeros};
use crate::admission::{self, Attributes, Operation};
use crate::kinds::Kind;
use crate::kinds::defaults::qos_class;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::{CommitError, Committed, Expected, Key};
use crate::target::Target;

/// Maximum number of generated names that are tried before a create with `generateName` fails.
const GENERATE_NAME_ATTEMPTS: usize = 8;

impl Registry {
    /// Creates the object in `body`, and returns the stored object.
    pub(crate) async fn create(
        &self,
        target: &Target,
        mut body: Value,
        write: &mut Write,
    ) -> ApiResult<Committed> {
        self.check_unknown_fields(&target.kind, &body, write)?;
        write.warnings.extend(metadata::dedup_owners(&mut body));
        self.create_by(WrittenBy::Update, target, body, write).await
    }

    /// Completes a review, which is not stored, like an object to create: sets the namespace, and
    /// the managed fields of the writer.
    pub(crate) fn prepare_review(
        &self,
        target: &Target,
        mut review: Value,
        write: &mut Write,
    ) -> ApiResult<Value> {
        self.check_unknown_fields(&target.kind, &review, write)?;
        enter_namespace(target, &mut review)?;
        self.normalize(&target.kind, &mut review, WrittenBy::Update)?;
        self.attribute(target, None, &mut review, write)?;
        Ok(review)
    }

    /// Runs both phases of admission on an object that a client creates and that is not stored,
    /// such as a Binding.
    pub(crate) async fn admit_unstored(
        &self,
        target: &Target,
        object: &mut Value,
        write: &Write,
    ) -> ApiResult<()> {
        let name = match target.name.as_str() {
            "" => object::name(object).to_owned(),
            name => name.to_owned(),
        };
        let attributes = Attributes {
            operation: Operation::Create,
            target,
            name: &name,
            name_in_errors: &name,
            old: None,
            write,
        };
        admission::mutate(self, &attributes, object).await?;
        admission::validate(self, &attributes, Some(object)).await
    }

    /// Runs both phases of admission on a connection to an object, such as an exec. `options` are
    /// the options of the connection.
    pub(crate) async fn admit_connect(
        &self,
        target: &Target,
        mut options: Value,
        write: &Write,
    ) -> ApiResult<()> {
        let attributes = Attributes {
            operation: Operation::Connect,
            target,
            name: &target.name,
            name_in_errors: &target.name,
            old: None,
            write,
        };
        admission::mutate(self, &attributes, &mut options).await?;
        admission::validate(self, &attributes, Some(&options)).await
    }

    /// Creates the object in `body` like [`Self::create`], but also for a server-side apply, and
    /// without the check for unknown fields.
    pub(super) async fn create_by(
        &self,
        by: WrittenBy,
        target: &Target,
        mut body: Value,
        write: &Write,
    ) -> ApiResult<Committed> {
        let kind = &target.kind;
        enter_namespace(target, &mut body)?;
        self.check_crd_open(kind, object::name(&body))?;
        drop_unset_on_create(kind, &mut body);
        object::set_meta(&mut body, "uid", json!(self.random.uid()));
        object::set_meta(
            &mut body,
            "creationTimestamp",
            json!(self.clock.now_rfc3339()),
        );
        // Kinds without a generation keep the value of the client, as in Kubernetes.
        if rules::has_initial_generation(kind) {
            object::set_meta(&mut body, "generation", json!(1));
        }

        let prefix: String = object::meta(&body, "generateName")
            .chars()
            .take(58)
            .collect();
        let generated = object::name(&body).is_empty() && !prefix.is_empty();
        let name_in_errors = match generated {
            true => prefix.clone(),
            false => object::name(&body).to_owned(),
        };
        for attempt in 1..=GENERATE_NAME_ATTEMPTS {
            // Only a generated name can be tried again.
            let mut object = match generated {
                true => body.clone(),
                false => std::mem::take(&mut body),
            };
            self.normalize(kind, &mut object, by)?;
            if by == WrittenBy::Update {
                self.attribute(target, None, &mut object, write)?;
            }
            let attributes = Attributes {
                operation: Operation::Create,
                target,
                name: if generated { "" } else { &name_in_errors },
                name_in_errors: &name_in_errors,
                old: None,
                write,
            };
            admission::mutate(self, &attributes, &mut object).await?;
            self.check_escalation(target, None, &object, write)?;
            // Admission may have set a name.
            if generated && object::name(&object).is_empty() {
                let name = format!("{prefix}{}", self.random.suffix());
                object::set_meta(&mut object, "name", json!(name));
            }
            set_initial_fields(kind, &mut object, &self.clock.now_rfc3339());
            let allocation = self.allocate_create(kind, &mut object, write.dry_run)?;
            if rules::is_crd(kind) {
                crate::crd::set_initial_status(&mut object);
            }
            let warnings = self.validate(kind, &object)?;
            let name = object::name(&object).to_owned();
            let named = Attributes {
                name: &name,
                name_in_errors: &name,
                ..attributes
            };
            admission::validate(self, &named, Some(&object)).await?;
            match self.insert(target, object, write).await {
                Err(error)
                    if error.code == 409 && generated && attempt < GENERATE_NAME_ATTEMPTS => {}
                Ok(stored) => {
                    write.charges.settle();
                    allocation.commit();
                    return Ok(stored.with_warnings(warnings));
                }
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::internal("no free name was found"))
    }

    async fn insert(
        &self,
        target: &Target,
        mut object: Value,
        write: &Write,
    ) -> ApiResult<Committed> {
        let kind = &target.kind;
        self.to_storage(kind, &mut object).await?;
        let storage = target.storage();
        let name = object::name(&object).to_owned();
        if write.dry_run {
            return match self.store.stored(&storage, &Key::of(&object)) {
                Some(_) => Err(ApiError::already_exists(kind, &name)),
                None => Ok(Committed::unstored(object)),
            };
        }
        if !object::meta(&object, "resourceVersion").is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::without_reason(500, message));
        }
        self.check_size(kind, &object)?;
        let key = Key::of(&object);
        match self.store.put(&storage, Expected::Absent, object) {
            Ok(stored) => Ok(self.after_write(kind, stored).await),
            Err(CommitError::Exists | CommitError::Missing | CommitError::Moved) => {
                let found = self.store.stored(&storage, &key);
                let ending = found.is_some_and(|found| found.is_deleting());
                let error = ApiError::already_exists(kind, &name);
                Err(if ending {
                    error.prefixed("object is being deleted: ")
                } else {
                    error
                })
            }
        }
    }
}

/// Sets the fields of a new object that the server itself sets, and that no field manager owns: the
/// finalizer of a namespace, the condition of a Pod that waits for its scheduling gates, and the
/// condition of an APIService that this server serves itself.
fn set_initial_fields(kind: &Kind, object: &mut Value, now: &str) {
    if rules::is_namespace(kind) {
        // The name may have been generated after the defaults were set.
        let name = json!(object::name(object));
        let label = "kubernetes.io/metadata.name";
        object::set(object, &["metadata", "labels", label], name);
        let path = ["spec", "finalizers"];
        let mut finalizers = object::items(object, &path).to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push(json!("kubernetes"));
            object::set(object, &path, json!(finalizers));
        }
    }
    if pods::is_pod(kind) {
        pods::set_gated(object, now);
        // Admission may have changed the resources.
        let class = json!(qos_class(object));
        object::set(object, &["status", "qosClass"], class);
    }
    if api_services::is_api_service(kind) {
        api_services::set_initial_status(object, now);
    }
    rules::set_initial_fields(kind, object, now);
    zeros::add(kind, object);
}
