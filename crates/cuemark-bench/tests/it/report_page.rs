//! The page as people meet it: in a browser, through a validator, with queries that nobody would wish for.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_bench::report::{About, Answerer, Measure, QueryText, Report, ReportOptions, Runs, score_baselines};
use cuemark_core::{Extra, Prediction, Predictions, Progress, Query, QueryPredictions, Rng, Span, Truth, Video};
use cuemark_formats::Overwrite;
use cuemark_metrics::Bootstrap;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// What a dataset, a run folder or a query may be called.
const HOSTILE: [&str; 4] = [
    "<script>window.hacked = 1</script>",
    "\"><img src=x onerror=\"window.hacked = 1\">",
    "</style></svg></title><iframe src=javascript:window.hacked=1>",
    "nul \u{0} turned \u{202e} and \u{fffe} gone",
];

fn truths(n: usize) -> Vec<Truth> {
    let mut rng = Rng::new(7);
    let truth = |k: usize| {
        let words = ["opens the door", "closes the box", "runs away", "sits down"];
        let text = HOSTILE.get(k).map_or_else(|| format!("person {k} {}", words[k % 4]), |text| (*text).to_owned());
        let start = 20.0 * rng.uniform();
        let span = Span::new(start, start + 3.0 + 12.0 * rng.uniform()).unwrap();
        let video = Video::new(format!("video {} <b>", k / 3).as_str(), 40.0);
        Truth::single(Query { id: k.to_string().as_str().into(), text }, video, [span])
    };
    (0..n).map(truth).collect()
}

/// Answers that are off by up to `noise` seconds.
fn answers(truths: &[Truth], noise: f64, seed: u64) -> Predictions {
    let mut rng = Rng::new(seed);
    let list = |truth: &Truth| {
        let right = truth.right().next().unwrap().span;
        let mut one = |score: f64| {
            let start = (right.start() + noise * (rng.uniform() - 0.5)).max(0.0);
            let span = Span::new(start, start + right.len()).unwrap();
            Prediction { video: None, span, score: Some(score * right.iou(span).max(0.05)) }
        };
        let ranked = vec![one(1.0), one(0.5)];
        QueryPredictions { query: truth.query.id.clone(), ranked, saliency: None, extra: Extra::default() }
    };
    Predictions::any(truths.iter().map(list).collect())
}

/// Two methods, one of them with a hostile name, on two splits, with a probe and the baselines.
fn report() -> Report {
    let measure = Measure { bootstrap: Bootstrap { resamples: 50, ..Bootstrap::default() }, ..Measure::default() };
    let mut runs = Runs::default();
    let truths = truths(120);
    for (split, worse) in [("test-iid", 1.0), ("test-ood", 2.0)] {
        let place =
            About { dataset: "made-up <i>".into(), protocol: "cd".into(), split: split.into(), ..About::default() };
        for (n, model) in ["careful", HOSTILE[1]].into_iter().enumerate() {
            for seed in 0..2 {
                let about = About { model: model.into(), kind: Answerer::Model, seed: Some(seed), ..place.clone() };
                let found = answers(&truths, worse * (6.0 + 18.0 * n as f64), seed);
                runs.add(measure.run(about.clone(), &truths, &found, &Progress::new()).unwrap(), &truths);
                let wrong = About { text: QueryText::WrongQuery, ..about };
                let found = answers(&truths, 40.0, seed);
                runs.add(measure.run(wrong, &truths, &found, &Progress::new()).unwrap(), &truths);
            }
        }
        for baseline in score_baselines(&place, &truths, &truths, &measure, 0, &Progress::new()).unwrap() {
            runs.add(baseline, &truths);
        }
    }
    let notes = vec![format!("a remark {}", HOSTILE[2])];
    Report::of(runs, ReportOptions { title: HOSTILE[0].to_owned(), notes, ..ReportOptions::default() }).unwrap()
}

fn written(folder: &Utf8Path) -> Utf8PathBuf {
    report().write(folder, Overwrite::Never).unwrap().remove(0)
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

/// A program that CI installs (`cargo xtask test` lists them) and a person may not have.
#[allow(clippy::print_stderr)] // Tests have no other way to tell a person that they checked nothing.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "`{program}` is not installed");
    if !found {
        eprintln!("SKIPPED (no `{program}`): {}", std::thread::current().name().unwrap_or_default());
    }
    found
}

