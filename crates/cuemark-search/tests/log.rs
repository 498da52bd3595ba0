//! The log of the embedded engine: nothing acknowledged is lost, damage costs one record and is said, readers follow.
#![cfg(test)] // so that clippy.toml knows the helpers for tests too

mod toy;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise, Dialect, Progress};
use cuemark_formats::{Overwrite, ReadError};
use cuemark_search::engine::Embedded;
use cuemark_search::engine::disk::{Disk, DiskFile, FileStamp, Held, RealDisk};
use cuemark_search::{
    Effort, Engine, Filter, IndexedMoment, Manifest, Nearest, SearchError, Settling, VideoEntry, VideoState, salvage,
};
use toy::{WIDTH, entry, manifest};

struct Folder(#[allow(dead_code)] tempfile::TempDir, Utf8PathBuf);

fn folder() -> Folder {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    Folder(guard, path)
}

fn moments(seed: u64) -> Vec<IndexedMoment> {
    toy::moments(seed, 4)
}

fn create(folder: &Utf8Path, overwrite: Overwrite) -> cuemark_search::Result<Embedded> {
    Embedded::create_described(Arc::new(RealDisk), folder, &manifest(), overwrite).map(|(engine, _)| engine)
}

fn names(engine: &Embedded) -> Vec<String> {
    engine.videos().unwrap().iter().map(|entry| entry.id.to_string()).collect()
}

fn log(folder: &Utf8Path) -> Utf8PathBuf {
    folder.join("moments.log")
}

/// An index with five batches: `a`; `b`, `c` and `d`; `b` is gone; `c` has a tag; `e`.
fn filled(folder: &Utf8Path) {
    let engine = create(folder, Overwrite::Never).unwrap();
    engine.put(&entry("a"), &moments(1)).unwrap();
    let three = ["b", "c", "d"].map(|id| (entry(id), moments(2)));
    engine.put_all(&three).unwrap();
    engine.remove(&"b".into()).unwrap();
    engine.note(&"c".into(), VideoState::Present, &["seen".to_owned()]).unwrap();
    engine.put(&entry("e"), &moments(3)).unwrap();
}

// Making an index: the lock is taken, and nothing that holds anything is replaced unasked (D1).

#[test]
fn nothing_is_made_where_somebody_is_writing_not_even_by_force() {
    let Folder(_guard, folder) = folder();
    let engine = create(&folder, Overwrite::Never).unwrap();
    engine.put(&entry("a"), &moments(1)).unwrap();
    assert!(matches!(create(&folder, Overwrite::Force), Err(SearchError::Locked { .. })));
    engine.put(&entry("b"), &moments(2)).unwrap();
    assert_eq!(names(&Embedded::open(&folder).unwrap()), ["a", "b"]);
}

#[test]
fn a_log_that_lost_its_manifest_is_not_replaced_unless_by_force() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    std::fs::remove_file(folder.join("index.json")).unwrap();
    let before = std::fs::read(log(&folder)).unwrap();
    let refused = create(&folder, Overwrite::Never).err().unwrap();
    assert!(matches!(refused, SearchError::Undescribed { .. }), "{refused}");
    assert!(refused.to_string().contains("4 videos"), "{refused}");
    assert_eq!(refused.advice().unwrap().settings().collect::<Vec<_>>(), [("force", Some("true"))]);
    assert_eq!(std::fs::read(log(&folder)).unwrap(), before);
    assert!(names(&create(&folder, Overwrite::Force).unwrap()).is_empty());
    // An empty one is nobody's loss.
    std::fs::remove_file(folder.join("index.json")).unwrap();
    create(&folder, Overwrite::Never).unwrap();
}

#[test]
fn of_two_that_make_an_index_at_once_one_wins_and_the_other_says_so() {
    for _ in 0..20 {
        let Folder(_guard, folder) = folder();
        let made: Vec<_> = std::thread::scope(|scope| {
            let both = [1, 2].map(|seed| {
                let folder = &folder;
                scope.spawn(move || create(folder, Overwrite::Never)?.put(&entry("mine"), &moments(seed)))
            });
            both.map(|one| one.join().unwrap()).into_iter().collect()
        });
        let lost: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
        assert_eq!(lost.len(), 1, "{made:?}");
        let says = matches!(lost[0], SearchError::Locked { .. } | SearchError::Read(ReadError::Exists { .. }));
        assert!(says, "{made:?}");
        assert_eq!(names(&Embedded::open(&folder).unwrap()), ["mine"]);
    }
}

