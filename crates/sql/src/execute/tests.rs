//! What goes into the noise: caps, clamps, and how far neighbours are apart.

use std::fmt::Write;

use whit_core::{Bits, Ratio};
use whit_testkit::{Seeded, SeededBits};

use super::*;
use crate::catalog::Catalog;
use crate::request::{Asked, Request};
use crate::rewrite::lower;
use crate::{StablePlan, Statement};

pub(super) struct Shop {
    pub(super) catalog: Catalog,
    pub(super) tables: Tables,
    pub(super) _directory: tempfile::TempDir,
}

/// Rows of (unit, place, amount).
pub(super) type Rows = Vec<(u64, u64, String)>;

pub(super) fn shop(rows: &Rows, rows_per_unit: Option<u32>) -> Shop {
    let directory = tempfile::tempdir().expect("a directory");
    let mut text = String::from("person,place,amount\n");
    for (unit, place, amount) in rows {
        let _ = writeln!(text, "u{unit},p{place},{amount}");
    }
    #[expect(clippy::disallowed_methods, reason = "files of the test's own")]
    {
        std::fs::write(directory.path().join("visits.csv"), text).expect("written");
        std::fs::write(
            directory.path().join("twins.csv"),
            "place,twin\np0,a\np0,b\np1,a\np1,a\np2,c\n",
        )
        .expect("written");
    }
    let cap = rows_per_unit.map_or(String::new(), |cap| format!("rows_per_unit = {cap}"));
    let catalog = Catalog::parse(&format!(
        "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1\n\
         [table.visits]\nsource = \"visits.csv\"\nunit = \"person\"\n{cap}\n\
         [table.visits.column]\namount = {{ range = [-2, 10] }}\n\
         [table.twins]\nsource = \"twins.csv\"\npublic = true\n"
    ))
    .expect("a catalog");
    let tables = Tables::open(&catalog, directory.path()).expect("tables");
    Shop {
        catalog,
        tables,
        _directory: directory,
    }
}

pub(super) fn plan(shop: &Shop, sql: &str, groups: u32, rows: u32) -> PrivatePlan {
    let asked = Asked {
        epsilon: Some(whit_core::Epsilon::new(1.0).expect("an epsilon")),
        delta: Some(whit_core::Delta::new(1e-6).expect("a delta")),
        groups_per_unit: Some(groups),
        rows_per_group: Some(rows),
    };
    let request = Request::new(asked, &shop.catalog).expect("a request");
    let statement = Statement::parse(sql, &shop.tables).expect(sql);
    let stable = StablePlan::analyze(statement, &request, &shop.tables).expect(sql);
    PrivatePlan::rewrite(stable, &request, &shop.tables).expect(sql)
}

/// The sums that noise would be added to, under the hash key of a seed: the same on one thread and on many.
pub(super) fn sums_of(shop: &Shop, plan: &PrivatePlan, seed: u64) -> Groups {
    let hash = HashKey::draw(&mut Seeded::new(seed)).expect("entropy");
    let logical = lower(&plan.stable, &shop.tables, &hash).expect("a plan");
    let [narrow, wide] = [Width::Narrow, Width::Wide].map(|width| {
        let sums = run(&logical, plan, &shop.tables, width);
        sums.expect("it runs").expose()
    });
    assert_eq!(narrow, wide);
    wide
}

pub(super) const SQL: &str = "SELECT place, COUNT(*), COUNT(amount), SUM(amount), AVG(amount), COUNT(DISTINCT person) FROM visits GROUP BY place";
pub(super) const JOINED: &str = "SELECT t.twin, COUNT(*), COUNT(amount), SUM(amount), AVG(amount), COUNT(DISTINCT person) \
                      FROM visits v JOIN twins t ON v.place = t.place WHERE amount < 9 OR amount IS NULL GROUP BY t.twin";

fn random_rows(bits: &mut SeededBits) -> Rows {
    let odd = ["", "NaN", "inf", "-inf", "-0", "1e999", "x", "9.75"];
    (0..bits.below(60))
        .map(|_| {
            let amount = match bits.below(3) {
                0 => odd[bits.below(odd.len() as u64) as usize].to_owned(),
                _ => format!("{}", bits.below(40) as f64 / 2.0 - 5.0),
            };
            (bits.below(6), bits.below(5), amount)
        })
        .collect()
}

