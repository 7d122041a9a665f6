use tempfile::TempDir;

use super::*;

fn write(directory: &Path, name: &str, mode: u32) {
    let path = directory.join(name);
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn executable_programs_with_the_prefix_are_plugins() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(one.path(), "opkit-zoo", 0o755);
    write(one.path(), "opkit-text", 0o644);
    write(one.path(), "opkit-", 0o755);
    write(one.path(), "other", 0o755);
    fs::create_dir(one.path().join("opkit-directory")).unwrap();
    write(two.path(), "opkit-zoo", 0o755);
    write(two.path(), "opkit-dev", 0o700);
    let missing = one.path().join("missing");
    let path = std::env::join_paths([&missing, one.path(), two.path()]).unwrap();
    let found = all(&path, &["dev".to_owned()]);
    let expected = [
        Plugin {
            name: "dev".into(),
            path: two.path().join("opkit-dev"),
            is_hidden: true,
        },
        Plugin {
            name: "zoo".into(),
            path: one.path().join("opkit-zoo"),
            is_hidden: false,
        },
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_exit_code_is_that_of_the_process() {
    for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137)] {
        let status = ExitStatus::from_raw(raw);
        assert_eq!(code(&status), ExitCode::from(expected), "{raw}");
    }
}
