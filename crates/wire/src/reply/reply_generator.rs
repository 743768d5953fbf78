//! Generates valid replies of every kind, and checks that the follower finds their end.
//!
//! A reply is made from its meaning (columns, rows, further results), never read back. Rows of 16 MiB and more are
//! headers and a length: their bodies are fed from one small buffer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::cursor::put_lenenc_int;
use crate::packet::{MAX_BODY, PacketHeader};
use crate::resultset::{CollectError, CollectLimits, QueryReply, ReplyCollector};
use crate::status;

/// Bytes of a reply as they are sent.
#[derive(Debug, Clone)]
enum ReplyPiece {
    Bytes(Vec<u8>),
    /// So many bytes that must not be read.
    Filler(usize),
}

#[derive(Debug, Clone)]
enum GeneratedResponse {
    Ok(OkPacket),
    Set {
        columns: Vec<usize>,
        defined: bool,
        rows: Vec<GeneratedRow>,
        noise: u16,
    },
    Local,
}

/// A row by its first byte and length.
#[derive(Debug, Clone, Copy)]
struct GeneratedRow {
    first: u8,
    len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ChainEnd {
    Ok,
    Err,
    /// An ERR in place of the last result set's end.
    ErrInRows,
    /// The last result set's rows are held by a cursor.
    Cursor,
}

#[derive(Debug, Clone)]
struct ResponseChain {
    command: Command,
    capabilities: Capabilities,
    responses: Vec<GeneratedResponse>,
    end: ChainEnd,
    progress: bool,
}

/// The reply as it is written, and what a follower must find.
struct GeneratedReply {
    pieces: Vec<ReplyPiece>,
    seq: u8,
    rows: u64,
    results: u32,
    local_infile_requests: usize,
    schema: Option<Vec<u8>>,
}

impl GeneratedReply {
    fn packet(&mut self, payload: &[u8]) {
        self.long_packet(payload, payload.len());
    }

    /// A packet of `len` bytes that starts with `front`.
    fn long_packet(&mut self, front: &[u8], len: usize) {
        let mut front = front.to_vec();
        let mut left = len;
        loop {
            let body = left.min(MAX_BODY);
            let mut bytes = PacketHeader {
                len: body,
                seq: self.seq,
            }
            .to_bytes()
            .to_vec();
            let shown = front.len().min(body);
            bytes.extend(front.drain(..shown));
            self.pieces.push(ReplyPiece::Bytes(bytes));
            self.pieces.push(ReplyPiece::Filler(body - shown));
            self.seq = self.seq.wrapping_add(1);
            left -= body;
            if body < MAX_BODY {
                return;
            }
        }
    }

    fn len(&self) -> usize {
        let lengths = self.pieces.iter().map(|piece| match piece {
            ReplyPiece::Bytes(bytes) => bytes.len(),
            ReplyPiece::Filler(len) => *len,
        });
        lengths.sum()
    }

    /// Feeds the bytes in pieces of `size`; long fillers in pieces of their own.
    fn feed(&self, size: usize, mut to: impl FnMut(&[u8])) {
        // Bytes that must not be read look like an EOF, an ERR, a header.
        let filler = [0xFE_u8, 0xFF, 0x00, 0xFB].repeat(16 * 1024);
        let mut run = Vec::new();
        for piece in &self.pieces {
            match piece {
                ReplyPiece::Bytes(bytes) => run.extend_from_slice(bytes),
                ReplyPiece::Filler(len) if *len <= filler.len() => {
                    run.extend_from_slice(&filler[..*len])
                }
                ReplyPiece::Filler(len) => {
                    run.chunks(size).for_each(&mut to);
                    run.clear();
                    let mut left = *len;
                    while left > 0 {
                        let now = left.min(filler.len());
                        to(&filler[..now]);
                        left -= now;
                    }
                }
            }
        }
        run.chunks(size).for_each(&mut to);
    }
}

const REPORT: &[u8] = b"\xff\xff\xff\x01\x01\x02\0\0\0\x04copy";
const ERR: &[u8] = b"\xff\xda\x04#21000Subquery returns more than 1 row";

impl ResponseChain {
    fn has(&self, flag: Capabilities) -> bool {
        self.capabilities.contains(flag)
    }

