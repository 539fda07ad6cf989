//! The owner's end of the socket.

use super::SOCKET;
use super::wire::{Answer, Call, EXECUTE, EXECUTED, Execute, Hello};
use crate::code::Code;
use crate::door::{Following, execute};
use crate::operations::operations;
use crate::perform::{Caller, Context, Row, Stream};
use crate::refusal::Refusal;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use windlass_ir::RunStatus;
use windlass_runtime::{Engine, Error, Update, check_peer};

/// A longer request is cut, and then refused because it is not JSON.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// How long an owner waits that cannot accept a client, usually because it has run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A client that accepts nothing for this long is disconnected. It continues after the last event that it has.
const WRITE_MAX: Duration = Duration::from_secs(30);

/// The socket of a folder that this process owns.
#[derive(Debug)]
pub struct Listener {
    engine: Arc<Engine>,
    socket: UnixListener,
}

impl Listener {
    pub fn bind(engine: Arc<Engine>) -> Result<Self, Refusal> {
        let path = engine.folder().join(SOCKET);
        let bound = || {
            // An earlier owner left it: the lock is ours, so no one listens there.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let socket = UnixListener::bind(short(&path)?.path())?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            Ok(socket)
        };
        match bound() {
            Ok(socket) => Ok(Self { engine, socket }),
            Err(error) => {
                Err(Error::Folder { folder: path, cause: format!("cannot listen there: {error}") }.into())
            }
        }
    }

    /// Serves clients until it is dropped. `report` is called when it cannot accept them, and when it can again.
    pub async fn serve(self, report: impl Fn(&str)) -> std::convert::Infallible {
        let mut fails = false;
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) => {
                    if std::mem::take(&mut fails) {
                        report("other commands can connect again");
                    }
                    let (engine, guest) = (self.engine.clone(), self.engine.guest());
                    tokio::spawn(async move {
                        let _guest = guest;
                        // A client that went away gets no answer.
                        let _ = serve(&engine, stream).await;
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut fails, true) {
                        report(&format!("other commands cannot connect: {error}; trying again"));
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A path that fits into the address of a socket, however long the real one is: through an open folder.
#[derive(Debug)]
pub(super) struct Short {
    path: PathBuf,
    _folder: Option<std::fs::File>,
}

impl Short {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The longest path that every system takes as the address of a socket.
const ADDRESS_BYTES_MAX: usize = 100;

pub(super) fn short(path: &Path) -> std::io::Result<Short> {
    use std::os::fd::AsRawFd;
    let (folder, name) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > ADDRESS_BYTES_MAX => (folder, name),
        _ => return Ok(Short { path: path.to_owned(), _folder: None }),
    };
    let folder = std::fs::File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok(Short { path, _folder: Some(folder) })
}

async fn serve(engine: &Arc<Engine>, stream: UnixStream) -> std::io::Result<()> {
    // Another user gets no answer, and nothing that they send is read.
    if check_peer(engine.folder(), &stream).is_err() {
        return Ok(());
    }
    let (reading, mut writing) = stream.into_split();
    send(&mut writing, &Hello::here()).await?;
    let mut line = String::new();
    BufReader::new(reading.take(REQUEST_BYTES_MAX)).read_line(&mut line).await?;
    if line.is_empty() {
        // The client only looked whether anyone listens.
        return Ok(());
    }
    let Call { call, request, user, from, key, stream } = match serde_json::from_str(&line) {
        Ok(asked) => asked,
        Err(error) => return send(&mut writing, &Answer::refused(unreadable(&error))).await,
    };
    if call == EXECUTED {
        let executed = serde_json::to_value(engine.executed()).unwrap_or_default();
        return send(&mut writing, &Answer::Reply(executed)).await;
    }
    engine.was_asked();
    let caller = Caller::user(&user).surrounded(from).with_key(key.as_deref());
    if stream {
        return stream_objects(&mut writing, engine, &call, request, caller).await;
    }
    if call != EXECUTE {
        let answer = match perform(engine, &call, request, caller).await {
            Ok(reply) => Answer::Reply(reply),
            Err(refusal) => Answer::refused(refusal),
        };
        return send(&mut writing, &answer).await;
    }
    let asked: Execute = match serde_json::from_value(request) {
        Ok(asked) => asked,
        Err(error) => return send(&mut writing, &Answer::refused(unreadable(&error))).await,
    };
    let detached = matches!(asked, Execute::Start { detach: true, .. });
    match execute(engine, asked).await {
        Ok(following) => stream_to(&mut writing, following, detached).await,
        Err(error) => send(&mut writing, &Answer::refused(error.into())).await,
    }
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new(Code::BadRequest, format!("the request cannot be read: {error}"))
        .help("another version of Windlass may own this data folder: restart the owner")
}

/// Performs an operation for a client.
async fn perform(
    engine: &Arc<Engine>,
    name: &str,
    request: serde_json::Value,
    caller: Caller,
) -> Result<serde_json::Value, Refusal> {
    row(name)?.call(Context::owning(engine.clone(), caller), request).await
}

fn row(name: &str) -> Result<&'static Row, Refusal> {
    operations().iter().find(|row| row.about.name == name).ok_or_else(|| {
        let refusal = Refusal::new(Code::UnknownOperation, format!("unknown operation `{name}`"));
        refusal.help("the owner of this data folder is an older version of Windlass: restart it")
    })
}

/// Sends the objects of a stream, then an empty reply.
async fn stream_objects(
    writing: &mut OwnedWriteHalf,
    engine: &Arc<Engine>,
    name: &str,
    request: serde_json::Value,
    caller: Caller,
) -> std::io::Result<()> {
    let mut stream = match opened(engine, name, request, caller).await {
        Ok(stream) => stream,
        Err(refusal) => return send(writing, &Answer::refused(refusal)).await,
    };
    while let Some(object) = stream.next().await {
        match object {
            Ok(object) => send(writing, &object).await?,
            Err(refusal) => return send(writing, &Answer::refused(refusal)).await,
        }
    }
    send(writing, &Answer::Reply(serde_json::json!({}))).await
}

async fn opened(
    engine: &Arc<Engine>,
    name: &str,
    request: serde_json::Value,
    caller: Caller,
) -> Result<Stream, Refusal> {
    Stream::of(row(name)?, &Context::owning(engine.clone(), caller), request).await
}

async fn stream_to(
    writing: &mut OwnedWriteHalf,
    mut following: Following,
    detached: bool,
) -> std::io::Result<()> {
    send(writing, &Answer::Executing(following.id.clone())).await?;
    if detached {
        return send(writing, &Answer::Done(RunStatus::Running)).await;
    }
    while let Some(update) = following.updates.recv().await {
        send(writing, &answer_of(update)).await?;
    }
    let last = match following.done.await {
        Ok(Ok(status)) => Answer::Done(status),
        Ok(Err(refusal)) => Answer::refused(refusal),
        Err(_) => Answer::refused(Error::OwnerGone(following.id).into()),
    };
    send(writing, &last).await
}

fn answer_of(update: Update) -> Answer {
    match update {
        Update::Event { seq, event } => Answer::Event { seq, event },
        Update::Notice(text) => Answer::Notice(text),
        Update::Line(line) => Answer::Line {
            job: line.job,
            stream: line.stream,
            text: String::from_utf8_lossy(&line.bytes).into_owned(),
        },
    }
}

async fn send(writing: &mut OwnedWriteHalf, line: &impl serde::Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    tokio::time::timeout(WRITE_MAX, writing.write_all(&bytes)).await?
}
