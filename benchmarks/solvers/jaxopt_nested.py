"""jaxopt's accelerated proximal gradient; the composite prox is a dual FISTA, compiled by JAX along with the step."""

import numpy as np
from objective import Stack
from solving import Solver as Base


class Solver(Base):
    name = "jaxopt, nested"
    package = "jaxopt"
    requirements = ("jaxopt", "jax")
    inner = 100  # steps of the dual at most

    def warm_up(self, objective):
        # JAX compiles for the very shapes
        self.objective = None
        self.set_objective(objective)
        self.step(self.start, self.first)

    def set_objective(self, objective):
        if objective is self.objective:
            return
        import jax
        import jax.numpy as jnp
        import jaxopt

        jax.config.update("jax_enable_x64", True)  # float32 would end at 1e-6

        self.objective = objective
        product, adjoint = products(objective)
        y, quadratic = jnp.asarray(objective.y), bilinear(objective)
        value_and_slope = losses(objective.loss)

        def smooth(w, _=None):
            value, slope = value_and_slope(product(w), y)
            bent = quadratic(w)
            return jnp.mean(value) + 0.5 * w @ bent, adjoint(slope) / objective.n + bent

        stepsize = 1.0 / objective.lipschitz()
        solver = jaxopt.ProximalGradient(
            smooth, composite_prox(objective, self.inner), value_and_grad=True, stepsize=stepsize, acceleration=True,
            implicit_diff=False, tol=0.0,
        )  # fmt: skip
        self.start = jnp.zeros(objective.p)
        self.first = solver.init_state(self.start, self.start)
        self.step = jax.jit(lambda w, state: solver.update(w, state, w))

    def run(self, record):
        self.objective.lipschitz()  # the step size is compiled in, and paid for here
        w, state = self.start, self.first
        while True:
            w, state = self.step(w, state)
            w.block_until_ready()
            record(w)


def products(objective):
    import jax.numpy as jnp

    if not objective.sparse:
        X = jnp.asarray(objective.X)
        return lambda w: X @ w, lambda u: u @ X
    import jax

    X = objective.X.tocsr()
    rows = jnp.asarray(np.repeat(np.arange(objective.n), np.diff(X.indptr)))
    columns, data = jnp.asarray(X.indices), jnp.asarray(X.data)
    turned = X.tocsc()
    t_rows = jnp.asarray(np.repeat(np.arange(objective.p), np.diff(turned.indptr)))
    t_columns, t_data = jnp.asarray(turned.indices), jnp.asarray(turned.data)

    def product(w):
        return jax.ops.segment_sum(data * w[columns], rows, objective.n, indices_are_sorted=True)

    def adjoint(u):
        return jax.ops.segment_sum(t_data * u[t_columns], t_rows, objective.p, indices_are_sorted=True)

    return product, adjoint


def losses(name):
    import jax.numpy as jnp

    def smoothed_hinge(score, y):
        margin = y * score
        value = jnp.where(margin >= 1, 0.0, jnp.where(margin <= 0, 0.5 - margin, 0.5 * (1 - margin) ** 2))
        return value, y * jnp.clip(margin - 1, -1.0, 0.0)

    def logistic(score, y):
        margin = y * score
        return jnp.logaddexp(0.0, -margin), -y / (1 + jnp.exp(margin))

    def squared(score, y):
        return 0.5 * (score - y) ** 2, score - y

    return {"smoothed-hinge": smoothed_hinge, "logistic": logistic, "squared": squared}[name]


def maps(term):
    """A term's map and its adjoint, by gathering and scattering."""
    import jax
    import jax.numpy as jnp

    matrix = term.matrix.tocsr()
    turned = term.matrix.tocsc()
    rows = jnp.asarray(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)))
    columns, data = jnp.asarray(matrix.indices), jnp.asarray(matrix.data)
    t_rows = jnp.asarray(np.repeat(np.arange(term.p), np.diff(turned.indptr)))
    t_columns, t_data = jnp.asarray(turned.indices), jnp.asarray(turned.data)
    d = matrix.shape[0]
    return (
        lambda w: jax.ops.segment_sum(data * w[columns], rows, d, indices_are_sorted=True),
        lambda u: jax.ops.segment_sum(t_data * u[t_columns], t_rows, term.p, indices_are_sorted=True),
    )