    fn optional(&self) -> bool {
        let either =
            Capabilities::OPTIONAL_RESULTSET_METADATA.union(Capabilities::MARIADB_CACHE_METADATA);
        self.capabilities.intersects(either)
    }

    fn write(&self) -> GeneratedReply {
        let mut out = GeneratedReply {
            pieces: Vec::new(),
            seq: 1,
            rows: 0,
            results: 0,
            local_infile_requests: 0,
            schema: None,
        };
        for (index, response) in self.responses.iter().enumerate() {
            let last = index + 1 == self.responses.len();
            if self.progress && self.has(Capabilities::MARIADB_PROGRESS) {
                out.packet(REPORT);
            }
            let more = if last && self.end != ChainEnd::Err {
                0
            } else {
                status::MORE_RESULTS
            };
            self.response(response, more, last, &mut out);
        }
        if self.end == ChainEnd::Err {
            out.packet(ERR);
        }
        out
    }

    fn response(
        &self,
        response: &GeneratedResponse,
        more: u16,
        last: bool,
        out: &mut GeneratedReply,
    ) {
        match response {
            GeneratedResponse::Ok(packet) => self.ok(packet, more, out),
            GeneratedResponse::Local => {
                out.packet(b"\xfbfile");
                out.local_infile_requests += 1;
                self.ok(&OkPacket::default(), more, out);
            }
            GeneratedResponse::Set {
                columns,
                defined,
                rows,
                noise,
            } => {
                self.head(columns, *defined, out);
                let status = status::AUTOCOMMIT | more | noise;
                let cursor = last && self.end == ChainEnd::Cursor;
                let opened = if cursor { status::CURSOR_EXISTS } else { 0 };
                if !self.has(Capabilities::DEPRECATE_EOF) {
                    self.end(status | opened, out);
                    if cursor {
                        return;
                    }
                }
                if !cursor {
                    rows.iter().for_each(|row| self.row(*row, out));
                }
                match (last, self.end) {
                    (true, ChainEnd::ErrInRows) => out.packet(ERR),
                    _ => self.end(status | opened, out),
                }
            }
        }
    }

    fn ok(&self, packet: &OkPacket, more: u16, out: &mut GeneratedReply) {
        let mut payload = Vec::new();
        let packet = OkPacket {
            status: packet.status & !status::MORE_RESULTS | more,
            ..packet.clone()
        };
        packet.write(self.capabilities, &mut payload);
        if self.has(Capabilities::SESSION_TRACK) && packet.schema.is_some() {
            out.schema = packet.schema;
        }
        out.packet(&payload);
    }

    fn head(&self, columns: &[usize], defined: bool, out: &mut GeneratedReply) {
        let defined = defined || !self.optional();
        let mut payload = Vec::new();
        put_lenenc_int(columns.len() as u64, &mut payload);
        if self.optional() {
            payload.push(defined.into());
        }
        out.packet(&payload);
        out.results += 1;
        if defined {
            columns
                .iter()
                .for_each(|len| out.long_packet(b"\x03def", len + 4));
        }
    }

    fn row(&self, row: GeneratedRow, out: &mut GeneratedReply) {
        if self.progress && self.has(Capabilities::MARIADB_PROGRESS) {
            out.packet(REPORT);
        }
        let text = self.command == Command::Query;
        // The binary protocol starts every row with 0. A text row may start with a long length; it is long then.
        let (first, len) = match row.first {
            _ if !text => (0, row.len.max(1)),
            0xFF => (0xFB, row.len.max(1)),
            0xFE => (0xFE, row.len.max(MAX_BODY)),
            first => (first, row.len.max(1)),
        };
        out.long_packet(&[first], len);
        out.rows += 1;
    }

