//! A forwarder of TCP connections, which distributes them as a Service does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Forwards connections to the backends in turn. A backend that accepts no connection is skipped.
#[derive(Default)]
pub(crate) struct Forwarder {
    backends: Mutex<Vec<SocketAddr>>,
    turn: AtomicUsize,
    /// Backends of the open connections.
    open: Mutex<Vec<SocketAddr>>,
}

impl Forwarder {
    /// Sets the backends of new connections.
    pub(crate) fn set(&self, backends: impl Into<Vec<SocketAddr>>) {
        *self.backends.lock().unwrap() = backends.into();
    }

    /// Returns the number of open connections to a backend.
    pub(crate) fn open_to(&self, backend: SocketAddr) -> usize {
        let open = self.open.lock().unwrap();
        open.iter().filter(|it| **it == backend).count()
    }

    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((client, _)) = listener.accept() => {
                    connections.spawn(self.clone().forward(client));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn forward(self: Arc<Self>, mut client: TcpStream) {
        let mut backends = self.backends.lock().unwrap().clone();
        if backends.is_empty() {
            return;
        }
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % backends.len();
        backends.rotate_left(first);
        for backend in backends {
            let Ok(mut server) = TcpStream::connect(backend).await else {
                continue;
            };
            self.open.lock().unwrap().push(backend);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            let mut open = self.open.lock().unwrap();
            let index = open.iter().position(|it| *it == backend).unwrap();
            open.swap_remove(index);
            return;
        }
    }
}
