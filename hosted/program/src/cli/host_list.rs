//! A list of hosts as SLURM writes it: `n[01-04,7],m3`.
//!
//! ```text
//!   list  = item { "," item }            n[01-04,7],m3
//!   item  = text { "[" range { "," range } "]" text }
//!   range = number [ "-" number ]        leading zeros stay
//! ```

use weft::cluster::Cluster;

/// Why a text is no list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostListError {
    /// Nothing between two commas, or no list at all.
    #[error("a host has no name")]
    Empty,
    /// A bracket without its counterpart, or one within another.
    #[error("a bracket has no counterpart")]
    Bracket,
    /// Between brackets, something other than numbers and ranges that rise.
    #[error("{0:?} is no range such as 01-04")]
    Range(String),
    /// A character that no name of a host has.
    #[error("a host cannot have {0:?} in its name")]
    Character(char),
    /// More hosts than a cluster has nodes.
    #[error("it names more than {} hosts", Cluster::NODES_MAX)]
    TooMany,
}

/// The hosts of `list`, in its order.
pub(super) fn expand(list: &str) -> Result<Vec<String>, HostListError> {
    let mut hosts = Vec::new();
    for item in items(list)? {
        hosts.extend(expand_item(item)?);
        if hosts.len() > Cluster::NODES_MAX {
            return Err(HostListError::TooMany);
        }
    }
    Ok(hosts)
}

/// The parts between those commas that are in no bracket.
fn items(list: &str) -> Result<Vec<&str>, HostListError> {
    let (mut items, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, character) in list.char_indices() {
        match character {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return Err(HostListError::Bracket),
            ',' if !is_inside => {
                items.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[begin..]);
    if is_inside { Err(HostListError::Bracket) } else { Ok(items) }
}

fn expand_item(item: &str) -> Result<Vec<String>, HostListError> {
    if item.is_empty() {
        return Err(HostListError::Empty);
    }
    let mut hosts = vec![String::new()];
    let mut rest = item;
    while let Some((text, behind)) = rest.split_once('[') {
        let (ranges, behind) = behind.split_once(']').ok_or(HostListError::Bracket)?;
        let numbers = numbers(ranges)?;
        if hosts.len() * numbers.len() > Cluster::NODES_MAX {
            return Err(HostListError::TooMany);
        }
        check_text(text)?;
        let of = |host: &String| {
            numbers.iter().map(|number| format!("{host}{text}{number}")).collect::<Vec<_>>()
        };
        hosts = hosts.iter().flat_map(of).collect();
        rest = behind;
    }
    check_text(rest)?;
    hosts.iter_mut().for_each(|host| host.push_str(rest));
    Ok(hosts)
}

fn check_text(text: &str) -> Result<(), HostListError> {
    let is_named = |it: &char| it.is_ascii_alphanumeric() || "-_.".contains(*it);
    let stranger = text.chars().find(|it| !is_named(it));
    stranger.map_or(Ok(()), |it| Err(HostListError::Character(it)))
}

/// The numbers of all ranges, as wide as their first ones.
fn numbers(ranges: &str) -> Result<Vec<String>, HostListError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let wrong = || HostListError::Range(range.to_owned());
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_number = text.bytes().all(|it| it.is_ascii_digit());
            is_number.then(|| text.parse::<u32>().ok()).flatten().ok_or_else(wrong)
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(wrong());
        }
        if numbers.len() + (to - from) as usize >= Cluster::NODES_MAX {
            return Err(HostListError::TooMany);
        }
        let width = first.len();
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m10_lists_of_hosts_are_expanded_in_order() {
        for (list, hosts) in [
            ("n1", &["n1"][..]),
            ("n[01-04,7],m3", &["n01", "n02", "n03", "n04", "n7", "m3"]),
            ("a-b.example,c[9-11]", &["a-b.example", "c9", "c10", "c11"]),
            ("r[1-2]n[8-9]x", &["r1n8x", "r1n9x", "r2n8x", "r2n9x"]),
            ("n[08-10]", &["n08", "n09", "n10"]),
        ] {
            let expected = hosts.iter().map(ToString::to_string).collect();
            assert_eq!(expand(list), Ok(expected), "{list}");
        }
    }

    #[test]
    fn m10_what_is_no_list_of_hosts_is_refused_with_its_reason() {
        let range = |text: &str| HostListError::Range(text.to_owned());
        for (list, error) in [
            ("", HostListError::Empty),
            ("a,", HostListError::Empty),
            ("a,,b", HostListError::Empty),
            ("n[1", HostListError::Bracket),
            ("n1]", HostListError::Bracket),
            ("n[1[2]]", HostListError::Bracket),
            ("n[]", range("")),
            ("n[a]", range("a")),
            ("n[1-]", range("1-")),
            ("n[4-1]", range("4-1")),
            ("n[+1]", range("+1")),
            ("n[99999999999]", range("99999999999")),
            ("n 1", HostListError::Character(' ')),
            ("n:1", HostListError::Character(':')),
            ("n[0-4294967295]", HostListError::TooMany),
            ("n[1-33]", HostListError::TooMany),
            ("a[1-9][1-9][1-9]", HostListError::TooMany),
        ] {
            assert_eq!(expand(list), Err(error), "{list}");
        }
    }
}
