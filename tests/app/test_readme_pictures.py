"""Drawing the README's pictures anew: which ones a command line asks for."""

import sys

import pytest

from app import readme_pictures


@pytest.mark.parametrize(
    ("arguments", "drawn"),
    [
        ([], ["samples", "reveal", "page"]),
        (["all"], ["samples", "reveal", "page"]),
        (["page", "reveal"], ["page", "reveal"]),
    ],
)
def test_all_or_some_are_drawn(arguments, drawn, monkeypatch):
    calls = []
    pictures = {name: lambda name=name: calls.append(name) for name in readme_pictures.PICTURES}
    monkeypatch.setattr(readme_pictures, "PICTURES", pictures)
    monkeypatch.setattr(sys, "argv", ["readme_pictures", *arguments])
    readme_pictures.main()
    assert calls == drawn


def test_an_unknown_one_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["readme_pictures", "cover"])
    with pytest.raises(SystemExit):
        readme_pictures.main()
    assert "invalid choice: 'cover'" in capsys.readouterr().err
