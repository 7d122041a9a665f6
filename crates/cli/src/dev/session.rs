//! One run of `opkit dev`: from the first build to Ctrl-C, over any number of edits.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use futures::future::{BoxFuture, OptionFuture};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::DynamicClient;
use opkit_dashboard::{Event, Request};
use opkit_debug::{Activity, Reconcile};
use tokio::time::{Instant, MissedTickBehavior};

use super::debugged::Debugged;
use super::install::Installer;
use super::log_tail::LogTail;
use super::operator::{self, OperatorCommand, OperatorProcess};
use super::package::Package;
use super::rows::{self, Row};
use super::sources::Sources;
use super::target::Target;
use super::view::View;
use super::webhooks::DevWebhooks;
use super::{activity, events};
use crate::output;

/// Interval at which the sources are checked.
const TICK: Duration = Duration::from_millis(250);

/// Result of a build: an executable, or the compiler's output.
type Built = Result<Result<PathBuf, String>>;

/// The operator's activity and objects at one time.
struct Look {
    activity: Activity,
    rows: Vec<Row>,
    events: Vec<Event>,
}

/// State of one run of `opkit dev`.
pub(crate) struct Session {
    package: Package,
    arguments: Vec<OsString>,
    target: Target,
    view: View,
    client: DynamicClient,
    installer: Installer,
    /// Address and certificate of the operator's webhooks; `None` if it has none.
    webhooks: Option<DevWebhooks>,
    /// Manifests of the running operator.
    manifests: String,
    /// Installed CRDs of the running operator.
    crds: Arc<Vec<CustomResourceDefinition>>,
    sources: Sources,
    /// Modification time of the running executable.
    built: Option<SystemTime>,
    /// Process of the operator; `None` after it has ended, until the next edit.
    process: Option<OperatorProcess>,
    /// The operator that the user starts, such as in a debugger; `None` if this command starts it.
    debugged: Option<Debugged>,
    /// Time at which the last build after an edit started; `None` once the built operator is
    /// started.
    edited: Option<Instant>,
    /// Time at which the build of the started operator began; `None` once the operator is ready.
    starting: Option<Instant>,
    /// End of the operator's log, for the view.
    log: LogTail,
    /// Warnings that were already shown.
    shown: HashSet<String>,
}

impl Session {
    pub(crate) fn new(
        package: Package,
        arguments: Vec<OsString>,
        target: Target,
        view: View,
    ) -> Self {
        let (kube, discovery) = target.clients();
        Self {
            package,
            arguments,
            target,
            view,
            installer: Installer::new(kube.clone(), discovery),
            client: DynamicClient::new(kube),
            webhooks: None,
            manifests: String::new(),
            crds: Arc::default(),
            sources: Sources::default(),
            built: None,
            process: None,
            debugged: None,
            edited: None,
            starting: None,
            log: LogTail::default(),
            shown: HashSet::new(),
        }
    }

    /// Leaves it to the user to start the operator.
    pub(crate) fn without_run(mut self) -> Self {
        self.view.lines_only();
        self.debugged = Some(Debugged::default());
        self
    }

    /// Runs the operator, and restarts it after each edit, until the future is dropped.
    ///
    /// # Errors
    /// If the first build, installation or start fails. Later errors are shown, and the previous
    /// operator keeps running.
    pub(crate) async fn develop(&mut self) -> Result<()> {
        let build_started = SystemTime::now();
        let executable = self.package.build(&mut self.view).await?;
        self.sources = self.package.sources(&executable);
        self.sources.mark();
        let edited = self.sources.written_since(build_started);
        let manifests = operator::manifests(&executable, &self.arguments).await?;
        self.prepare_webhooks(&manifests)?;
        self.target.check_crds(&manifests).await?;
        let webhooks = self.webhooks.as_ref();
        let crds = self.installer.install_crds(&manifests, webhooks).await?;
        self.crds = Arc::new(crds);
        self.install_permissions(&manifests).await?;
        self.manifests = manifests;
        self.target.announce(&mut self.view, &self.crds)?;
        self.start(&executable)?;
        if let Some(debugged) = &self.debugged {
            debugged.print(&mut self.view);
        }
        if let Some(process) = &mut self.process {
            let controllers = controllers(&process.wait_until_running().await?);
            let line = format!("{} running, {controllers}", self.package.name);
            self.view.state(&line);
            if let Some(log) = process.log() {
                self.view.line("log", &log.display().to_string());
            }
        }
        let number = self.install_admission("").await?;
        if number > 0 {
            let line = format!("{number} called by the API server");
            self.view.line("webhooks", &line);
        }
        if self.debugged.is_none() {
            self.apply_samples().await?;
        }
        self.view.open()?;
        self.follow(edited).await;
        Ok(())
    }

