//! A client's end of the socket.

use super::listener::short;
use super::wire::{Answer, Call, EXECUTE, EXECUTED, Execute, Hello, Surroundings};
use super::{OWNER_WAIT, SOCKET};
use crate::code::Code;
use crate::door::Following;
use crate::operation::Operation;
use crate::perform::Caller;
use crate::refusal::Refusal;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use windlass_ir::RunStatus;
use windlass_runtime::{Error, Executed, Line, RunId, Update, Updates, check_peer};

/// An owner that takes longer to answer is reported.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// The owner is not read from further ahead of the follower than this.
const UPDATES_AHEAD: usize = 64;

/// How to reach the owner of a folder from another process.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    report: Remark,
}

/// Tells the user something while a command waits.
pub type Remark = fn(&str);

type Lines = tokio::io::Lines<BufReader<UnixStream>>;

/// The owner listens, and too many other clients wait for it.
fn is_busy(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}

impl Client {
    pub(crate) fn of(folder: &Path, report: Remark) -> Self {
        Self { socket: folder.join(SOCKET), report }
    }

    fn unreachable(&self, cause: &dyn std::fmt::Display) -> Refusal {
        Error::Unreachable { socket: self.socket.clone(), cause: cause.to_string() }.into()
    }

    async fn connect(&self) -> std::io::Result<UnixStream> {
        let short = short(&self.socket)?;
        UnixStream::connect(short.path()).await
    }

    pub(crate) async fn finds_owner(&self) -> bool {
        match self.connect().await {
            Ok(_) => true,
            Err(error) => is_busy(&error),
        }
    }

    /// Calls an operation.
    pub(crate) async fn call<T: Operation>(&self, request: &T, caller: &Caller) -> Result<T::Reply, Refusal> {
        let request = serde_json::to_value(request).map_err(|error| self.unreachable(&error))?;
        let from = T::ABOUT.executes.then(Surroundings::here);
        let (user, key) = (caller.name.to_string(), caller.key.as_deref().map(str::to_owned));
        let asked = Call { call: T::ABOUT.name.to_owned(), request, user, from, key, stream: false };
        match self.ask(&asked).await?.0 {
            Answer::Reply(reply) => serde_json::from_value(reply).map_err(|error| self.unreachable(&error)),
            _ => Err(self.unreachable(&"it answered something else")),
        }
    }

    /// Has a run executed or followed.
    pub(crate) async fn execute(&self, asked: Execute) -> Result<Following, Refusal> {
        let request = serde_json::to_value(asked).map_err(|error| self.unreachable(&error))?;
        let asked = Call::internal(EXECUTE, request);
        let (Answer::Executing(id), lines) = self.ask(&asked).await? else {
            return Err(self.unreachable(&"it answered something else"));
        };
        let (sender, updates) = tokio::sync::mpsc::channel(UPDATES_AHEAD);
        let done = tokio::spawn(receive(lines, id.clone(), sender));
        Ok(Following { id, updates: Updates::elsewhere(updates), done })
    }

    /// Asks and returns the first line of the answer, and the rest as it comes. An owner that takes long is reported, and waited
    /// for as long as the caller wants.
    async fn ask(&self, asked: &Call) -> Result<(Answer, Lines), Refusal> {
        let pid = OnceLock::new();
        let mut answer = std::pin::pin!(self.exchange(asked, &pid));
        if let Ok(answered) = tokio::time::timeout(ANSWER_WAIT, &mut answer).await {
            return answered;
        }
        let folder = self.socket.parent().unwrap_or(&self.socket).display();
        let pid = pid.get().map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let waited = ANSWER_WAIT.as_secs();
        (self.report)(&format!(
            "the owner of {folder}{pid} has not answered for {waited} seconds; still waiting, Ctrl-C gives up"
        ));
        answer.await
    }

    async fn exchange(&self, asked: &Call, pid: &OnceLock<i32>) -> Result<(Answer, Lines), Refusal> {
        let mut stream = loop {
            match self.connect().await {
                Ok(stream) => break stream,
                Err(error) if is_busy(&error) => tokio::time::sleep(OWNER_WAIT).await,
                Err(error) => return Err(self.unreachable(&error)),
            }
        };
        // A request may hold the variables of its sender: only a process of the same user may read it.
        check_peer(&self.socket, &stream)?;
        if let Some(owner) = stream.peer_cred().ok().and_then(|owner| owner.pid()) {
            pid.get_or_init(|| owner);
        }
        let mut line = serde_json::to_vec(asked).map_err(|error| self.unreachable(&error))?;
        line.push(b'\n');
        stream.write_all(&line).await.map_err(|error| self.unreachable(&error))?;
        let mut lines = BufReader::new(stream).lines();
        let gone = || self.unreachable(&"it went away");
        let hello = lines.next_line().await.ok().flatten().ok_or_else(gone)?;
        let same =
            serde_json::from_str(&hello).is_ok_and(|hello: Hello| hello.windlass == Hello::here().windlass);
        if !same {
            let refusal =
                Refusal::new(Code::UnknownOperation, "another version of Windlass owns this data folder");
            return Err(refusal.help("restart the process that owns it"));
        }
        match next(&mut lines).await {
            Some(Answer::Refused(refusal)) => Err(*refusal),
            Some(answer) => Ok((answer, lines)),
            None => Err(gone()),
        }
    }
}

/// Which runs the owner of a folder executes. Without an owner none; an owner that does not answer in time may execute any. Blocks.
pub fn ask_executed(folder: &Path) -> Executed {
    let Ok(stream) =
        short(&folder.join(SOCKET)).and_then(|short| std::os::unix::net::UnixStream::connect(short.path()))
    else {
        return Executed::nothing();
    };
    question(&stream).unwrap_or_else(Executed::anything)
}

fn question(mut stream: &std::os::unix::net::UnixStream) -> Option<Executed> {
    use std::io::{BufRead as _, Write as _};
    stream.set_read_timeout(Some(ANSWER_WAIT)).ok()?;
    stream.set_write_timeout(Some(ANSWER_WAIT)).ok()?;
    let asked = Call::internal(EXECUTED, serde_json::Value::Null);
    let mut line = serde_json::to_vec(&asked).ok()?;
    line.push(b'\n');
    stream.write_all(&line).ok()?;
    // The first line says which version the owner is.
    let answer = std::io::BufReader::new(stream).lines().nth(1)?.ok()?;
    match serde_json::from_str(&answer).ok()? {
        Answer::Reply(executed) => serde_json::from_value(executed).ok(),
        _ => None,
    }
}

async fn receive(
    mut lines: Lines,
    run: RunId,
    sender: tokio::sync::mpsc::Sender<Update>,
) -> Result<RunStatus, Refusal> {
    while let Some(answer) = next(&mut lines).await {
        let update = match answer {
            Answer::Done(status) => return Ok(status),
            Answer::Refused(refusal) => return Err(*refusal),
            Answer::Event { seq, event } => Update::Event { seq, event },
            Answer::Notice(text) => Update::Notice(text),
            Answer::Line { job, stream, text } => {
                Update::Line(Line { job, stream, bytes: text.into_bytes() })
            }
            Answer::Executing(_) | Answer::Reply(_) => continue,
        };
        // If no one follows any more, the end is still waited for.
        let _ = sender.send(update).await;
    }
    Err(Error::OwnerGone(run).into())
}

async fn next(lines: &mut Lines) -> Option<Answer> {
    let line = lines.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}
