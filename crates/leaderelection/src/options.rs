//! What a leader election needs to know.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use opkit_apimachinery::names::{check_dns_label, check_dns_subdomain};
use opkit_apimachinery::selector::{label_key_errors, label_value_errors};
use opkit_client::{Fence, hostname};
use opkit_random::uuid;

use crate::engine::{JITTER_TENTHS, Timing};
use crate::{LeaderElectionError, LeaderElectionMetrics};

/// Where a pod finds its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How a [`LeaderElector`](crate::LeaderElector) stands. The durations are controller-runtime's.
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
    /// The name of the Lease, the same for all candidates.
    pub lease_name: String,
    /// Its namespace; that of the pod by default.
    pub namespace: Option<String>,
    /// Who this candidate is; `hostname_uuid` by default. No two living processes may share one: a
    /// lease that names it is taken for this candidate's own.
    pub identity: Option<String>,
    /// How long candidates wait after they last saw the lease change before they take it; rounded
    /// up to whole seconds, because the lease holds no others.
    pub lease_duration: Duration,
    /// How long a leader stays one without renewing the lease. Where that is so close to the
    /// lease's duration that two clocks, one 10 % too fast and one 10 % too slow, could not tell
    /// them apart, it is cut to 9/11 of the lease's duration.
    pub renew_deadline: Duration,
    /// How often the lease is renewed, and at least how long candidates wait between two tries.
    pub retry_period: Duration,
    /// Whether the lease is released on a stop. On by default, other than in controller-runtime,
    /// where it is safe only if the process ends at once: here the lease is released after the work
    /// has ended, behind a closed fence, and the next leader need not wait for it to run out.
    pub release_on_cancel: bool,
    /// Labels that the lease shall have, beside any others.
    pub labels: BTreeMap<String, String>,
    /// What is counted, and where.
    pub metrics: LeaderElectionMetrics,
    /// What the election opens and closes; a closed one of its own by default.
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
    /// The defaults for the lease of this name.
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

    /// Sets how long a leader may be silent before others take the lease, how long it stays one
    /// without renewing, and how often it renews; 15 s, 10 s and 2 s by default, as in
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

    /// The durations, if they can be: lease > renew > 1.2 x retry > 0, client-go's rule.
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
            return Err(invalid("lease_duration", "is longer than a lease can be"));
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

    /// Checks everything that can be checked without a request.
    ///
    /// # Errors
    /// The first option that is not valid, or a missing namespace.
    pub fn check(&self) -> Result<(), LeaderElectionError> {
        check_dns_subdomain(&self.lease_name)
            .map_err(|why| invalid("lease_name", format!("{:?}: {why}", self.lease_name)))?;
        for (key, value) in &self.labels {
            let wrong = [label_key_errors(key), label_value_errors(value)].concat();
            if !wrong.is_empty() {
                let problem = format!("\"{key}={value}\": {}", wrong.join("; "));
                return Err(invalid("labels", problem));
            }
        }
        self.timing()?;
        self.identity()?;
        self.namespace().map(drop)
    }

    pub(crate) fn namespace(&self) -> Result<String, LeaderElectionError> {
        let namespace = self.namespace_or(Path::new(NAMESPACE_FILE))?;
        check_dns_label(&namespace)
            .map_err(|why| invalid("namespace", format!("{namespace:?}: {why}")))?;
        Ok(namespace)
    }

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