    /// Shows the operator's activity, and rebuilds the operator when its sources change, until the
    /// user quits. `edited` is a file that has changed already.
    ///
    /// A build starts only if no further file has changed since the last check, because editors and
    /// version control write several files.
    async fn follow(&mut self, mut edited: Option<PathBuf>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut building: OptionFuture<BoxFuture<'static, Built>> = None.into();
        let mut is_building = false;
        // Never awaited by itself: a server that does not respond must not stop the keys.
        let mut looking: OptionFuture<BoxFuture<'static, Look>> = Some(self.look()).into();
        let mut looked: Option<Instant> = None;
        loop {
            let ended: OptionFuture<_> = self
                .process
                .as_mut()
                .map(OperatorProcess::wait_until_ended)
                .into();
            tokio::select! {
                Some(error) = ended => {
                    self.process = None;
                    self.starting = None;
                    let line = format!("{error:#}; waiting for an edit");
                    self.view.problem("operator", &output::plain(&line));
                }
                Some(built) = &mut building, if is_building => {
                    is_building = false;
                    building = None.into();
                    self.replace(built).await;
                    // The activity of the previous operator is not that of this one.
                    looking = Some(self.look()).into();
                    looked = None;
                }
                request = self.view.requested() => match request {
                    Request::Quit => return,
                    Request::Build if !is_building => {
                        building = Some(self.rebuild("build requested")).into();
                        is_building = true;
                    }
                    _ => {}
                },
                Some(look) = &mut looking, if looked.is_none() => {
                    looked = Some(Instant::now());
                    looking = None.into();
                    self.show(look).await;
                }
                _ = tick.tick() => {
                    if looked.is_some_and(|at| at.elapsed() >= self.target.refresh()) {
                        looking = Some(self.look()).into();
                        looked = None;
                    }
                    if is_building {
                        continue;
                    }
                    let changed = self.sources.changed();
                    if let Some(file) = &changed {
                        self.sources.mark();
                        edited = Some(file.clone());
                    } else if let Some(file) = edited.take() {
                        let line = format!("{} changed", self.relative(&file));
                        building = Some(self.rebuild(&line)).into();
                        is_building = true;
                    }
                }
            }
        }
    }

