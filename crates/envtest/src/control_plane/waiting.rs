//! Waiting for an expected state, with a report if it does not occur.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use opkit_client::{Kind, Object, ObjectKey};
use opkit_controller::Result;
use tokio::time::Instant;

use super::ControlPlane;
use crate::{TestError, report};

impl ControlPlane {
    /// Returns another handle of the same control plane with this time limit for
    /// [`eventually`](ControlPlane::eventually) and all other waits. The default is 20 s on the
    /// embedded control plane, 60 s on the others.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// let soon = plane.with_timeout(Duration::from_millis(50));
    /// let error = soon.eventually("one", |_: &ConfigMap| true).await.unwrap_err();
    /// assert!(error.to_string().contains("within 50ms"));
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// Waits until an object meets a condition, and returns the object.
    ///
    /// # Errors
    /// If the object does not meet the condition in time, or if an operator stops. The error of a
    /// timeout contains the object, its events and the last reconciles.
    ///
    /// # Cancel safety
    /// Safe to drop: this only reads.
    pub async fn eventually<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let found = self
            .wait(async || {
                Ok(self
                    .get::<K>(key.clone())
                    .await?
                    .filter(|object| condition(object)))
            })
            .await?;
        match found {
            Some(object) => Ok(object),
            None => Err(self
                .timed_out(&kind, &key, "does not meet the condition")
                .await
                .into()),
        }
    }

    /// Waits until an object does not exist.
    ///
    /// # Errors
    /// If the object still exists after the time limit, or if an operator stops. The error of a
    /// timeout contains the object, its events and the last reconciles.
    ///
    /// # Cancel safety
    /// Safe to drop: this only reads.
    pub async fn eventually_gone<K: Object>(&self, key: impl Into<ObjectKey>) -> Result {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let deleted = self
            .wait(async || Ok(self.get::<K>(key.clone()).await?.is_none().then_some(())))
            .await?;
        match deleted {
            Some(()) => Ok(()),
            None => Err(self.timed_out(&kind, &key, "is not deleted").await.into()),
        }
    }

    /// Waits until an event with this reason exists about an object of kind `K`, and returns the
    /// event. Operators create events in the background, some time after the change that they
    /// report.
    ///
    /// # Errors
    /// If no such event is created in time, or if an operator stops. The error of a timeout
    /// contains the object, its events and the last reconciles.
    ///
    /// # Cancel safety
    /// Safe to drop: this only reads.
    pub async fn eventually_event<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        reason: &str,
    ) -> Result<Event> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let found = self
            .wait(async || {
                let mut events = self.events::<K>(key.clone()).await?.into_iter();
                Ok(events.find(|event| event.reason.as_deref() == Some(reason)))
            })
            .await?;
        match found {
            Some(event) => Ok(event),
            None => {
                let what = format!("has no event {reason}");
                Err(self.timed_out(&kind, &key, &what).await.into())
            }
        }
    }

    /// Checks for `time` that an object meets a condition, and returns the last state of the
    /// object. Use this to check that something does not happen. The object is read every 2 ms on
    /// the embedded control plane and every 25 ms on the others, so a state of shorter duration may
    /// be missed.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
    /// let mut config_map = ConfigMap::default();
    /// config_map.metadata.name = Some("one".into());
    /// plane.apply(config_map).await?;
    /// let time = Duration::from_millis(20);
    /// plane.stays(time, "one", |found: &ConfigMap| found.data.is_none()).await?;
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    ///
    /// # Errors
    /// If the object does not meet the condition or does not exist, or if an operator stops. The
    /// error of a failed condition contains the object, its events and the last reconciles.
    ///
    /// # Cancel safety
    /// Safe to drop: this only reads.
    pub async fn stays<K: Object>(
        &self,
        time: Duration,
        key: impl Into<ObjectKey>,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let backend = &self.inner.backend;
        let start = Instant::now();
        loop {
            self.check_operators()?;
            let found = tokio::select! {
                found = self.get::<K>(key.clone()) => found?,
                died = backend.died() => return Err(died.into()),
            };
            let passed = start.elapsed();
            let what = match found {
                Some(object) if condition(&object) => {
                    if passed >= time {
                        return Ok(object);
                    }
                    tokio::time::sleep(backend.poll_interval()).await;
                    continue;
                }
                Some(_) => "does not meet the condition",
                None => "does not exist",
            };
            return Err(TestError::DoesNotStay {
                what: format!("{} {key} {what}", kind.kind),
                passed,
                time,
                report: self.report(&kind, &key).await,
            }
            .into());
        }
    }

    /// Calls `look` at intervals until it returns a value; returns `None` after the time limit.
    pub(super) async fn wait<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        look: impl Fn() -> F,
    ) -> Result<Option<T>> {
        let backend = &self.inner.backend;
        let deadline = Instant::now() + self.timeout;
        loop {
            self.check_operators()?;
            let found = tokio::select! {
                found = look() => found?,
                died = backend.died() => return Err(died.into()),
            };
            if found.is_some() {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(backend.poll_interval()).await;
        }
    }

    pub(super) async fn timed_out(&self, kind: &Kind, key: &ObjectKey, what: &str) -> TestError {
        TestError::Timeout {
            what: format!("{} {key} {what}", kind.kind),
            timeout: self.timeout,
            report: self.report(kind, key).await,
        }
    }

    async fn report(&self, kind: &Kind, key: &ObjectKey) -> String {
        let mut report = report::about(&self.inner.client, &self.inner.log, kind, key).await;
        let denied = self.inner.denials.report();
        if !denied.is_empty() {
            report.push_str(&format!("--- denied requests\n{denied}"));
        }
        let missing = self.inner.backend.unmodelled();
        if !missing.is_empty() {
            report.push_str("--- the control plane lacks\n");
        }
        for line in missing {
            report.push_str(&format!("{line}\n"));
        }
        report
    }
}
