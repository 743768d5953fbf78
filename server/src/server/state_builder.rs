//! Builds the shared state from settings: at the start, and at each reload.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::{AdditionalPort, MAX_SESSIONS, ReplicaListener, ServeError, process_user, tls_legs};
use crate::config::{
    FeedColumns, ListenerSection, NarrowPolicy, RedirectPolicy, ServeSettings, ShadowSampling,
    memory,
};
use crate::listener::ClientListener;
use crate::overview::OverviewBuilder;
use crate::session_capacity::SessionCapacity;
use crate::sockets::{InheritedSockets, take_at};
use headwater_feed::tally::StatementTally;
use headwater_proxy::account::{UpstreamAccount, UpstreamTarget};
use headwater_proxy::binlog::{Binlog, BinlogInbox};
use headwater_proxy::catalogue::{Catalogue, ServiceConnection, assign_numbers};
use headwater_proxy::clock;
use headwater_proxy::feeds::{self, FeedDiscoveryMode, FeedRegistry};
use headwater_proxy::logging::LogState;
use headwater_proxy::session::account_advice::AccountAdvice;
use headwater_proxy::session::current_generation::CurrentGeneration;
use headwater_proxy::session::follow_up_select::FollowUpTemplates;
use headwater_proxy::session::login_errors::LoginErrorCounter;
use headwater_proxy::session::measurements::SessionMeasurements;
use headwater_proxy::session::quota::SessionQuota;
use headwater_proxy::session::session_counters::SessionCounters;
use headwater_proxy::session::session_registry::SessionRegistry;
use headwater_proxy::session::shared_state::{SharedState, TransportSettings};
use headwater_proxy::session::show_statements::{OverviewSource, ShowStatements};
use headwater_proxy::shadow::{self, Shadow};
use headwater_proxy::spread::{self, SpreadMemory};
use headwater_proxy::tls::TlsAcceptor;
use headwater_proxy::upstreams::{ListenerRole, ListenerRoute, Upstreams};
use headwater_session::account_rights::AccountRights;
use headwater_session::login::SessionPolicy;

/// State that lives as long as the process, over all reloads, for the clients of one server.
#[derive(Clone, Debug)]
pub(super) struct PersistentState {
    services: ServerServices,
    upstreams: Arc<Upstreams>,
    tally: Option<Arc<Mutex<StatementTally>>>,
    session_permits: (Arc<Semaphore>, usize),
    started_at: Instant,
    log_state: Arc<OnceLock<Arc<LogState>>>,
    handed_over: Arc<AtomicBool>,
    grace_period_over: Arc<AtomicBool>,
    sessions: Arc<SessionRegistry>,
    accounts: Arc<SessionQuota<Box<[u8]>>>,
    addresses: Arc<SessionQuota<IpAddr>>,
    counters: Arc<SessionCounters>,
    measurements: Arc<SessionMeasurements>,
    advice: Arc<AccountAdvice>,
    login_errors: Arc<LoginErrorCounter>,
}

/// The services that query one server, and the state they collect.
#[derive(Clone, Debug)]
struct ServerServices {
    account: Option<UpstreamAccount>,
    service: Option<Arc<ServiceConnection>>,
    binlog: Option<Arc<Binlog>>,
    spread: Option<Arc<SpreadMemory>>,
    shadow: Option<Arc<Shadow>>,
}

/// The replica ports.
pub(super) fn replica_listeners(
    settings: &ServeSettings,
) -> impl Iterator<Item = (&str, ListenerRole)> {
    let listeners = settings.listeners.iter();
    let replica_ports = listeners.filter(|it| it.role != ListenerRole::Primary);
    replica_ports.map(|it| (it.listen.as_str(), it.role))
}

/// Binds the further ports, or uses the inherited ones.
pub(super) async fn additional_ports(
    sockets: &mut InheritedSockets,
    settings: &ServeSettings,
    (entry, current): (&Arc<ListenerRoute>, &Arc<CurrentGeneration>),
    replicas: &[ReplicaListener],
) -> Result<Vec<AdditionalPort>, ServeError> {
    let mut ports = Vec::with_capacity(settings.listeners.len());
    for ListenerSection { listen, .. } in &settings.listeners {
        let given = take_at(&mut sockets.additional_ports, listen);
        let opened = ClientListener::bind_port(given, listen).await;
        let listener = opened.map_err(|source| ServeError::AdditionalPort {
            listen: listen.clone(),
            source,
        })?;
        let of_replicas = replicas.iter().find(|it| it.listen == *listen);
        let (entry, current) = of_replicas.map_or((entry, current), |it| (&it.entry, &it.current));
        ports.push(AdditionalPort {
            listener,
            entry: Arc::clone(entry),
            current: Arc::clone(current),
        });
    }
    Ok(ports)
}