/// Distances of neighbours, in the numbers of each aggregate, over all groups: L1 and squared L2.
pub(super) fn distances(
    one: &Groups,
    other: &Groups,
    measured: &Measured,
    first: usize,
) -> (i128, i128) {
    let mut keys: Vec<Vec<u8>> = one.keys().chain(other.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    let (a, b) = (
        sums(measured, one, &keys, first),
        sums(measured, other, &keys, first),
    );
    let moves = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
    moves.fold((0, 0), |(l1, l2), step| (l1 + step, l2 + step * step))
}

/// Fails if neighbours are further apart than the noise is made for; gives the number of aggregates that are just as far.
pub(super) fn within(plan: &PrivatePlan, one: &Groups, other: &Groups, what: &str) -> u32 {
    let contribution = plan.stable.contribution;
    let (mut first, mut reached) = (0, 0);
    for measured in &plan.stable.measured {
        let (l1, l2) = match measured.reach() {
            Some(reach) => contribution.of_rows(reach),
            None => contribution.of_units(),
        };
        let (moved_l1, moved_l2) = distances(one, other, measured, first);
        let ratio = |value: i128| Ratio::from(u128::try_from(value).expect("not negative"));
        assert!(
            &ratio(moved_l1) <= l1.bound(),
            "{what}: {moved_l1} > {l1:?}"
        );
        assert!(
            &ratio(moved_l2) <= l2.square(),
            "{what}: {moved_l2} > {l2:?}"
        );
        reached += u32::from(&ratio(moved_l1) == l1.bound());
        first += measured.parts().len();
    }
    // Selection rests on this: no key gains or loses more than one unit, and no more keys than the cap do.
    let units = distances(one, other, &Measured::Units, 0);
    let most = i128::from(contribution.groups);
    assert!(units.0 <= most && units.0 == units.1, "{what}: {units:?}");
    reached
}

/// With the same key, tables that differ in one unit differ after the caps and clamps by no more than the noise is made for.
#[test]
fn neighbours_stay_within_the_sensitivity() {
    let mut bits = SeededBits::new(51);
    let mut reached = 0;
    for round in 0..24 {
        let rows = random_rows(&mut bits);
        let victim = bits.below(6);
        let less: Rows = rows.iter().filter(|row| row.0 != victim).cloned().collect();
        let cap = [None, Some(4)][round % 2];
        let (with, without) = (shop(&rows, cap), shop(&less, cap));
        let (groups, per_group) = (1 + bits.below(3) as u32, 1 + bits.below(3) as u32);
        let sql = [SQL, JOINED][round / 2 % 2];
        let (plan_with, plan_without) = (
            plan(&with, sql, groups, per_group),
            plan(&without, sql, groups, per_group),
        );
        let seed = bits.word();
        let (one, other) = (
            sums_of(&with, &plan_with, seed),
            sums_of(&without, &plan_without, seed),
        );
        reached += within(&plan_with, &one, &other, &format!("round {round}"));
    }
    assert!(reached > 20, "the bounds are met, not only kept: {reached}");
}

pub(super) fn rows_of(counts: &[(u64, u64, usize)]) -> Rows {
    let rows = counts
        .iter()
        .flat_map(|&(unit, place, count)| (0..count).map(move |at| (unit, place, format!("{at}"))));
    rows.collect()
}

/// Keeping k means k: for every cap around the number there is.
#[test]
fn caps_keep_exactly_as_many_as_they_say() {
    let shop = shop(
        &rows_of(&[(1, 0, 5), (1, 1, 2), (1, 2, 1), (1, 3, 4), (2, 0, 1)]),
        None,
    );
    for groups in 1..=5 {
        for rows in 1..=6 {
            let found = sums_of(
                &shop,
                &plan(&shop, SQL, groups, rows),
                u64::from(100 * groups + rows),
            );
            let kept = found.values().filter(|group| group.units > 0).count() as u32;
            let units: u64 = found.values().map(|group| group.units).sum();
            assert_eq!(units, u64::from(groups.min(4)) + 1, "{groups} groups");
            assert!(kept <= 5);
            for (key, group) in &found {
                let all = [5, 2, 1, 4][usize::from(key[2] - b'0')];
                let second = i128::from(key[2] == b'0');
                let first = i128::from(all.min(rows));
                let expected = match (group.units, second) {
                    (2, _) => first + second,
                    (_, 1) => 1,
                    _ => first,
                };
                assert_eq!(
                    group.parts[0], expected,
                    "{groups} groups, {rows} rows, {key:?}"
                );
            }
        }
    }
}

#[test]
fn a_declared_cap_is_enforced() {
    let rows = rows_of(&[(1, 0, 5), (1, 1, 5), (1, 2, 5), (2, 0, 2)]);
    for cap in [1, 2, 7, 14, 15, 16] {
        let shop = shop(&rows, Some(cap));
        let found = sums_of(&shop, &plan(&shop, SQL, 10, 10), 5);
        let all: i128 = found.values().map(|group| group.parts[0]).sum();
        assert_eq!(
            all,
            i128::from(cap.min(15)) + i128::from(cap.min(2)),
            "{cap}"
        );
    }
}

/// Where a unit may be in every group there is, or where its rows add nothing, no cap is needed and none is made; the bounds hold
/// all the same, and are met.
#[test]
fn caps_that_a_plan_keeps_by_itself_are_left_out() {
    let rows = rows_of(&[(1, 0, 5), (1, 1, 2), (1, 2, 3), (1, 9, 2), (2, 0, 1)]);
    let less: Rows = rows.iter().filter(|row| row.0 != 1).cloned().collect();
    let (with, without) = (shop(&rows, None), shop(&less, None));
    let grouped = |aggregate: &str| {
        format!(
            "SELECT t.twin, {aggregate} FROM twins t LEFT JOIN visits v ON v.place = t.place GROUP BY t.twin"
        )
    };
    for (sql, groups, caps) in [
        ("SELECT COUNT(*) FROM visits".to_owned(), 4, (false, true)),
        (
            "SELECT COUNT(DISTINCT person) FROM visits".to_owned(),
            1,
            (false, false),
        ),
        (grouped("COUNT(*), SUM(amount)"), 2, (true, true)),
        (grouped("COUNT(*), SUM(amount)"), 3, (false, true)),
        (grouped("COUNT(DISTINCT person)"), 3, (false, false)),
        (grouped("COUNT(DISTINCT person)"), 2, (true, false)),
    ] {
        let (one, other) = (
            plan(&with, &sql, groups, 2),
            plan(&without, &sql, groups, 2),
        );
        let stable = &one.stable;
        assert_eq!((stable.caps_groups(), stable.caps_rows()), caps, "{sql}");
        let sums = (sums_of(&with, &one, 3), sums_of(&without, &other, 3));
        assert!(
            within(&one, &sums.0, &sums.1, &sql) > 0,
            "{sql}: bounds are met"
        );
    }
}

/// The groups of a unit are chosen anew each time, each as often as the others, and not the same for every unit.
#[test]
fn kept_groups_are_drawn_evenly() {
    let rows = rows_of(&[
        (1, 0, 1),
        (1, 1, 1),
        (1, 2, 1),
        (2, 0, 1),
        (2, 1, 1),
        (2, 2, 1),
    ]);
    let shop = shop(&rows, None);
    let plan = plan(&shop, SQL, 1, 1);
    let (mut counts, mut together) = ([0; 3], 0);
    for seed in 0..60 {
        let found = sums_of(&shop, &plan, seed);
        for (key, group) in &found {
            counts[usize::from(key[2] - b'0')] += group.units;
        }
        together += u32::from(found.len() == 1);
    }
    // 120 draws of three: each 40 on average, with a standard deviation of 5; 60 pairs, a third alike, deviation 4.
    assert!(
        counts.iter().all(|count| (15..=65).contains(count)),
        "{counts:?}"
    );
    assert!((3..=40).contains(&together), "{together}");
}

#[test]
fn rows_without_a_unit_are_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    std::fs::write(
        directory.path().join("visits.csv"),
        "person,place,amount\n,p0,1\nu1,p0,1\n\n,,\nu2\n",
    )
    .expect("written");
    let catalog = Catalog::parse("[dataset]\nid=\"d\"\n[budget]\nepsilon=1\n[table.visits]\nsource=\"visits.csv\"\nunit=\"person\"").expect("a catalog");
    let tables = Tables::open(&catalog, directory.path()).expect("tables");
    let shop = Shop {
        catalog,
        tables,
        _directory: directory,
    };
    let found = sums_of(&shop, &plan(&shop, "SELECT COUNT(*) FROM visits", 1, 9), 1);
    assert_eq!(
        found
            .values()
            .map(|group| group.parts[0])
            .collect::<Vec<_>>(),
        [2]
    );
}

