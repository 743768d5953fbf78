//! Internal queries, framed for one write.

use headwater_wire::capability::Capabilities;
use headwater_wire::command::query_payload;
use headwater_wire::packet;

/// COM_QUERY packets in a row; each starts a command, so each has sequence number 0.
#[derive(Debug, Default)]
pub struct QueryBatch {
    bytes: Vec<u8>,
    count: usize,
    capabilities: Capabilities,
}

impl QueryBatch {
    /// An empty batch for a session with these capabilities.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        QueryBatch {
            capabilities,
            ..QueryBatch::default()
        }
    }

    /// Adds a statement.
    pub fn push_query(&mut self, sql: &str) {
        let payload = query_payload(sql.as_bytes(), self.capabilities);
        packet::encode(0, &payload, &mut self.bytes);
        self.count += 1;
    }

    /// The encoded packets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of expected answers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }
}
