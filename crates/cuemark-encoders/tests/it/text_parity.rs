//! Every family of text encoder against vectors that the reference implementation made of the same weights.

use camino::Utf8PathBuf;
use cuemark_core::Advise as _;
use cuemark_encoders::text::{self, Reference, TextEncoder};
use cuemark_encoders::weights::WeightsFolder;
use cuemark_tensor::Device;
use cuemark_testkit::fixture;

const TINY: [&str; 4] = ["tiny-simcse", "tiny-distilbert", "tiny-roberta", "tiny-clip"];

fn encoder(name: &str) -> Box<dyn TextEncoder> {
    text::from_folder(&WeightsFolder::at(fixture("encoders").join(name)), &Device::Cpu).unwrap()
}

/// A copy of a tiny model that a test may spoil.
fn copy(name: &str) -> (tempfile::TempDir, Utf8PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let to = Utf8PathBuf::from_path_buf(keep.path().join(name)).unwrap();
    std::fs::create_dir(&to).unwrap();
    for entry in fixture("encoders").join(name).read_dir_utf8().unwrap() {
        let from = entry.unwrap().into_path();
        std::fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    }
    (keep, to)
}

fn refused(path: &Utf8PathBuf) -> String {
    let error = text::from_folder(&WeightsFolder::at(path.clone()), &Device::Cpu).err().expect("should be refused");
    assert!(error.advice().is_some(), "{error}");
    error.to_string()
}

#[test]
fn every_family_gives_the_references_vectors() {
    for name in TINY {
        let reference = Reference::read(&fixture("encoders").join(name).join("reference.safetensors")).unwrap();
        let agreement = reference.compare(&*encoder(name)).unwrap();
        assert!(agreement.largest_difference < 2e-5, "{name}: {agreement:?}");
        assert!(agreement.smallest_cosine > 0.999_999, "{name}: {agreement:?}");
        assert!(agreement.holds(), "{name}: {agreement:?}");
    }
}

#[test]
fn a_vector_does_not_depend_on_what_else_is_encoded() {
    let long = "the old dog jumps into the pool and starts to swim while it is raining outside ".repeat(3);
    let sentences = ["Snow falls.", long.as_str(), "", "a man opens the fridge", "Snow falls."];
    for name in TINY {
        let encoder = encoder(name);
        let together = encoder.encode(&sentences).unwrap();
        for (sentence, together) in sentences.iter().zip(&together) {
            let alone = encoder.encode(&[sentence]).unwrap().concat();
            let apart = alone.iter().zip(together).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart < 2e-6, "{name}: `{sentence}` differs by {apart}");
        }
        assert!(encoder.encode(&[]).unwrap().is_empty());
    }
}

#[test]
fn normalised_recipes_give_length_one_and_bare_networks_do_not() {
    for (name, one) in [("tiny-simcse", true), ("tiny-clip", true), ("tiny-distilbert", false), ("tiny-roberta", false)]
    {
        let vector = encoder(name).encode(&["a man opens the fridge"]).unwrap().concat();
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        assert_eq!((length - 1.0).abs() < 1e-5, one, "{name}: {length}");
    }
}

