"use strict";
// The verdict on two records that somebody chose: `analysis.compare.comparison`, `verdict`, `estimate` and `control` once more, because
// no page can hold the pairs of a thousand records. Their figures come with the page; a test holds every answer against theirs.
(() => {
  const sum = (values) => values.reduce((total, one) => total + one, 0);
  const mean = (values) => sum(values) / values.length;
  const middle = (values) => {
    const ordered = [...values].sort((x, y) => x - y), half = ordered.length >> 1;
    return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
  };
  const share = (value) => `${(value * 100).toFixed(Math.abs(value) >= 0.1 ? 0 : 1)} %`;
  const change = (ratio) => {
    const text = ((ratio - 1) * 100).toFixed(1).replace(/^-0\.0$/, "0.0");
    return `${text.startsWith("-") ? "" : "+"}${text} %`;
  };
  const changeRange = (low, high) => `${change(low).replace(" %", "")} to ${change(high)}`;
  Object.assign(prism, { change, changeRange });
  const named = (metric) => metric.replaceAll("_", " ");

  // The chance that Student's t with a whole number of degrees of freedom is within -t and t: M. Abramowitz, I. Stegun,
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
  function medians([logs, variances], rules) {
    const count = logs.length, centre = mean(logs), own = mean(variances);
    const total = count > 1 ? sum(logs.map((log) => (log - centre) ** 2)) / (count - 1) : NaN;
    return { logs, count, centre, total, spread: Math.max(...logs) - Math.min(...logs),
      variance: count > 1 ? Math.max(total, rules.sampled * own) / count : NaN };
  }

  // `spread` is `[variance, freedom]` where it is known from A/A measurement.
  function estimate(a, b, spread, rules) {
    const freedom = a.count + b.count - 2, own = a.variance + b.variance, log = b.centre - a.centre;
    const found = (error, free) => ({ log, error, freedom: free, ratio: Math.exp(log) });
    if (!spread || !spread[1]) return freedom && !isNaN(own) ? found(Math.sqrt(own), freedom) : found(NaN, 0);
    const prior = spread[0] * (1 / a.count + 1 / b.count);
    if (isNaN(own)) return found(Math.sqrt(prior), spread[1]);
    if (own > rules.outgrown * prior) return found(Math.sqrt(own), freedom);
    return found(Math.sqrt(Math.max(prior, (freedom * own + spread[1] * prior) / (freedom + spread[1]))), freedom + spread[1]);
  }

  const divided = ({ log, error, freedom }, shift, widening) => ({ log: log - shift.log, freedom,
    error: Math.hypot(error * widening, shift.error), ratio: Math.exp(log - shift.log) });

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

  // The spread of both sides together: `[variance, freedom]`.
  function pooled([a, b]) {
    const squares = sum([a, b].filter((side) => side.count > 1).map((side) => side.total * (side.count - 1)));
    return [squares / (a.count + b.count - 2), a.count + b.count - 2];
  }

  function seen([variance, freedom], [a, b], shift, rules, widening) {
    const reach = freedom && quantile(1 - rules.alpha / 2, freedom) + quantile(rules.power, freedom);
    const change = freedom ? widening * Math.log1p(Math.expm1(reach * Math.sqrt(variance * (1 / a + 1 / b)))) : Infinity;
    return Math.expm1(shift.error ? Math.hypot(change, reach * shift.error) : change);
  }

  // Whether so many processes a side exclude that they were dealt into two sides by chance.
  function supported(a, b, rules) {
    let ways = 1;
    for (let k = 1; k <= a; k += 1) ways = ways * (b + k) / k;
    return 2 / ways <= rules.supported;
  }

  // By how much processes of one side differ in this suite.
  function levels(pairs, rules) {
    const spreads = pairs.map(({ a, b }) => Math.max(a.spread, b.spread)).sort((x, y) => y - x);
    const few = pairs.some(({ a, b }) => Math.min(a.count, b.count) < rules.few);
    return spreads.length ? spreads[few ? 0 : Math.min(Math.floor(rules.trimmed * spreads.length), spreads.length - 1)] : 0;
  }

  // The p-values as the procedure of Benjamini and Hochberg holds them against the share of false discoveries.
  function adjusted(chances) {
    const order = chances.map((one, index) => [one, index]).sort(([x], [y]) => y - x), found = [];
    let least = 1;
    order.forEach(([one, index], turn) => { found[index] = least = Math.min(least, one * chances.length / (chances.length - turn)); });
    return found;
  }

  // Whether A/A measurement showed that cycles vary less than times.
  const isQuieter = ({ cycles, spread, cyclesSpread }) => Boolean(cycles && spread && cyclesSpread && cyclesSpread[0] < spread[0]);

  // The same of cases of known noise, each in its quieter measure, where it no longer holds for more than a few.
  function stale(pairs, rules) {
    const known = pairs.filter((pair) => pair.spread).map((pair) => isQuieter(pair) ? { a: pair.cycles[0], b: pair.cycles[1], spread: pair.cyclesSpread } : pair);
    const alone = Math.floor(rules.trimmed * known.length);
    const factor = ({ a, b, spread }) => {
      const [variance, freedom] = pooled([a, b]);
      return freedom && spread[0] ? variance / spread[0] : 1;
    };
    const spreads = known.filter((pair) => factor(pair) > rules.stale).map(({ a, b }) => Math.max(a.spread, b.spread)).sort((x, y) => y - x);
    return spreads.length > alone ? spreads[alone] : 0;
  }

  // The ratio of B's SM clock to A's; null where the sides do not differ in it.
  function clockChange(pair, rules) {
    const [a, b] = [pair.a, pair.b].map((side, index) => medians([side.logs.map((log, k) => pair.cycles[index].logs[k] - log), side.logs.map(() => 0)], rules));
    const clocks = estimate(a, b, null, rules);
    return Math.abs(clocks.log) < rules.least_clock || clocks.freedom && chance(clocks) > rules.clock_level ? null : clocks;
  }

  // How much of the log `change` in time a change of the clock explains at most; 0 if it works against it.
  function explained(clocks, change, rules) {
    if (clocks.log * change >= 0) return 0;
    return clocks.freedom ? Math.abs(clocks.log) + quantile(1 - rules.clock_level / 2, clocks.freedom) * clocks.error : Infinity;
  }

  // The p-value of a change that the clock does not explain, by cycles or by the rest of the time.
  function beyond(time, cycles, most) {
    const change = time.estimate.log, rest = { ...time.estimate, log: change - Math.sign(change) * most };
    const shown = [[cycles.estimate, cycles.floor], [rest, time.floor]].filter(([one, least]) => one.log * change > 0 && Math.abs(one.log) > Math.log1p(least));
    return Math.min(1, 2 * Math.min(1, ...shown.map(([one]) => chance(one))));
  }

  function evidence(pair, shift, rules, widening, levels) {
    const counts = [pair.a.count, pair.b.count], least = Math.max(rules.least, rules.ticks * pair.resolution);
    const level = supported(...counts, rules) ? 0 : levels[pair.spread ? 1 : 0];
    const measure = (sides, spread) => {
      const used = spread || pooled(sides);
      return { estimate: divided(estimate(...sides, spread, rules), shift, widening), spread: used, known: Boolean(spread),
        floor: Math.max(least, seen(used, counts, shift, rules, widening)) };
    };
    const time = measure([pair.a, pair.b], pair.spread), base = { time, counts, least, levels: level, shift, widening };
    if (!pair.cycles) return { ...base, cycles: null, deciding: time, clock: null, beyond: 0 };
    const cycles = measure(pair.cycles, pair.cyclesSpread || pair.spread), clocks = clockChange(pair, rules), change = time.estimate.log;
    const most = clocks ? explained(clocks, change, rules) : 0, out = most ? beyond(time, cycles, most) : 0;
    const alike = clocks === null && cycles.estimate.log * change > 0;
    const quiet = isQuieter(pair) && cycles.estimate.freedom > counts[0] + counts[1] - 2;
    return { ...base, cycles, deciding: quiet && alike ? cycles : time, clock: most ? clocks.log : null, beyond: out };
  }

  function withheld(one, confirmed, word, size, rules) {
    const ratio = one.deciding.estimate;
    if (one.clock !== null && !confirmed)
      return `${size} ${word} in time and ${change(one.cycles.estimate.ratio)} in cycles: the SM clock was ${share(Math.abs(Math.expm1(one.clock)))} ${one.clock < 0 ? "lower" : "higher"}`;
    if (Math.abs(ratio.log) <= one.levels)
      return `${size} ${word}, but processes of one side differ by ${share(Math.expm1(one.levels))} here, and ${Math.min(...one.counts)} a side do not exclude that: ${rules.needed} do, or a noise floor`;
    return null;
  }

  // How many processes a side would decide the case if they differed as these do.
  function needed(one, suite, rules) {
    const { estimate: ratio, spread, known } = one.deciding, [a, b] = one.counts;
    const variance = Math.max(ratio.error ** 2 - one.shift.error ** 2, 0) / (1 / a + 1 / b), stored = ratio.freedom - (a + b - 2);
    const least = rules.discoveries * (suite.shown + 1) / Math.max(suite.cases, 1);
    for (const count of rules.named.filter((one) => one > Math.max(a, b))) {
      const later = { log: ratio.log, error: Math.hypot(Math.sqrt(variance * 2 / count), one.shift.error), freedom: stored + 2 * count - 2 };
      const change = seen([spread[0], known ? spread[1] : 2 * count - 2], [count, count], one.shift, rules, one.widening);
      const [low, high] = interval(later, rules.confidence);
      const same = Math.max(high, 1 / Math.max(low, 1e-9)) < 1 + rules.most && Math.max(low, 1 / high) <= 1 + rules.least;
      if (same || chance(later) <= least && Math.abs(ratio.log) > Math.log1p(Math.max(one.least, change))) return `about ${count} processes a side would decide`;
    }
    return `more than ${Math.max(...rules.named, a, b)} processes a side are needed`;
  }

  function worded(one, significant, confirmed, suite, rules) {
    const ratio = one.deciding.estimate, least = one.deciding.floor;
    if (!ratio.freedom) return ["inconclusive", "one process a side does not show the spread between processes"];
    const word = ratio.log > 0 ? "slower" : "faster", [low, high] = interval(ratio, rules.confidence), size = share(Math.abs(ratio.ratio - 1));
    if (significant && Math.abs(ratio.log) > Math.log1p(least)) {
      const reason = withheld(one, confirmed, word, size, rules);
      return reason ? ["inconclusive", reason] : [word, null];
    }
    const within = Math.max(high, 1 / Math.max(low, 1e-9)) - 1, beyond = Math.max(low, 1 / high) > 1 + rules.least;
    if (within < rules.most && !beyond) return ["same", `within ${share(Math.max(1, Math.ceil(+(within * 1e3).toFixed(6))) / 1e3)}`];
    const more = needed(one, suite, rules), ends = `${share(low - 1)} to ${share(high - 1)}`;
    if (low <= 1 && 1 <= high) return ["inconclusive", `${ends}: the interval neither shows nor excludes a change; ${more}`];
    if (Math.abs(ratio.log) <= Math.log1p(least)) return ["inconclusive", `withheld: ${size} ${word} is below the noise floor of ${share(least)}; ${more}`];
    const among = suite.cases > 1 ? ` among ${suite.cases} cases` : "", few = Math.min(...one.counts);
    return ["inconclusive", `${size} ${word} (${ends}), not proven${among} by ${few} process${few === 1 ? "" : "es"} a side; ${more}`];
  }

  const STILL = { log: 0, error: 0 };
  function judged(pairs, rules, widening = 1, shifts = pairs.map(() => STILL)) {
    const unknown = pairs.filter((pair) => !pair.spread), both = [levels(unknown.length >= rules.witnesses ? unknown : pairs, rules), stale(pairs, rules)];
    const shown = pairs.map((pair, index) => evidence(pair, shifts[index], rules, widening, both));
    const confirming = (one) => Math.max(chance(one.deciding.estimate), one.beyond);
    const alone = adjusted(shown.map((one) => chance(one.deciding.estimate))), all = adjusted(shown.map(confirming));
    const suite = { cases: pairs.length, shown: all.filter((p) => p <= rules.discoveries).length };
    return shown.map((one, index) => {
      let [verdict, reason] = worded(one, alone[index] <= rules.discoveries, all[index] <= rules.discoveries, suite, rules);
      if (one.cycles && one.deciding === one.cycles && verdict !== "inconclusive") {
        const [low, high] = interval(one.cycles.estimate, rules.confidence);
        const words = `in cycles ${change(one.cycles.estimate.ratio)} (${changeRange(low, high)}) at equal SM clocks`;
        reason = reason ? `${reason} ${words}` : words;
      }
      return { verdict, reason, estimate: one.time.estimate, cycles: one.cycles?.estimate, floor: one.deciding.floor };
    });
  }

  // At least `count` of `all` when each comes out with the chance `one`.
  function atLeast(count, all, one) {
    let term = (1 - one) ** all, below = 0;
    for (let k = 0; k < count; k += 1) { below += term; term *= (all - k) / (k + 1) * one / (1 - one); }
    return 1 - below;
  }

  // Huber's regression of `values` on 1 and, where `inverse` is given, on it: [[factor, offset], [variance, both, variance]].
  function huber(inverse, values, errors, rules) {
    const unit = inverse ? Math.sqrt(mean(inverse.map((x) => x * x))) : 1, other = inverse ? inverse.map((x) => x / unit) : values.map(() => 0);
    let weights = errors.map((error) => error ** -2), scale = 1, found = [0, 0], normal = [1, 0, 1], size = 0;
    for (let turn = 0; turn < rules.turns; turn += 1) {
      const total = (form) => sum(weights.map((weight, k) => weight * form(k)));
      normal = [sum(weights), total((k) => other[k]), inverse ? total((k) => other[k] ** 2) : 1];
      const sides = [total((k) => values[k]), inverse ? total((k) => other[k] * values[k]) : 0];
      size = normal[0] * normal[2] - normal[1] ** 2;
      if (size > 0) found = [(sides[0] * normal[2] - sides[1] * normal[1]) / size, (sides[1] * normal[0] - sides[0] * normal[1]) / size];
      const away = values.map((value, k) => Math.abs(value - found[0] - found[1] * other[k]) / errors[k]);
      scale = Math.max(1, middle(away) / 0.6745);
      weights = errors.map((error, k) => error ** -2 * Math.min(1, rules.huber * scale / Math.max(away[k], 1e-12)));
    }
    const factor = size > 0 ? scale ** 2 / size : 0;
    return [[found[0], found[1] / unit], [normal[2] * factor, -normal[1] * factor / unit, inverse ? normal[0] * factor / unit ** 2 : 0]];
  }

  // What the clock does not explain: of time and cycles the one nearer to nothing.
  function unexplained({ cycles }, { log }) {
    const other = cycles ? cycles[1].centre - cycles[0].centre : log;
    return log * other <= 0 && cycles ? 0 : Math.abs(other) < Math.abs(log) ? other : log;
  }

  function at(fit, seconds) {
    const inverse = fit.offset ? 1 / Math.min(Math.max(seconds, fit.range[0]), fit.range[1]) : 0, ratio = fit.factor + fit.offset * inverse;
    const variance = fit.covariance[0] + 2 * inverse * fit.covariance[1] + inverse ** 2 * fit.covariance[2];
    return ratio > 0 ? { log: Math.log(ratio), error: Math.hypot(Math.sqrt(Math.max(variance, 0)) / ratio, fit.scatter) } : STILL;
  }

  function fitted(seconds, logs, errors, rules) {
    const ratios = logs.map(Math.exp), own = errors.map((error, k) => error * ratios[k]);
    const [both, covariance] = huber(seconds.map((one) => 1 / one), ratios, own, rules);
    const range = [Math.min(...seconds), Math.max(...seconds)], doubt = rules.certain * Math.sqrt(covariance[2]);
    if (range[1] > rules.span * range[0] && doubt > 0 && Math.abs(both[1]) > doubt)
      return { factor: both[0], offset: both[1], covariance, range, scatter: 0 };
    const [alone, [variance]] = huber(null, ratios, own, rules);
    return { factor: alone[0], offset: 0, covariance: [variance, 0, 0], scatter: 0 };
  }

  // The quantile, the lower of the two values that it is between.
  const portion = (values, part) => [...values].sort((x, y) => x - y)[Math.floor(part * (values.length - 1))];

  function scattered(left, errors, quantiles, rules) {
    const explains = (scatter) => portion(left.map((one, k) => one / Math.hypot(errors[k], scatter) / quantiles[k]), rules.outer) <= 1;
    let low = 0, high = Math.max(...left);
    if (high === 0 || explains(0)) return 0;
    for (let turn = 0; turn < rules.halvings; turn += 1) {
      const half = (low + high) / 2;
      if (explains(half)) high = half; else low = half;
    }
    return high;
  }

  // The control that the pairs of identical code make; its `fit` is what every pair is divided by.
  function control(pairs, rules) {
    const none = { cases: pairs.length, changed: 0, shift: pairs.length ? middle(pairs.map(({ a, b }) => Math.exp(b.centre - a.centre))) : 1,
      widening: 1, excess: false, used: false, factor: 1, offset: 0, fit: null };
    const known = pairs.map((pair) => [pair, estimate(pair.a, pair.b, pair.spread, rules)]).filter(([, one]) => one.freedom);
    if (known.length < rules.enough) return none;
    const seconds = known.map(([pair]) => Math.exp(pair.a.centre)), errors = known.map(([, one]) => Math.max(one.error, rules.least_error));
    const logs = known.map(([pair, one]) => unexplained(pair, one)), fit = fitted(seconds, logs, errors, rules);
    const left = logs.map((log, k) => Math.abs(log - at(fit, seconds[k]).log)), t = (part) => known.map(([, one]) => quantile(part, one.freedom));
    const usual = t(0.75), widening = Math.max(1, middle(left.map((one, k) => one / errors[k] / usual[k])));
    fit.scatter = scattered(left, errors.map((error) => error * widening), t((1 + rules.outer) / 2), rules);
    return { ...none, used: true, widening, fit, factor: fit.factor, offset: fit.offset };
  }

  // Why the two may not be held against each other; null where they may.
  function refused(a, b) {
    const keys = [...new Set([...Object.keys(a.protocol), ...Object.keys(b.protocol)])];
    const facts = [["machine", a.machine, b.machine], ["backend", a.backend, b.backend], ["device", a.device, b.device],
      ...keys.map((key) => [`protocol's ${key}`, a.protocol[key], b.protocol[key]])];
    const [word, one, other] = facts.find(([, one, other]) => one !== other) || [];
    return word ? { word, values: [one ?? "none", other ?? "none"] } : null;
  }

  // The unit that measured a kernel, and the board that measured a case.
  const unit = (side, kernel) => side.uuid || side.units?.[kernel];
  const board = (side, name) => side.boards?.[name] || unit(side, name.split(/[:[]/)[0]);

  // What was not measured on the same unit; of merged records, kernel by kernel.
  function units(a, b) {
    if (a.device !== b.device) return []; // two devices: the refusal names them
    if (!a.units && !b.units) return a.uuid && b.uuid && a.uuid !== b.uuid ? ["the records come from two units of one device"] : [];
    const timed = (side) => new Set(Object.keys(side.cases).map((name) => name.split(/[:[]/)[0]));
    const known = [...timed(a)].filter((kernel) => timed(b).has(kernel) && unit(a, kernel) && unit(b, kernel));
    const moved = known.filter((kernel) => unit(a, kernel) !== unit(b, kernel)).length;
    return moved ? [`${moved} of ${known.length} kernel${known.length === 1 ? "" : "s"} ${moved === 1 ? "was" : "were"} measured on different units of one device`] : [];
  }

  // The settings that differ, as analysis.compare.comparable has them.
  function settingChanges(old, later, rules) {
    const found = Object.keys(old).filter((group) => group in later).flatMap((group) => [...new Set([...Object.keys(old[group]), ...Object.keys(later[group])])]
      .filter((name) => old[group][name] !== later[group][name])
      .map((name) => `${name} ${old[group][name] ?? "unknown"} -> ${later[group][name] ?? "unknown"}`));
    return found.length <= rules.shown ? found : [...found.slice(0, rules.shown), `${found.length - rules.shown} more`];
  }

  function notes(a, b, noise, names, rules) {
    const remarks = units(a, b);
    const differ = [...new Set([...Object.keys(a.software), ...Object.keys(b.software)])].filter((name) => a.software[name] !== b.software[name]);
    if (differ.length) remarks.push(`software differs: ${differ.map((name) => `${name} ${a.software[name] ?? "none"} -> ${b.software[name] ?? "none"}`).join(", ")}`);
    const settings = settingChanges(a.settings, b.settings, rules);
    if (settings.length) remarks.push(`settings differ: ${settings.join(", ")}`);
    [a, b].forEach((side, index) => { if (!side.complete) remarks.push(`${names[index]} was cut short`); });
    const misfit = noise && [["device", noise.device, b.device], ["backend", noise.backend, b.backend], ["protocol", noise.protocol, b.version]].find(([, own, other]) => own !== other);
    if (misfit) remarks.push(`the stored noise floor is of ${misfit[0]} ${misfit[1]}, not ${misfit[2]}: it is not used`);
    for (const [mine, theirs, name] of [[a, b, names[0]], [b, a, names[1]]]) {
      const alone = Object.keys(mine.cases).filter((one) => !(one in theirs.cases));
      if (alone.length) remarks.push(`only ${name} has ${alone.length} case${alone.length > 1 ? "s" : ""}: ${alone.slice(0, 3).join(", ")}${alone.length > 3 ? " ..." : ""}`);
    }
    return [remarks, Boolean(misfit)];
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

  // Why the machine code differs, as analysis.build_identity has it: [kind, words], or null.
  function built(one, other) {
    if (!one || !other || one[2] === other[2]) return null;
    const known = one[1] !== null && other[1] !== null, moved = known && one[1] !== other[1];
    if (one[0] === other[0]) return moved ? ["source", "the source changed"] : null;
    const name = (text) => text.slice(0, Math.max(0, text.lastIndexOf(" ")));
    const versions = `${one[0]} -> ${name(other[0]) && name(one[0]) === name(other[0]) ? other[0].slice(other[0].lastIndexOf(" ") + 1) : other[0]}`;
    return moved ? ["both", `the source and the compiler changed: ${versions}`] : ["compiler", `${known ? "same source, " : ""}other machine code: ${versions}`];
  }

  // Records that may not be held against each other still show what each of them measured, by whichever clock.
  const apart = (name, [a, b]) => ({ case: name, metric: `${a[0]} / ${b[0]}`, verdict: "no verdict", seconds: [a[1], b[1]], spreads: [a[2], b[2]],
    reason: `two clocks: ${named(a[0])} in one record, ${named(b[0])} in the other` });

  // The spread in cycles of a known noise `[variance, freedom, variance in cycles]`; null without one.
  const clocked = (noise) => noise && noise[2] != null ? [noise[2], noise[1]] : null;

  // Why a time of the host's clock does not compare: the hosts are not known to be one.
  const otherHost = (metric, [a, b], names, rules) => rules.host_times.includes(metric) && !(a && a === b)
    ? `the host's clock read the ${named(metric)}, and ${names.join(" and ")} are not known to be of one host` : null;

  function row(name, pair, names, noise, why, hosts, rules) {
    const metric = pair[0][0] ?? pair[1][0] ?? "wall_time", reason = missing(pair, names) ?? (why ? null : otherHost(metric, hosts, names, rules));
    if (why && pair.every((side) => side.length > 2) && pair[0][0] !== pair[1][0]) return apart(name, pair);
    if (reason) return { case: name, metric, verdict: "not compared", reason, seconds: [null, null] };
    const [[, , , , , firstCycles, firstStep, firstCode, firstBuild], [, , , , , secondCycles, secondStep, secondCode, secondBuild]] = pair;
    const [a, b] = pair.map((side) => medians([side[3], side[4]], rules));
    const cycles = firstCycles && secondCycles ? [medians(firstCycles, rules), medians(secondCycles, rules)] : null;
    return { case: name, metric, seconds: [Math.exp(a.centre), Math.exp(b.centre)], spreads: [pair[0][2], pair[1][2]], identical: same(firstCode, secondCode), build: built(firstBuild, secondBuild),
      pair: { a, b, cycles, spread: noise?.floors[name]?.[metric], cyclesSpread: cycles && clocked(noise?.floors[name]?.[metric]), resolution: Math.max(firstStep, secondStep) } };
  }

  // The versions of driver and toolkit that differ, and whether two units measured the case.
  function software(a, b, rules) {
    const names = [...new Set([...Object.keys(a.software), ...Object.keys(b.software)])].filter((name) => rules.software.some((one) => name.startsWith(one)));
    return names.filter((name) => a.software[name] !== b.software[name])
      .map((name) => `${name} ${a.software[name] ?? "none"} -> ${b.software[name] ?? "none"}`).join(", ") || null;
  }

  function moved(a, b, name) {
    const kernel = name.split(/[:[]/)[0], [one, other] = [a, b].map((side) => unit(side, kernel));
    return Boolean(one && other && one !== other);
  }

  // The two boards that measured the sides of a case, as one text; empty where they are one, or one of them is not known.
  function boards(a, b, name) {
    const [one, other] = [board(a, name), board(b, name)];
    return one && other && one !== other ? `${one} ${other}` : "";
  }

  const UNLEARNED = "no history of these boards was read";
  const withheldFor = (both) => `withheld: measured on two boards, ${both.replace(" ", " and ")}, whose factor is not known: ${UNLEARNED}`;

  // As analysis.compare.across without a history: cases of two boards have the control of these boards, or an error that
  // no usual difference of two boards exceeds. Each row gets the `shift` that it is divided by.
  function across(timed, alike, both, rules) {
    const groups = new Map(), unknown = new Map(), remarks = [];
    for (const one of timed) groups.set(both(one.case), [...groups.get(both(one.case)) ?? [], one]);
    const controls = [];
    for (const [boards, rows] of groups) {
      const own = control(rows.filter((one) => alike.includes(one)).map((one) => one.pair), rules);
      controls.push(own);
      for (const one of rows) one.shift = own.used ? at(own.fit, Math.exp(one.pair.a.centre)) : boards ? { log: 0, error: rules.unmeasured } : STILL;
      if (own.used || !boards) continue;
      for (const one of rows) unknown.set(one, boards);
      remarks.push(`${rows.length} case${rows.length === 1 ? " was" : "s were"} measured on board ${boards.replace(" ", " and on board ")}: their factor is not known (${UNLEARNED}), and verdicts are withheld`);
    }
    const used = controls.filter((one) => one.used), cases = sum(used.map((one) => one.cases));
    const largest = controls.reduce((most, one) => one.cases > most.cases ? one : most, controls[0] ?? control([], rules));
    const widening = used.length ? sum(used.map((one) => one.widening * one.cases)) / cases : 1;
    return [used.length ? { ...largest, cases, widening } : largest, unknown, remarks];
  }

  function ofIdentical(word, reason, { used }, changes, around, rules) {
    const changed = rules.changed.includes(word);
    if (changed && used && !changes) return ["inconclusive", `${rules.stands_out} ${word}: ${around ?? "the machine changed, not the kernel"}`];
    if (changed) return [word, `identical machine code: ${around ?? "the machine or its environment changed"}`];
    if (used && !changes && word !== "same") return ["same", `identical machine code; by its times alone ${word}`];
    return [word, reason];
  }

  // B against A, each the side of a record. `refused` is why there is no verdict; times, ratios and intervals are there.
  prism.compare = (a, b, noise, rules, names) => {
    const why = refused(a, b), [remarks, misfit] = notes(a, b, why ? null : noise, names, rules);
    const rows = Object.keys(a.cases).filter((name) => name in b.cases)
      .map((name) => row(name, [a.cases[name], b.cases[name]], names, why || misfit ? null : noise, why, [a.host, b.host], rules));
    const timed = rows.filter((one) => one.pair), alike = timed.filter((one) => one.identical && !why && rules.control);
    const [found, unknown, crossing] = across(timed, alike, why ? () => "" : (name) => boards(a, b, name), rules), shifts = timed.map((one) => one.shift);
    const final = judged(timed.map((one) => one.pair), rules, found.widening, shifts), changes = software(a, b, rules);
    remarks.push(...crossing);
    found.changed = found.used ? final.filter((one, index) => alike.includes(timed[index]) && rules.changed.includes(one.verdict)).length : 0;
    found.excess = found.changed > 0 && !changes && atLeast(found.changed, found.cases, rules.by_chance) < rules.by_chance;
    timed.forEach((one, index) => {
      const { verdict, reason, estimate: ratio, cycles, floor: seen } = final[index];
      const [low, high] = interval(ratio, rules.confidence), around = changes ?? (moved(a, b, one.case) ? "another unit of the device" : null);
      const [word, words] = alike.includes(one) ? ofIdentical(verdict, reason, found, changes, around, rules) : [verdict, reason];
      const apart = verdict === "inconclusive" && unknown.get(one);
      Object.assign(one, { ratio: ratio.ratio, machine: Math.exp(one.shift.log), low, high, floor: seen, cycles: cycles?.ratio ?? null, verdict: word, reason: apart ? withheldFor(apart) : words });
      if (why) Object.assign(one, { verdict: "no verdict", reason: null, floor: Infinity });
    });
    const compilers = rows.filter((one) => one.build?.[0] === "compiler").map((one) => one.build[1]);
    for (const words of new Set(compilers)) {
      const count = compilers.filter((one) => one === words).length;
      remarks.push(`${count} case${count > 1 ? "s" : ""}: ${words}`);
    }
    return { refused: why, notes: remarks, control: found, cases: rows };
  };
})();
