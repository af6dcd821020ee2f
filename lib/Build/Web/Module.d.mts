/** A tensor: its elements row by row, and the size of each dimension. */
export declare class Tensor<T> {
  constructor(type: string, data: T, dims: number[]);
  /** "float32", "int64", "string", … */
  type: string;
  data: T;
  dims: number[];
}

/** A tensor as an input; an array alone where the model leaves no more than one size of it open. */
export type Feed<T> = T | { data: T; dims: readonly number[] };

/** An input or output: dims are sizes, names of open ones, or null. */
export interface ValueInfo {
  name: string;
  /** The number of the element type in onnx.TensorProto.DataType; 0 for what is no tensor. */
  type: number;
  /** "tensor(float)", "seq(tensor(int64))" */
  typeName: string;
  dims: (number | string | null)[] | null;
}

export interface RunOptions {
  /** Seconds that the run may take. */
  timeout?: number;
  /** Trips that any one Loop may take. */
  maxTripCount?: number;
}

/** What a model, or its file, does not take or cannot do. */
export declare class ModelError extends Error {}

/** A model that is ready to run. */
export declare class Model {
  private constructor();
  readonly name: string;
  readonly inputs: ValueInfo[];
  readonly outputs: ValueInfo[];
  /** Runs the model; throws ModelError. */
  run(inputs: Inputs, options?: RunOptions): Outputs;
  /** What the model's file says of itself under a name: "producer_name", "description", … */
  metadata(name: string): string | undefined;
  /** Gives up the memory that is kept for the next run; WebAssembly's own can only grow. */
  releaseMemory(): void;
  /** Ends the use of the model. */
  close(): void;
}

/**
 * Loads the model: from the file beside this one, or from a URL (a relative one is looked for beside this module), a
 * Response, bytes, or a compiled WebAssembly.Module.
 */
export declare function load(
  source?: string | URL | Response | BufferSource | WebAssembly.Module,
): Promise<Model>;
export default load;
