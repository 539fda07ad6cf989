//! A pseudo-terminal with a screen: a program runs in it as in any terminal, keys are pressed, and the screen is read. It waits
//! only for output of the program.

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Pty {
    child: Child,
    keys: File,
    pub screen: vt100::Parser,
}

impl std::fmt::Debug for Pty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pty").field("child", &self.child).finish_non_exhaustive()
    }
}

impl Pty {
    /// A program in a terminal of this size, which is all it knows of the world.
    pub fn open(
        program: &Path,
        args: &[&str],
        folder: &Path,
        env: &[(&str, &str)],
        size: (u16, u16),
    ) -> Self {
        let (width, height) = size;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keys = rustix::pty::openpt(flags).expect("a system with terminals");
        rustix::pty::grantpt(&keys).and_then(|()| rustix::pty::unlockpt(&keys)).expect("our own terminal");
        let other = rustix::pty::ioctl_tiocgptpeer(&keys, flags).expect("its other end");
        rustix::termios::tcsetwinsize(&keys, window(width, height)).expect("our own terminal");
        let stdio = || Stdio::from(other.try_clone().expect("a file of our own"));
        // A session of its own, so that Ctrl-C and another size reach it as they do from a shell.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program).args(args).current_dir(folder);
        command.env_clear().envs(env.iter().copied());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = command.spawn().expect("setsid is part of Linux");
        Self { child, keys: keys.into(), screen: vt100::Parser::new(height, width, 1_000) }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the program has the terminal");
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.screen.screen_mut().set_size(height, width);
        rustix::termios::tcsetwinsize(&self.keys, window(width, height)).expect("our own terminal");
    }

    /// Shows the next that was written. False when the program has closed the terminal.
    pub fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Linux reports an error once the other end is closed.
        let count = self.keys.read(&mut bytes).unwrap_or(0);
        self.screen.process(&bytes[..count]);
        count > 0
    }

    pub fn seen(&self) -> String {
        self.screen.screen().contents()
    }

    /// Until the screen shows this.
    pub fn until(&mut self, text: &str) {
        while !self.seen().contains(text) {
            assert!(self.read(), "it ended before {text:?}:\n{}", self.seen());
        }
    }

    /// The exit status, and what is left on the screen.
    pub fn ends(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().expect("our own child").code(), self.seen())
    }

    /// Closes the window. Returns the exit status.
    pub fn close(self) -> Option<i32> {
        let Self { mut child, keys, .. } = self;
        drop(OwnedFd::from(keys));
        child.wait().expect("our own child").code()
    }
}

fn window(width: u16, height: u16) -> Winsize {
    Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }
}
