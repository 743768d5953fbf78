//! The process: accepts clients, gives each a backend connection, and drains at the end.
//!
//! | module | what it is |
//! |---|---|
//! | `state_builder` | builds the shared state from settings |
//! | `reload` | reads settings again |
//! | `background_tasks` | tasks beside the sessions |
//! | `greeting` | the server's version |
//! | `connection_setup` | a new client's connections |

mod background_tasks;
mod connection_setup;
mod greeting;
mod reload;
mod state_builder;
mod takeover;
mod warm_up;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{Ready, select_all};
use tokio::sync::{Semaphore, watch};

use self::background_tasks::{
    BackgroundTasks, check_definitions, report_uncompared, watch_servers,
};
use self::connection_setup::{
    DialPermit, TOO_MANY_CONNECTIONS, address_pair, expects_proxy_header, read_proxy_header,
    refuse, serve,
};
use self::greeting::announce_server;
pub use self::reload::{SettingsReloader, SettingsSource};
use self::state_builder::{
    BuiltGeneration, PersistentState, TaskInboxes, additional_ports, replica_listeners,
};
pub use self::takeover::{PredecessorProcess, TakeoverError, TakeoverOffer};
use crate::admin::{AdminContext, AdminPort};
use crate::config::{AdminSection, ProxyProtocolSection, ServeSettings};
use crate::listener::{AcceptedClient, ClientListener};
use crate::session_capacity::SessionCapacity;
use crate::shards::{LivenessProbe, ShardPool};
use crate::sockets::InheritedSockets;
use headwater_feed::tally::StatementTally;
use headwater_proxy::account::UpstreamAccount;
use headwater_proxy::catalogue::MOST_DEFINITIONS;
use headwater_proxy::clock;
use headwater_proxy::drain::{DrainSignal, DrainTrigger};
use headwater_proxy::feeds;
use headwater_proxy::link::{NetworkLink, is_path, proxy_header};
use headwater_proxy::logging::LogState;
use headwater_proxy::session::admission::SessionAdmission;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::log_span::{log_in, session_span};
use headwater_proxy::session::shared_state::SharedState;
use headwater_proxy::tls::{TlsError, TlsMode};
use headwater_proxy::upstreams::ListenerRoute;
use headwater_session::process_user::ProcessUser;
use headwater_session::tls_policy::{ServerLegTls, TlsPolicy};

/// The most permits that can be acquired at once.
const MAX_SESSIONS: usize = (u32::MAX >> 4) as usize;
/// Interval of the warning that a port cannot accept clients.
const ACCEPT_WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// Time for sessions with session state, which continued after a takeover, to end between two commands.
const FINAL_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A bound listener and everything that its sessions share.
#[derive(Debug)]
pub struct ProxyServer {
    listener: ClientListener,
    entry: Arc<ListenerRoute>,
    /// Further ports.
    additional_ports: Vec<AdditionalPort>,
    /// The shared state of each replica port.
    replica_listeners: Vec<ReplicaListener>,
    /// The account that probes the servers, if there are several.
    account: Option<UpstreamAccount>,
    current: Arc<CurrentGeneration>,
    session_permits: Arc<Semaphore>,
    /// Permits of sessions that gave up their other permits.
    linger_permits: Arc<Semaphore>,
    capacity: SessionCapacity,
    shards: ShardPool,
    proxy_protocol: Arc<ProxyProtocolSection>,
    admin: Option<AdminPort>,
    reloader: Arc<SettingsReloader>,
    inboxes: TaskInboxes,
    template_inbox: Option<feeds::FeedInbox>,
    background_tasks: Vec<BackgroundTasks>,
    /// True once everything to report before the first client is logged, and definitions are checked.
    announced: watch::Sender<bool>,
    /// The control socket for the next process, inherited if this process took over.
    control: Option<UnixListener>,
    /// True once the next process removes the sockets' files.
    files_handed_over: Arc<AtomicBool>,
    /// The service manager owns the file of the clients' socket.
    file_is_external: bool,
}

/// A further port: the server it leads to, and the state its sessions share.
#[derive(Debug)]
struct AdditionalPort {
    listener: ClientListener,
    entry: Arc<ListenerRoute>,
    current: Arc<CurrentGeneration>,
}

