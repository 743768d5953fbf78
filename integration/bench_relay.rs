//! The arithmetic and the table of `make bench-relay`. A bench without a harness has no tests, so they are here.

#[path = "../benches/relay/score.rs"]
#[allow(dead_code)]
mod score;
#[path = "../benches/relay/table.rs"]
mod table;

use score::{Contender, FigureScore, RelayFigure, order, spread};
use table::table;

fn score(figure: RelayFigure, haproxy: &[f64], own: &[f64]) -> FigureScore {
    let mut score = FigureScore::new(figure);
    for (haproxy, own) in haproxy.iter().zip(own) {
        score.add(Contender::Haproxy, *haproxy);
        score.add(Contender::Headwater, *own);
    }
    score
}

#[test]
fn a_ratio_is_the_median_of_the_rounds_ratios() {
    // The machine was slow in the second round: the ratio of the medians would be 0.9.
    let rates = score(
        RelayFigure::Points8,
        &[100.0, 50.0, 100.0],
        &[120.0, 55.0, 90.0],
    );
    let spread = rates.ratio().unwrap();
    assert_eq!((spread.median, spread.least, spread.most), (1.1, 0.9, 1.2));
    assert_eq!(rates.median_of(Contender::Headwater), Some(90.0));
    assert_eq!(rates.median_of(Contender::Router), None);
}

#[test]
fn an_aim_is_met_missed_or_not_measured() {
    let met = |figure, haproxy, own| score(figure, &[haproxy], &[own]).is_met();
    assert_eq!(met(RelayFigure::Points8, 100.0, 100.0), Some(true));
    assert_eq!(met(RelayFigure::Points8, 100.0, 99.0), Some(false));
    assert_eq!(met(RelayFigure::P99, 100.0, 100.0), Some(true));
    assert_eq!(met(RelayFigure::P99, 100.0, 101.0), Some(false));
    assert_eq!(met(RelayFigure::Idle, 1.0, 20.0), Some(true));
    assert_eq!(met(RelayFigure::Idle, 100.0, 20.1), Some(false));
    assert_eq!(FigureScore::new(RelayFigure::Idle).is_met(), None);
    assert_eq!(FigureScore::new(RelayFigure::Cpu).is_met(), None);
}

#[test]
fn of_an_even_number_the_median_lies_between_the_two_in_the_middle() {
    let median = |values: &[f64]| spread(values.to_vec()).map(|spread| spread.median);
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[7.0]), Some(7.0));
    assert_eq!(median(&[]), None);
}

#[test]
fn nobody_is_always_first_or_always_behind_the_same_one() {
    let orders: Vec<_> = (0..8).map(|turn| order(turn, 4)).collect();
    for one in 0..4 {
        let first = orders.iter().filter(|order| order[0] == one).count();
        assert_eq!(first, 2, "{one}");
        for other in (0..4).filter(|other| *other != one) {
            let place = |order: &[usize], of| order.iter().position(|place| *place == of);
            let before = |order: &&Vec<usize>| place(order, one) < place(order, other);
            assert_eq!(orders.iter().filter(before).count(), 4, "{one} {other}");
        }
    }
}

#[test]
fn every_contender_has_a_column_and_who_was_not_measured_a_dash() {
    let mut rate = FigureScore::new(RelayFigure::Points8);
    for (haproxy, own) in [
        (10_000.0, 11_000.4),
        (10_000.0, 9_000.0),
        (10_000.0, 12_000.0),
    ] {
        rate.add(Contender::Direct, 30_000.0);
        rate.add(Contender::Haproxy, haproxy);
        rate.add(Contender::Headwater, own);
    }
    let mut idle = FigureScore::new(RelayFigure::Idle);
    idle.add(Contender::Haproxy, 16.0);
    idle.add(Contender::Headwater, 24.04);
    let text = table(
        &[rate, idle],
        &[Contender::Direct, Contender::Haproxy, Contender::Headwater],
    );
    let expected = "direct  HAProxy  Headwater   Headwater/HAProxy   target
DO 1 a second, 8 connections   30000    10000      11000   1.10 (0.90..1.20)   at least 1.0           met
idle session, resident KiB         -     16.0       24.0   1.50                Headwater at most 20   MISS
";
    assert_eq!(text.trim_start(), expected);
}

#[test]
fn without_haproxy_there_is_nothing_to_compare_with() {
    let mut score = FigureScore::new(RelayFigure::Logins);
    score.add(Contender::Headwater, 1_000.0);
    let text = table(&[score], &[Contender::Headwater]);
    assert!(text.trim_end().ends_with("not measured"), "{text}");
}
