//! Accepts connections, with limits on their number and on how long a client may take.

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most connections at once; more wait until one ends.
const CONNECTIONS_MAX: usize = 8_192;
/// How long a client may take to send the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long a server waits that cannot accept a client, usually because it has run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests may take that were accepted before the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// A bound address.
#[derive(Debug)]
pub struct Connections {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl Connections {
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves clients until `stopping`, then lets requests finish for a moment.
    pub async fn serve(self, router: Router, stopping: CancellationToken) {
        let (free, tasks) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), TaskTracker::new());
        loop {
            let Ok(place) = free.clone().acquire_owned().await else { break };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stopping.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (router, stopping) = (router.clone(), stopping.clone());
                    tasks.spawn(async move {
                        connection(stream, router, stopping).await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        tasks.close();
        let _ = tokio::time::timeout(STOP_TIME_MAX, tasks.wait()).await;
    }
}

async fn connection(stream: TcpStream, router: Router, stopping: CancellationToken) {
    // Small messages of a stream must not wait for more; without it they only arrive later.
    let _ = stream.set_nodelay(true);
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_buf_size(HEAD_BYTES_MAX);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        // A client that went away gets no answer.
        _ = &mut connection => {}
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
