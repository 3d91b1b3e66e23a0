//! A key of the cluster file, explained by the file that explains every key.
//!
//! The template is the one text about each key; this module finds a key's part of it:
//!
//! ```text
//!   # The longest message in bytes: 8 to 4000. …   ◀ about
//!   message_len = 256                              ◀ the default, unless it is a comment, too
//! ```
//!
//! Keys that follow each other share what stands before the first of them.

use std::fmt;

use super::Cluster;
use super::key::{self, PATHS, ROWS, Shape};
use super::limit::Limit;
use crate::explain::{Code, Explain};

/// What is known of a key of the cluster file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedKey {
    /// The whole path, such as `mailbox.slots`.
    pub path: &'static str,
    /// Its meaning, as the template has it; of a table, that of all of its keys.
    pub about: String,
    /// What may stand there.
    pub value: String,
    /// The value without it, where that does not depend on other keys.
    pub default: Option<String>,
    /// An example, where there is no default.
    pub example: Option<String>,
    /// Of a table: its keys.
    pub keys: Vec<&'static str>,
}

/// A line of the template.
enum TemplateLine<'a> {
    Blank,
    /// The header of a table, or of an example of one.
    Header(&'a str),
    /// A key and its value; in a comment, or not.
    Key {
        leaf: &'a str,
        value: &'a str,
        is_set: bool,
    },
    Comment(&'a str),
}

impl<'a> TemplateLine<'a> {
    fn of(line: &'a str) -> Self {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let header = bare.strip_prefix("[[").and_then(|it| it.strip_suffix("]]"));
        let header = header.or_else(|| bare.strip_prefix('[').and_then(|it| it.strip_suffix(']')));
        let is_leaf = |it: &&str| it.chars().all(|it| it.is_ascii_lowercase() || it == '_');
        match (header, bare.split_once(" = ")) {
            (Some(path), _) => Self::Header(path),
            (None, Some((leaf, value))) if is_leaf(&leaf) => {
                Self::Key { leaf, value, is_set: !line.starts_with('#') }
            }
            _ if line.is_empty() => Self::Blank,
            _ => Self::Comment(bare.trim_start_matches('#').trim()),
        }
    }
}

/// All keys, in the order of the template.
pub(super) fn all() -> Vec<ExplainedKey> {
    let (template, mut found) = (Cluster::template(), Vec::new());
    let (mut prefix, mut about, mut is_open) = (String::new(), Vec::new(), true);
    for line in template.lines() {
        match TemplateLine::of(line) {
            TemplateLine::Blank => about.clear(),
            TemplateLine::Comment(text) => {
                if !is_open {
                    about.clear();
                }
                about.push(text);
            }
            TemplateLine::Header(path) => {
                prefix = format!("{path}.");
                found.extend(explained(path, &about, None));
            }
            TemplateLine::Key { leaf, value, is_set } => {
                found.extend(explained(&format!("{prefix}{leaf}"), &about, Some((value, is_set))));
                let inner = PATHS.into_iter().filter_map(|path| {
                    let inner = path.strip_prefix(&format!("{prefix}{leaf}."))?;
                    Some((path, value.split_once(&format!("{inner} = "))?.1))
                });
                for (path, value) in inner {
                    let value = value.split([',', ' ', '}']).next().unwrap_or_default();
                    found.extend(explained(path, &about, Some((value, is_set))));
                }
            }
        }
        is_open = matches!(
            TemplateLine::of(line),
            TemplateLine::Comment(_) | TemplateLine::Blank | TemplateLine::Header(_)
        );
    }
    found
}

fn explained(path: &str, about: &[&str], value: Option<(&str, bool)>) -> Option<ExplainedKey> {
    let (path, shape) = ROWS.into_iter().find(|(it, _)| *it == path)?;
    let below = |it: &&str| it.rsplit_once('.').is_some_and(|(table, _)| table == path);
    let of = |wanted| value.filter(|(_, is_set)| *is_set == wanted).map(|(it, _)| it.to_owned());
    Some(ExplainedKey {
        path,
        about: about.join(" "),
        value: shape.to_string(),
        default: of(true),
        example: of(false),
        keys: PATHS.into_iter().filter(below).collect(),
    })
}

/// The explanation of the key `path`.
pub(super) fn one(path: &str) -> Result<ExplainedKey, UnknownKey> {
    all().into_iter().find(|it| it.path == path).ok_or_else(|| UnknownKey {
        path: path.chars().take(80).collect(),
        meant: key::suggestion(path),
    })
}

/// There is no such key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster file has no key {path:?}")]
pub struct UnknownKey {
    /// What was asked for.
    pub path: String,
    /// The key that was probably meant.
    pub meant: Option<&'static str>,
}

impl Explain for UnknownKey {
    fn code(&self) -> Code {
        Code::Usage
    }

    fn cure(&self) -> String {
        match self.meant {
            Some(meant) => format!("it is probably {meant}; `weft config explain` lists all keys"),
            None => "choose one that `weft config explain` lists".to_owned(),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("a table"),
            Self::Tables(key) => write!(f, "tables, {}", key.limit),
            Self::Number(key) => write!(f, "an integer, {}", key.limit),
            Self::Word(words) => write!(f, "one of {}", words().join(", ")),
            Self::Parts => f.write_str("an array of roles, one for each node"),
            Self::Name => Limit::Name.fmt(f),
            Self::Text(key) => write!(f, "a text of {}", key.limit),
            Self::Texts(limit) => write!(f, "an array of texts, {limit}"),
            Self::Ranks => f.write_str("an array of ranks, each once"),
            Self::Command => f.write_str("an array of texts: a program and its arguments"),
            Self::Commands => f.write_str("a table of arrays: programs and their arguments"),
            Self::Length => f.write_str("a length such as \"64 KiB\""),
            Self::Base64 => f.write_str("bytes in base64"),
            Self::Etcd => Limit::Etcd.fmt(f),
            Self::File => f.write_str("the path of a file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_explained_once() {
        let all = all();
        for path in PATHS {
            let found: Vec<_> = all.iter().filter(|it| it.path == path).collect();
            let [one] = found[..] else { panic!("{path}: {found:?}") };
            assert!(!one.about.is_empty() || !one.keys.is_empty(), "{one:?}");
            assert!(!one.about.contains(" = "), "{one:?}");
        }
    }

    #[test]
    fn a_key_has_its_meaning_limit_and_default() {
        let slots = one("mailbox.slots").expect("it is one");
        assert!(slots.about.starts_with("Slots in each of the two halves"), "{slots:?}");
        assert_eq!(slots.value, "an integer, a power of two from 16 to 4096");
        assert_eq!(slots.default.as_deref(), Some("1024"));
        let blocks = one("group.blocks").expect("it is one");
        assert!(blocks.about.starts_with("How many messages, and how many blocks"), "{blocks:?}");
        let max = one("task.restart.max").expect("it is one");
        assert_eq!((max.default, max.example.as_deref()), (None, Some("3")));
        let send = one("dirnet.timing.send_us").expect("it is one");
        assert!(!send.about.contains("Refused unless"), "{send:?}");
        assert_eq!(one("lane").expect("a table").keys, ["lane.slots"]);
        let unknown = one("lane.slot").expect_err("none");
        assert_eq!(unknown.meant, Some("lane.slots"));
    }
}
