//! Clients that cache column definitions.

use super::*;

/// A definition of one column with these flags.
fn definition(flags: u16) -> Vec<u8> {
    let mut definition = b"id\x0c?\0\x14\0\0\0\x08".to_vec();
    definition.extend_from_slice(&flags.to_le_bytes());
    definition.extend_from_slice(&[0, 0, 0]);
    definition
}

/// A session whose client caches column definitions: of its statement, those with these flags.
fn keeping(flags: Option<u16>) -> FeedScenario {
    let mut scene = FeedScenario::proven(READER);
    let cached = Capabilities::MARIADB_CACHE_METADATA;
    scene.session.capabilities = scene.session.capabilities.union(cached);
    let current = scene.session.state.current();
    let text = PreparedText::new(
        StatementClass::Feed(StatementEffects::NONE),
        READER.as_bytes(),
        current,
    );
    let prepared = PrepareOkPacket {
        statement_id: ITS,
        columns: 1,
        parameters: 2,
        warnings: 0,
    };
    let told = flags.map_or(SentColumnDefinitions::TooLong, |flags| {
        SentColumnDefinitions::Each(vec![definition(flags)])
    });
    scene.session.prepared_mut().insert(text, prepared, told);
    scene
}

impl FeedScenario {
    /// The next execution is relayed unchanged, and the server sends no columns.
    fn taught(&mut self) {
        let needs = self.execute(&[7, 2], vec![named(&[9, 8], false)]);
        assert_eq!(needs.last().unwrap(), "relay to be learned from");
        let mut lesson = self.lesson.take().unwrap();
        let ok = OkPacket {
            status: 2,
            ..OkPacket::default()
        };
        let columns = self.session.prepared().cached_columns(ITS).cloned();
        lesson.receive(&ok, columns, 0);
        lesson.record(self.now);
    }
}

/// A reply of two rows, with a column of these flags or with none.
fn with_columns(flags: Option<u16>) -> FeedInput {
    let mut packets = vec![vec![1, u8::from(flags.is_some())]];
    packets.extend(flags.map(definition));
    packets.extend([vec![1, b'9'], vec![1, b'8']]);
    packets.push(vec![0xfe, 0, 0, 2, 0, 0, 0]);
    let (mut bytes, mut seq) = (Vec::new(), 1);
    for packet in packets {
        seq = packet::encode(seq, &packet, &mut bytes);
    }
    let FeedInput::Reply(plain) = reply(1, 2) else {
        panic!()
    };
    FeedInput::Reply(InternalReply {
        bytes: Some(bytes),
        ..plain
    })
}

/// The reply to the PREPARE of an internal statement, with this column.
fn own_of(flags: u16) -> FeedInput {
    let head = b"\0\x06\0\0\0\x01\0\0\0\0\0\0";
    let (mut bytes, seq) = (Vec::new(), 1);
    let seq = packet::encode(seq, head, &mut bytes);
    packet::encode(seq, &definition(flags), &mut bytes);
    let FeedInput::Reply(prepared) = own(OWN) else {
        panic!()
    };
    FeedInput::Reply(InternalReply {
        bytes: Some(bytes),
        ..prepared
    })
}

const KEY: u16 = 0x4203;
const NO_KEY: u16 = 1;

#[test]
fn a_client_that_caches_columns_does_not_receive_them_again() {
    let mut scene = keeping(Some(KEY));
    let found = || named(&[9, 8], false);
    scene.taught();
    // Its columns have other key flags, whether sent at PREPARE or at execution.
    for said in [None, Some(KEY), Some(NO_KEY), None] {
        let mut fetched = vec![found(), own_of(NO_KEY), with_columns(said)];
        if scene.session.prepared_mut().has_internal() {
            fetched.remove(1);
        }
        fetched.push(FeedInput::Unchanged(true));
        let needs = scene.execute(&[7, 2], fetched);
        assert_eq!(needs.last().unwrap(), "tell", "{said:?}");
        let FeedInput::Reply(expected) = with_columns(None) else {
            panic!()
        };
        assert_eq!(scene.told, expected.bytes);
    }
}

#[test]
fn a_client_with_outdated_columns_is_relayed() {
    let found = || named(&[9, 8], false);
    let mut scene = keeping(Some(KEY));
    scene.taught();
    // The server has sent that client other ones since.
    let statements = scene.session.prepared_mut();
    statements.receive_columns(ITS, SentColumnDefinitions::Each(vec![definition(NO_KEY)]));
    scene.taught();
    let narrowed = vec![
        found(),
        own_of(KEY),
        with_columns(None),
        FeedInput::Unchanged(true),
    ];
    let needs = scene.execute(&[7, 2], narrowed);
    assert_eq!(needs.last().unwrap(), "tell");
    let statements = scene.session.prepared_mut();
    statements.receive_columns(ITS, SentColumnDefinitions::TooLong);
    let needs = scene.execute(&[7, 2], vec![]);
    assert_eq!(needs, ["relay execution"]);
    assert_eq!(keeping(None).execute(&[7, 2], vec![]), ["relay execution"]);
}
