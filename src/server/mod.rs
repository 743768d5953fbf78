//! The process: accepts clients, gives each a backend connection, and drains at the end.
//!
//! | module | what it is |
//! |---|---|
//! | `build` | settings become what sessions share |
//! | `reload` | settings are read again |
//! | `background` | what goes on beside the sessions |
//! | `greeting` | which server it is |
//! | `welcome` | one client's arrival |

mod background;
mod build;
mod greeting;
mod reload;
mod takeover;
mod warm;
mod welcome;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{Ready, select_all};
use tokio::sync::{Semaphore, watch};

use self::background::{Background, discover, uncompared, watch_servers};
use self::build::{Built, Inboxes, Lasting, doors, posts};
use self::greeting::introduce;
pub(crate) use self::greeting::{greet, has_tls, named, try_tls};
pub use self::reload::{Reloaded, Reloads, Source};
pub use self::takeover::{Offer, Predecessor, TakeoverError};
use self::welcome::{TOO_MANY_CONNECTIONS, Turn, ends, is_announced, refuse, serve, spoken_for};
use crate::account::Account;
use crate::admin::{Admin, AdminSection, Seen};
use crate::catalogue::MOST_DEFINITIONS;
use crate::clock;
use crate::config::{ProxyProtocolSection, Settings};
use crate::drain::{Drain, DrainSignal};
use crate::feed::tally::Tally;
use crate::feeds;
use crate::link::{Link, is_path, proxy_header};
use crate::listener::{Accepted, Backlog, Listener};
use crate::logging::Messages;
use crate::room::Room;
use crate::session::admission::Admission;
use crate::session::current::Current;
use crate::session::legs::{Legs, ServerLeg};
use crate::session::peer::OwnUser;
use crate::session::shared::Shared;
use crate::session::who::{log_in, span};
use crate::shards::{Pulse, Shards};
use crate::sockets::Sockets;
use crate::tls::{TlsError, TlsMode};
use crate::upstreams::Entry;

/// As many as can be counted where all are waited for.
const MOST_SESSIONS: usize = (u32::MAX >> 4) as usize;
/// A port that takes nobody is complained of so often.
const COMPLAINT: Duration = Duration::from_secs(60);
/// So long sessions that were let be beside another process may end between two commands at last.
const LAST_CALL: Duration = Duration::from_secs(1);

/// A bound listener and all that its sessions share.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    entry: Arc<Entry>,
    /// Further ports.
    doors: Vec<Door>,
    /// What is shared by the sessions of each port for replicas.
    replicas: Vec<Replicas>,
    /// Who asks them what they are, where there are several.
    account: Option<Account>,
    current: Arc<Current>,
    sessions: Arc<Semaphore>,
    /// Room for those that have no place any more.
    lingering: Arc<Semaphore>,
    room: Room,
    shards: Shards,
    proxy_protocol: Arc<ProxyProtocolSection>,
    admin: Option<Admin>,
    reloads: Arc<Reloads>,
    inboxes: Inboxes,
    templates: Option<feeds::Inbox>,
    background: Vec<Background>,
    /// True once all that can be told before clients come is told, and definitions are checked.
    announced: watch::Sender<bool>,
    /// Where the next process asks for the sockets, if the one before was asked there.
    control: Option<UnixListener>,
    /// The files of sockets are the next process's to remove.
    files_kept: Arc<AtomicBool>,
    /// The file of the clients' socket is a service manager's.
    keeps_file: bool,
}

/// A further port: where its clients are led to, and what their sessions share.
#[derive(Debug)]
struct Door {
    listener: Listener,
    entry: Arc<Entry>,
    current: Arc<Current>,
}

/// What is shared by the sessions of a port for replicas, and what is to go on beside them.
#[derive(Debug)]
struct Replicas {
    listen: String,
    entry: Arc<Entry>,
    current: Arc<Current>,
    inboxes: Inboxes,
    templates: Option<feeds::Inbox>,
}

