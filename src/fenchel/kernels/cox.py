"""Cox's partial likelihood over rows in the order of their times: sums, products with its curvature, its conjugate.

Rows are visited by position: `order` names the row at every position, strata one after another and times rising within
each. `opens` tells what begins at a position: 2 a stratum, 1 another time, 0 neither. Whoever has a time not below that
of an event is at risk there. What belongs to a time stands at its first position.

Sums of exponentials are carried by their logarithm, and means by shares of what they are made of, so that no score is
too large. See ``losses/cox.py`` for the formulas.

Symbols: s weights; S sum of s exp(u) over those at risk; E the same over the events of a time; L cumulative hazard;
v = s exp(u) L; w and r weight and place of a term among those of a time, of which Efron's rule has one per event.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from ..foundation.numerics import BALANCED, NEWTON_STEPS, UNIT
from .caching import WITHIN, njit

_TOGETHER = 8  # columns that are walked along together; more: no faster
_STEEPEST = -math.log(2.0 * UNIT * sys.float_info.min)  # no number has a logarithm of a larger size


@njit(cache=True, error_model="numpy", **WITHIN)
def _terms(events, efron):
    """How many terms the events of a time make."""
    return events if efron and events > 1 else 1


@njit(cache=True, error_model="numpy", **WITHIN)
def _log_sum(a, b):
    """log(exp(a) + exp(b)), where one of them may be minus infinity."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@njit(cache=True, error_model="numpy")
def survey(order, opens, event, score, weight, efron, x, v, share, lead, about):
    """The loss; fills slopes x and v by row, `share` and `lead` (a row's part of S and of E, summed from the end) by
    position, and `about` for every time: the share of the newest term in the hazard of all rows and in that of the
    events, E / S, the events' weight and their number, and the logarithm of the hazard."""
    n = order.size
    logs, origins, origin = np.empty(n), np.empty(n), 0.0
    for i in range(n):  # far from zero, scores have fewer digits than their differences
        origin = score[order[i]] if opens[i] == 2 else origin
        origins[i] = origin
    top, S, E, mass, count = -np.inf, 0.0, 0.0, 0.0, 0
    for i in range(n - 1, -1, -1):
        j = order[i]
        s = weight[j]
        share[i] = lead[i] = 0.0
        if s > 0.0:
            u = score[j] - origins[i]
            if u > top:
                down = math.exp(top - u) if S > 0.0 else 0.0
                S, E, top = S * down, E * down, u
            e = s * math.exp(u - top)
            S += e
            share[i] = e / S if S > 0.0 else 0.0
            if event[j]:
                E += e
                lead[i] = e / E if E > 0.0 else 0.0
                mass += s
                count += 1
        if opens[i]:
            logs[i] = top + math.log(S) if S > 0.0 else -np.inf
            about[i, 2], about[i, 3], about[i, 4] = E / S if S > 0.0 else 0.0, mass, count
            E, mass, count = 0.0, 0.0, 0
            if opens[i] == 2:
                top, S = -np.inf, 0.0
    total, hazard, among = 0.0, -np.inf, -np.inf
    for i in range(n):
        if opens[i]:
            if opens[i] == 2:
                hazard = -np.inf
            among = hazard
            mass = about[i, 3]
            about[i, 0] = about[i, 1] = 0.0
            if mass > 0.0:
                m = _terms(int(about[i, 4]), efron)
                w, A, D = mass / m, 0.0, 0.0
                for r in range(m):
                    left = 1.0 - r / m * about[i, 2]
                    A += w / left
                    D += w * (1.0 - r / m) / left
                    total += w * math.log(left)
                # the least value is taken away, so that the loss is half a deviance
                total += mass * logs[i] - w * (m * math.log(w) + math.lgamma(m + 1.0))
                all_rows, events = _log_sum(hazard, math.log(A) - logs[i]), _log_sum(hazard, math.log(D) - logs[i])
                about[i, 0] = math.exp(math.log(A) - logs[i] - all_rows)
                about[i, 1] = math.exp(math.log(D) - logs[i] - events)
                hazard, among = all_rows, events
                about[i, 5] = hazard - origins[i]
        j = order[i]
        s = weight[j]
        x[j] = v[j] = 0.0
        if s > 0.0 and hazard > -np.inf:
            u = score[j] - origins[i]
            v[j] = s * math.exp(u + (among if event[j] else hazard))
            x[j] = v[j]
            if event[j]:
                x[j] -= s
                total -= s * u
    return total


