//! The events in a world besides pages and direct writes: each seed draws which of them are enabled, so that rare pairs meet.

use headwater_server::config::{ServeFlags, ServeSettings};

use crate::network::NetworkWeather;
use crate::pages::AuthorNames;
use crate::random::Random;

/// The address of the server, and of Headwater.
pub(crate) const PRIMARY: &str = "primary:3306";

const CALLS: &str = "[[definition]]\nname = \"classic\"\ndatabase = \"world\"\n";
const FEED: &str = "[[feed]]\nname = \"home\"\ndatabase = \"world\"\n\
    [feed.message]\ntable = \"statuses\"\nid = \"id\"\nauthor = \"profile_id\"\norder = [\"id\"]\n\
    [feed.follow]\ntable = \"followers\"\nreader = \"profile_id\"\nauthor = \"following_id\"\n";

/// How many kinds of statements there are besides pages.
pub(crate) const FORMS: u64 = 9;
/// The steps of all apps together.
pub(crate) const STEPS: usize = 200;

/// The enabled events.
#[derive(Clone, Debug)]
pub(crate) struct WorldPlan {
    pub(crate) weather: NetworkWeather,
    /// Steps of apps.
    pub(crate) steps: usize,
    /// The number of clients that write without Headwater.
    pub(crate) writers: usize,
    /// The maximum pause of these writers, in milliseconds.
    pub(crate) rest: u64,
    /// Apps begin once Headwater reads the log.
    pub(crate) warm: bool,
    /// Apps write through Headwater.
    pub(crate) app_writes: bool,
    /// Apps open transactions.
    pub(crate) transactions: bool,
    /// Apps repeat a feed's page.
    pub(crate) refreshes: bool,
    /// Apps pause if memory does not answer.
    pub(crate) patient: bool,
    /// Apps prepare some of their statements.
    pub(crate) executions: bool,
    /// Apps list authors in some of their statements.
    pub(crate) lists: bool,
    /// Instead of some pages apps count, or ask for what is newest, or for messages by their ids: one of [`FORMS`].
    pub(crate) counts: Option<u64>,
    /// Some of their pages show authors' names.
    pub(crate) names: AuthorNames,
    /// Some of a feed's pages have an upper limit of ids.
    pub(crate) bounds: bool,
    /// The OFFSET of some pages.
    pub(crate) offset: usize,
    /// Some exclude authors whom the reader has blocked.
    pub(crate) blocks: bool,
    /// The maximum pause between operators' actions, in milliseconds.
    pub(crate) rests: u64,
    /// Tables are truncated.
    pub(crate) truncations: bool,
    /// Tables get one more column.
    pub(crate) alterations: bool,
    /// The log is rotated.
    pub(crate) flushes: bool,
    /// Older log files are purged.
    pub(crate) purges: bool,
    /// One of so many statements is refused, as if it was interrupted or took too long.
    pub(crate) refusals: Option<u64>,
    /// The server is shut down, or killed.
    pub(crate) restarts: Option<RestartKind>,
    /// Connections are killed.
    pub(crate) kills: bool,
    /// The service account lacks a right for a while.
    pub(crate) rights: bool,
    /// Two Headwaters run side by side.
    pub(crate) beside: bool,
    /// A Headwater takes over from another.
    pub(crate) successions: bool,
    /// Settings are reloaded.
    pub(crate) reloads: bool,
    /// Calls and a feed's pages are served; a reload may disable either for a while.
    pub(crate) has_calls: bool,
    pub(crate) has_feed: bool,
    /// Memory is too small for everything.
    pub(crate) index_bytes: Option<u64>,
    /// Feeds are narrowed even if the server alone seems as fast.
    pub(crate) always_narrow: bool,
    /// The initial number of messages of each kind.
    pub(crate) messages: u64,
}

/// How the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartKind {
    /// It is durable.
    Durable,
    /// It may lose its last transactions when it is killed.
    Losing,
    /// A replica takes its place.
    Replaced,
}

impl WorldPlan {
    pub(crate) fn drawn(random: &mut Random) -> WorldPlan {
        WorldPlan {
            weather: NetworkWeather::drawn(random),
            steps: STEPS,
            writers: 2,
            rest: *random.pick(&[20, 100, 400, 2_000]),
            warm: !random.one_in(3),
            app_writes: random.one_in(2),
            transactions: random.one_in(2),
            refreshes: random.one_in(2),
            patient: random.one_in(2),
            executions: random.one_in(3),
            lists: random.one_in(3),
            counts: random.one_in(2).then(|| random.below(FORMS)),
            names: *random.pick(&[
                AuthorNames::Absent,
                AuthorNames::Absent,
                AuthorNames::Absent,
                AuthorNames::Inner,
                AuthorNames::Outer,
            ]),
            bounds: random.one_in(2),
            offset: *random.pick(&[0, 0, 1, 2]),
            blocks: random.one_in(3),
            rests: *random.pick(&[1_000, 10_000]),
            truncations: random.one_in(8),
            alterations: random.one_in(8),
            flushes: random.one_in(4),
            purges: random.one_in(4),
            refusals: random.one_in(6).then(|| *random.pick(&[20, 200])),
            restarts: match random.below(8) {
                0 => Some(RestartKind::Durable),
                1 => Some(RestartKind::Losing),
                2 => Some(RestartKind::Replaced),
                _ => None,
            },
            kills: random.one_in(8),
            rights: random.one_in(8),
            beside: random.one_in(8),
            successions: random.one_in(8),
            reloads: random.one_in(6),
            has_calls: true,
            has_feed: true,
            index_bytes: random.one_in(6).then(|| 2_000 + random.below(3_000)),
            always_narrow: random.one_in(2),
            messages: *random.pick(&[1, 40, 200]),
        }
    }

    /// True if connections may be lost.
    pub(crate) fn breaks(&self) -> bool {
        self.weather.breaks.is_some()
            || self.weather.deaf.is_some()
            || self.restarts.is_some()
            || self.kills
            || self.successions
    }

    /// The settings of a Headwater at this address, parsed as a user's file.
    pub(crate) fn settings(&self, listen: &str) -> ServeSettings {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("headwater.toml");
        let index = self.index_bytes.map_or(String::new(), |bytes| {
            format!("[index]\nmemory_bytes = {bytes}\n")
        });
        let narrow = match self.always_narrow {
            true => "always",
            false => "cheaper",
        };
        let calls = match self.has_calls {
            true => CALLS,
            false => "",
        };
        let feed = match self.has_feed {
            true => FEED,
            false => "",
        };
        let text = format!(
            "listen = \"{listen}\"\nupstream = \"{PRIMARY}\"\nthreads = 1\n\
             [service]\nuser = \"headwater\"\npassword = \"pw\"\n\
             [shadow]\nrate = 0.0\n[limits]\nsessions = 500\n{index}[feeds]\nnarrow = \"{narrow}\"\n{calls}{feed}",
        );
        std::fs::write(&path, text).expect("a settings file");
        ServeSettings::load(&ServeFlags {
            config: Some(path),
            ..ServeFlags::default()
        })
        .expect("settings")
    }
}
