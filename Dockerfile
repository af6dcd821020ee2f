# Images with Sardonyx, of Debian 12's packages.
#
#   docker build -t sardonyx .                            the command and the Python package, without LLVM and compilers
#   docker run --rm -v "$PWD:/work" sardonyx run model.onnx
#   docker build -t sardonyx-contributor --target contributor .      what builds and tests Sardonyx
#   docker run --rm -it -v "$PWD:/sardonyx" sardonyx-contributor utils/dev test --only lit,unit
#
# Releases of LLVM's packages are these and no others; whoever wants newer ones says so: --build-arg LLVM=...
ARG DEBIAN=debian:12-slim

FROM $DEBIAN AS contributor
ARG LLVM=1:22.1.8-1~deb12u1
RUN printf 'Package: *llvm*22* *mlir*22* *clang*22* *lld*22*\nPin: version %s\nPin-Priority: 1001\n' "$LLVM" \
    > /etc/apt/preferences.d/llvm
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /sardonyx
COPY utils/dev utils/dev
COPY requirements.txt .
RUN utils/dev install && rm -rf /var/lib/apt/lists/* .venv
CMD ["bash"]

FROM contributor AS build
COPY . .
RUN utils/dev wheel

FROM $DEBIAN
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /sardonyx/build/wheel/dist /tmp/wheels
RUN python3 -m venv /opt/sardonyx \
    && /opt/sardonyx/bin/pip install --no-cache-dir --find-links /tmp/wheels sardonyx && rm -r /tmp/wheels
ENV PATH=/opt/sardonyx/bin:$PATH
RUN useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["sardonyx"]
