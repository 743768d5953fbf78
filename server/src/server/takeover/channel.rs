//! Lines and file descriptors between two processes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::config::MOST_LISTENERS;
use crate::sockets::{ADDITIONAL_PORT, ADMIN, CLIENTS, InheritedSockets, ListeningSocket};

/// The first line of the new process.
pub(super) const HELLO: &str = "headwater takeover 1";
pub(super) const GO: &str = "go";
pub(super) const SOCKETS: &str = "sockets";
pub(super) const REFUSED: &str = "refused ";
/// The name of the clients' Unix socket.
pub(super) const LOCAL_SOCKET: &str = "mysql-socket";
/// The same, if a service manager owns its file.
pub(super) const EXTERNAL_LOCAL_SOCKET: &str = "mysql-socket-kept";
/// The name of the control socket, on which this protocol runs.
pub(super) const CONTROL_SOCKET: &str = "takeover";
/// A port and further ones, a Unix socket, the admin port, and the control socket.
const MAX_DESCRIPTORS: usize = 4 + MOST_LISTENERS;
/// Longest line.
const LINE_BYTES: usize = 512;
/// Time in which the other process has to answer.
pub(super) const ANSWERS: Duration = Duration::from_secs(10);
/// Delay after `accept` fails for want of file descriptors.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Sends the hello; returns the other side's answer and its descriptors.
pub(super) async fn request(
    mut stream: UnixStream,
) -> io::Result<(String, Vec<OwnedFd>, UnixStream)> {
    // The other side may have refused without reading.
    let _ = stream.write_all(format!("{HELLO}\n").as_bytes()).await;
    let (mut line, mut sockets) = (Vec::new(), Vec::new());
    while !line.ends_with(b"\n") && line.len() < LINE_BYTES {
        stream.readable().await?;
        let received = stream.try_io(Interest::READABLE, || receive(&stream, &mut sockets));
        match received {
            Ok(bytes) if bytes.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => line.extend_from_slice(&bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    Ok((line, sockets, stream))
}

fn receive(stream: &UnixStream, sockets: &mut Vec<OwnedFd>) -> io::Result<Vec<u8>> {
    let mut bytes = [0; LINE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(stream, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            sockets.extend(descriptors);
        }
    }
    Ok(bytes.get(..received.bytes).unwrap_or_default().to_vec())
}

pub(super) fn send(stream: &UnixStream, line: &str, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::other("too many sockets"));
    }
    let bytes = [IoSlice::new(line.as_bytes())];
    let sent = sendmsg(stream, &bytes, &mut control, SendFlags::NOSIGNAL)?;
    match sent == line.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Assigns descriptors to their names: clients' and admin sockets, and the control socket. `None`: names and descriptors do not match.
pub(super) fn sort_descriptors(
    line: &str,
    descriptors: Vec<OwnedFd>,
) -> Option<(InheritedSockets, UnixListener)> {
    let names = line.strip_prefix(SOCKETS)?.split_whitespace();
    let mut control = None;
    let mut sockets = InheritedSockets {
        in_use: true,
        ..InheritedSockets::default()
    };
    if names.clone().count() != descriptors.len() {
        return None;
    }
    for (name, descriptor) in names.zip(descriptors) {
        let listening = match name {
            CLIENTS | ADDITIONAL_PORT | ADMIN => ListeningSocket::Tcp(descriptor.into()),
            LOCAL_SOCKET | EXTERNAL_LOCAL_SOCKET | CONTROL_SOCKET => {
                ListeningSocket::Unix(descriptor.into())
            }
            // From a later version.
            _ => continue,
        };
        if !listening.is_listening() {
            return None;
        }
        match (name, listening) {
            (CLIENTS, ListeningSocket::Tcp(port)) => sockets.port = Some(port),
            (ADDITIONAL_PORT, ListeningSocket::Tcp(port)) => sockets.additional_ports.push(port),
            (ADMIN, ListeningSocket::Tcp(port)) => sockets.admin = Some(port),
            (LOCAL_SOCKET | EXTERNAL_LOCAL_SOCKET, ListeningSocket::Unix(local)) => {
                sockets.local = Some(local);
                sockets.file_is_external = name == EXTERNAL_LOCAL_SOCKET;
            }
            (CONTROL_SOCKET, ListeningSocket::Unix(socket)) => control = Some(socket),
            _ => return None,
        }
    }
    Some((sockets, control?))
}

pub(super) async fn refuse(stream: &mut UnixStream, reason: &str) {
    let refusal = format!("{REFUSED}{reason}\n");
    // Do not wait for a peer that neither writes nor reads.
    let refusing = async {
        let _ = read_line(stream).await;
        let _ = stream.write_all(refusal.as_bytes()).await;
    };
    let _ = tokio::time::timeout(RETRY_DELAY, refusing).await;
}

/// Reads a line, without its end. `None`: end of stream.
pub(super) async fn read_line(stream: &mut UnixStream) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    while line.len() < LINE_BYTES {
        match stream.read_u8().await {
            Ok(b'\n') => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn descriptors_are_taken_by_their_names_where_each_is_what_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let mut number = 0;
        let mut unix = || {
            number += 1;
            let path = folder.path().join(number.to_string());
            OwnedFd::from(UnixListener::bind(path).unwrap())
        };
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        let (sockets, _) = sort_descriptors(
            "sockets takeover mysql listener listener mysql-socket-kept admin",
            vec![unix(), tcp(), tcp(), tcp(), unix(), tcp()],
        )
        .unwrap();
        assert_eq!(sockets.additional_ports.len(), 2);
        assert!(sockets.port.is_some() && sockets.admin.is_some());
        assert!(sockets.local.is_some() && sockets.file_is_external && sockets.in_use);
        // A later version may have more.
        let more = vec![tcp(), unix()];
        let (sockets, _) = sort_descriptors("sockets another takeover", more).unwrap();
        assert!(sockets.port.is_none());
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        for (line, descriptors) in [
            ("sockets mysql", vec![tcp()]),
            ("sockets takeover mysql", vec![unix()]),
            ("sockets takeover", vec![OwnedFd::from(one)]),
            ("hello", vec![unix()]),
        ] {
            assert!(sort_descriptors(line, descriptors).is_none(), "{line}");
        }
    }
}
