//! Options of a leader election.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use opkit_apimachinery::names::{check_dns_label, check_dns_subdomain};
use opkit_apimachinery::selector::{label_key_errors, label_value_errors};
use opkit_client::{Fence, hostname};
use opkit_random::uuid;

use crate::engine::{JITTER_TENTHS, Timing};
use crate::{LeaderElectionError, LeaderElectionMetrics};

/// File with the namespace of the pod, from its service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Options of a [`LeaderElector`](crate::LeaderElector). The default durations are
/// controller-runtime's.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_leaderelection as leaderelection; }
/// use std::time::Duration;
/// use opkit::leaderelection::LeaderElectionOptions;
///
/// let options = LeaderElectionOptions::new("shop-operator.opkit.dev");
/// assert_eq!(options.lease_duration, Duration::from_secs(15));
/// assert_eq!(options.renew_deadline, Duration::from_secs(10));
/// assert_eq!(options.retry_period, Duration::from_secs(2));
/// assert!(options.release_on_cancel);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeaderElectionOptions {
    /// Name of the Lease; the same for all candidates.
    pub lease_name: String,
    /// Namespace of the Lease; the namespace of the pod by default.
    pub namespace: Option<String>,
    /// Identity of this candidate; `hostname_uuid` by default. No two running processes may have
    /// the same identity, because a candidate treats a Lease with its identity as its own.
    pub identity: Option<String>,
    /// Time without a renewal after which another candidate may acquire the Lease. The time is
    /// rounded up to whole seconds, because a Lease stores whole seconds.
    pub lease_duration: Duration,
    /// Time without a renewal after which the leader gives up leadership. At most 9/11 of the
    /// Lease's duration is used, so that two terms do not overlap if one clock is 10 % too fast and
    /// another clock 10 % too slow.
    pub renew_deadline: Duration,
    /// Time between two renewals, and minimum time between two attempts to acquire the Lease.
    pub retry_period: Duration,
    /// Whether the Lease is released when the process stops, so that the next leader need not wait
    /// until the Lease expires. The default is `true`, because the Lease is released only after the
    /// work has ended and the fence is closed. In controller-runtime the default is `false`,
    /// because a release there is safe only if the process exits immediately.
    pub release_on_cancel: bool,
    /// Labels to set on the Lease. Existing labels of the Lease are kept.
    pub labels: BTreeMap<String, String>,
    /// Metrics of the election.
    pub metrics: LeaderElectionMetrics,
    /// Fence that the election opens and closes. The default is a new fence, which is closed.
    pub fence: Fence,
}

impl From<&str> for LeaderElectionOptions {
    fn from(lease_name: &str) -> Self {
        Self::new(lease_name)
    }
}

impl From<String> for LeaderElectionOptions {
    fn from(lease_name: String) -> Self {
        Self::new(lease_name)
    }
}

impl LeaderElectionOptions {
    /// Creates the default options for the Lease `lease_name`.
    pub fn new(lease_name: impl Into<String>) -> Self {
        Self {
            lease_name: lease_name.into(),
            namespace: None,
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_cancel: true,
            labels: BTreeMap::new(),
            metrics: LeaderElectionMetrics::default(),
            fence: Fence::new(),
        }
    }