impl ServerServices {
    fn new(settings: &ServeSettings, target: &UpstreamTarget) -> (ServerServices, TaskInboxes) {
        // Each replica port has its own memory.
        let bounds = match replica_listeners(settings).count() {
            0 => settings.binlog,
            others => memory::fit_limits(
                settings.memory.limit / (others + 1),
                settings.requested_limits,
            ),
        };
        let account = settings.service.as_ref().map(|named| {
            let (user, password) = (&named.user, &named.password);
            let account = UpstreamAccount::for_target(target.clone(), user, password);
            account
                .with_internal_session()
                .with_load_bytes(bounds.load_bytes)
        });
        let (binlog, changes) = account
            .clone()
            .filter(|_| settings.accelerate && bounds.memory_bytes > 0)
            .map(|account| Binlog::new(account, settings.freshness, bounds))
            .unzip();
        let tls = &settings.upstream_tls;
        let (spread, nodes) = account
            .clone()
            .zip(binlog.clone())
            .filter(|_| bounds.data_nodes)
            .map(|(account, binlog)| {
                SpreadMemory::new(account, binlog, settings.freshness, tls.clone())
            })
            .unzip();
        let (shadow, comparisons) = account
            .clone()
            .filter(|_| binlog.is_some())
            .map(|account| {
                let ShadowSampling {
                    rate,
                    by_default: unasked,
                } = settings.shadow;
                Shadow::new((rate, unasked), account)
            })
            .unzip();
        let patience = Duration::from_millis(settings.limits.check_ms);
        let service = account.clone();
        let service = service.map(|account| Arc::new(ServiceConnection::new(account, patience)));
        let services = ServerServices {
            account,
            service,
            binlog,
            spread,
            shadow,
        };
        let inboxes = TaskInboxes {
            binlog: changes,
            spread: nodes,
            shadow: comparisons,
        };
        (services, inboxes)
    }
}

/// The inboxes of the background tasks.
#[derive(Debug)]
pub(super) struct TaskInboxes {
    pub(super) binlog: Option<BinlogInbox>,
    pub(super) spread: Option<spread::SpreadInbox>,
    pub(super) shadow: Option<shadow::ShadowInbox>,
}

/// A generation built from settings.
pub(super) struct BuiltGeneration {
    pub(super) shared: SharedState,
    /// For feeds that were built anew.
    pub(super) template_inbox: Option<feeds::FeedInbox>,
}

impl PersistentState {
    pub(super) fn new(
        settings: &ServeSettings,
        tally: Option<Arc<Mutex<StatementTally>>>,
    ) -> Result<(PersistentState, SessionCapacity, TaskInboxes), ServeError> {
        let servers = settings.upstream.all();
        let replica_ports: Vec<(&str, ListenerRole)> = replica_listeners(settings).collect();
        let section = settings.failover;
        let upstreams = Upstreams::new(servers, &settings.upstream_tls, section, &replica_ports)?;
        let (services, inboxes) = ServerServices::new(settings, upstreams.target());
        let room = SessionCapacity::detect(settings.limits.sessions.min(MAX_SESSIONS));
        let state = PersistentState {
            services,
            upstreams: Arc::new(upstreams),
            tally,
            session_permits: (Arc::new(Semaphore::new(room.sessions)), room.sessions),
            started_at: clock::now(),
            log_state: Arc::default(),
            handed_over: Arc::default(),
            grace_period_over: Arc::default(),
            sessions: Arc::default(),
            accounts: Arc::default(),
            addresses: Arc::default(),
            counters: Arc::default(),
            measurements: Arc::default(),
            advice: Arc::default(),
            login_errors: Arc::default(),
        };
        Ok((state, room, inboxes))
    }

    /// The same for a replica port, whose clients use another server.
    pub(super) fn for_replica_port(
        &self,
        settings: &ServeSettings,
        target: &UpstreamTarget,
    ) -> (PersistentState, TaskInboxes) {
        let (services, inboxes) = ServerServices::new(settings, target);
        let state = PersistentState {
            services,
            login_errors: Arc::default(),
            ..self.clone()
        };
        (state, inboxes)
    }

    pub(super) fn upstreams(&self) -> Arc<Upstreams> {
        Arc::clone(&self.upstreams)
    }

    pub(super) fn account(&self) -> Option<UpstreamAccount> {
        self.services.account.clone()
    }

    pub(super) fn session_permits(&self) -> Arc<Semaphore> {
        Arc::clone(&self.session_permits.0)
    }

