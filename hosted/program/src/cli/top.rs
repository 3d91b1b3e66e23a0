//! `weft top`: the cluster live, until q is pressed or a signal ends it.
//!
//! ```text
//!   a thread for each node ── replies ──▶ terminal thread: keys, Screen, drawing
//!          ▲                                  │
//!          └────────────── rounds ────────────┘
//! ```
//!
//! Nodes are asked on threads of their own, so that one that hangs delays neither the keys nor the
//! figures of the others.

mod asking;
mod columns;
mod rates;
mod screen;
mod view;

use std::env;
use std::io::{self, ErrorKind, IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::cluster_choice::{ClusterChoice, Running, seconds};
use super::failure::Failure;
use super::output::Output;
use asking::Asking;
use screen::{Screen, Wish};
use view::{Now, Palette};
use weft::clock::{now_ns, unix_ms};
use weft::explain::Code;

/// How long a key may wait to be noticed.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);

/// How often the picture is drawn while nothing changes, for what it says of time.
const DRAW_EVERY_NS: u64 = 1_000_000_000;

/// The shortest period of questions.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// What people see.
const SCREEN: &str = "\
Press ? for the keys. The nodes come first: states, suspicions, and messages per second with their \
last samples. Below them is what wants attention, the last verdicts, tasks, and the views and \
groups. Enter shows a node in detail. Colours follow NO_COLOR, and nothing is said by colour \
alone.";

/// Arguments of `weft top`.
#[derive(Debug, Args)]
#[command(after_help = SCREEN)]
pub(super) struct TopArguments {
    /// How often the nodes are asked, in seconds; 0.1 at least.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", allow_negative_numbers = true)]
    every: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &TopArguments, output: Output) -> Result<(), Failure> {
    let every = seconds("--every", arguments.every)?.max(EVERY_MIN);
    if output.is_json() || !stdout().is_terminal() {
        let cause = "weft top draws on a terminal, and standard output is none";
        return Err(Failure::of(Code::Usage, cause, "`weft status --json` prints the same once"));
    }
    if env::var_os("TERM").is_some_and(|term| term == "dumb") {
        let cause = "weft top draws on a terminal, and TERM says that this one is dumb";
        return Err(Failure::of(Code::Usage, cause, "`weft status` prints the same once"));
    }
    let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let palette = if is_plain { Palette::Plain } else { Palette::Coloured };
    let running = Arc::new(arguments.cluster.find()?);
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let heard = flag::register(signal, Arc::clone(&is_ended));
        heard.map_err(|error| broken(&error))?;
    }
    let mut terminal = ratatui::try_init().map_err(|error| broken(&error))?;
    let ended = watch(&mut terminal, &running, every, palette, &is_ended);
    ratatui::restore();
    ended
}

fn watch(
    terminal: &mut DefaultTerminal,
    running: &Arc<Running>,
    every: Duration,
    palette: Palette,
    is_ended: &AtomicBool,
) -> Result<(), Failure> {
    let mut screen = Screen::new(running.cluster.clone(), every);
    let mut asking = Asking::start(running)?;
    let (mut asked_ns, mut drawn_ns) = (None, None);
    let is_due = |last_ns: Option<u64>, every_ns: u64, now_ns: u64| {
        last_ns.is_none_or(|last_ns| now_ns.saturating_sub(last_ns) >= every_ns)
    };
    while !is_ended.load(Ordering::Relaxed) {
        while let Some(reply) = asking.poll_reply() {
            drawn_ns = None;
            if screen.handle_reply(reply) {
                let cluster = screen.survey.cluster.clone();
                asking = Asking::start(&Arc::new(running.again(cluster)))?;
                asked_ns = None;
            }
        }
        let now_ns = now_ns();
        let every_ns = u64::try_from(screen.every.as_nanos()).unwrap_or(u64::MAX);
        if !screen.is_paused && is_due(asked_ns, every_ns, now_ns) {
            if !asking.begin_round() {
                return Err(broken(&io::Error::other("a thread that asks has ended")));
            }
            screen.handle_round(now_ns);
            asked_ns = Some(now_ns);
        }
        if is_due(drawn_ns, DRAW_EVERY_NS, now_ns) {
            let now = Now { ns: now_ns, unix_ms: unix_ms() };
            let drawn = terminal.draw(|frame| view::draw(frame, &mut screen, palette, now));
            drawn.map_err(|error| broken(&error))?;
            drawn_ns = Some(now_ns);
        }
        for event in events().map_err(|error| broken(&error))? {
            drawn_ns = None;
            let Event::Key(key) = event else { continue };
            match screen.handle_key(&key, now_ns) {
                Wish::Nothing => {}
                Wish::End => return Ok(()),
                Wish::Suspend => *terminal = suspended().map_err(|error| broken(&error))?,
            }
        }
    }
    Ok(())
}

/// Stops the program as the shell would, and begins again with an empty screen when it goes on.
fn suspended() -> io::Result<DefaultTerminal> {
    ratatui::try_restore()?;
    kill_process(getpid(), Signal::TSTP)?;
    ratatui::try_init()
}

/// The keys, and changes of the terminal's size, that come within [`KEY_TIMEOUT`].
fn events() -> io::Result<Vec<Event>> {
    let input = stdin();
    let mut timeout = KEY_TIMEOUT;
    if input.is_terminal() {
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        let span = Timespec::try_from(KEY_TIMEOUT).map_err(io::Error::other)?;
        match poll(&mut waiting, Some(&span)) {
            Ok(_) | Err(Errno::INTR) => timeout = Duration::ZERO,
            Err(error) => return Err(error.into()),
        }
        // Crossterm would read the end of a terminal that has hung up again and again.
        if waiting[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let mut events = Vec::new();
    while events.len() < EVENTS_MAX && event::poll(timeout)? {
        events.push(event::read()?);
        timeout = Duration::ZERO;
    }
    Ok(events)
}

/// The most keys that are taken before the next picture, such as those of a text that is pasted.
const EVENTS_MAX: usize = 64;

fn broken(error: &io::Error) -> Failure {
    let cause = format!("the terminal cannot be drawn on, or read from: {error}");
    Failure::of(Code::Output, cause, "run it in a terminal; `weft status` prints the same once")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_is_lost_ends_it_as_output_that_cannot_be_written() {
        let lost = io::Error::from_raw_os_error(5);
        assert_eq!(broken(&lost).code(), Code::Output);
    }
}
