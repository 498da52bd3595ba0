//! Folders of films as they are: damaged, replaced, named oddly, linked in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, VideoId};
use cuemark_encoders::extract::{ExtractOptions, Shard, extract_to_store};
use cuemark_encoders::visual::{Clips, Sampling};
use cuemark_encoders::{ClipEncoder, Joint, Names, TextEncoder};
use cuemark_features::{FeatureStore, Recipe, RowTime};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, Filter, Framing, find_videos};
use cuemark_search::encoder::JointEncoder;
use cuemark_search::{AddOptions, Added, Became, EngineUrl, Index};

/// What happens while a clip is encoded.
type During = Box<dyn Fn() + Send + Sync>;

/// A clip of a second is how bright it is, and 1.
struct Grey(During);

impl ClipEncoder for Grey {
    fn name(&self) -> &str {
        "grey"
    }

    fn width(&self) -> usize {
        2
    }

    fn sampling(&self) -> Sampling {
        let framing = Framing::Stretch { width: 8, height: 6, filter: Filter::Bilinear };
        Sampling { fps: 2.0, frames: 2, stride: 2, framing }
    }

    fn recipe(&self) -> Recipe {
        let row_time = RowTime::Clip(self.sampling().clip_len().unwrap());
        let (extractor, settings) = ("grey".to_owned(), BTreeMap::new());
        Recipe { extractor, weights: None, fps: Some(2.0), row_time, width: 2, resize: Some([8, 6]), settings }
    }

    fn encode(&self, clips: &Clips) -> cuemark_encoders::Result<Vec<Vec<f32>>> {
        (self.0)();
        let mean = |clip: &[u8]| clip.iter().map(|byte| f32::from(*byte)).sum::<f32>() / clip.len() as f32 / 255.0;
        Ok(clips.rgb().chunks(2 * clips.picture_bytes()).map(|clip| vec![mean(clip), 1.0]).collect())
    }
}

struct Words;

impl TextEncoder for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn width(&self) -> usize {
        2
    }

    fn encode(&self, sentences: &[&str]) -> cuemark_encoders::Result<Vec<Vec<f32>>> {
        Ok(sentences.iter().map(|_| vec![1.0, 1.0]).collect())
    }
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    (guard, path)
}

fn make_film(path: &Utf8Path, seconds: u32) {
    let source = format!("testsrc=s=64x48:r=10:d={seconds}");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "lavfi", "-i", &source, "-g", "10", "-pix_fmt", "yuv420p"]).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn index(root: &Utf8Path, during: impl Fn() + Send + Sync + 'static) -> Index {
    let joint = Joint { text: Box::new(Words), clips: Box::new(Grey(Box::new(during))), names: Names::default() };
    let encoder = JointEncoder::new("grey".to_owned(), joint, None).unwrap();
    Index::create(&EngineUrl::File(root.join("index")), Box::new(encoder), Overwrite::Never).unwrap()
}

fn add(index: &Index, path: &Utf8Path) -> Added {
    index.add_files(&[path.to_owned()], &AddOptions::default(), &Progress::new()).unwrap()
}

fn names(index: &Index) -> BTreeSet<VideoId> {
    index.engine().videos().unwrap().into_iter().map(|entry| entry.id).collect()
}

#[test]
fn an_index_and_a_store_see_the_same_films_under_the_same_names() {
    let (_guard, root) = folder();
    let films = root.join("films");
    std::fs::create_dir_all(films.join("a")).unwrap();
    std::fs::create_dir_all(films.join("b/x.mp4")).unwrap();
    make_film(&films.join("one.mp4"), 2);
    let copies = [
        "a/film.mp4",
        "b/film.mp4",
        "b/film.mkv",
        "b/x.mp4/inside.MP4",
        "-i.mp4",
        "a%d.m4v",
        "concat:x|y.mp4",
        "日本語.mov",
        "tape.wmv",
        "line\nfeed.mp4",
        "spoken.txt",
        "\u{1b}[31mred.mp4",
        "late.3gp",
    ];
    for name in copies {
        std::fs::copy(films.join("one.mp4"), films.join(name)).unwrap();
    }
    std::fs::write(films.join("broken.mp4"), "no film").unwrap();
    #[cfg(unix)]
    for (target, name) in [(&films, "circle"), (&films.join("one.mp4"), "again.mp4"), (&root, "up")] {
        std::os::unix::fs::symlink(target, films.join(name)).unwrap();
    }
    let index = index(&root, || {});
    let added = add(&index, &films);
    let found = find_videos(std::slice::from_ref(&films), &Progress::new()).unwrap();
    let options = ExtractOptions { overwrite: Overwrite::Never, shard: Shard::WHOLE, ffmpeg: Ffmpeg::on_path() };
    let grey = Grey(Box::new(|| {}));
    extract_to_store(&found.videos, &grey, &root.join("store"), &options, &Progress::new()).unwrap();
    let store = FeatureStore::open(&root.join("store")).unwrap();
    let stored: BTreeSet<VideoId> = store.videos("visual").into_iter().cloned().collect();
    assert_eq!(names(&index), stored);
    let some = ["one", "a-film", "b-film.mkv", "b-film.mp4", "inside", "\u{1b}[31mred"].map(VideoId::from);
    assert!(some.iter().all(|name| stored.contains(name)), "{stored:?}");
    // The broken film, and the folder above that a link leads to.
    assert_eq!((added.new, added.failed), (13, 2), "{added:?}");
    // What is there keeps its name, whatever comes beside it.
    std::fs::copy(films.join("one.mp4"), films.join("a/one.mp4")).unwrap();
    let again = add(&index, &films);
    assert_eq!((again.new, again.unchanged), (1, 13), "{again:?}");
    assert!(stored.is_subset(&names(&index)));
}