// A log that was replaced (D2).

#[test]
fn a_writer_does_not_touch_a_log_that_was_put_in_the_place_of_its_own() {
    let (Folder(_first, folder), Folder(_second, other)) = (folder(), self::folder());
    let engine = create(&folder, Overwrite::Never).unwrap();
    engine.put(&entry("a"), &moments(1)).unwrap();
    filled(&other);
    std::fs::rename(log(&other), log(&folder)).unwrap();
    let before = std::fs::read(log(&folder)).unwrap();
    let refused = engine.put(&entry("b"), &moments(2)).err().unwrap();
    assert!(matches!(refused, SearchError::Replaced { .. }), "{refused}");
    assert_eq!(std::fs::read(log(&folder)).unwrap(), before);
}

#[test]
fn a_writer_does_not_go_on_in_an_older_copy_of_its_log() {
    let Folder(_guard, folder) = folder();
    let engine = create(&folder, Overwrite::Never).unwrap();
    engine.put(&entry("a"), &moments(1)).unwrap();
    let older = std::fs::read(log(&folder)).unwrap();
    engine.put(&entry("b"), &moments(2)).unwrap();
    // Not shortened in place, which no program that maps a file survives: a copy with the same identity.
    std::fs::write(folder.join("copy"), &older).unwrap();
    std::fs::rename(folder.join("copy"), log(&folder)).unwrap();
    assert!(matches!(engine.put(&entry("c"), &moments(3)), Err(SearchError::Replaced { .. })));
    assert_eq!(std::fs::read(log(&folder)).unwrap(), older);
    engine.put(&entry("c"), &moments(3)).unwrap();
    assert_eq!(names(&engine), ["a", "c"], "the next write begins with what is there");
    assert_eq!(names(&Embedded::open(&folder).unwrap()), ["a", "c"]);
}

#[test]
fn one_that_had_an_index_open_writes_into_the_new_one_in_its_place() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let server = Embedded::open(&folder).unwrap();
    assert_eq!(names(&server), ["a", "c", "d", "e"]);
    create(&folder, Overwrite::Force).unwrap().put(&entry("x"), &moments(5)).unwrap();
    server.put(&entry("y"), &moments(6)).unwrap();
    assert_eq!(names(&server), ["x", "y"]);
    let again = Embedded::open(&folder).unwrap();
    assert_eq!(
        (names(&again), again.verify(&Progress::new()).unwrap()),
        (vec!["x".to_owned(), "y".to_owned()], vec![])
    );
}

#[test]
fn a_manifest_of_another_log_is_noticed() {
    let (Folder(_first, folder), Folder(_second, other)) = (folder(), self::folder());
    filled(&folder);
    filled(&other);
    std::fs::copy(other.join("index.json"), folder.join("index.json")).unwrap();
    assert!(matches!(Embedded::open(&folder), Err(SearchError::NoIndex { .. })));
}

// Limits (D3).

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let before = std::fs::read(log(&folder)).unwrap();
    let engine = Embedded::open(&folder).unwrap();
    let long = |bytes: usize| vec!["x".repeat(bytes)];
    let many: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    // Escapes make six bytes of one.
    let escaped: Vec<String> = (0..999).map(|n| format!("{n}{}", "\u{1}".repeat(500))).collect();
    for tags in [long(100_000), long(2 << 20), many, escaped] {
        let put = engine.put(&VideoEntry { tags: tags.clone(), ..entry("z") }, &[]);
        assert!(matches!(put, Err(SearchError::Limit { .. })), "{put:?}");
        let note = engine.note(&"a".into(), VideoState::Present, &tags);
        assert!(matches!(note, Err(SearchError::Limit { .. })), "{note:?}");
        assert!(note.unwrap_err().advice_in(Dialect::Terminal).unwrap().contains("--tag"));
    }
    let path = Some(Utf8PathBuf::from("/".repeat(2 << 20)));
    assert!(matches!(engine.put(&VideoEntry { path, ..entry("z") }, &[]), Err(SearchError::Limit { .. })));
    let timeless = VideoEntry { duration: f64::NAN, ..entry("z") };
    assert!(matches!(engine.put(&timeless, &[]), Err(SearchError::Question { .. })));
    assert_eq!(std::fs::read(log(&folder)).unwrap(), before);
    assert_eq!(names(&Embedded::open(&folder).unwrap()), ["a", "c", "d", "e"]);
}