#[test]
fn the_page_passes_a_validator() {
    if !there("tidy") {
        return;
    }
    let (_guard, folder) = folder();
    let page = written(&folder);
    let output = Command::new("tidy").args(["-errors", "-quiet", "-utf8", page.as_str()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Tidy does not know two attributes of the current standard on buttons and tables' cells; everything else counts.
    let problems: Vec<&str> = said.lines().filter(|line| !line.contains("proprietary attribute")).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn hostile_text_is_text_in_every_file() {
    let (_guard, folder) = folder();
    let page = written(&folder);
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<script").count(), 1, "only ours");
    assert!(
        !html.contains("<img") && !html.contains("<iframe") && !html.contains("<b>\"") && !html.contains('\u{202e}')
    );
    assert!(!html.contains("http://") && !html.contains("https://"), "the page names no other place");
    let markdown = std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(!markdown.contains("<script") && !markdown.contains("<img"));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["title"], HOSTILE[0], "data keeps what was said");
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    assert!(report().to_html() == report().to_html(), "a difference of half a megabyte helps nobody");
}

#[test]
fn a_browser_shows_every_figure_sorts_every_table_and_has_nothing_to_complain_about() {
    if !there("chromedriver") {
        return;
    }
    let (_guard, folder) = folder();
    let page = written(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let driver = Driver::start();
        let client = driver.client().await;
        client.goto(&format!("file://{page}")).await.unwrap();
        no_script_but_ours_ran(&client).await;
        every_figure_is_visible(&client).await;
        tables_sort(&client).await;
        darkness_is_dark(&client).await;
        let log = client.issue_cmd(Chrome("se/log", json!({ "type": "browser" }))).await.unwrap();
        assert_eq!(log, json!([]), "the console is empty");
        client.close().await.unwrap();
    });
}

async fn js(client: &Client, script: &str) -> Value {
    client.execute(script, Vec::new()).await.unwrap()
}

async fn no_script_but_ours_ran(client: &Client) {
    assert_eq!(js(client, "return window.hacked === undefined").await, true);
    assert_eq!(
        js(client, "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length")
            .await,
        0
    );
    assert_eq!(js(client, "return document.querySelector('h1').textContent").await, HOSTILE[0]);
}

async fn every_figure_is_visible(client: &Client) {
    let script = "return [...document.querySelectorAll('figure svg')].map(svg => svg.getBoundingClientRect()) \
                  .map(box => Math.min(box.width, box.height))";
    let sizes = js(client, script).await;
    let sizes = sizes.as_array().unwrap();
    assert!(sizes.len() > 20, "{} figures", sizes.len());
    assert!(sizes.iter().all(|size| size.as_f64().unwrap() > 20.0), "{sizes:?}");
    let wide = js(client, "return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
    assert_eq!(wide, 0, "nothing but tables scrolls sideways");
}

async fn tables_sort(client: &Client) {
    let column = "const t = document.querySelector('#s2 table.sortable'); \
                  return [...t.tBodies[0].rows].map(row => Number(row.cells[2].dataset.value))";
    for (presses, order) in [(1, "descending"), (2, "ascending")] {
        let heading = client.find(Locator::Css("#s2 table.sortable thead th:nth-child(3) button")).await.unwrap();
        heading.click().await.unwrap();
        let values: Vec<f64> =
            js(client, column).await.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
        let falls = values.windows(2).all(|pair| pair[0] >= pair[1]);
        let rises = values.windows(2).all(|pair| pair[0] <= pair[1]);
        assert!(
            values.len() >= 7 && if order == "descending" { falls && !rises } else { rises && !falls },
            "{values:?}"
        );
        let said = "return document.querySelector('#s2 table.sortable th[aria-sort]').getAttribute('aria-sort')";
        assert_eq!(js(client, said).await, order, "after {presses}");
    }
}

async fn darkness_is_dark(client: &Client) {
    let lightness = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b)";
    let mut seen = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let command = Chrome("goog/cdp/execute", json!({ "cmd": "Emulation.setEmulatedMedia", "params": media }));
        client.issue_cmd(command).await.unwrap();
        seen.push(js(client, lightness).await.as_f64().unwrap());
    }
    assert!(seen[0] > 700.0 && seen[1] < 120.0, "{seen:?}");
}

/// A command of Chrome's own driver: its path and what it is told.
#[derive(Debug)]
struct Chrome(&'static str, Value);

impl WebDriverCompatibleCommand for Chrome {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.1.to_string()))
    }
}

/// Chrome's driver on a port of its own choice, ended with the test.
struct Driver {
    process: Child,
    port: u16,
    /// Kept open: a driver that cannot say anything ends.
    _output: BufReader<ChildStdout>,
}

impl Driver {
    fn start() -> Self {
        let mut process = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        // It first repeats the port it was asked for, which is 0.
        let port = loop {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the driver said nothing more");
            let named =
                line.split_once("on port ").and_then(|(_, rest)| rest.trim().trim_end_matches('.').parse().ok());
            if let Some(port) = named.filter(|port| *port != 0) {
                break port;
            }
        };
        Self { process, port, _output: output }
    }

    async fn client(&self) -> Client {
        let capabilities = json!({
            "goog:chromeOptions": { "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"] },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let Value::Object(capabilities) = capabilities else { unreachable!() };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        builder.connect(&format!("http://127.0.0.1:{}", self.port)).await.unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