    /// Builds the shared state for these settings. Keeps the knowledge of the generation `before`.
    pub(super) fn build(
        &self,
        settings: &ServeSettings,
        before: Option<(&SharedState, &ServeSettings)>,
    ) -> Result<BuiltGeneration, ServeError> {
        let transport = TransportSettings {
            session_policy: SessionPolicy {
                tls: tls_legs(settings),
                redirects: settings.redirect_url == RedirectPolicy::Pass,
                compression: settings.compression,
                process_user: process_user(settings.upstream.first())?,
            },
            acceptor: TlsAcceptor::new(&settings.tls, &settings.upstream_tls)?,
        };
        let known = before.map_or(&[][..], |(before, _)| before.catalogue.definitions());
        let definitions =
            assign_numbers(known, &settings.definitions).ok_or(ServeError::Definitions)?;
        let (feeds, templates) = self.build_feeds(settings, before);
        let messages = match feeds {
            Some(_) => (
                FeedRegistry::messages(&settings.feeds),
                settings.narrow.auto != FeedDiscoveryMode::Off,
            ),
            None => Default::default(),
        };
        let (service, limits) = (self.services.service.clone(), &settings.limits);
        let catalogue = match before {
            Some((before, _)) => {
                Catalogue::from_previous(&before.catalogue, definitions, messages, service, limits)
            }
            None => Catalogue::new(definitions, messages, service, limits),
        };
        if let Some(binlog) = &self.services.binlog {
            binlog.set_epoch_counter(catalogue.epochs());
        }
        let rows = self
            .services
            .binlog
            .as_ref()
            .and_then(|binlog| binlog.row_cache());
        let show = settings.admin.show;
        let compares = |shadow: &&Arc<Shadow>| settings.shadow.rate > 0.0 || shadow.distrusts_any();
        let shared = SharedState {
            catalogue,
            limits: settings.limits,
            privileges_ttl: Duration::from_secs(settings.privileges.ttl_s),
            account_rights: AccountRights::default(),
            upstreams: Arc::clone(&self.upstreams),
            transport,
            binlog: self.services.binlog.clone(),
            spread: self.services.spread.clone(),
            follow_ups: rows.map(|_| FollowUpTemplates::new(settings.rows.clone())),
            feeds,
            classic_by_default: settings.classic_by_default,
            exact_columns: settings.narrow.columns == FeedColumns::Exact,
            narrow_always: settings.narrow.narrow == NarrowPolicy::Always,
            shadow: self.services.shadow.as_ref().filter(compares).cloned(),
            accelerate: settings.accelerate,
            name_case: settings.case,
            tally: self.tally.clone(),
            sessions: Arc::clone(&self.sessions),
            accounts: Arc::clone(&self.accounts),
            addresses: Arc::clone(&self.addresses),
            show_statements: ShowStatements::new(
                show.then(|| Box::new(OverviewBuilder) as Box<dyn OverviewSource>),
            ),
            settings: settings.setting_values(),
            session_permits: self.session_permits.clone(),
            memory_limit: settings.memory.limit,
            started_at: self.started_at,
            slow_threshold: match settings.log.slow_ms {
                0 => None,
                milliseconds => Some(Duration::from_millis(milliseconds)),
            },
            log_state: Arc::clone(&self.log_state),
            handed_over: Arc::clone(&self.handed_over),
            grace_period_over: Arc::clone(&self.grace_period_over),
            counters: Arc::clone(&self.counters),
            measurements: Arc::clone(&self.measurements),
            advice: Arc::clone(&self.advice),
            login_errors: Arc::clone(&self.login_errors),
        };
        Ok(BuiltGeneration {
            shared,
            template_inbox: templates,
        })
    }

    /// Builds the feeds. Returns the previous ones if no setting that concerns them differs.
    fn build_feeds(
        &self,
        settings: &ServeSettings,
        before: Option<(&SharedState, &ServeSettings)>,
    ) -> (Option<Arc<FeedRegistry>>, Option<feeds::FeedInbox>) {
        let wished = !settings.feeds.is_empty() || settings.narrow.auto != FeedDiscoveryMode::Off;
        let Some(binlog) = self.services.binlog.as_ref().filter(|_| wished) else {
            return (None, None);
        };
        let feeds = before.and_then(|(before, _)| before.feeds.as_ref());
        if let (Some(feeds), Some((_, then))) = (feeds, before)
            && feed_settings(then) == feed_settings(settings)
        {
            return (Some(Arc::clone(feeds)), None);
        }
        let (feeds, templates) = FeedRegistry::new(
            settings.feeds.clone(),
            (settings.narrow.auto, settings.rows.clone()),
            settings.case,
            Arc::clone(binlog),
            &settings.limits,
            feeds.map(|feeds| &**feeds),
        );
        (Some(feeds), Some(templates))
    }

    /// Applies settings to the persistent state.
    pub(super) fn apply(&self, settings: &ServeSettings) {
        if let Some(shadow) = &self.services.shadow {
            let ShadowSampling {
                rate,
                by_default: unasked,
            } = settings.shadow;
            shadow.set_rate((rate, unasked));
            shadow.clear_exclusions();
        }
        if let (Some(account), Some(named)) = (&self.services.account, &settings.service) {
            account.set_password(&named.password);
        }
        if let Some(service) = &self.services.service {
            service.set_patience(Duration::from_millis(settings.limits.check_ms));
        }
    }
}

/// The settings that feeds are built from.
fn feed_settings(settings: &ServeSettings) -> impl PartialEq + '_ {
    let limits = &settings.limits;
    (
        &settings.feeds,
        settings.narrow.auto,
        &settings.rows,
        settings.case,
        (limits.templates, limits.recheck_ms, limits.databases),
    )
}
