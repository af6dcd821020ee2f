// RUN: onnx-opt %s -split-input-file -verify-diagnostics -convert-onnx-to-linalg | FileCheck %s

// A map is a handle; its keys and values are the items of a list. Rows of scores
// become maps whose keys are in ascending order: labels and their columns.
// CHECK: module attributes {sdx.strings = ["b", "a"]}
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?x2xf32>
// CHECK-SAME:    -> (tensor<i64>
// CHECK-DAG:     %[[KEYS:.*]] = arith.constant dense<[2, 1]> : tensor<2xi64>
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant dense<[1, 0]> : tensor<2xi64>
// CHECK:         sdx.runtime_call "sdx_rt_map_zip"(%arg0, %[[KEYS]], %[[COLUMNS]] : tensor<?x2xf32>, tensor<2xi64>, tensor<2xi64>) outs(%{{.*}} : tensor<i64>)
func.func @main_graph(%x: tensor<?x2xf32>) -> !onnx.seq<!onnx.map<!onnx.string, tensor<f32>>> {
  %0 = onnx.ml.ZipMap(%x) {classlabels_strings = ["b", "a"]} : (tensor<?x2xf32>) -> !onnx.seq<!onnx.map<!onnx.string, tensor<f32>>>
  return %0 : !onnx.seq<!onnx.map<!onnx.string, tensor<f32>>>
}

// -----

// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?x?xf32>
// CHECK:         sdx.check %{{.*}}, "ml.ZipMap: there are not as many class labels as columns
func.func @main_graph(%x: tensor<?x?xf32>) -> !onnx.seq<!onnx.map<i64, tensor<f32>>> {
  %0 = onnx.ml.ZipMap(%x) {classlabels_int64s = array<i64: 5, 7, 6>} : (tensor<?x?xf32>) -> !onnx.seq<!onnx.map<i64, tensor<f32>>>
  return %0 : !onnx.seq<!onnx.map<i64, tensor<f32>>>
}

// -----

// Keys of the vocabulary are searched for, and the values put where these are.
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<i64>
// CHECK-DAG:     arith.constant dense<[10, 20]> : tensor<2xi64>
// CHECK:         %[[KEYS:.*]] = sdx.runtime_call "sdx_rt_list_get"(%arg0, %{{.*}}) outs(%{{.*}} : tensor<?xi64>)
// CHECK:         %[[VALUES:.*]] = sdx.runtime_call "sdx_rt_list_get"(%arg0, %{{.*}}) outs(%{{.*}} : tensor<?xf64>)
// CHECK:         scf.for
// CHECK:           tensor.extract %[[KEYS]]
// CHECK:           tensor.extract %[[VALUES]]
// CHECK:           tensor.insert %{{.*}} : tensor<2xf64>
func.func @main_graph(%m: !onnx.map<i64, tensor<f64>>) -> tensor<1x2xf64> {
  %0 = onnx.ml.DictVectorizer(%m) {int64_vocabulary = array<i64: 20, 10>} : (!onnx.map<i64, tensor<f64>>) -> tensor<1x2xf64>
  return %0 : tensor<1x2xf64>
}

// -----

// CHECK-LABEL: func.func @main_graph(%arg0: tensor<i64>
// CHECK:         sdx.runtime_call "sdx_rt_string_parse_f32"
// CHECK:         scf.for
// CHECK:           sdx.check %{{.*}}, "ml.CastMap: key {0} is none from 0 to {1}"
func.func @main_graph(%m: !onnx.map<i64, tensor<!onnx.string>>) -> tensor<1x5xf32> {
  %0 = onnx.ml.CastMap(%m) {cast_to = "TO_FLOAT", map_form = "SPARSE", max_map = 5} : (!onnx.map<i64, tensor<!onnx.string>>) -> tensor<1x5xf32>
  return %0 : tensor<1x5xf32>
}

// -----

// A linear model is a product; what becomes of its scores is elementwise.
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?x2xf32>
// CHECK-DAG:     arith.constant dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
// CHECK:         linalg.matmul
// CHECK:         linalg.generic
// CHECK:         math.log
// CHECK:         math.copysign
func.func @main_graph(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = onnx.ml.LinearRegressor(%x) {coefficients = array<f32: 1.0, 2.0, 3.0, 4.0>, intercepts = array<f32: 0.5, 0.25>, post_transform = "PROBIT", targets = 2} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// The features of a row less an offset, times a scale: one loop.
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?x2xi64>
// CHECK:         linalg.generic
// CHECK:           arith.sitofp
// CHECK:         linalg.generic
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
func.func @main_graph(%x: tensor<?x2xi64>) -> tensor<?x2xf32> {
  %0 = onnx.ml.Scaler(%x) {offset = array<f32: 1.0, 2.0>, scale = array<f32: 0.5, 0.25>} : (tensor<?x2xi64>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// -----

// Labels of strings by a table of their handles.
// CHECK: module attributes {sdx.strings = ["cat", "dog"]}
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?xi64>
// CHECK:         arith.constant dense<[2, 0, 1]> : tensor<3xi64>
// CHECK:         linalg.generic
// CHECK:           arith.cmpi ule
// CHECK:           tensor.extract
func.func @main_graph(%x: tensor<?x!onnx.string>) -> tensor<?xi64> {
  %0 = onnx.ml.LabelEncoder(%x) {keys_strings = ["cat", "dog"], values_int64s = array<i64: 5, 6>} : (tensor<?x!onnx.string>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// -----

func.func @main_graph(%m: !onnx.map<i64, tensor<f32>>) -> tensor<1x?xf32> {
  // expected-error @+1 {{no lowering for: onnx.ml.CastMap: 'cast_to' is 'TO_INT64', which is no type or another than the result's}}
  %0 = onnx.ml.CastMap(%m) {cast_to = "TO_INT64"} : (!onnx.map<i64, tensor<f32>>) -> tensor<1x?xf32>
  return %0 : tensor<1x?xf32>
}