/// The shared state of a replica port, and its background tasks.
#[derive(Debug)]
struct ReplicaListener {
    listen: String,
    entry: Arc<ListenerRoute>,
    current: Arc<CurrentGeneration>,
    inboxes: TaskInboxes,
    template_inbox: Option<feeds::FeedInbox>,
}

/// Which legs of a session have TLS.
pub fn tls_legs(settings: &ServeSettings) -> TlsPolicy {
    let (tls, upstream) = (&settings.tls, &settings.upstream_tls);
    TlsPolicy {
        offered: tls.is_offered(upstream),
        implicit: tls.offers_generated(upstream),
        client_required: tls.required,
        server_required: upstream.mode.is_required() && !tls.passthrough,
        server: match upstream.mode {
            _ if upstream.mirror => ServerLegTls::Mirror,
            TlsMode::Disabled => ServerLegTls::Never,
            TlsMode::Preferred => ServerLegTls::IfOffered,
            TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity => ServerLegTls::Always,
        },
        passthrough: tls.passthrough,
        local_client: false,
        local_server: false,
    }
}

/// The user whose accounts network clients may not use, since the server at this socket asks it for no password; else `None`.
fn process_user(upstream: &str) -> Result<Option<ProcessUser>, ServeError> {
    if !is_path(upstream) {
        return Ok(None);
    }
    let uid = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    let name = user
        .ok_or(ServeError::UnnamedUser { uid: uid.as_raw() })?
        .name;
    Ok(Some(ProcessUser::named(&name)))
}

