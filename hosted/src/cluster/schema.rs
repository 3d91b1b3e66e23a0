//! The cluster file as a JSON schema, for editors: types, limits and meanings from the same table
//! and template as the parser's and the reader's.
//!
//! It is weaker than the parser where a rule takes two keys, as of the timing.

use serde_json::{Map, Value, json};

use super::explained::{self, ExplainedKey};
use super::hooks::Hooks;
use super::key::{self, ROWS, Shape};
use super::limit::Limit;
use super::{Cluster, ClusterName, Part};

/// The keys that must be there in their table.
const REQUIRED: [&str; 6] = [
    key::NAME,
    key::NODES.path,
    key::TASK_NAME,
    key::TASK_PROGRAM.path,
    key::GROUPS_NAME,
    key::GROUPS_MEMBERS,
];

/// The schema.
pub(super) fn schema() -> Value {
    let known = explained::all();
    let mut schema = object(&known, "");
    let fields = schema.as_object_mut().into_iter();
    fields.for_each(|fields| {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        fields.insert("$schema".to_owned(), draft.into());
        fields.insert("title".to_owned(), "A cluster of Weft".into());
    });
    schema
}

/// The table whose keys begin with `prefix`.
fn object(known: &[ExplainedKey], prefix: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (path, shape) in ROWS {
        let Some(leaf) = path.strip_prefix(prefix).filter(|leaf| !leaf.contains('.')) else {
            continue;
        };
        let mut value = of_shape(known, path, shape);
        let about = known.iter().find(|it| it.path == path);
        if let (Some(fields), Some(it)) = (value.as_object_mut(), about)
            && !it.about.is_empty()
        {
            fields.insert("description".to_owned(), it.about.clone().into());
        }
        if REQUIRED.contains(&path) {
            required.push(leaf);
        }
        properties.insert(leaf.to_owned(), value);
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_shape(known: &[ExplainedKey], path: &str, shape: Shape) -> Value {
    let table = || object(known, &format!("{path}."));
    let command = || {
        json!({
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
            "maxItems": Hooks::WORDS_MAX,
        })
    };
    match shape {
        Shape::Table => table(),
        Shape::Tables(key) => {
            let mut tables = json!({ "type": "array", "items": table() });
            tables["maxItems"] = bounds(key.limit).1.into();
            tables
        }
        Shape::Number(key) => match key.limit {
            Limit::PowerOfTwo { min, max } => {
                let powers = (0..u64::BITS).map(|log2| 1_u64 << log2);
                let powers: Vec<u64> = powers.filter(|it| (min..=max).contains(it)).collect();
                json!({ "type": "integer", "enum": powers })
            }
            limit => {
                let (min, max) = bounds(limit);
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
        },
        Shape::Word(words) => json!({ "type": "string", "enum": words() }),
        Shape::Parts => {
            let parts = Part::ALL.map(Part::as_str);
            let each = json!({ "type": "string", "enum": parts });
            json!({ "type": "array", "items": each, "maxItems": Cluster::NODES_MAX })
        }
        Shape::Name => {
            let pattern = format!("^[a-z0-9][a-z0-9_-]{{0,{}}}$", ClusterName::LEN_MAX - 1);
            json!({ "type": "string", "pattern": pattern })
        }
        Shape::Text(key) => {
            let (min, max) = bounds(key.limit);
            json!({ "type": "string", "minLength": min, "maxLength": max })
        }
        Shape::Texts(limit) => {
            let each = json!({ "type": "string" });
            json!({ "type": "array", "items": each, "maxItems": bounds(limit).1 })
        }
        Shape::Ranks => {
            let max = Cluster::NODES_MAX - 1;
            let each = json!({ "type": "integer", "minimum": 0, "maximum": max });
            json!({ "type": "array", "items": each, "uniqueItems": true })
        }
        Shape::Command => command(),
        Shape::Commands => json!({ "type": "object", "additionalProperties": command() }),
        Shape::Etcd => json!({ "type": "string", "pattern": "^etcd://" }),
        Shape::Length | Shape::Base64 | Shape::File => json!({ "type": "string" }),
    }
}

/// The least and the most that a limit of a number or a length allows.
const fn bounds(limit: Limit) -> (u64, u64) {
    match limit {
        Limit::Range { min, max }
        | Limit::Reasoned { min, max, .. }
        | Limit::PowerOfTwo { min, max }
        | Limit::Text { min, max } => (min, max),
        _ => (0, u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Whether `value` is as `schema` says, by the few words of the standard that it uses.
    fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("{at}: {why}: {value}"));
        let of = |word: &str| schema.get(word);
        if of("enum").is_some_and(|all| !all.as_array().expect("a list").contains(value)) {
            return wrong("none of the words");
        }
        let len = |word: &str| of(word).and_then(Value::as_u64);
        let within = |n: u64, min: &str, max: &str| {
            len(min).is_none_or(|min| n >= min) && len(max).is_none_or(|max| n <= max)
        };
        match (schema["type"].as_str().expect("a type"), value) {
            ("object", Value::Object(fields)) => {
                let required = of("required").and_then(Value::as_array).into_iter().flatten();
                for field in required.filter_map(Value::as_str) {
                    if !fields.contains_key(field) {
                        return wrong(&format!("without {field}"));
                    }
                }
                fields.iter().try_for_each(|(field, value)| {
                    let known = of("properties").and_then(|all| all.get(field));
                    let schema = known.or_else(|| of("additionalProperties")).expect("one of them");
                    match schema {
                        Value::Bool(_) => Err(format!("{at}: no key {field}")),
                        schema => check(schema, value, &format!("{at}.{field}")),
                    }
                })
            }
            ("array", Value::Array(all)) => {
                if !within(all.len() as u64, "minItems", "maxItems") {
                    return wrong("too few or too many");
                }
                all.iter().try_for_each(|value| check(&schema["items"], value, at))
            }
            ("integer", Value::Number(number)) => match number.as_u64() {
                Some(number) if within(number, "minimum", "maximum") => Ok(()),
                _ => wrong("outside its limits"),
            },
            ("string", Value::String(text)) => {
                match within(text.chars().count() as u64, "minLength", "maxLength") {
                    true => Ok(()),
                    false => wrong("too short or too long"),
                }
            }
            _ => wrong("of another type"),
        }
    }

    fn holds(text: &str) -> Result<(), String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
        let value = serde_json::to_value(table).map_err(|error| format!("{error}"))?;
        check(&schema(), &value, "")
    }

    /// Every header and key of the template that is a comment, as if it were none, but for the two
    /// that exclude each other.
    #[test]
    fn the_template_and_its_examples_are_as_the_schema_says() {
        holds(&Cluster::template()).expect("the template");
        let template = Cluster::template();
        let is_example = |line: &str| {
            let line = line.strip_prefix("# ").unwrap_or_default();
            line.starts_with('[') && line.ends_with(']')
                || line.split_once(" = ").is_some_and(|(leaf, _)| !leaf.contains(' '))
        };
        let shown = |line: &str| match is_example(line) {
            true => line.replacen("# ", "", 1),
            false => line.to_owned(),
        };
        let all: Vec<String> = template.lines().map(shown).collect();
        holds(&all.join("\n")).expect("the template with all examples");
        for text in [
            include_str!("../../../fuzz/corpus/cluster_file/all"),
            include_str!("../../../fuzz/corpus/cluster_file/addresses"),
            include_str!("../../../fuzz/corpus/cluster_file/smallest"),
            include_str!("../../../fuzz/corpus/cluster_file/timing"),
        ] {
            assert!(Cluster::parse(text, Path::new("c.toml")).is_ok(), "{text}");
            holds(text).unwrap_or_else(|why| panic!("{why}: {text}"));
        }
    }

    #[test]
    fn what_the_parser_refuses_for_one_key_the_schema_refuses_too() {
        const TOP: &str = "name = \"t\"\nnodes = 4\n";
        for (wrong, why) in [
            ("[lane]\nslots = 9\n", "none of the words"),
            ("[lane]\nslot = 8\n", "no key slot"),
            ("wait = \"sleep\"\n", "none of the words"),
            ("[mailbox]\nmessage_len = 4001\n", "outside its limits"),
            ("[mailbox]\nmessage_len = \"8\"\n", "of another type"),
            ("[[task]]\nname = \"a\"\n", "without program"),
            ("[hooks]\nremoved = []\n", "too few or too many"),
        ] {
            let text = format!("{TOP}{wrong}");
            assert!(Cluster::parse(&text, Path::new("c.toml")).is_err(), "{text}");
            let refused = holds(&text).expect_err(&text);
            assert!(refused.contains(why), "{refused}");
        }
        assert!(holds("nodes = 4\n").expect_err("no name").contains("without name"));
    }
}
