/** Element types by ONNX's numbers: name, array, and how many of its numbers an element takes. */
const elementTypes = {
  1: ["float32", Float32Array],
  2: ["uint8", Uint8Array],
  3: ["int8", Int8Array],
  4: ["uint16", Uint16Array],
  5: ["int16", Int16Array],
  6: ["int32", Int32Array],
  7: ["int64", BigInt64Array],
  8: ["string", Array],
  9: ["bool", Uint8Array],
  10: ["float16", Uint16Array],
  11: ["float64", Float64Array],
  12: ["uint32", Uint32Array],
  13: ["uint64", BigUint64Array],
  14: ["complex64", Float32Array, 2],
  15: ["complex128", Float64Array, 2],
  16: ["bfloat16", Uint16Array],
  17: ["float8e4m3fn", Uint8Array],
  18: ["float8e4m3fnuz", Uint8Array],
  19: ["float8e5m2", Uint8Array],
  20: ["float8e5m2fnuz", Uint8Array],
  21: ["uint4", Uint8Array],
  22: ["int4", Int8Array],
  23: ["float4e2m1", Uint8Array],
  24: ["float8e8m0", Uint8Array],
  25: ["uint2", Uint8Array],
  26: ["int2", Int8Array],
  27: ["float6e2m3", Uint8Array],
  28: ["float6e3m2", Uint8Array],
};
const STRING = 8;

/** Arrays whose elements mean the same, as an array of the first kind. */
const otherArrays = { Uint8ClampedArray: Uint8Array, Float16Array: Uint16Array };

// Of the structs of sardonyx-c/Values.h and Artifact.h: kinds, sizes, and the table's functions in order.
const TENSOR = 0, SEQUENCE = 1, NOTHING = 2, MAP = 3;
const VALUE_BYTES = 28, LIMITS_BYTES = 40, FUNCTIONS_AT = 16;
const functionNames = [
  "open", "close", "inputCount", "outputCount", "inputName", "outputName", "metadata", "description", "run",
  "resultCount", "result", "freeResults", "bytesHeld", "releaseMemory", "errorKind", "errorMessage", "freeError",
];

/** A tensor: its elements row by row, and the size of each dimension. */
export class Tensor {
  constructor(type, data, dims) {
    this.type = type;
    this.data = data;
    this.dims = dims;
  }
}

/** What a model, or its file, does not take or cannot do. */
export class ModelError extends Error {
  name = "ModelError";
}

const nameOfKind = (value) => (value === null ? "null" : (value?.constructor?.name ?? typeof value));

/** The few things that the C library asks a system for. */
function systemOf(getMemory) {
  const view = () => new DataView(getMemory().buffer);
  const NO_SUCH_CALL = 52, BAD_FILE = 8;
  const calls = {
    clock_time_get(clock, precision, at) {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(milliseconds * 1e6)), true);
      return 0;
    },
    random_get(at, bytes) {
      for (let i = 0; i < bytes; i += 65536)
        crypto.getRandomValues(new Uint8Array(getMemory().buffer, at + i, Math.min(65536, bytes - i)));
      return 0;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    fd_write(file, pieces, count, written) {
      let text = "", bytes = 0;
      for (let i = 0; i < count; ++i) {
        const at = view().getUint32(pieces + 8 * i, true), size = view().getUint32(pieces + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(getMemory().buffer, at, size));
        bytes += size;
      }
      console.error(text.trimEnd());
      view().setUint32(written, bytes, true);
      return 0;
    },
    fd_prestat_get: () => BAD_FILE,
    proc_exit(status) {
      throw new ModelError(`the model ended with status ${status}`);
    },
  };
  return (name) => calls[name] ?? (() => NO_SUCH_CALL);
}

/** A model that is ready to run. */
export class Model {
  #exports;
  #functions;
  #session;
  #broken = "";

