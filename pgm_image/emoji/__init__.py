"""Emoji artwork as training pictures: 79 classes, 7 vendor styles, permissive licences only."""
