//! One table of a cluster file, read key by key.
//!
//! Derived deserialisation reports an unknown key or a wrong value as a sentence of its own;
//! reading the parsed table by hand keeps the key, the value and the line as data, which the
//! errors of this crate promise. A section is only handed out once all its keys are known.
//! Syntax, and keys that occur twice, are found before by the TOML parser.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Choice, ClusterError, Place};
use super::key::{self, Key};
use super::limit::{Limit, LimitError};
use super::timing::TimingError;

/// A table of the file, or one that is not there and so sets nothing.
pub(super) struct FileSection<'a> {
    text: &'a str,
    origin: &'a Path,
    /// `mailbox.`, or nothing for the top.
    prefix: String,
    table: Option<&'a DeTable<'a>>,
}

impl<'a> FileSection<'a> {
    /// The keys before the first table header, and the tables.
    pub(super) fn top(
        text: &'a str,
        origin: &'a Path,
        table: &'a DeTable<'a>,
    ) -> Result<Self, ClusterError> {
        let top = Self { text, origin, prefix: String::new(), table: Some(table) };
        top.check_known()?;
        Ok(top)
    }

    /// The table `name` below this one.
    pub(super) fn section(&self, name: &'static str) -> Result<Self, ClusterError> {
        let table = match self.get(name) {
            None => None,
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => return Err(self.wrong_type(name, value, "a table")),
            },
        };
        let section =
            Self { text: self.text, origin: self.origin, prefix: format!("{name}."), table };
        section.check_known()?;
        Ok(section)
    }

    /// The tables of the array `name` below this one.
    pub(super) fn sections(&self, name: &'static str) -> Result<Vec<Self>, ClusterError> {
        let expected = "an array of tables";
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(self.wrong_type(name, value, expected));
        };
        let (text, origin) = (self.text, self.origin);
        let section = |value: &'a Spanned<DeValue<'a>>| {
            let DeValue::Table(table) = value.get_ref() else {
                return Err(self.wrong_type(name, value, expected));
            };
            let section = Self { text, origin, prefix: format!("{name}."), table: Some(table) };
            section.check_known().map(|()| section)
        };
        tables.iter().map(section).collect()
    }

    /// The text behind `path`.
    pub(super) fn text(&self, path: &'static str) -> Result<Option<String>, ClusterError> {
        match self.get(path).map(|value| (value, value.get_ref())) {
            None => Ok(None),
            Some((_, DeValue::String(text))) => Ok(Some(text.clone().into_owned())),
            Some((value, _)) => Err(self.wrong_type(path, value, "a string")),
        }
    }

    /// The texts of the array behind `path`.
    pub(super) fn texts(&self, path: &'static str) -> Result<Option<Vec<String>>, ClusterError> {
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong_type(path, value, "an array of strings")),
        };
        self.array(path, "an array of strings", text)
    }

    /// The commands of the table behind `path`, by their names, which the file chooses.
    pub(super) fn commands(
        &self,
        path: &'static str,
    ) -> Result<BTreeMap<String, Vec<String>>, ClusterError> {
        let expected = "a table of arrays of strings";
        let Some(value) = self.get(path) else { return Ok(BTreeMap::new()) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong_type(path, value, expected));
        };
        let word = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong_type(path, value, expected)),
        };
        let command = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let DeValue::Array(words) = value.get_ref() else {
                return Err(self.wrong_type(path, value, expected));
            };
            let words = words.iter().map(word).collect::<Result<_, _>>()?;
            Ok((name.get_ref().clone().into_owned(), words))
        };
        table.iter().map(command).collect()
    }

    /// The ranks of the array behind `path`, which must be below `nodes`.
    pub(super) fn ranks(
        &self,
        path: &'static str,
        nodes: usize,
    ) -> Result<Option<Vec<u16>>, ClusterError> {
        let limit = Limit::Range { min: 0, max: nodes.saturating_sub(1) as u64 };
        let rank = |value: &Spanned<DeValue<'_>>| {
            let DeValue::Integer(integer) = value.get_ref() else {
                return Err(self.wrong_type(path, value, "an array of ranks"));
            };
            u16::from_str_radix(integer.as_str(), integer.radix())
                .map_err(|_| self.limit(path, limit.refuse(path, integer.to_string())))
        };
        self.array(path, "an array of ranks", rank)
    }

    fn array<T>(
        &self,
        path: &'static str,
        expected: &'static str,
        element: impl Fn(&Spanned<DeValue<'_>>) -> Result<T, ClusterError>,
    ) -> Result<Option<Vec<T>>, ClusterError> {
        match self.get(path).map(|value| (value, value.get_ref())) {
            None => Ok(None),
            Some((_, DeValue::Array(values))) => {
                values.iter().map(element).collect::<Result<_, _>>().map(Some)
            }
            Some((value, _)) => Err(self.wrong_type(path, value, expected)),
        }
    }

    /// The number behind `key`, within its limit.
    pub(super) fn number(&self, key: &Key) -> Result<Option<u64>, ClusterError> {
        let Some(value) = self.get(key.path) else {
            return Ok(None);
        };
        let DeValue::Integer(integer) = value.get_ref() else {
            return Err(self.wrong_type(key.path, value, "an integer"));
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => match key.limit.admit(key.path, number) {
                Ok(()) => Ok(Some(number)),
                Err(source) => Err(self.limit(key.path, source)),
            },
            // Negative, or beyond 64 bits: no limit goes there.
            Err(_) => Err(self.limit(key.path, key.limit.refuse(key.path, integer.to_string()))),
        }
    }

    /// The word behind `path`, if it is one that `T` knows.
    pub(super) fn word<T>(&self, path: &'static str) -> Result<Option<T>, ClusterError>
    where
        T: FromStr<Err: Into<Choice>>,
    {
        self.get(path).map(|value| self.parse(path, value)).transpose()
    }

    /// The words of the array behind `path`, if they are all such that `T` knows.
    pub(super) fn words<T>(&self, path: &'static str) -> Result<Option<Vec<T>>, ClusterError>
    where
        T: FromStr<Err: Into<Choice>>,
    {
        self.array(path, "an array of strings", |value| self.parse(path, value))
    }

    fn parse<T>(&self, path: &'static str, value: &Spanned<DeValue<'_>>) -> Result<T, ClusterError>
    where
        T: FromStr<Err: Into<Choice>>,
    {
        let DeValue::String(word) = value.get_ref() else {
            return Err(self.wrong_type(path, value, "a string"));
        };
        word.parse().map_err(|source: T::Err| ClusterError::Choice {
            place: self.place(value),
            source: source.into(),
        })
    }

    /// The error for a key that must be set and is not.
    pub(super) fn missing(&self, path: &'static str) -> ClusterError {
        ClusterError::Missing { origin: self.origin.to_owned(), key: path }
    }

    /// A broken limit, at the line of its key.
    pub(super) fn limit(&self, path: &'static str, source: LimitError) -> ClusterError {
        let line = self.get(path).and_then(|value| self.place(value).line);
        ClusterError::Limit { place: Place { origin: self.origin.to_owned(), line }, source }
    }

    /// A broken rule, at the line of the first of its keys that is set here.
    pub(super) fn timing(&self, source: TimingError) -> ClusterError {
        let line = source.keys().find_map(|key| self.place(self.get(key)?).line);
        ClusterError::Timing { place: Place { origin: self.origin.to_owned(), line }, source }
    }

    fn get(&self, path: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.and_then(|table| table.get(key::leaf(path)))
    }

    fn check_known(&self) -> Result<(), ClusterError> {
        let unknown = self
            .table
            .into_iter()
            .flatten()
            .map(|(name, _)| (name.span().start, format!("{}{}", self.prefix, name.get_ref())))
            .filter(|(_, path)| !key::PATHS.contains(&path.as_str()))
            .min();
        let Some((start, path)) = unknown else {
            return Ok(());
        };
        Err(ClusterError::Unknown {
            place: Place::at(self.origin, self.text, start),
            suggestion: key::suggestion(&path),
            key: path,
        })
    }

    fn wrong_type(
        &self,
        path: &'static str,
        value: &Spanned<DeValue<'_>>,
        expected: &'static str,
    ) -> ClusterError {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        ClusterError::WrongType { place: self.place(value), key: path, expected, found }
    }

    fn place(&self, value: &Spanned<DeValue<'_>>) -> Place {
        Place::at(self.origin, self.text, value.span().start)
    }
}
