"""Saving, loading, copying and sending cdna tensors."""
import copy
import io
import pickle

import pytest
import torch
import torch.multiprocessing as mp

import torch_mi350.cdna as cdna

cdna.register()
DEV = torch.device("cdna:0")


def saved(obj, **kwargs):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **kwargs)
    buffer.seek(0)
    return buffer


def test_load_returns_to_the_device_and_shares_as_before():
    x = torch.randn(4, 5, device=DEV)
    y, z = torch.load(saved((x, x[1:3])))
    assert y.device == DEV and torch.equal(x, y) and torch.equal(z, x[1:3])
    y.zero_()
    assert z.abs().sum().item() == 0


@pytest.mark.parametrize("zipfile", [True, False])
@pytest.mark.parametrize("location", ["cpu", "cdna", "cdna:0", torch.device("cdna:0"), {"cdna:0": "cpu"},
                                      lambda storage, place: storage])
def test_map_location(zipfile, location):
    x = torch.randn(3, device=DEV)
    y = torch.load(saved({"x": x}, _use_new_zipfile_serialization=zipfile), map_location=location)["x"]
    want = "cdna" if location in ("cdna", "cdna:0", torch.device("cdna:0")) else "cpu"
    assert y.device.type == want and torch.equal(y.cpu(), x.cpu())


def test_cpu_file_loads_to_the_device():
    x = torch.randn(3)
    assert torch.load(saved(x), map_location="cdna").device == DEV


def test_location_that_does_not_exist_is_named():
    with pytest.raises(RuntimeError, match="cdna"):
        torch.load(saved(torch.ones(1)), map_location="cdna:55")


def test_modules_and_optimizers_round_trip():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(DEV)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(3, 4, device=DEV)).sum().backward()
    optimizer.step()
    state = torch.load(saved({"m": model.state_dict(), "o": optimizer.state_dict()}))
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(DEV)
    other.load_state_dict(state["m"])
    torch.optim.AdamW(other.parameters()).load_state_dict(state["o"])
    x = torch.randn(2, 4, device=DEV)
    assert torch.equal(model(x), other(x))
    clone = copy.deepcopy(model)
    assert torch.equal(clone(x), model(x)) and clone[0].weight.device == DEV
    assert clone[0].weight.data_ptr() != model[0].weight.data_ptr()


def test_pickle():
    x = torch.nn.Parameter(torch.randn(3, device=DEV))
    y = pickle.loads(pickle.dumps(x))
    assert y.device == DEV and torch.equal(x, y) and y.requires_grad and isinstance(y, torch.nn.Parameter)


def test_generator_state_round_trip():
    state = torch.load(saved(torch.cdna.get_rng_state()))
    first = torch.randn(3, device=DEV)
    torch.cdna.set_rng_state(state)
    assert torch.equal(torch.randn(3, device=DEV), first)


def test_numpy_wants_the_cpu():
    with pytest.raises(TypeError, match="can't convert cdna:0 device type tensor to numpy"):
        torch.ones(2, device=DEV).numpy()
    assert torch.ones(2, device=DEV).cpu().numpy().tolist() == [1, 1]


def test_sharing_with_another_process_is_refused():
    x = torch.ones(2, device=DEV)
    queue = mp.get_context("spawn").SimpleQueue()
    with pytest.raises(NotImplementedError, match="cdna tensors cannot be shared with another process"):
        queue.put(x)
    queue.put(x.cpu())
    assert queue.get().tolist() == [1, 1]


def test_safetensors_goes_through_the_cpu(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="needs the package safetensors")
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": torch.arange(3.0)}, path)
    x = safetensors.load_file(path)["x"].to(DEV)
    assert x.cpu().tolist() == [0, 1, 2]
    with pytest.raises(Exception, match="cdna"):
        safetensors.load_file(path, device="cdna")


def test_torch_save_of_a_view_keeps_strides():
    x = torch.randn(4, 6, device=DEV).t()[1:3]
    y = torch.load(saved(x))
    assert y.stride() == x.stride() and torch.equal(x, y)
