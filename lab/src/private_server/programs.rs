//! The paths of the servers' programs, and the command lines that initialise and start a server.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::Uid;

use super::folder::ServerFolder;
use super::package_folder::PackageFolder;
use super::{PrivateServerError, ServerKind};

/// The folder of MariaDB 11.8 with messages, character sets, and the scripts for a data folder.
const SHARED_11: &str = "usr/share/mariadb";
/// The steps of mariadb-install-db, with the loader of the package folder. Arguments: data folder, scripts' folder, server command line.
/// Creates no account for the machine's name.
const BOOTSTRAP: &str = r#"
    set -e
    data=$1 scripts=$2
    shift 2
    mkdir -p "$data"
    {
        printf 'CREATE DATABASE mysql;\nUSE mysql;\n'
        cat "$scripts/mariadb_system_tables.sql" "$scripts/mariadb_performance_tables.sql"
        sed '/@current_hostname/d' "$scripts/mariadb_system_tables_data.sql"
    } | "$@" --bootstrap --datadir="$data" --skip-name-resolve
"#;

/// Prefixes of environment variables that affect servers, clients and the scripts of state transfers.
const ENVIRONMENT_PREFIXES: &[&str] = &["MYSQL", "MARIADB", "LIBMYSQL", "WSREP", "INNODB"];
const EMPTY_FILE: &str = "/dev/null";
const NO_FILE: &str = "/dev/null/none";

/// The programs of one product on this machine.
#[derive(Debug)]
pub(super) struct ServerPrograms {
    kind: ServerKind,
    layout: ProgramLayout,
    version: String,
}

#[derive(Debug)]
enum ProgramLayout {
    Mariadb {
        server: PathBuf,
        install_db: PathBuf,
    },
    /// Unpacked by setup/mariadb11.sh.
    Mariadb11(PackageFolder),
    /// Unpacked by setup/mysql.sh.
    Mysql(PackageFolder),
}

impl ServerPrograms {
    pub(super) fn find(kind: ServerKind) -> Result<ServerPrograms, PrivateServerError> {
        let layout = match kind {
            ServerKind::Mariadb => ProgramLayout::Mariadb {
                server: in_path("mariadbd")?,
                install_db: in_path("mariadb-install-db")?,
            },
            ServerKind::Mysql => {
                let folder = PackageFolder::at("HEADWATER_MYSQL_PREFIX", "mysql-9.7");
                ProgramLayout::Mysql(require_program(folder, "usr/sbin/mysqld", "MySQL 9.7")?)
            }
        };
        ServerPrograms::with_layout(kind, layout)
    }

    /// The programs of MariaDB 11.8, whatever release the distribution has.
    pub(super) fn mariadb11() -> Result<ServerPrograms, PrivateServerError> {
        let folder = PackageFolder::at("HEADWATER_MARIADB11_PREFIX", "mariadb-11.8");
        let folder = require_program(folder, "usr/sbin/mariadbd", "MariaDB 11.8")?;
        ServerPrograms::with_layout(ServerKind::Mariadb, ProgramLayout::Mariadb11(folder))
    }

    fn with_layout(
        kind: ServerKind,
        layout: ProgramLayout,
    ) -> Result<ServerPrograms, PrivateServerError> {
        let mut programs = ServerPrograms {
            kind,
            layout,
            version: String::new(),
        };
        programs.version = programs.ask_version()?;
        Ok(programs)
    }

    pub(super) fn kind(&self) -> ServerKind {
        self.kind
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The command that runs a server on `folder`, in its own process group, so that Ctrl-C in the terminal reaches this process first.
    ///
    /// Only with `resolves` are clients' names resolved: MySQL (9.7) obeys the first `--skip-name-resolve` whatever follows, though
    /// `@@skip_name_resolve` says otherwise, and counts no errors by host then.
    pub(super) fn server(&self, folder: &ServerFolder, port: u16, resolves: bool) -> Command {
        let mut command = self.bare_server();
        command
            .process_group(0)
            .arg(option("--datadir", &folder.data()))
            .arg(option("--socket", &folder.socket()))
            .arg(option("--pid-file", &folder.pid_file()))
            // A MariaDB that starts removes other servers' temporary tables from a shared folder, and they crash.
            .arg(option("--tmpdir", folder.path()))
            .arg(format!("--port={port}"))
            .args([
                "--bind-address=127.0.0.1",
                "--local-infile=1",
                "--secure-file-priv=",
                "--max-connections=500",
                // The data is temporary: no write has to reach the disk.
                "--innodb-flush-log-at-trx-commit=0",
                "--sync-binlog=0",
                "--log-bin=binlog",
                "--binlog-format=ROW",
            ]);
        if !resolves {
            command.arg("--skip-name-resolve");
        }
        match self.kind {
            ServerKind::Mariadb => {
                command.arg("--server-id=1");
            }
            ServerKind::Mysql => {
                command.args([
                    "--mysqlx=0",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                    "--log-bin-trust-function-creators=1",
                    // There are no events, but the scheduler's thread (9.7) may use a whole processor.
                    "--event-scheduler=OFF",
                ]);
            }
        }
        command
    }

    /// The command that creates an empty data folder with `root`, password empty, at 127.0.0.1. `accounts` is a file with
    /// [`ServerPrograms::first_statements`] that the command may read.
    pub(super) fn initialise(&self, data: &Path, accounts: &Path) -> Command {
        match &self.layout {
            ProgramLayout::Mariadb { install_db, .. } => {
                let mut command = Command::new(install_db);
                command.arg("--no-defaults").args(user_option());
                command
                    .arg(option("--datadir", data))
                    .arg("--auth-root-authentication-method=normal")
                    // As root, it would change the owner of the installed service's plugin folder to root, and lock that service out.
                    .arg("--rpm")
                    // Its anonymous accounts would take precedence over named accounts at any host.
                    .args(["--skip-test-db", "--skip-name-resolve"]);
                clear_environment(&mut command);
                command
            }
            ProgramLayout::Mariadb11(folder) => {
                let server = self.bare_server();
                let mut command = Command::new("sh");
                command
                    .args(["-c", BOOTSTRAP, "bootstrap"])
                    .arg(data)
                    .arg(folder.prefix().join(SHARED_11))
                    .arg(server.get_program())
                    .args(server.get_args());
                command
            }
            ProgramLayout::Mysql(_) => {
                let mut command = self.bare_server();
                command
                    .arg("--initialize-insecure")
                    .arg(option("--datadir", data))
                    .arg(option("--init-file", accounts));
                command
            }
        }
    }

    /// MySQL creates `root@localhost` only, which is reached by socket when names are not resolved.
    pub(super) fn first_statements(&self) -> &'static str {
        "CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '';\n\
         GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
    }

