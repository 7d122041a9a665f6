//! A project in an empty directory, outside of this repository.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::readme::files;

/// Returns the root of this repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Empty directory, which is removed at the end. Its path is the same in each run, because cargo
/// keeps what it builds for each path.
pub(crate) struct EmptyDirectory(PathBuf);

impl EmptyDirectory {
    pub(crate) fn new(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        target_directory().hash(&mut hasher);
        let hash = hasher.finish();
        let parent = std::env::temp_dir().join(format!("opkit-newcomer-{hash:x}"));
        let directory = Self(parent.join(name));
        let _ = fs::remove_dir_all(&directory.0);
        fs::create_dir_all(&directory.0).unwrap();
        directory
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for EmptyDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // The parent goes with its last directory.
        if let Some(parent) = self.0.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
}

/// Project with the files of the README, unchanged. The configuration that locates the crates,
/// which is not needed once opkit is published, is beside the project and not in it.
pub(crate) struct Project {
    _parent: EmptyDirectory,
    directory: PathBuf,
}

impl Project {
    /// Writes the files of the README.
    pub(crate) fn of_readme() -> Self {
        let parent = EmptyDirectory::new("readme");
        let directory = parent.path().join("hello-operator");
        let readme = fs::read_to_string(repository().join("README.md")).unwrap();
        for file in files(&readme) {
            let path = directory.join(file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file.text).unwrap();
        }
        // All other crates have the versions that this repository is tested with.
        fs::copy(
            repository().join("Cargo.lock"),
            directory.join("Cargo.lock"),
        )
        .unwrap();
        let opkit = repository().join("crates/opkit").canonicalize().unwrap();
        let patch = format!("[patch.crates-io]\nopkit = {{ path = {opkit:?} }}\n");
        fs::create_dir(parent.path().join(".cargo")).unwrap();
        fs::write(parent.path().join(".cargo/config.toml"), patch).unwrap();
        Self {
            _parent: parent,
            directory,
        }
    }

    /// Returns a command that runs in the directory of the project and builds into this
    /// repository's target directory.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        command_in(&self.directory, program)
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO"))
            .args(arguments)
            .output()
            .unwrap()
    }
}

/// Returns a command that runs in a directory, and shares what this repository has built. Its own
/// executables are in a directory of their own, because a project may have the name of an example,
/// whose executable other tests run.
pub(crate) fn command_in(directory: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(directory)
        .env("CARGO_BUILD_BUILD_DIR", target_directory())
        .env("CARGO_TARGET_DIR", target_directory().join("newcomer"))
        .stdin(Stdio::null());
    // cargo runs this process: its variables are not meant for the project.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG") || name == "CARGO_MANIFEST_DIR" {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the target directory that this test was built in.
fn target_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // target/debug/deps/newcomer-0123456789abcdef
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Builds the command, and returns its path.
pub(crate) fn opkit() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .current_dir(repository())
        .env("CARGO_TARGET_DIR", target_directory())
        .args([
            "build",
            "--package",
            "opkit-cli",
            "--message-format",
            "json",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let messages = cargo_metadata::Message::parse_stream(&*output.stdout);
    let mut programs = messages.filter_map(|message| match message.unwrap() {
        cargo_metadata::Message::CompilerArtifact(artifact) => artifact.executable,
        _ => None,
    });
    programs.next().unwrap().into()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