/// A permit for one plan does not run another, and nothing is read for it.
#[test]
fn a_permit_runs_the_plan_it_paid_for() {
    use whit_accounting::budget::{Cap, Mode};
    use whit_accounting::reserve::{Account, Filter, Memory};
    use whit_core::{Delta, Epsilon, Neighbours};
    let shop = shop(&rows_of(&[(1, 0, 1)]), None);
    let (cheap, dear) = (
        plan(&shop, "SELECT COUNT(*) FROM visits", 1, 1),
        plan(&shop, "SELECT COUNT(*) FROM visits", 1, 2),
    );
    let cap = Cap::new(
        Mode::Pure,
        Neighbours::AddRemove,
        Epsilon::new(9.0).expect("9"),
        Delta::ZERO,
    )
    .expect("a cap");
    let mut journal = Memory::new("d", cap);
    let mut pay = |plan: &PrivatePlan| {
        let account = Account::new("d").expect("a name");
        Filter::new(Mode::Pure)
            .reserve(plan.event(), &account, &mut journal)
            .expect("within the cap")
    };
    let other = execute(&dear, &shop.tables, pay(&cheap), &mut Seeded::new(1));
    assert!(matches!(other, Err(Error::OtherPlan)));
    let own = execute(&dear, &shop.tables, pay(&dear), &mut Seeded::new(1));
    assert!(own.is_ok());
}

