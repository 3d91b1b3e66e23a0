//! `.safetensors`: a header of JSON with the name, type, shape and place of each tensor.
//!
//! ```text
//!   length 8 │ {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …} │ bytes
//! ```
//!
//! The crate of its makers checks it: offsets that begin with 0, without holes or overlaps, each
//! as long as its shape says. It takes the last of two tensors with one name; here that is refused.

use std::io::Read;

use crate::tensor::dtype_name;
use safetensors::tensor::{Dtype as FileDtype, Metadata, TensorInfo};
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use weft_core::rendezvous::{Dtype, Shape};

use super::{Entry, TensorFileError, read_header};

/// What the crate takes, too.
const HEADER_MAX: u64 = 100_000_000;
/// Bytes of the length of the header.
pub(super) const LEN_LEN: u64 = 8;

/// The types that both sides have.
const DTYPES: [(Dtype, FileDtype); 16] = [
    (Dtype::Bool, FileDtype::BOOL),
    (Dtype::U8, FileDtype::U8),
    (Dtype::I8, FileDtype::I8),
    (Dtype::U16, FileDtype::U16),
    (Dtype::I16, FileDtype::I16),
    (Dtype::U32, FileDtype::U32),
    (Dtype::I32, FileDtype::I32),
    (Dtype::U64, FileDtype::U64),
    (Dtype::I64, FileDtype::I64),
    (Dtype::F16, FileDtype::F16),
    (Dtype::Bf16, FileDtype::BF16),
    (Dtype::F32, FileDtype::F32),
    (Dtype::F64, FileDtype::F64),
    (Dtype::F8E4m3, FileDtype::F8_E4M3),
    (Dtype::F8E5m2, FileDtype::F8_E5M2),
    (Dtype::C64, FileDtype::C64),
];

/// Reads the header of a file of `len` bytes: itself, and the tensors in the order of their bytes.
pub fn read(file: &mut impl Read, len: u64) -> Result<(Vec<u8>, Vec<Entry>), TensorFileError> {
    if len < LEN_LEN {
        return Err(TensorFileError::Length { expected: LEN_LEN, found: len });
    }
    let mut said = [0; LEN_LEN as usize];
    file.read_exact(&mut said)?;
    let said = u64::from_le_bytes(said);
    let header = read_header(file, (LEN_LEN, said), (HEADER_MAX, len))?;
    let (mut entries, bytes) = parse(&header)?;
    let begin = LEN_LEN + said;
    let expected = begin.saturating_add(bytes);
    if expected != len {
        return Err(TensorFileError::Length { expected, found: len });
    }
    entries.iter_mut().for_each(|entry| entry.offset += begin);
    Ok((header, entries))
}

/// The tensors that a header says, in the order of their bytes, with offsets behind it; and all of
/// their bytes.
///
/// # Errors
/// [`TensorFileError`].
pub fn parse(header: &[u8]) -> Result<(Vec<Entry>, u64), TensorFileError> {
    let ObjectKeys(names) = serde_json::from_slice(header)?;
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TensorFileError::Duplicate(pair[0].clone()));
    }
    let metadata: Metadata = serde_json::from_slice(header)?;
    let mut entries = Vec::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let found = DTYPES.iter().find(|(_, it)| *it == info.dtype);
        let (dtype, _) = found.ok_or_else(|| TensorFileError::Dtype {
            name: name.clone(),
            dtype: format!("{:?}", info.dtype),
        })?;
        let dims: Vec<u64> = info.shape.iter().map(|dim| *dim as u64).collect();
        let shape = Shape::new(*dtype, &dims)
            .map_err(|why| TensorFileError::Shape { name: name.clone(), why })?;
        let offset = info.data_offsets.0 as u64;
        entries.push(Entry { name, shape, offset });
    }
    Ok((entries, metadata.data_len() as u64))
}

