//! The operator that a command is about: its package, its binary, and the model that the binary
//! prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use opkit_crds::cut_descriptions;
use opkit_manifests::{Model, Part, Settings};
use tokio::process::Command;
use tokio::time::Instant;

use super::progress::Printer;
use super::{OutputFormat, image};
use crate::dev::package::Package;

/// Flags that select the operator.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OperatorArgs {
    /// Package of the operator [default: the package of the current directory, or the only operator
    /// of the workspace]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Path of the built operator, which is used as it is
    #[arg(long, value_name = "PATH", conflicts_with = "package")]
    pub(crate) binary: Option<PathBuf>,
}

/// Settings of the manifests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RenderArgs {
    /// Image of the operator [default: `image` of [package.metadata.opkit] with the package's
    /// version]
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<String>,
    /// Namespace of the operator [default: `namespace` of [package.metadata.opkit], or
    /// NAME-system]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Number of replicas; from two on, a PodDisruptionBudget keeps all but one running
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) replicas: Option<u32>,
    /// Name of the role with the operator's permissions [default: NAME-manager-role]
    #[arg(long, value_name = "NAME")]
    pub(crate) role_name: Option<String>,
    /// Objects that not every cluster can use, separated by commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) with: Vec<Extra>,
    #[command(flatten)]
    pub(crate) descriptions: DescriptionArgs,
    /// Flags of the operator in the cluster, such as --log-level=debug
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

/// Length of the descriptions in CRDs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DescriptionArgs {
    /// Cut each description in the CRDs after the last sentence that fits into N characters; 0
    /// leaves out the descriptions
    #[arg(long, value_name = "N")]
    max_description: Option<usize>,
}

impl DescriptionArgs {
    /// Cuts the descriptions in the CRDs of an operator.
    pub(crate) fn apply(&self, model: &mut Model) {
        let Some(max) = self.max_description else {
            return;
        };
        let objects = model.objects.iter_mut();
        for crd in objects.filter(|it| it.part == Part::Crd) {
            cut_descriptions(&mut crd.object, max);
        }
    }
}

/// Objects that are printed on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Extra {
    /// A ServiceMonitor; needs the Prometheus operator
    Prometheus,
    /// NetworkPolicies for the metrics and the webhooks
    NetworkPolicy,
    /// A ConfigMap with a dashboard for Grafana
    Grafana,
}

/// A built operator.
pub(crate) struct BuiltOperator {
    /// Package of the operator; `None` for a prebuilt binary.
    pub(crate) package: Option<Package>,
    pub(crate) executable: PathBuf,
    pub(crate) model: Model,
}

impl OperatorArgs {
    /// Selects the operator of the current directory.
    pub(crate) fn of_current_directory() -> Self {
        Self {
            package: None,
            binary: None,
        }
    }

    /// Builds the operator, and reads its model. `arguments` are the operator's flags in a cluster.
    pub(crate) async fn build(
        &self,
        arguments: &[OsString],
        printer: &Printer,
    ) -> Result<BuiltOperator> {
        let start = Instant::now();
        let (package, executable) = match &self.binary {
            Some(binary) => (None, absolute(binary)?),
            None => {
                let package = Package::find(self.package.as_deref())?;
                let executable = package.executable().await?;
                (Some(package), executable)
            }
        };
        let model = model(&executable, arguments).await?;
        if self.binary.is_none() {
            let what = format!("{} {}", model.operator, model.version);
            let seconds = start.elapsed().as_secs_f64();
            printer.line("build", &format!("{what:<40} {seconds:.1} s"));
        }
        Ok(BuiltOperator {
            package,
            executable,
            model,
        })
    }

    /// Builds the operator for the settings of its manifests, and reads its model.
    pub(crate) async fn build_for(
        &self,
        render: &RenderArgs,
        printer: &Printer,
    ) -> Result<BuiltOperator> {
        let mut built = self.build(&render.arguments, printer).await?;
        render.descriptions.apply(&mut built.model);
        Ok(built)
    }

    /// Returns the name and the namespace of the operator without building it: those of its
    /// package.
    pub(crate) async fn identity(
        &self,
        name: Option<&str>,
        namespace: Option<&str>,
        printer: &Printer,
    ) -> Result<(String, String)> {
        let (name, declared) = match (name, &self.binary) {
            (Some(name), _) => (name.to_owned(), None),
            (None, Some(_)) => {
                let built = self.build(&[], printer).await?;
                (built.model.operator.clone(), Some(built.model.namespace))
            }
            (None, None) => {
                let package = Package::find(self.package.as_deref())?;
                (package.name.clone(), package.settings.namespace)
            }
        };
        let namespace = namespace.map(str::to_owned).or(declared);
        let namespace = namespace.unwrap_or_else(|| format!("{name}-system"));
        Ok((name, namespace))
    }
}

impl BuiltOperator {
    /// Returns the settings of the manifests, and checks the objects as an API server does.
    pub(crate) fn settings(&self, args: &RenderArgs) -> Result<Settings> {
        self.check()?;
        let package = self.package.as_ref().map(|package| &package.settings);
        let metadata = package.and_then(|it| it.image.as_deref());
        let version = &self.model.version;
        let image = image::choose(args.image.as_deref(), metadata, version, self.model.image());
        let declared = package.and_then(|it| it.namespace.clone());
        let mut settings = Settings::default();
        settings.image = Some(image);
        settings.namespace = args.namespace.clone().or(declared);
        settings.replicas = args.replicas;
        settings.role_name.clone_from(&args.role_name);
        settings.prometheus = args.with.contains(&Extra::Prometheus);
        settings.network_policy = args.with.contains(&Extra::NetworkPolicy);
        settings.grafana = args.with.contains(&Extra::Grafana);
        self.check_objects(&settings)?;
        Ok(settings)
    }

    /// Checks the CRDs with the checks of an API server.
    pub(crate) fn check(&self) -> Result<()> {
        let crds: Vec<_> = self.model.crds().into_iter().cloned().collect();
        let problems = opkit_apiserver::crd_problems(&crds);
        match problems.as_slice() {
            [] => Ok(()),
            problems => bail!("an API server refuses these CRDs: {}", problems.join("; ")),
        }
    }

    /// Checks the other manifests with the checks of an API server.
    fn check_objects(&self, settings: &Settings) -> Result<()> {
        let objects = self.model.objects(settings).into_iter();
        let objects: Vec<_> = objects.map(|it| it.object).collect();
        let problems = opkit_apiserver::object_problems(&objects);
        match problems.as_slice() {
            [] => Ok(()),
            problems => bail!(
                "an API server refuses these objects: {}",
                problems.join("; ")
            ),
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| format!("there is no binary {}", path.display()))
}

/// Returns the model that an operator prints.
async fn model(executable: &Path, arguments: &[OsString]) -> Result<Model> {
    let output = Command::new(executable)
        .args(["manifests", "--opkit-output", "json"])
        .args(arguments)
        // These are about processes on this machine, not about the Deployment.
        .env_remove("WATCH_NAMESPACE")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {} manifests", executable.display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or("it prints no error").trim();
        bail!("the operator's command `manifests` failed: {first}");
    }
    let text = String::from_utf8(output.stdout).context("the operator's model is not text")?;
    Model::parse(&text).with_context(|| format!("cannot use {}", executable.display()))
}

/// Returns whether progress must not go to standard output.
pub(crate) fn is_for_script(output: Option<OutputFormat>) -> bool {
    output.is_some()
}
