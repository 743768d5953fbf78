//! Tables of observations and the primary that follows from them.

use std::time::{Duration, Instant};

use super::{ClusterChange, ClusterView, ServerObservation, ServerRole};
use crate::server_report::{
    GaleraMembership, GroupMembership, PrimaryFault, ReplicationSource, ServerReport,
};

/// A server by one letter: `W` takes writes, `R` refuses them, `-` is away, `?` says nothing, `.` was not asked; `G` and `g` are primary and
/// secondary of a group with one primary, `M` a member of one with several, `L` a member without majority; `N` and `n` nodes of Galera, synced or not.
fn seen(letter: char) -> ServerObservation {
    let group = |primary, primaries, reached| GroupMembership::Member {
        online: true,
        primary,
        primaries,
        reachable: reached,
        members: 3,
    };
    let node = |synced| GaleraMembership::Member {
        ready: true,
        synced,
        quorum: true,
    };
    let facts = match letter {
        '.' => return ServerObservation::Unasked,
        '-' => return ServerObservation::Unreachable("refused".to_owned()),
        '?' => return ServerObservation::Refused("too many connections".to_owned()),
        'W' => ServerReport::default(),
        'R' => ServerReport {
            read_only: true,
            ..ServerReport::default()
        },
        'G' => ServerReport {
            group: group(true, 1, 3),
            ..ServerReport::default()
        },
        'g' => ServerReport {
            group: group(false, 1, 3),
            read_only: true,
            ..ServerReport::default()
        },
        'M' => ServerReport {
            group: group(true, 3, 3),
            ..ServerReport::default()
        },
        'L' => ServerReport {
            group: group(true, 1, 1),
            ..ServerReport::default()
        },
        'N' | 'n' => ServerReport {
            node: node(letter == 'N'),
            ..ServerReport::default()
        },
        other => unreachable!("{other}"),
    };
    ServerObservation::Reported(Box::new(facts))
}

fn cluster(servers: usize) -> ClusterView {
    let addresses: Vec<String> = (0..servers).map(|at| format!("db{at}:3306")).collect();
    ClusterView::new(&addresses, Instant::now())
}

/// Observes all servers, one after the other.
fn all(cluster: &mut ClusterView, letters: &str) -> Vec<ClusterChange> {
    let mut changes = Vec::new();
    for (at, letter) in letters.chars().enumerate() {
        changes.extend(cluster.observe(at, seen(letter), Instant::now()));
    }
    changes
}

