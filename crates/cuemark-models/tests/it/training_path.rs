//! The reference fixtures through the way that training goes: a batch in, `Model::loss` out.
//!
//! Where a loss draws negatives at random, as the reference does, only its parts that draw nothing can be compared (XML, ReLoCLNet).
//! RMMN's fixture has no network; that of MMN is its own where nothing is filtered. MS-SL's has clips that its frames do not give, and is
//! held to its reference by `check` alone.

use cuemark_core::NormSpan;
use cuemark_models::check::Fixture;
use cuemark_models::{
    Batch, EndClip, Given, Loss, Negatives, Phrases, QueryBatch, Targets, TokenVectors, VideoBatch, registry,
};
use cuemark_tensor::{DType, Device, Params, Pass, Tensor};

fn fixture(name: &str) -> Option<Fixture> {
    let path = cuemark_testkit::shared("parity")?.join(format!("{name}.safetensors"));
    Some(Fixture::open(&path, &Device::Cpu).unwrap())
}

/// What the reference gives under a name.
fn wanted(fixture: &Fixture, name: &str) -> f32 {
    fixture.tensor(&format!("loss.{name}")).unwrap().to_scalar().unwrap()
}

fn assert_near(fixture: &Fixture, name: &str, found: f64) {
    let (wanted, tolerance) = (f64::from(wanted(fixture, name)), fixture.tolerance());
    let allowed = tolerance.abs.max(tolerance.rel * wanted.abs());
    assert!((found - wanted).abs() <= allowed, "{} {name}: {found} instead of {wanted}", fixture.model());
}

fn total(loss: &Loss) -> f64 {
    f64::from(loss.total.to_scalar::<f32>().unwrap())
}

fn part(loss: &Loss, name: &str) -> f64 {
    let (_, part) = loss.parts.iter().find(|(known, _)| *known == name).unwrap();
    f64::from(part.to_scalar::<f32>().unwrap())
}

/// The loss of a batch by the fixture's weights. The reference ran without dropout and with fixed statistics: so does this pass.
fn loss(fixture: &Fixture, settings: &str, given: &Given, batch: &Batch) -> Loss {
    loss_of(fixture.model(), fixture, settings, given, batch)
}

/// As [`loss`], of another method that has the same parameters.
fn loss_of(model: &str, fixture: &Fixture, settings: &str, given: &Given, batch: &Batch) -> Loss {
    let params = Params::loaded(fixture.parameters(), &Device::Cpu);
    let card = registry::find(model).unwrap();
    let model = card.build(&settings.parse().unwrap(), given, params.builder()).unwrap();
    model.loss(batch, &Pass::answering()).unwrap()
}

fn videos(visual: Tensor, subtitle: Option<Tensor>, mask: Option<Tensor>) -> VideoBatch {
    let (count, clips, _) = visual.dims3().unwrap();
    let mask = mask.unwrap_or_else(|| Tensor::ones((count, clips), DType::F32, &Device::Cpu).unwrap());
    let lengths: Vec<usize> = lengths(&mask);
    VideoBatch {
        ids: (0..count).map(|n| format!("v{n}").as_str().into()).collect(),
        visual,
        subtitle,
        audio: None,
        durations: lengths.iter().map(|length| *length as f64).collect(),
        lengths,
        mask,
    }
}

fn lengths(mask: &Tensor) -> Vec<usize> {
    mask.sum(1).unwrap().to_vec1::<f32>().unwrap().into_iter().map(|real| real as usize).collect()
}

fn queries(words: Tensor, ids: Option<Tensor>, mask: Tensor, video: Vec<usize>) -> QueryBatch {
    let (count, longest) = mask.dims2().unwrap();
    QueryBatch {
        ids: (0..count).map(|n| format!("q{n}").as_str().into()).collect(),
        video,
        words,
        word_ids: ids.unwrap_or_else(|| Tensor::zeros((count, longest), DType::U32, &Device::Cpu).unwrap()),
        lengths: lengths(&mask),
        mask,
        parses: None,
        phrases: None,
    }
}

