"""Averages of weights: shares, what cannot be averaged, and that the models themselves stay what they are."""

import pytest
import torch

from pgm.averaging import average


def test_an_average_lies_between_and_leaves_its_models_alone(partition):
    first, second = partition(), partition()
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.add_(1)
    before = [{name: value.clone() for name, value in model.state_dict().items()} for model in (first, second)]
    averaged = average([first, second], [0.25, 0.75])
    for name, value in averaged.named_parameters():
        torch.testing.assert_close(value, 0.25 * first.get_parameter(name) + 0.75 * second.get_parameter(name))
    for model, state in zip((first, second), before, strict=True):
        assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    alone = average([first, second], [0, 1]).state_dict()
    assert all(torch.equal(value, alone[name]) for name, value in second.state_dict().items())


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ([1.0], "shares must be as many as models, got 1 for 2"),
        ([0.5, 0.6], "shares must be >= 0 and 1 in all, got 0.5, 0.6"),
        ([-0.5, 1.5], "shares must be >= 0 and 1 in all, got -0.5, 1.5"),
        ([float("nan"), 0.5], "shares must be >= 0 and 1 in all, got nan, 0.5"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares, says, partition):
    with pytest.raises(ValueError, match=says):
        average([partition(), partition()], shares)


def test_only_models_alike_are_averaged(partition):
    with pytest.raises(ValueError, match="models to average must be alike"):
        average([partition(), partition(encoder_layers=3)], [0.5, 0.5])