    fn end(&self, status: u16, out: &mut GeneratedReply) {
        let [low, high] = status.to_le_bytes();
        if self.has(Capabilities::DEPRECATE_EOF) {
            out.packet(&[0xFE, 0, 0, low, high, 7, 0]);
        } else {
            out.packet(&[0xFE, 7, 0, low, high]);
        }
    }
}

fn rows() -> impl Strategy<Value = GeneratedRow> {
    let len = prop_oneof![
        30 => 0_usize..60,
        3 => Just(251_usize),
        1 => prop::sample::select(vec![MAX_BODY - 1, MAX_BODY, MAX_BODY + 1, MAX_BODY + 40]),
        1 => Just(2 * MAX_BODY),
    ];
    let first = prop_oneof![5 => any::<u8>(), 1 => Just(0xFE_u8)];
    (first, len).prop_map(|(first, len)| GeneratedRow {
        first: if first == 0xFE && len < 251 { 1 } else { first },
        len,
    })
}

fn responses() -> impl Strategy<Value = GeneratedResponse> {
    let noise = prop::sample::select(vec![
        0,
        status::NO_INDEX,
        status::LAST_ROW_SENT,
        status::IN_TRANS,
    ]);
    let text = || prop::collection::vec(any::<u8>(), 0..300);
    let ok = (
        any::<u64>(),
        any::<u64>(),
        any::<u16>(),
        any::<u16>(),
        text(),
        prop::option::of(text()),
    );
    let ok = ok.prop_map(
        |(affected_rows, last_insert_id, status, warnings, info, schema)| OkPacket {
            affected_rows,
            last_insert_id,
            status,
            warnings,
            info,
            schema,
            truncated: false,
        },
    );
    let columns =
        prop_oneof![20 => prop::collection::vec(0_usize..60, 1..6), 1 => Just(vec![9; 300])];
    let set = (
        columns,
        any::<bool>(),
        prop::collection::vec(rows(), 0..8),
        noise,
    )
        .prop_map(|(columns, defined, rows, noise)| GeneratedResponse::Set {
            columns,
            defined,
            rows,
            noise,
        });
    prop_oneof![3 => ok.prop_map(GeneratedResponse::Ok), 6 => set, 1 => Just(GeneratedResponse::Local)]
}

fn chains() -> impl Strategy<Value = ResponseChain> {
    let flags = [
        Capabilities::DEPRECATE_EOF,
        Capabilities::SESSION_TRACK,
        Capabilities::OPTIONAL_RESULTSET_METADATA,
        Capabilities::MARIADB_CACHE_METADATA,
        Capabilities::MARIADB_PROGRESS,
    ];
    let capabilities =
        prop::sample::subsequence(flags.to_vec(), 0..=flags.len()).prop_map(|flags| {
            flags
                .into_iter()
                .fold(Capabilities::PROTOCOL_41, Capabilities::union)
        });
    let command = prop::sample::select(vec![
        Command::Query,
        Command::StmtExecute,
        Command::StmtBulkExecute,
    ]);
    let end = prop::sample::select(vec![
        ChainEnd::Ok,
        ChainEnd::Err,
        ChainEnd::ErrInRows,
        ChainEnd::Cursor,
    ]);
    let responses = prop::collection::vec(responses(), 1..5);
    (command, capabilities, responses, end, any::<bool>()).prop_map(
        |(command, capabilities, responses, end, progress)| {
            // Only a result set can end in its rows, and only an executed statement opens a cursor.
            let set = matches!(responses.last(), Some(GeneratedResponse::Set { .. }));
            let end = match end {
                ChainEnd::ErrInRows if !set => ChainEnd::Err,
                ChainEnd::Cursor if !set || command != Command::StmtExecute => ChainEnd::Ok,
                end => end,
            };
            ResponseChain {
                command,
                capabilities,
                responses,
                end,
                progress,
            }
        },
    )
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..70, 70_usize..3000, Just(1 << 20)]
}