#[test]
fn a_folder_in_the_layout_of_sentence_transformers_says_how_to_pool() {
    let (_keep, path) = copy("tiny-distilbert");
    let pooling = r#"{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}"#;
    let normalize = r#"{"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}"#;
    std::fs::write(path.join("modules.json"), format!("[{pooling},{normalize}]")).unwrap();
    std::fs::create_dir(path.join("1_Pooling")).unwrap();
    std::fs::write(path.join("1_Pooling/config.json"), r#"{"pooling_mode_mean_tokens":true}"#).unwrap();
    std::fs::write(path.join("sentence_bert_config.json"), r#"{"max_seq_length":4}"#).unwrap();
    let load = || text::from_folder(&WeightsFolder::at(path.clone()), &Device::Cpu).unwrap();
    let vectors = load().encode(&["snow falls", "snow falls on the empty street"]).unwrap();
    assert!((vectors[0].iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 1e-5);
    // Four tokens, two of them special: whatever follows the first pieces is cut.
    let apart = |sentence: &str| {
        let other = load().encode(&[sentence]).unwrap().concat();
        other.iter().zip(&vectors[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(apart("snow falls and falls and falls") < 1e-6);
    // The same network, pooled by its first token.
    std::fs::write(path.join("1_Pooling/config.json"), r#"{"pooling_mode_cls_token":true}"#).unwrap();
    assert!(apart("snow falls") > 1e-3);
    // A recipe whose path leads elsewhere, and one with a layer that we do not have.
    std::fs::write(path.join("modules.json"), format!("[{}]", pooling.replace("1_Pooling", "../elsewhere"))).unwrap();
    assert!(refused(&path).contains("is no folder of this model"));
    std::fs::write(path.join("modules.json"), format!("[{}]", normalize.replace("models.Normalize", "models.Dense")))
        .unwrap();
    assert!(refused(&path).contains("module `Dense` is not supported"));
}

#[test]
fn weights_of_another_shape_or_architecture_are_refused_by_parameter() {
    let (_keep, path) = copy("tiny-distilbert");
    let config = std::fs::read_to_string(path.join("config.json")).unwrap();
    for (from, to, problem) in [
        (r#""dim": 16"#, r#""dim": 32"#, "has shape"),
        (r#""n_layers": 2"#, r#""n_layers": 3"#, "parameter `transformer.layer.2."),
        (r#""n_layers": 2"#, r#""n_layers": 1"#, "`config.json` knows nothing of it"),
        (r#""n_heads": 2"#, r#""n_heads": 3"#, "3 heads do not share a width of 16"),
        (r#""model_type": "distilbert""#, r#""model_type": "gpt2""#, "`gpt2` is no text encoder that cuemark knows"),
    ] {
        assert!(config.contains(from), "{from}");
        std::fs::write(path.join("config.json"), config.replace(from, to)).unwrap();
        let error = refused(&path);
        assert!(error.contains(problem), "{error}");
    }
    // The config and tokenizer of one architecture beside the weights of another.
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(fixture("encoders/tiny-roberta").join(file), path.join(file)).unwrap();
    }
    let error = refused(&path);
    assert!(error.contains("does not hold a RoBERTa encoder"), "{error}");
}

#[test]
fn another_models_tokenizer_is_refused() {
    for (model, other) in
        [("tiny-distilbert", "tiny-roberta"), ("tiny-clip", "tiny-distilbert"), ("tiny-roberta", "tiny-clip")]
    {
        let (_keep, path) = copy(model);
        std::fs::copy(fixture("encoders").join(other).join("tokenizer.json"), path.join("tokenizer.json")).unwrap();
        assert!(refused(&path).contains("is not this model's tokenizer"), "{model}");
        for damage in ["", "{}", "not json", r#"{"model":{"type":"WordPiece"}}"#] {
            std::fs::write(path.join("tokenizer.json"), damage).unwrap();
            assert!(refused(&path).contains("is not this model's tokenizer"), "{model}: {damage}");
        }
    }
}

#[test]
fn damaged_weights_are_refused_and_nothing_of_a_pickle_is_run() {
    let (_keep, path) = copy("tiny-distilbert");
    let weights = path.join("model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"<html>not found</html>", &whole[8..]] {
        std::fs::write(&weights, damaged).unwrap();
        refused(&path);
    }
    std::fs::remove_file(&weights).unwrap();
    std::fs::remove_file(path.join("reference.safetensors")).unwrap();
    assert!(refused(&path).contains("holds no `model.safetensors`"));
    // os.system("touch MARK"), as a hostile `.bin` would have it.
    let mark = path.join("executed");
    let command = format!("touch {mark}");
    let mut pickle = b"\x80\x02cposix\nsystem\nX".to_vec();
    pickle.extend((command.len() as u32).to_le_bytes());
    pickle.extend(command.as_bytes());
    pickle.extend(b"\x85R.");
    std::fs::write(path.join("pytorch_model.bin"), pickle).unwrap();
    let error = refused(&path);
    assert!(error.contains("wants to call `posix.system`"), "{error}");
    assert!(!mark.exists());
}

#[test]
fn word_vectors_of_a_text_file_are_averaged() {
    let keep = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(keep.path().join("glove.txt")).unwrap();
    std::fs::write(&path, "red 1 2\nball 3 6\n, 100 100\n").unwrap();
    let encoder = text::load(path.as_str(), &Device::Cpu).unwrap();
    let vectors = encoder.encode(&["Red, ball!", "unknown words", ""]).unwrap();
    assert_eq!(vectors, [[2.0, 4.0], [0.0, 0.0], [0.0, 0.0]]);
}
