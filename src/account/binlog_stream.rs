//! A connection that is sent the server's log, event by event, as a replica is.

use super::connection::{AccountConnection, LOGIN_PACKET_BYTES, read_packet};
use super::connection_permits::ConnectionPermit;
use super::error::AccountError;
use crate::backend::BackendConnection;
use crate::log::event_reader::{EventReader, LogEvent, RetentionPolicy, SLICE};
use crate::wire::command::Command;
use crate::wire::packet::{self, HEADER_BYTES, MAX_BODY, PacketHeader};
use crate::wire::response::{EOF, ERR, ErrPacket, OK};

/// The dump ends where the log does.
const NON_BLOCKING: u16 = 1;
/// Behind the row data: an EOF packet has no more.
const EOF_BYTES: usize = 9;
/// COM_REGISTER_SLAVE.
const REGISTER_REPLICA: u8 = 0x15;

/// From where on, and to whom.
#[derive(Clone, Debug)]
pub struct BinlogDumpRequest<'a> {
    /// The replica's number, which no other one may have.
    pub replica: u32,
    /// The log's file.
    pub file: &'a str,
    /// Where in the file.
    pub offset: u64,
    /// True: until the log ends, and not for good.
    pub to_the_end: bool,
    /// The longest event that may be wanted whole, in bytes; in a compressed transaction as well.
    pub max_event_bytes: usize,
}

/// The events of a log, as they come.
#[derive(Debug)]
pub struct BinlogStream {
    backend: BackendConnection,
    _permit: Option<ConnectionPermit>,
    events: EventReader,
    packet_position: PacketPosition,
    /// Bytes that were handled since others had their turn.
    handled: usize,
}

/// Where in the stream of packets: an event takes one, or several of which all but the last are as long as can be.
#[derive(Clone, Copy, Debug)]
enum PacketPosition {
    BetweenEvents,
    Event { left: usize, goes_on: bool },
}

impl AccountConnection {
    /// Asks to be sent the log.
    ///
    /// # Errors
    /// When the server refuses at once; as a rule it does with the first event.
    pub async fn follow(
        mut self,
        request: &BinlogDumpRequest<'_>,
    ) -> Result<BinlogStream, AccountError> {
        self.run("SET @master_binlog_checksum = 'ALL', @source_binlog_checksum = 'ALL'")
            .await?;
        // Behind this it would be seen off in vain: the log has no end.
        let (mut backend, seat) = self.into_backend()?;
        let registered = packet::encode_first(&register(request.replica));
        backend.link.send_all(&registered).await?;
        match read_packet(&mut backend).await? {
            (_, packet) if packet.first() == Some(&ERR) => {
                return Err(AccountError::Server(ErrPacket::parse(&packet)?));
            }
            (_, packet) if packet.first() == Some(&OK) => {}
            _ => return Err(AccountError::Unexpected),
        }
        // The command has 32 bits for it.
        let offset = u32::try_from(request.offset).map_err(|_| AccountError::TooFar)?;
        let dumped = packet::encode_first(&dump(request, offset));
        backend.link.send_all(&dumped).await?;
        Ok(BinlogStream {
            backend,
            _permit: seat,
            events: EventReader::new(request.max_event_bytes),
            packet_position: PacketPosition::BetweenEvents,
            handled: 0,
        })
    }
}

