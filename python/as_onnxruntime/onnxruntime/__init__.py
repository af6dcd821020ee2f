"""onnxruntime's names, by Sardonyx, which takes this module's place when it is imported."""

import sardonyx

sardonyx.install_as_onnxruntime()
