//! Threads that move bytes: each has its own runtime, and a session stays on one for life.
//!
//! A thread that waits for its own sockets wakes no other thread, and no other one wakes it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use headwater_proxy::link::{DetachedSocket, StreamSocket};

/// The calling thread's runtime and those of further threads.
#[derive(Debug)]
pub struct ShardPool {
    /// On the calling thread.
    first: RuntimeShard,
    others: Vec<ShardThread>,
}

#[derive(Debug)]
struct RuntimeShard {
    handle: Handle,
    sessions: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct ShardThread {
    shard: RuntimeShard,
    /// Dropping it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// A session's slot on a shard, counted until dropped.
#[derive(Debug)]
pub struct ShardSlot {
    handle: Handle,
    sessions: Arc<AtomicUsize>,
}

impl Drop for ShardSlot {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ShardPool {
    /// Uses the current runtime, and starts more threads, up to `threads` in all.
    ///
    /// # Errors
    /// If a thread or its runtime cannot be started.
    pub fn start(threads: usize) -> io::Result<ShardPool> {
        tokio::spawn(run_timer());
        let others = (1..threads).map(ShardThread::start);
        Ok(ShardPool {
            first: RuntimeShard::new(Handle::current()),
            others: others.collect::<io::Result<_>>()?,
        })
    }

    /// A slot on the shard with the fewest sessions.
    #[must_use]
    pub fn acquire_slot(&self) -> ShardSlot {
        let others = self.others.iter().map(|thread| &thread.shard);
        let shard = others.fold(&self.first, |fewest, other| {
            if other.session_count() < fewest.session_count() {
                other
            } else {
                fewest
            }
        });
        shard.sessions.fetch_add(1, Ordering::Relaxed);
        ShardSlot {
            handle: shard.handle.clone(),
            sessions: Arc::clone(&shard.sessions),
        }
    }
}

/// Probes whether the threads still run.
#[derive(Clone, Debug)]
pub struct LivenessProbe(Vec<Handle>);

impl ShardPool {
    /// A probe for whether all threads run.
    #[must_use]
    pub fn liveness_probe(&self) -> LivenessProbe {
        let others = self.others.iter().map(|thread| &thread.shard);
        let all = [&self.first].into_iter().chain(others);
        LivenessProbe(all.map(|shard| shard.handle.clone()).collect())
    }
}

impl LivenessProbe {
    /// True if every thread runs a task within this time.
    pub async fn responds(&self, within: Duration) -> bool {
        let each = self.0.iter().map(|thread| thread.spawn(async {}));
        let all = futures_util::future::join_all(each);
        let beaten = tokio::time::timeout(within, all).await;
        beaten.is_ok_and(|all| all.iter().all(Result::is_ok))
    }
}

impl ShardSlot {
    /// Runs `session` with this socket on the shard.
    pub fn spawn<F>(
        self,
        socket: DetachedSocket,
        session: impl FnOnce(StreamSocket) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handle.clone().spawn(async move {
            match socket.attach() {
                Ok(socket) => session(socket).await,
                Err(error) => tracing::warn!("a client is let go: {error}"),
            }
            drop(self);
        });
    }
}

impl RuntimeShard {
    fn new(handle: Handle) -> RuntimeShard {
        RuntimeShard {
            handle,
            sessions: Arc::default(),
        }
    }

    fn session_count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }
}

impl ShardThread {
    fn start(number: usize) -> io::Result<ShardThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let shard = RuntimeShard::new(runtime.handle().clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name(format!("shard-{number}"))
            .spawn(move || {
                runtime.spawn(run_timer());
                let _ = runtime.block_on(stopped);
                // Does not wait for a pending name resolution.
                runtime.shutdown_background();
            })?;
        Ok(ShardThread {
            shard,
            stop: Some(stop),
            handle: Some(thread),
        })
    }
}

/// A timer that is always due first: a runtime without one wakes itself for each timer that is set, and each session sets one when it
/// connects to the server.
async fn run_timer() {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
