//! Reads of a test, and writes that replace a controller which the control plane lacks.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::jiff::Timestamp;
use opkit_client::{Kind, ListOptions, Object, ObjectKey, Patch, ResponseFormat, WriteOptions};
use opkit_controller::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ControlPlane, MANAGER, decode};
use crate::error::refused;

/// Namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

impl ControlPlane {
    /// Returns the objects of a kind in the namespace of the test. For a cluster-scoped kind,
    /// returns all objects.
    ///
    /// # Examples
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// let mut config_map = ConfigMap::default();
    /// config_map.metadata.name = Some("one".into());
    /// plane.apply(config_map).await?;
    /// let maps = plane.list::<ConfigMap>().await?;
    /// assert!(maps.iter().any(|map| map.metadata.name.as_deref() == Some("one")));
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    ///
    /// # Errors
    /// If the server refuses the request, or an object does not fit its Rust type.
    pub async fn list<K: Object>(&self) -> Result<Vec<K>> {
        let kind = Kind::of::<K>();
        let namespace = kind.namespaced.then_some(self.namespace());
        self.list_in(&kind, namespace).await
    }

    async fn list_in<K: Object>(&self, kind: &Kind, namespace: Option<&str>) -> Result<Vec<K>> {
        let mut options = ListOptions::new();
        options.namespace = namespace.map(str::to_owned);
        let format = ResponseFormat::default();
        let list = self.inner.client.list(kind, &options, format).await;
        let list = list.map_err(|cause| refused(format!("list {}", kind.plural), cause))?;
        let mut list: Value = serde_json::from_slice(&list.body)?;
        let items = list.get_mut("items").and_then(Value::as_array_mut);
        let items = items.map(std::mem::take).unwrap_or_default();
        let typed = items.into_iter().map(|mut item| {
            // List items of a built-in kind do not contain their kind.
            if let Some(item) = item.as_object_mut() {
                let api_version = || kind.api_version().into();
                item.entry("apiVersion").or_insert_with(api_version);
                item.entry("kind")
                    .or_insert_with(|| kind.kind.clone().into());
            }
            let name = item.pointer("/metadata/name").and_then(Value::as_str);
            let key = ObjectKey {
                namespace: namespace.map(str::to_owned),
                name: name.unwrap_or_default().to_owned(),
            };
            decode(kind, &key, item.to_string().as_bytes())
        });
        typed.collect()
    }

