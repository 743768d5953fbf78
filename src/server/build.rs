//! Settings become what sessions share: at the start, and each time they are read again.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::{MOST_SESSIONS, ServeError, legs, own_user};
use crate::account::{Account, host};
use crate::binlog::{Binlog, Inbox};
use crate::catalogue::{Catalogue, Service, numbered};
use crate::config::{Comparisons, FeedColumns, Narrow, Redirects, Settings};
use crate::feed::tally::Tally;
use crate::feeds::{self, Auto, Feeds};
use crate::logging::Messages;
use crate::overview::Tables;
use crate::room::Room;
use crate::session::advice::Advice;
use crate::session::counts::Counts;
use crate::session::listed::Sessions;
use crate::session::login::Ways;
use crate::session::login_errors::LoginErrors;
use crate::session::own::{Overview, Shows};
use crate::session::quota::Quota;
use crate::session::shared::{Shared, Transport};
use crate::session::tail::Tails;
use crate::session::watched::Watched;
use crate::shadow::{self, Shadow};
use crate::tls::{Acceptor, Connector};

/// What lasts as long as the process does, whatever settings are read again.
#[derive(Debug)]
pub(super) struct Lasting {
    account: Option<Account>,
    service: Option<Arc<Service>>,
    binlog: Option<Arc<Binlog>>,
    shadow: Option<Arc<Shadow>>,
    connector: Connector,
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

/// What the tasks beside the sessions are told by.
#[derive(Debug)]
pub(super) struct Inboxes {
    pub(super) binlog: Option<Inbox>,
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
        let connector = Connector::new(&settings.upstream_tls, host(&settings.upstream))?;
        let account = settings
            .service
            .as_ref()
            .map(|named| {
                let (user, password) = (&named.user, &named.password);
                Account::new(&settings.upstream, user, password, &connector)
            })
            .map(|account| account.in_own_session().loading(settings.binlog.load_bytes));
        let (binlog, changes) = account
            .clone()
            .filter(|_| settings.accelerate && settings.binlog.memory_bytes > 0)
            .map(|account| Binlog::new(account, settings.freshness, settings.binlog))
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
        let room = Room::now(settings.limits.sessions.min(MOST_SESSIONS));
        let lasting = Lasting {
            account,
            service,
            binlog,
            shadow,
            connector,
            tally,
            room: (Arc::new(Semaphore::new(room.sessions)), room.sessions),
            begun: Instant::now(),
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
        let inboxes = Inboxes {
            binlog: changes,
            shadow: comparisons,
        };
        Ok((lasting, room, inboxes))
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
                own_user: own_user(&settings.upstream)?,
            },
            acceptor: Acceptor::new(&settings.tls)?,
            connector: self.connector.clone(),
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
        let (service, limits) = (self.service.clone(), &settings.limits);
        let catalogue = match before {
            Some((before, _)) => {
                Catalogue::after(&before.catalogue, definitions, messages, service, limits)
            }
            None => Catalogue::new(definitions, messages, service, limits),
        };
        let rows = self.binlog.as_ref().and_then(|binlog| binlog.rows());
        let show = settings.admin.show;
        let compares = |shadow: &&Arc<Shadow>| settings.shadow.rate > 0.0 || shadow.distrusts_any();
        let shared = Shared {
            catalogue,
            limits: settings.limits,
            privileges_ttl: Duration::from_secs(settings.privileges.ttl_s),
            transport,
            binlog: self.binlog.clone(),
            tails: rows.map(|_| Tails::new(settings.rows.clone())),
            feeds,
            classic_by_default: settings.classic_by_default,
            exact_columns: settings.narrow.columns == FeedColumns::Exact,
            narrow_always: settings.narrow.narrow == Narrow::Always,
            shadow: self.shadow.as_ref().filter(compares).cloned(),
            accelerate: settings.accelerate,
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
        let Some(binlog) = self.binlog.as_ref().filter(|_| wished) else {
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
            Arc::clone(binlog),
            &settings.limits,
            feeds.map(|feeds| &**feeds),
        );
        (Some(feeds), Some(templates))
    }

    /// Has what lasts obey settings that are in force now.
    pub(super) fn obey(&self, settings: &Settings) {
        if let Some(shadow) = &self.shadow {
            let Comparisons { rate, unasked } = settings.shadow;
            shadow.set_rate((rate, unasked));
            shadow.spare_none();
        }
        if let (Some(account), Some(named)) = (&self.account, &settings.service) {
            account.set_password(&named.password);
        }
        if let Some(service) = &self.service {
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
        (limits.templates, limits.recheck_ms, limits.databases),
    )
}
