//! Reads `/proc`: identities of processes, their parents, and the marks that they carry.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Process ids are reused; together with the start time, an id identifies one process of this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub pid: i32,
    /// In clock ticks since boot.
    pub start_time: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub identity: Identity,
    pub parent: i32,
    pub group: i32,
    /// It has ended and waits for its parent.
    pub is_dead: bool,
}

/// All processes. One that ends meanwhile may be missing.
pub fn all() -> std::io::Result<Vec<Process>> {
    let entries = std::fs::read_dir("/proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(process).collect())
}

pub fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The name of the program is in parentheses and may contain any byte, including parentheses.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    // Starting with the third field, as counted in the manual.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        identity: Identity { pid, start_time: field(22)?.parse().ok()? },
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        is_dead: matches!(field(3)?, "Z" | "X" | "x"),
    })
}

/// The environment with which a process was started.
pub struct Variables(Vec<u8>);

impl Variables {
    /// `None` if the process is gone or belongs to another user.
    pub fn of(pid: i32) -> Option<Self> {
        std::fs::read(format!("/proc/{pid}/environ")).ok().map(Self)
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let mut entries = self.0.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(OsStr::from_bytes(value))
    }
}

/// Differs between boots: start times count from the boot.
pub fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let tail = "S 1 77 77 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected =
            Process { identity: Identity { pid: 9, start_time: 4242 }, parent: 1, group: 77, is_dead: false };
        for name in ["(sh)", "(a b)", "() Z 1 2 3)", "(\u{fffd})"] {
            assert_eq!(parse(9, format!("9 {name} {tail}").as_bytes()), Some(expected.clone()), "{name}");
        }
        assert_eq!(parse(9, b"9 (sh) S 1"), None);
        assert_eq!(parse(9, b""), None);
    }

    #[test]
    fn this_process_is_found() {
        let pid = i32::try_from(std::process::id()).expect("a process id");
        let own = process(pid).expect("we run");
        assert!(all().expect("/proc is there").contains(&own));
        assert_eq!(own.parent, i32::try_from(std::os::unix::process::parent_id()).expect("a process id"));
    }
}
