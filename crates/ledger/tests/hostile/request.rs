//! Requests that are sent again, by others, for something else, or are too large.

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level, Memory, Permit, Unreserved};
use whit_core::{Delta, Event, Mechanism, Neighbours, Ratio};
use whit_ledger::{Error, Key, Ledger};

use super::{Folder, epsilon, one, open, reserve, shop, spent, terms};

fn ask(
    ledger: &Ledger,
    event: &Event,
    account: &Account,
    statement: [u8; 32],
) -> Result<Permit, Unreserved<Error>> {
    let mut charge = ledger.charge(Key::new("request"), statement);
    Filter::new(Mode::Pure).reserve(event, account, &mut charge)
}

/// "Charged before" is what a stored answer is given for, so it is said only to who was charged, and for the same thing.
#[test]
fn a_key_belongs_to_one_statement_one_event_and_one_account() {
    let folder = Folder::new("key-owner");
    let mut terms = terms(10.0);
    let nothing = epsilon(0.0);
    terms
        .caps
        .push((Level::Analyst("bob".into()), nothing, Delta::ZERO));
    let ledger = Ledger::open(&folder.ledger(), &terms).unwrap();
    let ann = shop().analyst("ann").unwrap();
    let permit = ask(&ledger, &one(), &ann, [1; 32]).unwrap();
    let sequence = permit.sequence();
    let again = ask(&ledger, &one(), &ann, [1; 32]).unwrap_err();
    assert_eq!(again, Unreserved::Journal(Error::Charged { sequence }));
    let half = Mechanism::Pure {
        epsilon: Ratio::new(1, 2).unwrap(),
    };
    let half = Event::new(Neighbours::AddRemove, half);
    let bob = shop().analyst("bob").unwrap();
    let red = ann.clone().team("red").unwrap();
    for (event, account, statement) in [
        (&one(), &ann, [2; 32]),
        (&half, &ann, [1; 32]),
        (&one(), &bob, [1; 32]),
        (&one(), &red, [1; 32]),
        (&one(), &shop(), [1; 32]),
    ] {
        let reused = ask(&ledger, event, account, statement).unwrap_err();
        assert_eq!(reused, Unreserved::Journal(Error::KeyReused { sequence }));
    }
    assert_eq!(spent(&ledger), 1);
}

/// Somebody's permit with the right event and the right number, from another journal.
#[test]
fn a_permit_of_another_data_set_settles_nothing() {
    let folder = Folder::new("other-permit");
    let ledger = open(&folder, 10.0);
    let waiting = ask(&ledger, &one(), &shop(), [1; 32]).unwrap();
    let cap = ledger.standings(&shop()).unwrap()[0].cap.unwrap();
    let mut elsewhere = Memory::new("elsewhere", cap);
    let account = Account::new("elsewhere").unwrap();
    let strange = (0..3).map(|_| {
        let permit = Filter::new(Mode::Pure).reserve(&one(), &account, &mut elsewhere);
        permit.unwrap().redeem(&one()).unwrap()
    });
    let strange = strange.last().unwrap();
    let sequence = waiting.sequence();
    assert_eq!(strange.sequence(), sequence);
    assert_eq!(
        ledger.settle(strange, "{}").err(),
        Some(Error::NotReserved { sequence })
    );
    ledger
        .settle(waiting.redeem(&one()).unwrap(), "{}")
        .unwrap();
}

/// What one record cannot hold is refused to who asked, and stops nobody else.
#[test]
fn an_answer_that_is_too_long_is_refused_and_the_ledger_goes_on() {
    let folder = Folder::new("too-long");
    let ledger = open(&folder, 10.0);
    let redeemed = reserve(&ledger).unwrap().redeem(&one()).unwrap();
    let long = format!("\"{}\"", "x".repeat(64 << 20));
    assert!(matches!(
        ledger.settle(redeemed, &long),
        Err(Error::TooLong { .. })
    ));
    let redeemed = reserve(&ledger).unwrap().redeem(&one()).unwrap();
    let receipt = ledger.settle(redeemed, &long[(32 << 20)..].replacen('x', "\"", 1));
    assert!(ledger.holds(receipt.unwrap()).unwrap());
}

#[test]
fn names_that_no_account_can_have_get_no_cap() {
    let folder = Folder::new("names");
    let ledger = open(&folder, 10.0);
    for name in ["", "a\0b", "a\nb", &"x".repeat(129)] {
        for level in [Level::Team(name.into()), Level::Analyst(name.into())] {
            let refused = ledger.lower_cap(level.clone(), epsilon(1.0), Delta::ZERO);
            assert!(matches!(refused, Err(Error::Accounting(_))), "{name:?}");
            let mut terms = terms(10.0);
            terms.caps.push((level, epsilon(1.0), Delta::ZERO));
            assert!(Ledger::open(&folder.ledger(), &terms).is_err(), "{name:?}");
        }
    }
    drop(reserve(&ledger).unwrap());
}

/// Names are texts, whatever they look like in a record.
#[test]
fn names_that_look_like_records_are_names() {
    let folder = Folder::new("odd-names");
    let odd = [
        "x\",\"statement\":null",
        "\\",
        "\\\"",
        ",\"key\":",
        "\u{202e}nna",
        "Łódź 🦀",
        "\u{fffd}",
    ];
    let ledger = open(&folder, 100.0);
    for name in odd {
        let account = shop().team(name).unwrap().analyst(name).unwrap();
        let key = Key::new(name);
        let mut charge = ledger.charge(key, [0; 32]);
        let permit = Filter::new(Mode::Pure).reserve(&one(), &account, &mut charge);
        let redeemed = permit.unwrap().redeem(&one()).unwrap();
        let answer = serde_json::to_string(name).unwrap();
        ledger.settle(redeemed, &answer).unwrap();
        ledger
            .lower_cap(Level::Team(name.into()), epsilon(50.0), Delta::ZERO)
            .unwrap();
    }
    drop(ledger);
    let ledger = open(&folder, 100.0);
    for name in odd {
        let account = shop().team(name).unwrap().analyst(name).unwrap();
        let standings = ledger.standings(&account).unwrap();
        assert_eq!(standings[1].spent.loss.units() >> 64, 1, "{name:?}");
        assert_eq!(standings[2].spent.loss.units() >> 64, 1, "{name:?}");
        assert!(standings[1].cap.is_some());
        assert!(ledger.find(Key::new(name)).unwrap().is_some());
    }
}
