//! A session, known templates, and a driver with all replies ready.

use super::*;
use crate::account_rights::AccountRights;

pub(super) const JOINED: &str = "SELECT m.id FROM message m JOIN follower f ON f.author = m.author WHERE f.reader = 7 ORDER BY m.id DESC LIMIT 2";
pub(super) const LISTED: &str =
    "SELECT id FROM message WHERE author IN (1, 2) AND id <= 90 ORDER BY id DESC LIMIT 2";

/// Messages, and who follows whom.
pub(super) struct AppSchema(TableSchema, TableSchema);

impl Schema for AppSchema {
    fn table(&self, _: Option<&str>, name: &str) -> Option<&TableSchema> {
        match name {
            "message" => Some(&self.0),
            "follower" => Some(&self.1),
            _ => None,
        }
    }
}

pub(super) fn table<const N: usize>(columns: [&str; N], unique: &[usize]) -> TableSchema {
    let column = |name: &str| ColumnSchema {
        name: name.to_owned(),
        class: ComparisonClass::Integer,
        is_virtual: false,
        is_zoned: false,
        is_hidden: false,
        is_nullable: false,
        is_long: false,
    };
    TableSchema {
        columns: columns.map(column).to_vec(),
        unique_keys: vec![unique.to_vec()],
        secondary_indexes: None,
    }
}

/// A statement that orders by the score is of a feed that does.
pub(super) fn template(text: &str) -> Arc<Template> {
    let has_key = text.contains("score DESC");
    let app = AppSchema(
        table(["id", "author", "score"], &[0]),
        table(["reader", "author"], &[0, 1]),
    );
    let names = FeedNames {
        database: Some("tl".into()),
        message: "message".into(),
        id: "id".into(),
        author: "author".into(),
        key: has_key.then(|| "score".into()),
        ties: headwater_feed::definition::TieOrder::default(),
        follow: Some(FollowNames {
            table: "follower".into(),
            reader: "reader".into(),
            author: "author".into(),
        }),
    };
    let words = StatementWords::read(text.as_bytes()).unwrap();
    let query = parse(text.as_bytes(), &words).unwrap();
    let shape = shape(&query, &words, &names, &app).unwrap();
    // Ids and users of signed types: they have another place than their number.
    let integer = IntegerColumnType {
        bits: 32,
        signed: true,
    };
    let types = FeedColumnTypes {
        id: integer,
        author: integer,
        key: has_key.then_some(KeyType::Integer(integer)),
        has_follow_copies: false,
        has_mixed_signs: false,
    };
    let named = query.tables();
    let lists = shape
        .row_dependencies
        .as_ref()
        .map_or(0, |keep| keep.lists.len());
    let template = Template::new(FeedId(0), "tl".into(), names, types, shape, named);
    Arc::new(template.with_tables(Vec::new(), vec![TableId::Joined(6); lists]))
}

pub(super) struct TemplateKnowledge(
    pub(super) super::TemplateLookup,
    pub(super) MetadataSamples,
    pub(super) bool,
    pub(super) Arc<AccountRights>,
);

impl FeedKnowledge for TemplateKnowledge {
    fn template(&self, _: &[u8], _: &StatementWords, _: &[u8]) -> super::TemplateLookup {
        self.0.clone()
    }

    fn metadata_samples(&self) -> Option<&MetadataSamples> {
        Some(&self.1)
    }

    fn account_rights(&self) -> &AccountRights {
        &self.3
    }

    fn are_suspended(&self) -> bool {
        self.2
    }
}

pub(super) struct FeedScenario {
    pub(super) session: CommandPhase,
    pub(super) known: TemplateKnowledge,
    pub(super) policy: FeedPolicy,
    pub(super) now: Instant,
    /// What the client received last.
    pub(super) told: Option<Vec<u8>>,
    /// The last sample.
    pub(super) lesson: Option<MetadataSample>,
    /// After the next page that is not cached, the log contains a function.
    pub(super) doubts: bool,
}

pub(super) fn settings() -> SessionSettings {
    SessionSettings {
        utc_offset: Some(0),
        ..idle_session::settings()
    }
}

impl FeedScenario {
    /// A session of which all is proven, and a template.
    pub(super) fn proven(text: &str) -> FeedScenario {
        let mut session = idle_session::session(true);
        session.state = SessionState::new(Some(b"tl".to_vec()));
        let mut scene = FeedScenario {
            session,
            known: TemplateKnowledge(
                super::TemplateLookup::Ready(template(text)),
                MetadataSamples::default(),
                false,
                Arc::default(),
            ),
            policy: FeedPolicy {
                accelerate: true,
                list_authors: 10,
                candidates: 32,
                privileges_ttl: Duration::from_secs(1),
                always: true,
                exact: false,
                rows: false,
            },
            now: Instant::now(),
            told: None,
            lesson: None,
            doubts: false,
        };
        scene.prove();
        scene
    }

    /// Proves all that must be known of the session, now.
    pub(super) fn prove(&mut self) {
        let standing = &mut self.session.state;
        standing.settings_proved(settings());
        standing.observe(&OkPacket {
            status: 2,
            ..OkPacket::default()
        });
    }

    /// Narrows all statements of its form but the first.
    pub(super) fn learned(text: &str) -> FeedScenario {
        let mut scene = FeedScenario::proven(text);
        let told = scene.play(text, vec![named(&[9, 8], false), reply(0x4203, 2)]);
        assert_eq!(told.last().unwrap(), "tell, as it is");
        scene
    }

    /// The actions, one after the other, with these inputs.
    pub(super) fn play(&mut self, text: &str, fetched: Vec<FeedInput>) -> Vec<String> {
        let payload = [b"\x03", text.as_bytes()].concat();
        self.decide(FeedDecision::new(payload, self.policy), text, fetched)
    }

