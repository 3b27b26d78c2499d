//! Permits: who gets one, for what, and what journals cannot do.

use std::convert::Infallible;

use super::*;
use crate::budget::Sums;
use whit_core::{Epsilon, Mechanism, Ratio};

const ONE: u128 = 1 << 64;

fn event(epsilon: Ratio) -> Event {
    Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon })
}

fn ratio(numerator: u128, denominator: u128) -> Ratio {
    Ratio::new(numerator, denominator).expect("the denominator is positive")
}

fn cap(epsilon: f64) -> Cap {
    let epsilon = Epsilon::new(epsilon).expect("finite");
    Cap::new(Mode::Pure, Neighbours::AddRemove, epsilon, Delta::ZERO).expect("a cap")
}

fn account() -> Account {
    Account::new("shop").expect("a name")
}

fn ann() -> Account {
    let team = account().team("red").expect("a name");
    team.analyst("ann").expect("a name")
}

fn reserve(
    journal: &mut Memory,
    account: &Account,
    epsilon: Ratio,
) -> std::result::Result<Permit, Refusal> {
    match Filter::new(Mode::Pure).reserve(&event(epsilon), account, journal) {
        Ok(permit) => Ok(permit),
        Err(Unreserved::Refused(refusal)) => Err(refusal),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn exactly_the_cap_is_spent() {
    let mut journal = Memory::new("shop", cap(1.0));
    for sequence in 1..=4 {
        let permit = reserve(&mut journal, &account(), ratio(1, 4)).expect("room");
        assert_eq!(permit.sequence(), sequence);
    }
    let refused = reserve(&mut journal, &account(), ratio(1, 1 << 100)).expect_err("used up");
    let level = Level::Dataset;
    let (asked, left) = (Amount::from_units(1), Amount::ZERO);
    let what = "epsilon";
    assert_eq!(
        refused,
        Refusal::Exhausted {
            level,
            what,
            asked,
            left
        }
    );
    assert_eq!(refused.kind(), FaultKind::Exhausted);
    assert!(
        reserve(&mut journal, &account(), Ratio::zero()).is_ok(),
        "nothing costs nothing"
    );
}

#[test]
fn every_level_must_have_room() {
    let red = Level::Team("red".into());
    let mut journal = Memory::new("shop", cap(1.0))
        .with_cap(red.clone(), cap(0.5))
        .with_cap(Level::Analyst("ann".into()), cap(0.25));
    let named = |refused: std::result::Result<Permit, Refusal>| match refused {
        Err(Refusal::Exhausted { level, .. }) => level.to_string(),
        other => panic!("{other:?}"),
    };
    let _ = reserve(&mut journal, &ann(), ratio(1, 4)).expect("room at all levels");
    assert_eq!(
        named(reserve(&mut journal, &ann(), ratio(1, 8))),
        "analyst ann"
    );
    let bob = account()
        .team("red")
        .and_then(|team| team.analyst("bob"))
        .expect("names");
    let _ = reserve(&mut journal, &bob, ratio(1, 4)).expect("an analyst without a cap");
    assert_eq!(named(reserve(&mut journal, &bob, ratio(1, 8))), "team red");
    let _ = reserve(&mut journal, &account(), ratio(1, 2)).expect("outside the team");
    assert_eq!(
        named(reserve(&mut journal, &account(), ratio(1, 8))),
        "dataset"
    );
    assert_eq!(journal.standing(red).spent.loss.units(), ONE / 2);
    assert_eq!(journal.standing(Level::Dataset).spent.loss.units(), ONE);
}

#[test]
fn a_refusal_spends_nothing_and_a_dropped_permit_stays_spent() {
    let mut journal =
        Memory::new("shop", cap(1.0)).with_cap(Level::Analyst("ann".into()), cap(0.1));
    assert!(reserve(&mut journal, &ann(), ratio(1, 2)).is_err());
    assert_eq!(journal.standing(Level::Dataset).spent, Sums::default());
    drop(reserve(&mut journal, &account(), ratio(1, 2)).expect("room"));
    assert_eq!(journal.standing(Level::Dataset).spent.loss.units(), ONE / 2);
}

#[test]
fn a_permit_is_good_for_its_own_event_alone() {
    let mut journal = Memory::new("shop", cap(10.0));
    let permit = reserve(&mut journal, &account(), ratio(1, 2)).expect("room");
    assert_eq!(permit.fingerprint(), event(ratio(1, 2)).fingerprint());
    assert_eq!(
        permit
            .redeem(&event(ratio(1, 3)))
            .expect_err("another event"),
        OtherEvent
    );
    let permit = reserve(&mut journal, &account(), ratio(1, 2)).expect("room");
    assert_eq!(
        permit
            .redeem(&event(ratio(1, 2)))
            .expect("its event")
            .sequence(),
        2
    );
}

#[test]
fn modes_and_relations_do_not_mix() {
    let mut journal = Memory::new("shop", cap(10.0));
    let other = Filter::new(Mode::Zcdp).reserve(&event(ratio(1, 2)), &account(), &mut journal);
    assert!(matches!(
        other,
        Err(Unreserved::Refused(Refusal::OtherMode { .. }))
    ));
    let replaced = Event::new(
        Neighbours::ReplaceOne,
        Mechanism::Pure {
            epsilon: Ratio::one(),
        },
    );
    let other = Filter::new(Mode::Pure).reserve(&replaced, &account(), &mut journal);
    assert!(matches!(
        other,
        Err(Unreserved::Refused(Refusal::OtherRelation { .. }))
    ));
    let stranger = Account::new("other").expect("a name");
    assert_eq!(
        reserve(&mut journal, &stranger, ratio(1, 2)).expect_err("no such data"),
        Refusal::NoCap
    );
}

/// Journals that leave out what could refuse.
struct Forgetful(Vec<Standing>);

impl Journal for Forgetful {
    type Error = Infallible;
    fn keep(&mut self, entry: &Entry) -> std::result::Result<Outcome, Infallible> {
        Ok(match entry.verdict(&self.0) {
            Ok(approval) => Outcome::Kept {
                sequence: 1,
                approval,
            },
            Err(refusal) => Outcome::Refused(refusal),
        })
    }
}

#[test]
fn a_journal_must_show_every_level_and_the_dataset_must_have_a_cap() {
    let standing = |level: Level, cap: Option<Cap>| Standing {
        level,
        cap,
        spent: Sums::default(),
    };
    let dataset = standing(Level::Dataset, Some(cap(1.0)));
    let red = standing(Level::Team("red".into()), None);
    let ann_level = standing(Level::Analyst("ann".into()), None);
    let ask = |standings: Vec<Standing>| {
        let asked =
            Filter::new(Mode::Pure).reserve(&event(ratio(1, 2)), &ann(), &mut Forgetful(standings));
        match asked {
            Ok(_) => None,
            Err(Unreserved::Refused(refusal)) => Some(refusal),
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(
        ask(vec![dataset.clone(), red.clone(), ann_level.clone()]),
        None
    );
    for missing in [
        vec![],
        vec![dataset.clone()],
        vec![red.clone(), ann_level.clone()],
        vec![red.clone(), dataset, ann_level.clone()],
    ] {
        assert_eq!(ask(missing), Some(Refusal::LevelsMissing));
    }
    let uncapped = vec![standing(Level::Dataset, None), red, ann_level];
    assert_eq!(ask(uncapped), Some(Refusal::NoCap));
}

/// A journal that answers with the approval of another entry.
struct Swindler(Entry);

impl Journal for Swindler {
    type Error = Infallible;
    fn keep(&mut self, _: &Entry) -> std::result::Result<Outcome, Infallible> {
        let levels = self.0.account.levels().into_iter();
        let standings = levels.map(|level| Standing {
            level,
            cap: Some(cap(1.0)),
            spent: Sums::default(),
        });
        Forgetful(standings.collect()).keep(&self.0)
    }
}

#[test]
fn the_approval_of_another_entry_is_no_permit() {
    let honest = |event: &Event, account: Account| Entry {
        fingerprint: event.fingerprint(),
        cost: Cost::of(event, Mode::Pure, Delta::ZERO).expect("priced"),
        event: event.clone(),
        account,
    };
    let ask = |entry: Entry| {
        Filter::new(Mode::Pure).reserve(&event(ratio(1, 2)), &ann(), &mut Swindler(entry))
    };
    let right = honest(&event(ratio(1, 2)), ann());
    assert!(ask(right.clone()).is_ok());
    let cheaper = Cost::of(&event(Ratio::zero()), Mode::Pure, Delta::ZERO).expect("priced");
    for wrong in [
        honest(&event(Ratio::zero()), ann()),
        honest(&event(ratio(1, 2)), account()),
        Entry {
            cost: cheaper,
            ..right
        },
    ] {
        let found = ask(wrong);
        assert!(matches!(
            found,
            Err(Unreserved::Refused(Refusal::OtherEntry))
        ));
    }
}

#[test]
fn a_permit_names_the_data_set_that_paid() {
    let mut journal = Memory::new("shop", cap(10.0));
    let permit = reserve(&mut journal, &ann(), ratio(1, 2)).expect("room");
    assert_eq!(permit.dataset(), "shop");
    let redeemed = permit.redeem(&event(ratio(1, 2))).expect("its event");
    assert_eq!(redeemed.dataset(), "shop");
}

#[test]
fn events_without_a_price_reach_no_journal() {
    let gaussian = Mechanism::Concentrated { rho: Ratio::one() };
    let event = Event::new(Neighbours::AddRemove, gaussian);
    let mut journal = Memory::new("shop", cap(10.0));
    let found = Filter::new(Mode::Pure).reserve(&event, &account(), &mut journal);
    assert!(matches!(found, Err(Unreserved::NoPrice(_))));
    let delta = Delta::new(1e-6).expect("below one");
    let priced = Filter::new(Mode::Pure)
        .with_delta(delta)
        .cost(&event)
        .expect("priced");
    assert!(priced.sums().loss.units() > ONE);
}

#[test]
fn names_are_short_and_plain() {
    for bad in ["", "a\nb", "\u{7f}", &"x".repeat(129)] {
        assert!(Account::new(bad).is_err(), "{bad:?}");
        assert!(account().team(bad).is_err() && account().analyst(bad).is_err());
    }
    assert!(Account::new(&"x".repeat(128)).is_ok() && Account::new("Łódź 2026").is_ok());
}
