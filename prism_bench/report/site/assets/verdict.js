"use strict";
// The verdict on two records that somebody chose: `analysis.comparison`, `verdict`, `estimate` and `control` once more, because
// no page can hold the pairs of a thousand records. Their figures come with the page; a test holds every answer against theirs.
(() => {
  const sum = (values) => values.reduce((total, one) => total + one, 0);
  const mean = (values) => sum(values) / values.length;
  const middle = (values) => {
    const ordered = [...values].sort((x, y) => x - y), half = ordered.length >> 1;
    return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
  };
  const share = (value) => `${(value * 100).toFixed(Math.abs(value) >= 0.1 ? 0 : 1)} %`;
  const named = (metric) => metric.replaceAll("_", " ");

  // The chance that Student's t with a whole number of degrees of freedom lies within -t and t: M. Abramowitz, I. Stegun,
  // Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
  function within(t, freedom) {
    const angle = Math.atan2(t, Math.sqrt(freedom)), cosine = Math.cos(angle), odd = freedom % 2;
    let term = odd ? cosine : 1, series = freedom > 1 ? term : 0;
    for (let k = odd ? 3 : 2; k < freedom; k += 2) series += term *= cosine * cosine * (k - 1) / k;
    return odd ? 2 / Math.PI * (angle + Math.sin(angle) * series) : Math.sin(angle) * series;
  }

  const known = new Map();
  function quantile(chance, freedom) {
    const key = `${chance} ${freedom}`;
    if (!known.has(key)) {
      let low = 0, high = 1;
      while (within(high, freedom) < 2 * chance - 1) high *= 2;
      for (let turn = 0; turn < 60; turn += 1) {
        const half = (low + high) / 2;
        if (within(half, freedom) < 2 * chance - 1) low = half; else high = half;
      }
      known.set(key, high);
    }
    return known.get(key);
  }

  // The processes of one side: `[logs, variances]` of their medians.
  function medians([logs, variances]) {
    const count = logs.length, centre = mean(logs), own = mean(variances);
    const total = count > 1 ? sum(logs.map((log) => (log - centre) ** 2)) / (count - 1) : NaN;
    return { count, centre, total, variance: count > 1 ? (total + own * count / (count - 1)) / count : NaN };
  }

  // `spread` is `[variance, freedom]` where it is known from A/A measurement.
  function estimate(a, b, spread, widening = 1) {
    const freedom = a.count + b.count - 2, own = a.variance + b.variance, log = b.centre - a.centre;
    const found = (error, free) => ({ log, error: error * widening, freedom: free, ratio: Math.exp(log) });
    if (!spread || !spread[1]) return freedom && !isNaN(own) ? found(Math.sqrt(own), freedom) : found(NaN, 0);
    const prior = spread[0] * (1 / a.count + 1 / b.count);
    if (isNaN(own)) return found(Math.sqrt(prior), spread[1]);
    return found(Math.sqrt((freedom * own + spread[1] * prior) / (freedom + spread[1])), freedom + spread[1]);
  }

  function chance({ log, error, freedom }) {
    if (!freedom || isNaN(error)) return 1;
    if (error === 0) return log === 0 ? 1 : 0;
    return Math.max(0, 1 - within(Math.abs(log) / error, freedom));
  }

  function interval({ log, error, freedom }, confidence) {
    if (!freedom || isNaN(error)) return [0, Infinity];
    const half = quantile((1 + confidence) / 2, freedom) * error;
    return [Math.exp(log - half), Math.exp(log + half)];
  }

  function floor({ a, b, spread, resolution }, rules, widening) {
    const squares = sum([a, b].filter((side) => side.count > 1).map((side) => side.total * (side.count - 1)));
    const [variance, freedom] = spread || [squares / (a.count + b.count - 2), a.count + b.count - 2];
    const reach = freedom && quantile(1 - rules.alpha / 2, freedom) + quantile(rules.power, freedom);
    const seen = freedom ? reach * Math.sqrt(variance * (1 / a.count + 1 / b.count)) : Infinity;
    return Math.max(rules.least, Math.expm1(seen * widening), rules.ticks * resolution);
  }

  // The p-values as the procedure of Benjamini and Hochberg holds them against the share of false discoveries.
  function adjusted(chances) {
    const order = chances.map((one, index) => [one, index]).sort(([x], [y]) => y - x), found = [];
    let least = 1;
    order.forEach(([one, index], turn) => { found[index] = least = Math.min(least, one * chances.length / (chances.length - turn)); });
    return found;
  }

  function worded(found, cycles, seen, significant, rules) {
    if (!found.freedom) return ["inconclusive", "one process a side says nothing of the spread between processes"];
    const word = found.log > 0 ? "slower" : "faster", [low, high] = interval(found, rules.confidence);
    if (significant && Math.abs(found.log) > Math.log1p(seen)) {
      const [least, most] = cycles ? interval(cycles, rules.confidence) : [];
      if (cycles && !(found.log > 0 ? least > 1 : most < 1)) return ["inconclusive", `${word} in time and not in cycles: the SM clock differed`];
      return [word, null];
    }
    if (Math.max(high, 1 / Math.max(low, 1e-9)) < 1 + Math.min(seen, rules.most)) return ["same", null];
    if (significant) return ["inconclusive", `withheld: ${share(Math.abs(found.ratio - 1))} ${word} is below the floor of ${share(seen)}`];
    return ["inconclusive", `${share(low - 1)} to ${share(high - 1)} is neither nothing nor a change`];
  }

  function judged(pairs, rules, widening = 1) {
    const all = pairs.map((pair) => estimate(pair.a, pair.b, pair.spread, widening)), chances = adjusted(all.map(chance));
    return pairs.map((pair, index) => {
      const cycles = pair.cycles && estimate(...pair.cycles, pair.spread, widening), seen = floor(pair, rules, widening);
      const [verdict, reason] = worded(all[index], cycles, seen, chances[index] <= rules.discoveries, rules);
      return { verdict, reason, estimate: all[index], cycles, floor: seen };
    });
  }

  // At least `count` of `all` when each comes out with the chance `one`.
  function atLeast(count, all, one) {
    let term = (1 - one) ** all, below = 0;
    for (let k = 0; k < count; k += 1) { below += term; term *= (all - k) / (k + 1) * one / (1 - one); }
    return 1 - below;
  }

  function control(judgements, rules) {
    if (!judgements.length) return { cases: 0, changed: 0, shift: 1, widening: 1, excess: false };
    const changed = judgements.filter((one) => rules.changed.includes(one.verdict)).length;
    const sizes = judgements.map((one) => one.estimate).filter((one) => one.freedom && one.error > 0)
      .map((one) => Math.abs(one.log) / one.error / quantile(0.75, one.freedom));
    return { cases: judgements.length, changed, shift: middle(judgements.map((one) => one.estimate.ratio)),
      excess: changed > 0 && atLeast(changed, judgements.length, rules.by_chance) < rules.by_chance,
      widening: sizes.length < rules.enough ? 1 : Math.max(1, middle(sizes)) };
  }

  // Why the two may not be held against each other; null where they may.
  function refused(a, b) {
    const keys = [...new Set([...Object.keys(a.protocol), ...Object.keys(b.protocol)])];
    const facts = [["machine", a.machine, b.machine], ["backend", a.backend, b.backend], ["device", a.device, b.device],
      ...keys.map((key) => [`protocol's ${key}`, a.protocol[key], b.protocol[key]])];
    const [word, one, other] = facts.find(([, one, other]) => one !== other) || [];
    return word ? { word, values: [one ?? "none", other ?? "none"] } : null;
  }

  // What was not measured on the same unit; of merged records, kernel by kernel.
  function units(a, b) {
    if (!a.units && !b.units) return a.uuid && b.uuid && a.uuid !== b.uuid ? ["the records come from two units of one device"] : [];
    const timed = (side) => new Set(Object.keys(side.cases).map((name) => name.split(/[:[]/)[0]));
    const unit = (side, kernel) => side.uuid ?? side.units?.[kernel];
    const known = [...timed(a)].filter((kernel) => timed(b).has(kernel) && unit(a, kernel) && unit(b, kernel));
    const moved = known.filter((kernel) => unit(a, kernel) !== unit(b, kernel)).length;
    return moved ? [`${moved} of ${known.length} kernels were measured on different units of one device`] : [];
  }

  function notes(a, b, noise, names) {
    const told = units(a, b);
    const differ = [...new Set([...Object.keys(a.software), ...Object.keys(b.software)])].filter((name) => a.software[name] !== b.software[name]);
    if (differ.length) told.push(`software differs: ${differ.map((name) => `${name} ${a.software[name] ?? "none"} -> ${b.software[name] ?? "none"}`).join(", ")}`);
    [a, b].forEach((side, index) => { if (!side.complete) told.push(`${names[index]} was cut short`); });
    const misfit = noise && [["device", noise.device, b.device], ["backend", noise.backend, b.backend], ["protocol", noise.protocol, b.version]].find(([, own, other]) => own !== other);
    if (misfit) told.push(`the stored noise floor is of ${misfit[0]} ${misfit[1]}, not ${misfit[2]}: it is not used`);
    for (const [mine, theirs, name] of [[a, b, names[0]], [b, a, names[1]]]) {
      const alone = Object.keys(mine.cases).filter((one) => !(one in theirs.cases));
      if (alone.length) told.push(`only ${name} has ${alone.length} case${alone.length > 1 ? "s" : ""}: ${alone.slice(0, 3).join(", ")}${alone.length > 3 ? " ..." : ""}`);
    }
    return [told, Boolean(misfit)];
  }

  function missing(pair, names) {
    const metric = pair[0][0] ?? pair[1][0] ?? "wall_time";
    for (const [index, side] of pair.entries()) {
      if (side.length === 2) return side[1].replace("{side}", () => names[index]).replace("{metric}", () => named(metric));
      if (side[0] !== metric) return `${names[index]} has no ${named(metric)}`;
    }
    return null;
  }

  const same = (x, y) => Boolean(x?.[0] && y?.[0]) && x.every((value, index) => value === null || y[index] === null || value === y[index]);

  // Records that may not be held against each other still show what each of them measured, by whichever clock.
  const apart = (name, [a, b]) => ({ case: name, metric: `${a[0]} / ${b[0]}`, verdict: "no verdict", seconds: [a[1], b[1]], spreads: [a[2], b[2]],
    reason: `two clocks: ${named(a[0])} in one record, ${named(b[0])} in the other` });

  function row(name, pair, names, noise, why) {
    const metric = pair[0][0] ?? pair[1][0] ?? "wall_time", reason = missing(pair, names);
    if (why && pair.every((side) => side.length > 2) && pair[0][0] !== pair[1][0]) return apart(name, pair);
    if (reason) return { case: name, metric, verdict: "not compared", reason, seconds: [null, null] };
    const [[, , , , , firstCycles, firstStep, firstCode], [, , , , , secondCycles, secondStep, secondCode]] = pair;
    const [a, b] = pair.map((side) => medians([side[3], side[4]]));
    const cycles = firstCycles && secondCycles ? [medians(firstCycles), medians(secondCycles)] : null;
    return { case: name, metric, seconds: [pair[0][1], pair[1][1]], spreads: [pair[0][2], pair[1][2]], identical: same(firstCode, secondCode),
      pair: { a, b, cycles, spread: noise?.floors[name]?.[metric], resolution: Math.max(firstStep, secondStep) } };
  }

  // B against A, each the side of a record. `refused` tells why there is no verdict; times, ratios and intervals are there.
  prism.compare = (a, b, noise, rules, names) => {
    const why = refused(a, b), [told, misfit] = notes(a, b, why ? null : noise, names);
    const rows = Object.keys(a.cases).filter((name) => name in b.cases)
      .map((name) => row(name, [a.cases[name], b.cases[name]], names, why || misfit ? null : noise, why));
    const timed = rows.filter((one) => one.pair), first = judged(timed.map((one) => one.pair), rules);
    const controls = first.filter((_, index) => timed[index].identical && !why && rules.control), found = control(controls, rules);
    const final = found.widening > 1 ? judged(timed.map((one) => one.pair), rules, found.widening) : first;
    timed.forEach((one, index) => {
      const { verdict, reason, estimate: ratio, cycles, floor: seen } = final[index], same = one.identical && rules.control;
      const [low, high] = interval(ratio, rules.confidence);
      Object.assign(one, { ratio: ratio.ratio, low, high, floor: seen, cycles: cycles?.ratio ?? null, verdict: same ? "same" : verdict,
        reason: !same ? reason : verdict === "same" ? null : `identical machine code; its times alone say ${verdict}` });
      if (why) Object.assign(one, { verdict: "no verdict", reason: null, floor: Infinity });
    });
    return { refused: why, notes: told, control: found, cases: rows };
  };
})();