@njit(cache=True, error_model="numpy")
def times(order, opens, event, efron, v, share, lead, about, t, out):
    """out = H t, with the curvature H at the scores of a survey: v times what t differs from its mean over those at
    risk, averaged over the hazard so far."""
    n = order.size
    means, own = np.zeros(n), np.zeros(n)
    mean = mean_events = 0.0
    for i in range(n - 1, -1, -1):
        j = order[i]
        mean += share[i] * (t[j] - mean)
        mean_events += lead[i] * (t[j] - mean_events)
        if opens[i]:
            means[i], own[i], mean_events = mean, mean_events, 0.0
            if opens[i] == 2:
                mean = 0.0
    level = among = 0.0
    for i in range(n):
        if opens[i]:
            if opens[i] == 2:
                level = 0.0
            among = level
            if about[i, 3] > 0.0:
                m = _terms(int(about[i, 4]), efron)
                A = D = at = at_events = 0.0
                for r in range(m):
                    left = 1.0 - r / m * about[i, 2]
                    here = (means[i] - r / m * about[i, 2] * own[i]) / left
                    A += 1.0 / left
                    D += (1.0 - r / m) / left
                    at += here / left
                    at_events += here * (1.0 - r / m) / left
                among = level + about[i, 1] * (at_events / D - level)
                level += about[i, 0] * (at / A - level)
        j = order[i]
        out[j] = v[j] * (t[j] - (among if event[j] else level))


# -- a factor of the curvature ------------------------------------------------------------------------

# S times the variance over those at risk grows, when a row joins from the end, by s exp(u) S'/S times the square of
# what it differs from the mean of those who came before (S' and S are the sums before and after). Over the hazard,
# t'Ht is the sum of v S'/S (t - that mean)^2: H = L' diag(omega) L, where L takes the mean of all later rows off a row.
# Several events of one time under Efron's rule are compared with the mean of those who are at risk and have no event
# there, and none of them counts less than v: then the right side is a bound, for no number is nearer than the mean.


@njit(cache=True, error_model="numpy", **WITHIN)
def _joint(about, i, efron):
    """Whether the events of the time that begins here are compared with the others alone."""
    return efron and about[i, 4] > 1.0 and about[i, 2] < 1.0 - 1e-9


@njit(cache=True, error_model="numpy", **WITHIN)
def _joints(order, opens, event, efron, weight, about):
    """The first position of its time for every event that is compared with the others alone; -1 for all other rows."""
    out, head = np.full(order.size, -1), 0
    for i in range(order.size):
        head = i if opens[i] else head
        j = order[i]
        if event[j] and weight[j] > 0.0 and _joint(about, head, efron):
            out[i] = head
    return out


@njit(cache=True, error_model="numpy")
def factor_weights(order, opens, event, efron, weight, v, share, about, out):
    """omega."""
    joints = _joints(order, opens, event, efron, weight, about)
    for i in range(order.size):
        j = order[i]
        out[j] = v[j] if joints[i] >= 0 else v[j] * (1.0 - share[i])


@njit(cache=True, error_model="numpy")
def down(order, opens, event, efron, weight, share, about, columns, out):
    """L times every column, columns being rows of the array; some of them together, so that none waits for itself."""
    n, joints = order.size, _joints(order, opens, event, efron, weight, about)
    mean, others = np.empty(_TOGETHER), np.empty(_TOGETHER)
    for first in range(0, len(columns), _TOGETHER):
        width, head = min(_TOGETHER, len(columns) - first), -1
        mean[:] = 0.0
        for i in range(n - 1, -1, -1):
            j, part = order[i], share[i]
            if joints[i] < 0:
                for q in range(width):
                    off = columns[first + q, j] - mean[q]
                    out[first + q, j] = off
                    mean[q] += part * off
            else:
                if head != joints[i]:
                    others[:] = mean
                    head = joints[i]
                for q in range(width):
                    value = columns[first + q, j]
                    out[first + q, j] = value - others[q]
                    mean[q] += part * (value - mean[q])
            if opens[i] == 2:
                mean[:] = 0.0


