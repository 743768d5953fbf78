//! A machine that others work with too: its programs, files of options, variables and ports are theirs. A story is told there by a process
//! of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What servers, clients and scripts of all kinds obey where they are not kept from it.
const VARIABLES: &[(&str, &str)] = &[
    ("MYSQL_PWD", "theirs"),
    ("MYSQL_HOST", "192.0.2.1"),
    ("MYSQL_TCP_PORT", "1"),
    ("MYSQL_UNIX_PORT", "/dev/null/theirs"),
    ("MYSQL_GROUP_SUFFIX", "_theirs"),
    ("MARIADB_TLS_DISABLE_PEER_VERIFICATION", "1"),
    ("WSREP_SST_OPT_AUTH", "theirs:theirs"),
    ("INNODB_DATA_HOME_DIR", "/dev/null/theirs"),
    ("INNODB_LOG_GROUP_HOME", "/dev/null/theirs"),
    ("HEADWATER_UPSTREAM", "192.0.2.1:1"),
    ("HEADWATER_CONFIG", "/dev/null/theirs"),
    ("HEADWATER_LOG_FORMAT", "json"),
    ("TZ", "America/St_Johns"),
];
/// Of a user who has passwords in files.
const OPTIONS: &str = "[client]\npassword = theirs\nhost = 192.0.2.1\nport = 1\n[mysqld]\nport = 1\ndatadir = /dev/null\n\
                       [sst]\nencrypt = 4\n";
/// Where services usually listen: MySQL, its X protocol, Galera's three, Redis, the web, Headwater and its admin port.
const PORTS: &[u16] = &[3306, 33060, 4444, 4567, 4568, 6379, 8080, 3307, 9307];

/// The machine, until it is dropped.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    variables: Vec<(String, PathBuf)>,
    _services: Vec<TcpListener>,
}

impl Machine {
    /// With its programs that print who they are, and fail.
    pub(crate) fn of_others(programs: &[&str]) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".my.cnf"), OPTIONS).unwrap();
        std::fs::write(home.join("my.cnf"), OPTIONS).unwrap();
        // What can be made again is not.
        if let Some(own) = std::env::var_os("HOME") {
            symlink(Path::new(&own).join(".cache"), home.join(".cache")).unwrap();
        }
        let listen = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).ok();
        let machine = Machine {
            variables: vec![
                ("HOME".to_owned(), home.clone()),
                ("MYSQL_HOME".to_owned(), home.clone()),
                ("MARIADB_HOME".to_owned(), home),
            ],
            _services: PORTS.iter().filter_map(listen).collect(),
            folder,
        };
        for program in programs {
            write_program(&machine.folder.path().join("bin").join(program), "theirs");
        }
        machine
    }

    /// With this variable as well.
    pub(crate) fn with(mut self, name: &str, path: &Path) -> Machine {
        self.variables.push((name.to_owned(), path.to_owned()));
        self
    }

    /// Tells a story of this program there, by its whole name.
    pub(crate) fn tells(&self, story: &str) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.folder.path().join("bin");
        let folders = [own].into_iter().chain(std::env::split_paths(&path));
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", story, "--nocapture", "--test-threads", "1"])
            .envs(VARIABLES.iter().copied())
            .envs(self.variables.iter().map(|(name, path)| (name, path)))
            .env("PATH", std::env::join_paths(folders).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// A program that prints this to its standard error, and fails.
pub(crate) fn write_program(path: &Path, says: &str) {
    std::fs::write(path, format!("#!/bin/sh\necho {says} >&2\nexit 255\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a process said, on either of its outputs; where one story was told.
#[track_caller]
pub(crate) fn said(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = both.join("\n");
    assert!(said.contains("running 1 test"), "no such story: {said}");
    said
}
