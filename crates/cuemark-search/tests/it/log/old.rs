//! Logs of the first version.

use super::*;

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
