//! Plans with something planted in them: none runs, and all that were not touched do.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, LogicalPlanBuilder, col, lit};

use super::*;
use crate::PrivatePlan;
use crate::engine::Width;
use crate::error::Error;
use crate::execute::run;
use crate::execute::tests::{JOINED, SQL, Shop, plan, rows_of, shop};
use crate::rewrite::{HashKey, lower};
use whit_testkit::Seeded;

fn world(cap: Option<u32>) -> Shop {
    shop(&rows_of(&[(1, 0, 3), (1, 1, 2), (2, 0, 1)]), cap)
}

fn lowered(shop: &Shop, plan: &PrivatePlan) -> LogicalPlan {
    let hash = HashKey::draw(&mut Seeded::new(1)).expect("entropy");
    lower(&plan.stable, &shop.tables, &hash).expect("a plan")
}

/// As it runs on one thread and on many; both are judged alike.
fn passes(shop: &Shop, logical: &LogicalPlan, plan: &PrivatePlan) -> bool {
    let [narrow, wide] = [Width::Narrow, Width::Wide].map(|width| {
        let physical = shop.tables.engine().physical(logical, width);
        verify(physical.expect("planned").as_ref(), &plan.stable)
    });
    assert_eq!(narrow, wide, "{logical:?}");
    wide
}

/// Plans of all shapes pass as they are.
#[test]
fn plans_are_recognised_as_they_were_made() {
    let statements = [
        SQL,
        JOINED,
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(DISTINCT person) FROM visits WHERE amount > 2 AND place = 'p1'",
        "SELECT t.twin, SUM(amount) FROM twins t LEFT JOIN visits v ON v.place = t.place GROUP BY t.twin",
        "SELECT b.twin, AVG(amount) FROM twins a JOIN twins b ON a.place = b.place JOIN visits v ON v.place = a.place \
         WHERE a.twin <> b.twin AND amount > 1 GROUP BY b.twin",
        "SELECT COUNT(*) FILTER (WHERE amount > 3), SUM(amount * 2) FROM visits v JOIN twins t ON v.place = t.place WHERE TRUE",
    ];
    for cap in [None, Some(2)] {
        let shop = world(cap);
        for sql in statements {
            let plan = plan(&shop, sql, 2, 3);
            assert!(passes(&shop, &lowered(&shop, &plan), &plan), "{sql}");
        }
    }
}

/// Changes every node for which `change` gives another, and counts them.
fn planted(
    logical: &LogicalPlan,
    change: impl Fn(&LogicalPlan) -> Option<LogicalPlan>,
) -> LogicalPlan {
    let mut changed = 0;
    let done = logical.clone().transform_up(|node| {
        Ok(match change(&node) {
            Some(other) => {
                changed += 1;
                Transformed::yes(other)
            }
            None => Transformed::no(node),
        })
    });
    assert!(changed > 0, "nothing was planted");
    let done = done.expect("a tree").data;
    done.recompute_schema().expect("a schema")
}

fn check(what: &str, change: impl Fn(&LogicalPlan) -> Option<LogicalPlan>) {
    let shop = world(Some(4));
    let plan = plan(&shop, JOINED, 2, 3);
    let logical = planted(&lowered(&shop, &plan), change);
    assert!(!passes(&shop, &logical, &plan), "{what}");
    let ran = run(&logical, &plan, &shop.tables, shop.tables.width());
    assert!(matches!(ran, Err(Error::Execution)), "{what} ran");
}

fn filter_on(node: &LogicalPlan, name: &str) -> Option<(Expr, LogicalPlan)> {
    match node {
        LogicalPlan::Filter(filter) if filter.predicate.to_string().contains(name) => {
            Some((filter.predicate.clone(), filter.input.as_ref().clone()))
        }
        _ => None,
    }
}

fn built(plan: LogicalPlanBuilder) -> Option<LogicalPlan> {
    plan.build().ok()
}

#[test]
fn a_plan_without_a_cap_does_not_run() {
    for rank in [
        "group_rank",
        "row_rank",
        "unit_rank",
        "unit IS NOT NULL",
        "whit_all",
    ] {
        let without = |node: &LogicalPlan| filter_on(node, rank).map(|(_, input)| input);
        if rank != "whit_all" {
            check(rank, without);
        }
        check(rank, |node| {
            let (_, input) = filter_on(node, rank)?;
            built(LogicalPlanBuilder::from(input).filter(lit(true)).ok()?)
        });
    }
}

