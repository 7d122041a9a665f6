//! Writes changes: all files, or none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Change, Changes};
use crate::{Error, Result};

impl Changes {
    /// Writes the changes to the files in `directory`.
    ///
    /// All new texts are written to temporary files first, which then replace the old ones. If a
    /// replacement fails, the files that were replaced before it are restored.
    ///
    /// # Errors
    /// If a file cannot be written, was changed since it was read, or exists although the command
    /// creates it.
    pub fn write(&self, directory: &Path) -> Result<()> {
        for change in self.iter() {
            unchanged(directory, change)?;
        }
        let mut staged = Vec::new();
        for change in self.iter() {
            if let Err(error) = stage(directory, change).map(|path| staged.push((change, path))) {
                discard(&staged);
                return Err(error);
            }
        }
        for (index, (change, temporary)) in staged.iter().enumerate() {
            let path = directory.join(&change.path);
            let done = match temporary {
                Some(temporary) => fs::rename(temporary, &path),
                None => fs::remove_file(&path),
            };
            if let Err(cause) = done {
                discard(staged.get(index..).unwrap_or_default());
                restore(directory, staged.get(..index).unwrap_or_default());
                return Err(Error::Write { path, cause });
            }
        }
        for change in self.iter().filter(|it| it.after.is_none()) {
            // Only empty folders are removed.
            let folders = Path::new(&change.path).ancestors().skip(1);
            for folder in folders.filter(|it| !it.as_os_str().is_empty()) {
                if fs::remove_dir(directory.join(folder)).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A change, and the temporary file with its new text.
type Staged<'a> = (&'a Change, Option<PathBuf>);

/// Fails if the file is not as it was when the change was computed.
fn unchanged(directory: &Path, change: &Change) -> Result<()> {
    let path = directory.join(&change.path);
    match (fs::read_to_string(&path), &change.before) {
        (Ok(text), Some(before)) if text == *before => Ok(()),
        (Err(cause), None) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(cause), _) => Err(Error::Read { path, cause }),
        (Ok(_), None) => Err(Error::Project(format!("{} exists", change.path))),
        (Ok(_), Some(_)) => {
            let reason = format!("{} was changed meanwhile", change.path);
            Err(Error::Project(reason))
        }
    }
}

/// Writes the new text of a file to a temporary file beside it.
fn stage(directory: &Path, change: &Change) -> Result<Option<PathBuf>> {
    let path = directory.join(&change.path);
    let Some(text) = &change.after else {
        return Ok(None);
    };
    let failed = |cause| Error::Write {
        path: path.clone(),
        cause,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".opkit-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    fs::write(&temporary, text).map_err(failed)?;
    if let Ok(metadata) = fs::metadata(&path) {
        fs::set_permissions(&temporary, metadata.permissions()).map_err(failed)?;
    }
    Ok(Some(temporary))
}

fn discard(staged: &[Staged<'_>]) {
    let files = staged.iter().filter_map(|(_, file)| file.as_ref());
    for file in files {
        let _ = fs::remove_file(file);
    }
}

fn restore(directory: &Path, staged: &[Staged<'_>]) {
    for (change, _) in staged {
        let path = directory.join(&change.path);
        let _ = match &change.before {
            Some(before) => fs::write(&path, before),
            None => fs::remove_file(&path),
        };
    }
}
