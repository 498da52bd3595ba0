//! Those who only read: following what others write, and folders in which nothing can be written.

use super::*;

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
