//! `weft top`: the cluster live, until q is pressed or a signal ends it.
//!
//! ```text
//!   sampler thread ── Survey, each period ──▶ terminal thread: keys, Screen, drawing
//! ```
//!
//! Nodes are asked on a thread of their own, so that one that hangs delays the figures but never
//! the keys.

mod rates;
mod view;

use std::io::{self, ErrorKind, IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::flag;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::Output;
use super::survey::Survey;
use rates::Screen;
use weft::clock::now_ns;
use weft::explain::Code;
use weft::process::start_thread;

/// How long a key may wait to be noticed.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);

/// Arguments of `weft top`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How often the nodes are asked, in seconds.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", allow_negative_numbers = true)]
    every: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let every = seconds("--every", arguments.every)?;
    if output.is_json() || !stdout().is_terminal() {
        let cause = "weft top draws on a terminal, and standard output is none";
        return Err(Failure::of(Code::Usage, cause, "`weft status --json` prints the same once"));
    }
    let running = arguments.cluster.find()?;
    let (sender, surveys) = sync_channel(1);
    start_thread("weft-survey", move || {
        // Sampling ends with the terminal thread.
        while sender.send((now_ns(), Survey::take(&running))).is_ok() {
            thread::park_timeout(every);
        }
    })
    .map_err(Failure::new)?;
    let mut terminal = ratatui::try_init().map_err(|error| broken(&error))?;
    let ended = watch(&mut terminal, &surveys);
    ratatui::restore();
    ended
}

fn watch(terminal: &mut DefaultTerminal, surveys: &Receiver<(u64, Survey)>) -> Result<(), Failure> {
    let mut screen = Screen::default();
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGTERM] {
        let heard = flag::register(signal, Arc::clone(&is_ended));
        heard.map_err(|error| broken(&error))?;
    }
    loop {
        match surveys.try_recv() {
            Ok((at_ns, survey)) => screen.handle_survey(at_ns, survey),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        let drawn = terminal.draw(|frame| view::draw(frame, &screen));
        drawn.map_err(|error| broken(&error))?;
        if is_enough().map_err(|error| broken(&error))? || is_ended.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Whether a key that comes within [`KEY_TIMEOUT`] ends it.
fn is_enough() -> io::Result<bool> {
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
    while event::poll(timeout)? {
        if matches!(event::read()?, Event::Key(key) if ends(&key)) {
            return Ok(true);
        }
        timeout = Duration::ZERO;
    }
    Ok(false)
}

/// Whether the key means that it is enough: q, Escape or Ctrl-C.
fn ends(key: &KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && match key.code {
            KeyCode::Char('q') | KeyCode::Esc => true,
            KeyCode::Char('c') => control,
            _ => false,
        }
}

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
