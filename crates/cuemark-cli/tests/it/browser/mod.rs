//! The page in a real browser: world videos are filmed, indexed, served; a question is typed, a moment played, judged, cut, linked
//! to. Then the same with three real videos and ten of the world, indexed by what is recognised in them.
//!
//! Needs Debian's `chromium` and `chromium-driver`; `cargo xtask test` installs them, and axe-core below the build folder. With
//! `CUEMARK_SCREENSHOTS=DIR` the pictures of the world's page are kept there.

mod axe;
mod driver;

use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use driver::{Browser, browser, cuemark, serve};

const ENTER: char = '\u{E007}';
const DOWN: char = '\u{E015}';
const ESCAPE: char = '\u{E00C}';
const RIGHT: char = '\u{E014}';

const CARDS: &str =
    "return document.querySelectorAll('#results .card').length >= 3 && !document.querySelector('#results.loading')";
const CLOCK: &str = "return document.getElementById('video').currentTime";

#[test]
fn a_question_typed_into_the_page_finds_moments_that_can_be_played_judged_cut_and_linked_to() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let at = |name: &str| folder.join(name).into_string();
    cuemark(&["world", "make", "--out", &at("world"), "--videos", "24", "--mp4", "--seed", "4"]);
    let run = cuemark_testkit::fixture("runs/small-mmn.toml");
    cuemark(&["train", run.as_str(), "--set", &format!("data.root={}", at("world")), "--out", &at("run")]);
    let late = folder.join("late");
    std::fs::create_dir(&late).unwrap();
    // Two films come later, through the page.
    let mut films: Vec<Utf8PathBuf> =
        folder.join("world/videos").read_dir_utf8().unwrap().map(|film| film.unwrap().into_path()).collect();
    films.sort();
    for film in films.iter().take(2) {
        std::fs::rename(film, late.join(film.file_name().unwrap())).unwrap();
    }
    let made = cuemark(&[
        "index",
        "create",
        &at("index"),
        "--encoder",
        &at("run"),
        &at("world/videos"),
        "--tag",
        "early",
        "--json",
    ]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["added"]["failed"], 0, "{made:#}");
    let videos = made["status"]["videos"].as_u64().unwrap();
    assert!(videos >= 10, "{made:#}");

    let (server, url) = serve(&folder.join("index"), None, &["--allow-add", late.as_str()]);
    let (_driver, browser) = browser();
    let axe = axe::Axe::find();
    let pictures = std::env::var("CUEMARK_SCREENSHOTS").ok().map(Utf8PathBuf::from);
    let picture = |name: &str| browser.screenshot(pictures.as_deref(), name);

    browser.go(&url);
    browser.wait("the box to have the focus", "return document.activeElement.id === 'q'");
    browser.wait("what there is", "return !document.getElementById('offers').hidden");
    axe.check(&browser, "the empty page");
    browser.keys(&format!("the red ball spins{ENTER}"));
    browser.wait("ranked moments", CARDS);
    chances_fall(&browser);
    assert_eq!(browser.run("return location.search"), "?q=the+red+ball+spins");
    unfolded(&browser);
    let loaded =
        "return [...document.querySelectorAll('.card img')].slice(0, 3).every(i => i.complete && i.naturalWidth > 0)";
    browser.wait("thumbnails", loaded);
    browser.wait("strips", "return document.querySelectorAll('.strip .bar').length > 0");
    picture("search-desktop.png");
    axe.check(&browser, "answers");

    // By the keyboard alone: down to the first answer, and play it.
    browser.run("document.getElementById('q').focus()");
    browser.keys(&format!("{DOWN}{ENTER}"));
    let end = plays_inside_its_span(&browser);
    let stopped =
        format!("const v = document.getElementById('video'); return v.paused && v.currentTime >= {}", end - 0.5);
    browser.wait("the moment to end", &stopped);
    picture("search-playing.png");
    axe.check(&browser, "the player");
    stops_once_and_then_obeys(&browser, end);
    stands_beside_the_list_where_there_is_room(&browser);
    can_be_judged(&browser, &folder.join("index"));
    can_be_cut_and_linked_to(&browser, &url);
    lines_are_marked_and_lead_there(&browser);
    closes_with_a_new_question(&browser);
    filters_hold(&browser);
    a_phone_has_nothing_to_scroll_sideways(&browser, &url, &axe, &picture);
    darkness_is_dark(&browser, &url, &axe);
    films_are_added_while_one_looks(&browser, &url, videos);
    a_film_that_is_removed_meanwhile_is_said(&browser, &url, &folder.join("index"));

    // Nothing to find and nothing to understand are said, not left blank.
    browser.go(&format!("{url}/?like=nobody:1-2"));
    browser.wait("the error", "return document.querySelector('#status.error')?.textContent.includes('nobody')");
    axe.check(&browser, "a refusal");
    a_server_that_goes_away_is_missed_and_found_again(&browser, &url, server, &folder.join("index"));

    real_videos(&browser, &folder);
}