fn batch(videos: VideoBatch, queries: QueryBatch, spans: Vec<NormSpan>) -> Batch {
    let targets = Targets { spans, relevance: None, joint: None, positives: None };
    Batch { videos, queries, targets: Some(targets), other_videos: None, similarity: None, negatives: None }
}

/// Spans of clips, by the first and the last.
fn spans(fixture: &Fixture, clips: &[usize]) -> Vec<NormSpan> {
    let labels = fixture.counts("st_ed_indices").unwrap();
    let span = |(pair, clips): (&[usize], &usize)| EndClip::Last.span(pair[0], pair[1], *clips).unwrap();
    labels.chunks_exact(2).zip(clips).map(span).collect()
}

/// The videos of MMN's and TRM's fixtures, each with all its sentences, and where those lie.
fn with_sentences(fixture: &Fixture) -> (Given, Batch) {
    let (tokens, real) = (fixture.ids("tokens").unwrap(), fixture.counts("token_lens").unwrap());
    let longest = tokens.dim(1).unwrap();
    let mask: Vec<f32> =
        real.iter().flat_map(|real| (0..longest).map(move |at| f32::from(u8::from(at < *real)))).collect();
    let mask = Tensor::from_vec(mask, (real.len(), longest), &Device::Cpu).unwrap();
    let counts = fixture.counts("sent_per_video").unwrap();
    let video: Vec<usize> = counts.iter().enumerate().flat_map(|(video, n)| std::iter::repeat_n(video, *n)).collect();
    let durations = fixture.input("duration").unwrap().to_vec1::<f32>().unwrap();
    let moments = fixture.input("moments").unwrap().to_vec2::<f32>().unwrap();
    let span = |(moment, video): (&Vec<f32>, &usize)| {
        let of = |seconds: f32| f64::from(seconds) / f64::from(durations[*video]);
        NormSpan::new(of(moment[0]), of(moment[1])).unwrap()
    };
    let spans: Vec<NormSpan> = moments.iter().zip(&video).map(span).collect();
    let words = Tensor::zeros((real.len(), longest, 0), DType::F32, &Device::Cpu).unwrap();
    let visual = fixture.input("visual").unwrap();
    let given = Given::widths(visual.dim(2).unwrap(), 0, 60);
    (given, batch(videos(visual, None, None), queries(words, Some(tokens), mask, video), spans))
}

/// What MMN's and TRM's fixtures have in common.
const MATCHING: &str = "power = 0.5\ntargets = { min_iou = 0.5, max_iou = 1.0 }\n[network]\n\
    map = { pre_clips = 32, clips = 16, counts = [7, 4] }\nhidden = 32\njoint = 24\nkernel = 3\nlayers = 3\n\
    text = { dim = 32, layers = 2, heads = 4, ffn = 48, positions = 16 }\n[matching]\ntau = 0.1\nnegative_iou = 0.5\n\
    sentence_iou = 0.5\neps = 1e-6\nweight = 0.05\n";

#[test]
fn mmn_reads_tokens_and_learns_what_its_reference_learns() {
    let Some(fixture) = fixture("mmn") else { return };
    let (given, batch) = with_sentences(&fixture);
    let loss = loss(&fixture, &format!("{MATCHING}margin = 0.3\ntop_k = 2"), &given, &batch);
    assert_near(&fixture, "iou_bce", part(&loss, "overlap"));
    assert_near(&fixture, "vid", part(&loss, "to_sentences"));
    assert_near(&fixture, "sent", part(&loss, "to_moments"));
    assert_near(&fixture, "total", total(&loss));
}

