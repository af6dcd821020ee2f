// node web.mjs MODULE: runs a model of `sardonyx build` on the inputs that standard input has, as web.py writes them,
// and writes what comes out, or the error's message.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const arrays = {
  1: Float32Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Int32Array, 7: BigInt64Array, 10: Uint16Array,
  11: Float64Array, 12: Uint32Array, 13: BigUint64Array, 14: Float32Array, 15: Float64Array, 16: Uint16Array,
  22: Int8Array, 26: Int8Array,
};

function decode(value, info) {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item) => decode(item, info.items[0]));
  if (value.keys) {
    const [keys, values] = [decode(value.keys, info.items[0]), decode(value.values, info.items[1])];
    return new Map(Array.from(keys.data, (key, i) => [key, values.data[i]]));
  }
  if (value.strings) return { data: value.strings, dims: value.dims };
  while (info.items.length) info = info.items[0]; // of an optional
  const bytes = Buffer.from(value.bytes, "base64");
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return { data: new (arrays[info.type] ?? Uint8Array)(buffer), dims: value.dims };
}

function encode(value) {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(encode);
  if (value instanceof Map) {
    const plain = (item) => (typeof item === "bigint" ? Number(item) : item);
    return { map: [...value].map((pair) => pair.map(plain)) };
  }
  if (Array.isArray(value.data)) return { strings: value.data, dims: value.dims };
  const { buffer, byteOffset, byteLength } = value.data;
  return { bytes: Buffer.from(buffer, byteOffset, byteLength).toString("base64"), dims: value.dims };
}

const { load } = await import(pathToFileURL(process.argv[2]));
const given = JSON.parse(readFileSync(0, "utf8"));
try {
  const model = await load();
  const inputs = Object.fromEntries(
    model.inputs.filter(({ name }) => name in given.inputs).map((info) => [info.name, decode(given.inputs[info.name], info)]),
  );
  const outputs = model.run(inputs, given.options);
  console.log(JSON.stringify({ outputs: Object.fromEntries(Object.entries(outputs).map(([k, v]) => [k, encode(v)])) }));
} catch (error) {
  if (error.name !== "ModelError") throw error;
  console.log(JSON.stringify({ error: error.message }));
}
