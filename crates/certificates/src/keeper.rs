//! Keeps the certificates in the Secret, in the TLS server and in the webhook configurations.

mod api;
#[cfg(test)]
mod tests;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use futures::future;
use jiff::Timestamp;
use opkit_client::{ObjectKey, RequestError, RestClient, one_line};
use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::api::{Api, ClockRead};
use crate::bundle::{Bundle, BundleTarget};
use crate::content::certified_key;
use crate::machine::{Machine, Step, Targets};
use crate::rotation::Purpose;
use crate::server_time::{TOLERANCE, of_last_write};
use crate::{CertificateError, Periods};

/// Attempts to write the Secret before the keeper waits: each conflict is the write of another
/// replica.
const ATTEMPTS: usize = 10;
/// Time after which the clock of the API server is read again.
const CLOCK_READ: Duration = Duration::from_secs(60 * 60);

/// Options of a [`CertificateKeeper`].
#[derive(Clone, Debug)]
pub struct KeeperOptions {
    /// Name of the operator. The Secret belongs to it.
    pub operator: String,
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Name of this replica, such as the name of its pod. It must be different for each replica.
    pub replica: String,
    /// DNS names and IP addresses of the webhook server, such as `shop-webhook.shops.svc`.
    pub names: Vec<String>,
    /// Objects whose `caBundle` is kept up to date.
    pub targets: Vec<BundleTarget>,
    /// Lifetimes and delays.
    pub periods: Periods,
}

/// State of the certificates of this replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateState {
    /// Whether a certificate is served.
    pub is_serving: bool,
    /// Time when the newest authority expires.
    pub authority_expires: Option<Timestamp>,
    /// Why the certificates could not be read or written at the last attempt.
    pub problem: Option<String>,
}

/// Keeps the certificates of a webhook server; see the [crate's documentation](crate).
///
/// # Examples
/// ```
/// use opkit_certificates::{CertificateKeeper, KeeperOptions, Periods};
/// use opkit_client::RestClient;
/// use tokio::sync::watch;
/// use tokio_util::sync::CancellationToken;
///
/// async fn keep(client: RestClient, stop: CancellationToken) {
///     let options = KeeperOptions {
///         operator: "shop-operator".to_owned(),
///         namespace: "shops".to_owned(),
///         secret: "shop-operator-webhook-certificates".to_owned(),
///         replica: "shop-operator-7d4b9".to_owned(),
///         names: vec!["shop-operator-webhook.shops.svc".to_owned()],
///         targets: Vec::new(),
///         periods: Periods::default(),
///     };
///     // The TLS server uses the certificate in `current` for each new connection.
///     let (certificates, current) = watch::channel(None);
///     CertificateKeeper::new(client, options, certificates).run(stop).await;
///     # drop(current);
/// }
/// ```
#[derive(Debug)]
pub struct CertificateKeeper {
    api: Api,
    options: KeeperOptions,
    certificates: watch::Sender<Option<Arc<CertifiedKey>>>,
    shared: Arc<Mutex<Shared>>,
    /// Time of this machine when the keeper was created.
    started: (Timestamp, Instant),
}

/// What other tasks see of a keeper.
#[derive(Debug)]
struct Shared {
    state: CertificateState,
    /// Time of the last successful pass.
    contact: Instant,
}

/// State of the loop.
#[derive(Debug)]
struct Pass {
    machine: Machine,
    /// Difference between the API server's clock and this machine's in seconds, and when it was
    /// read.
    offset: Option<(i64, Instant)>,
    /// Bundle that all targets have, and the time since which they have it.
    confirmed: Option<(String, i64)>,
}

impl CertificateKeeper {
    /// Creates a keeper, which sends each new certificate to `certificates`. Nothing happens before
    /// [`run`](CertificateKeeper::run).
    pub fn new(
        client: RestClient,
        options: KeeperOptions,
        certificates: watch::Sender<Option<Arc<CertifiedKey>>>,
    ) -> Self {
        let key = ObjectKey::from((options.namespace.as_str(), options.secret.as_str()));
        Self {
            api: Api::new(client, key, format!("{}-webhook-ca", options.operator)),
            options,
            certificates,
            shared: Arc::new(Mutex::new(Shared {
                state: CertificateState::default(),
                contact: Instant::now(),
            })),
            started: (Timestamp::now(), Instant::now()),
        }
    }

