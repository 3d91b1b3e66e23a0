//! Names of types: a noun of the field, not a name for "code that did not fit elsewhere".

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, leading_ident, words};
use crate::tree::Tree;

const REFUSED: &[&str] = &["Helper", "Helpers", "Util", "Utils", "Manager", "Service"];

const KEYWORDS: &[&str] = &["struct ", "enum ", "trait ", "type ", "union "];

fn nouns(source: &Source) -> Vec<Finding> {
    // `Manager` is a role of the DIR net.
    let is_role = |name: &str| name == "Manager" && source.path.contains("dirnet");
    let mut findings = Vec::new();
    for (at, line) in source.numbered() {
        for keyword in KEYWORDS {
            for place in words(&line.code, keyword) {
                let name = leading_ident(line.code[place + keyword.len()..].trim_start());
                if REFUSED.iter().any(|end| name.ends_with(end)) && !is_role(name) {
                    let cure = "name it by the noun of the field that it is";
                    findings.push(source.finding(at, format!("a type called {name}"), cure));
                }
            }
        }
    }
    findings
}

#[test]
fn types_have_names_of_the_field() {
    expect_none("no type is called after its being useful", &Tree::load().check(nouns));
}

#[test]
fn a_useful_type_is_found() {
    let bad = "struct RegionManager;\npub enum Utils {}\npub(crate) trait  SlotHelper {}\n\
               struct Manager;\ntype NameService = u8;\nstruct Serviced;\nlet ManagerRank = 1;";
    let check = |path| lines(&nouns(&Source::parse(path, bad)));
    assert_eq!(check("core/src/mailbox.rs"), [1, 2, 3, 4, 5]);
    assert_eq!(check("core/src/dirnet/role.rs"), [1, 2, 3, 5]);
}
