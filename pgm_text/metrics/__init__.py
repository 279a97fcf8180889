"""Measures of generated text, one file each; pure functions of token ids."""

from pgm_text.metrics.distinct import distinct_n
from pgm_text.metrics.entropy import token_entropy
from pgm_text.metrics.overlap import VerbatimIndex
from pgm_text.metrics.perplexity import NegativeLogLikelihood, next_token_nll

__all__ = ["NegativeLogLikelihood", "VerbatimIndex", "distinct_n", "next_token_nll", "token_entropy"]
