"""onnxruntime.quantization.cuda_quantizer, which Sardonyx has not: to import it raises an ImportError."""

from sardonyx._absent import refuse

refuse(__name__)