@njit(cache=True, error_model="numpy")
def down_rows(order, opens, event, efron, weight, share, about, X, out):
    """L X."""
    n, p, joints, head = order.size, X.shape[1], _joints(order, opens, event, efron, weight, about), -1
    mean, others = np.zeros(p), np.zeros(p)
    for i in range(n - 1, -1, -1):
        j, part = order[i], share[i]
        row, to = X[j], out[j]
        if joints[i] < 0:
            for k in range(p):
                off = row[k] - mean[k]
                to[k] = off
                mean[k] += part * off
        else:
            if head != joints[i]:
                others[:] = mean
                head = joints[i]
            for k in range(p):
                to[k] = row[k] - others[k]
                mean[k] += part * (row[k] - mean[k])
        if opens[i] == 2:
            mean[:] = 0.0


@njit(cache=True, error_model="numpy")
def up(order, opens, event, efron, weight, share, lead, about, x, solve, out):
    """L' x, or the z with L' z = x."""
    n, joints, head = order.size, _joints(order, opens, event, efron, weight, about), -1
    carried = later = 0.0  # what earlier rows hand on to those from here; what events that are judged jointly will
    left = 1.0  # of the sum over these events
    for i in range(n):
        j = order[i]
        joint = joints[i] >= 0
        if head >= 0 and joints[i] != head and (weight[j] > 0.0 or opens[i]):
            carried, head = carried * (1.0 - about[head, 2]) + later, -1
        if opens[i] == 2:
            carried = 0.0
        if joint:
            if head < 0:
                later, left, head = 0.0, 1.0, joints[i]
            part = about[head, 2] * left * lead[i]
            left *= 1.0 - lead[i]
            out[j] = x[j] + (part if solve else -part) * carried
            later += out[j] if solve else x[j]
        else:
            out[j] = x[j] + (share[i] if solve else -share[i]) * carried
            if weight[j] > 0.0:
                carried = carried * (1.0 - share[i]) + (out[j] if solve else x[j])


@njit(cache=True, error_model="numpy", **WITHIN)
def _part_of_events(before, w, m, own, rest):
    """E / S at which the slopes of the events of a time sum to `own`; `rest` is what is left for all others."""
    if not rest > 0.0:
        return 1.0
    if not own > 0.0:
        return 0.0
    if m == 1:
        return own / (own + rest)
    low, high, at = 0.0, 1.0, own / (own + rest)
    for _ in range(NEWTON_STEPS):
        hazard = slope = 0.0
        for r in range(m):
            left = 1.0 - r / m * at
            hazard += w * (1.0 - r / m) / left
            slope += w * (1.0 - r / m) * (r / m) / (left * left)
        miss = at * (before + hazard) - own
        if miss > 0.0:
            high = at
        else:
            low = at
        step = miss / (before + hazard + at * slope)
        next_at = at - step
        if not low < next_at < high:
            next_at = 0.5 * (low + high)
        if abs(next_at - at) <= BALANCED * next_at or miss == 0.0:
            return next_at if miss != 0.0 else at
        at = next_at
    return at


@njit(cache=True, error_model="numpy", **WITHIN)
def _log_times(a):
    """a log(a)."""
    return a * math.log(a) if a > 0.0 else 0.0


@njit(cache=True, error_model="numpy", **WITHIN)
def _best_split(before, w, m, own, rest):
    """The largest value of own log(q) + rest log(1 - q) - sum over terms of w log(1 - q r / m)."""
    if m == 1:
        return _log_times(own) + _log_times(rest) - _log_times(own + rest)
    q = _part_of_events(before, w, m, own, rest)
    found = (own * math.log(q) if own > 0.0 else 0.0) + (rest * math.log(1.0 - q) if rest > 0.0 else 0.0)
    for r in range(m):
        found -= w * math.log(1.0 - q * r / m)
    return found


