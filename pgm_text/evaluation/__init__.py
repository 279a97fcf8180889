"""Measuring text models: likelihood bounds, samples at few and many steps, and a language whose truth is known."""