    /// Returns a function that returns the state.
    pub fn state(&self) -> impl Fn() -> CertificateState + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.lock().state.clone()
    }

    /// Returns a health check. It fails while no certificate is served, and when the API server was
    /// not reachable for so long that the other replicas may remove the authority that this replica
    /// relies on.
    pub fn health(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let shared = self.shared.clone();
        let limit = self.options.periods.replica_timeout / 3 * 2;
        move || {
            let shared = shared.lock();
            let problem = || {
                let problem = shared.state.problem.clone();
                problem.unwrap_or_else(|| "the API server has not responded yet".to_owned())
            };
            if !shared.state.is_serving {
                return Err(format!("no webhook certificate: {}", problem()));
            }
            let silence = shared.contact.elapsed();
            if silence > limit {
                let seconds = silence.as_secs();
                return Err(format!(
                    "the webhook certificates were not checked for {seconds} s: {}",
                    problem()
                ));
            }
            Ok(())
        }
    }

    /// Keeps the certificates until `stop` is cancelled. A failed request is repeated; its error is
    /// logged and part of the [health check](CertificateKeeper::health).
    pub async fn run(self, stop: CancellationToken) {
        let changed = Arc::new(Notify::new());
        let targets = self.options.targets.iter();
        let watches = targets
            .map(|target| (target.kind(), target.key()))
            .chain([(api::secret_kind(), self.api.secret().clone())])
            .map(|(kind, key)| wake::on_change(self.api.client(), kind, key, &changed));
        let purpose = Purpose {
            operator: self.options.operator.clone(),
            names: self.options.names.clone(),
            periods: self.options.periods.clone(),
        };
        let replica = self.options.replica.clone();
        let mut pass = Pass {
            machine: Machine::new(purpose, self.api.secret().clone(), replica),
            offset: None,
            confirmed: None,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = future::join_all(watches) => {}
            () = self.repeat(&mut pass, &changed) => {}
        }
        if let Ok(Some(secret)) = self.api.read_secret().await
            && let Some(secret) = pass.machine.without_report(&secret)
        {
            // Without this write, the next rotation waits until the report is too old.
            let _ = self.api.write_secret(&secret).await;
        }
    }

    /// Checks the certificates at each change and at regular intervals.
    async fn repeat(&self, pass: &mut Pass, changed: &Notify) {
        let periods = &self.options.periods;
        let interval = periods.heartbeat.min(periods.propagation) / 5;
        loop {
            let result = self.check(pass).await;
            let is_ok = result.is_ok();
            self.record(result);
            let is_serving = self.shared.lock().state.is_serving;
            let pause = match is_ok && is_serving {
                true => interval,
                false => interval.min(Duration::from_secs(5)),
            };
            tokio::select! {
                () = changed.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Publishes and logs the outcome of a check.
    fn record(&self, result: Result<(), CertificateError>) {
        let mut shared = self.shared.lock();
        match result {
            Ok(()) => {
                shared.contact = Instant::now();
                if shared.state.problem.take().is_some() {
                    info!("the webhook certificates are up to date again");
                }
            }
            Err(cause) => {
                let problem = one_line(&cause);
                if shared.state.problem.as_ref() != Some(&problem) {
                    error!(error = problem, "cannot keep the webhook certificates");
                }
                shared.state.problem = Some(problem);
            }
        }
    }

    /// Reads the Secret, makes the changes that are due, serves the certificate and updates the
    /// bundles.
    async fn check(&self, pass: &mut Pass) -> Result<(), CertificateError> {
        for _ in 0..ATTEMPTS {
            // The Secret is read after the targets, and targets are written only if they did not
            // change since: a bundle that is older than the target's is never written.
            let targets = self.read_targets().await?;
            let secret = self.api.read_secret().await?;
            if pass
                .offset
                .is_none_or(|(_, read)| read.elapsed() > CLOCK_READ)
            {
                match self.api.read_clock(secret.as_ref()).await? {
                    ClockRead::Time(time) => self.set_offset(pass, Some(time)),
                    // The clock of this machine may be wrong, so nothing is decided by it.
                    ClockRead::Conflict if pass.offset.is_none() => continue,
                    ClockRead::Conflict | ClockRead::Unsupported => {}
                }
            }
            let now = self.local_time() + pass.offset.map_or(0, |(offset, _)| offset);
            if let Some((_, since)) = &mut pass.confirmed {
                // The clock of the API server was set back.
                *since = now.min(*since);
            }
            let known = Targets {
                have_bundle: targets
                    .iter()
                    .any(|(target, object)| target.has_bundle(object)),
                confirmed: pass.confirmed.as_ref(),
            };
            let step = pass.machine.step(secret.as_ref(), known, now)?;
            self.serve(&step)?;
            if let Some(bundle) = &step.bundle {
                match self.update_bundles(pass, &targets, bundle, now).await {
                    Err(error) if error.is_conflict() || error.is_not_found() => continue,
                    result => result?,
                }
            }
            let Some(write) = step.write else {
                return Ok(());
            };
            match self.api.write_secret(&write).await {
                Ok(written) => self.set_offset(pass, of_last_write(&written, self.api.manager())),
                // Another replica was faster.
                Err(error)
                    if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {
                }
                Err(error) => return Err(error.into()),
            }
        }
        match pass.offset {
            Some(_) => Ok(()),
            None => Err(CertificateError::ClockUnknown {
                secret: self.api.secret().to_string(),
            }),
        }
    }

    /// Reads the targets that exist.
    async fn read_targets(&self) -> Result<Vec<(&BundleTarget, Value)>, CertificateError> {
        let mut targets = Vec::new();
        for target in &self.options.targets {
            let object = self.api.read(&target.kind(), &target.key()).await?;
            targets.extend(object.map(|object| (target, object)));
        }
        Ok(targets)
    }

    /// Serves the certificate of a step.
    fn serve(&self, step: &Step) -> Result<(), CertificateError> {
        if let Some(serving) = &step.serve {
            let certified =
                certified_key(&serving.pair).map_err(|cause| CertificateError::Tls {
                    secret: self.api.secret().to_string(),
                    cause,
                })?;
            self.certificates.send_replace(Some(Arc::new(certified)));
            info!(
                expires = timestamp(serving.dates.expires).map(tracing::field::display),
                "serving a new webhook certificate"
            );
            self.shared.lock().state.is_serving = true;
        }
        if let Some(expires) = step.authority_expires {
            self.shared.lock().state.authority_expires = timestamp(expires);
        }
        Ok(())
    }

    /// Writes the bundle to all targets that do not have it.
    async fn update_bundles(
        &self,
        pass: &mut Pass,
        targets: &[(&BundleTarget, Value)],
        bundle: &Bundle,
        now: i64,
    ) -> Result<(), RequestError> {
        let is_new = !matches!(&pass.confirmed, Some((known, _)) if *known == bundle.certificates);
        let mut is_written = false;
        for (target, object) in targets {
            if let Some(patch) = target.patch(object, bundle) {
                self.api.apply(target, &patch).await?;
                is_written = true;
                info!(
                    kind = target.kind().kind,
                    name = target.name,
                    "wrote the caBundle"
                );
            }
        }
        if is_new || is_written {
            pass.confirmed = Some((bundle.certificates.clone(), now));
        }
        Ok(())
    }

    /// Returns the time of this machine in seconds since 1970. It never jumps.
    fn local_time(&self) -> i64 {
        let (wall, started) = self.started;
        let elapsed = i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX / 4);
        wall.as_second().saturating_add(elapsed)
    }

    fn set_offset(&self, pass: &mut Pass, server: Option<i64>) {
        let Some(server) = server else { return };
        let offset = server - self.local_time();
        let before = pass.offset.map_or(0, |(offset, _)| offset);
        if offset.abs() > TOLERANCE && (offset - before).abs() > TOLERANCE {
            warn!(
                seconds = offset,
                "the clock of the API server differs from this machine's: \
                 certificates follow the API server's clock"
            );
        }
        pass.offset = Some((offset, Instant::now()));
    }
}

fn timestamp(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok()
}
