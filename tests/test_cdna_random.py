"""Random numbers on cdna: seeds, states, devices of generators, and the CPU's numbers for the CPU's seed."""
import pytest
import torch

import torch_mi350.cdna as cdna

cdna.register()
DEV = "cdna:0"


def draws(device, generator=None):
    x = torch.randn(5, device=device, generator=generator)
    y = torch.empty(4, device=device).uniform_(generator=generator)
    perm = torch.randperm(9, device=device, generator=generator)
    choice = torch.multinomial(torch.ones(3, 6, device=device), 2, generator=generator)
    ints = torch.randint(0, 100, (4,), device=device, generator=generator)
    coins = torch.bernoulli(torch.full((8,), 0.5, device=device), generator=generator)
    norm = torch.normal(torch.zeros(3, device=device), 1.0, generator=generator)
    return [t.cpu() for t in (x, y, perm, choice, ints, coins, norm)]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_manual_seed_repeats_every_kind_of_draw():
    torch.manual_seed(3)
    first, second = draws(DEV), draws(DEV)
    torch.manual_seed(3)
    assert equal(first, draws(DEV)) and not equal(first, second)


def test_a_seed_gives_the_numbers_that_it_gives_on_the_cpu():
    torch.manual_seed(11)
    on_device = draws(DEV)
    torch.manual_seed(11)
    assert equal(on_device, draws("cpu"))


def test_device_and_cpu_generators_are_independent():
    torch.manual_seed(5)
    cpu_first = torch.randn(3)
    torch.manual_seed(5)
    draws(DEV)
    torch.nn.functional.dropout(torch.ones(100, device=DEV), 0.5)
    assert torch.equal(torch.randn(3), cpu_first)


def test_states_can_be_saved_and_restored():
    state = torch.cdna.get_rng_state()
    first = draws(DEV)
    torch.cdna.set_rng_state(state)
    assert equal(first, draws(DEV)) and state.device.type == "cpu" and state.dtype == torch.uint8
    states = torch.cdna.get_rng_state_all()
    second = draws(DEV)
    torch.cdna.set_rng_state_all(states)
    assert equal(second, draws(DEV))


def test_cdna_seed_functions():
    torch.cdna.manual_seed(9)
    assert torch.cdna.initial_seed() == 9
    a = torch.randn(3, device=DEV)
    torch.cdna.manual_seed_all(9)
    assert torch.equal(a, torch.randn(3, device=DEV))
    assert torch.cdna.seed() == torch.cdna.initial_seed() != 9
    assert len(torch.cdna.default_generators) == torch.cdna.device_count()
    assert torch.cdna.default_generators[0].device == torch.device(DEV)
    with pytest.raises(IndexError):
        torch.cdna.default_generators[99]


def test_explicit_generators():
    g = torch.Generator(device=DEV).manual_seed(4)
    assert g.device == torch.device(DEV)
    state = g.get_state()
    first = draws(DEV, g)
    g.set_state(state)
    assert equal(first, draws(DEV, g))
    copy = g.clone_state() if hasattr(g, "clone_state") else torch.Generator(device=DEV)
    copy.set_state(g.get_state())
    assert equal(draws(DEV, g), draws(DEV, copy))
    assert torch.Generator(device="cdna").manual_seed(4).initial_seed() == 4


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'cdna' device type for generator"):
        torch.empty(3, device=DEV).normal_(generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
        torch.empty(3).normal_(generator=torch.Generator(device=DEV))


def test_fork_rng_restores_the_device_state():
    torch.manual_seed(1)
    want = torch.randn(2, device=DEV)
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0], device_type="cdna"):
        torch.randn(50, device=DEV)
    assert torch.equal(torch.randn(2, device=DEV), want)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 1.0])
def test_dropout_scales_masks_and_differentiates(p):
    x = torch.ones(4000, device=DEV, requires_grad=True)
    torch.cdna.manual_seed(2)
    y = torch.nn.functional.dropout(x, p)
    kept = y.detach().cpu() != 0
    assert abs(kept.float().mean().item() - (1 - p)) < 0.04
    if p < 1:
        torch.testing.assert_close(y.detach().cpu()[kept], torch.full((int(kept.sum()),), 1 / (1 - p)))
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    torch.cdna.manual_seed(2)
    assert torch.equal(torch.nn.functional.dropout(x, p), y)
    assert torch.equal(torch.nn.functional.dropout(x, p, training=False), x)


def test_dropout_argument_is_checked():
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        torch.nn.functional.dropout(torch.ones(3, device=DEV), 1.5)
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1, but got 1.5"):
        torch.native_dropout(torch.ones(3, device=DEV), 1.5, True)


def test_sampling_functions_equal_cpu_draws():
    for f in (lambda d: torch.rand(3, 3, device=d), lambda d: torch.empty(50, device=d).exponential_(),
              lambda d: torch.poisson(torch.full((20,), 4.0, device=d)), lambda d: torch.empty(9, device=d).geometric_(0.3),
              lambda d: torch.rand_like(torch.empty(2, 5, device=d)), lambda d: torch.empty(7, device=d).log_normal_(),
              lambda d: torch.distributions.Categorical(torch.ones(4, device=d)).sample((10,)),
              lambda d: torch.distributions.Gamma(torch.full((5,), 2.0, device=d), torch.ones(5, device=d)).sample()):
        torch.manual_seed(21)
        want = f("cpu")
        torch.manual_seed(21)
        assert torch.equal(f(DEV).cpu(), want)
