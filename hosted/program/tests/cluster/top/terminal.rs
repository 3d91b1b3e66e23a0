//! A terminal that a program draws on: what it shows, its mode, and keys.
//!
//! It understands what the program writes and no more: the cursor's place, clearing, the alternate
//! screen; it forgets colours.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Both ends of it.
pub(super) struct Terminal {
    master: File,
    path: PathBuf,
    /// Keeps its mode while no program has it open.
    slave: Option<File>,
    mode: LocalModes,
    written: Vec<u8>,
    size: (usize, usize),
}

impl Terminal {
    pub(super) fn new(size: (u16, u16)) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be opened");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        let slave = File::options().read(true).write(true).open(&path).expect("it can be opened");
        let mode = tcgetattr(&slave).expect("it is a terminal").local_modes;
        let (master, slave, written) = (File::from(master), Some(slave), Vec::new());
        let mut terminal = Self { master, path, slave, mode, written, size: (0, 0) };
        terminal.resize(size);
        terminal
    }

    /// What a program reads from and writes to.
    pub(super) fn open(&self) -> File {
        let opened = File::options().read(true).write(true).open(&self.path);
        opened.expect("it can be opened")
    }

    /// The program is yet to learn of it.
    pub(super) fn resize(&mut self, (columns, rows): (u16, u16)) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).expect("it has a size");
        self.size = (columns.into(), rows.into());
    }

    pub(super) fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).expect("it takes keys");
    }

    /// Takes what has been written by now, and returns what that shows, without spaces at the ends.
    pub(super) fn shown(&mut self) -> String {
        loop {
            let mut waiting = [PollFd::new(&self.master, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut waiting, Some(&at_once)).expect("it can be asked") == 0 {
                break;
            }
            let mut part = [0; 4096];
            let len = self.master.read(&mut part).expect("the slave is open");
            self.written.extend(&part[..len]);
        }
        let text = String::from_utf8_lossy(&self.written);
        let rows = picture(&text, self.size);
        let row = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// All that was written, as it is.
    pub(super) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Whether a program has taken keys one by one.
    pub(super) fn is_raw(&self) -> bool {
        let mode = self.slave_mode();
        !mode.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Whether it is as it was before the program: its mode, its cursor, and the first screen.
    pub(super) fn is_restored(&self) -> bool {
        let written = self.written();
        let last = |on: &str, off: &str| written.rfind(on) > written.rfind(off);
        self.slave_mode() == self.mode
            && last("\u{1b}[?1049l", "\u{1b}[?1049h")
            && last("\u{1b}[?25h", "\u{1b}[?25l")
    }

    fn slave_mode(&self) -> LocalModes {
        let slave = self.slave.as_ref().expect("it was not closed");
        tcgetattr(slave).expect("it is a terminal").local_modes
    }

    /// Hangs up: the program's end of it reads nothing more.
    pub(super) fn close(self) {
        let Self { master, slave, .. } = self;
        drop(slave);
        drop(master);
    }
}

/// What this text shows on a terminal of so many columns and rows.
fn picture(text: &str, (columns, rows): (usize, usize)) -> Vec<Vec<char>> {
    let mut cells = vec![vec![' '; columns]; rows];
    let (mut x, mut y) = (0, 0);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.next_if_eq(&'[').is_some() => {
                let mut numbers = String::new();
                while let Some(part) = letters.next_if(|it| !it.is_ascii_alphabetic()) {
                    numbers.push(part);
                }
                let number = |at: usize| numbers.split(';').nth(at)?.parse::<usize>().ok();
                match letters.next() {
                    Some('H') => {
                        let place = |at| number(at).unwrap_or(1).saturating_sub(1);
                        (y, x) = (place(0), place(1));
                    }
                    Some('J') => cells.iter_mut().for_each(|row| row.fill(' ')),
                    Some(_) | None => {}
                }
            }
            '\r' => x = 0,
            '\n' => y += 1,
            letter if !letter.is_control() => {
                if let Some(cell) = cells.get_mut(y).and_then(|row| row.get_mut(x)) {
                    *cell = letter;
                }
                x += 1;
            }
            _ => {}
        }
    }
    cells
}

#[test]
fn a_picture_is_what_was_written_last_at_each_place() {
    let text = "\u{1b}[2J\u{1b}[1;2H\u{1b}[31;1mab\u{1b}[0m\u{1b}[2;1Hc\u{1b}[?25l\u{1b}[1;3Hd";
    assert_eq!(picture(text, (4, 2)), [[' ', 'a', 'd', ' '], ['c', ' ', ' ', ' ']]);
    assert_eq!(picture("a\u{1b}[2Jb\u{1b}[9;9Hc", (2, 1)), [[' ', 'b']]);
}