    /// Reports why the operator is built, and starts the build.
    fn rebuild(&mut self, reason: &str) -> BoxFuture<'static, Built> {
        self.view.building(reason);
        self.edited = Some(Instant::now());
        Box::pin(self.package.clone().rebuild())
    }

    /// Replaces the running operator with the built one, unless the build or its installation
    /// failed.
    async fn replace(&mut self, built: Built) {
        let name = self.package.name.clone();
        let outcome = match built {
            Ok(Ok(executable)) => self.replace_with(&executable).await,
            Ok(Err(errors)) => {
                self.view.text(&errors);
                Err(anyhow::anyhow!("{name} does not compile"))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            let then = match self.process {
                Some(_) => "the previous operator keeps running",
                None => "waiting for an edit",
            };
            let line = format!("{error:#}; {then}");
            self.view.problem("build", &output::plain(&line));
        }
    }

    async fn replace_with(&mut self, executable: &Path) -> Result<()> {
        let was_built = self.built;
        let mut sources = self.package.sources(executable);
        // Files that were edited during the build are found at the next check: only files that are
        // new in the list count as built.
        sources.keep(&self.sources);
        self.sources = sources;
        if self.process.is_some() && was_built.is_some() && written(executable) == was_built {
            let line = format!("{} did not change", self.package.name);
            self.view.state(&line);
            return Ok(());
        }
        let manifests = operator::manifests(executable, &self.arguments).await?;
        if manifests != self.manifests {
            self.prepare_webhooks(&manifests)?;
            self.target.check_crds(&manifests).await?;
            let webhooks = self.webhooks.as_ref();
            let crds = self.installer.install_crds(&manifests, webhooks).await?;
            let is_known = |crd: &CustomResourceDefinition| {
                let of = |crd: &CustomResourceDefinition| {
                    (crd.metadata.name.clone(), crd.metadata.generation)
                };
                self.crds.iter().any(|known| of(known) == of(crd))
            };
            let changed: Vec<_> = crds.iter().filter(|crd| !is_known(crd)).cloned().collect();
            self.view.crds(&changed);
            self.crds = Arc::new(crds);
            self.install_permissions(&manifests).await?;
            let before = std::mem::replace(&mut self.manifests, manifests);
            self.install_admission(&before).await?;
        }
        if self.debugged.is_some() {
            self.built = written(executable);
            self.edited = None;
            let line = format!("{} built: start it again", self.package.name);
            self.view.state(&line);
            return Ok(());
        }
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
        self.start(executable)
    }

    /// Prepares the webhooks, if the operator has some and they are not prepared yet.
    fn prepare_webhooks(&mut self, manifests: &str) -> Result<()> {
        if self.webhooks.is_none() {
            let (name, arguments) = (&self.package.name, &self.arguments);
            self.webhooks = self.target.prepare_webhooks(name, manifests, arguments)?;
        }
        Ok(())
    }

    /// Installs the webhook configurations and admission policies of the operator. `before` are the
    /// manifests of the operator before the edit.
    async fn install_admission(&self, before: &str) -> Result<usize> {
        if !self.target.is_embedded() {
            return Ok(0);
        }
        let webhooks = self.webhooks.as_ref();
        let installed = self
            .installer
            .install_admission(&self.manifests, before, webhooks);
        installed.await
    }

    /// Applies the samples, unless the operator works on a cluster.
    async fn apply_samples(&mut self) -> Result<()> {
        let samples = self.package.samples()?;
        if !self.target.is_embedded() {
            if !samples.is_empty() {
                let line = "not applied to a cluster: kubectl apply -f config/samples";
                self.view.line("samples", line);
            }
            return Ok(());
        }
        for sample in samples {
            let applied = self.installer.apply_file(&sample).await?;
            let line = format!("applied {}", applied.join(", "));
            self.view.line("samples", &line);
        }
        Ok(())
    }

    async fn install_permissions(&mut self, manifests: &str) -> Result<()> {
        let before = &self.manifests;
        self.target
            .install_permissions(&self.installer, manifests, before)
            .await
    }

    fn start(&mut self, executable: &Path) -> Result<()> {
        self.built = written(executable);
        let webhooks = self.webhooks.as_ref();
        let mut arguments = webhooks.map(|webhooks| webhooks.arguments(&self.arguments));
        let arguments = arguments.get_or_insert_default();
        arguments.extend(self.arguments.iter().cloned());
        let connection = self.target.connection()?;
        let line = OperatorCommand::new(&self.package, executable, arguments, connection);
        if let Some(debugged) = &mut self.debugged {
            debugged.line = Some(line);
            return Ok(());
        }
        self.process = Some(OperatorProcess::start(&self.package, line, &self.view)?);
        self.starting = self.edited.take();
        Ok(())
    }

    /// Collects what is shown. The future does not borrow the session.
    fn look(&self) -> BoxFuture<'static, Look> {
        let debug_address_file = match (&self.process, &self.debugged) {
            (Some(process), _) => Some(process.debug_address_file().to_owned()),
            (None, Some(debugged)) => debugged.debug_address_file().map(Path::to_owned),
            (None, None) => None,
        };
        let (client, crds) = (self.client.clone(), Arc::clone(&self.crds));
        let (is_live, is_embedded) = (self.view.is_open(), self.target.is_embedded());
        Box::pin(async move {
            let activity = match debug_address_file {
                Some(file) => activity::of_file(&file).await,
                None => Activity::default(),
            };
            let rows = rows::collect(&client, &crds, &activity.last_of_each).await;
            let events = match (is_live, is_embedded) {
                (false, _) => Vec::new(),
                (true, true) => events::latest(&client, None).await,
                (true, false) => events::latest(&client, Some(&rows)).await,
            };
            Look {
                activity,
                rows,
                events,
            }
        })
    }

    async fn show(&mut self, look: Look) {
        let Look {
            activity,
            rows,
            events,
        } = look;
        let is_first = self
            .debugged
            .as_mut()
            .is_some_and(|debugged| debugged.has_started(&activity));
        if is_first {
            let controllers = controllers(&activity.controllers);
            let line = format!("{} running, {controllers}", self.package.name);
            self.view.state(&line);
            // Not earlier: the webhooks of the operator may be called for them.
            if let Err(error) = self.apply_samples().await {
                self.view
                    .problem("samples", &output::plain(&format!("{error:#}")));
            }
        }
        if activity.running
            && let Some(started) = self.starting.take()
        {
            let controllers = controllers(&activity.controllers);
            let after = opkit_dashboard::human(started.elapsed());
            let line = format!(
                "{} restarted, {controllers}, {after} after the edit",
                self.package.name
            );
            self.view.state(&line);
        }
        for (what, sentence) in self.target.warnings() {
            if self.shown.insert(sentence.clone()) {
                self.view.line(what, &output::plain(&sentence));
            }
        }
        let Some(snapshot) = self.view.snapshot() else {
            self.view.print(&rows);
            return;
        };
        snapshot.now = Timestamp::now();
        snapshot.objects = rows.iter().map(Row::shown).collect();
        snapshot.reconciles = reconciles(activity.reconciles, activity.last_of_each);
        snapshot.controllers = activity.controllers;
        snapshot.queue = activity.queue;
        snapshot.webhooks = activity.webhooks;
        snapshot.events = events;
        if let Some(log) = self.process.as_ref().and_then(OperatorProcess::log) {
            self.log.read(log);
        }
        snapshot.log = self.log.lines();
        self.view.draw();
    }

    /// Returns `path` relative to the current directory. A path outside of the current directory is
    /// returned unchanged.
    fn relative(&self, path: &Path) -> String {
        let here = std::env::current_dir().unwrap_or_default();
        let path = path.strip_prefix(here).unwrap_or(path);
        output::plain(&path.display().to_string())
    }

    /// Stops the operator, then the control plane.
    pub(crate) async fn stop(mut self) {
        self.view.close();
        if let Some(process) = self.process {
            process.stop().await;
        }
        if let Some(debugged) = self.debugged {
            debugged.remove();
        }
        if let Some(webhooks) = self.webhooks {
            webhooks.remove();
        }
        self.target.stop().await;
    }
}

fn controllers(names: &[String]) -> String {
    match names.len() {
        1 => "1 controller".to_owned(),
        many => format!("{many} controllers"),
    }
}

/// Returns the latest reconciles of all objects and the last one of each object, oldest first.
fn reconciles(mut latest: Vec<Reconcile>, last_of_each: Vec<Reconcile>) -> Vec<Reconcile> {
    let is_known = |last: &Reconcile| {
        latest.iter().any(|it| {
            (&it.controller, &it.namespace, &it.name, it.number)
                == (&last.controller, &last.namespace, &last.name, last.number)
        })
    };
    let others: Vec<_> = last_of_each
        .into_iter()
        .filter(|last| !is_known(last))
        .collect();
    latest.extend(others);
    latest.sort_by_key(|reconcile| reconcile.started);
    latest
}

fn written(executable: &Path) -> Option<SystemTime> {
    fs::metadata(executable).and_then(|it| it.modified()).ok()
}