    /// The product's client, without option files.
    pub(super) fn client(&self) -> Command {
        let mut command = match &self.layout {
            ProgramLayout::Mariadb { .. } => Command::new("mariadb"),
            ProgramLayout::Mariadb11(folder) => folder.command("usr/bin/mariadb"),
            ProgramLayout::Mysql(folder) => folder.command("usr/bin/mysql"),
        };
        command.arg("--no-defaults");
        clear_environment(&mut command);
        // MySQL's client reads this one file in any case.
        command.env("MYSQL_TEST_LOGIN_FILE", NO_FILE);
        if let ProgramLayout::Mariadb11(folder) = &self.layout {
            command.arg(option(
                "--plugin-dir",
                &folder.libraries().join("libmariadb3/plugin"),
            ));
        }
        command
    }

    fn bare_server(&self) -> Command {
        let mut command = match &self.layout {
            ProgramLayout::Mariadb { server, .. } => {
                let mut command = Command::new(server);
                // State transfers of a Galera node use the server's defaults file, if it has one, and no other options.
                command.arg(option("--defaults-file", Path::new(EMPTY_FILE)));
                // The search path of the state transfer scripts.
                if let Some(path) = galera().search_path() {
                    command.env("PATH", path);
                }
                command
            }
            ProgramLayout::Mariadb11(folder) => {
                let prefix = folder.prefix();
                let shared = prefix.join(SHARED_11);
                let mut command = folder.command("usr/sbin/mariadbd");
                command
                    .arg("--no-defaults")
                    .arg(option("--basedir", &prefix.join("usr")))
                    .arg(option("--lc-messages-dir", &shared))
                    .arg(option("--character-sets-dir", &shared.join("charsets")))
                    .arg(option("--plugin-dir", &prefix.join("usr/lib/mysql/plugin")));
                command
            }
            ProgramLayout::Mysql(folder) => {
                let prefix = folder.prefix();
                let mut command = folder.command("usr/sbin/mysqld");
                command
                    .arg("--no-defaults")
                    .arg(option("--basedir", &prefix.join("usr")))
                    .arg(option("--lc-messages-dir", &prefix.join("usr/share/mysql")))
                    .arg(option("--plugin-dir", &prefix.join("usr/lib/mysql/plugin")));
                command
            }
        };
        command.args(user_option());
        clear_environment(&mut command);
        command
    }

    /// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`.
    fn ask_version(&self) -> Result<String, PrivateServerError> {
        let output = self
            .bare_server()
            .arg("--version")
            .output()
            .map_err(PrivateServerError::io(format!("run {:?}", self.kind)))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut words = text.split_whitespace().skip_while(|&word| word != "Ver");
        match words.nth(1) {
            Some(version) => Ok(version.to_owned()),
            None => Err(PrivateServerError::Missing {
                what: format!("a {:?} server that states its version", self.kind),
            }),
        }
    }
}

/// The Galera package, unpacked by setup/galera.sh.
pub(super) fn galera() -> PackageFolder {
    PackageFolder::at("HEADWATER_GALERA_PREFIX", "galera-4")
}

/// The library for `--wsrep-provider`.
pub(super) fn galera_provider() -> Result<PathBuf, PrivateServerError> {
    let library = galera().prefix().join("usr/lib/galera/libgalera_smm.so");
    let what = || format!("Galera in {}", library.display());
    match library.is_file() && in_path("rsync").is_ok() {
        true => Ok(library),
        false => Err(PrivateServerError::Missing { what: what() }),
    }
}

/// The folder, if it has the program.
fn require_program(
    folder: PackageFolder,
    program: &str,
    product: &str,
) -> Result<PackageFolder, PrivateServerError> {
    if folder.has(program) {
        return Ok(folder);
    }
    let what = format!("{product} in {}", folder.prefix().display());
    Err(PrivateServerError::Missing { what })
}

/// Removes environment variables that affect servers, clients and scripts in addition to options: an account's password, a host, data
/// paths, the time zone, the language of the system's messages.
fn clear_environment(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ENVIRONMENT_PREFIXES
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
}

/// Servers refuse to run as root without this option.
fn user_option() -> Option<&'static str> {
    Uid::effective().is_root().then_some("--user=root")
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(value);
    option
}

/// Searches `PATH` and the folders where distributions install servers, which are often not in a user's `PATH`.
fn in_path(program: &str) -> Result<PathBuf, PrivateServerError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| PrivateServerError::Missing {
            what: format!("MariaDB (`{program}`)"),
        })
}
