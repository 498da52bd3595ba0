//! Weight files of every kind, whole, damaged and hostile.

use camino::Utf8PathBuf;
use cuemark_features::tensor_file::{self, NamedTensor};
use cuemark_testkit::fixture;

/// What `fixtures/encoders/tensors/make.py` puts into every file: `a` is 0 to 5 in two rows, `b` a half.
fn expected() -> Vec<(&'static str, NamedTensor)> {
    vec![
        ("a", NamedTensor { shape: vec![2, 3], values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0] }),
        ("b", NamedTensor { shape: vec![], values: vec![0.5] }),
    ]
}

fn files() -> Vec<Utf8PathBuf> {
    let folder = fixture("encoders/tensors");
    ["zip.pt", "legacy.pt", "half.safetensors", "graph.onnx", "tree.pkl"].iter().map(|name| folder.join(name)).collect()
}

#[test]
fn every_kind_of_file_gives_the_same_tensors() {
    for path in files() {
        let tensors = tensor_file::read(&path).unwrap();
        for (name, tensor) in expected() {
            let name = if path.ends_with("tree.pkl") { format!("params/{name}") } else { name.to_owned() };
            assert_eq!(tensors.get(&name), Some(&tensor), "{path}: {name} of {:?}", tensors.keys());
        }
        // Transposed in memory, so its strides are not those of its shape.
        let turned = tensors.iter().find(|(name, _)| name.ends_with("turned")).unwrap().1;
        assert_eq!(
            (turned.shape.as_slice(), turned.values.as_slice()),
            (&[3, 2][..], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0][..])
        );
        assert!(!tensors.keys().any(|name| name.contains("count")), "{path}: whole numbers are left out");
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_loses_nothing_it_claims() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let whole = tensor_file::parse(&bytes).unwrap();
        for length in 0..bytes.len() {
            if let Ok(found) = tensor_file::parse(&bytes[..length]) {
                assert_eq!(found, whole, "{path} cut to {length} bytes");
            }
        }
    }
}

#[test]
fn a_file_with_any_byte_changed_never_panics() {
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[place] ^= change;
                let _ = tensor_file::parse(&changed);
            }
        }
    }
}

#[test]
fn pickles_that_call_anything_else_are_refused_by_name() {
    for (pickle, name) in [
        // pickle.dumps of an object whose __reduce__ is (os.system, ("touch …",)), protocols 2 and 4.
        (&b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00trueq\x01\x85q\x02Rq\x03."[..], "posix.system"),
        (b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.", "posix.system"),
        (b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "builtins.eval"),
        (b"\x80\x02csubprocess\nPopen\n)\x81.", "subprocess.Popen"),
        // Hidden in a dictionary of arrays.
        (b"\x80\x02}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00ls\x85Rs.", "os.system"),
        // A name that only looks like one of ours.
        (b"\x80\x02cos\n_rebuild_tensor_v2\n)R.", "os._rebuild_tensor_v2"),
    ] {
        let error = tensor_file::parse(pickle).unwrap_err();
        assert!(error.contains(&format!("wants to call `{name}`")), "{error}");
    }
    // Instructions that make objects without a call we could name.
    for pickle in [&b"\x80\x02(ios\nsystem\n."[..], b"\x80\x02(cos\nsystem\no.", b"\x80\x02\x82\x01."] {
        let error = tensor_file::parse(pickle).unwrap_err();
        assert!(error.contains("is not one that tensors need"), "{error}");
    }
}

#[test]
fn trees_whose_branches_share_their_ends_are_cut_off() {
    // Forty dictionaries, each holding the one before it twice: 2^40 ends.
    let mut pickle = b"\x80\x02}q\x00".to_vec();
    for _ in 0..40 {
        pickle.extend(b"0}(X\x01\x00\x00\x00ah\x00X\x01\x00\x00\x00bh\x00uq\x00");
    }
    pickle.push(b'.');
    let error = tensor_file::parse(&pickle).unwrap_err();
    assert!(error.contains("larger than any published one"), "{error}");
}
