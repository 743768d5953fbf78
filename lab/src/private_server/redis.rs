//! A private Redis for timelines: a process on its own port that keeps all data in memory and saves nothing.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::folder::ServerFolder;
use super::package_folder::PackageFolder;
use super::watchdog::Watchdog;
use super::{POLL_INTERVAL, PrivateServerError, free_port, last_lines};

const PROGRAM: &str = "usr/bin/redis-server";
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running Redis. It ends, with its data, when this value is dropped or this process dies.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
    watchdog: Watchdog,
    folder: ServerFolder,
}

impl RedisServer {
    /// Starts Redis and waits until it answers.
    ///
    /// # Errors
    /// [`PrivateServerError::Missing`] if it is not on this machine.
    pub fn start() -> Result<RedisServer, PrivateServerError> {
        let unpacked = PackageFolder::at("HEADWATER_REDIS_PREFIX", "redis-7.0");
        if !unpacked.has(PROGRAM) {
            return Err(PrivateServerError::Missing {
                what: "Redis 7.0 (setup/redis.sh)".to_owned(),
            });
        }
        let folder = ServerFolder::create("redis")?;
        let mut watchdog = Watchdog::start(folder.path())
            .map_err(PrivateServerError::io("start the watchdog of Redis"))?;
        let port = free_port().map_err(PrivateServerError::io("find a free port"))?;
        let log =
            File::create(folder.log()).map_err(PrivateServerError::io("create Redis' log"))?;
        let config = folder.path().join("redis.conf");
        // A process title would hide the path by which the watchdog recognizes the process.
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsave \"\"\nappendonly no\nset-proc-title no\ndir {}\n",
            folder.path().display()
        );
        std::fs::write(&config, text).map_err(PrivateServerError::io("write Redis' settings"))?;
        let process = unpacked
            .command(PROGRAM)
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .map_err(PrivateServerError::io("start Redis"))?;
        watchdog.set_server(Some(process.id()));
        let mut server = RedisServer {
            process,
            port,
            watchdog,
            folder,
        };
        let until = Instant::now() + START_TIMEOUT;
        while !server.is_ready() {
            let ended = !matches!(server.process.try_wait(), Ok(None));
            if ended || Instant::now() > until {
                let log = last_lines(&server.folder.log());
                let source = io::Error::other(format!("the last lines it wrote:\n{log}"));
                return Err(PrivateServerError::io("start Redis")(source));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(server)
    }

    /// The address that it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub fn connect(&self) -> redis::RedisResult<redis::Connection> {
        redis::Client::open(format!("redis://{}/", self.addr()))?.get_connection()
    }

    fn is_ready(&self) -> bool {
        self.connect()
            .and_then(|mut redis| redis::cmd("PING").query::<String>(&mut redis))
            .is_ok()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.watchdog.set_server(None);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_and_removes_its_folder() {
        let server = match RedisServer::start() {
            Ok(server) => server,
            // `headwater bench strategies` reports what is missing.
            Err(PrivateServerError::Missing { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        let folder = server.folder.path().to_owned();
        let mut redis = server.connect().unwrap();
        redis::cmd("SET").arg("a").arg(1).exec(&mut redis).unwrap();
        drop(server);
        assert!(!folder.exists(), "{} is left", folder.display());
        assert!(redis::cmd("PING").exec(&mut redis).is_err());
    }
}