  /** Use load(). */
  constructor(instance) {
    this.#exports = instance.exports;
    const artifact = this.#exports.sardonyx_artifact.value;
    const functions = this.#view().getUint32(artifact + FUNCTIONS_AT, true);
    this.#functions = {};
    functionNames.forEach((name, i) => {
      const index = this.#view().getUint32(functions + 4 + 4 * i, true);
      this.#functions[name] = this.#exports.__indirect_function_table.get(index);
    });
    this.name = description.name;
    this.inputs = description.inputs;
    this.outputs = description.outputs;
    this.#session = this.#scope((scope) => this.#checked(scope, (error) => this.#functions.open(artifact, 0, error)));
    const names = (count, name) =>
      Array.from({ length: count(this.#session) }, (_, i) => this.#text(name(this.#session, i)));
    const inside = [
      ...names(this.#functions.inputCount, this.#functions.inputName),
      ...names(this.#functions.outputCount, this.#functions.outputName),
    ];
    const expected = [...this.inputs, ...this.outputs].map((value) => value.name);
    if (inside.join("\n") !== expected.join("\n"))
      throw new ModelError(`this module is of the model '${this.name}', and the WebAssembly is another model's`);
  }

  /** Runs the model: an object with a value for each input, by name, gives one with the outputs. */
  run(inputs, options = {}) {
    const session = this.#opened();
    const unknown = Object.keys(inputs).find((name) => !this.inputs.some((info) => info.name === name));
    if (unknown !== undefined) {
      const known = this.inputs.map((info) => info.name).join(", ") || "none";
      throw new ModelError(`the model has no input '${unknown}'; it has ${known}`);
    }
    return this.#scope((scope) => {
      const values = scope.allocate(VALUE_BYTES * this.inputs.length);
      this.inputs.forEach((info, i) => {
        const value = Object.hasOwn(inputs, info.name) ? inputs[info.name] : undefined;
        if (value === undefined) throw new ModelError(`input '${info.name}' is missing`);
        this.#write(scope, values + VALUE_BYTES * i, value, info, `input '${info.name}'`);
      });
      const limits = scope.allocate(LIMITS_BYTES);
      this.#view().setUint32(limits, LIMITS_BYTES, true);
      this.#view().setFloat64(limits + 8, options.timeout ?? 0, true);
      this.#view().setBigInt64(limits + 16, BigInt(options.maxTripCount ?? 0), true);
      const results = this.#checked(scope, (error) =>
        this.#functions.run(session, values, this.inputs.length, 0, limits, error),
      );
      try {
        const place = scope.allocate(VALUE_BYTES);
        const read = (info, i) => {
          this.#functions.result(place, results, i);
          return [info.name, this.#read(place)];
        };
        return Object.fromEntries(this.outputs.map(read));
      } finally {
        this.#functions.freeResults(results);
      }
    });
  }

  /** What the model's file says of itself under a name: "producer_name", "description", … */
  metadata(name) {
    const session = this.#opened();
    return this.#scope((scope) => {
      const text = this.#functions.metadata(session, scope.text(name));
      return text ? this.#text(text) : undefined;
    });
  }

  /** Gives up the memory that is kept for the next run; WebAssembly's own can only grow. */
  releaseMemory() {
    if (this.#session) this.#functions.releaseMemory(this.#session);
  }

  /** Ends the use of the model. */
  close() {
    if (this.#session) this.#functions.close(this.#session);
    this.#session = 0;
  }

  #opened() {
    if (!this.#session) throw new ModelError(`the model '${this.name}' is closed`);
    return this.#session;
  }

  // Memory grows, and leaves older views behind.
  #view() {
    return new DataView(this.#exports.memory.buffer);
  }

  #bytes(at, size) {
    return new Uint8Array(this.#exports.memory.buffer, at, size);
  }

  #text(at) {
    const bytes = this.#bytes(at >>> 0);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  /** Calls `use` with memory that is freed behind it. */
  #scope(use) {
    if (this.#broken) throw new ModelError(this.#broken);
    const taken = [];
    const take = (bytes) => {
      const at = this.#exports.malloc(Math.max(1, bytes)) >>> 0; // engines give it a sign
      if (!at) throw new ModelError(`out of memory: ${bytes} bytes are needed`);
      taken.push(at);
      return at;
    };
    const scope = {
      /** Zeros. */
      allocate: (bytes) => {
        const at = take(bytes);
        this.#bytes(at, bytes).fill(0);
        return at;
      },
      copy: (bytes) => {
        const at = take(bytes.length);
        this.#bytes(at, bytes.length).set(bytes);
        return at;
      },
      text: (text) => scope.copy(new TextEncoder().encode(text + "\0")),
    };
    try {
      return use(scope);
    } catch (error) {
      // A trap leaves memory as it was at that moment.
      if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
        this.#broken = `the model '${this.name}' has failed and must be loaded again: ${error.message}`;
        throw new ModelError(this.#broken, { cause: error });
      }
      throw error;
    } finally {
      if (!this.#broken) taken.forEach((at) => this.#exports.free(at));
    }
  }

  /** What a function gives that takes a place for its error. */
  #checked(scope, call) {
    const place = scope.allocate(4);
    const result = call(place);
    if (result) return result;
    const error = this.#view().getUint32(place, true);
    const message = this.#text(this.#functions.errorMessage(error));
    this.#functions.freeError(error);
    throw new ModelError(message);
  }

  /** Writes a value of any type to where an sdx_value is. */
  #write(scope, at, value, info, what) {
    if (info.items.length === 0) return this.#writeTensor(scope, at, value, info, what);
    if (value === null && info.isOptional) return this.#view().setUint32(at, NOTHING, true);
    let items, infos;
    if (info.isMap) {
      if (!(value instanceof Map)) throw new ModelError(`${what} takes a Map, not ${nameOfKind(value)}`);
      const [keys, values] = info.items;
      const array = (info, elements) => {
        const [, kind] = elementTypes[info.type];
        return { data: kind.from(elements), dims: [value.size] };
      };
      items = [array(keys, value.keys()), array(values, value.values())];
      infos = info.items;
    } else if (info.isSequence) {
      if (!Array.isArray(value)) throw new ModelError(`${what} takes an array, not ${nameOfKind(value)}`);
      items = value;
      infos = value.map(() => info.items[0]);
    } else {
      return this.#write(scope, at, value, info.items[0], what);
    }
    const places = scope.allocate(VALUE_BYTES * items.length);
    items.forEach((item, i) => this.#write(scope, places + VALUE_BYTES * i, item, infos[i], `item ${i} of ${what}`));
    this.#view().setUint32(at, info.isMap ? MAP : SEQUENCE, true);
    this.#view().setUint32(at + 20, items.length, true);
    this.#view().setUint32(at + 24, places, true);
  }

  #writeTensor(scope, at, value, info, what) {
    const [typeName, kind, numbers = 1] = elementTypes[info.type];
    let data = value?.data ?? value;
    const same = otherArrays[data?.constructor?.name];
    if (same && same === kind) data = new same(data.buffer, data.byteOffset, data.length);
    if (!(data instanceof kind))
      throw new ModelError(`${what} takes a ${kind.name} of ${typeName}, not ${nameOfKind(data)}`);
    const dims = value.dims ?? this.#dimsOf(info, data.length / numbers, what);
    const count = dims.reduce((product, size) => product * size, 1);
    if (!dims.every((size) => Number.isSafeInteger(size) && size >= 0) || count * numbers !== data.length)
      throw new ModelError(`${what} has ${data.length / numbers} elements, which are not those of [${dims}]`);
    let place;
    if (info.type === STRING) {
      place = scope.allocate(8 * count);
      data.forEach((text, i) => {
        const bytes = new TextEncoder().encode(text);
        const own = scope.copy(bytes);
        this.#view().setUint32(place + 8 * i, own, true);
        this.#view().setUint32(place + 8 * i + 4, bytes.length, true);
      });
    } else {
      place = scope.copy(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    }
    const shape = scope.allocate(8 * dims.length);
    dims.forEach((size, i) => this.#view().setBigInt64(shape + 8 * i, BigInt(size), true));
    const view = this.#view();
    view.setUint32(at, TENSOR, true);
    view.setInt32(at + 4, info.type, true);
    view.setUint32(at + 8, dims.length, true);
    view.setUint32(at + 12, shape, true);
    view.setUint32(at + 16, place, true);
  }

  /** The shape of an array that is given without one, where the declared one leaves no more than one size open. */
  #dimsOf(info, count, what) {
    const open = info.dims?.filter((size) => typeof size !== "number").length ?? 2;
    const known = info.dims?.reduce((product, size) => (typeof size === "number" ? product * size : product), 1);
    if (open > 1 || (open === 1 && (known === 0 || count % known !== 0)))
      throw new ModelError(`the sizes of ${what} are open: give { data, dims }`);
    return info.dims.map((size) => (typeof size === "number" ? size : count / known));
  }

  #read(at) {
    const view = this.#view();
    const items = () => {
      const count = view.getUint32(at + 20, true), place = view.getUint32(at + 24, true);
      return Array.from({ length: count }, (_, i) => this.#read(place + VALUE_BYTES * i));
    };
    switch (view.getUint32(at, true)) {
      case SEQUENCE:
        return items();
      case NOTHING:
        return null;
      case MAP: {
        const [keys, values] = items();
        return new Map(Array.from(keys.data, (key, i) => [key, values.data[i]]));
      }
    }
    const type = view.getInt32(at + 4, true), rank = view.getUint32(at + 8, true);
    const shape = view.getUint32(at + 12, true), place = view.getUint32(at + 16, true);
    const dims = Array.from({ length: rank }, (_, i) => Number(view.getBigInt64(shape + 8 * i, true)));
    const count = dims.reduce((product, size) => product * size, 1);
    const [typeName, kind, numbers = 1] = elementTypes[type];
    if (type === STRING) {
      const data = Array.from({ length: count }, (_, i) => {
        const text = view.getUint32(place + 8 * i, true), bytes = view.getUint32(place + 8 * i + 4, true);
        return new TextDecoder().decode(this.#bytes(text, bytes));
      });
      return new Tensor(typeName, data, dims);
    }
    const bytes = count * numbers * kind.BYTES_PER_ELEMENT;
    return new Tensor(typeName, new kind(this.#bytes(place, bytes).slice().buffer), dims);
  }
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  let bytes = source;
  if (typeof source === "string" || source instanceof URL) {
    const url = new URL(source, import.meta.url);
    if (url.protocol === "file:") {
      const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
      bytes = await readFile(url);
    } else {
      source = await fetch(url);
    }
  }
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new ModelError(`cannot read '${source.url}': ${source.status} ${source.statusText}`);
    bytes = await source.arrayBuffer();
  }
  return WebAssembly.compile(bytes);
}

/**
 * Loads the model: from the file beside this one, or from a URL (a relative one is looked for beside this module), a
 * Response, bytes, or a compiled WebAssembly.Module.
 */
export async function load(source = wasmFile) {
  let module;
  try {
    module = await compile(source);
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError)) throw error;
    throw new ModelError(
      `the model '${description.name}' cannot be loaded: the file is damaged, or this engine lacks SIMD or exceptions ` +
        `of WebAssembly (${error.message})`,
      { cause: error },
    );
  }
  const exported = WebAssembly.Module.exports(module).map((item) => item.name);
  if (!["memory", "malloc", "free", "sardonyx_artifact"].every((name) => exported.includes(name)))
    throw new ModelError(`the model '${description.name}' cannot be loaded: the WebAssembly is no model of Sardonyx`);
  let instance;
  const system = systemOf(() => instance.exports.memory);
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = system(name);
  instance = await WebAssembly.instantiate(module, imports);
  instance.exports.__wasm_call_ctors();
  return new Model(instance);
}

export default load;