    /// Sets [`lease_duration`](Self::lease_duration), [`renew_deadline`](Self::renew_deadline) and
    /// [`retry_period`](Self::retry_period); 15 s, 10 s and 2 s by default, as in
    /// controller-runtime.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_leaderelection as leaderelection; }
    /// use std::time::Duration;
    /// use opkit::leaderelection::LeaderElectionOptions;
    ///
    /// let seconds = Duration::from_secs;
    /// let options = LeaderElectionOptions::new("shop").timings(seconds(60), seconds(40), seconds(5));
    /// assert_eq!(options.lease_duration, seconds(60));
    /// ```
    pub fn timings(
        mut self,
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Self {
        self.lease_duration = lease_duration;
        self.renew_deadline = renew_deadline;
        self.retry_period = retry_period;
        self
    }

    /// Checks and returns the durations of the election.
    ///
    /// # Errors
    /// Returns an error unless the Lease's duration is greater than the renew deadline, and the
    /// renew deadline is greater than 1.2 retry periods, as in client-go. 9/11 of the Lease's
    /// duration must also be greater than 1.2 retry periods.
    pub(crate) fn timing(&self) -> Result<Timing, LeaderElectionError> {
        let durations = [
            ("lease_duration", self.lease_duration),
            ("renew_deadline", self.renew_deadline),
            ("retry_period", self.retry_period),
        ];
        if let Some((field, _)) = durations.iter().find(|(_, value)| value.is_zero()) {
            return Err(invalid(field, "must be greater than zero"));
        }
        if self.lease_duration <= self.renew_deadline {
            let problem = format!(
                "must be greater than renew_deadline ({:?} <= {:?})",
                self.lease_duration, self.renew_deadline
            );
            return Err(invalid("lease_duration", problem));
        }
        let jittered = self.retry_period.saturating_mul(JITTER_TENTHS) / 10;
        if self.renew_deadline <= jittered {
            let problem = format!(
                "must be greater than 1.2 times retry_period ({:?} <= {jittered:?})",
                self.renew_deadline
            );
            return Err(invalid("renew_deadline", problem));
        }
        let whole = self.lease_duration.as_secs();
        let part = u64::from(self.lease_duration.subsec_nanos() > 0);
        let seconds = i32::try_from(whole.saturating_add(part)).ok();
        let Some(lease_seconds) = seconds.and_then(|seconds| u32::try_from(seconds).ok()) else {
            return Err(invalid("lease_duration", "must be at most 2147483647 s"));
        };
        let timing = Timing {
            lease_seconds,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        };
        if timing.term() <= jittered {
            let problem = format!(
                "leaves no time to renew the lease: 9/11 of it must be greater than 1.2 times retry_period ({:?} <= {jittered:?})",
                timing.term()
            );
            return Err(invalid("lease_duration", problem));
        }
        Ok(timing)
    }

    /// Checks all options, without a request.
    ///
    /// # Errors
    /// Returns an error for the first option that is not valid, or if the namespace is not known.
    pub fn check(&self) -> Result<(), LeaderElectionError> {
        check_dns_subdomain(&self.lease_name).map_err(|problem| {
            invalid("lease_name", format!("{:?}: {problem}", self.lease_name))
        })?;
        for (key, value) in &self.labels {
            let problems = [label_key_errors(key), label_value_errors(value)].concat();
            if !problems.is_empty() {
                let problem = format!("\"{key}={value}\": {}", problems.join("; "));
                return Err(invalid("labels", problem));
            }
        }
        self.timing()?;
        self.identity()?;
        self.namespace().map(drop)
    }

    /// Returns the namespace of the Lease: the option, or the namespace of the pod.
    pub(crate) fn namespace(&self) -> Result<String, LeaderElectionError> {
        let namespace = self.namespace_or(Path::new(NAMESPACE_FILE))?;
        check_dns_label(&namespace)
            .map_err(|problem| invalid("namespace", format!("{namespace:?}: {problem}")))?;
        Ok(namespace)
    }

    /// Returns the option `namespace`, or the content of `file` if the option is not set.
    pub(crate) fn namespace_or(&self, file: &Path) -> Result<String, LeaderElectionError> {
        if let Some(namespace) = self.namespace.as_ref().filter(|it| !it.is_empty()) {
            return Ok(namespace.clone());
        }
        let read = std::fs::read_to_string(file);
        let read = read.map_err(LeaderElectionError::NoNamespace)?;
        match read.trim() {
            "" => Err(LeaderElectionError::NoNamespace(
                std::io::ErrorKind::InvalidData.into(),
            )),
            namespace => Ok(namespace.to_owned()),
        }
    }

    /// Returns the option `identity`, or a new identity.
    pub(crate) fn identity(&self) -> Result<String, LeaderElectionError> {
        match &self.identity {
            Some(identity) if identity.is_empty() => Err(invalid("identity", "is empty")),
            Some(identity) => Ok(identity.clone()),
            None => {
                let host = hostname().unwrap_or_else(|| "unknown".to_owned());
                Ok(format!("{host}_{}", uuid()))
            }
        }
    }
}

fn invalid(field: &'static str, problem: impl Into<String>) -> LeaderElectionError {
    LeaderElectionError::Invalid {
        field,
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests;
