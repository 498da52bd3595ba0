//! Some videos of a world that is made already, as the camera for video files sees them: as files, or as features of the same pictures.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, VideoId};
use cuemark_features::sight::{self, Strength};
use cuemark_features::{StoreWriter, VISUAL, VideoFeatures};
use cuemark_formats::json::Document;
use cuemark_formats::{Overwrite, ReadError, Source, world_folder};
use rayon::prelude::*;

use crate::make::{REEL_SCALE, clip_len, frame_noise, reel_camera, view, visual_recipe};
use crate::{Film, Result, WorldError, WorldLog, WorldOptions, WorldReport, layout, mp4};

/// Films `videos` of the finished world in folder `world` to `world/videos/NAME.mp4`, as `cuemark world make --mp4` would
/// have, and returns the files in the order of `videos`. Files that are there already are kept.
///
/// `progress` counts videos. Once it is stopped no further one is begun, and only those that are there are returned.
///
/// # Errors
/// When there is no finished world, it has no such video, `ffmpeg` is not there ([`WorldError::Ffmpeg`]), or the disk
/// refuses.
pub fn film_reels(world: &Utf8Path, videos: &[VideoId], progress: &Progress) -> Result<Vec<Utf8PathBuf>> {
    mp4::check_program()?;
    let made = Made::open(world)?;
    let films = made.films(videos)?;
    let camera = reel_camera(&made.options);
    let folder = world.join("videos");
    progress.phase("filming", films.len());
    films.par_iter().filter(|_| !progress.is_stopped()).try_for_each(|film| {
        mp4::write(film, &camera, made.options.seed, &folder, Overwrite::Never)?;
        // Stopped or not, this one is there.
        let _ = progress.advance(1);
        Ok::<(), WorldError>(())
    })?;
    Ok(films.iter().map(|film| mp4::path(film, &folder)).filter(|path| path.is_file()).collect())
}

/// What somebody sees who watches those files, without `ffmpeg` and without files: the strongest clip features of the same pictures
/// at the size that eyes look at, in the store `world/features-reels`, whose path is returned. The world's own features are of a
/// smaller and noisier picture. A store that has the videos already is kept.
///
/// `progress` counts videos.
///
/// # Errors
/// When there is no finished world, it has no such video, `progress` is stopped, or the disk refuses.
pub fn watch_reels(world: &Utf8Path, videos: &[VideoId], progress: &Progress) -> Result<Utf8PathBuf> {
    let made = Made::open(world)?;
    let films = made.films(videos)?;
    let folder = world_folder::features(world, "reels");
    let mut recipe = visual_recipe(&made.options, Strength::Motion, clip_len())?;
    recipe.settings.insert("pictures".to_owned(), "those of its video files".to_owned());
    let recipes = [(VISUAL.to_owned(), recipe)];
    let store = StoreWriter::create(&folder, recipes.clone().into(), Overwrite::Never)?;
    let known = store.shard_videos(0)?.unwrap_or_default();
    if videos.iter().all(|video| known.binary_search(video).is_ok()) {
        return Ok(folder);
    }
    let camera = reel_camera(&made.options);
    progress.phase("watching", films.len());
    let watched = films.par_iter().map(|film| {
        let frames = camera.shoot(film, frame_noise(made.options.seed, film));
        let clips = view(frames.map(|frame| frame.shrunk(REEL_SCALE)));
        progress.advance(1)?;
        let seen = sight::features(&clips, Strength::Motion);
        Ok::<_, WorldError>(VideoFeatures { video: film.video.clone(), streams: vec![(VISUAL.to_owned(), seen)] })
    });
    let watched = watched.collect::<Result<Vec<_>>>()?;
    StoreWriter::create(&folder, recipes.into(), Overwrite::Force)?.write_shard(0, &watched)?;
    Ok(folder)
}

