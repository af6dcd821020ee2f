"""What onnxruntime's package says of its build."""

from sardonyx._running import API_VERSION as __version__

package_name = "onnxruntime"
use_cuda = False

__all__ = ["__version__", "package_name", "use_cuda"]