#[test]
fn who_is_followed() {
    // Each step: the observations, and the server that is followed then.
    type ObservationSteps<'a> = &'a [(&'a str, Option<usize>)];
    let stories: &[(&str, ObservationSteps<'_>)] = &[
        ("one of several takes writes", &[("RWR", Some(1))]),
        ("nobody takes writes", &[("RRR", None), ("RRW", Some(2))]),
        (
            "a dead server at the start",
            &[("-W", Some(1)), ("RW", Some(1))],
        ),
        ("who was not asked may be the primary", &[("W.", None)]),
        (
            "killed, and a replica is promoted",
            &[("WR", Some(0)), ("-R", None), ("-W", Some(1))],
        ),
        (
            "the old primary comes back",
            &[
                ("WR", Some(0)),
                ("-W", Some(1)),
                ("WW", Some(1)),
                ("RW", Some(1)),
            ],
        ),
        (
            "a planned switch",
            &[("WR", Some(0)), ("RR", None), ("RW", Some(1))],
        ),
        (
            "promoted before the old one is switched",
            &[("WR", Some(0)), ("WW", Some(0)), ("RW", Some(1))],
        ),
        (
            "all are gone, and back",
            &[("WR", Some(0)), ("--", None), ("WR", Some(0))],
        ),
        (
            "who says nothing stays while nobody else takes writes",
            &[("WR", Some(0)), ("?R", Some(0)), ("?W", Some(1))],
        ),
        ("who says nothing is not chosen", &[("?R", None)]),
        (
            "a group with one primary",
            &[("Ggg", Some(0)), ("-Gg", Some(1)), ("gGg", Some(1))],
        ),
        (
            "a group with several",
            &[("MMM", Some(0)), ("-MM", Some(1)), ("MMM", Some(1))],
        ),
        (
            "a primary that lost its group",
            &[("Ggg", Some(0)), ("Lgg", None), ("LGg", Some(1))],
        ),
        (
            "a member goes before one that left",
            &[("WGg", Some(1)), ("W-G", Some(2))],
        ),
        (
            "an old primary that came back is not chosen where a replica may be",
            &[
                ("WRR", Some(0)),
                ("-WR", Some(1)),
                ("WWR", Some(1)),
                ("W-R", None),
                ("W-W", Some(2)),
                ("R-W", Some(2)),
                // It was a replica since.
                ("W-R", Some(0)),
            ],
        ),
        (
            "it is where nobody else is",
            &[("WR", Some(0)), ("-W", Some(1)), ("W-", Some(0))],
        ),
        (
            "a node of Galera is stayed on",
            &[
                ("NNN", Some(0)),
                ("nNN", Some(1)),
                ("NNN", Some(1)),
                ("NnN", Some(0)),
            ],
        ),
    ];
    for (story, steps) in stories {
        let mut cluster = cluster(steps[0].0.len());
        for (letters, primary) in *steps {
            all(&mut cluster, letters);
            assert_eq!(cluster.primary(), *primary, "{story}: {letters}");
        }
    }
}

#[test]
fn what_each_server_is() {
    use ServerRole::{Away, Primary, Replica, Silent, Stray, Unfit, Unknown};
    for (letters, roles) in [
        ("WRW-?", vec![Primary, Replica, Stray, Away, Silent]),
        ("Ggg", vec![Primary, Replica, Replica]),
        ("MMM", vec![Primary, Replica, Replica]),
        ("GWL", vec![Primary, Stray, Unfit(PrimaryFault::NoQuorum)]),
        (
            "NnN",
            vec![Primary, Unfit(PrimaryFault::NotSynced), Replica],
        ),
        ("W.R", vec![Unknown, Unknown, Replica]),
    ] {
        let mut cluster = cluster(letters.len());
        all(&mut cluster, letters);
        let seen: Vec<ServerRole> = cluster.servers().iter().map(|it| it.role).collect();
        assert_eq!(seen, roles, "{letters}");
    }
}

#[test]
fn what_has_changed_is_said_once() {
    let mut cluster = cluster(2);
    all(&mut cluster, "WR");
    assert_eq!(all(&mut cluster, "WR"), []);
    let lost = all(&mut cluster, "-R");
    assert_eq!(
        lost,
        [
            ClusterChange::Lost { server: 0 },
            ClusterChange::Role {
                server: 0,
                role: ServerRole::Away
            }
        ]
    );
    assert!(!cluster.needs_sources());
    let found = all(&mut cluster, "-W");
    let (server, before) = (1, Some(0));
    assert_eq!(found[0], ClusterChange::Primary { server, before });
    // The old one takes writes again: that is reported once, and once more when it happens again.
    let (followed, other) = (1, 0);
    let split = ClusterChange::Split { followed, other };
    assert!(all(&mut cluster, "WW").contains(&split));
    assert!(!all(&mut cluster, "WW").contains(&split));
    assert!(!all(&mut cluster, "RW").contains(&split));
    assert!(all(&mut cluster, "WW").contains(&split));
    // Members that share their writes are no split.
    let mut group = super::ClusterView::new(&["a".to_owned(), "b".to_owned()], Instant::now());
    let changes = all(&mut group, "MM");
    let splits = |change: &&ClusterChange| matches!(change, ClusterChange::Split { .. });
    assert_eq!(changes.iter().filter(splits).count(), 0);
}

#[test]
fn whom_a_port_for_replicas_leads_to() {
    for (letters, now, any, taken, expected) in [
        ("WRR", None, false, &[][..], Some(1)),
        ("WRR", None, false, &[1], Some(2)),
        ("WRR", None, false, &[1, 2], Some(1)),
        ("WRR", Some(2), false, &[2], Some(2)),
        // Promoted, gone, or not synced.
        ("RWR", Some(1), false, &[], Some(0)),
        ("W-R", Some(1), false, &[], Some(2)),
        ("NNn", Some(2), false, &[], Some(1)),
        ("W--", None, false, &[], None),
        ("W--", None, true, &[], Some(0)),
        ("WR", Some(0), true, &[], Some(0)),
        ("W.", None, true, &[], None),
        ("--", None, true, &[], None),
        // Its writes reach no other server.
        ("WW", None, false, &[], None),
    ] {
        let mut cluster = cluster(letters.len());
        all(&mut cluster, letters);
        let led = cluster.choose_replica(now, any, taken);
        assert_eq!(led, expected, "{letters} {now:?} {any} {taken:?}");
    }
}

#[test]
fn a_server_that_was_away_for_a_moment_is_no_other_one() {
    let mut cluster = cluster(2);
    all(&mut cluster, "WR");
    all(&mut cluster, "-R");
    let back = all(&mut cluster, "WR");
    let (server, before) = (0, None);
    assert!(back.contains(&ClusterChange::Primary { server, before }));
}

#[test]
fn of_two_that_take_writes_the_one_is_followed_that_is_replicated() {
    let of = |source: Option<ReplicationSource>, server_id| {
        ServerObservation::Reported(Box::new(ServerReport {
            server_id,
            read_only: source.is_some(),
            source,
            ..ServerReport::default()
        }))
    };
    let source = |address: &str, server_id| {
        let address = address.to_owned();
        Some(ReplicationSource { address, server_id })
    };
    for (told, primary) in [
        (source("db1:3306", 0), 1),
        (source("DB1:3306", 0), 1),
        // By another name of the same server.
        (source("10.0.0.7:3306", 12), 1),
        (source("db7:3306", 17), 0),
        (source("db7:3306", 0), 0),
    ] {
        let mut cluster = cluster(3);
        let now = Instant::now();
        cluster.observe(0, of(None, 11), now);
        cluster.observe(1, of(None, 12), now);
        let changes = cluster.observe(2, of(told.clone(), 13), now);
        assert_eq!(cluster.primary(), Some(primary), "{told:?}");
        let (followed, other) = (primary, 1 - primary);
        assert!(changes.contains(&ClusterChange::Split { followed, other }));
    }
}

#[test]
fn since_when_it_is_what_it_is() {
    let (mut cluster, begun) = (cluster(1), Instant::now());
    let later = begun + Duration::from_secs(1);
    cluster.observe(0, seen('W'), later);
    cluster.observe(0, seen('W'), later + Duration::from_secs(9));
    assert_eq!(cluster.servers()[0].since, later);
}
