//! Video files for some videos of a world that is made already.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, VideoId};
use cuemark_formats::json::Document;
use cuemark_formats::{Overwrite, ReadError, Source};
use rayon::prelude::*;

use crate::make::reel_camera;
use crate::{Film, Result, WorldError, WorldLog, WorldReport, layout, mp4};

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
    let report: WorldReport = Document::read(&Source::new(world.join(layout::MANIFEST)))?.root().decode()?;
    let log = WorldLog::open(world)?;
    let unknown = |video: &VideoId| WorldError::from(ReadError::file(world, format!("there is no video `{video}`")));
    let films = videos.iter().map(|video| log.film_of(video).ok_or_else(|| unknown(video)));
    let films = films.collect::<Result<Vec<&Film>>>()?;
    let camera = reel_camera(&report.options);
    let folder = world.join("videos");
    progress.phase("filming", films.len());
    films.par_iter().filter(|_| !progress.is_stopped()).try_for_each(|film| {
        mp4::write(film, &camera, report.options.seed, &folder, Overwrite::Never)?;
        // Stopped or not, this one is there.
        let _ = progress.advance(1);
        Ok::<(), WorldError>(())
    })?;
    Ok(films.iter().map(|film| mp4::path(film, &folder)).filter(|path| path.is_file()).collect())
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
}
