//! Turns video files into clip features: films of the built-in world, written through ffmpeg, seen by the world's own encoder.
//!
//! `cargo run --example extract_features` (needs `ffmpeg`), or with videos of your own and an encoder whose weights you pulled:
//! `cargo run --example extract_features -- i3d VIDEO… STORE`

#![allow(clippy::print_stdout)] // an example talks to the terminal

use camino::{Utf8Path, Utf8PathBuf};
use cuemark::{Extract, Progress};
use cuemark_features::{OpenOptions, open};
use cuemark_world::{Reels, WorldOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            let folder = tempfile::tempdir()?;
            features_of_a_world(Utf8Path::from_path(folder.path()).ok_or("the path is no text")?)
        }
        [encoder, videos @ .., store] if !videos.is_empty() => extract_features(videos, encoder, store.into()),
        _ => Err("usage: extract_features [ENCODER VIDEO… STORE]".into()),
    }
}

/// Films eight short videos below `folder` and extracts their features.
pub fn features_of_a_world(folder: &Utf8Path) -> Result<(), Box<dyn std::error::Error>> {
    let films = folder.join("world");
    let options = WorldOptions { videos: 8, length: 10.0, reels: Reels::Mp4, ..WorldOptions::default() };
    cuemark_world::make(&options, &films, &Progress::new())?;
    // A folder stands for every video in it, as deep as it goes.
    extract_features(&[films.join("videos")], "world-motion", folder.join("store"))
}

/// Fills `store` with what `encoder` makes of `videos`.
fn extract_features(
    videos: &[impl AsRef<str>],
    encoder: &str,
    store: Utf8PathBuf,
) -> Result<(), Box<dyn std::error::Error>> {
    let request = Extract::new(videos.iter().map(AsRef::as_ref), encoder, store);
    let done = request.run(&Progress::new())?;
    println!("{} rows of {} videos", done.extracted.rows, done.extracted.videos);
    // A damaged film gives what it has, and is named; one that gives nothing is left out, and named too.
    for film in &done.extracted.partial {
        println!("{}: {:.1} s are missing", film.video, film.missing_seconds);
    }
    // The same request again finds everything there: stopped work goes on where it was.
    assert_eq!(request.run(&Progress::new())?.extracted.rows, 0);

    let source = open(&done.store, &OpenOptions::default())?;
    if let Some(video) = source.videos("visual").first() {
        let features = source.get(video, "visual")?;
        let clip = source.clip_len(video, "visual", features.rows())?;
        println!("`{video}`: {} clips of {} s, {} numbers each", features.rows(), clip.seconds(), features.width());
    }
    Ok(())
}
