//! A memcached operator with two versions and webhooks, scaffolded with kubebuilder's commands and
//! then changed as a user changes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::output;

/// Commands of kubebuilder, in order.
const COMMANDS: [&str; 4] = [
    "init --domain example.com --repo example.com/memcached-operator --project-name memcached-operator --license none",
    "create api --group cache --version v1alpha1 --kind Memcached --resource --controller --make=false",
    "create api --group cache --version v1 --kind Memcached --resource --controller=false --make=false",
    "create webhook --group cache --version v1 --kind Memcached --conversion --spoke v1alpha1 --defaulting --programmatic-validation --make=false",
];

/// Field that kubebuilder writes.
const FIELD: &str = "\tFoo *string `json:\"foo,omitempty\"`\n";

/// Files, texts in them, and what replaces these.
const CHANGES: [(&str, &str, &str); 9] = [
    ("api/v1alpha1/memcached_types.go", FIELD, OLD),
    (
        "api/v1alpha1/memcached_types.go",
        "// MemcachedStatus defines",
        TYPES,
    ),
    ("api/v1/memcached_types.go", FIELD, NEW),
    (
        "api/v1/memcached_types.go",
        "// MemcachedStatus defines",
        NEW_TYPES,
    ),
    (
        "config/samples/cache_v1alpha1_memcached.yaml",
        "spec:\n",
        "spec:\n  size: 3\n",
    ),
    (
        "config/samples/cache_v1_memcached.yaml",
        "spec:\n",
        "spec:\n  replicas: 3\n  memoryMiB: 64\n  eviction: LRU\n",
    ),
    (
        "internal/controller/memcached_controller.go",
        "\t\tNamed(\"memcached\").\n",
        "\t\t// The pods.\n\t\tOwns(&appsv1.Deployment{}).\n\t\tNamed(\"memcached\").\n",
    ),
    (
        "internal/controller/memcached_controller.go",
        "import (\n",
        "import (\n\tappsv1 \"k8s.io/api/apps/v1\"\n",
    ),
    (
        "internal/controller/memcached_controller.go",
        "// Reconcile is part of",
        RULES,
    ),
];

/// Markers for permissions: one for an owned kind, and one for kinds that are only read.
const RULES: &str =
    "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=core,resources=secrets;configmaps,verbs=get;list;watch

// Reconcile is part of";

/// Fields of v1alpha1.
const OLD: &str = "\tFoo *string `json:\"foo,omitempty\"`

\t// size is the number of pods.
\t// +kubebuilder:validation:Minimum=1
\t// +kubebuilder:validation:Maximum=5
\tSize int32 `json:\"size\"`

\t// memoryMiB is the memory of each pod.
\t// +optional
\tMemoryMiB *int32 `json:\"memoryMiB,omitempty\"`

\t// image runs in each pod.
\t// +kubebuilder:default=\"memcached:1.6\"
\t// +optional
\tImage string `json:\"image,omitempty\"`

\t// pools are pools of slabs.
\t// +listType=map
\t// +listMapKey=name
\t// +optional
\tPools []Pool `json:\"pools,omitempty\"`

\t// exporter exports metrics.
\t// +optional
\tExporter *Exporter `json:\"exporter,omitempty\"`
";

/// Types of both versions.
const TYPES: &str = "// Pool is a pool of slabs.
type Pool struct {
\t// name of the pool.
\tName string `json:\"name\"`

\t// share of the memory, in percent.
\t// +kubebuilder:validation:Minimum=1
\t// +kubebuilder:validation:Maximum=100
\t// +optional
\tShare *int32 `json:\"share,omitempty\"`
}

// Exporter exports metrics.
type Exporter struct {
\t// port to listen on.
\tPort int32 `json:\"port\"`
}

// MemcachedStatus defines";

/// Fields of v1.
const NEW: &str = "\tFoo *string `json:\"foo,omitempty\"`

\t// replicas is the number of pods.
\t// +kubebuilder:validation:Minimum=1
\t// +kubebuilder:validation:Maximum=5
\tReplicas int32 `json:\"replicas\"`

\t// memoryMiB is the memory of each pod.
\tMemoryMiB int32 `json:\"memoryMiB\"`

\t// image runs in each pod.
\t// +kubebuilder:default=\"memcached:1.6\"
\t// +optional
\tImage string `json:\"image,omitempty\"`

\t// eviction is what happens when the memory is full.
\t// +kubebuilder:validation:Enum=LRU;Random;None
\tEviction string `json:\"eviction\"`

\t// pools are pools of slabs.
\t// +listType=map
\t// +listMapKey=name
\t// +optional
\tPools []Pool `json:\"pools,omitempty\"`

\t// exporter exports metrics.
\t// +optional
\tExporter *Exporter `json:\"exporter,omitempty\"`
";

/// Types of v1, of which one is not that of v1alpha1.
const NEW_TYPES: &str = "// Pool is a pool of slabs.
type Pool struct {
\t// name of the pool.
\tName string `json:\"name\"`

\t// share of the memory, in percent.
\t// +kubebuilder:validation:Minimum=1
\t// +kubebuilder:validation:Maximum=100
\t// +optional
\tShare *int32 `json:\"share,omitempty\"`
}

// Exporter exports metrics.
type Exporter struct {
\t// port to listen on.
\tPort int32 `json:\"port\"`

\t// path of the metrics.
\t// +optional
\tPath *string `json:\"path,omitempty\"`
}

// MemcachedStatus defines";

/// Scaffolds the project, unless an earlier call has done so. Returns its directory.
pub(super) fn scaffold(source: &Path, directory: &Path) -> Result<PathBuf> {
    let project = directory.join("memcached-operator");
    let marker = directory.join(".opkit-memcached");
    let all = format!("{COMMANDS:?}{CHANGES:?}");
    if fs::read_to_string(&marker).is_ok_and(|it| it == all) {
        return Ok(project);
    }
    if project.exists() {
        fs::remove_dir_all(&project)
            .with_context(|| format!("cannot remove {}", project.display()))?;
    }
    fs::create_dir_all(&project).with_context(|| format!("cannot create {}", project.display()))?;
    println!("scaffolding memcached-operator");
    let kubebuilder = source.join(".built/kubebuilder/bin/kubebuilder");
    for arguments in COMMANDS {
        let mut command = Command::new(&kubebuilder);
        command.args(arguments.split(' ')).current_dir(&project);
        command
            .env("GOFLAGS", "-buildvcs=false")
            .env("GONOSUMDB", "*");
        output(&mut command, &format!("kubebuilder {arguments}"))?;
    }
    for (path, from, to) in CHANGES {
        let path = project.join(path);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(
            text.contains(from),
            "{} does not have {from:?}",
            path.display()
        );
        fs::write(&path, text.replacen(from, to, 1))?;
    }
    let generator = source.join("testdata/project-v4/bin/controller-gen");
    let mut command = Command::new(generator);
    command.args([
        "rbac:roleName=manager-role",
        "crd",
        "webhook",
        "object",
        "paths=./...",
    ]);
    command.arg("output:crd:artifacts:config=config/crd/bases");
    command
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("GONOSUMDB", "*");
    output(command.current_dir(&project), "controller-gen")?;
    // Written last, so that an interrupted run is repeated.
    fs::write(&marker, all).with_context(|| format!("cannot write {}", marker.display()))?;
    Ok(project)
}