/// RMMN is MMN that leaves out negatives which are none: where nothing is alike, what it learns is what MMN learns.
#[test]
fn rmmn_learns_what_mmn_learns_where_no_negative_is_in_doubt() {
    let Some(fixture) = fixture("mmn") else { return };
    let (given, mut batch) = with_sentences(&fixture);
    let alike = |value: f32| {
        let all = Tensor::full(value, (batch.len(), batch.videos.ids.len()), &Device::Cpu).unwrap();
        Some(all)
    };
    let (unlike, likely) = (alike(0.0), alike(0.95));
    batch.similarity = unlike;
    let settings = format!("threshold = 0.9\n{MATCHING}margin = 0.3\ntop_k = 2");
    let learnt = loss_of("rmmn", &fixture, &settings, &given, &batch);
    assert_near(&fixture, "total", total(&learnt));
    batch.similarity = likely;
    let filtered = total(&loss_of("rmmn", &fixture, &settings, &given, &batch));
    assert!((filtered - total(&learnt)).abs() > 1e-3, "what is in doubt is left out: {filtered}");
}

#[test]
fn trm_reads_tokens_and_phrases_and_learns_what_its_reference_learns() {
    let Some(fixture) = fixture("trm") else { return };
    let (given, mut batch) = with_sentences(&fixture);
    batch.queries.phrases = Some(Phrases {
        word_ids: fixture.ids("phrase_tokens").unwrap(),
        words: None,
        lengths: fixture.counts("phrase_lens").unwrap(),
        per_query: fixture.counts("phrases_per_sentence").unwrap(),
    });
    let phrases = "[phrases]\nmost = 10\nattention = 128\nresidual = 1.0\ndropout = 0.0\nthreshold = 0.1\nfocal = 2.0\n\
        consistency = 1.0\nexclusiveness = 1.0";
    let settings = format!("{MATCHING}margin = 0.4\ntop_k = 1\n{phrases}");
    // Of two videos each is the only other one: nothing is left to chance.
    let loss = loss(&fixture, &settings, &given, &batch);
    for (name, ours) in [
        ("iou_sentence", "overlap"),
        ("vid", "to_sentences"),
        ("sent", "to_moments"),
        ("phrase_pos", "present"),
        ("phrase_neg", "absent"),
        ("phrase_exclusive", "exclusive"),
    ] {
        assert_near(&fixture, name, part(&loss, ours));
    }
    assert_near(&fixture, "total", total(&loss));
}

#[test]
fn cet_and_bet_read_token_features_and_learn_what_their_references_learn() {
    for (name, layers) in [("cet", "score_layers = 3"), ("bet", "query_layers = 3\nscale = 10.0")] {
        let Some(fixture) = fixture(name) else { return };
        let settings = format!("clips = 12\nhidden = 32\nheads = 4\nffn = 48\nlayers = 2\npower = 10.0\n{layers}");
        let (visual, words) = (fixture.input("video").unwrap(), fixture.input("query_tokens").unwrap());
        let mask = fixture.input("query_mask").unwrap();
        let (starts, ends) = (fixture.counts("start_index").unwrap(), fixture.counts("end_index").unwrap());
        let span = |(start, end): (&usize, &usize)| EndClip::Last.span(*start, *end, 12).unwrap();
        let spans: Vec<NormSpan> = starts.iter().zip(&ends).map(span).collect();
        let widths = Given::widths(visual.dim(2).unwrap(), words.dim(2).unwrap(), 0);
        let given = Given { tokens: TokenVectors::Given, ..widths };
        let video = (0..starts.len()).collect();
        let batch = batch(videos(visual, None, None), queries(words, None, mask, video), spans);
        let loss = loss(&fixture, &settings, &given, &batch);
        assert_near(&fixture, "start", part(&loss, "starts"));
        assert_near(&fixture, "end", part(&loss, "ends"));
        assert_near(&fixture, "total", total(&loss));
    }
}

