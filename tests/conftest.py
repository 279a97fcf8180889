"""What all tests share: no network, no personal settings, and where the fixtures and the browser are."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = Path(__file__).resolve().parent / "offline"
SCRATCH = tempfile.mkdtemp(prefix="pgm-image-tests-")


def load_file(path: Path) -> ModuleType:
    """Imports a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Set here, before any test module imports the libraries that read them.
for name in [name for name in os.environ if name.startswith("GRADIO_")]:
    del os.environ[name]
os.environ.update(
    GRADIO_ANALYTICS_ENABLED="False",
    GRADIO_TEMP_DIR=os.path.join(SCRATCH, "gradio"),
    HF_HOME=os.path.join(SCRATCH, "huggingface"),  # a developer's downloads must not decide what passes
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    PYTHONPATH=os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")])),
)
# One thread: tiny networks gain nothing from more, and how a product is split over threads decides its last bits, on
# which comparisons of pictures made in different batches would hang.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
load_file(OFFLINE / "sitecustomize.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def pytest_sessionfinish() -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)


@pytest.fixture(scope="session", name="load_file")
def load_file_fixture() -> Callable[[Path], ModuleType]:
    return load_file


@pytest.fixture(scope="session")
def shared_parity() -> Path:
    """Folder of the numbers recorded from the reference implementations; it lies beside the repository."""
    folder = ROOT.parent / "shared" / "parity"
    if not folder.is_dir():
        pytest.skip("the parity fixtures (../shared/parity) are not on this machine")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium or Chrome that runs; continuous integration must have one."""
    path = load_file(ROOT / "scripts" / "environment.py").find_browser()
    if path is None:
        missing = "no Chromium or Chrome runs on this machine; CHROMIUM=path names one"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    return path


@pytest.fixture
def own_accelerator_state():
    """accelerate keeps the precision of the first run of a process; every test is a process of its own here."""
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(True)
    GradientState._reset_state()
    yield
    AcceleratorState._reset_state(True)
    GradientState._reset_state()
