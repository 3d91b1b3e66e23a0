//! Files that numpy and safetensors wrote, and files that are damaged.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::explain::{Code, Explain as _};

use super::*;
use crate::scratch::Scratch;

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("program/tests/files")
}

/// The files of Python with this ending.
fn written_by_python(ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(files()).expect("the files are there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| Kind::of(path).is_ok()).collect();
    paths.retain(|path| path.as_os_str().as_bytes().ends_with(ending.as_bytes()));
    paths.sort();
    paths
}

fn is_bad(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"bad-"))
}

#[test]
fn rz20_an_array_of_numpy_is_read_and_written_back_byte_for_byte() {
    let mut seen = 0;
    for path in written_by_python(".npy").into_iter().filter(|path| !is_bad(path)) {
        let mut file = TensorFile::open(&path).expect("numpy wrote it");
        let entry = file.entries[0].clone();
        let tensor = file.load(&entry).expect("it is whole");
        let written =
            [npy::header(entry.shape).expect("numpy has it"), tensor.view().bytes().into()];
        let original = fs::read(&path).expect("it is there");
        // Other versions are read, and written as 1.0.
        if original[6] == 1 {
            assert_eq!(written.concat(), original, "{}", path.display());
            seen += 1;
        }
        assert!(original.ends_with(tensor.view().bytes()));
    }
    assert_eq!(seen, 14, "one of each type");
}

#[test]
fn rz20_tensors_of_safetensors_are_read_and_written_back_byte_for_byte() {
    for (path, count) in [("all.safetensors", 16), ("one.safetensors", 1)] {
        let path = files().join(path);
        let mut file = TensorFile::open(&path).expect("safetensors wrote it");
        assert_eq!(file.entries.len(), count);
        let manifest = file.manifest().expect("it is whole");
        let manifest = manifest::parse(&manifest).expect("a manifest");
        assert_eq!(manifest.entries.len(), count);
        let mut written = manifest.preface.to_vec();
        for (entry, (_, digest)) in file.entries.clone().iter().zip(&manifest.entries) {
            let tensor = file.load(entry).expect("it is whole");
            assert_eq!(manifest::Digest::of(tensor.view().bytes()), *digest);
            written.extend_from_slice(tensor.view().bytes());
        }
        assert_eq!(written, fs::read(&path).expect("it is there"));
    }
    let one = TensorFile::open(&files().join("one.safetensors")).expect("safetensors wrote it");
    let own = safetensors::header("w", one.entries[0].shape).expect("a type of the format");
    assert_eq!(
        safetensors::parse(&own).expect("a header"),
        safetensors::parse(&one.header).unwrap()
    );
}

#[test]
fn rz20_arrays_that_are_no_tensors_are_refused_with_a_cure() {
    for (name, cause) in [
        ("bad-object.npy", "Python objects"),
        ("bad-fields.npy", "has fields"),
        ("bad-fortran.npy", "Fortran order"),
        ("bad-big.npy", "big-endian"),
        ("bad-text.npy", "\"<U2\""),
    ] {
        let error = TensorFile::open(&files().join(name)).expect_err(name);
        assert!(error.to_string().contains(cause), "{error}");
        assert_eq!(error.code(), Code::TensorFile);
        assert!(
            error.cure().contains("numpy")
                || error.cure().contains('`')
                || !error.cure().is_empty()
        );
    }
}

#[test]
fn rz20_a_file_is_refused_at_each_length_but_its_own() {
    let scratch = Scratch::new();
    for name in ["f4.npy", "v2.npy", "one.safetensors"] {
        let whole = fs::read(files().join(name)).expect("it is there");
        let path = scratch.path().join(name);
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).expect("a file");
            let error = TensorFile::open(&path).expect_err("it is cut");
            assert_eq!(error.code(), Code::TensorFile, "{name} of {len}: {error}");
        }
        fs::write(&path, [&whole[..], b"x"].concat()).expect("a file");
        let error = TensorFile::open(&path).expect_err("it is longer");
        assert!(matches!(error, TensorFileError::Length { .. }), "{name}: {error}");
    }
}

#[test]
fn rz20_lengths_that_no_file_has_are_refused_before_memory_is_taken() {
    let scratch = Scratch::new();
    let path = scratch.path().join("x.safetensors");
    for len in [u64::MAX, 1 << 40, 100_000_001] {
        fs::write(&path, len.to_le_bytes()).expect("a file");
        let error = TensorFile::open(&path).expect_err("no such header");
        assert!(matches!(error, TensorFileError::LongHeader { .. }), "{error}");
    }
    let path = scratch.path().join("x.npy");
    fs::write(&path, [b"\x93NUMPY\x02\x00", &u32::MAX.to_le_bytes()[..]].concat()).expect("a file");
    let error = TensorFile::open(&path).expect_err("no such header");
    assert!(matches!(error, TensorFileError::LongHeader { .. }), "{error}");
    fs::write(&path, b"\x93NUMPY\x04\x00\x00\x00\x00\x00").expect("a file");
    assert!(matches!(TensorFile::open(&path), Err(TensorFileError::Version(4, 0))));
}

#[test]
fn rz20_what_is_no_file_is_refused_with_its_own_code() {
    let scratch = Scratch::new();
    let code = |path: &Path| TensorFile::open(path).expect_err("no file").code();
    assert_eq!(code(&scratch.path().join("none.npy")), Code::InputMissing);
    let folder = scratch.path().join("folder.npy");
    fs::create_dir(&folder).expect("a folder");
    assert_eq!(code(&folder), Code::InputUnreadable);
    assert_eq!(code(&scratch.path().join("x.txt")), Code::TensorFile);
}