fn chances_fall(browser: &Browser) {
    // A percentage where probabilities were fitted, the length of a bar where they are a guess.
    let chances = "return [...document.querySelectorAll('.chance')].map(e => parseInt(e.textContent || e.querySelector('.meter span').style.width))";
    let chances = browser.run(chances);
    let chances: Vec<i64> = chances.as_array().unwrap().iter().map(|chance| chance.as_i64().unwrap()).collect();
    assert!(chances.windows(2).all(|pair| pair[0] >= pair[1]), "not best first: {chances:?}");
}

/// Shows the weaker answers too, which are folded away at first.
fn unfolded(browser: &Browser) {
    let folded = browser.run("return document.querySelectorAll('#results > li[hidden]').length").as_u64().unwrap();
    let told = browser.run("const b = document.getElementById('weaker'); return b.hidden ? '' : b.textContent");
    assert_eq!(told.as_str().unwrap().contains(&folded.to_string()), folded > 0, "{told} of {folded}");
    if folded > 0 {
        browser.run("document.getElementById('weaker').click()");
        assert_eq!(browser.run("return document.querySelectorAll('#results > li[hidden]').length"), 0);
    }
}

/// Watches the first answer play, and says where it should end.
fn plays_inside_its_span(browser: &Browser) -> f64 {
    let playing = "const v = document.getElementById('video'); return v.readyState >= 2 && v.currentTime > 0";
    browser.wait("the video to play", playing);
    let span = browser.run("const d = document.querySelector('#results li').dataset; return [+d.start, +d.end]");
    let (start, end) = (span[0].as_f64().unwrap(), span[1].as_f64().unwrap());
    let mut seen = Vec::new();
    for _ in 0..20 {
        let now = browser.run(CLOCK).as_f64().unwrap();
        assert!(start - 0.05 <= now && now <= end + 0.3, "at {now} s, outside {start} – {end}");
        seen.push(now);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(seen.last() > seen.first() || *seen.last().unwrap() >= end - 0.5, "it stands still: {seen:?}");
    end
}

/// Pressing play after the end plays on, and going elsewhere stays there: nobody is stopped twice.
fn stops_once_and_then_obeys(browser: &Browser, end: f64) {
    let duration = browser.run("return document.getElementById('video').duration").as_f64().unwrap();
    if duration > end + 1.5 {
        browser.run("document.getElementById('video').play()");
        let on =
            format!("const v = document.getElementById('video'); return !v.paused && v.currentTime > {}", end + 0.4);
        browser.wait("the film to play on", &on);
    }
    // Into the middle of the moment, and over its end.
    browser.run(&format!(
        "const v = document.getElementById('video'); v.pause(); v.currentTime = {}",
        (end - 0.6).max(0.0)
    ));
    browser.run("document.getElementById('video').play()");
    let over = format!(
        "const v = document.getElementById('video'); return v.ended || v.currentTime > {}",
        (end + 0.3).min(duration - 0.1)
    );
    browser.wait("the film to play over the end", &over);
    browser.run("const v = document.getElementById('video'); v.pause(); v.currentTime = 0.5");
    std::thread::sleep(Duration::from_millis(300));
    let now = browser.run(CLOCK).as_f64().unwrap();
    assert!((now - 0.5).abs() < 0.2, "sent to 0.5 s, it is at {now}");
}

fn stands_beside_the_list_where_there_is_room(browser: &Browser) {
    let boxes = "const b = (id) => document.getElementById(id).getBoundingClientRect(); \
                 return [b('found').right, b('player').left, b('player').top, b('found').top, b('player').bottom]";
    let wide = browser.run(boxes);
    assert!(wide[0].as_f64() <= wide[1].as_f64(), "not beside it: {wide}");
    browser.size(900, 900);
    let narrow = browser.run(boxes);
    assert!(narrow[4].as_f64() <= narrow[3].as_f64(), "not above it: {narrow}");
    browser.size(1280, 900);
}

/// Right in one click, ends by hand and by keyboard, kept where `index eval` reads them.
fn can_be_judged(browser: &Browser, index: &Utf8Path) {
    browser.run("document.querySelector('#results .right').click()");
    browser
        .wait("the verdict", "return document.querySelector('#player .right').getAttribute('aria-pressed') === 'true'");
    browser.run("document.querySelectorAll('#results .wrong')[1].click()");
    browser.wait(
        "the other verdict",
        "return document.querySelectorAll('#results .wrong')[1].getAttribute('aria-pressed') === 'true'",
    );
    let ends = "return [...document.querySelectorAll('.handle')].map(h => +h.getAttribute('aria-valuenow'))";
    let before = browser.run(ends);
    browser.drag("#from", -40);
    let dragged = browser.run(ends);
    assert!(dragged[0].as_f64() <= before[0].as_f64() && dragged[1] == before[1], "{before} became {dragged}");
    browser.run("document.getElementById('to').focus()");
    browser.keys(&RIGHT.to_string().repeat(3));
    let moved = browser.run(ends);
    let by = moved[1].as_f64().unwrap() - dragged[1].as_f64().unwrap();
    let most = browser.run("return +document.getElementById('to').getAttribute('aria-valuemax')").as_f64().unwrap();
    assert!((by - 0.3).abs() < 0.05 || moved[1].as_f64().unwrap() >= most - 0.05, "{dragged} became {moved}");
    browser.run("document.getElementById('keep-ends').click()");
    browser.wait("the ends to be kept", "return document.getElementById('keep-ends').hidden");

    let kept = std::fs::read_to_string(index.join("judged.jsonl")).unwrap();
    let last: Value = serde_json::from_str(kept.lines().last().unwrap()).unwrap();
    assert_eq!((&last["query"], &last["judged"]["verdict"]), (&json!("the red ball spins"), &json!("right")));
    let same = |end: usize| last["moments"][0]["span"][end].as_f64() == moved[end].as_f64();
    assert!(same(0) && same(1), "{last} is not {moved}");
    let measured: Value = serde_json::from_str(&cuemark(&["index", "eval", index.as_str(), "--json"])).unwrap();
    assert_eq!(measured["queries"], 1, "{measured:#}");
    let named = index.join("judged.jsonl");
    let measured = cuemark(&["index", "eval", index.as_str(), "--truth", named.as_str(), "--json"]);
    assert!(serde_json::from_str::<Value>(&measured).unwrap()["queries"].as_u64().unwrap() >= 1);

    // Another tab has another opinion; this one learns of it when it is looked at again.
    let other = "const d = document.querySelector('#results li').dataset; \
                 fetch('/api/v1/judged', { method: 'POST', headers: { 'Content-Type': 'application/json' }, \
                 body: JSON.stringify({ query: 'the red ball spins', video: d.video, start: +d.start, end: +d.end, verdict: 'wrong' }) }) \
                 .then(r => done(r.status))";
    assert_eq!(browser.run_later(other), 201);
    browser.run("dispatchEvent(new Event('visibilitychange'))");
    browser.wait(
        "the other tab's verdict",
        "return document.querySelector('#player .wrong').getAttribute('aria-pressed') === 'true'",
    );
    // The same again takes it back.
    browser.run("document.querySelector('#player .wrong').click()");
    browser.wait(
        "it to be taken back",
        "return document.querySelector('#player .wrong').getAttribute('aria-pressed') === 'false'",
    );
}

fn can_be_cut_and_linked_to(browser: &Browser, url: &str) {
    let clip = "fetch(document.getElementById('clip').href).then(async r => \
                done([r.status, r.headers.get('content-type'), (await r.blob()).size]), e => done(String(e)))";
    let clip = browser.run_later(clip);
    assert_eq!((&clip[0], &clip[1]), (&json!(200), &json!("video/mp4")), "{clip}");
    assert!(clip[2].as_u64().unwrap() > 1000, "{clip}");
    let link = browser.run("return location.href");
    let link = link.as_str().unwrap().to_owned();
    assert!(link.contains("&play=") && link.contains("#t="), "{link}");
    let told = browser.run("return document.getElementById('playing-name').textContent");
    browser.go("about:blank");
    browser.go(&link);
    browser.wait("the linked moment to play", "return document.getElementById('video').currentTime > 0");
    assert_eq!(browser.run("return document.getElementById('playing-name').textContent"), told);
    // A moment that no question led to.
    let name = told.as_str().unwrap();
    browser.go(&format!("{url}/?play={name}#t=1.5,2.5"));
    browser.wait("that moment to play", "return document.getElementById('video').currentTime >= 1.5");
    browser.wait("it to end", "const v = document.getElementById('video'); return v.paused && v.currentTime > 2.3");
    browser.go(&link);
    browser.wait("the answers again", CARDS);
}

/// An index with tracks says what is said and written; the page is told so here in the server's place.
fn lines_are_marked_and_lead_there(browser: &Browser) {
    assert_eq!(browser.run("return document.getElementById('lines').hidden"), true, "an index without tracks");
    let pretend = "window.ours ||= window.fetch; window.fetch = (url, more) => String(url).endsWith('/lines') \
        ? Promise.resolve(new Response(JSON.stringify({ lines: [ \
            { track: 'said', start: 0.5, end: 1.5, text: 'Look how it spins <b>away</b>' }, \
            { track: 'written', start: 2, end: 4, text: 'RED BALLS' } ] }))) : window.ours(url, more); \
        document.getElementById('again').click()";
    browser.run(pretend);
    browser.wait("lines", "return document.querySelectorAll('#line-list li').length === 2");
    let marks = browser.run("return [...document.querySelectorAll('#line-list mark')].map(m => m.textContent)");
    assert_eq!(marks, json!(["spins", "RED", "BALLS"]));
    assert_eq!(browser.run("return document.querySelectorAll('#line-list b').length"), 0, "text is text");
    browser.run("document.querySelectorAll('#line-list button')[1].click()");
    browser.wait("the line's second", "const t = document.getElementById('video').currentTime; return t >= 2 && t < 4");
    browser.wait(
        "the line to be marked",
        "return document.querySelectorAll('#line-list li')[1].getAttribute('aria-current') === 'true'",
    );
    browser.run("window.fetch = window.ours; document.getElementById('video').pause()");
}

fn closes_with_a_new_question(browser: &Browser) {
    browser.run("document.getElementById('q').focus(); document.getElementById('q').select()");
    browser.keys(&format!("the blue box enters{ENTER}"));
    browser.wait("the player to close", "return document.getElementById('player').hidden");
    browser.wait("other answers", CARDS);
    assert_eq!(
        browser.run("return document.getElementById('video').getAttribute('src')"),
        Value::Null,
        "the film is let go of"
    );
}

fn filters_hold(browser: &Browser) {
    let film = browser.run("return document.querySelector('#film option:last-child').value");
    browser.run("const s = document.getElementById('film'); s.selectedIndex = s.options.length - 1; s.dispatchEvent(new Event('change', { bubbles: true }))");
    let only = "const all = [...document.querySelectorAll('#results li')].map(i => i.dataset.video); \
                return !document.querySelector('#results.loading') && all.length > 0 && new Set(all).size === 1 && all[0]";
    assert_eq!(browser.wait("answers of one film", only), film);
    assert!(browser.run("return location.search").as_str().unwrap().contains("film="));
    browser.run("history.back()");
    browser.wait(
        "all films again",
        "return new Set([...document.querySelectorAll('#results li')].map(i => i.dataset.video)).size > 1",
    );
    browser.run("const s = document.getElementById('tag'); s.value = 'early'; s.dispatchEvent(new Event('change', { bubbles: true }))");
    browser.wait("the tag in the address", "return location.search.includes('tag=early')");
    browser.wait("tagged answers", CARDS);
}

fn a_phone_has_nothing_to_scroll_sideways(browser: &Browser, url: &str, axe: &axe::Axe, picture: &dyn Fn(&str)) {
    browser.size(390, 844);
    browser.go(&format!("{url}/?q=the+red+ball+spins"));
    browser.wait("ranked moments again", CARDS);
    unfolded(browser);
    let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(browser.run(fits), true);
    browser.wait("strips", "return document.querySelectorAll('.strip .bar').length > 0");
    picture("search-phone.png");
    browser.run("document.querySelectorAll('#results .card')[2].click()");
    browser.wait("the player", "return document.getElementById('video').currentTime > 0");
    assert_eq!(browser.run(fits), true, "with the player");
    let seen = "const b = document.getElementById('video').getBoundingClientRect(); return b.top >= 0 && b.top < innerHeight / 2";
    browser.wait("the player to be in view", seen);
    axe.check(browser, "a phone");
    browser.keys(&ESCAPE.to_string());
    browser.wait("it to close", "return document.getElementById('player').hidden");
    browser.size(1280, 900);
}

fn darkness_is_dark(browser: &Browser, url: &str, axe: &axe::Axe) {
    browser.scheme("dark");
    browser.go(&format!("{url}/?q=the+red+ball+spins"));
    browser.wait("ranked moments", CARDS);
    let sum = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b)";
    assert!(browser.run(sum).as_f64().unwrap() < 120.0);
    axe.check(browser, "the dark");
    browser.scheme("light");
}

