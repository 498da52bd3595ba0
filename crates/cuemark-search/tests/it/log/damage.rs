//! Bytes that changed, tails that were cut, and what is saved of such a log.

use super::*;

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