fn collected(chain: &ResponseChain, written: &GeneratedReply, size: usize) {
    let mut collector = ReplyCollector::new(
        chain.capabilities,
        CollectLimits {
            max_rows: usize::MAX,
            max_bytes: 100_000,
        },
    );
    let mut consumed = 0;
    let mut lost = None;
    written.feed(size, |bytes| match collector.feed(bytes) {
        Ok(fed) => consumed += fed.consumed,
        Err(error) => lost = Some(error),
    });
    if written.local_infile_requests > 0 {
        assert_eq!(lost, Some(CollectError::LocalInfile));
        return;
    }
    assert_eq!((consumed, lost), (written.len(), None));
    match collector.finish() {
        Ok(QueryReply::Rows(rows)) => assert_eq!(rows.len() as u64, written.rows),
        Ok(QueryReply::Err(packet)) => assert_eq!(packet.code, 1242),
        Ok(QueryReply::Ok(_)) => assert_eq!(written.results, 0),
        Err(CollectError::SeveralResults) => {
            assert!(chain.responses.len() > 1 || chain.end == ChainEnd::Err)
        }
        // Rows are made by their lengths, so few of them hold cells.
        Err(error) => {
            assert!(
                matches!(
                    error,
                    CollectError::BadRow { .. } | CollectError::TooManyBytes { .. }
                ),
                "{error}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_followers_end_is_the_true_end(chain in chains(), size in sizes(), unseen in 0_usize..3) {
        let written = chain.write();
        let mut reply = ReplyFollower::new(chain.command, chain.capabilities);
        let mut consumed = 0;
        let mut events = Vec::new();
        written.feed(size, |bytes| {
            let mut from = 0;
            loop {
                // Of a row nothing has to be seen but its first byte and its last; here none, all, or half of the rest is not.
                let ahead = reply.skippable_row_bytes().min(bytes.len() - from) * unseen / 2;
                reply.skip_row_bytes(ahead);
                from += ahead;
                let step = reply.feed(&bytes[from..]);
                from += step.consumed;
                match step.event {
                    Some(event) => events.push((consumed + from, event)),
                    None => break,
                }
            }
            consumed += from;
        });
        prop_assert_eq!(consumed, written.len());
        let Some((end, ReplyEvent::Done(outcome))) = events.pop() else {
            return Err(TestCaseError::fail(format!("{events:?}")));
        };
        prop_assert_eq!(end, written.len());
        prop_assert_eq!(events.len(), written.local_infile_requests);
        let waits = events.iter().all(|(_, event)| *event == ReplyEvent::ClientData);
        prop_assert!(waits);
        prop_assert_eq!((reply.rows(), reply.results()), (written.rows, written.results));
        let error = matches!(chain.end, ChainEnd::Err | ChainEnd::ErrInRows);
        prop_assert_eq!(matches!(outcome, ReplyOutcome::Err(_)), error);
        prop_assert_eq!(reply.schema(), written.schema.as_deref());
        if let ReplyOutcome::Ok(packet) = outcome {
            prop_assert_eq!(packet.schema, written.schema.clone());
        }
        prop_assert_eq!(reply.feed(b"\x07\0\0\x01"), FollowerStep { consumed: 0, event: None });
        if chain.command == Command::Query {
            collected(&chain, &written, size);
        }
    }

    #[test]
    fn a_prepared_statement_ends_behind_its_definitions(
        parameters in 0_u16..4, columns in 0_u16..4, defined: bool, optional: bool, eof: bool, size in 1_usize..40,
    ) {
        let mut capabilities = Capabilities::PROTOCOL_41;
        if optional {
            capabilities = capabilities.union(Capabilities::OPTIONAL_RESULTSET_METADATA);
        }
        if !eof {
            capabilities = capabilities.union(Capabilities::DEPRECATE_EOF);
        }
        let mut written = GeneratedReply { pieces: Vec::new(), seq: 1, rows: 0, results: 0, local_infile_requests: 0, schema: None };
        let mut head = b"\0\x07\0\0\0".to_vec();
        head.extend(columns.to_le_bytes());
        head.extend(parameters.to_le_bytes());
        head.extend([0, 2, 1]);
        if optional {
            head.push(defined.into());
        }
        written.packet(&head);
        for count in [parameters, columns].into_iter().filter(|count| *count > 0) {
            if defined || !optional {
                (0..count).for_each(|_| written.long_packet(b"\x03def", 30));
            }
            if eof {
                written.packet(b"\xfe\0\0\x02\0");
            }
        }
        let mut reply = ReplyFollower::new(Command::StmtPrepare, capabilities);
        let mut steps = Vec::new();
        written.feed(size, |bytes| steps.push((bytes.len(), reply.feed(bytes))));
        let prepared = ReplyEvent::Done(ReplyOutcome::Prepared(PrepareOkPacket { statement_id: 7, columns, parameters, warnings: 258 }));
        let last = steps.pop().map(|(len, step)| (len == step.consumed, step.event));
        prop_assert_eq!(last, Some((true, Some(prepared))));
        prop_assert!(steps.iter().all(|(len, step)| *len == step.consumed && step.event.is_none()));
    }
}