impl BinlogStream {
    /// The next event, as far as it is wanted; `None` at the end of a dump that has one. May be given up and asked for again.
    ///
    /// Sessions live on this thread too: they have their turn after each [`SLICE`] of the log.
    ///
    /// # Errors
    /// When the connection fails, the server refuses or an event cannot be read: nothing behind it is.
    pub async fn next(
        &mut self,
        wants: impl RetentionPolicy,
    ) -> Result<Option<LogEvent>, AccountError> {
        loop {
            if self.handled >= SLICE {
                self.handled = 0;
                tokio::task::yield_now().await;
            }
            if self.events.is_busy() {
                if let Some(event) = self.step(0, &wants)? {
                    return Ok(Some(event));
                }
                continue;
            }
            match self.packet_position {
                PacketPosition::Event { left, .. } if left > 0 => {
                    if self.backend.inbox.is_empty() {
                        self.backend.fill().await?;
                    }
                    if let Some(event) = self.step(left, &wants)? {
                        return Ok(Some(event));
                    }
                }
                PacketPosition::Event { goes_on: true, .. } => {
                    match PacketHeader::parse(&self.backend.inbox) {
                        Some(header) => self.enter(header.len, HEADER_BYTES),
                        None => {
                            self.backend.fill().await?;
                        }
                    }
                }
                PacketPosition::Event { .. } if self.events.is_at_boundary() => {
                    self.packet_position = PacketPosition::BetweenEvents
                }
                PacketPosition::Event { .. } => return Err(AccountError::Unexpected),
                PacketPosition::BetweenEvents => {
                    if self.is_over().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Hands on what has come of an event.
    fn step(
        &mut self,
        left: usize,
        wants: &impl RetentionPolicy,
    ) -> Result<Option<LogEvent>, AccountError> {
        let inbox = &mut self.backend.inbox;
        let here = inbox.get(..left.min(inbox.len())).unwrap_or_default();
        let step = self.events.step(here, wants)?;
        inbox.drain(..step.taken);
        self.handled += step.handled;
        if let PacketPosition::Event { left, .. } = &mut self.packet_position {
            *left -= step.taken;
            // A packet holds one event.
            if *left > 0 && step.event.is_some() && self.events.is_at_boundary() {
                return Err(AccountError::Unexpected);
            }
        }
        Ok(step.event)
    }

    /// Goes into a packet whose first bytes, up to those of an event, are not needed any more.
    fn enter(&mut self, length: usize, before: usize) {
        self.backend.inbox.drain(..before);
        self.packet_position = PacketPosition::Event {
            left: length + HEADER_BYTES - before,
            goes_on: length == MAX_BODY,
        };
    }

    /// Begins with what comes next; true if that is the end of the log.
    async fn is_over(&mut self) -> Result<bool, AccountError> {
        let inbox = &self.backend.inbox;
        let header = PacketHeader::parse(inbox);
        let (Some(header), Some(status)) = (header, inbox.get(HEADER_BYTES)) else {
            if header.is_some_and(|header| header.len == 0) {
                return Err(AccountError::Unexpected);
            }
            self.backend.fill().await?;
            return Ok(false);
        };
        if header.len == 0 {
            return Err(AccountError::Unexpected);
        }
        if *status == OK {
            self.enter(header.len, HEADER_BYTES + 1);
            return Ok(false);
        }
        if header.len > LOGIN_PACKET_BYTES {
            return Err(AccountError::Unexpected);
        }
        let Some(packet) = packet::complete_payload(inbox) else {
            self.backend.fill().await?;
            return Ok(false);
        };
        match packet.first() {
            Some(&ERR) => Err(AccountError::Server(ErrPacket::parse(packet)?)),
            Some(&EOF) if packet.len() < EOF_BYTES => Ok(true),
            _ => Err(AccountError::Unexpected),
        }
    }
}

/// COM_REGISTER_SLAVE, with nothing to reach the replica by.
fn register(replica: u32) -> Vec<u8> {
    let mut payload = vec![REGISTER_REPLICA];
    payload.extend(replica.to_le_bytes());
    // Host, user and password, none of which has a byte; a port, a rank, and the source's number.
    payload.extend([0; 3 + 2 + 4 + 4]);
    payload
}

fn dump(request: &BinlogDumpRequest<'_>, offset: u32) -> Vec<u8> {
    let mut payload = vec![Command::BinlogDump.byte()];
    payload.extend(offset.to_le_bytes());
    let flags = if request.to_the_end { NON_BLOCKING } else { 0 };
    payload.extend(flags.to_le_bytes());
    payload.extend(request.replica.to_le_bytes());
    payload.extend(request.file.as_bytes());
    payload
}
