//! Settings become what sessions share: at the start, and each time they are read again.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::{Door, MOST_SESSIONS, Replicas, ServeError, legs, own_user};
use crate::account::{Account, Target};
use crate::binlog::{Binlog, Inbox};
use crate::catalogue::{Catalogue, Service, numbered};
use crate::clock;
use crate::config::{
    Comparisons, FeedColumns, ListenerSection, Narrow, Redirects, Settings, memory,
};
use crate::feed::tally::Tally;
use crate::feeds::{self, Auto, Feeds};
use crate::listener::{Backlog, Listener};
use crate::logging::Messages;
use crate::overview::Tables;
use crate::room::Room;
use crate::session::advice::Advice;
use crate::session::counts::Counts;
use crate::session::current::Current;
use crate::session::listed::Sessions;
use crate::session::login::Ways;
use crate::session::login_errors::LoginErrors;
use crate::session::own::{Overview, Shows};
use crate::session::quota::Quota;
use crate::session::shared::{Shared, Transport};
use crate::session::tail::Tails;
use crate::session::watched::Watched;
use crate::shadow::{self, Shadow};
use crate::sockets::{Sockets, take_at};
use crate::spread::{self, Spread};
use crate::tls::Acceptor;
use crate::upstreams::{Entry, ListenerRole, Upstreams};

/// What lasts as long as the process does, whatever settings are read again: for the clients that are led to one server.
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    kept: Kept,
    upstreams: Arc<Upstreams>,
    tally: Option<Arc<Mutex<Tally>>>,
    room: (Arc<Semaphore>, usize),
    begun: Instant,
    messages: Arc<OnceLock<Arc<Messages>>>,
    handed_over: Arc<AtomicBool>,
    last_call: Arc<AtomicBool>,
    sessions: Arc<Sessions>,
    accounts: Arc<Quota<Box<[u8]>>>,
    addresses: Arc<Quota<IpAddr>>,
    counts: Arc<Counts>,
    watched: Arc<Watched>,
    advice: Arc<Advice>,
    login_errors: Arc<LoginErrors>,
}

/// What asks one server, and keeps what it says.
#[derive(Clone, Debug)]
struct Kept {
    account: Option<Account>,
    service: Option<Arc<Service>>,
    binlog: Option<Arc<Binlog>>,
    spread: Option<Arc<Spread>>,
    shadow: Option<Arc<Shadow>>,
}

/// The ports for replicas.
pub(super) fn posts(settings: &Settings) -> impl Iterator<Item = (&str, ListenerRole)> {
    let listeners = settings.listeners.iter();
    let posts = listeners.filter(|it| it.role != ListenerRole::Primary);
    posts.map(|it| (it.listen.as_str(), it.role))
}

/// The further ports that are handed over, or new ones.
pub(super) async fn doors(
    sockets: &mut Sockets,
    settings: &Settings,
    backlog: Backlog,
    (entry, current): (&Arc<Entry>, &Arc<Current>),
    replicas: &[Replicas],
) -> Result<Vec<Door>, ServeError> {
    let mut doors = Vec::with_capacity(settings.listeners.len());
    for ListenerSection { listen, .. } in &settings.listeners {
        let given = take_at(&mut sockets.doors, listen);
        let opened = Listener::port(given, listen, backlog).await;
        let listener = opened.map_err(|source| ServeError::Door {
            listen: listen.clone(),
            source,
        })?;
        let of_replicas = replicas.iter().find(|it| it.listen == *listen);
        let (entry, current) = of_replicas.map_or((entry, current), |it| (&it.entry, &it.current));
        doors.push(Door {
            listener,
            entry: Arc::clone(entry),
            current: Arc::clone(current),
        });
    }
    Ok(doors)
}