/// A batch of pairs with subtitles, as XML's and ReLoCLNet's fixtures have them.
fn with_subtitles(fixture: &Fixture) -> (Given, Batch) {
    let (visual, subtitle) = (fixture.input("video_feat").unwrap(), fixture.input("sub_feat").unwrap());
    let (words, word_mask) = (fixture.input("query_feat").unwrap(), fixture.input("query_mask").unwrap());
    let widths = Given::widths(visual.dim(2).unwrap(), words.dim(2).unwrap(), 0);
    let given = Given { subtitle: subtitle.dim(2).unwrap(), ..widths };
    let videos = videos(visual, Some(subtitle), Some(fixture.input("video_mask").unwrap()));
    let spans = spans(fixture, &videos.lengths);
    let video = (0..spans.len()).collect();
    (given, batch(videos, queries(words, None, word_mask, video), spans))
}

#[test]
fn xml_and_reloclnet_learn_spans_as_their_references_do() {
    let common =
        "clips = 24\nwords = 10\nhidden = 32\nkernel = 5\nend_clip = \"last\"\npairs = { min = 2, max = 15 }\n";
    let Some(xml) = fixture("xml") else { return };
    let (given, batch) = with_subtitles(&xml);
    let learnt = loss(&xml, &format!("{common}heads = 4\nspan_weight = 0.01"), &given, &batch);
    assert_near(&xml, "loss_st_ed", 0.01 * part(&learnt, "span"));

    let Some(reloclnet) = fixture("reloclnet") else { return };
    let (given, batch) = with_subtitles(&reloclnet);
    let weights = "span_weight = 0.01\nframe_weight = 0.03\nvideo_weight = 0.03";
    let learnt = loss(&reloclnet, &format!("{common}heads = 8\n{weights}"), &given, &batch);
    assert_near(&reloclnet, "loss_st_ed", 0.01 * part(&learnt, "span"));
    assert_near(&reloclnet, "loss_fcl", 0.03 * part(&learnt, "frame"));
    assert_near(&reloclnet, "loss_vcl", 0.03 * part(&learnt, "video"));
}

#[test]
fn conquer_learns_from_the_negatives_of_a_first_stage_what_its_reference_learns() {
    let Some(fixture) = fixture("conquer") else { return };
    let settings = "clips = 16\nwords = 8\nhidden = 32\nwide = 48\nheads = 4\nlayers = { query = 1, video = 1 }\nclusters = 4\n\
        scoring = 16\nkernel = 5\nmeasure = \"exclusive\"\npairs = { min = 0, max = 7 }\nnegatives = 2\nspan_weight = 0.01\n\
        video_weight = 0.05";
    // The fixture has three videos a query, its own first; a batch has the own videos first and the others after them.
    let order = Tensor::new(&[0u32, 3, 1, 2, 4, 5], &Device::Cpu).unwrap();
    let rows = |name: &str| fixture.input(name).unwrap().flatten_to(1).unwrap().index_select(&order, 0).unwrap();
    let (visual, subtitle) = (rows("visual_feat"), rows("sub_feat"));
    let (words, word_mask) = (fixture.input("query_feat").unwrap(), fixture.input("query_mask").unwrap());
    let widths = Given::widths(visual.dim(2).unwrap(), words.dim(2).unwrap(), 0);
    let given = Given { subtitle: subtitle.dim(2).unwrap(), ..widths };
    let videos = videos(visual, Some(subtitle), Some(rows("video_mask")));
    let spans = spans(&fixture, &videos.lengths);
    let of = |query: usize, videos: [usize; 2]| Negatives { query, videos: videos.to_vec(), queries: Vec::new() };
    let negatives = Some(vec![of(0, [2, 3]), of(1, [4, 5])]);
    let batch = Batch { negatives, ..batch(videos, queries(words, None, word_mask, vec![0, 1]), spans) };
    let loss = loss(&fixture, settings, &given, &batch);
    assert_near(&fixture, "total", total(&loss));
}