/// When a session has TLS on its legs.
pub(crate) fn legs(settings: &Settings) -> Legs {
    let (tls, upstream) = (&settings.tls, &settings.upstream_tls);
    Legs {
        offered: tls.is_offered(upstream),
        unasked: tls.offers_own(upstream),
        client_required: tls.required,
        server_required: upstream.mode.is_required() && !tls.passthrough,
        server: match upstream.mode {
            _ if upstream.mirror => ServerLeg::Mirror,
            TlsMode::Disabled => ServerLeg::Never,
            TlsMode::Preferred => ServerLeg::IfOffered,
            TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity => ServerLeg::Always,
        },
        passthrough: tls.passthrough,
        local_client: false,
        local_server: false,
    }
}

/// The user whose accounts have to be kept from clients of the server at this address; `None` where it asks for passwords of all.
fn own_user(upstream: &str) -> Result<Option<OwnUser>, ServeError> {
    if !is_path(upstream) {
        return Ok(None);
    }
    let uid = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    let name = user.ok_or(ServeError::Nameless { uid: uid.as_raw() })?.name;
    Ok(Some(OwnUser::named(&name)))
}

/// Why Headwater cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be opened.
    #[error("cannot listen on {listen} (--listen, HEADWATER_LISTEN, listen)")]
    Listen {
        /// The address.
        listen: String,
        /// Why.
        source: io::Error,
    },
    /// A further port cannot be opened.
    #[error("cannot listen on {listen} (listener.listen)")]
    Door {
        /// The address.
        listen: String,
        /// Why.
        source: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot open the socket {path} (--socket, HEADWATER_SOCKET, socket)", path = .path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody knows whom the server's socket would take clients for.
    #[error(
        "the operating system has no name for the user {uid} that Headwater runs as, which the server takes all clients for at its \
         socket: give the user a name, or have --upstream (HEADWATER_UPSTREAM, upstream) be HOST:PORT"
    )]
    Nameless {
        /// The user's number.
        uid: u32,
    },
    /// The admin port cannot be opened.
    #[error("cannot listen on {listen} (--admin-listen, HEADWATER_ADMIN_LISTEN, admin.listen)")]
    Admin {
        /// The address.
        listen: String,
        /// Why.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start another thread (--threads, HEADWATER_THREADS, threads)")]
    Threads {
        /// Why.
        source: io::Error,
    },
    /// They could not be numbered.
    #[error(
        "more than {MOST_DEFINITIONS} different sections [[definition]] were read since the start, those that are gone or were changed included: \
         start Headwater again, with fewer of them"
    )]
    Definitions,
    /// There can be no TLS as it is set.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn bind(settings: &Settings) -> Result<Server, ServeError> {
        Server::on(&mut Sockets::default(), settings, None, None).await
    }

    /// The same on sockets that are open already, as far as there are some, where settings can be read again while it runs.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub async fn reloadable(
        sockets: &mut Sockets,
        settings: &Settings,
        source: Box<dyn Source>,
    ) -> Result<Server, ServeError> {
        Server::on(sockets, settings, None, Some(source)).await
    }

    /// The same, where SELECTs are counted as they go by.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub async fn counting(
        settings: &Settings,
        tally: Arc<Mutex<Tally>>,
    ) -> Result<Server, ServeError> {
        Server::on(&mut Sockets::default(), settings, Some(tally), None).await
    }

    async fn on(
        sockets: &mut Sockets,
        settings: &Settings,
        tally: Option<Arc<Mutex<Tally>>>,
        source: Option<Box<dyn Source>>,
    ) -> Result<Server, ServeError> {
        let backlog = Backlog::new(settings.listen_backlog);
        let listener = Listener::port(sockets.port.take(), &settings.listen, backlog)
            .await
            .map_err(|source| ServeError::Listen {
                listen: settings.listen.clone(),
                source,
            })?;
        let files_kept = Arc::new(AtomicBool::new(sockets.in_use));
        let listener = listener
            .and_socket(sockets, settings.socket.as_deref(), &files_kept)
            .map_err(|source| ServeError::Socket {
                path: settings.socket.clone().unwrap_or_default(),
                source,
            })?;
        let shards = Shards::start(settings.worker_threads())
            .map_err(|source| ServeError::Threads { source })?;
        let (lasting, room, inboxes) = Lasting::new(settings, tally)?;
        let Built { shared, templates } = lasting.build(settings, None)?;
        let current = Arc::new(Current::new(shared));
        let upstreams = lasting.upstreams();
        let entry = Arc::new(upstreams.entry());
        let mut sets = vec![(Arc::clone(&current), lasting.clone())];
        let mut replicas = Vec::new();
        for ((listen, _), entry) in posts(settings).zip(upstreams.entries()) {
            let (lasting, inboxes) = lasting.beside(settings, &entry.target);
            let Built { shared, templates } = lasting.build(settings, None)?;
            let current = Arc::new(Current::new(shared));
            sets.push((Arc::clone(&current), lasting));
            replicas.push(Replicas {
                listen: listen.to_owned(),
                entry: Arc::new(entry),
                current,
                inboxes,
                templates,
            });
        }
        let doors = doors(sockets, settings, backlog, (&entry, &current), &replicas).await?;
        Ok(Server {
            listener,
            entry,
            doors,
            replicas,
            account: lasting.account(),
            sessions: lasting.room(),
            lingering: Admission::room_to_linger(),
            room,
            shards,
            proxy_protocol: Arc::new(settings.proxy_protocol.clone()),
            admin: None,
            reloads: Arc::new(Reloads::new(settings, sets, source)),
            current,
            inboxes,
            templates,
            background: Vec::new(),
            announced: watch::Sender::new(false),
            control: None,
            files_kept,
            keeps_file: sockets.keeps_file,
        })
    }

    /// The same with a port where operators look in, where one is wished for, or open already.
    ///
    /// # Errors
    /// When that port cannot be opened.
    pub fn with_admin(
        self,
        sockets: &mut Sockets,
        section: &AdminSection,
    ) -> Result<Server, ServeError> {
        let admin = match sockets.admin.take() {
            Some(port) => Admin::on(port, section).map(Some),
            None => Admin::bind(section),
        };
        let admin = admin.map_err(|source| ServeError::Admin {
            listen: section.address().unwrap_or_default().to_owned(),
            source,
        })?;
        Ok(Server { admin, ..self })
    }

    /// The same, whose metrics tell of this log.
    #[must_use]
    pub fn with_messages(self, messages: Arc<Messages>) -> Server {
        let _ = self.current.shared().messages.set(messages);
        self
    }

    /// By which it can be felt that all threads run.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.shards.pulse()
    }

    /// By which settings are read again.
    #[must_use]
    pub fn reloads(&self) -> Arc<Reloads> {
        Arc::clone(&self.reloads)
    }

    /// The address that clients connect to.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What its sessions share now.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        self.current.shared()
    }

    /// Where that is found as it is later.
    #[must_use]
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current)
    }

    /// Says where it listens, what it stands in front of, and what it accelerates. Clients need not wait for it.
    pub fn announce(&self) -> impl Future<Output = ()> + Send + use<> {
        let address = self.local_addr();
        let (entry, shared) = (Arc::clone(&self.entry), self.shared());
        let doors: Vec<SocketAddr> = self
            .doors
            .iter()
            .filter_map(|door| door.listener.local_addr().ok())
            .collect();
        let replicas: Vec<_> = self
            .replicas
            .iter()
            .map(|it| (Arc::clone(&it.entry), Arc::clone(&it.current)))
            .collect();
        let socket = self.listener.socket().map(Path::to_owned);
        let room = self.room;
        let admin = self
            .admin
            .as_ref()
            .and_then(|admin| admin.local_addr().ok());
        let binlog = shared.binlog.as_ref();
        let too_little_memory = binlog.and_then(|binlog| binlog.limits().too_little_memory());
        let announced = self.announced.clone();
        async move {
            if let Ok(address) = address {
                let socket = socket.map(|path| format!(" and {}", path.display()));
                let (socket, sessions) = (socket.unwrap_or_default(), room.sessions);
                tracing::info!("listening on {address}{socket}, with room for {sessions} sessions");
            }
            for address in doors {
                tracing::info!("listening on {address} as well (listener)");
            }
            if let Some(admin) = admin {
                tracing::info!("operators look in at http://{admin}/");
            }
            for problem in [room.shortage(), too_little_memory].into_iter().flatten() {
                tracing::warn!("{problem}");
            }
            if let Some(own_user) = &shared.transport.ways.own_user {
                tracing::info!(
                    "the server's socket takes all clients for the user {0} that Headwater runs as: who comes by network may not log \
                     in as {0}; accounts of other names that are identified by it (unix_socket, auth_socket) are open to all",
                    own_user.name()
                );
            }
            introduce(&entry, &shared).await;
            if !shared.accelerate {
                tracing::info!("every statement is relayed (--relay-only, accelerate = false)");
            } else if shared.catalogue.service.is_none() {
                tracing::info!(
                    "no service account (--service-user): definitions are checked on the first client \
                     session whose account may see the procedures"
                );
            } else {
                discover(&shared).await;
                uncompared(&shared).await;
            }
            for (entry, current) in replicas {
                let shared = current.shared();
                let limit = Duration::from_millis(shared.limits.connect_ms);
                let led = entry.target.aim_within(limit).await;
                if led.is_some() && shared.accelerate {
                    discover(&shared).await;
                }
            }
            announced.send_replace(true);
        }
    }

    /// Accepts clients until `stop` resolves; then lets commands and transactions in flight end,
    /// for at most `limits.drain_ms`.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let drain = Drain::default();
        self.start_admin(drain.signal());
        self.begin().await;
        tokio::pin!(stop);
        let connecting = Arc::new(Semaphore::new(
            self.shared().limits.connecting.min(MOST_SESSIONS),
        ));
        let mut complained: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                (accepted, door, turn) = self.next(&connecting) => match accepted {
                    Ok(client) => self.admit(client, door, turn, drain.signal()),
                    Err(error) => {
                        // Out of descriptors, most likely: sessions that end will free some.
                        if complained.is_none_or(|at| clock::since(at) > COMPLAINT) {
                            complained = Some(clock::now());
                            tracing::warn!("clients have to wait, the port cannot take them (ulimit -n, LimitNOFILE): {error}");
                        }
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        // Who finds the port closed shall not find a session at rest that goes on.
        drain.begin();
        drop(self.listener);
        self.doors.clear();
        for background in &self.background {
            background.end();
        }
        let shared = self.current.shared();
        let replicas = self.replicas.iter().map(|it| it.current.shared());
        for shared in [Arc::clone(&shared)].into_iter().chain(replicas) {
            if let Some(binlog) = &shared.binlog {
                // Nobody follows the log any more.
                binlog.step_aside();
            }
        }
        self.reloads.stop().await;
        let limit = Duration::from_millis(shared.limits.drain_ms);
        let all = u32::try_from(self.room.sessions).unwrap_or(u32::MAX);
        let ended = || self.sessions.acquire_many(all);
        let mut in_time = tokio::time::timeout(limit, ended()).await.is_ok();
        if !in_time && shared.handed_over.load(Ordering::Relaxed) {
            // Who was let be is busy now, or not: it ends behind its command, if that ends soon.
            shared.last_call.store(true, Ordering::Relaxed);
            in_time = tokio::time::timeout(LAST_CALL, ended()).await.is_ok();
        }
        if !in_time {
            tracing::warn!(
                "sessions still {} after limits.drain_ms = {} were cut off",
                warm::left(&shared),
                limit.as_millis()
            );
        }
    }

    /// Has go on beside the sessions what does, from now on.
    async fn begin(&mut self) {
        if !self.background.is_empty() {
            return;
        }
        let upstreams = &self.entry.upstreams;
        let replicas = self.replicas.iter().map(|it| &it.current);
        let sets: Vec<_> = [&self.current]
            .into_iter()
            .chain(replicas)
            .cloned()
            .collect();
        let watch = self.account.clone().map(|account| {
            let announced = self.announced.subscribe();
            watch_servers(Arc::clone(upstreams), account, sets, &announced)
        });
        let started = Background::start(&self.current, &mut self.inboxes, watch);
        let started = started.reading_names(&self.current, self.reloads());
        self.background.push(started);
        let mut templates = vec![self.templates.take()];
        for replicas in &mut self.replicas {
            let (current, inboxes) = (&replicas.current, &mut replicas.inboxes);
            let started = Background::start(current, inboxes, None::<Ready<()>>);
            self.background.push(started);
            templates.push(replicas.templates.take());
        }
        self.reloads.look(templates).await;
    }

    fn start_admin(&mut self, draining: DrainSignal) {
        let seen = Seen {
            current: self.current(),
            reloads: self.reloads(),
            upstreams: Arc::clone(&self.entry.upstreams),
            draining,
            runtime: tokio::runtime::Handle::current(),
        };
        let started = self.admin.take().map(|admin| admin.start(seen));
        if let Some(Err(error)) = started {
            tracing::error!("no admin port: {error}");
        }
    }

    /// The next client, once there is a turn to connect to the server for it.
    async fn next(
        &self,
        connecting: &Arc<Semaphore>,
    ) -> (io::Result<Accepted>, Option<usize>, Turn) {
        let turn = Turn::take(connecting).await;
        if self.doors.is_empty() {
            return (self.listener.accept().await, None, turn);
        }
        let doors = self.doors.iter();
        let doors = select_all(doors.map(|door| Box::pin(door.listener.accept())));
        let (accepted, door) = tokio::select! {
            accepted = self.listener.accept() => (accepted, None),
            (accepted, door, _) = doors => (accepted, Some(door)),
        };
        (accepted, door, turn)
    }

    /// `door`: which of the further ports it came to.
    fn admit(
        &self,
        accepted: Accepted,
        door: Option<usize>,
        mut turn: Turn,
        draining: DrainSignal,
    ) {
        let door = door.and_then(|door| self.doors.get(door));
        let (entry, current) = match door {
            Some(door) => (Arc::clone(&door.entry), Arc::clone(&door.current)),
            None => (Arc::clone(&self.entry), self.current()),
        };
        let Accepted { socket, source } = accepted;
        let Ok(permit) = Arc::clone(&self.sessions).try_acquire_owned() else {
            let message = self.room.refusal();
            tokio::spawn(async move {
                if let Ok(socket) = socket.resume() {
                    refuse(&mut Link::new(socket), TOO_MANY_CONNECTIONS, &message).await;
                }
            });
            return;
        };
        let admission = Admission::new(permit, Arc::clone(&self.lingering));
        let seat = self.shards.seat();
        let proxy_protocol = Arc::clone(&self.proxy_protocol);
        seat.spawn(socket, move |socket| async move {
            let ends = ends(&proxy_protocol, source, &socket);
            let mut client = Link::new(socket);
            let span = || span(source, None, None);
            let limit = Duration::from_millis(current.shared().limits.connect_ms);
            if is_announced(ends, &proxy_protocol) {
                // It has a time of its own for what it says first.
                turn.give_back();
            }
            let spoken =
                tokio::time::timeout(limit, spoken_for(&mut client, ends, &proxy_protocol));
            match spoken.await {
                Ok(Ok((ends, begun))) => {
                    let header = proxy_header::header(proxy_protocol.send, ends);
                    let source = ends.map(|(source, _)| source).or(source);
                    let session = (client, source, begun);
                    let server = (&*entry, &*header, turn.again().await);
                    serve(session, server, (&current, admission), draining).await;
                }
                // A balancer that looks whether somebody is there.
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Ok(Err(error)) => log_in!(span(), WARN, "a client is let go: {error}"),
                Err(_) => log_in!(
                    span(),
                    WARN,
                    "a client is let go: no PROXY header within limits.connect_ms"
                ),
            }
        });
    }
}