@njit(cache=True, error_model="numpy")
def conjugate(order, opens, event, efron, weight, x, tiny):
    """F*(x), infinite outside its domain; what is outside by less than `tiny` of the sums it is made of is rounding. It
    is paid for as if it were moved inside: no slope there is larger than the logarithm of a number."""
    n, moved = order.size, 0.0
    value = before = own = others = mass = size = 0.0
    events, seen = 0, False  # whether an event came before in this stratum
    for i in range(n + 1):
        fresh = i == n or opens[i] == 2
        opening = i < n and opens[i] > 0
        here, count = 0.0, 0
        if opening:
            k = i
            while True:
                j = order[k]
                if event[j] and weight[j] > 0.0:
                    here += weight[j]
                    count += 1
                k += 1
                if k == n or opens[k]:
                    break
        if fresh or here > 0.0:
            if seen:  # the time of the last event is over
                after = before + mass - own - others
                size += mass
                if after < -tiny * size:
                    return np.inf
                if fresh and after > tiny * size:
                    return np.inf
                if fresh or after < 0.0:
                    moved += abs(after)
                after = 0.0 if fresh else max(after, 0.0)
                m = _terms(events, efron)
                rest = others + after
                value += _best_split(before, mass / m, m, own, rest) + _log_times(after)
                value -= _log_times(own) + _log_times(rest)
                value += mass / m * (m * math.log(mass / m) + math.lgamma(m + 1.0))
                before = after
            if fresh:
                before, size, seen = 0.0, 0.0, False
            if here > 0.0:
                mass, events, own, others, seen = here, count, 0.0, 0.0, True
        if i == n:
            break
        j = order[i]
        s = weight[j]
        a = x[j] + (s if event[j] and s > 0.0 else 0.0)
        if not s > 0.0 or not seen:
            if x[j] != 0.0:
                return np.inf
            continue
        if a < -tiny * s:
            return np.inf
        if a > 0.0:
            value += a * math.log(a / s)
            if event[j]:
                own += a
            else:
                others += a
        else:
            moved -= a
    return value + _STEEPEST * moved


@njit(cache=True, error_model="numpy")
def scores_of(order, opens, event, efron, weight, x, least, out):
    """Scores whose slopes are x, up to a constant in every stratum; what has no score of its own (at the edge of the
    domain) gets one as if it were `least` away from it, relative to its weight."""
    n = order.size
    i, before, logs = 0, 0.0, 0.0
    while i < n:
        if opens[i] == 2:
            before, logs = 0.0, 0.0
        end, mass, events, own = i, 0.0, 0, 0.0
        while True:  # the rows of this time
            j = order[end]
            if event[j] and weight[j] > 0.0:
                mass += weight[j]
                events += 1
                own += max(x[j] + weight[j], least * weight[j])
            end += 1
            if end == n or opens[end]:
                break
        if not mass > 0.0:  # nobody was at risk yet
            for k in range(i, end):
                out[order[k]] = 0.0
            i = end
            continue
        last, others = end, 0.0
        for k in range(i, n):  # others whose last event this is
            if k >= end and opens[k]:
                if opens[k] == 2:
                    break
                ahead, found = k, False
                while True:
                    found = found or (event[order[ahead]] and weight[order[ahead]] > 0.0)
                    ahead += 1
                    if ahead == n or opens[ahead]:
                        break
                if found:
                    break
            j = order[k]
            if weight[j] > 0.0 and not event[j]:
                others += max(x[j], least * weight[j])
            last = k + 1
        after = max(before + mass - own - others, least * mass)
        m = _terms(events, efron)
        w = mass / m
        q = _part_of_events(before, w, m, own, others + after)
        hazard, among = before, before
        for r in range(m):
            left = 1.0 - r / m * q
            hazard += w / left
            among += w * (1.0 - r / m) / left
        for k in range(i, last):
            j = order[k]
            s = weight[j]
            if not s > 0.0:
                out[j] = 0.0
            elif event[j]:
                out[j] = math.log(max(x[j] / s + 1.0, least)) - math.log(among) + logs
            else:
                out[j] = math.log(max(x[j] / s, least)) - math.log(hazard) + logs
        logs += math.log(after) - math.log(hazard)
        before = after
        i = last