#[test]
fn a_plan_with_another_cap_does_not_run() {
    for (rank, most) in [("group_rank", 2), ("row_rank", 3), ("unit_rank", 4)] {
        for other in [most - 1, most + 1, u64::MAX] {
            check(rank, |node| {
                let (_, input) = filter_on(node, rank)?;
                let capped = LogicalPlanBuilder::from(input).filter(col(rank).lt_eq(lit(other)));
                built(capped.ok()?)
            });
        }
        check(rank, |node| {
            let (_, input) = filter_on(node, rank)?;
            let capped = LogicalPlanBuilder::from(input).filter(col(rank).gt_eq(lit(most)));
            built(capped.ok()?)
        });
    }
}

/// Ranks in other partitions cap something else: the rows of a group, say, and not those of a unit.
#[test]
fn a_plan_that_ranks_otherwise_does_not_run() {
    for rank in ["group_rank", "row_rank", "unit_rank"] {
        for by in [vec![col(KEY)], vec![], vec![col(KEY), col(UNIT)]] {
            check(rank, |node| {
                let LogicalPlan::Window(window) = node else {
                    return None;
                };
                let mut window = window.clone();
                let Expr::Alias(alias) = &mut window.window_expr[0] else {
                    return None;
                };
                let named = alias.name == rank;
                let Expr::WindowFunction(function) = alias.expr.as_mut() else {
                    return None;
                };
                function.params.partition_by = by.clone();
                named.then_some(LogicalPlan::Window(window))
            });
        }
        check(rank, |node| {
            let LogicalPlan::Window(window) = node else {
                return None;
            };
            let mut window = window.clone();
            let Expr::Alias(alias) = &mut window.window_expr[0] else {
                return None;
            };
            let named = alias.name == rank;
            let Expr::WindowFunction(function) = alias.expr.as_mut() else {
                return None;
            };
            // In the order of the file, so that others' rows decide.
            function.params.order_by.clear();
            named.then_some(LogicalPlan::Window(window))
        });
    }
}

/// A limit on raw rows lets one person push out another.
#[test]
fn a_plan_that_stops_early_does_not_run() {
    let limit = |node: &LogicalPlan| {
        Some(LogicalPlan::Limit(Limit {
            skip: None,
            fetch: Some(Box::new(lit(1_i64))),
            input: Arc::new(node.clone()),
        }))
    };
    check("scan", |node| match node {
        LogicalPlan::TableScan(_) => limit(node),
        _ => None,
    });
    check("join", |node| match node {
        LogicalPlan::Join(_) => limit(node),
        _ => None,
    });
    check("distinct", |node| match node {
        LogicalPlan::Join(_) => {
            let columns: Vec<Expr> = node
                .schema()
                .columns()
                .into_iter()
                .map(Expr::Column)
                .collect();
            let distinct =
                LogicalPlanBuilder::from(node.clone()).aggregate(columns, Vec::<Expr>::new());
            built(distinct.ok()?)
        }
        _ => None,
    });
    check("rows twice", |node| match node {
        LogicalPlan::Filter(_) if filter_on(node, "unit IS").is_some() => {
            let twice = LogicalPlanBuilder::from(node.clone()).union(node.clone());
            built(twice.ok()?)
        }
        _ => None,
    });
}

/// Caps are the same and what is summed is not: other clamps, another unit of the sum, another aggregate.
#[test]
fn a_plan_of_other_parts_does_not_run() {
    let shop = world(None);
    let of = |sql: &str| plan(&shop, sql, 2, 3);
    let own = of("SELECT SUM(amount) FROM visits");
    assert!(passes(&shop, &lowered(&shop, &own), &own));
    for other in [
        "SELECT SUM(amount * 2) FROM visits",
        "SELECT SUM(amount + 0) FROM visits",
        "SELECT COUNT(amount) FROM visits",
        "SELECT SUM(amount) FILTER (WHERE amount > 1) FROM visits",
        "SELECT AVG(amount) FROM visits",
        "SELECT place, SUM(amount) FROM visits GROUP BY place",
    ] {
        assert!(!passes(&shop, &lowered(&shop, &of(other)), &own), "{other}");
    }
}
