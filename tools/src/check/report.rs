//! The report: plain text, a heading for each part.

use super::CheckedServer;
use super::account::{self, ANY_DATABASE};
use super::cluster_waits;
use super::feeds::FeedFinding as Feed;
use super::machine::MachineFinding;
use super::serving_goal::{ComparisonPolicy, ServingGoal};
use super::timelines::TimelineFinding;
use headwater_proxy::binlog::privilege::RequiredPrivilege;
use headwater_proxy::binlog::server_facts::BinlogObstacle;
use headwater_proxy::binlog::{FreshnessMode, FreshnessSection};
use headwater_server::config::ServeSettings;
use headwater_server::report::ReportWriter;
use headwater_timeline::check::ServerProduct;

struct MissingRightCount {
    /// Surely missing.
    missing: usize,
    /// Missing, unless the table does not exist.
    unseen: usize,
}

/// Writes a report part by part.
#[derive(Debug)]
pub(super) struct CheckReport<'a> {
    text: &'a mut String,
}

impl<'a> CheckReport<'a> {
    pub(super) fn new(text: &'a mut String) -> Self {
        CheckReport { text }
    }

    /// Writes what each of several servers is; returns the number of obstacles.
    pub(super) fn servers<'b>(
        &mut self,
        servers: impl Iterator<Item = (String, &'b [String], &'b [String])>,
    ) -> usize {
        self.line("Servers");
        let mut count = 0;
        for (line, in_the_way, notes) in servers {
            self.item(&line);
            count += in_the_way.len();
            for line in in_the_way.iter().chain(notes) {
                self.item(&format!("    {line}"));
            }
        }
        self.line("");
        count
    }

    /// Writes the settings that decide what is served from memory, and how fresh it is.
    pub(super) fn settings(&mut self, settings: &ServeSettings) {
        self.part("Settings");
        let memory = match settings.binlog.memory_bytes {
            0 => "0: no memory, nothing is answered from there".to_owned(),
            bytes => format!(
                "{bytes} ({} MiB) for each timeline in each database",
                bytes >> 20
            ),
        };
        let ttl = match settings.privileges.ttl_s {
            0 => "0: the right to execute is asked for at every call".to_owned(),
            seconds => format!("{seconds}: so long a right to execute may outlive its REVOKE"),
        };
        let mut lines = vec![
            ("freshness.mode", freshness(settings.freshness)),
            ("index.memory_bytes", memory),
            ("privileges.ttl_s", ttl),
        ];
        if settings.binlog.preload {
            let all = "true: all timelines are loaded at the start, as far as they fit";
            lines.push(("index.preload", all.to_owned()));
        }
        if settings.shadow.rate > 0.0 {
            let rate = settings.shadow.rate;
            let mut compared = format!("{rate}: the share of the calls that is compared");
            if settings.shadow.by_default {
                compared += " where the account may run the procedures, since it is not set";
            }
            lines.push(("shadow.rate", compared));
        }
        for (name, value) in lines {
            self.item(&format!("{name:<20}{value}"));
        }
    }

    /// Writes the findings about this machine; returns the number of obstacles.
    pub(super) fn machine(&mut self, findings: &[MachineFinding]) -> usize {
        self.part("This machine");
        let mut count = 0;
        for finding in findings {
            match finding {
                MachineFinding::Fine(text) => self.item(text),
                MachineFinding::Obstacle(text) => {
                    count += 1;
                    self.item(&format!("in the way: {text}"));
                }
            }
        }
        count
    }

    pub(super) fn nothing_accelerated(&mut self, settings: &ServeSettings) {
        self.part("Feeds and timelines");
        for feed in &settings.feeds {
            self.item(&format!("feed {}: relayed", feed.name));
        }
        for definition in settings.named_definitions() {
            self.item(&format!("definition {}: relay", definition.name));
        }
        self.part(
            "Every statement is relayed, as the settings say (--relay-only, accelerate = false).",
        );
    }

    /// Writes what is known without a service account.
    pub(super) fn no_account(&mut self, settings: &ServeSettings, product: ServerProduct) {
        self.account_to_make(settings, product, "headwater");
        self.part("Feeds and timelines");
        for feed in &settings.feeds {
            self.item(&format!("feed {}: relayed", feed.name));
        }
        for definition in settings.named_definitions() {
            let database = definition.database.as_deref().map_or_else(
                || "any database".to_owned(),
                |name| format!("database {name}"),
            );
            self.item(&format!(
                "definition {}, {database}: lookups, if the first session whose account may see the procedures finds them \
                 as known",
                definition.name
            ));
        }
        self.part(
            "No service account is set (--service-user, HEADWATER_SERVICE_USER, service.user): the server was not asked, and \
             nothing",
        );
        self.line(
            "is answered from memory. With one, feeds and calls are, and this command says which.",
        );
    }

    /// Writes how to create an account with every privilege.
    pub(super) fn account_to_make(
        &mut self,
        settings: &ServeSettings,
        product: ServerProduct,
        user: &str,
    ) {
        self.part(
            "To make a service account (HOST: the address from which the server sees this machine)",
        );
        let account = account::new_account_name(user);
        self.item(&format!("CREATE USER {account} IDENTIFIED BY 'PASSWORD';"));
        // What it would grant is worth knowing even if memory is off.
        let definitions = settings.named_definitions();
        let timelines = definitions.map(|one| (one, one.database.as_deref()));
        let compares = ComparisonPolicy::from(settings.shadow) == ComparisonPolicy::Requested;
        for right in account::required_privileges(ServingGoal::Memory, compares, product, timelines)
        {
            self.item(&right.grant_statement(&account));
        }
    }

    /// Writes all findings about timelines. True if there is no obstacle.
    pub(super) fn write_findings(
        &mut self,
        settings: &ServeSettings,
        server: &CheckedServer,
        timelines: &[TimelineFinding],
    ) -> bool {
        let MissingRightCount { missing, unseen } = self.grants(server, timelines);
        self.comparison_grants(server, timelines);
        let obstacles = self.server_obstacles(server);
        if timelines.is_empty() {
            return self.without_timelines(missing, obstacles);
        }
        self.timelines(timelines);
        let calls = || timelines.iter().flat_map(|finding| &finding.calls);
        let all = calls().count();
        let best = calls().filter(|(_, call)| call.is_optimal()).count();
        let absent = timelines
            .iter()
            .filter(|finding| finding.database.is_none())
            .count();
        let goal = match server.goal {
            ServingGoal::Memory => "answered from memory",
            ServingGoal::Lookups => "answered by lookups, as index.memory_bytes = 0 says",
        };
        let fine = best == all && absent == 0 && missing == 0 && obstacles == 0;
        if fine {
            self.part(&format!("Every call of every timeline is {goal}."));
        } else {
            let rights = match (missing, unseen) {
                (_, 0) => missing.to_string(),
                (0, _) => "SELECT on the tables, if they are there".to_owned(),
                _ => format!("{missing}, and SELECT on the tables, if they are there"),
            };
            self.part(&format!(
                "{best} of {all} calls are {goal}. Rights missing: {rights}. Server settings in the way: {obstacles}. \
                 Definitions found nowhere: {absent} of {}.",
                settings.definitions.len()
            ));
        }
        fine
    }

    /// The same if the settings ask for feeds only.
    fn without_timelines(&mut self, missing: usize, obstacles: usize) -> bool {
        let fine = missing == 0 && obstacles == 0;
        if !fine {
            self.part(&format!(
                "Rights missing: {missing}. Server settings in the way: {obstacles}."
            ));
        }
        fine
    }

    /// Writes the GRANT statements, with missing ones marked.
    fn grants(
        &mut self,
        server: &CheckedServer,
        timelines: &[TimelineFinding],
    ) -> MissingRightCount {
        let account = &server.account;
        self.part(&format!("Grants that the service account {account} needs"));
        let places = timelines
            .iter()
            .map(|finding| (&finding.definition, finding.database.as_deref()));
        let compares = server.compares == ComparisonPolicy::Requested;
        let needed = account::required_privileges(server.goal, compares, server.product, places);
        let is_missing = |right: &RequiredPrivilege| {
            let of_server = |obstacle: &BinlogObstacle| matches!(obstacle, BinlogObstacle::Right(lacks) if lacks == right);
            server.obstacles.iter().any(of_server)
                || timelines
                    .iter()
                    .any(|finding| finding.missing.contains(right))
        };
        let (mut missing, mut unseen) = (0, 0);
        for right in &needed {
            let statement = right.grant_statement(account);
            if is_missing(right) {
                missing += 1;
                self.item(&right.missing_line(account));
            } else if is_unknown(right) {
                unseen += 1;
                self.item(&format!("{statement}  -- missing, or the table is nowhere"));
            } else {
                self.item(&statement);
            }
        }
        MissingRightCount { missing, unseen }
    }

    /// Writes privileges that are missing for default comparisons only: that is no fault.
    fn comparison_grants(&mut self, server: &CheckedServer, timelines: &[TimelineFinding]) {
        let rights = timelines.iter().flat_map(|finding| &finding.missing);
        let rights: Vec<&RequiredPrivilege> = rights
            .filter(|right| matches!(right, RequiredPrivilege::Execute { .. }))
            .collect();
        if server.compares != ComparisonPolicy::WherePossible || rights.is_empty() {
            return;
        }
        self.part(
            "Not needed: with these as well, a few of the calls are compared with the procedures (shadow.rate)",
        );
        for right in rights {
            self.item(&right.grant_statement(&server.account));
        }
    }

    /// Writes the server's unsuitable settings; returns their number.
    fn server_obstacles(&mut self, server: &CheckedServer) -> usize {
        self.part("Settings of the server in the way");
        let mut count = 0;
        for obstacle in &server.obstacles {
            if !matches!(obstacle, BinlogObstacle::Right(_)) {
                count += 1;
                self.item(&obstacle.to_string());
            }
        }
        for (name, value) in &server.session_variables {
            count += 1;
            let meaning = cluster_waits::meaning(name, value);
            self.item(&format!("{name} = {value:?} on the server: {meaning}"));
        }
        if count == 0 {
            self.item(match server.goal {
                ServingGoal::Memory => "none",
                ServingGoal::Lookups => "none (those of the binary log were not looked at)",
            });
        }
        count
    }

    fn timelines(&mut self, timelines: &[TimelineFinding]) {
        self.part("Timelines");
        for finding in timelines {
            let definition = &finding.definition;
            let name = &definition.name;
            match &finding.database {
                Some(database) => self.item(&format!("definition {name}, database {database}")),
                None => self.item(&format!(
                    "definition {name}: no database that the account may see has the tables {} and {}",
                    definition.follower.table, definition.message.table
                )),
            }
            let names = finding
                .calls
                .iter()
                .map(|(form, _)| definition.procedure_name(*form));
            let width = "CALL ".len() + names.map(str::len).max().unwrap_or_default() + 2;
            let mut before = None;
            for (form, source) in &finding.calls {
                let call = format!("CALL {}", definition.procedure_name(*form));
                let mut why = if before == Some(source) && !source.is_optimal() {
                    vec!["as the call above".to_owned()]
                } else {
                    source.reasons()
                }
                .into_iter();
                before = Some(source);
                let first = why.next().unwrap_or_default();
                self.item(&format!("    {call:<width$}{:<8}{first}", source.word()));
                for more in why {
                    self.item(&format!("    {:<width$}{:<8}{more}", "", ""));
                }
            }
        }
    }

    /// Writes every feed. True if none has an obstacle.
    pub(super) fn feeds(&mut self, feeds: &[Feed]) -> bool {
        if feeds.is_empty() {
            return true;
        }
        self.part("Feeds");
        let mut served = 0;
        for feed in feeds {
            let place = match &feed.database {
                Some(database) => format!("feed {}, database {database}", feed.name),
                None => format!("feed {}", feed.name),
            };
            match feed.obstacles.is_empty() {
                true => {
                    served += 1;
                    self.item(&format!("{place}: its SELECTs are narrowed"));
                }
                false => self.item(&format!("{place}: relayed")),
            }
            for line in &feed.obstacles {
                self.item(&format!("    {line}"));
            }
        }
        let all = feeds.len();
        match served == all {
            true => self.part("Every feed is served."),
            false => self.part(&format!("{served} of {all} feeds are served.")),
        }
        served == all
    }
}

impl ReportWriter for CheckReport<'_> {
    fn text(&mut self) -> &mut String {
        self.text
    }
}

fn is_unknown(right: &RequiredPrivilege) -> bool {
    matches!(right, RequiredPrivilege::Read { database, .. } if database == ANY_DATABASE)
}

fn freshness(freshness: FreshnessSection) -> String {
    match freshness.mode {
        FreshnessMode::Strict => {
            "strict: with every commit that anyone was told of, or could have read, before the call"
                .into()
        }
        FreshnessMode::Bounded => format!(
            "bounded: with every commit older than {} ms (freshness.bounded_ms)",
            freshness.bounded_ms
        ),
        FreshnessMode::Session => {
            "session: with every commit that the session itself was told of, or has read".into()
        }
    }
}
