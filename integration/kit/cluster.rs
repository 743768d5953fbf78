//! Clusters of three members on one machine, each a separate server process: MySQL Group Replication, and MariaDB with Galera.
//!
//! Methods name members by index. A query to a member that does not answer (killed, stopped) returns `None` at once.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headwater_lab::private_server::{
    PrivateServer, PrivateServerError, ServerKind, free_port, galera_provider, script_log_lines,
};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::servers::if_here;
use super::wire_client::answer::answers;
use super::wire_client::{Answer, Login, WireClient};

/// The number of members of a cluster.
pub(crate) const MEMBERS: usize = 3;
/// The group's name (a UUID).
const GROUP: &str = "9d2a2bfe-0000-4000-8000-68656164776f";
/// Membership changes take seconds, and a restarted member recovers first.
const PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(20);

/// The lock of a test on clusters. Only one cluster runs at a time: members that wait for a processor would be declared lost.
#[derive(Debug)]
pub(crate) struct Turn {
    _held: MutexGuard<'static, ()>,
}

/// Waits for the lock.
pub(crate) fn turn() -> Turn {
    static TURN: Mutex<()> = Mutex::new(());
    Turn {
        _held: TURN.lock().unwrap_or_else(PoisonError::into_inner),
    }
}

/// A cluster that several tests share, locked for one of them.
#[derive(Debug)]
pub(crate) struct Shared {
    cluster: MutexGuard<'static, Cluster>,
    _turn: Turn,
}

impl Shared {
    pub(crate) fn new(cluster: MutexGuard<'static, Cluster>, turn: Turn) -> Shared {
        Shared {
            cluster,
            _turn: turn,
        }
    }
}

impl Deref for Shared {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }
}

/// The replication method of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// MySQL Group Replication with one writable member.
    SinglePrimary,
    /// MySQL Group Replication with all members writable.
    MultiPrimary,
    /// MariaDB Galera.
    Galera,
}

/// A cluster. Drop ends its members.
#[derive(Debug)]
pub(crate) struct Cluster {
    form: Form,
    members: Vec<PrivateServer>,
    /// The ports for traffic between members.
    talks: Vec<u16>,
    /// Members that SIGSTOP has paused.
    held: Vec<bool>,
    more: Vec<String>,
    provider: PathBuf,
}

impl Cluster {
    /// Starts three members, and waits until all of them serve. `more`: further options of each. `None` on a machine that has not got the
    /// programs; on CI (`CI=true`) that is a failure.
    #[track_caller]
    pub(crate) fn start(form: Form, more: &[&str]) -> Option<Cluster> {
        if_here(Cluster::try_start(form, more, MEMBERS))
    }

    /// Starts a cluster of one.
    #[track_caller]
    pub(crate) fn alone(form: Form, more: &[&str]) -> Option<Cluster> {
        if_here(Cluster::try_start(form, more, 1))
    }

    /// Starts a cluster of two.
    #[track_caller]
    pub(crate) fn pair(form: Form) -> Option<Cluster> {
        if_here(Cluster::try_start(form, &[], 2))
    }

    /// True on a machine without Galera. On CI (`CI=true`) that is a failure.
    #[track_caller]
    pub(crate) fn has_no_galera() -> bool {
        if_here(galera_provider()).is_none()
    }

    fn try_start(form: Form, more: &[&str], count: usize) -> Result<Cluster, PrivateServerError> {
        let provider = match form {
            Form::Galera => galera_provider()?,
            _ => PathBuf::new(),
        };
        let mut cluster = Cluster {
            form,
            members: Vec::new(),
            talks: (0..MEMBERS).map(|_| free_port().unwrap()).collect(),
            held: vec![false; MEMBERS],
            more: more.iter().map(|&option| option.to_owned()).collect(),
            provider,
        };
        let start = |cluster: &Cluster, index: usize| {
            let seeds: Vec<usize> = (0..index).collect();
            let options = cluster.options(index, &seeds);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            PrivateServer::start(cluster.kind(), &options)
        };
        // A Galera node joins at its start. Group members start together and join one after the other.
        cluster.members = match form {
            Form::Galera => Vec::new(),
            _ => thread::scope(|scope| {
                let starting: Vec<_> = (0..count)
                    .map(|index| {
                        let (start, cluster) = (&start, &cluster);
                        scope.spawn(move || start(cluster, index))
                    })
                    .collect();
                let started = starting.into_iter().map(|it| it.join().unwrap());
                started.collect::<Result<_, _>>()
            })?,
        };
        for index in 0..count {
            if form == Form::Galera {
                let node = start(&cluster, index);
                cluster
                    .members
                    .push(node.map_err(|error| cluster.explained(error))?);
            }
            cluster.join(index, index == 0);
        }
        cluster.wait_for_members(0, count);
        for index in 0..count {
            cluster.wait_until_it_serves(index);
        }
        Ok(cluster)
    }