def bilinear(objective):
    """w -> Q w for the quadratics of the penalty."""
    if objective.ridge is not None:
        return lambda w: objective.ridge * w
    parts = [(term.ridge, *maps(term)) for term in objective.terms if term.ridge]
    return lambda w: sum(ridge * back(forth(w)) for ridge, forth, back in parts)


def group_norms(term):
    import jax
    import jax.numpy as jnp

    if term.groups is None:
        return jnp.abs, lambda factor: factor
    sizes = np.diff(term.bounds)
    if np.all(sizes == sizes[0]):
        return (
            lambda u: jnp.linalg.norm(u.reshape(len(sizes), -1), axis=1),
            lambda factor: jnp.repeat(factor, sizes[0]),
        )
    labels = jnp.asarray(np.repeat(np.arange(len(sizes)), sizes))
    return (
        lambda u: jnp.sqrt(jax.ops.segment_sum(u * u, labels, len(sizes), indices_are_sorted=True)),
        lambda factor: factor[labels],
    )


def composite_prox(objective, most):
    """prox(v, before, step): what is closed in closed form, the other terms through their dual.

    `before` is the last iterate: the dual is solved until its gap is a small share of the move away from it.
    """
    import jax
    import jax.numpy as jnp

    closed, others = objective.split

    def shrink(w, step):
        for term in closed.terms:
            weights = jnp.asarray(term.weights)
            if term.groups is None:
                w = jnp.sign(w) * jnp.maximum(jnp.abs(w) - step * weights, 0.0)
                continue
            norms, spread = group_norms(term)
            members = jnp.asarray(np.concatenate(term.groups))
            factor = jnp.maximum(1.0 - step * weights / jnp.maximum(norms(w[members]), 1e-300), 0.0)
            w = w.at[members].multiply(spread(factor))
        return w

    if not others:
        return lambda v, before, step=1.0: shrink(v, step)

    forth_back = [maps(term) for term in others]
    norms = [group_norms(term) for term in others]
    weights = [jnp.asarray(term.weights) for term in others]
    bound = Stack(others).curvature()

    def primal(v, step, y):
        return shrink(v - step * sum(back(part) for (_, back), part in zip(forth_back, y, strict=True)), step)

    def project(y):
        out = []
        for part, (size, spread), weight in zip(y, norms, weights, strict=True):
            out.append(part * spread(jnp.minimum(1.0, weight / jnp.maximum(size(part), 1e-300))))
        return tuple(out)

    def prox(v, before, step=1.0):
        def gap_share(y):
            w = primal(v, step, y)
            u = [forth(w) for forth, _ in forth_back]
            gap = step * sum(
                weight @ size(part) - dual @ part
                for part, dual, (size, _), weight in zip(u, y, norms, weights, strict=True)
            )
            return gap / jnp.maximum(0.5 * jnp.sum((w - before) ** 2), 1e-28)

        def turn(state):
            count, y, z, t, _ = state

            def one(_, inner):
                y, z, t = inner
                w = primal(v, step, z)
                new = project(
                    tuple(part + forth(w) / (step * bound) for part, (forth, _) in zip(z, forth_back, strict=True))
                )
                after = 0.5 * (1 + jnp.sqrt(1 + 4 * t * t))
                z = tuple(a + (t - 1) / after * (a - b) for a, b in zip(new, y, strict=True))
                return new, z, after

            y, z, t = jax.lax.fori_loop(0, 10, one, (y, z, t))
            return count + 10, y, z, t, gap_share(y)

        zero = tuple(jnp.zeros(term.matrix.shape[0]) for term in others)
        state = jax.lax.while_loop(
            lambda s: (s[0] < most) & (s[4] > 1e-2), turn, (0, zero, zero, jnp.array(1.0), jnp.array(jnp.inf))
        )
        return primal(v, step, state[1])

    return prox
