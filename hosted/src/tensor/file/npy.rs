//! `.npy`, versions 1.0 to 3.0: one array, as `numpy.save` writes it.
//!
//! ```text
//!   \x93NUMPY │ version 2 │ length 2 (1.0) or 4 │ {'descr': '<f4', …} spaces newline │ bytes
//! ```
//!
//! The header is a dict of Python with exactly three entries. What is written is what numpy 2
//! writes, byte for byte.

use std::io::Read;

use crate::tensor::dtype_name;
use weft_core::rendezvous::{Dtype, Shape};

use super::{Entry, TensorFileError, read_header};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
const HEADER_MAX: u64 = 64 * 1024;
const ALIGN: usize = 64;
/// Room that numpy leaves to let the first dimension grow in place.
const GROWTH_DIGITS: usize = 21;

/// The types of numpy that are tensors here.
const DESCRS: [(Dtype, &str); 14] = [
    (Dtype::Bool, "|b1"),
    (Dtype::U8, "|u1"),
    (Dtype::I8, "|i1"),
    (Dtype::U16, "<u2"),
    (Dtype::I16, "<i2"),
    (Dtype::U32, "<u4"),
    (Dtype::I32, "<i4"),
    (Dtype::U64, "<u8"),
    (Dtype::I64, "<i8"),
    (Dtype::F16, "<f2"),
    (Dtype::F32, "<f4"),
    (Dtype::F64, "<f8"),
    (Dtype::C64, "<c8"),
    (Dtype::C128, "<c16"),
];

/// Why the header of a `.npy` file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It is no dict of that form.
    #[error("no dict of 'descr', 'fortran_order' and 'shape', at byte {0}")]
    Syntax(usize),
    /// The array holds Python objects.
    #[error("the array holds Python objects, which only Python can read")]
    Pickled,
    /// The array has fields.
    #[error("the array has fields, or elements without a type")]
    Structured,
    /// The columns come first.
    #[error("the array is in Fortran order")]
    Fortran,
    /// The high byte comes first.
    #[error("the elements are big-endian")]
    BigEndian,
    /// Other elements.
    #[error("the elements are {0:?}, which is not supported")]
    Descr(String),
}

impl HeaderError {
    pub(super) const fn cure(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "write it again with `numpy.save`",
            Self::Pickled => "convert it to numbers: `numpy.save(path, a.astype('f8'))`",
            Self::Structured => "save each field as an array of its own",
            Self::Fortran => "write it as `numpy.save(path, numpy.ascontiguousarray(a))`",
            Self::BigEndian => {
                "write it as `numpy.save(path, a.astype(a.dtype.newbyteorder('<')))`"
            }
            Self::Descr(_) => "convert it to a type of numbers: `a.astype('f8')`",
        }
    }
}

/// Reads the header of a file of `len` bytes.
pub fn read(file: &mut impl Read, len: u64) -> Result<Entry, TensorFileError> {
    let mut start = [0; 8];
    if len < 10 {
        return Err(TensorFileError::Magic);
    }
    file.read_exact(&mut start)?;
    let [magic @ .., major, minor] = start;
    if magic != *MAGIC {
        return Err(TensorFileError::Magic);
    }
    let prefix = match (major, minor) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        _ => return Err(TensorFileError::Version(major, minor)),
    };
    if len < 8 + prefix {
        return Err(TensorFileError::Length { expected: 8 + prefix, found: len });
    }
    let mut said = [0; 4];
    file.read_exact(&mut said[..prefix as usize])?;
    let header_len = u64::from(u32::from_le_bytes(said));
    let header = read_header(file, (8 + prefix, header_len), (HEADER_MAX, len))?;
    let (dtype, dims) = parse(&header).map_err(TensorFileError::Header)?;
    let named = |why| TensorFileError::Shape { name: String::new(), why };
    let shape = Shape::new(dtype, &dims).map_err(named)?;
    let offset = 8 + prefix + header_len;
    let expected = offset.saturating_add(shape.bytes());
    if expected != len {
        return Err(TensorFileError::Length { expected, found: len });
    }
    Ok(Entry { name: String::new(), shape, offset })
}

