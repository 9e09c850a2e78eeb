"""Training of scikit-learn's perceptron without what it checks again at every step: the same numbers, to the last bit.

In its loop over small batches scikit-learn spends most of its time on looking at types and on small arrays. Here all weights
and biases lie in one vector, so that Adam is a handful of operations on it; each number goes through the same operations in
the same order as there. All else (checks, initial weights, prediction, what is kept of a model) remains scikit-learn's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["train"]

Array = NDArray[np.float64]


def train(model: Any, X: Array, y: NDArray[Any]) -> Any:
    """`model.fit(X, y)` for an MLPClassifier with rectifiers, several classes and the solver "adam"."""
    model._fit_stochastic = lambda *given: _fit_stochastic(model, *given)
    try:
        return model.fit(X, y)
    finally:
        del model._fit_stochastic  # what is pickled is scikit-learn's model and nothing else


def _fit_stochastic(model: Any, X: Array, Y: Array, _weights: None, *_: Any) -> None:
    from scipy.special import xlogy
    from sklearn.neural_network._stochastic_optimizers import AdamOptimizer
    from sklearn.utils import shuffle

    adam = AdamOptimizer(model.coefs_ + model.intercepts_, model.learning_rate_init, model.beta_1, model.beta_2, model.epsilon)
    flat, parts = _laid_out(model.coefs_ + model.intercepts_)
    slopes, slope_parts = _laid_out(parts)
    first, adam.ms = _laid_out(adam.ms)
    second, adam.vs = _laid_out(adam.vs)
    spare, step = np.empty_like(flat), np.empty_like(flat)
    layers = len(model.coefs_)
    W, b, dW, db = parts[:layers], parts[layers:], slope_parts[:layers], slope_parts[layers:]
    model.coefs_, model.intercepts_, model._optimizer = W, b, adam
    flat_W, weights, count = [one.ravel() for one in W], sum(one.size for one in W), len(X)
    size, order = min(model.batch_size, count), np.arange(count)
    eps = np.finfo(float).eps
    model.n_iter_ = 0
    while model.n_iter_ < model.max_iter:
        order = shuffle(order, random_state=model._random_state)
        total = 0.0
        for start in range(0, count, size):
            rows = order[start : start + size]
            n, targets, seen = len(rows), Y[rows], [X[rows]]
            for layer in range(layers):
                out = seen[-1] @ W[layer]
                out += b[layer]
                if layer < layers - 1:
                    np.maximum(out, 0.0, out=out)
                seen.append(out)
            out -= out.max(axis=1)[:, None]
            np.exp(out, out=out)
            out /= out.sum(axis=1)[:, None]
            loss = -(xlogy(targets, np.minimum(np.maximum(out, eps), 1.0 - eps)).sum(axis=0) / n).sum()
            loss += (0.5 * model.alpha) * sum(np.dot(w, w) for w in flat_W) / n
            total += loss * n
            delta = out - targets
            for layer in range(layers - 1, -1, -1):
                np.dot(seen[layer].T, delta, out=dW[layer])
                delta.sum(axis=0, out=db[layer])
                if layer:
                    delta = delta @ W[layer].T
                    delta[seen[layer] == 0.0] = 0.0
            slopes[:weights] += np.multiply(flat[:weights], model.alpha, out=spare[:weights])
            slopes /= n
            # Adam
            adam.t += 1
            np.multiply(slopes, 1.0 - adam.beta_1, out=spare)
            first *= adam.beta_1
            first += spare
            np.square(slopes, out=spare)
            spare *= 1.0 - adam.beta_2
            second *= adam.beta_2
            second += spare
            adam.learning_rate = adam.learning_rate_init * np.sqrt(1.0 - adam.beta_2**adam.t) / (1.0 - adam.beta_1**adam.t)
            np.multiply(first, -adam.learning_rate, out=step)
            np.sqrt(second, out=spare)
            spare += adam.epsilon
            step /= spare
            flat += step
        model.n_iter_ += 1
        model.t_ += count
        model.loss_ = total / count
        model.loss_curve_.append(model.loss_)
        model._update_no_improvement_count(False, None, None, None)
        if model._no_improvement_count > model.n_iter_no_change:
            break


def _laid_out(arrays: list[Array]) -> tuple[Array, list[Array]]:
    """Copies of the arrays side by side in one vector, and the views of it that stand for each."""
    flat = np.concatenate([array.ravel() for array in arrays])
    ends = np.cumsum([array.size for array in arrays])
    return flat, [part.reshape(array.shape) for part, array in zip(np.split(flat, ends[:-1]), arrays, strict=True)]