// Damage (D5, D6).

#[test]
fn any_changed_byte_costs_one_record_at_most_and_is_said() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let bytes = std::fs::read(log(&folder)).unwrap();
    let whole = Embedded::open(&folder).unwrap().videos().unwrap();
    let mut costly = 0;
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        // Under another name first: a mapped file is never written to.
        std::fs::write(folder.join("changed"), &changed).unwrap();
        std::fs::rename(folder.join("changed"), log(&folder)).unwrap();
        let engine = Embedded::open(&folder).unwrap_or_else(|error| panic!("byte {place}: {error}"));
        let faults = engine.verify(&Progress::new()).unwrap();
        // A span may be seen to be none, beside its checksum.
        assert!((1..=2).contains(&faults.len()), "byte {place}: {faults:?}");
        let left = engine.videos().unwrap();
        let same = left.iter().filter(|entry| whole.contains(entry)).count();
        assert!(same + 1 >= whole.len(), "byte {place}: {left:?}");
        assert!(left.iter().all(|entry| entry.id.as_str() != "b"), "byte {place}: what was removed is back");
        costly += usize::from(same < whole.len());
    }
    assert!(costly > 100, "descriptions and the last batch cost their record: {costly}");
}

#[test]
fn damage_in_the_last_video_is_said_and_never_cut_off() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let mut bytes = std::fs::read(log(&folder)).unwrap();
    // The vectors of `e`: 64 bytes before the two copies of its commit, 128 bytes each.
    let place = bytes.len() - 256 - 30;
    bytes[place] ^= 4;
    std::fs::write(log(&folder), &bytes).unwrap();
    let engine = Embedded::open(&folder).unwrap();
    assert_eq!(engine.status().unwrap().damaged, 1);
    assert_eq!(engine.verify(&Progress::new()).unwrap().len(), 1);
    assert_eq!(std::fs::read(log(&folder)).unwrap(), bytes);
    assert_eq!(names(&engine), ["a", "c", "d"]);
    engine.put(&entry("f"), &moments(4)).unwrap();
    let after = std::fs::read(log(&folder)).unwrap();
    assert!(after.starts_with(&bytes), "what a commit covers is not cut");
    let again = Embedded::open(&folder).unwrap();
    assert_eq!(names(&again), ["a", "c", "d", "f"], "it is as it was when the next writer came");
    assert_eq!(again.verify(&Progress::new()).unwrap().len(), 1, "and is still said");
}

#[test]
fn a_log_cut_anywhere_ends_with_the_last_commit_and_goes_on() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let bytes = std::fs::read(log(&folder)).unwrap();
    let put_at = |length: usize| {
        std::fs::write(folder.join("cut"), &bytes[..length]).unwrap();
        std::fs::rename(folder.join("cut"), log(&folder)).unwrap();
        Embedded::open(&folder).unwrap()
    };
    let mut seen = Vec::new();
    for length in 128..=bytes.len() {
        let engine = put_at(length);
        assert_eq!(engine.verify(&Progress::new()).unwrap(), [], "{length}: a torn tail is no damage");
        let found = names(&engine).join("");
        if length % 97 == 0 {
            engine.put(&entry("z"), &moments(9)).unwrap();
            assert_eq!(names(&Embedded::open(&folder).unwrap()).join(""), format!("{found}z"), "{length}");
        }
        if seen.last() != Some(&found) {
            seen.push(found);
        }
    }
    assert_eq!(seen, ["", "a", "abcd", "acd", "acde"]);
}

#[test]
fn a_tail_that_lost_pages_in_a_power_cut_does_no_harm() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let mut bytes = std::fs::read(log(&folder)).unwrap();
    bytes.resize(bytes.len() + 4096, 0);
    bytes.resize(bytes.len() + 5000, 7);
    std::fs::write(log(&folder), &bytes).unwrap();
    let engine = Embedded::open(&folder).unwrap();
    assert_eq!((names(&engine).len(), engine.verify(&Progress::new()).unwrap()), (4, vec![]));
    assert_eq!(std::fs::read(log(&folder)).unwrap(), bytes, "reading cuts nothing");
    engine.put(&entry("f"), &moments(4)).unwrap();
    let again = Embedded::open(&folder).unwrap();
    assert_eq!((names(&again).len(), again.verify(&Progress::new()).unwrap()), (5, vec![]));
}