fn films_are_added_while_one_looks(browser: &Browser, url: &str, videos: u64) {
    browser.go(url);
    browser.wait("the films", "return document.getElementById('open-films').textContent.startsWith('2')");
    browser.run("document.getElementById('open-films').click()");
    browser.run(
        "document.getElementById('add-tags').value = 'late'; window.heard = []; \
        new MutationObserver(() => window.heard.push(document.getElementById('job-text').textContent)) \
            .observe(document.getElementById('job-text'), { childList: true, characterData: true, subtree: true }); \
        document.getElementById('add').requestSubmit()",
    );
    browser.wait(
        "the films to be there",
        "return document.getElementById('add-status').textContent.startsWith('Done: 2 new')",
    );
    assert!(!browser.run("return window.heard").as_array().unwrap().is_empty(), "no progress was shown");
    let now = format!("return document.getElementById('open-films').textContent === '{} films'", videos + 2);
    browser.wait("the count", &now);
    browser.wait("the new tag", "return [...document.querySelectorAll('#tag option')].some(o => o.value === 'late')");
    browser.run("document.getElementById('films').close()");
}

/// A film that goes while it is in the player.
fn a_film_that_is_removed_meanwhile_is_said(browser: &Browser, url: &str, index: &Utf8Path) {
    browser.go(&format!("{url}/?tag=late&q=the+red+ball+spins"));
    browser.wait(
        "its moments",
        "return document.querySelectorAll('#results .card').length >= 1 && !document.querySelector('#results.loading')",
    );
    unfolded(browser);
    browser.run("document.querySelector('#results .card').click()");
    browser.wait("it to play", "return document.getElementById('video').currentTime > 0");
    let film = browser.run("return document.getElementById('playing-name').textContent");
    cuemark(&["index", "remove", index.as_str(), film.as_str().unwrap()]);
    // What is loaded plays on; whoever asks for it anew is told.
    browser.run("document.getElementById('close').click()");
    std::thread::sleep(Duration::from_millis(600));
    browser.run("document.querySelector('#results .card').click()");
    browser.wait(
        "word of it",
        "const b = document.getElementById('broken'); return !b.hidden && b.textContent.includes('not in the index')",
    );
}