/// Type and dimensions that a header says.
///
/// # Errors
/// [`HeaderError`].
pub fn parse(header: &[u8]) -> Result<(Dtype, Vec<u64>), HeaderError> {
    let mut reader = HeaderReader { header, at: 0 };
    let (mut descr, mut is_fortran, mut dims) = (None, None, None);
    reader.expect(b'{')?;
    while !reader.take(b'}') {
        let key = reader.text()?;
        reader.expect(b':')?;
        let is_new = match key {
            "descr" if reader.peek() == Some(b'[') => return Err(HeaderError::Structured),
            "descr" => descr.replace(reader.text()?).is_none(),
            "fortran_order" => is_fortran.replace(reader.truth()?).is_none(),
            "shape" => dims.replace(reader.tuple()?).is_none(),
            _ => false,
        };
        if !is_new || !(reader.take(b',') || reader.peek() == Some(b'}')) {
            return Err(reader.wrong());
        }
    }
    let (Some(descr), Some(is_fortran), Some(dims)) = (descr, is_fortran, dims) else {
        return Err(reader.wrong());
    };
    if reader.peek().is_some() {
        return Err(reader.wrong());
    }
    let dtype = dtype_of(descr)?;
    if is_fortran { Err(HeaderError::Fortran) } else { Ok((dtype, dims)) }
}

fn dtype_of(descr: &str) -> Result<Dtype, HeaderError> {
    if let Some((dtype, _)) = DESCRS.iter().find(|(_, it)| *it == descr) {
        return Ok(*dtype);
    }
    let little = descr.replacen('>', "<", 1);
    Err(match descr.trim_start_matches(['|', '<', '>', '=']).chars().next() {
        Some('O') => HeaderError::Pickled,
        Some('V') => HeaderError::Structured,
        _ if descr != little && DESCRS.iter().any(|(_, it)| *it == little) => {
            HeaderError::BigEndian
        }
        _ => HeaderError::Descr(descr.to_owned()),
    })
}

/// The part of a header that is still to be read.
struct HeaderReader<'h> {
    header: &'h [u8],
    at: usize,
}

impl<'h> HeaderReader<'h> {
    const fn wrong(&self) -> HeaderError {
        HeaderError::Syntax(self.at)
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.header.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.header.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, byte: u8) -> Result<(), HeaderError> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    /// A text in quotes, without escapes.
    fn text(&mut self) -> Result<&'h str, HeaderError> {
        let quote = self.peek().filter(|it| matches!(it, b'\'' | b'"')).ok_or(self.wrong())?;
        let begin = self.at + 1;
        let rest = &self.header[begin..];
        let len = rest.iter().position(|it| *it == quote).ok_or(self.wrong())?;
        let text = std::str::from_utf8(&rest[..len]).ok().filter(|it| !it.contains('\\'));
        self.at = begin + len + 1;
        text.ok_or(HeaderError::Syntax(begin))
    }

    fn truth(&mut self) -> Result<bool, HeaderError> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if self.header[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong())
    }

    /// `()`, `(2,)` or `(2, 3)`.
    fn tuple(&mut self) -> Result<Vec<u64>, HeaderError> {
        self.expect(b'(')?;
        let mut dims = Vec::new();
        while !self.take(b')') {
            dims.push(self.number()?);
            let is_over = self.peek() == Some(b')') && dims.len() > 1;
            if !is_over {
                self.expect(b',')?;
            }
        }
        Ok(dims)
    }

    fn number(&mut self) -> Result<u64, HeaderError> {
        self.peek();
        let rest = &self.header[self.at..];
        let len = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        let text = std::str::from_utf8(&rest[..len]).ok();
        let number = text.and_then(|it| it.parse().ok()).ok_or(self.wrong())?;
        self.at += len;
        Ok(number)
    }
}