#[test]
fn verifying_needs_no_lock() {
    let Folder(_guard, folder) = folder();
    let writer = create(&folder, Overwrite::Never).unwrap();
    writer.put(&entry("a"), &moments(1)).unwrap();
    let reader = Embedded::open(&folder).unwrap();
    assert!(matches!(reader.remove(&"a".into()), Err(SearchError::Locked { .. })));
    assert_eq!(reader.verify(&Progress::new()).unwrap(), []);
}

// Following others (D14, D24).

/// Whether something is seen within a second without being asked to look.
fn soon(what: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    what()
}

#[test]
fn readers_follow_what_others_write_compact_replace_and_remove() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let reader = Embedded::open(&folder).unwrap();
    let writer = Embedded::open(&folder).unwrap();
    writer.put(&entry("f"), &moments(4)).unwrap();
    assert!(soon(|| names(&reader).join("") == "acdef"));
    writer.remove(&"a".into()).unwrap();
    assert!(soon(|| names(&reader).join("") == "cdef"));
    writer.settle(Settling::Fully, &Progress::new()).unwrap();
    assert!(soon(|| reader.status().unwrap().in_graph > 0));
    writer.compact(&Progress::new()).unwrap();
    assert!(soon(|| reader.status().unwrap().waste == Some(0)));
    let query = moments(4).swap_remove(0).embedding;
    let ask = Nearest { count: 1, filter: Filter::default(), effort: Effort::Exact };
    assert_eq!(reader.nearest(&query, &ask).unwrap()[0].video.as_str(), "f");
    drop(writer);
    create(&folder, Overwrite::Force).unwrap().put(&entry("new"), &moments(1)).unwrap();
    assert!(soon(|| names(&reader).join("") == "new"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(soon(|| matches!(reader.videos(), Err(SearchError::NoIndex { .. }))));
}

#[test]
fn an_index_of_another_encoder_in_the_same_place_is_not_searched_with_this_one() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let reader = Embedded::open(&folder).unwrap();
    let other = Manifest { encoder: "other".to_owned(), ..manifest() };
    Embedded::create_described(Arc::new(RealDisk), &folder, &other, Overwrite::Force).unwrap();
    assert!(soon(|| matches!(reader.videos(), Err(SearchError::Replaced { .. }))));
}

#[test]
fn after_a_look_that_failed_the_next_one_looks_again() {
    let Folder(_guard, folder) = folder();
    filled(&folder);
    let reader = Embedded::open(&folder).unwrap();
    Embedded::open(&folder).unwrap().put(&entry("f"), &moments(4)).unwrap();
    std::fs::rename(log(&folder), folder.join("away")).unwrap();
    assert!(reader.refresh().is_err());
    std::fs::rename(folder.join("away"), log(&folder)).unwrap();
    assert!(soon(|| names(&reader).len() == 5));
}

// Logs of the first version.

/// A log as the first version wrote it.
fn old_log(videos: &[(&str, u64)]) -> Vec<u8> {
    let aligned = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(64), 0);
    let mut log = b"CUEMARKMOMENTS01".to_vec();
    log.extend((WIDTH as u32).to_le_bytes());
    log.extend(crc32fast::hash(&log).to_le_bytes());
    aligned(&mut log);
    for (id, seed) in videos {
        let mut text = serde_json::to_value(entry(id)).unwrap();
        text["kind"] = "put".into();
        let text = serde_json::to_vec(&text).unwrap();
        let moments = moments(*seed);
        let mut body = Vec::new();
        for moment in &moments {
            body.extend(moment.span.start().to_le_bytes());
            body.extend(moment.span.end().to_le_bytes());
        }
        aligned(&mut body);
        for moment in &moments {
            body.extend(moment.embedding.numbers().iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()));
        }
        aligned(&mut body);
        let mut record = b"CREC".to_vec();
        for number in [1, text.len() as u32, moments.len() as u32, crc32fast::hash(&text), crc32fast::hash(&body)] {
            record.extend(number.to_le_bytes());
        }
        record.resize(36, 0);
        record.extend(crc32fast::hash(&record).to_le_bytes());
        record.extend(text);
        aligned(&mut record);
        record.extend(body);
        log.extend(record);
    }
    log
}

