"""The web page: one module per tab, plus what the tabs share (reveal records, viewer, theme, limits)."""

from app import environment as environment  # first: it sets defaults that other imports read
