//! A plain HTTP client for the admin port.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::kit::patience;
use crate::kit::proxy::{Proxy, free_addr};

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The admin port of a Headwater process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admin(pub(crate) SocketAddr);

impl Admin {
    /// Starts a Headwater with an admin port, these flags and this settings file.
    #[track_caller]
    pub(crate) fn beside(upstream: SocketAddr, settings: &str, flags: &[&str]) -> (Proxy, Admin) {
        let admin = free_addr();
        let listen = admin.to_string();
        let proxy = Proxy::configured(
            upstream,
            settings,
            &[&["--admin-listen", &listen], flags].concat(),
        );
        // The admin port opens after the client port.
        let deadline = patience();
        while TcpStream::connect(admin).is_err() {
            assert!(Instant::now() < deadline, "{}", proxy.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        (proxy, Admin(admin))
    }

    #[track_caller]
    pub(crate) fn get(self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// GET with extra header lines.
    #[track_caller]
    pub(crate) fn get_with(self, path: &str, lines: &str) -> Answer {
        let host = if lines.contains("Host:") {
            ""
        } else {
            "Host: localhost\r\n"
        };
        let request = format!("GET {path} HTTP/1.1\r\n{host}{lines}Connection: close\r\n\r\n");
        self.send(request.as_bytes()).unwrap()
    }

    /// POST with extra header lines.
    #[track_caller]
    pub(crate) fn post(self, path: &str, lines: &str) -> Answer {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        self.send(request.as_bytes()).unwrap()
    }

    /// Sends these bytes and reads to the end.
    pub(crate) fn send(self, request: &[u8]) -> io::Result<Answer> {
        let mut socket = TcpStream::connect(self.0)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        socket.write_all(request)?;
        let mut reply = Vec::new();
        socket.read_to_end(&mut reply)?;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok(Answer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Repeats the request until the response has this status and its text begins so.
    #[track_caller]
    pub(crate) fn wait_for(self, path: &str, status: u16, text: &str) {
        let deadline = patience();
        loop {
            let answer = self.get(path);
            if answer.status == status && answer.body.starts_with(text) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{path}: {answer:?}, and not {status} {text}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
