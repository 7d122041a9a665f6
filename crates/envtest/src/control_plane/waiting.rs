//! Waiting for what a test expects, and reporting what happened instead.

use std::{future::Future, time::Duration};

use k8s_openapi::api::core::v1::Event;
use opkit_client::{Kind, Object, ObjectKey};
use opkit_operator::Result;
use tokio::time::Instant;

use super::ControlPlane;
use crate::{TestError, report};

impl ControlPlane {
    /// Returns another handle on the same control plane, which waits for this long: in
    /// [`eventually`](ControlPlane::eventually) and everything else that waits. 20 s by default on
    /// the embedded one, 60 s on the others.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # async fn example(plane: ControlPlane) -> opkit_operator::Result {
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
            inner: self.inner.clone(),
            timeout,
        }
    }

    /// Waits until an object is as wanted, and returns it.
    ///
    /// # Errors
    /// If it does not become so, with the object, its events and the last reconciles; or if an
    /// operator ends.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn eventually<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        wanted: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let found = self
            .wait(async || {
                Ok(self
                    .get::<K>(key.clone())
                    .await?
                    .filter(|object| wanted(object)))
            })
            .await?;
        match found {
            Some(object) => Ok(object),
            None => Err(self
                .timed_out(&kind, &key, "does not become as wanted")
                .await
                .into()),
        }
    }

    /// Waits until there is no such object.
    ///
    /// # Errors
    /// If it stays, with the object, its events and the last reconciles; or if an operator ends.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn eventually_gone<K: Object>(&self, key: impl Into<ObjectKey>) -> Result {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let gone = self
            .wait(async || Ok(self.get::<K>(key.clone()).await?.is_none().then_some(())))
            .await?;
        match gone {
            Some(()) => Ok(()),
            None => Err(self.timed_out(&kind, &key, "does not go").await.into()),
        }
    }

    /// Waits until there is an event with this reason about an object of kind `K`, and returns it.
    /// Events are posted in the background, some time after what they report.
    ///
    /// # Errors
    /// If there is none in time, with the object, its events and the last reconciles; or if an
    /// operator ends.
    ///
    /// # Cancel safety
    /// It only reads.
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
                let what = format!("gets no event {reason}");
                Err(self.timed_out(&kind, &key, &what).await.into())
            }
        }
    }

    /// Checks for `time` that an object is as wanted, and returns it as it was last: for what must
    /// not happen. The object is read every 2 ms on the embedded control plane and every 25 ms on
    /// the others, so that a state that lasts shorter may be missed.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # async fn example(plane: ControlPlane) -> opkit_operator::Result {
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
    /// If it is not as wanted, or gone, with the object, its events and the last reconciles; or if
    /// an operator ends.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn stays<K: Object>(
        &self,
        time: Duration,
        key: impl Into<ObjectKey>,
        wanted: impl Fn(&K) -> bool,
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
                Some(object) if wanted(&object) => {
                    if passed >= time {
                        return Ok(object);
                    }
                    tokio::time::sleep(backend.look()).await;
                    continue;
                }
                Some(_) => "is not as wanted",
                None => "is not there",
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

    /// Looks at intervals until `look` finds something; nothing when the timeout is over.
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
            tokio::time::sleep(backend.look()).await;
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
