"""From random keys to moments, probabilities and distributions of a reading, and to queries that resist the noise.

Reading order: key_noise (Gaussian and rounding noise); head_mix (one head or several); moments (mean and covariance, by
integration); monte_carlo (the same by draws); probability (that the output is near a target); laws (the distribution of
one weight); comparison (head layouts under one noise); robust (queries that resist noise); layout_report (for plots);
sweep (many heads, here or on a cluster). method names the ways to compute a figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.noise.comparison import Comparison as Comparison
    from qkv.noise.comparison import compare as compare
    from qkv.noise.head_mix import HeadMix as HeadMix
    from qkv.noise.key_noise import Gaussian as Gaussian
    from qkv.noise.key_noise import Quantised as Quantised
    from qkv.noise.laws.weight import WeightDistribution as WeightDistribution
    from qkv.noise.laws.weight import weight_distribution as weight_distribution
    from qkv.noise.layout_report import LayoutReport as LayoutReport
    from qkv.noise.layout_report import layout_reports as layout_reports
    from qkv.noise.layout_report import reference_layouts as reference_layouts
    from qkv.noise.moments.mixture import ReadingMoments as ReadingMoments
    from qkv.noise.moments.mixture import reading_moments as reading_moments
    from qkv.noise.monte_carlo import Sample as Sample
    from qkv.noise.monte_carlo import sample as sample
    from qkv.noise.probability.output_within import SuccessProbability as SuccessProbability
    from qkv.noise.probability.output_within import success_probability as success_probability
    from qkv.noise.robust.min_variance import MinVarianceQuery as MinVarianceQuery
    from qkv.noise.robust.min_variance import min_variance_query as min_variance_query
    from qkv.noise.robust.robust_query import RobustQuery as RobustQuery
    from qkv.noise.robust.robust_query import harden as harden
    from qkv.noise.sweep import HardenSweep as HardenSweep
    from qkv.noise.sweep import MomentsSweep as MomentsSweep
    from qkv.noise.sweep import harden_sweep as harden_sweep
    from qkv.noise.sweep import moments_sweep as moments_sweep
else:
    _HOME = {
        "Gaussian": "key_noise",
        "Quantised": "key_noise",
        "HeadMix": "head_mix",
        "reading_moments": "moments.mixture",
        "ReadingMoments": "moments.mixture",
        "sample": "monte_carlo",
        "Sample": "monte_carlo",
        "success_probability": "probability.output_within",
        "SuccessProbability": "probability.output_within",
        "weight_distribution": "laws.weight",
        "WeightDistribution": "laws.weight",
        "compare": "comparison",
        "Comparison": "comparison",
        "harden": "robust.robust_query",
        "RobustQuery": "robust.robust_query",
        "min_variance_query": "robust.min_variance",
        "MinVarianceQuery": "robust.min_variance",
        "layout_reports": "layout_report",
        "reference_layouts": "layout_report",
        "LayoutReport": "layout_report",
        "moments_sweep": "sweep",
        "MomentsSweep": "sweep",
        "harden_sweep": "sweep",
        "HardenSweep": "sweep",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