/// All that stands before the bytes of a tensor of `shape`.
///
/// # Errors
/// [`TensorFileError::NotHeld`].
pub fn header(shape: Shape) -> Result<Vec<u8>, TensorFileError> {
    let found = DESCRS.iter().find(|(it, _)| *it == shape.dtype());
    let dtype = dtype_name(shape.dtype());
    let (_, descr) = found.ok_or(TensorFileError::NotHeld { kind: "npy", dtype })?;
    let dims: Vec<String> = shape.dims().iter().map(u64::to_string).collect();
    let tuple = match &dims[..] {
        [one] => format!("({one},)"),
        dims => format!("({})", dims.join(", ")),
    };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    let growth = dims.first().map_or(0, |first| GROWTH_DIGITS.saturating_sub(first.len()));
    dict.push_str(&" ".repeat(growth));
    let used = MAGIC.len() + 4 + dict.len() + 1;
    dict.push_str(&" ".repeat(ALIGN - used % ALIGN));
    dict.push('\n');
    // Eight dimensions take a few hundred bytes.
    let len = u16::try_from(dict.len()).unwrap_or(u16::MAX).to_le_bytes();
    Ok([&MAGIC[..], &[1, 0], &len, dict.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(header: &str) -> HeaderError {
        parse(header.as_bytes()).expect_err(header)
    }

    #[test]
    fn rz20_a_header_is_read_in_any_order_and_spacing() {
        for (text, dims) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", vec![2, 3]),
            ("{\"shape\":(7,),\"fortran_order\":False,\"descr\":\"<f4\"}", vec![7]),
            (" { 'descr' : '<f4' , 'shape' : ( ) , 'fortran_order' : False } ", vec![]),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9,)}", vec![0, 9]),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok((Dtype::F32, dims)), "{text}");
        }
    }

    #[test]
    fn rz20_headers_that_say_something_else_are_refused() {
        let dict = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        for (text, why) in [
            (dict("'|O'", "False", "(2,)"), HeaderError::Pickled),
            (dict("[('a', '<f4')]", "False", "(2,)"), HeaderError::Structured),
            (dict("'|V2'", "False", "(2,)"), HeaderError::Structured),
            (dict("'<f4'", "True", "(2, 2)"), HeaderError::Fortran),
            (dict("'>f4'", "False", "(2,)"), HeaderError::BigEndian),
            (dict("'<U5'", "False", "(2,)"), HeaderError::Descr("<U5".to_owned())),
        ] {
            assert_eq!(refused(&text), why, "{text}");
        }
        for text in [
            "".to_owned(),
            "{}".to_owned(),
            dict("'<f4'", "false", "(2,)"),
            dict("'<f4'", "False", "(2)"),
            dict("'<f4'", "False", "(-2,)"),
            dict("'<f4'", "False", "(99999999999999999999,)"),
            dict("'<f4", "False", "(2,)"),
            format!("{}x", dict("'<f4'", "False", "(2,)")),
            dict("'<f4', 'descr': '<f4'", "False", "(2,)"),
            dict("'<f4', 'more': '<f4'", "False", "(2,)"),
            "{'descr': '<f4', 'shape': (2,)}".to_owned(),
        ] {
            assert!(matches!(refused(&text), HeaderError::Syntax(_)), "{text}");
        }
    }

    #[test]
    fn rz20_no_header_makes_the_reader_panic() {
        let whole = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err());
            for byte in [0, b'\'', b'(', b'{', 0xff] {
                let mut changed = *whole;
                changed[end] = byte;
                let _ = parse(&changed);
            }
        }
    }

    #[test]
    fn rz20_what_is_written_is_read_back_and_aligned() {
        for (dtype, _) in DESCRS {
            for dims in [&[][..], &[5], &[2, 3], &[0, 4], &[1; 8]] {
                let shape = Shape::new(dtype, dims).expect("a shape");
                let header = header(shape).expect("a type of numpy");
                assert!(header.len().is_multiple_of(ALIGN));
                assert_eq!(parse(&header[10..]), Ok((dtype, dims.to_vec())));
            }
        }
        let brain = Shape::new(Dtype::Bf16, &[1]).expect("a shape");
        assert!(matches!(header(brain), Err(TensorFileError::NotHeld { dtype: "bf16", .. })));
    }
}