impl Kept {
    fn new(settings: &Settings, target: &Target) -> (Kept, Inboxes) {
        // Each port for replicas has memory of its own.
        let bounds = match posts(settings).count() {
            0 => settings.binlog,
            others => memory::within(settings.memory.limit / (others + 1), settings.wished),
        };
        let account = settings.service.as_ref().map(|named| {
            let (user, password) = (&named.user, &named.password);
            let account = Account::toward(target.clone(), user, password);
            account.in_own_session().loading(bounds.load_bytes)
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
            .map(|(account, binlog)| Spread::new(account, binlog, settings.freshness, tls.clone()))
            .unzip();
        let (shadow, comparisons) = account
            .clone()
            .filter(|_| binlog.is_some())
            .map(|account| {
                let Comparisons { rate, unasked } = settings.shadow;
                Shadow::new((rate, unasked), account)
            })
            .unzip();
        let patience = Duration::from_millis(settings.limits.check_ms);
        let service = account.clone();
        let service = service.map(|account| Arc::new(Service::new(account, patience)));
        let kept = Kept {
            account,
            service,
            binlog,
            spread,
            shadow,
        };
        let inboxes = Inboxes {
            binlog: changes,
            spread: nodes,
            shadow: comparisons,
        };
        (kept, inboxes)
    }
}

/// What the tasks beside the sessions are told by.
#[derive(Debug)]
pub(super) struct Inboxes {
    pub(super) binlog: Option<Inbox>,
    pub(super) spread: Option<spread::Inbox>,
    pub(super) shadow: Option<shadow::Inbox>,
}

/// What is made of settings.
pub(super) struct Built {
    pub(super) shared: Shared,
    /// Of feeds that were made anew.
    pub(super) templates: Option<feeds::Inbox>,
}

impl Lasting {
    pub(super) fn new(
        settings: &Settings,
        tally: Option<Arc<Mutex<Tally>>>,
    ) -> Result<(Lasting, Room, Inboxes), ServeError> {
        let servers = settings.upstream.all();
        let posts: Vec<(&str, ListenerRole)> = posts(settings).collect();
        let section = settings.failover;
        let upstreams = Upstreams::new(servers, &settings.upstream_tls, section, &posts)?;
        let (kept, inboxes) = Kept::new(settings, upstreams.target());
        let room = Room::now(settings.limits.sessions.min(MOST_SESSIONS));
        let lasting = Lasting {
            kept,
            upstreams: Arc::new(upstreams),
            tally,
            room: (Arc::new(Semaphore::new(room.sessions)), room.sessions),
            begun: clock::now(),
            messages: Arc::default(),
            handed_over: Arc::default(),
            last_call: Arc::default(),
            sessions: Arc::default(),
            accounts: Arc::default(),
            addresses: Arc::default(),
            counts: Arc::default(),
            watched: Arc::default(),
            advice: Arc::default(),
            login_errors: Arc::default(),
        };
        Ok((lasting, room, inboxes))
    }

    /// The same for the clients of a port for replicas: what is known of a server is of another one there.
    pub(super) fn beside(&self, settings: &Settings, target: &Target) -> (Lasting, Inboxes) {
        let (kept, inboxes) = Kept::new(settings, target);
        let lasting = Lasting {
            kept,
            login_errors: Arc::default(),
            ..self.clone()
        };
        (lasting, inboxes)
    }

    /// The servers.
    pub(super) fn upstreams(&self) -> Arc<Upstreams> {
        Arc::clone(&self.upstreams)
    }

    /// The service account, where there is one.
    pub(super) fn account(&self) -> Option<Account> {
        self.kept.account.clone()
    }

    /// Room for sessions.
    pub(super) fn room(&self) -> Arc<Semaphore> {
        Arc::clone(&self.room.0)
    }

    /// What sessions share by these settings. What was known `before` is known still.
    pub(super) fn build(
        &self,
        settings: &Settings,
        before: Option<(&Shared, &Settings)>,
    ) -> Result<Built, ServeError> {
        let transport = Transport {
            ways: Ways {
                legs: legs(settings),
                redirects: settings.redirect_url == Redirects::Pass,
                compression: settings.compression,
                own_user: own_user(settings.upstream.first())?,
            },
            acceptor: Acceptor::new(&settings.tls, &settings.upstream_tls)?,
        };
        let known = before.map_or(&[][..], |(before, _)| before.catalogue.definitions());
        let definitions = numbered(known, &settings.definitions).ok_or(ServeError::Definitions)?;
        let (feeds, templates) = self.feeds(settings, before);
        let messages = match feeds {
            Some(_) => (
                Feeds::messages(&settings.feeds),
                settings.narrow.auto != Auto::Off,
            ),
            None => Default::default(),
        };
        let (service, limits) = (self.kept.service.clone(), &settings.limits);
        let catalogue = match before {
            Some((before, _)) => {
                Catalogue::after(&before.catalogue, definitions, messages, service, limits)
            }
            None => Catalogue::new(definitions, messages, service, limits),
        };
        if let Some(binlog) = &self.kept.binlog {
            binlog.counts_epochs(catalogue.epochs());
        }
        let rows = self.kept.binlog.as_ref().and_then(|binlog| binlog.rows());
        let show = settings.admin.show;
        let compares = |shadow: &&Arc<Shadow>| settings.shadow.rate > 0.0 || shadow.distrusts_any();
        let shared = Shared {
            catalogue,
            limits: settings.limits,
            privileges_ttl: Duration::from_secs(settings.privileges.ttl_s),
            upstreams: Arc::clone(&self.upstreams),
            transport,
            binlog: self.kept.binlog.clone(),
            spread: self.kept.spread.clone(),
            tails: rows.map(|_| Tails::new(settings.rows.clone())),
            feeds,
            classic_by_default: settings.classic_by_default,
            exact_columns: settings.narrow.columns == FeedColumns::Exact,
            narrow_always: settings.narrow.narrow == Narrow::Always,
            shadow: self.kept.shadow.as_ref().filter(compares).cloned(),
            accelerate: settings.accelerate,
            case: settings.case,
            tally: self.tally.clone(),
            sessions: Arc::clone(&self.sessions),
            accounts: Arc::clone(&self.accounts),
            addresses: Arc::clone(&self.addresses),
            shows: Shows::new(show.then(|| Box::new(Tables) as Box<dyn Overview>)),
            settings: settings.told(),
            room: self.room.clone(),
            memory_limit: settings.memory.limit,
            begun: self.begun,
            slow: match settings.log.slow_ms {
                0 => None,
                milliseconds => Some(Duration::from_millis(milliseconds)),
            },
            messages: Arc::clone(&self.messages),
            handed_over: Arc::clone(&self.handed_over),
            last_call: Arc::clone(&self.last_call),
            counts: Arc::clone(&self.counts),
            watched: Arc::clone(&self.watched),
            advice: Arc::clone(&self.advice),
            login_errors: Arc::clone(&self.login_errors),
        };
        Ok(Built { shared, templates })
    }

    /// The feeds of these settings: the same as before where nothing that concerns them differs.
    fn feeds(
        &self,
        settings: &Settings,
        before: Option<(&Shared, &Settings)>,
    ) -> (Option<Arc<Feeds>>, Option<feeds::Inbox>) {
        let wished = !settings.feeds.is_empty() || settings.narrow.auto != Auto::Off;
        let Some(binlog) = self.kept.binlog.as_ref().filter(|_| wished) else {
            return (None, None);
        };
        let feeds = before.and_then(|(before, _)| before.feeds.as_ref());
        if let (Some(feeds), Some((_, then))) = (feeds, before)
            && concerns_feeds(then) == concerns_feeds(settings)
        {
            return (Some(Arc::clone(feeds)), None);
        }
        let (feeds, templates) = Feeds::new(
            settings.feeds.clone(),
            (settings.narrow.auto, settings.rows.clone()),
            settings.case,
            Arc::clone(binlog),
            &settings.limits,
            feeds.map(|feeds| &**feeds),
        );
        (Some(feeds), Some(templates))
    }

    /// Has what lasts obey settings that are in force now.
    pub(super) fn obey(&self, settings: &Settings) {
        if let Some(shadow) = &self.kept.shadow {
            let Comparisons { rate, unasked } = settings.shadow;
            shadow.set_rate((rate, unasked));
            shadow.spare_none();
        }
        if let (Some(account), Some(named)) = (&self.kept.account, &settings.service) {
            account.set_password(&named.password);
        }
        if let Some(service) = &self.kept.service {
            service.set_patience(Duration::from_millis(settings.limits.check_ms));
        }
    }
}

/// What feeds are made of.
fn concerns_feeds(settings: &Settings) -> impl PartialEq + '_ {
    let limits = &settings.limits;
    (
        &settings.feeds,
        settings.narrow.auto,
        &settings.rows,
        settings.case,
        (limits.templates, limits.recheck_ms, limits.databases),
    )
}
