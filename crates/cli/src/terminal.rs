//! The terminal as a device: what it can do, how large it is, and keys as they are pressed.

use crate::show::live::Size;
use crate::show::live::question::Key;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use std::io::{IsTerminal, Stdin, Write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Whether standard error is a terminal on which lines can be written anew.
pub fn can_paint() -> bool {
    let kind = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && !kind.is_empty() && kind != "dumb"
}

/// What is assumed of a terminal that does not tell.
const USUAL: Size = Size { width: 80, height: 24 };

pub fn size() -> Size {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Size { width: size.ws_col.into(), height: size.ws_row.into() }
        }
        _ => USUAL,
    }
}

/// Writes to the terminal as it stands: the text may steer it.
pub fn write(text: &str) {
    if !text.is_empty() {
        let mut stderr = std::io::stderr().lock();
        // A terminal that is gone shows nothing, which the run does not mind.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// Whether this process may read the keyboard: somebody who runs in the background would be stopped for it.
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Single keys, not shown by the terminal itself, as long as this is held. Ctrl-C and Ctrl-Z are left to the system.
#[derive(Debug)]
pub struct Keyboard {
    stdin: AsyncFd<Stdin>,
    /// How the terminal was, while it is held.
    before: Option<Termios>,
    /// The beginning of a character that has not come whole.
    rest: Vec<u8>,
}

impl Keyboard {
    /// None where standard input is no terminal, or belongs to somebody else.
    pub fn open() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        #[expect(
            deprecated,
            reason = "standard input is never closed, which is all that the newer function asks for, as unsafe code"
        )]
        let stdin = AsyncFd::with_interest(std::io::stdin(), Interest::READABLE).ok()?;
        let mut keyboard = Self { stdin, before: None, rest: Vec::new() };
        keyboard.hold().then_some(keyboard)
    }

    /// False when somebody else has the terminal.
    pub fn hold(&mut self) -> bool {
        if self.before.is_none() && is_in_foreground() {
            self.before = single_keys();
        }
        self.before.is_some()
    }

    pub fn release(&mut self) {
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs no putting back.
            let _ = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        }
    }

    pub fn is_held(&self) -> bool {
        self.before.is_some()
    }

    /// What was pressed since; waits for the first. None when nobody can press anything any more.
    pub async fn pressed(&mut self) -> Option<Vec<Key>> {
        let mut ready = self.stdin.readable().await.ok()?;
        ready.clear_ready();
        if !is_in_foreground() {
            return Some(Vec::new());
        }
        let mut bytes = [0; 1024];
        let count = rustix::io::read(std::io::stdin(), &mut bytes).ok().filter(|count| *count > 0)?;
        Some(keys(&mut self.rest, &bytes[..count]))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.release();
    }
}

/// How the terminal was before it was told so.
fn single_keys() -> Option<Termios> {
    let before = rustix::termios::tcgetattr(std::io::stdin()).ok()?;
    let mut single = before.clone();
    single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    single.special_codes[SpecialCodeIndex::VMIN] = 1;
    single.special_codes[SpecialCodeIndex::VTIME] = 0;
    rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &single).ok()?;
    Some(before)
}

/// Bytes as keys. Sequences of keys that mean nothing here, such as arrows, are left out whole.
fn keys(rest: &mut Vec<u8>, bytes: &[u8]) -> Vec<Key> {
    rest.extend(bytes);
    let mut keys = Vec::new();
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        at += match byte {
            b'\r' | b'\n' => {
                keys.push(Key::Enter);
                1
            }
            b'\t' => {
                keys.push(Key::Tab);
                1
            }
            0x7f | 0x08 => {
                keys.push(Key::Backspace);
                1
            }
            0x15 => {
                keys.push(Key::Erase);
                1
            }
            0x1b => match sequence(&rest[at..]) {
                1 => {
                    keys.push(Key::Escape);
                    1
                }
                length => length,
            },
            0..0x20 => 1,
            _ => match character(&rest[at..]) {
                Ok((c, length)) => {
                    keys.extend(Some(Key::Char(c)).filter(|_| !c.is_control()));
                    length
                }
                Err(true) => break,
                Err(false) => 1,
            },
        };
    }
    rest.drain(..at.min(rest.len()));
    keys
}

/// How long the sequence is that begins with Escape; 1 for the key itself.
fn sequence(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => {
            let end = bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte));
            end.map_or(bytes.len(), |end| end + 3)
        }
        Some(b'O') => bytes.len().min(3),
        Some(_) | None => 1,
    }
}

/// The first character and its length; else whether more bytes could make it one.
fn character(bytes: &[u8]) -> Result<(char, usize), bool> {
    let first = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() == 0 => return Err(error.error_len().is_none()),
        Err(error) => std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map(|c| (c, c.len_utf8())).ok_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_keys() {
        let check = |chunks: &[&[u8]], expected: &[Key]| {
            let mut rest = Vec::new();
            let seen: Vec<Key> = chunks.iter().flat_map(|chunk| keys(&mut rest, chunk)).collect();
            assert_eq!(seen, expected, "{chunks:?}");
        };
        use Key::{Backspace, Char, Enter, Erase, Escape, Tab};
        check(&[b"a\n"], &[Char('a'), Enter]);
        check(&[b"\t\x7f\x15\x1b"], &[Tab, Backspace, Erase, Escape]);
        check(&[b"\x1b[A\x1b[1;5Cx\x1bOP"], &[Char('x')]);
        check(&["é漢".as_bytes()], &[Char('é'), Char('漢')]);
        check(&[&"漢".as_bytes()[..2], &"漢".as_bytes()[2..]], &[Char('漢')]);
        check(&[b"\xff\xfea"], &[Char('a')]);
        check(&[b"\x01\x02b"], &[Char('b')]);
    }
}