#[test]
fn a_film_that_could_be_read_only_in_part_is_indexed_and_said_to_be() {
    let (_guard, root) = folder();
    make_film(&root.join("whole.mkv"), 8);
    let bytes = std::fs::read(root.join("whole.mkv")).unwrap();
    std::fs::create_dir(root.join("films")).unwrap();
    std::fs::write(root.join("films/cut.mkv"), &bytes[..bytes.len() / 2]).unwrap();
    let index = index(&root, || {});
    let progress = Progress::new();
    let added = index.add_files(&[root.join("films")], &AddOptions::default(), &progress).unwrap();
    assert_eq!((added.new, added.partial, added.failed), (1, 1, 0), "{added:?}");
    let said = progress.heard();
    assert!(said.len() == 1 && said[0].starts_with("in part: cut: read to "), "{said:?}");
    drop(index);
    // It is known to whoever opens the index later, too.
    let joint = Joint { text: Box::new(Words), clips: Box::new(Grey(Box::new(|| {}))), names: Names::default() };
    let encoder = JointEncoder::new("grey".to_owned(), joint, None).unwrap();
    let index = Index::open(&EngineUrl::File(root.join("index")), Box::new(encoder)).unwrap();
    let partial = index.engine().video(&"cut".into()).unwrap().unwrap().partial.unwrap();
    assert!(partial.stated_seconds == Some(8.0) && partial.read_seconds < 7.0, "{partial:?}");
    assert_eq!(add(&index, &root.join("films")).unchanged, 1);
}

#[test]
fn what_is_no_film_is_left_out_with_a_reason_and_the_rest_is_added() {
    let (_guard, root) = folder();
    let films = root.join("films");
    std::fs::create_dir_all(films.join("empty.mp4")).unwrap();
    make_film(&films.join("good.mp4"), 2);
    make_film(&root.join("private.ts"), 2);
    let playlist = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{root}/private.ts\n#EXT-X-ENDLIST\n");
    std::fs::write(films.join("playlist.mp4"), playlist).unwrap();
    std::fs::write(films.join("empty.mkv"), "").unwrap();
    #[cfg(unix)]
    assert!(Command::new("mkfifo").arg(films.join("pipe.mp4")).status().unwrap().success());
    let added = add(&index(&root, || {}), &films);
    assert_eq!((added.new, added.failed), (1, if cfg!(unix) { 3 } else { 2 }), "{added:?}");
    let reason = |name: &str| {
        let one = added.videos.iter().find(|one| one.video.ends_with(name)).unwrap();
        if let Became::Failed { reason } = &one.became { reason.clone() } else { panic!("{one:?}") }
    };
    assert!(reason("empty.mkv").contains("0 bytes") && reason("playlist.mp4").contains("whitelist"));
    #[cfg(unix)]
    assert_eq!(reason("pipe.mp4"), "is no regular file");
}

#[test]
fn a_film_that_is_replaced_while_it_is_embedded_is_left_out() {
    let (_guard, root) = folder();
    std::fs::create_dir(root.join("films")).unwrap();
    let (film, other) = (root.join("films/film.mp4"), root.join("other.mp4"));
    make_film(&film, 2);
    make_film(&other, 3);
    let at = film.clone();
    let index = index(&root, move || {
        let _ = std::fs::rename(&other, &at);
    });
    let added = add(&index, &film);
    assert_eq!((added.new, added.failed), (0, 1), "{added:?}");
    assert!(
        matches!(&added.videos[0].became, Became::Failed { reason } if reason.contains("changed while")),
        "{added:?}"
    );
    assert_eq!(add(&index, &film).new, 1, "the new one is added when it is left in peace");
}

#[test]
fn stopped_work_keeps_what_is_done_and_counts_nothing_as_failed() {
    let (_guard, root) = folder();
    std::fs::create_dir(root.join("films")).unwrap();
    for name in ["a", "b", "c"] {
        make_film(&root.join("films").join(format!("{name}.mp4")), 2);
    }
    let progress = std::sync::Arc::new(Progress::new());
    let (calls, asked) = (std::sync::atomic::AtomicUsize::new(0), std::sync::Arc::clone(&progress));
    let index = index(&root, move || {
        if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            asked.stop();
        }
    });
    let added = index.add_files(&[root.join("films")], &AddOptions::default(), &progress).unwrap();
    assert!(added.new <= 2 && added.failed == 0, "{added:?}");
    assert_eq!(names(&index).len(), added.new);
    assert_eq!(add(&index, &root.join("films")).unchanged, added.new, "the same command goes on");
}
