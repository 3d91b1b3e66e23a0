//! The text of OpenMetrics 1.0: families one after the other, each with its type and help, and
//! `# EOF` at the end.
//!
//! Written here because counters that say since when they count (`_created`), which begin again
//! with each incarnation of a component, are in no maintained library of Rust.

use std::fmt::{self, Display, Write};

use weft::node::control::Latency;

/// What HTTP calls this text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A text under way.
pub(super) struct Exposition {
    text: String,
    /// The labels of every sample.
    common: String,
}

/// A family under way: samples of one name.
pub(super) struct Family<'a> {
    text: &'a mut String,
    common: &'a str,
    name: &'static str,
}

/// A label's name and value.
pub(super) type Label<'a> = (&'a str, &'a dyn Display);

impl Exposition {
    /// A text whose samples all have these labels.
    pub(super) fn new(labels: &[Label<'_>]) -> Self {
        let mut common = String::new();
        push_labels(&mut common, labels);
        Self { text: String::new(), common }
    }

    /// Begins a family, whose unit is the last part of its name if that is one.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let Self { text, common } = self;
        push(text, format_args!("# TYPE {name} {kind}\n"));
        if name.ends_with("_seconds") {
            push(text, format_args!("# UNIT {name} seconds\n"));
        }
        push(text, format_args!("# HELP {name} {}\n", Escaped(&help)));
        Family { text, common, name }
    }

    /// Ends the text.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

impl Family<'_> {
    /// A value as it is now.
    pub(super) fn gauge(&mut self, labels: &[Label<'_>], value: impl Display) {
        self.sample("", labels, value);
    }

    /// A count, and since when, in milliseconds since 1970, if that is known.
    pub(super) fn counter(&mut self, labels: &[Label<'_>], count: u64, since: Option<u64>) {
        self.sample("_total", labels, count);
        self.created(labels, since);
    }

    /// A histogram: each bucket counts what is in those before it, too.
    pub(super) fn histogram(&mut self, latency: &Latency, since: u64) {
        let bounds = Latency::BOUNDS_NS.map(|ns| Seconds { ns }.to_string());
        let bounds = bounds.iter().map(String::as_str).chain(["+Inf"]);
        let mut below = 0;
        for (bound, count) in bounds.zip(latency.counts) {
            below += count;
            self.sample("_bucket", &[("le", &bound)], below);
        }
        self.sample("_sum", &[], Seconds { ns: latency.sum_ns });
        self.sample("_count", &[], below);
        self.created(&[], Some(since));
    }

    /// One of some states.
    pub(super) fn states(&mut self, labels: &[Label<'_>], all: &[&str], now: &str) {
        let name = self.name;
        for state in all {
            let labels = [labels, &[(name, state)]].concat();
            self.sample("", &labels, u8::from(*state == now));
        }
    }

    fn created(&mut self, labels: &[Label<'_>], since_unix_ms: Option<u64>) {
        if let Some(ms) = since_unix_ms {
            let (s, ms) = (ms / 1_000, ms % 1_000);
            self.sample("_created", labels, format_args!("{s}.{ms:03}"));
        }
    }

    pub(super) fn sample(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        let Self { text, common, name } = self;
        push(text, format_args!("{name}{suffix}{{{common}"));
        push_labels(text, labels);
        push(text, format_args!("}} {value}\n"));
    }
}

/// Nanoseconds as the seconds of the format: without rounding, and always with a point.
pub(super) struct Seconds {
    pub(super) ns: u64,
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ns } = self;
        write!(f, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

fn push_labels(text: &mut String, labels: &[Label<'_>]) {
    for (name, value) in labels {
        let comma = if text.ends_with(['"']) { "," } else { "" };
        push(text, format_args!("{comma}{name}=\"{}\"", Escaped(value)));
    }
}

/// A text in which nothing ends the label or the line.
struct Escaped<'a>(&'a dyn Display);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string().chars().try_for_each(|letter| match letter {
            '\n' => f.write_str("\\n"),
            '"' | '\\' => write!(f, "\\{letter}"),
            letter => f.write_char(letter),
        })
    }
}

fn push(text: &mut String, what: fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_one_of_the_standard() {
        let mut text = Exposition::new(&[("cluster", &"t"), ("node", &0)]);
        let mut family = text.family("weft_a", "counter", "All \\ of\nthem.");
        family.counter(&[("task", &"x\"y\\\n")], 3, Some(1_700_000_000_070));
        family.counter(&[], 4, None);
        text.family("weft_b_seconds", "gauge", "How long.").gauge(&[], Seconds { ns: 2_000_001 });
        text.family("weft_c", "stateset", "Which.").states(&[], &["on", "off"], "off");
        let expected = r#"# TYPE weft_a counter
# HELP weft_a All \\ of\nthem.
weft_a_total{cluster="t",node="0",task="x\"y\\\n"} 3
weft_a_created{cluster="t",node="0",task="x\"y\\\n"} 1700000000.070
weft_a_total{cluster="t",node="0"} 4
# TYPE weft_b_seconds gauge
# UNIT weft_b_seconds seconds
# HELP weft_b_seconds How long.
weft_b_seconds{cluster="t",node="0"} 0.002000001
# TYPE weft_c stateset
# HELP weft_c Which.
weft_c{cluster="t",node="0",weft_c="on"} 0
weft_c{cluster="t",node="0",weft_c="off"} 1
# EOF
"#;
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn buckets_count_all_that_is_not_longer() {
        let mut latency = Latency::default();
        (latency.counts[0], latency.counts[2], latency.counts[25]) = (2, 3, 1);
        latency.sum_ns = 9_000_000_000;
        let mut text = Exposition::new(&[]);
        text.family("weft_put_seconds", "histogram", "Puts.").histogram(&latency, 1_000);
        let text = text.finish();
        for line in [
            "weft_put_seconds_bucket{le=\"0.000000512\"} 2\n",
            "weft_put_seconds_bucket{le=\"0.000001024\"} 2\n",
            "weft_put_seconds_bucket{le=\"0.000002048\"} 5\n",
            "weft_put_seconds_bucket{le=\"8.589934592\"} 5\n",
            "weft_put_seconds_bucket{le=\"+Inf\"} 6\n",
            "weft_put_seconds_sum{} 9.000000000\n",
            "weft_put_seconds_count{} 6\n",
            "weft_put_seconds_created{} 1.000\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