    /// Adds the log of a failed state transfer to the error of a node that did not start.
    fn explained(&self, error: PrivateServerError) -> PrivateServerError {
        let PrivateServerError::Start { kind, port, log } = error else {
            return error;
        };
        let words = self
            .members
            .iter()
            .map(|member| script_log_lines(&member.log()));
        let words = words.collect::<Vec<_>>().join("\n");
        let log = format!("{log}\nthe scripts of the other members wrote:\n{words}");
        PrivateServerError::Start { kind, port, log }
    }

    fn kind(&self) -> ServerKind {
        match self.form {
            Form::Galera => ServerKind::Mariadb,
            _ => ServerKind::Mysql,
        }
    }

    /// The command line of a member that joins through these seeds.
    fn options(&self, index: usize, seeds: &[usize]) -> Vec<String> {
        let talk = |index: &usize| format!("127.0.0.1:{}", self.talks[*index]);
        let all: Vec<usize> = (0..MEMBERS).collect();
        let list = |of: &[usize]| of.iter().map(talk).collect::<Vec<_>>().join(",");
        let mut options = vec![format!("--server-id={}", index + 1)];
        if self.form == Form::Galera {
            let [ist, sst] = [0, 1].map(|_| free_port().unwrap());
            options.extend([
                "--wsrep-on=ON".to_owned(),
                format!("--wsrep-provider={}", self.provider.display()),
                "--wsrep-cluster-name=headwater".to_owned(),
                format!("--wsrep-cluster-address=gcomm://{}", list(seeds)),
                format!("--wsrep-node-address={}", talk(&index)),
                format!("--wsrep-node-name=member{index}"),
                "--wsrep-sst-method=rsync".to_owned(),
                format!("--wsrep-sst-receive-address=127.0.0.1:{sst}"),
                // A silent node is expelled after five seconds: a busy machine may pause one for less.
                format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://{};ist.recv_addr=127.0.0.1:{ist};gcache.size=32M;\
                     evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.suspect_timeout=PT5S;\
                     evs.inactive_timeout=PT8S;evs.install_timeout=PT8S",
                    talk(&index)
                ),
                "--innodb-autoinc-lock-mode=2".to_owned(),
                "--log-slave-updates=ON".to_owned(),
            ]);
        } else {
            let single = if self.form == Form::SinglePrimary {
                "ON"
            } else {
                "OFF"
            };
            options.extend([
                "--plugin-load-add=group_replication.so".to_owned(),
                "--report-host=127.0.0.1".to_owned(),
                format!("--group-replication-group-name={GROUP}"),
                format!("--group-replication-local-address={}", talk(&index)),
                format!("--group-replication-group-seeds={}", list(&all)),
                "--group-replication-start-on-boot=OFF".to_owned(),
                format!("--group-replication-single-primary-mode={single}"),
                "--group-replication-member-expel-timeout=0".to_owned(),
                "--group-replication-autorejoin-tries=0".to_owned(),
                // The member retries a donor that is not ready after a second, not after a minute.
                "--group-replication-recovery-reconnect-interval=1".to_owned(),
                "--group-replication-components-stop-timeout=10".to_owned(),
                "--group-replication-unreachable-majority-timeout=0".to_owned(),
                "--group-replication-exit-state-action=READ_ONLY".to_owned(),
            ]);
        }
        options.extend(self.more.iter().cloned());
        options
    }

    /// Has a started member join the cluster, or bootstrap it.
    fn join(&self, index: usize, begins: bool) {
        if self.form == Form::Galera {
            return;
        }
        let mut root = self.connect(index);
        root.ok(
            "CHANGE REPLICATION SOURCE TO SOURCE_USER='root', SOURCE_PASSWORD='' \
             FOR CHANNEL 'group_replication_recovery'",
        );
        if begins {
            root.ok("SET GLOBAL group_replication_bootstrap_group = ON");
        }
        root.ok("START GROUP_REPLICATION");
        root.ok("SET GLOBAL group_replication_bootstrap_group = OFF");
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn addr(&self, index: usize) -> SocketAddr {
        self.members[index].addr()
    }

    pub(crate) fn server(&self, index: usize) -> &PrivateServer {
        &self.members[index]
    }

    /// The last lines of a member's log.
    pub(crate) fn log(&self, index: usize) -> String {
        let text = std::fs::read(self.members[index].log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// A new `root` connection.
    #[track_caller]
    pub(crate) fn connect(&self, index: usize) -> WireClient {
        WireClient::connect(self.addr(index))
    }

    /// A new `root` connection; `None` where the member does not run, is paused, or refuses it.
    pub(crate) fn try_connect(&self, index: usize) -> Option<WireClient> {
        if self.held[index] || self.members[index].pid().is_none() {
            return None;
        }
        WireClient::try_login(self.addr(index), &Login::default())
            .ok()?
            .ok()
    }

    /// The first cell of the first row; `None` where the member does not answer, or the result has no such cell.
    fn ask(&self, index: usize, select: &str) -> Option<String> {
        let mut root = self.try_connect(index)?;
        let reply = root.query_reply(select).ok()?;
        let answer = answers(&reply.packets, root.capabilities);
        let Some(Answer::Rows(rows)) = answer.into_iter().next() else {
            return None;
        };
        rows.rows.into_iter().next()?.into_iter().next()?
    }

    /// A member's own state: `ONLINE`, `RECOVERING`, `ERROR`, `OFFLINE`; `Synced`, `Donor/Desynced`, `Initialized`.
    pub(crate) fn state(&self, index: usize) -> Option<String> {
        match self.form {
            Form::Galera => self.status(index, "wsrep_local_state_comment"),
            _ => self.ask(
                index,
                "SELECT MEMBER_STATE FROM performance_schema.replication_group_members \
                 WHERE MEMBER_ID IN (@@server_uuid, '') LIMIT 1",
            ),
        }
    }

    /// A status variable of a Galera node.
    pub(crate) fn status(&self, index: usize, name: &str) -> Option<String> {
        self.ask(
            index,
            &format!(
                "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '{name}'"
            ),
        )
    }

    /// True where a member answers and belongs to the cluster.
    pub(crate) fn serves(&self, index: usize) -> bool {
        let state = self.state(index);
        match self.form {
            Form::Galera => {
                state.as_deref() == Some("Synced")
                    && self.status(index, "wsrep_ready").as_deref() == Some("ON")
            }
            _ => state.as_deref() == Some("ONLINE"),
        }
    }

    /// How many reachable members a member sees, itself included.
    pub(crate) fn members_seen_by(&self, index: usize) -> usize {
        let seen = match self.form {
            Form::Galera => self.status(index, "wsrep_cluster_size"),
            _ => self.ask(
                index,
                "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'",
            ),
        };
        seen.and_then(|seen| seen.parse().ok()).unwrap_or(0)
    }

    /// Waits until a member sees that many members.
    #[track_caller]
    pub(crate) fn wait_for_members(&self, index: usize, count: usize) {
        self.wait(index, &format!("{count} members"), || {
            self.members_seen_by(index) == count
        });
    }

    #[track_caller]
    pub(crate) fn wait_until_it_serves(&self, index: usize) {
        self.wait(index, "to be of the cluster", || self.serves(index));
    }

    /// Waits for a condition. Panics with the end of the member's log where it does not come true in time.
    #[track_caller]
    pub(crate) fn wait(&self, index: usize, what: &str, is_so: impl FnMut() -> bool) {
        self.wait_within(PATIENCE, index, what, is_so);
    }

    /// [`Cluster::wait`] with a time limit.
    #[track_caller]
    pub(crate) fn wait_within(
        &self,
        limit: Duration,
        index: usize,
        what: &str,
        mut is_so: impl FnMut() -> bool,
    ) {
        let deadline = Instant::now() + limit;
        while !is_so() {
            assert!(
                Instant::now() < deadline,
                "member {index} waits for {what} in vain, and is {:?}:\n{}\nits scripts wrote:\n{}",
                self.state(index),
                self.log(index),
                script_log_lines(&self.members[index].log())
            );
            thread::sleep(POLL);
        }
    }

    /// Sets how many seconds the members of a group wait for a silent member before they expel it.
    #[track_caller]
    pub(crate) fn wait_for_silent(&self, seconds: u32) {
        let text = format!("SET GLOBAL group_replication_member_expel_timeout = {seconds}");
        for index in 0..MEMBERS {
            self.connect(index).ok(&text);
        }
    }

    /// The writable member, as reported by any member that answers; with Galera, and in multi-primary mode, the first that serves.
    pub(crate) fn primary(&self) -> Option<usize> {
        let asked = "SELECT MEMBER_PORT FROM performance_schema.replication_group_members \
                     WHERE MEMBER_ROLE = 'PRIMARY' AND MEMBER_STATE = 'ONLINE' ORDER BY MEMBER_PORT LIMIT 1";
        let serving = |index: &usize| self.serves(*index);
        let mut serving = (0..MEMBERS).filter(serving);
        if self.form != Form::SinglePrimary {
            return serving.next();
        }
        serving.find_map(|index| {
            let port = self.ask(index, asked)?;
            (0..MEMBERS).find(|member| self.members[*member].port().to_string() == port)
        })
    }

    /// Waits until a Galera node has detected that it lost the others, and has left the primary component.
    #[track_caller]
    pub(crate) fn wait_until_it_is_alone(&self, index: usize) {
        self.wait(index, "being alone", || {
            self.status(index, "wsrep_ready").as_deref() == Some("OFF")
        });
    }

    /// Waits until another member is the primary.
    #[track_caller]
    pub(crate) fn wait_for_another_primary(&self, than: usize) -> usize {
        let any = (than + 1) % MEMBERS;
        let other = || self.primary().filter(|primary| *primary != than);
        self.wait(any, "another primary", || other().is_some());
        other().unwrap()
    }

    /// Makes this member the primary by a planned switch (Group Replication only).
    #[track_caller]
    pub(crate) fn set_as_primary(&self, index: usize) {
        let mut root = self.connect(index);
        let own = root.column("SELECT @@server_uuid");
        root.column(&format!(
            "SELECT group_replication_set_as_primary('{}')",
            own[0]
        ));
        self.wait(index, "being primary", || self.primary() == Some(index));
    }

    /// Kills a member, as a crash would.
    pub(crate) fn kill(&mut self, index: usize) {
        self.members[index].kill();
        self.held[index] = false;
    }

    /// Shuts a member down cleanly: it leaves the cluster.
    pub(crate) fn shut_down(&mut self, index: usize) {
        self.go_on(index);
        self.members[index].stop();
    }

    /// Pauses a member's process: it is silent, as behind a network partition.
    pub(crate) fn hold(&mut self, index: usize) {
        self.signal(index, Signal::SIGSTOP);
        self.held[index] = true;
    }

    /// Resumes a paused member.
    pub(crate) fn go_on(&mut self, index: usize) {
        if std::mem::take(&mut self.held[index]) {
            self.signal(index, Signal::SIGCONT);
        }
    }

    fn signal(&self, index: usize, signal: Signal) {
        if let Some(pid) = self.members[index].pid() {
            signal::kill(Pid::from_raw(pid as i32), signal).unwrap();
        }
    }

    /// Restarts a killed or stopped member on its data, and has it join the others. Does not wait until it serves.
    #[track_caller]
    pub(crate) fn restart(&mut self, index: usize) {
        let others: Vec<usize> = (0..MEMBERS).filter(|other| *other != index).collect();
        let options = self.options(index, &others);
        self.start_with(index, &options);
        self.join(index, false);
    }

    /// Bootstraps the cluster from a member after all have stopped.
    #[track_caller]
    pub(crate) fn bootstrap(&mut self, index: usize) {
        if self.form == Form::Galera {
            // Galera may not know which node stopped last. The test vouches that this one is safe.
            let state = self.members[index].data().join("grastate.dat");
            let text = std::fs::read_to_string(&state).unwrap_or_default();
            let text = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
            std::fs::write(&state, text).unwrap();
        }
        let options = self.options(index, &[]);
        self.start_with(index, &options);
        self.join(index, true);
    }

    /// Starts a member's server by itself, outside any cluster.
    #[track_caller]
    fn start_with(&mut self, index: usize, options: &[String]) {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.members[index].set_options(&options);
        if let Err(error) = self.members[index].restart() {
            panic!("{}", self.explained(error));
        }
    }

    /// Bootstraps the group from a running member after all have left it.
    #[track_caller]
    pub(crate) fn begin_again(&self, index: usize) {
        self.connect(index).query("STOP GROUP_REPLICATION");
        self.join(index, true);
        self.wait_until_it_serves(index);
    }

    /// Has a running member that was expelled, or left, join again. The attempt fails while the others still list it.
    #[track_caller]
    pub(crate) fn rejoin(&self, index: usize) {
        let mut root = self.connect(index);
        root.query("STOP GROUP_REPLICATION");
        root.query("START GROUP_REPLICATION");
    }
}

impl Drop for Cluster {
    /// Kills all members at once: a member that shuts down cleanly may wait for one that is already gone.
    fn drop(&mut self) {
        for member in &mut self.members {
            member.kill();
        }
    }
}