/// The header of a file that holds one tensor.
///
/// # Errors
/// [`TensorFileError::NotHeld`].
pub fn header(name: &str, shape: Shape) -> Result<Vec<u8>, TensorFileError> {
    let found = DTYPES.iter().find(|(it, _)| *it == shape.dtype());
    let dtype = dtype_name(shape.dtype());
    let (_, dtype) = found.ok_or(TensorFileError::NotHeld { kind: "safetensors", dtype })?;
    let dims = shape.dims().iter().map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX));
    let info = TensorInfo {
        dtype: *dtype,
        shape: dims.collect(),
        data_offsets: (0, usize::try_from(shape.bytes()).unwrap_or(usize::MAX)),
    };
    let object = serde_json::json!({ name: info });
    let mut header = serde_json::to_vec(&object)?;
    header.resize(header.len().next_multiple_of(LEN_LEN as usize), b' ');
    Ok(header)
}

/// All that stands before the bytes of the tensors of this header.
#[must_use]
pub fn preface(header: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header].concat()
}

/// The keys of an object, each as often as it is there.
struct ObjectKeys(Vec<String>);

impl<'de> Deserialize<'de> for ObjectKeys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = ObjectKeys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with an entry for each tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectKeys, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(ObjectKeys(names))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rz20_tensors_come_in_the_order_of_their_bytes() {
        let header = br#"{"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},
            "__metadata__":{"k":"v"},"a":{"dtype":"F8_E4M3","shape":[],"data_offsets":[8,9]}}"#;
        let (entries, bytes) = parse(header).expect("a header");
        let shape = |dtype, dims: &[u64]| Shape::new(dtype, dims).expect("a shape");
        let entry = |name: &str, shape, offset| Entry { name: name.to_owned(), shape, offset };
        let b = entry("b", shape(Dtype::I64, &[1]), 0);
        assert_eq!(entries, [b, entry("a", shape(Dtype::F8E4m3, &[]), 8)]);
        assert_eq!(bytes, 9);
        assert_eq!(parse(b"{}").expect("a header").0, []);
    }

    #[test]
    fn rz20_headers_that_lie_are_refused() {
        let tensor = |dtype: &str, shape: &str, offsets: &str| {
            format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        let two = |second: &str| {
            let first = r#"{"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}"#;
            format!(r#"{first},"a":{{"dtype":"U8","shape":[4],"data_offsets":{second}}}}}"#)
        };
        assert!(parse(two("[4,8]").as_bytes()).is_ok());
        for header in [
            "".to_owned(),
            "[]".to_owned(),
            tensor("F32", "[2]", "[0,7]"),
            tensor("F32", "[2]", "[4,12]"),
            tensor("F32", "[2]", "[8,0]"),
            tensor("F32", "[NaN]", "[0,8]"),
            tensor("F32", "[2.5]", "[0,8]"),
            tensor("F32", "[-2]", "[0,8]"),
            tensor("F99", "[2]", "[0,8]"),
            tensor("U8", "[4294967296,4294967296]", "[0,0]"),
            two("[2,6]"),
            two("[6,10]"),
        ] {
            assert!(matches!(parse(header.as_bytes()), Err(TensorFileError::Json(_))), "{header}");
        }
        let twice = r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},
            "a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
        assert!(matches!(parse(twice.as_bytes()), Err(TensorFileError::Duplicate(_))));
        let nine = tensor("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]");
        assert!(matches!(parse(nine.as_bytes()), Err(TensorFileError::Shape { .. })));
        let small = tensor("F8_E8M0", "[1]", "[0,1]");
        assert!(matches!(parse(small.as_bytes()), Err(TensorFileError::Dtype { .. })));
    }

    #[test]
    fn rz20_the_header_of_one_tensor_is_read_back() {
        for (dtype, _) in DTYPES {
            let shape = Shape::new(dtype, &[2, 3]).expect("a shape");
            let header = header("x", shape).expect("a type of the format");
            assert!(header.len().is_multiple_of(8));
            let (entries, bytes) = parse(&header).expect("a header");
            assert_eq!((entries[0].shape, bytes), (shape, shape.bytes()));
        }
        let wide = Shape::new(Dtype::C128, &[1]).expect("a shape");
        assert!(matches!(header("x", wide), Err(TensorFileError::NotHeld { .. })));
    }
}