/// A finished world.
struct Made<'a> {
    folder: &'a Utf8Path,
    options: WorldOptions,
    log: WorldLog,
}

impl<'a> Made<'a> {
    fn open(folder: &'a Utf8Path) -> Result<Self> {
        let report: WorldReport = Document::read(&Source::new(folder.join(layout::MANIFEST)))?.root().decode()?;
        Ok(Self { folder, options: report.options, log: WorldLog::open(folder)? })
    }

    fn films(&self, videos: &[VideoId]) -> Result<Vec<&Film>> {
        let unknown =
            |video: &VideoId| WorldError::from(ReadError::file(self.folder, format!("there is no video `{video}`")));
        videos.iter().map(|video| self.log.film_of(video).ok_or_else(|| unknown(video))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WorldOptions, make};

    #[test]
    fn a_finished_world_gets_the_files_that_it_would_have_been_made_with() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
        let options = WorldOptions { videos: 8, length: 12.0, ..WorldOptions::default() };
        make(&options, &at("plain"), &Progress::new()).unwrap();
        make(&WorldOptions { reels: crate::Reels::Mp4, ..options }, &at("filmed"), &Progress::new()).unwrap();
        let log = WorldLog::open(&at("plain")).unwrap();
        let videos: Vec<VideoId> = log.films().iter().rev().take(2).map(|film| film.video.clone()).collect();
        let stopped = Progress::new();
        stopped.stop();
        assert!(film_reels(&at("plain"), &videos, &stopped).unwrap().is_empty());
        let files = film_reels(&at("plain"), &videos, &Progress::new()).unwrap();
        let names: Vec<&str> = files.iter().filter_map(|file| file.file_stem()).collect();
        assert_eq!(names, videos.iter().map(VideoId::as_str).collect::<Vec<_>>());
        for file in &files {
            let twin = at("filmed").join("videos").join(file.file_name().unwrap());
            assert_eq!(std::fs::read(file).unwrap(), std::fs::read(twin).unwrap(), "{file}");
        }
        let stranger = film_reels(&at("plain"), &[VideoId::new("nobody")], &Progress::new()).unwrap_err();
        assert!(stranger.to_string().contains("there is no video `nobody`"), "{stranger}");
    }

    #[test]
    fn films_can_be_watched_without_a_file_and_once_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let world = Utf8PathBuf::from_path_buf(folder.path().join("world")).unwrap();
        let options = WorldOptions { videos: 8, length: 12.0, ..WorldOptions::default() };
        make(&options, &world, &Progress::new()).unwrap();
        let log = WorldLog::open(&world).unwrap();
        let videos: Vec<VideoId> = log.films().iter().rev().take(2).map(|film| film.video.clone()).collect();
        let stopped = Progress::new();
        stopped.stop();
        assert!(matches!(watch_reels(&world, &videos, &stopped), Err(WorldError::Stopped(_))));
        let store = watch_reels(&world, &videos, &Progress::new()).unwrap();
        let open = |store: &Utf8Path| cuemark_features::open(store, &cuemark_features::OpenOptions::default()).unwrap();
        let (watched, stored) = (open(&store), open(&world_folder::features(&world, "motion")));
        assert_eq!(watched.videos(VISUAL).len(), 2);
        for video in &videos {
            let (a, b) = (watched.get(video, VISUAL).unwrap(), stored.get(video, VISUAL).unwrap());
            assert_eq!((a.rows(), a.width()), (b.rows(), b.width()), "{video}");
            assert!(a.data() != b.data(), "{video}: the same camera");
        }
        let made =
            |store: &Utf8Path| std::fs::metadata(store.join("shard-00000.safetensors")).unwrap().modified().unwrap();
        let first = made(&store);
        assert_eq!(made(&watch_reels(&world, &videos[..1], &Progress::new()).unwrap()), first);
        assert!(watch_reels(&world, &[VideoId::new("nobody")], &Progress::new()).is_err());
    }
}
