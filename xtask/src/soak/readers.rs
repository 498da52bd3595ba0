//! Clients that behave, and hold every answer to what it must be.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cuemark_core::Rng;

use super::Soak;
use crate::client::{ask, get};

/// Of words that the world uses: a question without any finds nothing.
const SENTENCES: [&str; 4] =
    ["the%20red%20ball%20spins", "a%20blue%20box%20moves", "the%20green%20ball", "the%20ball%20jumps"];

/// Asks one thing after another until the soak ends.
pub(super) fn read(soak: &Soak, mut rng: Rng) {
    while soak.goes_on() {
        let Some((address, life)) = soak.servers.address() else {
            soak.nap(Duration::from_millis(50));
            continue;
        };
        let asked = match rng.below(6) {
            0 | 1 => search(soak, &address, &mut rng),
            2 => range(soak, &address, &mut rng),
            3 => picture(soak, &address, &mut rng),
            4 => list(soak, &address),
            _ => get(&address, "/api/v1/health").and_then(|reply| {
                ensure!(reply.status == 200, "health: {}", reply.status);
                Ok(())
            }),
        };
        match asked {
            Ok(()) => soak.count("answers that were right"),
            Err(error) if soak.servers.is_same(life) => soak.complain(format!("a reader: {error:#}")),
            Err(_) => soak.count("requests whose server was killed"),
        }
        soak.nap(Duration::from_millis(20));
    }
}

fn search(soak: &Soak, address: &str, rng: &mut Rng) -> Result<()> {
    let sentence = rng.pick(&SENTENCES).context("no sentence")?;
    let mode = if rng.chance(0.3) { "&mode=exact" } else { "" };
    let began = Instant::now();
    let reply = get(address, &format!("/api/v1/search?q={sentence}&limit=20{mode}"))?;
    if reply.status == 503 {
        soak.count("searches told to come back");
        return Ok(());
    }
    let mut slowest = soak.slowest_search.lock().unwrap_or_else(PoisonError::into_inner);
    *slowest = slowest.max(began.elapsed());
    drop(slowest);
    ensure!(reply.status == 200, "search: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    let found = reply.json()?;
    let answers = found["answers"].as_array().context("no answers")?;
    ensure!(!answers.is_empty(), "search: nothing was found");
    let mut earlier = f64::INFINITY;
    for answer in answers {
        let video = answer["video"].as_str().context("no video")?.to_owned();
        ensure!(soak.stage.films.contains(&video) || soak.stage.passing.contains(&video), "search: who is `{video}`?");
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
        let (start, end, length, chance) =
            (number("start")?, number("end")?, number("duration")?, number("probability")?);
        // A film may be taken out between the search and the look for its length.
        let inside = 0.0 <= start && start <= end && (end <= length + 2.0 || length == 0.0);
        ensure!(inside, "search: {start} to {end} s of {length} s");
        ensure!(chance <= earlier, "search: not the best first");
        earlier = chance;
    }
    Ok(())
}

fn range(soak: &Soak, address: &str, rng: &mut Rng) -> Result<()> {
    let film = rng.pick(&soak.stage.films).context("no film")?;
    let bytes = std::fs::read(soak.stage.film(film))?;
    let start = rng.below(bytes.len());
    let end = (start + 1 + rng.below(300_000)).min(bytes.len());
    let wanted = format!("Range: bytes={start}-{}\r\n", end - 1);
    let reply = ask(address, &format!("GET /api/v1/videos/{film}/media"), &wanted, "")?;
    ensure!(reply.status == 206, "range: {}", reply.status);
    ensure!(Some(&reply.body[..]) == bytes.get(start..end), "range {start} to {end} of {film}: other bytes");
    Ok(())
}

fn picture(soak: &Soak, address: &str, rng: &mut Rng) -> Result<()> {
    let film = rng.pick(&soak.stage.films).context("no film")?;
    let (at, width) = (rng.between(0.0, 8.0), 32 + rng.below(600));
    let reply = get(address, &format!("/api/v1/videos/{film}/thumbnail?at={at:.1}&width={width}"))?;
    if reply.status == 503 {
        soak.count("pictures told to come back");
        return Ok(());
    }
    let said = String::from_utf8_lossy(reply.body.get(..200).unwrap_or(&reply.body)).into_owned();
    ensure!(reply.status == 200 && reply.body.starts_with(&[0xff, 0xd8]), "picture: {} {said}", reply.status);
    Ok(())
}

fn list(soak: &Soak, address: &str) -> Result<()> {
    let reply = get(address, "/api/v1/videos?limit=1000")?;
    ensure!(reply.status == 200, "videos: {}", reply.status);
    let listed = reply.json()?;
    let videos = listed["videos"].as_array().context("no videos")?;
    for film in &soak.stage.films {
        ensure!(videos.iter().any(|video| video["id"] == film.as_str()), "videos: `{film}` is not there");
    }
    Ok(())
}
