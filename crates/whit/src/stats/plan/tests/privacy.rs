//! Prices, sensitivities and shapes.

use super::*;

#[test]
fn charge_never_exceeds_what_was_asked_and_comes_close() {
    for (epsilon, delta) in [
        (1.0, 1e-6),
        (0.1, 1e-9),
        (1.0 / 3.0, 1e-5),
        (1e-3, 1e-12),
        (7.7, 0.01),
    ] {
        for request in variants(epsilon, delta) {
            let plan = Plan::new(request.clone()).expect("can be answered");
            let charge = plan.charge();
            assert!(
                charge.epsilon <= request.epsilon && charge.delta <= request.delta,
                "{request:?}"
            );
            // Only the parts of a variance round their Gaussian scales apart from each other.
            assert!(
                charge.epsilon.value() >= epsilon * (1.0 - 1e-6),
                "{request:?}: {charge:?}"
            );
            assert_eq!(charge.neighbours, request.relation);
        }
    }
}

#[test]
fn parts_share_the_charge_evenly() {
    let check = |statistic: Statistic, relation, parts: usize| {
        let mut request = request(statistic, 1.0);
        request.relation = relation;
        let parts_of = |request: &Request| {
            let plan = Plan::new(request.clone()).expect("can be answered");
            match plan.event().mechanism() {
                Mechanism::Composition(parts) => parts.clone(),
                single => vec![single.clone()],
            }
        };
        let laplace = parts_of(&request);
        assert_eq!(laplace.len(), parts);
        for part in &laplace {
            let epsilon = whit_accounting::pure::epsilon(part).expect("Laplace");
            assert!((epsilon.value() * parts as f64 - 1.0).abs() < 1e-14);
        }
        request.mechanism = Some(NoiseKind::Gaussian);
        request.delta = Delta::new(1e-6).expect("a unit");
        let rho = |part| whit_accounting::zcdp::rho(part).expect("Gaussian").value();
        let rhos: Vec<f64> = parts_of(&request).iter().map(rho).collect();
        assert!(rhos.iter().all(|rho| (rho / rhos[0] - 1.0).abs() < 1e-6));
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    check(Statistic::Sum, added, 1);
    check(Statistic::Mean, added, 1);
    check(Statistic::Mean, replaced, 1);
    check(Statistic::Variance, added, 3);
    check(Statistic::Stddev, added, 3);
    check(Statistic::Variance, replaced, 2);
}

/// What is told before data is read is the search and a bound on the rest, the same for all ranges that can be found.
#[test]
fn auto_is_priced_without_its_range() {
    for (mechanism, delta) in [(None, 0.0), (Some(NoiseKind::Gaussian), 1e-6)] {
        let mut request = request(Statistic::Mean, 1.0);
        request.range = Some(Range::Auto);
        (request.mechanism, request.delta) = (mechanism, Delta::new(delta).expect("a unit"));
        let plan = Plan::new(request).expect("can be answered");
        let Mechanism::Composition(parts) = plan.event().mechanism() else {
            panic!("two parts")
        };
        let search = whit_accounting::pure::epsilon(&parts[0]).expect("Laplace");
        assert_eq!((parts.len(), search.value()), (2, 0.25));
        let rest = whit_core::Ratio::from_f64(0.75).expect("positive");
        match &parts[1] {
            Mechanism::Pure { epsilon } => assert_eq!((epsilon, delta), (&rest, 0.0)),
            Mechanism::Approximate {
                epsilon,
                delta: given,
            } => {
                assert_eq!((epsilon, given.ratio().to_f64_up()), (&rest, delta));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(plan.charge().epsilon.value(), 1.0);
    }
}

#[test]
fn shape_is_the_same_for_neighbours() {
    let long = "7".repeat(1_000_000);
    let poison = [
        "NaN,z",
        "inf,z",
        "-1e400,z",
        "1e308,z",
        "SECRET-4711,z",
        "",
        "\"",
        "1",
        "1,2,3,4",
    ];
    for request in variants(1.0, 1e-6) {
        let plan = Plan::new(request.clone()).expect("can be answered");
        let mut entropy = Seeded::new(7);
        let mut public = |csv: String| {
            let outcome = plan.release(csv.as_bytes(), &mut entropy);
            let outcome = outcome.expect("answered");
            // A range that was searched for is part of what was released, and so is what follows from it.
            if request.range == Some(Range::Auto) {
                return (vec![], vec![], outcome.event);
            }
            let shape = match outcome.value {
                Value::Histogram { bins } => bins.iter().map(|bin| (bin.low, bin.high)).collect(),
                Value::Quantiles {
                    quantiles,
                    rank_error,
                } => quantiles.iter().map(|at| (at.q, rank_error)).collect(),
                Value::Quantile { rank_error, .. } => vec![(0.5, rank_error)],
                Value::Mode { count_error, .. } => vec![(1.0, count_error)],
                Value::Top { top, count_error } => vec![(top.len() as f64, count_error)],
                Value::Marginals { cells, .. } => vec![(cells.len() as f64, 0.0)],
                _ => vec![],
            };
            (shape, outcome.noise, outcome.event)
        };
        let clean = public("x,who\n1,a\n2,b\n".into());
        let long = (request.unit.is_none() && request.mechanism.is_none()).then_some(&*long);
        for row in poison.into_iter().chain(long) {
            assert_eq!(public(format!("x,who\n1,a\n{row}\n2,b\n")), clean);
        }
    }
}

/// At ε = 1 a Laplace scale is the sensitivity itself, in the unit of the values (three times that for each part of a variance).
#[test]
fn noise_covers_all_rows_of_a_unit() {
    let scales = |statistic: &Statistic, relation, at_most: Option<u32>| -> Vec<f64> {
        let mut request = request(statistic.clone(), 1.0);
        if request.range.is_some() {
            request.range = Some(Bounds::new(-5.0, 3.0).expect("a range").into());
        }
        request.relation = relation;
        if let Some(at_most) = at_most {
            request = with_unit(request, at_most);
        }
        let noise = answer(request, "x,who\n1,a\n").expect("answered").noise;
        noise.iter().map(|noise| noise.scale).collect()
    };
    let distinct = Statistic::Distinct {
        values_per_unit: None,
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    let histogram = Statistic::Histogram { bins: 5 };
    for (statistic, relation, at_most, expected) in [
        (&Statistic::Count, added, None, vec![1.0]),
        (&Statistic::Count, added, Some(3), vec![3.0]),
        (&Statistic::Count, replaced, Some(3), vec![3.0]),
        (&Statistic::Sum, added, None, vec![5.0]),
        (&Statistic::Sum, added, Some(3), vec![15.0]),
        (&Statistic::Sum, replaced, None, vec![8.0]),
        (&Statistic::Sum, replaced, Some(3), vec![24.0]),
        (&Statistic::Mean, added, None, vec![8.0]),
        (&Statistic::Mean, added, Some(3), vec![24.0]),
        (&Statistic::Mean, replaced, None, vec![8.0]),
        (&Statistic::Mean, replaced, Some(3), vec![48.0]),
        // Three parts: 3 w/2, 3 w²/8 and 3 with w = 8; two where the count is public.
        (&Statistic::Variance, added, None, vec![12.0, 24.0, 3.0]),
        (&Statistic::Variance, added, Some(3), vec![36.0, 72.0, 9.0]),
        (&Statistic::Variance, replaced, None, vec![16.0, 32.0]),
        (
            &Statistic::Stddev,
            replaced,
            Some(3),
            vec![72.0, 144.0, 9.0],
        ),
        (&histogram, added, None, vec![1.0]),
        (&histogram, added, Some(3), vec![3.0]),
        (&histogram, replaced, None, vec![2.0]),
        (&histogram, replaced, Some(3), vec![6.0]),
        (&Statistic::Bounds, added, None, vec![1.0]),
        (&Statistic::Bounds, added, Some(3), vec![3.0]),
        (&Statistic::Bounds, replaced, Some(3), vec![6.0]),
        (&distinct, added, None, vec![1.0]),
        (&distinct, replaced, None, vec![1.0]),
        (&distinct, added, Some(3), vec![3.0]),
        (&distinct, replaced, Some(3), vec![3.0]),
        (&marginals(), added, None, vec![1.0]),
        (&marginals(), added, Some(3), vec![3.0]),
        (&marginals(), replaced, Some(3), vec![6.0]),
    ] {
        let found = scales(statistic, relation, at_most);
        let close = |(found, expected): (&f64, &f64)| (found / expected - 1.0).abs() < 1e-12;
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(close),
            "{statistic} {relation} {at_most:?}: {found:?}"
        );
    }
}

/// What a choice may miss by is its scale times a logarithm: at ε = 1, `2Δ ln(N/β)` for ranks and `S ln(n/β)` for counts.
#[test]
fn choices_cover_all_rows_of_a_unit() {
    let error = |statistic: Statistic, relation, at_most: Option<u32>| {
        let mut request = request(statistic, 1.0);
        request.relation = relation;
        if let Some(at_most) = at_most {
            request = with_unit(request, at_most);
        }
        match answer(request, "x,who\n1,a\n").expect("answered").value {
            Value::Quantile { rank_error, .. } | Value::Quantiles { rank_error, .. } => rank_error,
            Value::Mode { count_error, .. } | Value::Top { count_error, .. } => count_error,
            other => panic!("{other:?} is no choice"),
        }
    };
    let (added, replaced) = (Neighbours::AddRemove, Neighbours::ReplaceOne);
    let (tail, tenth) = (quantiles(&[0.9]), quantiles(&[0.1]));
    let several = quantiles(&[0.25, 0.5, 0.75]);
    let categories = categories();
    let mode = Statistic::Mode { categories };
    for (statistic, once, relation, at_most, times) in [
        // Half a rank under add/remove, a whole one under replace-one.
        (&Statistic::Median, &Statistic::Median, added, Some(3), 3.0),
        (&Statistic::Median, &Statistic::Median, replaced, None, 2.0),
        (
            &Statistic::Median,
            &Statistic::Median,
            replaced,
            Some(3),
            6.0,
        ),
        (&tail, &Statistic::Median, added, None, 1.8),
        (&tenth, &Statistic::Median, added, None, 1.8),
        (&tail, &Statistic::Median, replaced, Some(2), 4.0),
        (&mode, &mode, added, Some(3), 3.0),
        (&mode, &mode, replaced, None, 2.0),
        (&mode, &mode, replaced, Some(3), 6.0),
        (&top(2), &top(2), added, Some(3), 3.0),
        (&top(2), &top(2), replaced, Some(3), 6.0),
    ] {
        let found = error(statistic.clone(), relation, at_most) / error(once.clone(), added, None);
        assert!(
            (found / times - 1.0).abs() < 1e-9,
            "{statistic} {relation} {at_most:?}: {found}"
        );
    }
    // Of several, but for the row on each of two levels in which a target may fall.
    let beyond_rows = |at_most| error(several.clone(), added, at_most) - 2.0;
    assert!((beyond_rows(Some(3)) / beyond_rows(None) - 3.0).abs() < 1e-9);
    // ln(4/0.05): no factor two under add/remove, since counts are monotone.
    assert!((error(mode, added, None) - 80_f64.ln()).abs() < 1e-9);
    // Two rounds at half of epsilon, and half of what may miss for each.
    assert!((error(top(2), added, None) - 2.0 * 160_f64.ln()).abs() < 1e-9);
}

/// From the file to the answer: a person with three rows, or nobody.
#[test]
fn whole_answers_hide_a_whole_unit() {
    let seen = |epsilon: f64| {
        let mut entropies = (Seeded::new(21), Seeded::new(22));
        let event = |csv: &str, entropy: &mut Seeded| {
            let mut request = request(Statistic::Count, epsilon);
            (request.unit, request.rows_per_unit) = (Some("who".into()), Some(3));
            let plan = Plan::new(request).expect("can be answered");
            let answer = plan.execute(csv.as_bytes(), entropy).expect("answered");
            matches!(answer.value, Value::Single { answer, .. } if answer >= 3.0)
        };
        let claim = whit_audit::Claim::pure(Epsilon::new(1.0).expect("a unit"));
        let alpha = whit_audit::Alpha::new(1e-6).expect("a level");
        let (with, without) = ("who,x\na,1\na,1\na,1\na,1\n", "who,x\n");
        whit_audit::falsify(
            claim,
            10_000,
            alpha,
            || event(with, &mut entropies.0),
            || event(without, &mut entropies.1),
        )
        .expect("enough trials")
    };
    let honest = seen(1.0);
    assert!(
        !honest.convicted && honest.epsilon_lower > 0.75,
        "{honest:?}"
    );
    assert!(seen(1.3).convicted);
}