    /// Returns the Kubernetes Events about an object of kind `K`, oldest first. Operators create
    /// events in the background; use [`eventually_event`](ControlPlane::eventually_event) to wait
    /// for an event.
    ///
    /// # Errors
    /// If the server refuses the request.
    pub async fn events<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Vec<Event>> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let namespace = key.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let events = Kind::of::<Event>();
        let mut found = self.list_in::<Event>(&events, Some(namespace)).await?;
        found.retain(|event| {
            let about = &event.involved_object;
            about.kind.as_deref() == Some(kind.kind.as_str())
                && about.name.as_deref() == Some(key.name.as_str())
        });
        found.sort_by_key(time_of);
        Ok(found)
    }

    /// Writes fields of an object's status, in place of a controller that the control plane lacks.
    /// Fields that `status` does not contain stay as they are. `status` is the status type of the
    /// kind, or JSON.
    ///
    /// # Examples
    /// ```
    /// # use k8s_openapi::api::batch::v1::CronJob;
    /// # use opkit_envtest::ControlPlane;
    /// # use serde_json::json;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// # let container = json!({"name": "main", "image": "backup"});
    /// # let pod = json!({"restartPolicy": "Never", "containers": [container]});
    /// # let spec = json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": pod}}}});
    /// # plane.apply::<CronJob>(serde_json::from_value(json!({"metadata": {"name": "one"}, "spec": spec}))?).await?;
    /// let status = json!({"lastScheduleTime": "2026-01-01T00:00:00Z"});
    /// let job = plane.set_status::<CronJob>("one", status).await?;
    /// assert!(job.status.is_some_and(|status| status.last_schedule_time.is_some()));
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    ///
    /// # Errors
    /// If there is no such object, its kind has no status subresource, or the server refuses the
    /// status.
    pub async fn set_status<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        status: impl Serialize,
    ) -> Result<K> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let patch = json!({"status": serde_json::to_value(status)?});
        let (patch, options) = (Patch::Merge(&patch), WriteOptions::for_manager(MANAGER));
        let patched = self
            .inner
            .client
            .patch(&kind, &key, Some("status"), patch, &options)
            .await;
        let what = || format!("set the status of {} {key}", kind.kind);
        decode(
            &kind,
            &key,
            &patched.map_err(|cause| refused(what(), cause))?,
        )
    }

    /// Waits until a Job of this name exists, completes the Job, and returns it.
    ///
    /// If the control plane has no Job controller, this function writes the Job's status as that
    /// controller does. On real `binaries`, where no container runs, it sets the Job's pods to
    /// succeeded. On a `cluster` the containers run, and this function waits for them. A Job that
    /// is deleted as soon as its pods have succeeded is returned as it was before they ran.
    ///
    /// # Errors
    /// If the Job does not exist in time, or does not complete. The error contains the Job, its
    /// events and the last reconciles.
    pub async fn complete_job(&self, key: impl Into<ObjectKey>) -> Result<Job> {
        let key = self.key::<Job>(key);
        let job = self.eventually(key.clone(), |_: &Job| true).await?;
        if is_complete(&job) {
            return Ok(job);
        }
        if !self.inner.backend.has_job_controller() {
            return self.set_status(key, completed(&job)).await;
        }
        let has_succeeded = AtomicBool::new(false);
        let completed = self
            .wait(async || {
                if self.inner.backend.simulates_kubelet() && self.complete_pods(&key).await? {
                    has_succeeded.store(true, Ordering::Relaxed);
                }
                let found = self.get::<Job>(key.clone()).await?;
                // An operator that waits for the Job may delete it or its owner at once.
                let is_deleted = found.is_none() && has_succeeded.load(Ordering::Relaxed);
                Ok(found
                    .filter(is_complete)
                    .or_else(|| is_deleted.then(|| job.clone())))
            })
            .await?;
        let kind = Kind::of::<Job>();
        match completed {
            Some(job) => Ok(job),
            None => Err(self
                .timed_out(&kind, &key, "does not complete")
                .await
                .into()),
        }
    }

    /// Sets the running pods of a Job to succeeded, and reports whether there was one.
    async fn complete_pods(&self, job: &ObjectKey) -> Result<bool> {
        let mut has_succeeded = false;
        let kind = Kind::of::<Pod>();
        let pods = self.list_in::<Pod>(&kind, job.namespace.as_deref()).await?;
        for pod in pods {
            let owners = pod.metadata.owner_references.iter().flatten();
            let mut owners = owners.filter(|owner| owner.kind == "Job");
            let status = pod.status.unwrap_or_default();
            // A pod that does not run yet is about to: the simulated kubelet would overwrite this
            // status.
            let is_running = status.phase.as_deref() == Some("Running");
            if !is_running || !owners.any(|owner| owner.name == job.name) {
                continue;
            }
            let now = now();
            let containers = status.container_statuses.into_iter().flatten();
            let containers = containers.map(|container| {
                let state = json!({"terminated": {
                    "exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now,
                }});
                json!({
                    "name": container.name, "image": container.image, "imageID": container.image_id,
                    "ready": false, "started": false, "restartCount": 0, "state": state,
                })
            });
            let containers: Vec<_> = containers.collect();
            let status = json!({"phase": "Succeeded", "containerStatuses": containers});
            let name = pod.metadata.name.unwrap_or_default();
            let set = self.set_status::<Pod>(
                ObjectKey {
                    name,
                    ..job.clone()
                },
                status,
            );
            match set.await {
                // Deleted with its Job, or changed by another client meanwhile.
                Err(error) if is_expected_race(&error) => {}
                set => {
                    set?;
                    has_succeeded = true;
                }
            }
        }
        Ok(has_succeeded)
    }
}

fn is_expected_race(error: &Error) -> bool {
    match error.downcast_ref::<crate::TestError>() {
        Some(crate::TestError::Request { cause, .. }) => {
            cause.is_not_found() || cause.is_conflict()
        }
        _ => false,
    }
}

/// Returns the time of an event. The field that contains the time depends on the event API and the
/// client.
fn time_of(event: &Event) -> Option<Timestamp> {
    let created = || Some(event.metadata.creation_timestamp.as_ref()?.0);
    let first = || Some(event.first_timestamp.as_ref()?.0);
    let exact = event.event_time.as_ref().map(|time| time.0);
    exact.or_else(first).or_else(created)
}

fn is_complete(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Complete" && condition.status == "True")
}

/// Returns the status of a completed Job, as the Job controller of Kubernetes 1.36 writes it.
fn completed(job: &Job) -> Value {
    let now = now();
    let spec = job.spec.as_ref();
    let completions = spec.and_then(|spec| spec.completions).unwrap_or(1);
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods",
            "lastProbeTime": now, "lastTransitionTime": now,
        })
    };
    let mut status = json!({
        "startTime": now, "completionTime": now, "succeeded": completions,
        "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    let mode = spec.and_then(|spec| spec.completion_mode.as_deref());
    if let (Some("Indexed"), Some(status)) = (mode, status.as_object_mut()) {
        let indexes = match completions {
            0 => String::new(),
            1 => "0".to_owned(),
            count => format!("0-{}", count - 1),
        };
        status.insert("completedIndexes".to_owned(), indexes.into());
    }
    status
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