fn a_server_that_goes_away_is_missed_and_found_again(
    browser: &Browser,
    url: &str,
    server: driver::Running,
    index: &Utf8Path,
) {
    drop(server);
    browser.run(
        "document.getElementById('q').value = 'the red ball spins'; document.getElementById('ask').requestSubmit()",
    );
    browser.wait("word of it", "return !document.getElementById('lost').hidden");
    let port = url.rsplit("//").next().unwrap();
    let (_server, again) = serve(index, None, &["--listen", port]);
    assert_eq!(again, url);
    browser.run("document.getElementById('retry').click()");
    browser.wait(
        "the answers by themselves",
        &format!("return document.getElementById('lost').hidden && (() => {{ {CARDS} }})()"),
    );
}

/// Three real videos and ten of the world: one command indexes, one serves; the question is about a real one.
fn real_videos(browser: &Browser, folder: &Utf8Path) {
    const SEEING: [&str; 3] = ["minilm", "i3d", "efficientnet-lite0"];
    let whole: Option<Vec<Utf8PathBuf>> = SEEING.into_iter().map(cuemark_testkit::weights).collect();
    let whole = whole.and_then(|mut caches| caches.pop());
    let (Some(videos), Some(whole)) = (cuemark_testkit::shared("data/videos"), whole) else {
        return;
    };
    // With what sees and nothing else: hearing and reading take as long again and have tests of their own.
    let cache = folder.join("cache");
    std::fs::create_dir_all(cache.join("weights")).unwrap();
    for name in SEEING {
        std::os::unix::fs::symlink(whole.join("weights").join(name), cache.join("weights").join(name)).unwrap();
    }
    let (films, short) = (folder.join("films"), folder.join("short"));
    cuemark(&["world", "make", "--out", films.as_str(), "--videos", "10", "--length", "10", "--mp4", "--seed", "5"]);
    std::fs::create_dir(&short).unwrap();
    for film in films.join("videos").read_dir_utf8().unwrap() {
        // Four seconds of each: looking at them is what takes this test its time.
        let film = film.unwrap().into_path();
        let mut cut = Command::new("ffmpeg");
        cut.args(["-v", "error", "-i", film.as_str(), "-t", "4", "-c", "copy"]);
        assert!(cut.arg(short.join(film.file_name().unwrap())).status().unwrap().success());
    }
    let index = folder.join("real");
    let mut create = Command::new(env!("CARGO_BIN_EXE_cuemark"));
    create.args(["index", "create", index.as_str(), videos.as_str(), short.as_str(), "--json"]);
    let made = create.env("CUEMARK_CACHE", &cache).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!((&made["added"]["new"], &made["added"]["failed"]), (&json!(13), &json!(0)), "{made:#}");

    let (_server, url) = serve(&index, Some(&cache), &[]);
    browser.size(1280, 900);
    browser.go(&url);
    browser.wait("the box to have the focus", "return document.activeElement.id === 'q'");
    // What is offered is what is recognised here.
    let offered =
        "const all = [...document.querySelectorAll('#offered option')].map(o => o.value); return all.length > 5 && all";
    let offered = browser.wait("offers", offered);
    assert!(offered.as_array().unwrap().iter().any(|text| text == "arm wrestling"), "{offered}");
    browser.keys(&format!("two men arm wrestling{ENTER}"));
    let first =
        "return !document.querySelector('#results.loading') && document.querySelector('#results li')?.dataset.video";
    // The one of the three in which two men wrestle.
    assert_eq!(browser.wait("ranked moments", first), "mmaction2_demo");
    let claims = "return document.querySelectorAll('.chance').length > 0 && ![...document.querySelectorAll('.chance')].some(c => c.textContent.includes('%'))";
    assert_eq!(browser.run(claims), true, "nobody has fitted these probabilities");
    browser.keys(&format!("{DOWN}{ENTER}"));
    plays_inside_its_span(browser);
}
