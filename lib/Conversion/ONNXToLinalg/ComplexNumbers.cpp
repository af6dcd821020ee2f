//===- ComplexNumbers.cpp - Which operators take them ---------------------===//
//
// A complex number is stored as an integer of its bits (its real part in the
// lower half), which operators that only move elements need not look into.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Conversion/ONNXToLinalg.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

static bool holdsComplex(Type type) {
  if (auto sequence = dyn_cast<onnx::SeqType>(type))
    return holdsComplex(sequence.getElementType());
  if (auto optional = dyn_cast<onnx::OptType>(type))
    return holdsComplex(optional.getElementType());
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && isa<ComplexType>(tensor.getElementType());
}

/// The names of attributes that choose how elements are combined.
static bool movesOnly(Operation *op, StringRef attribute, StringRef wanted) {
  auto value = op->getAttrOfType<StringAttr>(attribute);
  return value && value.getValue() == wanted;
}

bool computesOnComplex(Operation *op) {
  if (!isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      (llvm::none_of(op->getOperandTypes(), holdsComplex) &&
       llvm::none_of(op->getResultTypes(), holdsComplex)))
    return false;
  if (isa<onnx::ScatterElementsOp, onnx::ScatterNDOp>(op))
    return !movesOnly(op, "reduction", "none");
  if (isa<onnx::ResizeOp>(op))
    return !movesOnly(op, "mode", "nearest");
  return !isa<
      onnx::BitCastOp, onnx::CenterCropPadOp, onnx::CompressOp, onnx::ConcatOp,
      onnx::ConcatFromSequenceOp, onnx::ConstantOp, onnx::DepthToSpaceOp,
      onnx::ExpandOp, onnx::FlattenOp, onnx::GatherOp, onnx::GatherElementsOp,
      onnx::GatherNDOp, onnx::IdentityOp, onnx::IfOp, onnx::LoopOp,
      onnx::OneHotOp, onnx::OptionalOp, onnx::OptionalGetElementOp,
      onnx::OptionalHasElementOp, onnx::PadOp, onnx::RandomNormalLikeOp,
      onnx::RandomUniformLikeOp, onnx::ReshapeOp, onnx::ReverseSequenceOp,
      onnx::ScanOp, onnx::SequenceAtOp, onnx::SequenceConstructOp,
      onnx::SequenceEmptyOp, onnx::SequenceEraseOp, onnx::SequenceInsertOp,
      onnx::SequenceLengthOp, onnx::SequenceMapOp, onnx::ShapeOp, onnx::SizeOp,
      onnx::SliceOp, onnx::SpaceToDepthOp, onnx::SplitOp,
      onnx::SplitToSequenceOp, onnx::SqueezeOp, onnx::TensorScatterOp,
      onnx::TileOp, onnx::TransposeOp, onnx::TriluOp, onnx::UnsqueezeOp,
      onnx::WhereOp>(op);
}

} // namespace sardonyx