fn old_index(folder: &Utf8Path, bytes: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(log(folder), bytes).unwrap();
    let mut about = serde_json::to_value(manifest()).unwrap();
    about["layout"] = 1.into();
    std::fs::write(folder.join("index.json"), about.to_string()).unwrap();
}

#[test]
fn a_log_of_the_first_version_is_read_as_it_was_and_rewritten_by_the_first_that_writes() {
    let Folder(_guard, folder) = folder();
    let old = old_log(&[("a", 1), ("b", 2), ("a", 3)]);
    old_index(&folder, &old);
    let engine = Embedded::open(&folder).unwrap();
    assert_eq!((names(&engine).join(""), engine.verify(&Progress::new()).unwrap()), ("ab".to_owned(), vec![]));
    assert_eq!(std::fs::read(log(&folder)).unwrap(), old, "reading changes nothing");
    let spans = |engine: &Embedded| engine.moments(&"a".into()).unwrap().unwrap()[0].span;
    assert_eq!(spans(&engine), moments(3)[0].span);
    engine.put(&entry("c"), &moments(4)).unwrap();
    assert!(std::fs::read(log(&folder)).unwrap().starts_with(b"CUEMARKMOMENTS02"));
    assert!(Manifest::read(&folder).unwrap().log.is_some());
    drop(engine);
    let engine = Embedded::open(&folder).unwrap();
    assert_eq!((names(&engine).join(""), spans(&engine)), ("abc".to_owned(), moments(3)[0].span));
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
}

#[test]
fn what_a_killed_writer_left_at_the_end_of_an_old_log_was_never_there() {
    let Folder(_guard, folder) = folder();
    let whole = old_log(&[("a", 1)]);
    let more = old_log(&[("a", 1), ("b", 2)]);
    for length in whole.len()..more.len() {
        old_index(&folder, &more[..length]);
        assert_eq!(names(&Embedded::open(&folder).unwrap()), ["a"], "{length}");
    }
    let mut damaged = more;
    damaged[whole.len() / 2] ^= 1;
    old_index(&folder, &damaged);
    let engine = Embedded::open(&folder);
    assert!(engine.is_err() || !engine.unwrap().verify(&Progress::new()).unwrap().is_empty());
}

// A read-only folder (D22).

#[test]
fn an_index_in_a_folder_that_cannot_be_written_is_searched_and_verified() {
    use std::os::unix::fs::PermissionsExt as _;
    let Folder(_guard, folder) = folder();
    filled(&folder);
    Embedded::open(&folder).unwrap().settle(Settling::Fully, &Progress::new()).unwrap();
    let mut bytes = std::fs::read(log(&folder)).unwrap();
    let before: Vec<_> = folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    let permit = |mode: u32, folder_mode: u32| {
        before.iter().for_each(|path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap());
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(folder_mode)).unwrap();
    };
    // Permissions do not bind the superuser, as whom this may run; a disk that refuses every write binds everybody.
    permit(0o444, 0o555);
    let engine = Embedded::open_on(Arc::new(NotWritable), &folder).unwrap();
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
    assert_eq!(names(&engine), ["a", "c", "d", "e"]);
    let nearest = Nearest { count: 3, ..Nearest::default() };
    assert_eq!(engine.nearest(&moments(1)[0].embedding, &nearest).unwrap().len(), 3);
    assert!(engine.put(&entry("f"), &moments(4)).is_err(), "writing is refused, not lost");
    permit(0o644, 0o755);
    // And damage is told of there, too.
    let end = bytes.len();
    bytes[end / 2] ^= 1;
    std::fs::write(log(&folder), &bytes).unwrap();
    permit(0o444, 0o555);
    let engine = Embedded::open_on(Arc::new(NotWritable), &folder);
    assert!(engine.is_err() || !engine.unwrap().verify(&Progress::new()).unwrap().is_empty());
    permit(0o644, 0o755);
}

/// The real disk, on which nothing can be changed.
#[derive(Debug)]
struct NotWritable;

