//! Errors in the settings.

use headwater_proxy::limits::LimitFault;
use std::path::PathBuf;

use headwater_timeline::definition::DefinitionError;

/// An error in the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `memory.limit` is too small; the value is in bytes.
    #[error(
        "memory.limit = {value} (--memory-limit, HEADWATER_MEMORY_LIMIT) is too little: it is in bytes, and has to be {least} or more, or 0 for \
         the lesser of 1 GiB and a quarter of the machine's memory"
    )]
    MemoryLimit {
        /// The value set.
        value: usize,
        /// The least value allowed.
        least: usize,
    },
    /// The file cannot be read.
    #[error("cannot read the settings file {path} (--config names it)")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key or a wrong type.
    #[error("{path}, line {line}, {setting}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key on it, with its section as prefix.
        setting: String,
        /// What is wrong.
        message: String,
    },
    /// A definition is not usable.
    #[error("definition {name:?}: {reason}")]
    Definition {
        /// Its name.
        name: String,
        /// Why.
        reason: DefinitionError,
    },
    /// A feed is not usable.
    #[error("feed {name:?}: {reason}")]
    Feed {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A secret's file cannot be read.
    #[error("cannot read {path} (--{flag})")]
    Secret {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A secret's file has more than one line.
    #[error("{path} (--{flag}) has several lines: it has to hold the secret alone, on one line")]
    SecretOfLines {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The admin port would be open to anyone.
    #[error("{0}")]
    Admin(&'static str),
    /// `feeds.auto = "on"` without what it requires.
    #[error("feeds.auto = \"on\" needs {0}: set it, or leave feeds.auto at \"suggest\"")]
    AutoWithout(&'static str),
    /// A feed without what it requires.
    #[error("[[feed]] needs {0}: set it, or leave the feed out")]
    FeedWithout(&'static str),
    /// Too little memory for cached rows.
    #[error(
        "rows.memory_bytes = {bytes} is too little for rows: set {least} or more, or 0 to keep none"
    )]
    RowsBytes {
        /// The setting.
        bytes: usize,
        /// The least.
        least: usize,
    },
    /// `rows.tables` names a table that no feed and no definition uses.
    #[error(
        "rows.tables names {0:?}, which is the table of messages of no [[feed]] and of no [[definition]]: write it as their message.table \
         has it, with its database in front or not, or leave it out"
    )]
    RowsTable(String),
    /// Contradictory TLS settings.
    #[error("{setting} {problem}")]
    Tls {
        /// The setting.
        setting: &'static str,
        /// What is wrong, and how to fix it.
        problem: &'static str,
    },
    /// Compression settings that differ between the two legs, although TLS passthrough leaves sessions unread.
    #[error(
        "{setting} is of no use with tls.passthrough = true, which leaves logins to client and server: set it to \"mirror\", or \
         tls.passthrough = false"
    )]
    CompressionPassedThrough {
        /// The setting.
        setting: &'static str,
    },
    /// An environment variable that is a misspelt setting.
    #[error(
        "the environment variable {variable} is no setting: the setting is called {nearest}; rename the variable, or unset it"
    )]
    Variable {
        /// The variable that is set.
        variable: String,
        /// The setting with the nearest name.
        nearest: String,
    },
    /// `--only` names no definition and no feed.
    #[error("--only {name:?}: no [[definition]] and no [[feed]] is called so")]
    NoSuch {
        /// The name given.
        name: String,
    },
    /// `--takeover` without a socket to ask on.
    #[error(
        "--takeover (HEADWATER_TAKEOVER) needs the socket where the Headwater that runs is asked: set takeover.socket (--takeover-socket, \
         HEADWATER_TAKEOVER_SOCKET) for both, such as /run/headwater/takeover.sock"
    )]
    TakeoverWithoutSocket,
    /// A password without a user.
    #[error(
        "a service password is set without a user: set --service-user (HEADWATER_SERVICE_USER, service.user) too"
    )]
    PasswordWithoutUser,
    /// `shadow.rate` is not between 0 and 1.
    #[error("shadow.rate = {0} (--shadow, HEADWATER_SHADOW) is no share: from 0 (none) to 1 (all)")]
    ShadowRate(f64),
    /// `shadow.rate` without what it requires.
    #[error(
        "shadow.rate (--shadow, HEADWATER_SHADOW) needs {0}: answers are compared on its connection, beside the server's log"
    )]
    ShadowWithout(&'static str),
    /// An address without a port.
    #[error("{setting} = {value:?} is not an address: write HOST:PORT, such as 127.0.0.1:3306")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
    },
    /// No server, or more servers than a list may have.
    #[error(
        "upstream (--upstream, HEADWATER_UPSTREAM) names {0} servers: name one, or up to {most} of which one is the primary",
        most = super::MOST_SERVERS
    )]
    Servers(usize),
    /// A server that is named twice.
    #[error("upstream (--upstream, HEADWATER_UPSTREAM) names {0} twice: name each server once")]
    SameServer(String),
    /// A socket path beside other servers.
    #[error(
        "upstream (--upstream, HEADWATER_UPSTREAM) names the socket {0} beside other servers: a socket goes alone; write HOST:PORT for each \
         of several servers"
    )]
    SocketAmongServers(String),
    /// Several servers, and no account to ask which one is the primary.
    #[error(
        "upstream (--upstream, HEADWATER_UPSTREAM) names several servers, and which of them is the primary is asked by the service account: \
         set service.user and service.password (--service-user, --service-password), or name one server"
    )]
    ServersWithoutAccount,
    /// A `failover` time outside its bounds.
    #[error("{setting} = {value} is not between {least} and {most} milliseconds")]
    Failover {
        /// The key.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Too many `[[listener]]` sections.
    #[error(
        "there are {count} sections [[listener]]: at most {most} ports can be opened beside listen"
    )]
    Listeners {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A port that is opened twice.
    #[error(
        "listener.listen = {0:?} is the address of another port of Headwater's: give each its own"
    )]
    SamePort(String),
    /// A port for replicas where the settings name one server only.
    #[error(
        "[[listener]] with listen = {listen:?} has role = {role:?}, and upstream (--upstream, HEADWATER_UPSTREAM) names one server, which is \
         the primary: name its replicas there too, or leave the role out"
    )]
    ListenerRole {
        /// Its address.
        listen: String,
        /// Its role.
        role: &'static str,
    },
    /// A timeline whose calls could never be served.
    #[error(
        "definition {name}: n = {n} leaves up to {ids} ids, more than limits.pending_ids = {most}: raise that"
    )]
    PendingIds {
        /// Its name.
        name: String,
        /// Its n.
        n: u32,
        /// n times n.
        ids: usize,
        /// The limit.
        most: usize,
    },
    /// A limit out of its bounds.
    #[error(transparent)]
    Limit(#[from] LimitFault),
}
