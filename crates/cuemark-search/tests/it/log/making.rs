//! Who may make and write a log, and what may stand in it.

use super::*;

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