impl Disk for NotWritable {
    fn open(&self, path: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open(path)
    }

    fn open_to_write(&self, _: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn create(&self, _: &Utf8Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn rename(&self, _: &Utf8Path, _: &Utf8Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &Utf8Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn make_folder(&self, _: &Utf8Path) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        RealDisk.list(folder)
    }

    fn stamp(&self, path: &Utf8Path) -> io::Result<FileStamp> {
        RealDisk.stamp(path)
    }

    fn lock(&self, _: &Utf8Path) -> io::Result<Option<Box<dyn Held>>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

// Salvage.

#[test]
fn salvaging_keeps_what_is_left_and_says_what_is_lost() {
    let (Folder(_first, folder), Folder(_second, out)) = (folder(), self::folder());
    filled(&folder);
    let mut bytes = std::fs::read(log(&folder)).unwrap();
    // Both heads, the manifest, and the description of `d`.
    bytes[20] ^= 1;
    bytes[84] ^= 1;
    let text = b"\"id\":\"d\"";
    let place = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[place + 6] = b'x';
    std::fs::write(log(&folder), &bytes).unwrap();
    std::fs::write(folder.join("index.json"), "{").unwrap();
    assert!(Embedded::open(&folder).is_err());
    let unknown = salvage(&folder, &out, None, Overwrite::Never, &Progress::new()).unwrap_err();
    assert_eq!(unknown.advice().unwrap().settings().collect::<Vec<_>>(), [("encoder", None)]);
    assert!(!out.exists());
    let done = salvage(&folder, &out, Some("none"), Overwrite::Never, &Progress::new()).unwrap();
    assert_eq!((done.videos, done.moments, done.lost.len(), done.assumed.len()), (3, 12, 1, 3), "{done:?}");
    let rescued = Embedded::open(&out).unwrap();
    assert_eq!((names(&rescued).join(""), rescued.verify(&Progress::new()).unwrap()), ("ace".to_owned(), vec![]));
    assert_eq!(rescued.video(&"c".into()).unwrap().unwrap().tags, ["seen"]);
    assert_eq!(Manifest::read(&out).unwrap().encoder, "none");
    assert_eq!(std::fs::read(log(&folder)).unwrap(), bytes, "it is only read");
}

#[test]
fn salvaging_replaces_nothing_unasked_and_never_itself() {
    let (Folder(_first, folder), Folder(_second, out)) = (folder(), self::folder());
    filled(&folder);
    filled(&out);
    let before = std::fs::read(log(&folder)).unwrap();
    let into = |to: &Utf8Path, overwrite| salvage(&folder, to, None, overwrite, &Progress::new());
    assert!(matches!(into(&folder, Overwrite::Force), Err(SearchError::Question { .. })));
    std::os::unix::fs::symlink(&folder, folder.with_extension("link")).unwrap();
    assert!(matches!(into(&folder.with_extension("link"), Overwrite::Force), Err(SearchError::Question { .. })));
    assert!(matches!(into(&out, Overwrite::Never), Err(SearchError::Read(ReadError::Exists { .. }))));
    assert_eq!(std::fs::read(log(&folder)).unwrap(), before);
    assert_eq!(into(&out, Overwrite::Force).unwrap().videos, 4);
    let stopped = Progress::new();
    stopped.stop();
    let third = folder.with_file_name("third");
    assert!(matches!(salvage(&folder, &third, None, Overwrite::Never, &stopped), Err(SearchError::Stopped(_))));
    assert!(!third.join("index.json").exists());
}

#[test]
fn an_old_log_with_a_damaged_record_is_salvaged_up_to_that_record_and_behind_it() {
    let (Folder(_first, folder), Folder(_second, out)) = (folder(), self::folder());
    let mut bytes = old_log(&[("a", 1), ("b", 2), ("c", 3)]);
    let text = b"\"id\":\"b\"";
    let place = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[place] ^= 1;
    old_index(&folder, &bytes);
    let refused = Embedded::open(&folder).err().unwrap();
    assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("index salvage"), "{refused}");
    let done = salvage(&folder, &out, None, Overwrite::Never, &Progress::new()).unwrap();
    assert_eq!((done.videos, done.lost.len()), (2, 1));
    assert_eq!(names(&Embedded::open(&out).unwrap()).join(""), "ac");
}
