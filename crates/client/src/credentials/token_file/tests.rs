use std::fs;

use super::*;

fn token(file: &TokenFile) -> String {
    file.header().to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_file_is_read_once_a_minute() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, "one\n").unwrap();
    let file = TokenFile::new(path.to_path_buf(), None).unwrap();
    assert_eq!(token(&file), "Bearer one");
    fs::write(&path, "two\n").unwrap();
    tokio::time::advance(Duration::from_secs(49)).await;
    assert_eq!(token(&file), "Bearer one");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(token(&file), "Bearer two");

    // A file that is empty or removed leaves the last token.
    for step in 0..2 {
        match step {
            0 => fs::write(&path, " ").unwrap(),
            _ => fs::remove_file(&path).unwrap(),
        }
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(token(&file), "Bearer two");
    }
    fs::write(&path, "three").unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(token(&file), "Bearer three");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_read_again_at_once() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, "one").unwrap();
    let file = TokenFile::new(path.to_path_buf(), None).unwrap();
    let old = file.header();
    fs::write(&path, "two").unwrap();
    file.refused(Some(&old));
    assert_eq!(token(&file), "Bearer two");
    // The refusal of an older token says nothing about the new one.
    fs::write(&path, "three").unwrap();
    file.refused(Some(&old));
    assert_eq!(token(&file), "Bearer two");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let gone = || PathBuf::from("/does/not/exist");
    let error = TokenFile::new(gone(), None).err().unwrap();
    assert_eq!(error.to_string(), "cannot read the token /does/not/exist");
    let file = TokenFile::new(gone(), Some("given")).unwrap();
    assert_eq!(token(&file), "Bearer given");
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let error = TokenFile::new(path.to_path_buf(), None).err().unwrap();
    let expected = format!("the token is not valid: {} is empty", path.display());
    assert_eq!(error.to_string(), expected);
}
