# SPDX-License-Identifier: LGPL-2.1-or-later
"""Control matrices from interaction matrices."""
from ..command import WRONG_USE, Failure

CONDITION = 100


def factors(np, options, strengths):
    """Returns: what each singular value is inverted to; 0 leaves the mode out"""
    if options.alpha is not None:
        return strengths / (strengths ** 2 + (options.alpha * strengths[0]) ** 2)
    n = options.keep if options.keep is not None else int((strengths * (options.condition or CONDITION) >= strengths[0]).sum())
    inverted = np.zeros_like(strengths)
    inverted[:n] = 1 / strengths[:n]
    if not np.isfinite(inverted).all():
        raise Failure(WRONG_USE, f"--keep {n} takes modes of strength 0: {(strengths > 0).sum()} are above it.")
    return inverted


def minimum_variance(np, interaction, covariance, noise):
    """(Dᵀ D + s² C⁻¹)⁻¹ Dᵀ, as C Dᵀ (D C Dᵀ + s²)⁻¹ in the smaller of both sizes: C may have no inverse."""
    n_slopes, n_commands = interaction.shape
    if n_commands <= n_slopes:
        left = covariance @ (interaction.T @ interaction) + noise ** 2 * np.eye(n_commands)
        return np.linalg.solve(left, covariance @ interaction.T)
    right = interaction @ covariance @ interaction.T + noise ** 2 * np.eye(n_slopes)
    return np.linalg.solve(right, interaction @ covariance.T).T
