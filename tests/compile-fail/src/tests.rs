use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs, thread};

use crate::{compiler, report};

/// Checks that the compiler's messages for each case equal the text file beside it, which is empty
/// for a case that compiles.
#[test]
fn each_case_gets_its_message() {
    let cases = Mutex::new(cases());
    let count = cases.lock().unwrap().len();
    assert!(count > 20, "the cases are in {}", root().display());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = { cases.lock().unwrap().pop_front() } {
                    if let Some(difference) = difference(&case) {
                        wrong.lock().unwrap().push(difference);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {count} cases have another message (OPKIT_BLESS=1 accepts it):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn cases() -> VecDeque<PathBuf> {
    let folders = fs::read_dir(root())
        .unwrap()
        .map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|file| file.unwrap().path());
    let mut cases: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|it| it == "rs"))
        .collect();
    cases.sort();
    cases.into()
}

/// Returns the expected and the reported messages if they differ.
fn difference(case: &Path) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let found = report::text(&compiler::check(case, directory.path()));
    let expected = case.with_extension("txt");
    if env::var_os("OPKIT_BLESS").is_some() {
        fs::write(&expected, &found).unwrap();
        return None;
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    (found != wanted).then(|| {
        let name = case.strip_prefix(root()).unwrap().display();
        format!("== {name}\n-- expected\n{wanted}-- found\n{found}")
    })
}
