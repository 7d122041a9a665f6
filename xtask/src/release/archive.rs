//! Archives with the command, its manual and its completions.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ring::digest::{SHA256, digest};

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

/// Archive of one target.
pub(super) struct Archive<'a> {
    /// Name of the archive and of the directory in it.
    pub(super) name: String,
    pub(super) program: &'a Path,
    /// Whether the program runs on this machine.
    pub(super) is_runnable: bool,
}

impl Archive<'_> {
    /// Writes the archive into `out` and returns its path.
    pub(super) fn write(&self, root: &Path, out: &Path) -> Result<PathBuf> {
        let directory = out.join(&self.name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).context("cannot delete the last archive")?;
        }
        std::fs::create_dir_all(&directory).context("cannot create the archive's directory")?;
        let program = self
            .program
            .file_name()
            .context("the command has no name")?;
        for (from, to) in [
            (self.program.to_owned(), directory.join(program)),
            (root.join("LICENSE"), directory.join("LICENSE")),
            (root.join("README.md"), directory.join("README.md")),
        ] {
            std::fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        if self.is_runnable {
            self.write_manual(&directory)?;
        }
        let archive = out.join(format!("{}.tar.gz", self.name));
        let status = Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(out)
            .arg(&self.name)
            .status()
            .context("cannot run tar")?;
        ensure!(status.success(), "tar of {} failed", self.name);
        Ok(archive)
    }

    fn write_manual(&self, directory: &Path) -> Result<()> {
        let run = |arguments: &[&str]| -> Result<Vec<u8>> {
            let output = Command::new(self.program).args(arguments).output();
            let output = output.with_context(|| format!("cannot run opkit {arguments:?}"))?;
            ensure!(output.status.success(), "opkit {arguments:?} failed");
            Ok(output.stdout)
        };
        let manual = directory.join("man");
        run(&["man", "--out", &manual.to_string_lossy()])?;
        let completions = directory.join("completions");
        std::fs::create_dir_all(&completions).context("cannot create the completions")?;
        for shell in SHELLS {
            let script = run(&["completion", shell])?;
            std::fs::write(completions.join(format!("opkit.{shell}")), script)
                .context("cannot write a completion script")?;
        }
        Ok(())
    }
}

/// Returns the checksums of files in the format of `sha256sum`.
pub(super) fn checksums(files: &[PathBuf]) -> Result<String> {
    let mut sums = String::new();
    for file in files {
        let bytes = std::fs::read(file).with_context(|| format!("no {}", file.display()))?;
        for byte in digest(&SHA256, &bytes).as_ref() {
            let _ = write!(sums, "{byte:02x}");
        }
        let name = file.file_name().context("an archive has no name")?;
        let _ = writeln!(sums, "  {}", name.to_string_lossy());
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let directory = std::env::temp_dir().join(format!("opkit-sums-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("abc");
        std::fs::write(&file, "abc").unwrap();
        let sums = checksums(&[file]).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sums, format!("{abc}  abc\n"));
    }
}
