"""What lies below onnxruntime's InferenceSession, for programs that use it: `session._sess` and
`onnxruntime.capi._pybind_state.InferenceSession`."""

from __future__ import annotations

from typing import Any

from ._binding import OrtValueVector
from .errors import Fail


class Internals:
    """Attributes of onnxruntime's session that are no part of its API, and that programs read all the same."""

    @property
    def _sess(self) -> NativeSession:
        return NativeSession._of(self)

    @property
    def _providers(self) -> list[str]:
        return self.get_providers()  # type: ignore[attr-defined]

    @property
    def _provider_options(self) -> dict[str, dict[str, str]]:
        return self.get_provider_options()  # type: ignore[attr-defined]

    @property
    def _inputs_meta(self) -> list:
        return self.get_inputs()  # type: ignore[attr-defined]

    @property
    def _outputs_meta(self) -> list:
        return self.get_outputs()  # type: ignore[attr-defined]

    @property
    def _model_meta(self):
        return self.get_modelmeta()  # type: ignore[attr-defined]


class NativeSession:
    """A session by its options and its model: a path where `is_path`, else bytes. `initialize_session` loads it."""

    def __init__(self, session_options, path_or_bytes, is_path: bool, read_config_from_model: bool = False):
        self._loading: tuple | None = (session_options, path_or_bytes, read_config_from_model)
        self._runnable: Any = None

    @classmethod
    def _of(cls, runnable: Any) -> NativeSession:
        session = cls(None, None, False)
        session._loading, session._runnable = None, runnable
        return session

    def initialize_session(self, providers=(), provider_options=(), disabled_optimizers=()) -> None:
        """Loads the model. Providers are as `InferenceSession` takes them."""
        if self._loading is None:
            raise Fail("Session has already been initialized.")
        from ._session import InferenceSession

        options, source, read_config = self._loading
        self._runnable = InferenceSession(
            source, options, list(providers) or None, list(provider_options) or None, read_config_from_model=read_config
        )
        self._loading = None

    def _ready(self) -> Any:
        if self._runnable is None:
            raise Fail("Session not initialized.")
        return self._runnable

    def __eq__(self, other) -> bool:
        return isinstance(other, NativeSession) and self._runnable is other._runnable and self._loading is other._loading

    def __hash__(self) -> int:
        return hash(id(self._runnable))

    def __getattr__(self, name: str) -> Any:
        # Methods that both classes have.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._ready(), name)

    @property
    def session_options(self):
        """The options of the session."""
        return self._ready().get_session_options()

    @property
    def inputs_meta(self) -> list:
        """The inputs."""
        return self._ready().get_inputs()

    @property
    def outputs_meta(self) -> list:
        """The outputs."""
        return self._ready().get_outputs()

    @property
    def overridable_initializers(self) -> list:
        """The initializers that a run may give other values."""
        return self._ready().get_overridable_initializers()

    @property
    def model_meta(self):
        """What the model file says about itself."""
        return self._ready().get_modelmeta()

    @property
    def input_meminfos(self) -> list:
        """Where each input lies."""
        return self._ready().get_input_memory_infos()

    @property
    def output_meminfos(self) -> list:
        """Where each output lies."""
        return self._ready().get_output_memory_infos()

    @property
    def input_epdevices(self) -> list:
        """What reads each input."""
        return self._ready().get_input_epdevices()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """What the times of a profile count from."""
        return self._ready().get_profiling_start_time_ns()

    def run_with_ort_values(self, feeds, output_names, run_options=None) -> OrtValueVector:
        """The outputs named as OrtValues, for OrtValues by name."""
        return OrtValueVector(self._ready().run_with_ort_values(list(output_names), feeds, run_options))

    def run_with_iobinding(self, io_binding, run_options=None) -> None:
        """Runs the model on what a SessionIOBinding has bound."""
        io_binding._run(run_options)

    def is_webgpu_graph_capture_enabled(self) -> bool:
        """Whether graphs are captured on GPUs: no."""
        return False

    def webgpu_context_id(self) -> int:
        """The number of a GPU's context: -1 for none."""
        return -1