    pub(super) fn decide(
        &mut self,
        mut decision: FeedDecision,
        text: &str,
        fetched: Vec<FeedInput>,
    ) -> Vec<String> {
        let mut fetched: VecDeque<FeedInput> = fetched.into();
        let mut input = FeedInput::Begin;
        let mut needs = Vec::new();
        loop {
            let need = decision.next(input, &mut self.session, &self.known, self.now);
            needs.push(said(&need, text));
            if matches!(
                need,
                FeedAction::Reply(_) | FeedAction::Relay(_) | FeedAction::RelaySampled(_)
            ) {
                assert!(fetched.is_empty(), "{needs:?}");
                match need {
                    FeedAction::Reply(told) => {
                        // As the row cache does.
                        if let Some(fill) = &told.fill {
                            let _ = fill.cache_key();
                        }
                        self.told = Some(told.bytes);
                    }
                    FeedAction::RelaySampled(lesson) => self.lesson = Some(lesson),
                    _ => {}
                }
                return needs;
            }
            self.now += Duration::from_micros(100);
            input = match fetched.pop_front() {
                Some(input) => input,
                None => return needs,
            };
            if self.doubts
                && matches!(
                    input,
                    FeedInput::CachedPage(None) | FeedInput::Unchanged(false)
                )
            {
                self.session.doubt_functions();
                self.doubts = false;
            }
        }
    }
}

pub(super) fn said(need: &FeedAction, text: &str) -> String {
    match need {
        FeedAction::Query(ask) => format!("ask {}", ask.queries.join("; ")),
        FeedAction::Count(want) => format!("count {:?} {:?}", want.readers, want.authors),
        FeedAction::CacheCounts(fill) => format!("cache counts {:?}", fill.counts),
        FeedAction::Candidates(want) => {
            let MessageRange {
                upper,
                lower,
                limit: most,
            } = want.range;
            let (readers, authors) = (&want.readers, &want.authors);
            let at = |item: KeyedMessage| match item.key {
                0 => item.id.to_string(),
                key => format!("{key}/{}", item.id),
            };
            let (upper, lower) = (upper.map(at), at(lower));
            let upper = upper.unwrap_or_else(|| "all".into());
            let untied = if want.untied { " untied" } else { "" };
            format!("candidates {readers:?} {authors:?} {upper} {lower} {most}{untied}")
        }
        FeedAction::Run(payload) if payload.first() == Some(&0x17) => {
            feed_executions::shown(payload)
        }
        FeedAction::Prepare(prepare) => {
            let text = String::from_utf8(prepare.payload.get(1..).unwrap().to_vec()).unwrap();
            let closed = feed_executions::closed(&prepare.before);
            format!("close {closed:?}, prepare {text}")
        }
        FeedAction::Run(payload) => {
            let own = String::from_utf8(payload.get(1..).unwrap().to_vec()).unwrap();
            match own == text {
                true => "run as it is".into(),
                false => format!("run {own}"),
            }
        }
        FeedAction::Page(want) => {
            let (ids, offset, limit) = (&want.named, want.offset, want.limit);
            format!("page of {ids:?} {offset} {limit}")
        }
        FeedAction::CheckUnchanged => "unchanged?".into(),
        FeedAction::AwaitSample(_) => "wait".into(),
        FeedAction::Reply(told) if told.from_cache => "tell what was kept".into(),
        FeedAction::Reply(told) if told.narrowed => "tell".into(),
        FeedAction::Reply(_) => "tell, as it is".into(),
        FeedAction::Relay(why) => format!("relay {}", why.label()),
        FeedAction::RelaySampled(_) => "relay to be learned from".into(),
    }
}

pub(super) fn named(ids: &[u64], all: bool) -> FeedInput {
    FeedInput::Candidates(Ok(CandidateSet {
        ids: ids.to_vec(),
        exhaustive: all,
        tied: false,
        authors: 2,
        written_by: vec![1; ids.len()],
        author_lists: Vec::new(),
        generation: 1,
        gaps: None,
    }))
}

/// A reply with one column of these flags, and so many rows.
pub(super) fn reply(flags: u16, rows: u64) -> FeedInput {
    reply_of(flags, rows, 2)
}

/// With these status flags after it.
pub(super) fn reply_of(flags: u16, rows: u64, status: u8) -> FeedInput {
    let mut definition = b"id\x0c?\0\x14\0\0\0\x08".to_vec();
    definition.extend_from_slice(&flags.to_le_bytes());
    definition.extend_from_slice(&[0, 0, 0]);
    let mut packets = vec![vec![1], definition];
    packets.extend((0..rows).map(|row| vec![1, b'0' + u8::try_from(row).unwrap()]));
    packets.push(vec![0xfe, 0, 0, status, 0, 0, 0]);
    let (mut bytes, mut seq) = (Vec::new(), 1);
    for packet in packets {
        seq = packet::encode(seq, &packet, &mut bytes);
    }
    FeedInput::Reply(InternalReply {
        bytes: Some(bytes),
        rows,
        outcome: Some(ReplyOutcome::Ok(OkPacket {
            status: status.into(),
            ..OkPacket::default()
        })),
    })
}

pub(super) fn ended(outcome: ReplyOutcome) -> FeedInput {
    FeedInput::Reply(InternalReply {
        bytes: Some(vec![0]),
        rows: 2,
        outcome: Some(outcome),
    })
}

pub(super) fn error(code: u16) -> ReplyOutcome {
    ReplyOutcome::Err(ErrPacket {
        code,
        sqlstate: None,
        message: Vec::new(),
    })
}
