//! A connection that receives the server's log, event by event, as a replica does.

use super::connection::{AccountConnection, LOGIN_PACKET_BYTES, read_packet};
use super::connection_permits::ConnectionPermit;
use super::error::AccountError;
use crate::backend::BackendConnection;
use headwater_log::event_reader::{EventReader, LogEvent, RetentionPolicy, SLICE};
use headwater_wire::command::Command;
use headwater_wire::packet::{self, HEADER_BYTES, MAX_BODY, PacketHeader};
use headwater_wire::response::{EOF, ERR, ErrPacket, OK};

/// COM_BINLOG_DUMP flag: the dump ends at the end of the log.
const NON_BLOCKING: u16 = 1;
/// An EOF packet is shorter than this many bytes; a longer packet holds row data.
const EOF_BYTES: usize = 9;
/// COM_REGISTER_SLAVE.
const REGISTER_REPLICA: u8 = 0x15;

/// Where a dump starts, and for which replica.
#[derive(Clone, Debug)]
pub struct BinlogDumpRequest<'a> {
    /// The replica's server id, which must be unique.
    pub replica: u32,
    /// The log's file.
    pub file: &'a str,
    /// Offset in the file.
    pub offset: u64,
    /// True: the dump ends at the end of the log. False: it never ends.
    pub to_the_end: bool,
    /// The longest event that may be retained whole, in bytes; also within a compressed transaction.
    pub max_event_bytes: usize,
}

/// The events of a log.
#[derive(Debug)]
pub struct BinlogStream {
    backend: BackendConnection,
    _permit: Option<ConnectionPermit>,
    events: EventReader,
    packet_position: PacketPosition,
    /// Bytes handled since the task last yielded.
    handled: usize,
}

/// Position in the packet stream. An event takes one packet, or several of which all but the last have maximum length.
#[derive(Clone, Copy, Debug)]
enum PacketPosition {
    BetweenEvents,
    Event { left: usize, goes_on: bool },
}

impl AccountConnection {
    /// Requests the log.
    ///
    /// # Errors
    /// When the server refuses at once; usually it refuses with the first event.
    pub async fn follow(
        mut self,
        request: &BinlogDumpRequest<'_>,
    ) -> Result<BinlogStream, AccountError> {
        self.run("SET @master_binlog_checksum = 'ALL', @source_binlog_checksum = 'ALL'")
            .await?;
        // After the request a COM_QUIT would be ignored: the log has no end.
        let (mut backend, permit) = self.into_backend()?;
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
            _permit: permit,
            events: EventReader::new(request.max_event_bytes),
            packet_position: PacketPosition::BetweenEvents,
            handled: 0,
        })
    }
}

impl BinlogStream {
    /// Returns the next event, as far as `wants` retains it; `None` at the end of a finite dump. Cancel-safe.
    ///
    /// Sessions share this thread, so it yields after each [`SLICE`] of the log.
    ///
    /// # Errors
    /// When the connection fails, the server refuses, or an event cannot be read; nothing after it can be read either.
    pub async fn next(
        &mut self,
        retention: impl RetentionPolicy,
    ) -> Result<Option<LogEvent>, AccountError> {
        loop {
            if self.handled >= SLICE {
                self.handled = 0;
                tokio::task::yield_now().await;
            }
            if self.events.is_busy() {
                if let Some(event) = self.step(0, &retention)? {
                    return Ok(Some(event));
                }
                continue;
            }
            match self.packet_position {
                PacketPosition::Event { left, .. } if left > 0 => {
                    if self.backend.inbox.is_empty() {
                        self.backend.fill().await?;
                    }
                    if let Some(event) = self.step(left, &retention)? {
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

    /// Passes received bytes to the event reader.
    fn step(
        &mut self,
        remaining: usize,
        retention: &impl RetentionPolicy,
    ) -> Result<Option<LogEvent>, AccountError> {
        let inbox = &mut self.backend.inbox;
        let here = inbox.get(..remaining.min(inbox.len())).unwrap_or_default();
        let step = self.events.step(here, retention)?;
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

    /// Starts a packet and drops its first `before` bytes, which precede the event's bytes.
    fn enter(&mut self, length: usize, before: usize) {
        self.backend.inbox.drain(..before);
        self.packet_position = PacketPosition::Event {
            left: length + HEADER_BYTES - before,
            goes_on: length == MAX_BODY,
        };
    }

    /// Reads the start of the next packet; true at the end of the log.
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

/// COM_REGISTER_SLAVE, without an address of the replica.
fn register(replica: u32) -> Vec<u8> {
    let mut payload = vec![REGISTER_REPLICA];
    payload.extend(replica.to_le_bytes());
    // Empty host, user and password; port, rank, and the source's id.
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