/// The engine's plan that was made beforehand serves one execution, whose key it gets; the next has a plan and a key of its own.
#[test]
fn a_plan_that_runs_again_chooses_rows_under_another_key() {
    let rows = (0..40).map(|at| (at % 4, 0, format!("{}", at % 10)));
    let shop = shop(&rows.collect(), None);
    let plan = plan(
        &shop,
        "SELECT place, SUM(amount) FROM visits GROUP BY place",
        1,
        2,
    );
    let chosen = [1, 2, 3].map(|seed| {
        let hash = HashKey::draw(&mut Seeded::new(seed)).expect("entropy");
        let logical = plan.lowered(&shop.tables, &hash).expect("a plan");
        let ran = run(&logical, &plan, &shop.tables, Width::Narrow);
        let chosen = ran.expect("it runs").expose();
        assert_eq!(chosen, sums_of(&shop, &plan, seed));
        chosen
    });
    assert!(chosen[0] != chosen[1] && chosen[1] != chosen[2]);
}

/// The engine divides both sides of such a join, where it would hold a small table whole.
#[test]
fn a_join_with_a_large_public_table_runs_on_all_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut public = String::from("place,zone\n");
    (0..100_000).for_each(|at| writeln!(public, "p{at},{}", at % 7).expect("a string"));
    let private: String = (0..600)
        .map(|at| format!("u{},p{}\n", at % 200, at * 31))
        .collect();
    #[expect(clippy::disallowed_methods, reason = "files of the test's own")]
    for (name, text) in [
        ("visits.csv", format!("person,place\n{private}")),
        ("zones.csv", public),
    ] {
        std::fs::write(directory.path().join(name), text).expect("written");
    }
    let catalog = Catalog::parse(
        "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1\n\
         [table.visits]\nsource = \"visits.csv\"\nunit = \"person\"\n\
         [table.zones]\nsource = \"zones.csv\"\npublic = true\n",
    );
    let catalog = catalog.expect("a catalog");
    let tables = Tables::open(&catalog, directory.path()).expect("tables");
    let shop = Shop {
        catalog,
        tables,
        _directory: directory,
    };
    let sql = "SELECT zone, COUNT(*) FROM visits v JOIN zones z ON v.place = z.place GROUP BY zone";
    let plan = plan(&shop, sql, 3, 9);
    let rows: i128 = sums_of(&shop, &plan, 1)
        .values()
        .map(|group| group.parts[0])
        .sum();
    assert_eq!(rows, 600);
}

/// Plans are made and priced without the private file; running one without it says one constant thing.
#[test]
fn a_file_that_is_gone_is_missed_by_the_execution_alone() {
    let shop = shop(&rows_of(&[(1, 0, 1)]), None);
    std::fs::remove_file(shop._directory.path().join("visits.csv")).expect("removed");
    let plan = plan(&shop, SQL, 1, 1);
    let hash = HashKey::draw(&mut Seeded::new(1)).expect("entropy");
    let logical = lower(&plan.stable, &shop.tables, &hash).expect("a plan");
    let ran = run(&logical, &plan, &shop.tables, shop.tables.width());
    assert!(matches!(ran, Err(Error::Execution)));
}

/// Statements run beside each other on one engine, also inside a runtime of the caller's, where tables may be dropped too.
#[test]
fn statements_run_side_by_side_and_inside_another_runtime() {
    let shop = shop(&rows_of(&[(1, 0, 2), (2, 1, 1)]), None);
    let plan = plan(&shop, "SELECT COUNT(*) FROM visits", 1, 2);
    let check = |shop: &Shop| {
        let found = sums_of(shop, &plan, 1);
        assert_eq!(found.values().map(|group| group.parts[0]).sum::<i128>(), 3);
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| check(&shop))).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("ran"));
    });
    let outer = tokio::runtime::Builder::new_multi_thread().build();
    outer.expect("a runtime").block_on(async move {
        check(&shop);
        drop(shop);
    });
}
