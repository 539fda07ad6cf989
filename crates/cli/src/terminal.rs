//! The terminal device: its abilities, its size, and single keys.

use crate::show::live::Size;
use crate::show::live::question::Key;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::io::{IsTerminal, Write};
use tokio_stream::StreamExt;

/// Whether standard error is a terminal that can repaint lines.
pub fn can_paint() -> bool {
    let kind = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && !kind.is_empty() && kind != "dumb"
}

/// The size to assume if the terminal reports none.
const USUAL: Size = Size { width: 80, height: 24 };

pub fn size() -> Size {
    match crossterm::terminal::size() {
        Ok((width, height)) if width > 0 && height > 0 => Size { width: width.into(), height: height.into() },
        _ => USUAL,
    }
}

/// Writes to the terminal, control sequences included.
pub fn write(text: &str) {
    if !text.is_empty() {
        let mut stderr = std::io::stderr().lock();
        // The run continues even if its terminal is closed.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// Whether this process may read the keyboard: the system stops a background process that tries.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Whether the other end of the terminal is closed. crossterm would read from such a terminal forever.
fn is_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Reads single keys without echo while it exists.
#[derive(Debug)]
pub struct Keyboard {
    /// Present in raw mode. Dropping it ends the thread that reads the terminal, so that the shell gets the keys while this
    /// process is suspended.
    events: Option<EventStream>,
}

impl Keyboard {
    /// None if standard input is not a terminal, or if this process runs in the background.
    pub fn open() -> Option<Self> {
        let mut keyboard = Self { events: None };
        (std::io::stdin().is_terminal() && keyboard.hold()).then_some(keyboard)
    }

    /// False if another process has the terminal.
    pub fn hold(&mut self) -> bool {
        if self.events.is_none() && is_in_foreground() && crossterm::terminal::enable_raw_mode().is_ok() {
            self.events = Some(EventStream::new());
        }
        self.is_held()
    }

    pub fn release(&mut self) {
        if self.events.take().is_some() {
            // A closed terminal has no mode to restore.
            let _ = crossterm::terminal::disable_raw_mode();
        }
    }

    pub fn is_held(&self) -> bool {
        self.events.is_some()
    }

    /// Waits for the next key that a question uses. None if the terminal is closed.
    pub async fn pressed(&mut self) -> Option<Key> {
        loop {
            if is_hung_up() {
                return None;
            }
            let event = self.events.as_mut()?.next().await?.ok()?;
            match meaning(&event) {
                Some(Meaning::Key(key)) => return Some(key),
                Some(Meaning::Signal(signal)) => self.raise(signal),
                None => {}
            }
        }
    }

    /// In raw mode the terminal sends no signals, so Windlass sends them to the same processes.
    fn raise(&mut self, signal: Signal) {
        if signal != Signal::INT {
            // Other signals stop or end this process. A shell may take the terminal as soon as they arrive.
            self.release();
        }
        // Our own process group exists.
        let _ = rustix::process::kill_current_process_group(signal);
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.release();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Key(Key),
    Signal(Signal),
}

fn meaning(event: &Event) -> Option<Meaning> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) =
        event
    else {
        return None;
    };
    let plain = modifiers.difference(KeyModifiers::SHIFT).is_empty();
    Some(match *code {
        KeyCode::Char(c) if *modifiers == KeyModifiers::CONTROL => match c {
            'c' => Meaning::Signal(Signal::INT),
            'z' => Meaning::Signal(Signal::TSTP),
            // Ctrl-\, which crossterm counts from 0x1c.
            '4' => Meaning::Signal(Signal::QUIT),
            'h' => Meaning::Key(Key::Backspace),
            // A line feed, which a paste may contain.
            'j' => Meaning::Key(Key::Enter),
            'u' => Meaning::Key(Key::Erase),
            _ => return None,
        },
        KeyCode::Char(c) if plain && !c.is_control() => Meaning::Key(Key::Char(c)),
        KeyCode::Enter => Meaning::Key(Key::Enter),
        KeyCode::Tab => Meaning::Key(Key::Tab),
        KeyCode::Backspace => Meaning::Key(Key::Backspace),
        KeyCode::Esc => Meaning::Key(Key::Escape),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_answer_questions_or_raise_signals() {
        let check = |code: KeyCode, modifiers: KeyModifiers, expected: Option<Meaning>| {
            assert_eq!(meaning(&Event::Key(KeyEvent::new(code, modifiers))), expected, "{code:?}");
        };
        let key = |key: Key| Some(Meaning::Key(key));
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        check(KeyCode::Char('a'), none, key(Key::Char('a')));
        check(KeyCode::Char('A'), KeyModifiers::SHIFT, key(Key::Char('A')));
        check(KeyCode::Char('漢'), none, key(Key::Char('漢')));
        check(KeyCode::Char('x'), KeyModifiers::ALT, None);
        check(KeyCode::Enter, none, key(Key::Enter));
        check(KeyCode::Char('j'), control, key(Key::Enter));
        check(KeyCode::Char('u'), control, key(Key::Erase));
        check(KeyCode::Backspace, none, key(Key::Backspace));
        check(KeyCode::Esc, none, key(Key::Escape));
        check(KeyCode::Tab, none, key(Key::Tab));
        check(KeyCode::Up, none, None);
        check(KeyCode::Char('c'), control, Some(Meaning::Signal(Signal::INT)));
        check(KeyCode::Char('z'), control, Some(Meaning::Signal(Signal::TSTP)));
        check(KeyCode::Char('4'), control, Some(Meaning::Signal(Signal::QUIT)));
        assert_eq!(meaning(&Event::Resize(80, 24)), None);
    }
}