/// Why Headwater cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be opened.
    #[error("cannot listen on {listen} (--listen, HEADWATER_LISTEN, listen)")]
    Listen {
        /// The address.
        listen: String,
        /// The cause.
        source: io::Error,
    },
    /// A further port cannot be opened.
    #[error("cannot listen on {listen} (listener.listen)")]
    AdditionalPort {
        /// The address.
        listen: String,
        /// The cause.
        source: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot open the socket {path} (--socket, HEADWATER_SOCKET, socket)", path = .path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process's user has no name, so the account that the server's socket would log clients in to is unknown.
    #[error(
        "the operating system has no name for the user {uid} that Headwater runs as, which the server takes all clients for at its \
         socket: give the user a name, or have --upstream (HEADWATER_UPSTREAM, upstream) be HOST:PORT"
    )]
    UnnamedUser {
        /// The user's number.
        uid: u32,
    },
    /// The admin port cannot be opened.
    #[error("cannot listen on {listen} (--admin-listen, HEADWATER_ADMIN_LISTEN, admin.listen)")]
    Admin {
        /// The address.
        listen: String,
        /// The cause.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start another thread (--threads, HEADWATER_THREADS, threads)")]
    Threads {
        /// The cause.
        source: io::Error,
    },
    /// Too many definitions.
    #[error(
        "more than {MOST_DEFINITIONS} different sections [[definition]] were read since the start, those that are gone or were changed included: \
         start Headwater again, with fewer of them"
    )]
    Definitions,
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl ProxyServer {
    /// Opens the port.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn bind(settings: &ServeSettings) -> Result<ProxyServer, ServeError> {
        ProxyServer::bind_on(&mut InheritedSockets::default(), settings, None, None).await
    }

    /// As [`ProxyServer::bind`], on inherited sockets where there are some; the settings can be reloaded.
    ///
    /// # Errors
    /// As [`ProxyServer::bind`].
    pub async fn bind_reloadable(
        sockets: &mut InheritedSockets,
        settings: &ServeSettings,
        source: Box<dyn SettingsSource>,
    ) -> Result<ProxyServer, ServeError> {
        ProxyServer::bind_on(sockets, settings, None, Some(source)).await
    }

    /// As [`ProxyServer::bind`]; relayed SELECTs are counted.
    ///
    /// # Errors
    /// As [`ProxyServer::bind`].
    pub async fn bind_counting(
        settings: &ServeSettings,
        tally: Arc<Mutex<StatementTally>>,
    ) -> Result<ProxyServer, ServeError> {
        ProxyServer::bind_on(
            &mut InheritedSockets::default(),
            settings,
            Some(tally),
            None,
        )
        .await
    }

    async fn bind_on(
        sockets: &mut InheritedSockets,
        settings: &ServeSettings,
        tally: Option<Arc<Mutex<StatementTally>>>,
        source: Option<Box<dyn SettingsSource>>,
    ) -> Result<ProxyServer, ServeError> {
        let listener = ClientListener::bind_port(sockets.port.take(), &settings.listen)
            .await
            .map_err(|source| ServeError::Listen {
                listen: settings.listen.clone(),
                source,
            })?;
        let files_kept = Arc::new(AtomicBool::new(sockets.in_use));
        let listener = listener
            .with_socket(sockets, settings.socket.as_deref(), &files_kept)
            .map_err(|source| ServeError::Socket {
                path: settings.socket.clone().unwrap_or_default(),
                source,
            })?;
        let shards = ShardPool::start(settings.worker_threads())
            .map_err(|source| ServeError::Threads { source })?;
        let (state, room, inboxes) = PersistentState::new(settings, tally)?;
        let BuiltGeneration {
            shared,
            template_inbox: templates,
        } = state.build(settings, None)?;
        let current = Arc::new(CurrentGeneration::new(shared));
        let upstreams = state.upstreams();
        let entry = Arc::new(upstreams.primary_route());
        let mut sets = vec![(Arc::clone(&current), state.clone())];
        let mut replicas = Vec::new();
        for ((listen, _), entry) in replica_listeners(settings).zip(upstreams.replica_routes()) {
            let (replica_state, inboxes) = state.for_replica_port(settings, &entry.target);
            let BuiltGeneration {
                shared,
                template_inbox: templates,
            } = replica_state.build(settings, None)?;
            let current = Arc::new(CurrentGeneration::new(shared));
            sets.push((Arc::clone(&current), replica_state));
            replicas.push(ReplicaListener {
                listen: listen.to_owned(),
                entry: Arc::new(entry),
                current,
                inboxes,
                template_inbox: templates,
            });
        }
        let ports = additional_ports(sockets, settings, (&entry, &current), &replicas).await?;
        Ok(ProxyServer {
            listener,
            entry,
            additional_ports: ports,
            replica_listeners: replicas,
            account: state.account(),
            session_permits: state.session_permits(),
            linger_permits: SessionAdmission::linger_permits(),
            capacity: room,
            shards,
            proxy_protocol: Arc::new(settings.proxy_protocol.clone()),
            admin: None,
            reloader: Arc::new(SettingsReloader::new(settings, sets, source)),
            current,
            inboxes,
            template_inbox: templates,
            background_tasks: Vec::new(),
            announced: watch::Sender::new(false),
            control: None,
            files_handed_over: files_kept,
            file_is_external: sockets.file_is_external,
        })
    }

    /// Opens the admin port, or uses the inherited one, if the settings have one.
    ///
    /// # Errors
    /// When that port cannot be opened.
    pub fn with_admin(
        self,
        sockets: &mut InheritedSockets,
        section: &AdminSection,
    ) -> Result<ProxyServer, ServeError> {
        let admin = match sockets.admin.take() {
            Some(port) => AdminPort::on_listener(port, section).map(Some),
            None => AdminPort::bind(section),
        };
        let admin = admin.map_err(|source| ServeError::Admin {
            listen: section.address().unwrap_or_default().to_owned(),
            source,
        })?;
        Ok(ProxyServer { admin, ..self })
    }

    /// Exports this log's counts as metrics.
    #[must_use]
    pub fn with_log_state(self, messages: Arc<LogState>) -> ProxyServer {
        let _ = self.current.shared().log_state.set(messages);
        self
    }

    /// A probe for whether all threads run.
    #[must_use]
    pub fn liveness_probe(&self) -> LivenessProbe {
        self.shards.liveness_probe()
    }

    /// Reads the settings again.
    #[must_use]
    pub fn reloader(&self) -> Arc<SettingsReloader> {
        Arc::clone(&self.reloader)
    }

    /// The address that clients connect to.
    ///
    /// # Errors
    /// I/O errors.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The current generation of the shared state.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        self.current.shared()
    }

    /// The holder of the current generation.
    #[must_use]
    pub fn current(&self) -> Arc<CurrentGeneration> {
        Arc::clone(&self.current)
    }

    /// Logs the ports, the server, and what is accelerated. Clients need not wait for it.
    pub fn announce(&self) -> impl Future<Output = ()> + Send + use<> {
        let address = self.local_addr();
        let (entry, shared) = (Arc::clone(&self.entry), self.shared());
        let addresses: Vec<SocketAddr> = self
            .additional_ports
            .iter()
            .filter_map(|door| door.listener.local_addr().ok())
            .collect();
        let replicas: Vec<_> = self
            .replica_listeners
            .iter()
            .map(|it| (Arc::clone(&it.entry), Arc::clone(&it.current)))
            .collect();
        let socket = self.listener.socket().map(Path::to_owned);
        let room = self.capacity;
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
            for address in addresses {
                tracing::info!("listening on {address} as well (listener)");
            }
            if let Some(admin) = admin {
                tracing::info!("operators look in at http://{admin}/");
            }
            for problem in [room.shortage(), too_little_memory].into_iter().flatten() {
                tracing::warn!("{problem}");
            }
            if let Some(own_user) = &shared.transport.session_policy.process_user {
                tracing::info!(
                    "the server's socket takes all clients for the user {0} that Headwater runs as: who comes by network may not log \
                     in as {0}; accounts of other names that are identified by it (unix_socket, auth_socket) are open to all",
                    own_user.name()
                );
            }
            announce_server(&entry, &shared).await;
            if !shared.accelerate {
                tracing::info!("every statement is relayed (--relay-only, accelerate = false)");
            } else if shared.catalogue.service.is_none() {
                tracing::info!(
                    "no service account (--service-user): definitions are checked on the first client \
                     session whose account may see the procedures"
                );
            } else {
                check_definitions(&shared).await;
                report_uncompared(&shared).await;
            }
            for (entry, current) in replicas {
                let shared = current.shared();
                let limit = Duration::from_millis(shared.limits.connect_ms);
                let led = entry.target.select_within(limit).await;
                if led.is_some() && shared.accelerate {
                    check_definitions(&shared).await;
                }
            }
            announced.send_replace(true);
        }
    }

    /// Accepts clients until `stop` resolves; then waits for commands and transactions in flight, for at most `limits.drain_ms`.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let drain = DrainTrigger::default();
        self.start_admin(drain.signal());
        self.start_background().await;
        tokio::pin!(stop);
        let connecting = Arc::new(Semaphore::new(
            self.shared().limits.connecting.min(MAX_SESSIONS),
        ));
        let mut complained: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                (accepted, door, turn) = self.accept_next(&connecting) => match accepted {
                    Ok(client) => self.admit(client, door, turn, drain.signal()),
                    Err(error) => {
                        // Out of descriptors, most likely: sessions that end will free some.
                        if complained.is_none_or(|at| clock::since(at) > ACCEPT_WARNING_INTERVAL) {
                            complained = Some(clock::now());
                            tracing::warn!("clients have to wait, the port cannot take them (ulimit -n, LimitNOFILE): {error}");
                        }
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        // Drain before the port closes: a client that finds it closed must not find an idle session that continues.
        drain.begin();
        drop(self.listener);
        self.additional_ports.clear();
        for background in &self.background_tasks {
            background.abort();
        }
        let shared = self.current.shared();
        let replicas = self.replica_listeners.iter().map(|it| it.current.shared());
        for shared in [Arc::clone(&shared)].into_iter().chain(replicas) {
            if let Some(binlog) = &shared.binlog {
                // The log is not followed any more.
                binlog.discard_memory();
            }
        }
        self.reloader.stop_feed_probes().await;
        let limit = Duration::from_millis(shared.limits.drain_ms);
        let all = u32::try_from(self.capacity.sessions).unwrap_or(u32::MAX);
        let ended = || self.session_permits.acquire_many(all);
        let mut in_time = tokio::time::timeout(limit, ended()).await.is_ok();
        if !in_time && shared.handed_over.load(Ordering::Relaxed) {
            // Sessions with session state end after their current command, if it ends soon.
            shared.grace_period_over.store(true, Ordering::Relaxed);
            in_time = tokio::time::timeout(FINAL_DRAIN_TIMEOUT, ended())
                .await
                .is_ok();
        }
        if !in_time {
            tracing::warn!(
                "sessions still {} after limits.drain_ms = {} were cut off",
                warm_up::remaining_sessions(&shared),
                limit.as_millis()
            );
        }
    }

    /// Starts the background tasks.
    async fn start_background(&mut self) {
        if !self.background_tasks.is_empty() {
            return;
        }
        let upstreams = &self.entry.upstreams;
        let replicas = self.replica_listeners.iter().map(|it| &it.current);
        let sets: Vec<_> = [&self.current]
            .into_iter()
            .chain(replicas)
            .cloned()
            .collect();
        let watch = self.account.clone().map(|account| {
            let announced = self.announced.subscribe();
            watch_servers(Arc::clone(upstreams), account, sets, &announced)
        });
        let started = BackgroundTasks::start(&self.current, &mut self.inboxes, watch);
        let started = started.with_name_case_updates(&self.current, self.reloader());
        self.background_tasks.push(started);
        let mut templates = vec![self.template_inbox.take()];
        for replicas in &mut self.replica_listeners {
            let (current, inboxes) = (&replicas.current, &mut replicas.inboxes);
            let started = BackgroundTasks::start(current, inboxes, None::<Ready<()>>);
            self.background_tasks.push(started);
            templates.push(replicas.template_inbox.take());
        }
        self.reloader.start_feed_probes(templates).await;
    }

    fn start_admin(&mut self, draining: DrainSignal) {
        let context = AdminContext {
            current: self.current(),
            settings: self.reloader(),
            upstreams: Arc::clone(&self.entry.upstreams),
            draining,
            runtime: tokio::runtime::Handle::current(),
        };
        let started = self.admin.take().map(|admin| admin.start(context));
        if let Some(Err(error)) = started {
            tracing::error!("no admin port: {error}");
        }
    }

    /// Accepts the next client, once there is a permit to connect to the server for it.
    async fn accept_next(
        &self,
        connecting: &Arc<Semaphore>,
    ) -> (io::Result<AcceptedClient>, Option<usize>, DialPermit) {
        let turn = DialPermit::acquire(connecting).await;
        if self.additional_ports.is_empty() {
            return (self.listener.accept().await, None, turn);
        }
        let ports = self.additional_ports.iter();
        let accepting = select_all(ports.map(|door| Box::pin(door.listener.accept())));
        let (accepted, door) = tokio::select! {
            accepted = self.listener.accept() => (accepted, None),
            (accepted, door, _) = accepting => (accepted, Some(door)),
        };
        (accepted, door, turn)
    }

    /// `door`: the further port that it came to.
    fn admit(
        &self,
        accepted: AcceptedClient,
        door: Option<usize>,
        mut turn: DialPermit,
        draining: DrainSignal,
    ) {
        let door = door.and_then(|door| self.additional_ports.get(door));
        let (entry, current) = match door {
            Some(door) => (Arc::clone(&door.entry), Arc::clone(&door.current)),
            None => (Arc::clone(&self.entry), self.current()),
        };
        let AcceptedClient { socket, source } = accepted;
        let Ok(permit) = Arc::clone(&self.session_permits).try_acquire_owned() else {
            let message = self.capacity.refusal();
            tokio::spawn(async move {
                if let Ok(socket) = socket.attach() {
                    refuse(
                        &mut NetworkLink::new(socket),
                        TOO_MANY_CONNECTIONS,
                        &message,
                    )
                    .await;
                }
            });
            return;
        };
        let admission = SessionAdmission::new(permit, Arc::clone(&self.linger_permits));
        let seat = self.shards.acquire_slot();
        let proxy_protocol = Arc::clone(&self.proxy_protocol);
        seat.spawn(socket, move |socket| async move {
            let ends = address_pair(&proxy_protocol, source, &socket);
            let mut client = NetworkLink::new(socket);
            let span = || session_span(source, None, None);
            let limit = Duration::from_millis(current.shared().limits.connect_ms);
            if expects_proxy_header(ends, &proxy_protocol) {
                // The PROXY header has its own time limit.
                turn.release();
            }
            let spoken =
                tokio::time::timeout(limit, read_proxy_header(&mut client, ends, &proxy_protocol));
            match spoken.await {
                Ok(Ok((ends, begun))) => {
                    let header = proxy_header::header(proxy_protocol.send, ends);
                    let source = ends.map(|(source, _)| source).or(source);
                    let session = (client, source, begun);
                    let server = (&*entry, &*header, turn.reacquire().await);
                    serve(session, server, (&current, admission), draining).await;
                }
                // A balancer's health check.
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
