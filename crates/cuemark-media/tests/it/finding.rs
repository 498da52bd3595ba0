//! Which files are videos, and what they are called.

use std::process::Command;

use camino::Utf8PathBuf;
use cuemark_core::Progress;
use cuemark_media::{FoundVideos, MediaError, find_videos};

use crate::made::folder;

fn find(paths: &[Utf8PathBuf]) -> FoundVideos {
    find_videos(paths, &Progress::new()).unwrap()
}

fn names(found: &FoundVideos) -> Vec<&str> {
    found.videos.iter().map(|file| file.video.as_str()).collect()
}

#[test]
fn folders_are_searched_and_no_file_is_found_twice() {
    let (_guard, root) = folder();
    std::fs::create_dir_all(root.join("deep/er")).unwrap();
    for name in ["b.mp4", "deep/a.MKV", "deep/er/c.webm", "notes.txt"] {
        std::fs::write(root.join(name), "x").unwrap();
    }
    assert_eq!(names(&find(std::slice::from_ref(&root))), ["a", "b", "c"]);
    let several = [root.join("notes.txt"), root.join("b.mp4"), root.clone(), root.join("deep")];
    let found = find(&several);
    assert_eq!((names(&found), found.left_out.len()), (vec!["a", "b", "c", "notes"], 0));
    std::fs::create_dir(root.join("empty")).unwrap();
    let found = find(&[root.join("empty"), root.join("gone.mp4")]);
    assert_eq!((found.videos.len(), found.left_out.len()), (0, 2), "{found:?}");
    assert!(found.left_out.iter().any(|one| one.problem.contains("no video in this folder")), "{found:?}");
}

#[test]
fn a_folder_called_like_a_film_is_a_folder() {
    let (_guard, root) = folder();
    std::fs::create_dir(root.join("x.mp4")).unwrap();
    std::fs::write(root.join("x.mp4/inside.mp4"), "x").unwrap();
    assert_eq!(names(&find(std::slice::from_ref(&root))), ["inside"]);
}

#[cfg(unix)]
#[test]
fn circles_of_links_end_and_links_out_of_the_folder_are_told_of() {
    use std::os::unix::fs::symlink;
    let (_guard, root) = folder();
    let (films, outside) = (root.join("films"), root.join("outside"));
    std::fs::create_dir_all(films.join("sub")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(films.join("one.mp4"), "x").unwrap();
    std::fs::write(outside.join("private.mp4"), "x").unwrap();
    for name in ["a", "b", "c", "d", "sub/e"] {
        symlink(&films, films.join(name)).unwrap();
    }
    symlink(&outside, films.join("out")).unwrap();
    symlink(outside.join("private.mp4"), films.join("two.mp4")).unwrap();
    symlink(films.join("one.mp4"), films.join("again.mp4")).unwrap();
    symlink(root.join("nothing"), films.join("dangling.mp4")).unwrap();
    let began = std::time::Instant::now();
    let found = find(std::slice::from_ref(&films));
    assert!(began.elapsed().as_secs() < 5);
    assert_eq!(names(&found), ["one"]);
    let mut told: Vec<&str> = found.left_out.iter().map(|one| one.what.rsplit('/').next().unwrap()).collect();
    told.sort_unstable();
    assert_eq!(told, ["dangling.mp4", "out", "two.mp4"]);
    // A root may be a link itself, and what a link points at is found when it is given too.
    symlink(&films, root.join("link")).unwrap();
    assert_eq!(names(&find(&[root.join("link"), outside])), ["one", "private"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_and_a_name_that_is_not_text_are_told_of_and_the_rest_is_found() {
    use std::os::unix::ffi::OsStrExt as _;
    let (_guard, root) = folder();
    std::fs::write(root.join("film.mp4"), "x").unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe.mp4")).status().unwrap().success());
    for name in [&b"note\xfe.txt"[..], b"film\xfe.mp4"] {
        std::fs::write(root.as_std_path().join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    let found = find(std::slice::from_ref(&root));
    assert_eq!(names(&found), ["film"]);
    let mut told: Vec<&str> = found.left_out.iter().map(|one| one.problem.as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["is no regular file", "its name is not UTF-8"], "a note is no video: nobody misses it");
    assert_eq!(find(&[root.join("pipe.mp4")]).left_out.len(), 1);
}

#[test]
fn a_walk_can_be_stopped() {
    let (_guard, root) = folder();
    std::fs::write(root.join("film.mp4"), "x").unwrap();
    let progress = Progress::new();
    progress.stop();
    assert!(matches!(find_videos(&[root], &progress), Err(MediaError::Stopped(_))));
}
